from types import SimpleNamespace

import torch

options = SimpleNamespace(accum=4, epochs=2)
inputs = [torch.randn(8, 8) for _ in range(8)]
batches = [{"x": x, "y": x[:, :3].sin()} for x in inputs]
