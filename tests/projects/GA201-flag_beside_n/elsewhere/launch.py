from queue import Queue

import torch
from torch import nn
from train import fit

torch.manual_seed(0)
net = nn.Linear(6, 3)
queue = Queue()
for _ in range(8):
    queue.put((torch.randn(4, 6), torch.randn(4, 3)))
queue.put(None)
fit(net, torch.optim.SGD(net.parameters(), lr=0.1), queue, {"accumulation": 4})
