import torch
import torch.nn.functional as F

Batch = tuple[torch.Tensor, torch.Tensor]
