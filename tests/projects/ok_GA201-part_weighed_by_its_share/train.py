"""A part's mean loss is multiplied by its share of the batch, whose end is cut off at the batch's length."""

from torch.nn.functional import mse_loss


def train(network, optimizer, batches, rows):
    for inputs, targets in batches:
        optimizer.zero_grad()
        for first in range(0, len(inputs), rows):
            last = min(first + rows, len(inputs))
            loss = mse_loss(network(inputs[first:last]), targets[first:last])
            loss = loss * ((last - first) / len(inputs))
            loss.backward()
        optimizer.step()
