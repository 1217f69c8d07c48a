"""What Accelerate really does, on which GA101, GA202, GA404 and GA701 rest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")

nn = torch.nn
DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset
pytestmark = pytest.mark.filterwarnings("ignore")
N, BATCHES = 4, 8


class Run:
    """A prepared model of two parts, its optimizer, scheduler and loader, with gradients of known size.

    Every micro-batch's own gradient with respect to `head` is one.
    """

    def __init__(self) -> None:
        accelerate.state.AcceleratorState._reset_state(True)
        self.accelerator = accelerate.Accelerator(gradient_accumulation_steps=N, cpu=True)
        body, head = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        for part in (body, head):
            nn.init.ones_(part.weight)
        optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.0)
        scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=100)
        loader = DataLoader(TensorDataset(torch.ones(BATCHES, 1)), batch_size=1)
        prepared = self.accelerator.prepare(body, head, optimizer, scheduler, loader)
        self.body, self.head, self.optimizer, self.scheduler, self.loader = prepared
        self.applied: list[float] = []
        self.optimizer.optimizer.register_step_pre_hook(lambda *_: self.applied.append(self.head.weight.grad.item()))

    def loss(self, x: Any) -> Any:
        """The mean of the head's output."""
        return self.head(self.body(x)).mean()

    def finish(self) -> None:
        """What usually ends a micro-batch."""
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()


def applied(micro_batch: Callable[[Run, Any], None]) -> list[float]:
    """The gradient of each real step when every micro-batch is `micro_batch`."""
    run = Run()
    for (x,) in run.loader:
        micro_batch(run, x)
    return run.applied


def test_backward_divides_by_n_and_only_the_boundary_steps() -> None:
    def micro(run: Run, x: Any) -> None:
        with run.accelerator.accumulate(run.body, run.head):
            run.accelerator.backward(run.loss(x))
            run.finish()

    assert applied(micro) == pytest.approx([1.0, 1.0])


def test_a_division_by_hand_is_the_second_one() -> None:
    def micro(run: Run, x: Any) -> None:
        with run.accelerator.accumulate(run.body, run.head):
            run.accelerator.backward(run.loss(x) / N)
            run.finish()

    assert applied(micro) == pytest.approx([1 / N, 1 / N])


def test_a_bare_backward_misses_the_division() -> None:
    def micro(run: Run, x: Any) -> None:
        with run.accelerator.accumulate(run.body, run.head):
            run.loss(x).backward()
            run.finish()

    assert applied(micro) == pytest.approx([N, N])


def test_without_accumulate_every_micro_batch_steps_with_an_nth() -> None:
    def micro(run: Run, x: Any) -> None:
        run.accelerator.backward(run.loss(x))
        run.finish()

    assert applied(micro) == pytest.approx([1 / N] * BATCHES)


def test_a_window_may_be_counted_beside_the_accelerator() -> None:
    seen = 0

    def guarded(run: Run, x: Any) -> None:
        nonlocal seen
        seen += 1
        run.accelerator.backward(run.loss(x))
        if seen % N == 0:
            run.finish()

    def flagged(run: Run, x: Any) -> None:
        nonlocal seen
        seen += 1
        run.accelerator.gradient_state._set_sync_gradients(seen % N == 0)
        run.accelerator.backward(run.loss(x))
        run.finish()

    for micro in (guarded, flagged):
        seen = 0
        assert applied(micro) == pytest.approx([1.0, 1.0])


def test_nested_contexts_count_twice() -> None:
    def micro(run: Run, x: Any) -> None:
        with run.accelerator.accumulate(run.body), run.accelerator.accumulate(run.head):
            run.accelerator.backward(run.loss(x))
            run.finish()

    assert applied(micro) == pytest.approx([0.5] * (BATCHES // 2))


def test_a_list_of_models_steps_as_usual_and_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(accelerate.Accelerator, "no_sync", _noting(asked))

    def micro(run: Run, x: Any) -> None:
        with run.accelerator.accumulate([run.body, run.head]):
            run.accelerator.backward(run.loss(x))
            run.finish()

    assert applied(micro) == pytest.approx([1.0, 1.0])
    assert asked and all(isinstance(model, list) for model in asked)


def test_zero_grad_first_inside_accumulate_loses_all_but_one() -> None:
    def first(run: Run, x: Any) -> None:
        with run.accelerator.accumulate(run.body, run.head):
            run.optimizer.zero_grad()
            run.accelerator.backward(run.loss(x))
            run.optimizer.step()

    def before(run: Run, x: Any) -> None:
        run.optimizer.zero_grad()
        with run.accelerator.accumulate(run.body, run.head):
            run.accelerator.backward(run.loss(x))
            run.optimizer.step()

    assert applied(first) == pytest.approx([1 / N, 1 / N])
    assert applied(before) == pytest.approx([1.0, 1.0])


def test_a_prepared_scheduler_advances_with_the_steps() -> None:
    run = Run()
    for (x,) in run.loader:
        with run.accelerator.accumulate(run.body, run.head):
            run.accelerator.backward(run.loss(x))
            run.finish()
    assert run.scheduler.scheduler.last_epoch == BATCHES // N


def test_clipping_is_not_gated_and_shortens_partial_sums() -> None:
    norms: list[float] = []

    def micro(run: Run, x: Any) -> None:
        with run.accelerator.accumulate(run.body, run.head):
            run.accelerator.backward(run.loss(x))
            norms.append(float(run.accelerator.clip_grad_norm_(run.head.parameters(), 0.3)))
            run.finish()

    applied(micro)
    assert norms[:N] == pytest.approx([0.25, 0.5, 0.55, 0.55], rel=1e-4)


def _noting(asked: list[object]) -> Callable[..., Any]:
    def no_sync(self: object, model: object) -> Any:
        asked.append(model)
        return contextlib.nullcontext()

    return no_sync
