import torch
from careful import counted, told
from torch import nn

torch.manual_seed(0)
network = nn.Linear(4, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
batches = [(torch.randn(8, 4), torch.randn(8, 2)) for _ in range(8)]
counted(network, batches, optimizer, 4)
told(network, batches, optimizer, 4)
