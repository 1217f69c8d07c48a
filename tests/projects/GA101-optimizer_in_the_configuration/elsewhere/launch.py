import torch
from train import Config, train

torch.manual_seed(0)
model = torch.nn.Linear(6, 4).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
train(Config(model, optimizer), [torch.randn(5, 6, dtype=torch.float64) for _ in range(12)])
