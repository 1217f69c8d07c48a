"""Every fixture runs under the tracer: bad ones show their fault in a number, fixed and `ok_` ones refute all rules."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from outliving import groups_outlive_models  # noqa: E402

from galint.trace import Status, Watch, watch  # noqa: E402
from galint.trace.judge import informs  # noqa: E402
from galint.trace.patching import Patches  # noqa: E402
from galint.trace.replay import Replayer  # noqa: E402

FIXTURES = Path(__file__).parent.parent / "fixtures"
RUNS = sorted(p for p in FIXTURES.glob("GA*/*.py"))

SHOWN_BY = {"GA103": "GA401", "GA203": "GA201", "GA204": "GA201", "GA602": "GA601"}
"""Rules that have the numbers of another: the line in the text makes the difference, and joining adds it."""

CONSISTENT_IS_ENOUGH = {"GA304", "GA402", "GA404", "GA603"}
"""A scale changes after thousands of steps, ends of epochs show only with a data loader, a scheduler's horizon only in
the text, and ranks diverge only where there are two."""

NOT_MEASURED = {"GA104", "GA105", "GA106", "GA107", "GA206", "GA405", "GA406", "GA502", "GA701"}
"""No number of a trace decides these in every fixture (an own EMA, memory, stale gradients, a skipped batch); steps in
backward are unsupported. These fixtures only have to run under the hooks."""


UNSEEN = {"penalty_of_the_weights.py"}
"""A term that only the weights enter has the same gradient in every micro-batch: no sample can tell its weight."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    if "init_process_group" not in request.node.callspec.params["path"].read_text(encoding="utf-8"):
        yield
        return
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_PORT", str(29_000 + os.getpid() % 2000))
    yield
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def traced(path: Path, replay: bool) -> tuple[Watch, Replayer]:
    """Run a script in this process under watch; errors that the script raises are part of what it shows."""
    torch.manual_seed(0)
    replayer, patches = Replayer(), Patches()
    argv, sys.argv = sys.argv, [str(path)]
    try:
        with groups_outlive_models(), contextlib.redirect_stdout(io.StringIO()), watch() as t:
            if replay:
                t.recorder.before_step = replayer.before_step
                replayer.install(patches, t.recorder)
            try:
                runpy.run_path(str(path), run_name="__main__")
            except ModuleNotFoundError as error:
                pytest.skip(str(error))
            except (RuntimeError, AssertionError, SystemExit):
                pass
    finally:
        patches.undo()
        sys.argv = argv
    assert t.recorder.internal is None
    return t, replayer


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", RUNS, ids=lambda p: f"{p.parent.name[:5]}-{p.name.removesuffix('.py')}")
def test_the_trace_agrees_with_the_marks(path: Path) -> None:
    fixed = path.name.endswith(".fixed.py")
    expected = set() if fixed else set(re.findall(r"# expect: (GA\d+)", path.read_text(encoding="utf-8")))
    t, replayer = traced(path, path.parent.name.startswith(("GA501", "GA502")))
    verdicts = t.verdicts + replayer.verdicts
    confirmed = {v.rule for v in verdicts if v.status is Status.CONFIRMED}
    consistent = {v.rule for v in verdicts if v.status is Status.CONSISTENT}
    for rule in expected - NOT_MEASURED if path.name not in UNSEEN else ():
        shown = confirmed | (consistent if rule in CONSISTENT_IS_ENOUGH else set())
        assert {rule, SHOWN_BY.get(rule, rule)} & shown, [(v.rule, v.status, v.reason) for v in verdicts]
    if expected & NOT_MEASURED:
        return
    excess = {r for r in confirmed if not informs(r)} - expected - {SHOWN_BY.get(r, r) for r in expected}
    assert not excess, [(v.rule, v.measured, v.reason) for v in verdicts if v.rule in excess]
