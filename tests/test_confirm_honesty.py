"""A slice of the text can refute the linter; a replay of the linter's own reading can neither prove nor refute it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

from galint.analysis import Analysis, analyse
from galint.config import Config
from galint.diagnosing import diagnose
from galint.diagnostic import Diagnostic
from galint.source import Source
from galint.syntax import parse
from galint.trace.concluding import Outcome, conclude, exit_code
from galint.trace.confirming import Job, Limits, job_of, jobs, perform
from galint.trace.model import Status

LOOP = """
import torch
from torch import nn
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler()
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
loader = torch.utils.data.DataLoader(torch.randn(96, 4), batch_size=8)
N = 4
for i, x in enumerate(loader):
    model.require_backward_grad_sync = (i + 1) % N == 0
    loss = nn.functional.mse_loss(model(x), x[:, :2]) / N
    scaler.scale(loss).backward()
    if (i + 1) % N == 0:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scheduler.step()
"""

# With a scaler, what is left over from the step before is divided by the loss scale once more, and so is nearly nothing.
PLAIN = (
    LOOP.replace("scaler.scale(loss)", "loss")
    .replace("        scaler.unscale_(optimizer)\n", "")
    .replace("scaler.step(optimizer)\n        scaler.update()", "optimizer.step()")
)

MISTAKES: dict[str, tuple[str, str]] = {
    "GA101": ("scaler.scale(loss).backward()", "optimizer.zero_grad(); scaler.scale(loss).backward()"),
    "GA102": ("        optimizer.zero_grad()\n", "\n"),
    "GA201": ("x[:, :2]) / N", "x[:, :2])"),
    "GA202": ("x[:, :2]) / N", "x[:, :2]) / N / N"),
    "GA302": ("        scaler.unscale_(optimizer)\n", "\n"),
    "GA401": ("    if (i + 1) % N == 0:", "    if i % N == 0:"),
    "GA601": ("= (i + 1) % N == 0\n", "= True\n"),
}
"""What the linter shall wrongly believe to stand there."""


def _analysis(text: str, path: Path) -> tuple[Analysis, list[Diagnostic]]:
    path.write_text(text, encoding="utf-8")
    source = Source.read(path)
    analysis = analyse(parse(source.text), Config(), None, path)
    assert analysis is not None
    return analysis, diagnose(analysis, source)


@pytest.fixture(scope="module")
def misread(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Job], Callable[[Job], list[Outcome]]]:
    """Jobs whose findings and events are those of a wrong loop, while the slice is the right loop's."""
    folder = tmp_path_factory.mktemp("misread")
    made: dict[str, Job] = {}
    for code, (old, new) in MISTAKES.items():
        text = PLAIN if code == "GA102" else LOOP
        assert old in text
        right, found = _analysis(text, folder / "right.py")
        assert {d.code for d in found} <= {"GA403"}  # a loader of unknown length may leave a tail
        entry = right.exploration.entries[0]
        slice_of_the_right = job_of(right, entry, entry.base, 0).body["slice"]
        assert slice_of_the_right is not None
        analysis, found = _analysis(text.replace(old, new), folder / f"{code}.py")
        chosen = [d for d in found if d.code == code]
        assert chosen, (code, [d.code for d in found])
        work, left = jobs(analysis, chosen[:1], len(made))
        assert not left and len(work) == 1
        made[code] = work[0]
        work[0].body["slice"] = slice_of_the_right
    assert not perform(list(made.values()), Limits("cpu", 120.0))
    return made, lambda job: conclude(job, lambda row: (job.findings[0].filename, row))


@pytest.mark.parametrize("code", MISTAKES)
def test_the_text_refutes_a_misreading(code: str, misread: tuple[dict[str, Job], Callable[..., list[Outcome]]]) -> None:
    made, concluded = misread
    (out,) = concluded(made[code])
    assert (out.how, out.status) == ("slice", Status.REFUTED), (out.status, out.reason, out.measured, out.notes)
    assert out.windows and all(w.nw == pytest.approx([1, 1, 1, 1], abs=1e-3) for w in out.windows if w.measured)
    assert any("the linter's own reading of the loop, replayed in torch, shows it" in note for note in out.notes)
    assert exit_code([out]) == 0


@pytest.mark.parametrize("code", MISTAKES)
def test_a_replay_alone_is_never_more_than_consistent(
    code: str, misread: tuple[dict[str, Job], Callable[..., list[Outcome]]]
) -> None:
    made, concluded = misread
    job = made[code]
    kept = job.results.pop("slice")
    try:
        (out,) = concluded(job)
    finally:
        job.results["slice"] = kept
    assert (out.how, out.status) == ("replay", Status.CONSISTENT), (out.status, out.reason, out.notes)
    assert any("a replay of the linter's own reading of the loop" in note for note in out.notes)
    assert exit_code([out]) == 0


@pytest.mark.parametrize(("status", "becomes"), [("GA401", Status.CONSISTENT)])
def test_a_guessed_guard_proves_nothing(
    status: str, becomes: Status, misread: tuple[dict[str, Job], Callable[..., list[Outcome]]]
) -> None:
    made, concluded = misread
    job = made[status]
    kept = job.results["slice"]
    job.results["slice"] = kept | {"guessed": ["ready"], "undecided": ["ready"]}
    try:
        (out,) = concluded(job)
    finally:
        job.results["slice"] = kept
    assert out.status is Status.INCONCLUSIVE, (out.status, out.reason)
    assert any("guess `ready`" in note for note in out.notes)
    job.results["slice"] = job.results["replay"] | {"guessed": ["ready"]}
    try:
        (out,) = concluded(job)
    finally:
        job.results["slice"] = kept
    assert out.status is becomes
