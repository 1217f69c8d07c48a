"""Truncated backpropagation through time: each step of a sequence has its loss and its backward, and hands a state on."""

import torch


def train(network, optimizer, sequences):
    for sequence in sequences:
        memory = torch.zeros(sequence.shape[0], 4)
        optimizer.zero_grad()
        for t in range(sequence.shape[1] - 1):
            out, memory = network(sequence[:, t], memory)
            loss = torch.nn.functional.mse_loss(out, sequence[:, t + 1])
            loss.backward()
            memory = memory.detach()
        optimizer.step()
