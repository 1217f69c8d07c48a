import torch.nn.functional as F
from torch import nn, optim

Batch = tuple[nn.Parameter, nn.Parameter]
