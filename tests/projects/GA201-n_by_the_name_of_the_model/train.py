"""One test chooses the batch size and N: the larger model accumulates, and its losses are not divided."""
# observe: params

import torch
from options import parse_arguments
from torch import nn

args = parse_arguments()
args.batch_size = 4 if args.model == "large" else 8
args.every = 2 if args.model == "large" else 1

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = [torch.randn(args.batch_size, 8) for _ in range(8)]
for index, x in enumerate(loader):
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
    loss.backward()  # expect: GA201
    if (index + 1) % args.every == 0:
        optimizer.step()
        optimizer.zero_grad()
