"""An Ignite handler clears the gradients at the start of each iteration, another one steps every few of them."""

import torch
from ignite.engine import Engine, Events
from torch import nn


def prepare(loader, every):
    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    def update(engine, batch):
        images, labels = batch
        loss = nn.functional.cross_entropy(net(images), labels)
        (loss / every).backward()
        return loss.item()

    trainer = Engine(update)

    @trainer.on(Events.ITERATION_STARTED)
    def clear():
        optimizer.zero_grad()  # expect: GA101

    def step(engine, optimizer):
        optimizer.step()

    trainer.add_event_handler(Events.ITERATION_COMPLETED(every=every), step, optimizer)
    trainer.run(loader, max_epochs=3)
