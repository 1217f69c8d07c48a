"""Examples are read, encoded and batched ahead; how many batches the list holds, the code does not say."""
# observe: params

import random

import torch
from reading import read
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def encode(examples):
    features = []
    for index, example in enumerate(examples):
        features.append({"index": index, "x": example[:6], "y": example[6:]})
    return features


def train(args):
    features = encode(read(args.path))
    x = torch.tensor([f["x"] for f in features])
    y = torch.tensor([f["y"] for f in features])
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size)
    batches = [batch for batch in loader]
    network = nn.Linear(6, 2)
    optimizer = torch.optim.AdamW(network.parameters())
    for _ in range(args.epochs):
        random.shuffle(batches)
        for step, batch in enumerate(batches):
            loss = nn.functional.mse_loss(network(batch[0]), batch[1]) / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:  # expect: GA402
                optimizer.step()
                optimizer.zero_grad()
