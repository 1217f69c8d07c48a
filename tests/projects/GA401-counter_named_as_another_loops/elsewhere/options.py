from types import SimpleNamespace

import torch

torch.manual_seed(0)
options = SimpleNamespace(
    model=torch.nn.Linear(6, 2),
    loader=[(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)],
    held=[(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(2)],
    epochs=3,
    every=4,
)
