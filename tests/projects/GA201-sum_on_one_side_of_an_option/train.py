"""The network gives a sum over tokens: one side of an option takes it as it is, the other makes a mean of each part."""
# observe: params

import torch
from torch import nn


def train(network, optimizer, batches, args):
    for batch in batches:
        for part in range(args.gradient_accumulation_steps):
            piece = {key: value[part :: args.gradient_accumulation_steps] for key, value in batch.items()}
            out = network(piece)
            if args.optimizer_name == "ScaleFree":
                out["loss"].backward()
            else:
                (out["loss"] / out["num_tokens"]).backward()  # expect: GA201
        torch.nn.utils.clip_grad_norm_(network.parameters(), args.max_norm)
        optimizer.step()
        optimizer.zero_grad()


class Summing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, piece):
        loss = nn.functional.mse_loss(self.layer(piece["x"]), piece["y"])
        return {"loss": loss * len(piece["y"]), "num_tokens": len(piece["y"])}
