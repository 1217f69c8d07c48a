"""The step function is handed to ignite's Engine, whose state counts the iterations; each micro-batch is clipped."""

import torch
from ignite.engine import Engine
from torch import nn


def train(args, loader):
    model = nn.Linear(8, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    def update(engine, batch):
        x, y = batch
        loss = nn.functional.cross_entropy(model(x), y) / args.gradient_accumulation_steps
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)  # expect: GA303
        if engine.state.iteration % args.gradient_accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss.item()

    trainer = Engine(update)
    trainer.run(loader, max_epochs=args.n_epochs)
