import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from train import train

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    for name in ("part-0", "part-1"):
        (Path(folder) / name).touch()
    train(SimpleNamespace(folder=folder, batch_size=8, epochs=2, accumulate=4))
