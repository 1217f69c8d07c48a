import torch
from epoch import main
from torch import nn

torch.manual_seed(0)
network = nn.Linear(6, 2)
batches = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(9)]
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
main(network, optimizer, batches, ["--length", "8"])
