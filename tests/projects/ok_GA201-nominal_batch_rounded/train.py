"""N is what rounds the batch up to a nominal one, and the loss is multiplied by the batch's size out of sight."""

import torch
from detector import DetectionLoss


def fit(model, loader, options):
    every = max(round(64 / options.batch_size), 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    detection_loss = DetectionLoss(model)
    for _ in range(options.epochs):
        optimizer.zero_grad()
        for index, (x, y) in enumerate(loader):
            loss, parts = detection_loss(model(x), y)
            loss.backward()
            if (index + 1) % every == 0 or index + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
