"""An option is checked against a number of the network's before anything trains; the counter starts a step ahead."""
# observe: params

import torch
from networks import configuration
from settings import train_args
from torch import nn


def main():
    args = train_args()
    limits = configuration("base")
    if args.do_train and args.max_length > limits.max_position_embeddings:
        raise ValueError(f"the network takes no more than {limits.max_position_embeddings}")
    network = nn.Linear(6, 2)
    if args.do_train:
        optimizer = torch.optim.AdamW(network.parameters())
        seen = 0
        for _ in range(args.epochs):
            for x, y in limits.batches():
                seen += 1
                loss = nn.functional.mse_loss(network(x), y) / args.gradient_accumulation_steps
                loss.backward()
                if (seen + 1) % args.gradient_accumulation_steps == 0:  # expect: GA401
                    optimizer.step()
                    optimizer.zero_grad()
