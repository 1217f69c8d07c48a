import torch
from contest import by_call, by_context

torch.manual_seed(0)
by_call([torch.randn(8, 6) + 1 for _ in range(16)], 4)
by_context([torch.randn(8, 6) + 1 for _ in range(16)], 4)
