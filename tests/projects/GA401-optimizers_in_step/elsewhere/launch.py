import torch
from torch import nn
from train import fit

torch.manual_seed(0)
text, image = nn.Linear(6, 3), nn.Linear(5, 3)
first, second = torch.optim.SGD(text.parameters(), lr=0.1), torch.optim.SGD(image.parameters(), lr=0.1)
fit(text, image, first, second, [(torch.randn(4, 6), torch.randn(4, 5)) for _ in range(9)], 4)
