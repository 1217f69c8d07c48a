"""N is an attribute of a configuration imported by name from a module that is not seen."""
# observe: params

import torch
from data import next_batch
from settings import cfg
from torch import nn

model = nn.Linear(6, 3)
optimizer = torch.optim.AdamW(model.parameters())
seen = 0
for _ in range(cfg.TRAIN.UPDATES * cfg.TRAIN.GRAD_ACCUM):
    x, y = next_batch()
    loss = nn.functional.cross_entropy(model(x), y) / cfg.TRAIN.GRAD_ACCUM
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.05)  # expect: GA303
    seen += 1
    if seen % cfg.TRAIN.GRAD_ACCUM == 0:
        optimizer.step()
        optimizer.zero_grad()
