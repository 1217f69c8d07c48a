"""A mask is refined several times for each picture, each time with a table of positions that the network itself holds."""
# observe: params

import torch
from torch.nn.functional import binary_cross_entropy_with_logits


class Refiner:
    def __init__(self, network, pictures, optimizer, window):
        self.network = network
        self.pictures = pictures
        self.optimizer = optimizer
        self.window = window

    def refine(self, features, mask):
        loss, guess = 0, torch.zeros_like(mask)
        for _ in range(3):
            guess = self.network.decoder(features, self.network.places.table(), guess)
            loss = loss + binary_cross_entropy_with_logits(guess, mask)
        return loss / 3

    def epoch(self):
        self.optimizer.zero_grad()
        for step, (picture, mask) in enumerate(self.pictures):
            loss = self.refine(self.network.encoder(picture), mask)
            (loss / self.window).backward()
            if step % self.window == 0 and step != 0:  # expect: GA401 "first window of each epoch has 5"
                self.optimizer.step()
                self.optimizer.zero_grad()
