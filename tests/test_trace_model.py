"""Trace data: JSON lines survive the round trip and torn files, and verdicts need no torch."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from galint.trace.judge import exit_code, judge
from galint.trace.measures import agrees
from galint.trace.model import (
    Event,
    Header,
    Micro,
    Status,
    Trace,
    TraceError,
    Verdict,
    Window,
    from_json,
    read,
    read_lines,
    to_json,
    to_line,
)


def window(index: int, weights: list[float], **more: object) -> Window:
    n = len(weights)
    micros = [
        Micro("train.py", 7, seq=index * 10 + i, batch=i, reduction="mean", factor=1 / n, items=8.0) for i in range(n)
    ]
    good = all(abs(n * w - 1) < 1e-6 for w in weights)
    answer = Window(index, "SGD", "train.py", 9, micros=micros, w=weights, carry=0.0 if index else None)
    answer.relative_error = answer.items_error = 0.0 if good else 1.0
    answer.ratio = sum(weights)
    for name, value in more.items():
        setattr(answer, name, value)
    return answer


def test_records_survive_the_round_trip() -> None:
    micro = Micro("a.py", 3, 1, cleared=("a.py", 2), items=float("inf"), factor=0.25)
    records = [
        Header(argv=["train.py", "--lr", "1"], torch="2.13"),
        Event(1, "backward", "a.py", 3, "train", 0, {"loss": "cross_entropy"}),
        Window(0, "AdamW", "a.py", 9, micros=[micro], w=[0.25], ratio=math.pi, dropped_at=("a.py", 8)),
        Verdict("GA101", Status.CONFIRMED, "a.py", 2, windows=[0], lines=[("a.py", 2), ("a.py", 3)]),
    ]
    assert list(read_lines(to_line(r) for r in records)) == records


def test_not_a_number_is_valid_json() -> None:
    text = to_line(Window(0, "SGD", "a.py", 1, ratio=float("nan"), w=[float("inf")]))
    assert "NaN" not in text and "Infinity" not in text
    back = next(iter(read_lines([text])))
    assert isinstance(back, Window) and math.isnan(back.ratio or 0) and back.w == [math.inf]


def test_a_torn_last_line_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(to_line(Header()) + "\n" + to_line(window(0, [0.5, 0.5])) + "\n" + '{"type": "window", "ind')
    trace = read(path)
    assert len(trace.windows) == 1
    assert trace.failed


def test_unreadable_traces_are_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot read"):
        read(tmp_path / "missing.jsonl")
    with pytest.raises(TraceError, match="not a galint trace"):
        from_json({"type": "window"})


def test_unknown_fields_of_a_newer_version_are_left_out() -> None:
    body = to_json(window(0, [1.0])) | {"later": 1}
    assert isinstance(from_json(body), Window)


def test_the_two_references_both_agree() -> None:
    by_items = window(0, [0.2, 0.8], relative_error=0.5, items_error=1e-8)
    assert agrees(by_items)
    assert not agrees(window(0, [0.2, 0.8], relative_error=0.5, items_error=0.4))


def test_a_tail_window_informs_and_does_not_fail() -> None:
    tail = window(2, [0.25, 0.25], tail=True)
    trace = Trace(windows=[window(0, [0.25] * 4), window(1, [0.25] * 4), tail], end={"how": "finished"})
    verdicts = judge(trace)
    assert [v.rule for v in verdicts if v.status is Status.CONFIRMED] == ["GA205"]
    assert exit_code(trace, verdicts) == 0


def test_exit_codes() -> None:
    good, bad = [window(0, [0.25] * 4), window(1, [0.25] * 4)], [window(0, [1.0] * 4), window(1, [1.0] * 4)]
    for windows, how, code in (
        (good, "stopped", 0),
        (bad, "stopped", 1),
        (bad, "failed", 1),
        (good, "failed", 3),
        ([], "failed", 3),
        ([], "finished", 4),
    ):
        trace = Trace(windows=windows, end={"how": how})
        assert exit_code(trace, judge(trace)) == code


def test_a_sum_without_a_known_scale_is_inconclusive() -> None:
    unknown = window(0, [0.25] * 4)
    for micro in unknown.micros:
        micro.factor = None
    statuses = {v.rule: v.status for v in judge(Trace(windows=[unknown]))}
    assert statuses["GA201"] is Status.INCONCLUSIVE
    assert statuses["GA101"] is Status.REFUTED


def test_weights_that_clips_have_changed_do_not_refute_a_missing_division() -> None:
    clips = [
        {"file": "train.py", "line": 8, "after": k, "how": "norm", "limit": 1.0, "scale": 1.0, "norm": 2.0}
        for k in (1, 2, 3, 4)
    ]
    halved = [window(i, [0.5] * 4, clips=clips) for i in range(2)]
    assert {v.rule: v.status for v in judge(Trace(windows=halved))}["GA201"] is Status.INCONCLUSIVE
    right = [window(i, [0.25] * 4, clips=clips[3:]) for i in range(2)]
    assert {v.rule: v.status for v in judge(Trace(windows=right))}["GA201"] is Status.REFUTED


def test_a_replay_that_could_not_be_done_decides_nothing() -> None:
    trace = Trace(windows=[window(0, [0.25] * 4)], end={"how": "stopped", "replay": {"status": "not replayable"}})
    assert exit_code(trace, judge(trace)) == 4


@pytest.mark.parametrize(
    "why", ["LBFGS evaluates the loss several times in one step", "the optimizer steps inside backward"]
)
def test_an_optimizer_that_runs_backward_itself_has_no_cadence(why: str) -> None:
    windows = [window(i, [0.25] * 4, w=[], unsupported=why) for i in range(3)]
    assert {v.rule for v in judge(Trace(windows=windows))} <= {"GA000", "GA105"}


def test_reading_a_trace_does_not_import_torch() -> None:
    code = "import sys, galint.trace, galint.trace.judge, galint.trace.model; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
