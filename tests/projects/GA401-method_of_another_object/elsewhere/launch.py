from types import SimpleNamespace

import torch
from workspace import Workspace

torch.manual_seed(0)
Workspace(SimpleNamespace(lr=0.05, epochs=2, accumulate_every=4, eval_every=6)).run()
