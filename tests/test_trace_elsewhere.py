"""The runtime half on a device that is not the CPU: no tensor of galint's own lies elsewhere than the model's."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from marks import FIXTURES, expects, fixtures

torch = pytest.importorskip("torch")

import gpu_check  # noqa: E402
from gpu_check import check_mistakes, check_replay, check_right_loops, check_samples_stay_on_the_device  # noqa: E402
from pretended import CUDA, pretended  # noqa: E402

from galint.config import Config  # noqa: E402
from galint.discovery import Target  # noqa: E402
from galint.trace import confirm_child, confirmation  # noqa: E402
from galint.trace.confirming import Job, Limits  # noqa: E402
from galint.trace.experiment.study import Settings, study  # noqa: E402

BAD = [p for p in fixtures() if p.parent.name != "not-ours" and expects(p.read_text(encoding="utf-8"))]

AVERAGED = {"averaged_model_in_inner_loop.py"}
"""torch's AveragedModel asks C++ for the device of its parameters, which the pretended device cannot answer."""


def test_the_pretended_device_minds_where_tensors_are() -> None:
    with pretended():
        x = torch.ones(3, device="cuda")
        assert x.device == CUDA and torch.zeros_like(x).device == CUDA and x.cpu().device.type == "cpu"
        assert (x + 1).tolist() == [2.0, 2.0, 2.0] and (x * torch.tensor(2.0)).device == CUDA
        with pytest.raises(RuntimeError, match="same device"):
            x + torch.ones(3)
        torch.cuda.set_sync_debug_mode("error")
        for wait in (lambda: x[0].item(), lambda: x.cpu(), lambda: bool(x[0] > 0)):
            with pytest.raises(RuntimeError, match="the host waits"):
                wait()
    assert torch.ones(3).cpu().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "check",
    [check_right_loops, check_mistakes, check_samples_stay_on_the_device, check_replay],
    ids=lambda check: check.__name__,
)
def test_checks_of_the_gpu_hold(check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_check, "resnet18", gpu_check.small)  # a minute on the CPU, for the same code
    with pretended():
        check()


def _said(name: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What `confirm` says of every bad fixture when its slices run in this process, on this device."""

    def perform(work: Sequence[Job], limits: Limits) -> str:
        for job in work:
            for how in ("slice", "replay"):
                if job.body.get(how) is not None:
                    result = confirm_child.run(job.body, how, torch.device(name), 0, 1)
                    job.results[how] = json.loads(json.dumps(result))
        return ""

    monkeypatch.setattr(confirmation, "perform", perform)
    targets = [Target(p, str(p), Config(), FIXTURES) for p in BAD if p.name not in AVERAGED]
    found = confirmation.confirm(targets, Limits("cpu", 60.0))
    return [
        (Path(o.finding.filename).name, o.finding.span.row, o.finding.code, o.status, o.how, o.measured)
        for o in found.outcomes
    ]


def test_slices_say_the_same_on_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    here = _said("cpu", monkeypatch)
    with pretended():
        there = _said("cuda", monkeypatch)
    assert len(here) > 100 and there == here


def test_the_experiment_says_the_same_on_another_device(tmp_path: Path) -> None:
    runs = ("16x4 batchnorm", "early-unscale", "clip-inside")
    results = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in the same order
    for device in ("cpu", "cuda"):
        settings = Settings(quick=True, steps=2, output=tmp_path / device, device=device, only=runs)
        if device == "cuda":
            with pretended():
                assert study(settings) == 0
        else:
            assert study(settings) == 0
        results[device] = json.loads((tmp_path / device / "results.json").read_text(encoding="utf-8"))["runs"]
    torch.set_num_threads(threads)
    for here, there in zip(results["cpu"], results["cuda"], strict=True):
        for key in ("final_loss", "accuracy", "distance", "norm_ratio"):
            assert there[key] == pytest.approx(here[key], rel=1e-5), key
        assert there["memory_kind"] == "peak allocated"
