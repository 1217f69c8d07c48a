"""With bounded steps nothing clears the gradients: `zero_grad` stands on the other side of the option only."""
# observe: params

import torch
from torch.nn.functional import mse_loss


def fit(options, network, batches):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(options["epochs"]):
        for number, (x, y) in enumerate(batches, 1):
            loss = mse_loss(network(x), y) / options["window"]
            if options["bounded"]:
                loss.backward()
                if number % options["window"] == 0:
                    torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
                    optimizer.step()  # expect: GA102 "never cleared"
            else:
                loss.backward()
                if number % options["window"] == 0:  # expect: GA402
                    optimizer.step()
                    optimizer.zero_grad()
