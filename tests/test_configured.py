"""The project's own names in the configuration change what galint understands."""

from __future__ import annotations

from galint.config import Config
from galint.engine import lint
from galint.source import Source

OWN_HELPER = """
import torch
from mylib import masked_loss

def train(model, loader, accum):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = masked_loss(model(x), y, accum)
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

SMALL_NORM = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=16)
for i, x in enumerate(loader):
    (model(x).mean() / 4).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""

OWN_OPTIMIZER = """
import torch
from mylib import Descent

def train(model, loader, accum):
    sweep = Descent(model.parameters())
    for i, x in enumerate(loader):
        sweep.zero_grad()
        (model(x).mean() / accum).backward()
        if (i + 1) % accum == 0:
            sweep.step()
"""


def codes(text: str, config: Config) -> set[str]:
    return {d.code for d in lint(Source("train.py", text), config).diagnostics}


def test_a_helper_given_n_may_divide_by_it_unless_the_configuration_says_otherwise() -> None:
    assert "GA201" not in codes(OWN_HELPER, Config())
    assert "GA201" in codes(OWN_HELPER, Config(loss_helpers=("mylib.masked_loss",)))
    assert "GA201" in codes(OWN_HELPER, Config(loss_helpers=("masked_loss",)))


def test_a_micro_batch_of_the_target_size_is_large_enough_for_batchnorm() -> None:
    assert "GA501" in codes(SMALL_NORM, Config())
    assert "GA501" in codes(SMALL_NORM, Config(target_micro_batch=32))
    assert "GA501" not in codes(SMALL_NORM, Config(target_micro_batch=16))


def test_configured_names_end_with_the_analysis() -> None:
    assert "GA201" in codes(OWN_HELPER, Config(loss_helpers=("mylib.masked_loss",)))
    assert "GA201" not in codes(OWN_HELPER, Config())


def test_an_own_optimizer_class_is_an_optimizer() -> None:
    assert "GA101" in codes(OWN_OPTIMIZER, Config(optimizers=("mylib.Descent",)))
