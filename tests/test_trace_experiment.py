"""The study: what each run measures, the data it reads, the report it writes, and the plots of traces."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from galint.diagnostic import Diagnostic  # noqa: E402
from galint.errors import ConfigError  # noqa: E402
from galint.rule import Severity  # noqa: E402
from galint.source import Span  # noqa: E402
from galint.trace.experiment import study  # noqa: E402
from galint.trace.experiment.data import cifar10, synthetic  # noqa: E402
from galint.trace.experiment.loops import MISTAKES, Curve, Plan, plans, train  # noqa: E402
from galint.trace.experiment.nets import resnet18, small  # noqa: E402
from galint.trace.joining import join  # noqa: E402
from galint.trace.model import Micro, Status, Trace, Verdict, Window  # noqa: E402
from galint.trace.plotting import plot_trace  # noqa: E402


@pytest.fixture(scope="module")
def images() -> Any:
    return synthetic(256, 64, 0)


def run(images: Any, micro: int, norm: str, mistake: str | None = None, steps: int = 5) -> Curve:
    torch.manual_seed(0)
    plan = Plan("run", micro, norm, mistake)
    return train(plan, small(norm), images, torch.device("cpu"), steps, 0, 0.05, 1, lambda: None)


@pytest.mark.parametrize("micro", [16, 8])
def test_groupnorm_accumulates_to_the_large_batch_and_batchnorm_does_not(images: Any, micro: int) -> None:
    whole, split = run(images, 64, "groupnorm"), run(images, micro, "groupnorm")
    assert max(d for _, d in split.distances) < 1e-5
    assert split.losses == pytest.approx(whole.losses, rel=1e-3)
    assert min(d for _, d in run(images, micro, "batchnorm").distances) > 0.02


EXPECTED = {
    "zero-grad-inside": (0.3, 1.5),
    "never-zeroed": (0.5, 100),
    "unscaled": (2.99, 3.01),
    "divided-twice": (0.749, 0.751),
    "early-unscale": (100, 1e6),
    "clip-inside": (0.01, 1.5),
    "modulo-from-zero": (0.749, 0.751),
    "leaked-tail": (0.2, 0.3),
    "clip-scaled": (0, 1e-4),  # the gradient is right before the clip: what the clip does to it is the fault
    "scheduler-inside": (0, 1e-4),  # the gradient is right: the learning rate is not
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_has_its_distance(images: Any, mistake: str) -> None:
    curve = run(images, 16, "groupnorm", mistake)
    low, high = EXPECTED[mistake]
    assert low <= max(d for _, d in curve.distances) <= high
    assert len(curve.losses) == 5


def test_every_mistake_names_a_rule_and_every_plan_is_named_once() -> None:
    assert set(EXPECTED) == set(MISTAKES)
    assert all(re.fullmatch(r"GA\d{3}", rule) for rule, _ in MISTAKES.values())
    names = [plan.name for plan in plans()]
    assert len(names) == len(set(names)) == 9 + len(MISTAKES)


@pytest.mark.parametrize("norm", ["batchnorm", "groupnorm", "none"])
def test_resnet18_has_its_size_and_gradients_everywhere(norm: str) -> None:
    model = resnet18(norm)
    count = sum(p.numel() for p in model.parameters())
    assert 11_160_000 < count < 11_180_000
    out = model(torch.randn(2, 3, 32, 32))
    assert out.shape == (2, 10)
    out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_smaller_micro_batches_keep_less_memory(images: Any) -> None:
    memory = [run(images, micro, "groupnorm", steps=1).memory for micro in (64, 16, 8)]
    assert memory[0] > 3 * memory[1] > 4 * memory[2]


def cifar_batch(count: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (count, 3072), dtype=np.uint8), generator.integers(0, 10, count)


def test_cifar_is_read_in_both_forms(tmp_path: Path) -> None:
    pixels, labels = cifar_batch(60)
    for folder in ("cifar-10-batches-py", "cifar-10-batches-bin"):
        (tmp_path / folder).mkdir()
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        body = {b"data": pixels, b"labels": labels.tolist()}
        (tmp_path / "cifar-10-batches-py" / name).write_bytes(pickle.dumps(body))
        rows = np.concatenate([labels[:, None].astype(np.uint8), pixels], axis=1)
        (tmp_path / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(rows.tobytes())
    first, second = cifar10(tmp_path), cifar10(tmp_path / "cifar-10-batches-bin")
    assert first.train.shape == (120, 3, 32, 32) and first.test.shape == (60, 3, 32, 32)
    assert torch.equal(first.train, second.train) and torch.equal(first.test_labels, second.test_labels)
    assert first.train.abs().max() < 3


def experiment(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """`galint experiment ARGS` in `folder`."""
    code = (
        "import sys; from galint.trace.command import experiment;"
        "sys.exit(experiment.main(standalone_mode=False, args=sys.argv[1:]) or 0)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    return subprocess.run(
        [sys.executable, "-c", code, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=240
    )


def test_the_command_lists_its_runs(tmp_path: Path) -> None:
    listed = experiment(tmp_path, "--list").stdout.splitlines()
    assert {"64 batchnorm", "16x4 groupnorm", "8x8 none", "unscaled"} <= set(listed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_takes_cifar_and_a_seed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "cifar").mkdir()
    pixels, labels = cifar_batch(200)
    rows = np.concatenate([labels[:, None].astype(np.uint8), pixels], axis=1)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (tmp_path / "cifar" / name).write_bytes(rows.tobytes())
    args = ["--quick", "--steps", "2", "--only", "64 none", "--data", "cifar", "--output-format", "json"]
    runs = []
    for seed in ("3", "3", "4"):
        done = experiment(tmp_path, *args, "--seed", seed)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert "CIFAR" in json.dumps(found)
        runs.append(found["runs"][0]["curves"]["losses"])
    assert runs[0] == runs[1] != runs[2]


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    for name in ("data_batch_1", "test_batch"):
        (tmp_path / name).write_bytes(pickle.dumps({b"data": Evil()}))
    with pytest.raises(ConfigError, match="not part of an array"):
        cifar10(tmp_path)
    with pytest.raises(ConfigError, match="neither"):
        cifar10(tmp_path / "nothing")


ROWS = np.zeros((90, 3072), np.uint8)
LABELS = [index % 10 for index in range(90)]
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "Ran out of input"),
    "cut in the middle": (pickle.dumps({b"data": ROWS, b"labels": LABELS})[:9000], "truncated"),
    "a frame longer than memory": (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f.", "MemoryError"),
    "a memo that is not there": (b"j\xff\xff\xff\x7f.", "not found"),
    "an attribute of an array's class": (b"\x80\x04\x8c\x05numpy\x8c\x0bndarray.dot\x93.", "not part of an array"),
    "no dictionary": (pickle.dumps(5), "subscriptable"),
    "no labels": (pickle.dumps({b"data": ROWS}), "labels"),
    "fewer labels than images": (pickle.dumps({b"data": ROWS, b"labels": LABELS[1:]}), "90 images"),
    "hundred classes": (pickle.dumps({b"data": ROWS, b"labels": [*LABELS[1:], 99]}), "from 0 to 99"),
    "labels below zero": (pickle.dumps({b"data": ROWS, b"labels": [*LABELS[1:], -1]}), "from -1"),
    "numbers with a point": (pickle.dumps({b"data": ROWS.astype(float), b"labels": LABELS}), "float64"),
    "smaller images": (pickle.dumps({b"data": ROWS[:, :2352], b"labels": LABELS}), "2352 bytes"),
    "no image": (pickle.dumps({b"data": ROWS[:0], b"labels": []}), "no image"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_batch_is_one_clear_error(tmp_path: Path, name: str) -> None:
    body, why = BROKEN[name]
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": ROWS, b"labels": LABELS}))
    (tmp_path / "test_batch").write_bytes(body)
    with pytest.raises(ConfigError, match="test_batch: not a CIFAR-10 batch") as caught:
        cifar10(tmp_path)
    assert why in str(caught.value)


def test_too_few_images_for_a_batch_are_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    for name in ("data_batch_1", "test_batch"):
        (tmp_path / name).write_bytes(pickle.dumps({b"data": ROWS[:79], b"labels": LABELS[:79]}))
    with pytest.raises(ConfigError, match="79 training images, fewer than the 80"):
        cifar10(tmp_path)


def test_binary_batches_with_other_classes_or_cut_rows_are_errors(tmp_path: Path) -> None:
    rows = np.concatenate([np.full((90, 1), 10, np.uint8), ROWS], axis=1).tobytes()
    (tmp_path / "test_batch.bin").write_bytes(rows)
    for body, why in ((rows, "from 10 to 10"), (rows[:-1], "no multiple of 3073"), (b"", "no image")):
        (tmp_path / "data_batch_1.bin").write_bytes(body)
        with pytest.raises(ConfigError, match=why):
            cifar10(tmp_path)


@pytest.mark.slow
def test_the_command_writes_table_plots_and_one_self_contained_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    args = ["--quick", "--steps", "3", "--only", "16x4 groupnorm", "--only", "unscaled", "--output", "out"]
    done = experiment(tmp_path, *args, "--plot", "more.svg")
    assert done.returncode == 0, done.stderr
    assert "unscaled" in done.stdout and "GA201" in done.stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    by_name = {r["name"]: r for r in results["runs"]}
    assert by_name["unscaled"]["distance"] == pytest.approx(3, abs=0.01)
    assert by_name["16x4 groupnorm"]["distance"] < 1e-5
    assert (tmp_path / "out" / "experiment.png").read_bytes().startswith(b"\x89PNG")
    ElementTree.parse(tmp_path / "more.svg")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in page and "<table>" in page
    assert not re.search(r"<script|<link|<img|src=|@import", page)


def trace_of(weights: list[float]) -> Trace:
    micros = [Micro("train.py", 7, i, batch=i, factor=0.25, reduction="mean") for i in range(len(weights))]
    window = Window(0, "SGD <1>", "train.py", 9, micros=micros, w=weights, ratio=1.0, cosine=1.0, relative_error=0.0)
    return Trace(windows=[window])


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
@pytest.mark.parametrize("weights", [[0.25] * 4, [0.25, 16384.0, 16384.0, 16384.0], []])
def test_plots_of_traces(tmp_path: Path, suffix: str, weights: list[float]) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"plot.{suffix}"
    verdict = Verdict("GA101", Status.CONFIRMED, "train.py", 7, reason="<b>broken</b>")
    plot_trace(trace_of(weights), [verdict], path)
    assert path.stat().st_size > 2000
    if suffix == "html":
        assert "<b>broken" not in path.read_text() and "&lt;b&gt;broken" in path.read_text()


def diagnostic(code: str, row: int, filename: str = "train.py") -> Diagnostic:
    return Diagnostic(code, "a-name", Severity.ERROR, "a message", filename, Span(row, 4, row, 9))


def test_verdicts_join_the_findings_of_their_loop() -> None:
    lines = [("train.py", 7), ("train.py", 9)]
    verdicts = [
        Verdict("GA101", Status.CONFIRMED, "train.py", 7, lines=lines, optimizer="A"),
        Verdict("GA101", Status.REFUTED, "train.py", 90, lines=[("train.py", 90)], optimizer="B"),
        Verdict("GA201", Status.CONFIRMED, "train.py", 7, lines=lines),
        Verdict("GA203", Status.CONSISTENT, "train.py", 7, lines=lines),
    ]
    found = [diagnostic("GA101", 8), diagnostic("GA203", 8), diagnostic("GA304", 8), diagnostic("GA101", 8, "else.py")]
    joined, left = join(verdicts, found)
    first = next(v for v in joined if v.rule == "GA101" and v.finding)
    assert first.status is Status.CONFIRMED and first.optimizer == "A"
    dead = next(v for v in joined if v.rule == "GA203")
    assert dead.status is Status.CONFIRMED and dead.finding is not None and dead.finding["line"] == 8
    assert not any(v.rule == "GA201" for v in joined)  # the same numbers as the finding that explains them
    assert [(d.code, d.filename) for d in left] == [("GA304", "train.py"), ("GA101", "else.py")]


def test_an_interrupted_study_reports_the_runs_that_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def trained(plan: Plan, *rest: Any) -> Curve:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(plan.name)
        return train(plan, *rest)

    monkeypatch.setattr(study, "train", trained)
    settings = study.Settings(quick=True, steps=2, device="cpu", output=tmp_path / "out")
    assert study.study(settings) == 130
    body = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert [r["name"] for r in body["runs"]] == done == ["64 batchnorm", "16x4 batchnorm"]
    assert body["title"].endswith(f"interrupted after 2 of {len(plans())} runs")
    assert (tmp_path / "out" / "experiment.png").read_bytes().startswith(b"\x89PNG")
    assert "interrupted after 2" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_an_interrupt_before_the_first_run_is_done_ends_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(*_: Any) -> Curve:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "train", trained)
    with pytest.raises(KeyboardInterrupt):
        study.study(study.Settings(quick=True, steps=2, device="cpu", output=tmp_path / "out"))
