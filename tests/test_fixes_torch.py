"""Torch judges fixes of loops with several faults: before they leave the large batch, after they agree with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from galint.config import Config
from galint.fixes import allowed, fix_source
from galint.source import Source

pytest.importorskip("torch")

from tests.observe import observe

HEAD = """import torch
from torch import nn

ACCUM = 4
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu")
batches = [torch.randn(8, 6) for _ in range(ACCUM * 5)]
"""
LOOPS = {
    "cleared, unscaled, early": """
for i, x in enumerate(batches):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
    loss.backward()
    if i % ACCUM == 0:
        optimizer.step()
""",
    "late division, early unscale": """
for i, x in enumerate(batches):
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
    scaler.scale(loss).backward()
    loss = loss / ACCUM
    if (i + 1) % ACCUM == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1e6)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
""",
    "counted with the step, never cleared": """
updates = 0
for x in batches:
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True)) / ACCUM
    loss.backward()
    if (updates + 1) % ACCUM == 0:
        optimizer.step()
        optimizer.zero_grad()
        updates += 1
""",
}


@pytest.mark.parametrize("name", LOOPS)
def test_fixed_loop_agrees_with_the_large_batch(name: str, tmp_path: Path) -> None:
    text = HEAD + LOOPS[name]
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    fixed = fix_source(Source("train.py", text), Config(), None, allowed(True))
    assert fixed.applied
    assert not [d for d in fixed.report.diagnostics if d.code >= "GA1"]
    before.write_text(text)
    after.write_text(fixed.text)
    wrong, right = observe(before, tmp_path), observe(after, tmp_path)
    assert wrong.raised or not wrong.steps or wrong.error > 1e-3 or wrong.unapplied
    assert not right.raised
    assert len(right.steps) == 5
    assert right.error < 1e-12
    assert right.unapplied == 0
