"""Torch judges every fixture and every page block: bad ones leave the large batch, good ones agree with it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest
from marks import FIXTURES, PAGES, Block, blocks, events, expects, fixtures, golden, note, pages

pytest.importorskip("torch")

from observation import Observation
from observe import observe

DIVERGES = 1e-3
AGREES = 1e-12
_ACCELERATE = find_spec("accelerate") is not None
_UNSUPPORTED = ("timm.utils", "deepspeed", "lightning", "transformers", "FullyShardedDataParallel", "fully_shard")
_UNSUPPORTED += () if _ACCELERATE else ("accelerate",)

SCRIPTS = [
    p
    for p in fixtures()
    if p.parent.name != "not-ours" and not any(word in p.read_text(encoding="utf-8") for word in _UNSUPPORTED)
]
BAD = [p for p in SCRIPTS if expects(p.read_text(encoding="utf-8"))]
GOOD = [p for p in SCRIPTS if p not in BAD]
REPAIRED = [p for p in BAD if golden(p)]
RUNS = [p for p in SCRIPTS if events(p.read_text(encoding="utf-8"))]
RULE_PAGES = [page for page in pages() if page.name >= "GA1"]
BLOCKS = [b for page in RULE_PAGES for b in blocks(page) if not any(word in b.text for word in _UNSUPPORTED)]


SHOWN = {"GA301": "raises", "GA304": "raises", "GA601": "allreduces", "GA602": "allreduces", "GA603": "ranks"}
SHOWN |= {"GA404": "rate", "GA406": "rate", "GA206": "tokens", "GA106": "none", "GA405": "none", "GA502": "none"}
"""What the example of a page shows, where it is not a gradient that differs from the large batch's."""


TRAFFIC = {"ok_accelerator_without_n.py"}
"""Accumulates by hand under Accelerate: the gradient is right, and where there are several ranks it is sent too often."""


@pytest.fixture(autouse=True)
def _accelerate_as_with_several_ranks() -> Iterator[None]:
    """Accelerate leaves `no_sync` out where there is one rank only; here it is to say what it does with several."""
    if not _ACCELERATE:
        yield
        return
    import accelerate

    several = property(lambda self: True)
    with (
        mock.patch.object(accelerate.state.PartialState, "use_distributed", several),
        mock.patch.object(accelerate.Accelerator, "use_distributed", several),
    ):
        yield


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _agrees(seen: Observation, traffic: bool = True) -> None:
    """The run really stepped, and each step applied the gradient of the large batch and nothing else."""
    if seen.raised:
        raise seen.raised
    assert seen.steps, "no optimizer step was made"
    assert seen.error < AGREES
    assert seen.unapplied == 0, "micro-batches were computed and never applied"
    assert seen.extra_allreduces == 0 or not traffic
    assert seen.unsynchronised == 0


def _shows(seen: Observation, observable: str) -> None:
    """The run shows the mistake where its mark says."""
    if observable == "raises":
        assert isinstance(seen.raised, RuntimeError | AssertionError)
        return
    if seen.raised:
        raise seen.raised
    match observable:
        case "params":
            assert seen.error > DIVERGES or seen.unapplied > 0
        case "allreduces":
            assert seen.error < AGREES, "only the traffic should differ"
            assert seen.steps
            assert seen.extra_allreduces > 0
        case "ranks":
            assert seen.error < AGREES, "with one rank the gradient is right"
            assert seen.unsynchronised > 0
        case "steps":
            assert seen.steps and all(step.micros == 1 for step in seen.steps), "each micro-batch has its own step"
        case "idle":
            assert seen.steps and all(step.micros == 0 for step in seen.steps), "no step applies anything"
        case "none" | "rate" | "tokens":
            assert seen.error < AGREES
        case _:
            pytest.fail(f"unknown mark observe: {observable}")


@pytest.mark.parametrize("script", BAD, ids=_name)
def test_bad_fixture_shows_its_mistake(script: Path, tmp_path: Path) -> None:
    observable = note(script.read_text(encoding="utf-8"), "observe")
    assert observable, "a bad fixture says what the runtime must see"
    _shows(observe(script, tmp_path), observable)


@pytest.mark.parametrize("script", GOOD, ids=_name)
def test_good_fixture_agrees_with_large_batch(script: Path, tmp_path: Path) -> None:
    seen = observe(script, tmp_path)
    _agrees(seen, script.name not in TRAFFIC)
    if script.parent.name.startswith("GA501"):
        assert all(step.replayed for step in seen.steps), "BatchNorm can only be judged by a replay"


@pytest.mark.parametrize("script", REPAIRED, ids=_name)
def test_repair_moves_the_parameters_of_a_wrong_gradient(script: Path, tmp_path: Path) -> None:
    observable = note(script.read_text(encoding="utf-8"), "observe")
    if observable == "raises":
        pytest.skip("the bad run ends early")
    fixed = golden(script)
    assert fixed is not None
    apart = observe(script, tmp_path).distance(observe(fixed, tmp_path))
    if observable in {"params", "rate", "steps", "idle", "tokens"}:
        assert apart > DIVERGES
    else:
        assert apart < AGREES


@pytest.mark.parametrize("script", RUNS, ids=_name)
def test_event_marks_are_what_torch_does(script: Path, tmp_path: Path) -> None:
    seen = observe(script, tmp_path)
    for event in events(script.read_text(encoding="utf-8")):
        if event.kind == "backward":
            factors = [factor for line, factor in seen.factors if line == event.row]
            assert factors
            assert factors == pytest.approx([float(event.coefficient)] * len(factors))
        else:
            first = next(step for step in seen.steps if step.line == event.row)
            assert first.weights == pytest.approx([float(w) for w in event.weights])


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.id)
def test_page_block_does_what_its_page_says(block: Block, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    script.write_text(block.text, encoding="utf-8")
    seen = observe(script, tmp_path)
    if expects(block.text):
        default = SHOWN.get(block.page.name[:5], "params")
        _shows(seen, note(block.text, "observe") or default)
    else:
        _agrees(seen)


def test_no_repair_is_left_unwatched() -> None:
    """Each bad fixture with a golden runs before and after, whatever it imports."""
    repairs = [p for p in fixtures() if golden(p)]
    if _ACCELERATE:
        assert set(repairs) == set(REPAIRED)
    assert {golden(p) for p in REPAIRED} <= set(GOOD)


def test_the_folders_are_found() -> None:
    assert FIXTURES.is_dir() and PAGES.is_dir()
    assert len(BAD) >= 50 and len(GOOD) >= 100 and len(RUNS) >= 12
