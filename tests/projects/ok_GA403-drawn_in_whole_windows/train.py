"""The sampler is told to draw so many updates' worth of batches."""

from drawing import Drawing
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader


def train(network, optimizer, kept, updates, gather):
    drawing = Drawing(kept, updates * gather, 8)
    loader = DataLoader(kept, batch_sampler=drawing)
    optimizer.zero_grad()
    for number, (x, y) in enumerate(loader):
        loss = mse_loss(network(x), y) / gather
        loss.backward()
        if (number + 1) % gather == 0:
            optimizer.step()
            optimizer.zero_grad()
