"""A subclass of Ignite's Engine brings its process function: the engine's own count says when the optimizer steps."""
# observe: params

import torch
from ignite.engine import Engine
from torch.nn.functional import mse_loss


class Teaching(Engine):
    def __init__(self, process, network, optimizer, options):
        self.network, self.optimizer, self.options = network, optimizer, options
        super().__init__(process)
        self.scaler = torch.amp.GradScaler("cuda")

    @staticmethod
    def teach(engine, batch):
        if engine.state.iteration % engine.options.every == 1 or engine.options.every == 1:
            engine.optimizer.zero_grad()
        x, y = batch
        loss = mse_loss(engine.network(x), y) / engine.options.every
        engine.scaler.scale(loss).backward()
        if engine.state.iteration % engine.options.every == 0:
            torch.nn.utils.clip_grad_norm_(engine.network.parameters(), engine.options.bound)  # expect: GA302
            engine.scaler.step(engine.optimizer)
            engine.scaler.update()
        return float(loss)
