"""The table of recovered weights, each row really run with N = 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from galint.trace import Status, Watch, Window, watch  # noqa: E402

N = 4
Batches = list[tuple[Any, Any]]


def setting() -> tuple[Any, Any, Batches]:
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.Tanh(), torch.nn.Linear(32, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = [(torch.randn(8, 20), torch.randint(0, 5, (8,))) for _ in range(12)]
    return model, optimizer, data


def correct(model: Any, optimizer: Any, data: Batches) -> None:
    for i, (x, y) in enumerate(data):
        loss = F.cross_entropy(model(x), y) / N
        loss.backward()
        if (i + 1) % N == 0:
            optimizer.step()
            optimizer.zero_grad()


def zero_grad_inside(model: Any, optimizer: Any, data: Batches) -> None:
    for i, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) / N
        loss.backward()
        if (i + 1) % N == 0:
            optimizer.step()


def no_scaling(model: Any, optimizer: Any, data: Batches) -> None:
    for i, (x, y) in enumerate(data):
        F.cross_entropy(model(x), y).backward()
        if (i + 1) % N == 0:
            optimizer.step()
            optimizer.zero_grad()


def divided_twice(model: Any, optimizer: Any, data: Batches) -> None:
    for i, (x, y) in enumerate(data):
        loss = F.cross_entropy(model(x), y) / N
        loss = loss / N
        loss.backward()
        if (i + 1) % N == 0:
            optimizer.step()
            optimizer.zero_grad()


def modulo_from_zero(model: Any, optimizer: Any, data: Batches) -> None:
    for i, (x, y) in enumerate(data):
        (F.cross_entropy(model(x), y) / N).backward()
        if i % N == 0:
            optimizer.step()
            optimizer.zero_grad()


def never_zeroed(model: Any, optimizer: Any, data: Batches) -> None:
    for i, (x, y) in enumerate(data):
        (F.cross_entropy(model(x), y) / N).backward()
        if (i + 1) % N == 0:
            optimizer.step()


def leaking_tail(model: Any, optimizer: Any, data: Batches) -> None:
    samples = torch.utils.data.TensorDataset(torch.cat([x for x, _ in data])[:80], torch.cat([y for _, y in data])[:80])
    loader = torch.utils.data.DataLoader(samples, batch_size=8)  # 10 batches, windows of 6: 4 are left over
    for _ in range(2):
        for i, (x, y) in enumerate(loader):
            (F.cross_entropy(model(x), y) / 6).backward()
            if (i + 1) % 6 == 0:
                optimizer.step()
                optimizer.zero_grad()


def early_unscale(model: Any, optimizer: Any, data: Batches) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    for i, (x, y) in enumerate(data):
        scaler.scale(F.cross_entropy(model(x), y) / N).backward()
        if i % N == 0:
            scaler.unscale_(optimizer)
        if (i + 1) % N == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def unscale_and_update_inside(model: Any, optimizer: Any, data: Batches) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    for i, (x, y) in enumerate(data):
        scaler.scale(F.cross_entropy(model(x), y) / N).backward()
        scaler.unscale_(optimizer)
        if (i + 1) % N == 0:
            scaler.step(optimizer)
            optimizer.zero_grad()
        scaler.update()


def traced(loop: Callable[[Any, Any, Batches], None]) -> Watch:
    model, optimizer, data = setting()
    with watch(model, optimizer) as t:
        loop(model, optimizer, data)
    assert t.recorder.internal is None
    assert t.windows
    return t


def confirmed(t: Watch) -> set[str]:
    return {v.rule for v in t.verdicts if v.status is Status.CONFIRMED}


def line_of(loop: Callable[..., None], text: str) -> int:
    import inspect

    lines, start = inspect.getsourcelines(loop)
    return start + next(i for i, line in enumerate(lines) if text in line and "def " not in line)


def test_a_correct_loop_weighs_every_micro_batch_one() -> None:
    t = traced(correct)
    for window in t.windows:
        assert window.nw == pytest.approx([1, 1, 1, 1], abs=1e-5)
        assert window.ratio == pytest.approx(1, abs=1e-6)
        assert window.cosine == pytest.approx(1, abs=1e-9)
        assert window.relative_error is not None and window.relative_error < 1e-6
    assert confirmed(t) == set()
    assert {v.rule for v in t.verdicts if v.status is Status.REFUTED} >= {"GA101", "GA102", "GA201", "GA202", "GA401"}
    t.assert_large_batch(windows=3)


def check(window: Window, weights: list[float], ratio: tuple[float, float], cosine: tuple[float, float]) -> None:
    assert window.nw == pytest.approx(weights, abs=1e-4, rel=1e-2)
    assert window.ratio is not None and ratio[0] <= window.ratio <= ratio[1]
    assert window.cosine is not None and cosine[0] - 1e-9 <= window.cosine <= cosine[1] + 1e-9


ROWS = [
    (zero_grad_inside, [0, 0, 0, 1], (0.3, 0.7), (0.3, 0.8), "GA101", "zero_grad"),
    (no_scaling, [4, 4, 4, 4], (3.999, 4.001), (1, 1), "GA201", "backward"),
    (divided_twice, [0.25] * 4, (0.2499, 0.2501), (1, 1), "GA202", "backward"),
    (early_unscale, [1, 65536, 65536, 65536], (2e4, 9e4), (0.5, 1), "GA301", "unscale_"),
    (unscale_and_update_inside, [0, 0, 0, 1], (0.3, 0.7), (0.3, 0.8), "GA301", "unscale_"),
]


@pytest.mark.parametrize(
    ("loop", "weights", "ratio", "cosine", "rule", "at"), ROWS, ids=lambda v: getattr(v, "__name__", None)
)
def test_each_mistake_shows_its_weights(
    loop: Any, weights: list[float], ratio: tuple[float, float], cosine: tuple[float, float], rule: str, at: str
) -> None:
    t = traced(loop)
    assert len(t.windows) == 3
    for window in t.windows:
        check(window, weights, ratio, cosine)
    assert rule in confirmed(t)
    verdict = next(v for v in t.verdicts if v.rule == rule)
    assert verdict.filename == __file__
    assert verdict.line == line_of(loop, at)
    with pytest.raises(AssertionError, match=rule):
        t.assert_large_batch()


def test_a_scaler_updated_inside_the_window_is_named() -> None:
    assert {"GA304", "GA301"} <= confirmed(traced(unscale_and_update_inside))


def test_modulo_from_zero_gives_a_first_window_of_one() -> None:
    t = traced(modulo_from_zero)
    assert [w.n for w in t.windows if w.n] == [1, 4, 4]
    assert t.windows[0].nw == pytest.approx([0.25])
    assert t.windows[0].ratio == pytest.approx(0.25)
    assert confirmed(t) == {"GA401", "GA403"}  # the last three are left over


def test_a_leaking_tail_gives_a_window_of_ten() -> None:
    t = traced(leaking_tail)
    assert [w.n for w in t.windows if w.n] == [6, 10]
    assert t.windows[1].ratio == pytest.approx(10 / 6, abs=1e-3)
    assert confirmed(t) == {"GA402", "GA403"}  # the second epoch's tail is left over


def test_gradients_never_zeroed_carry_over() -> None:
    t = traced(never_zeroed)
    assert t.windows[0].carry is None
    for window in t.windows[1:]:
        assert window.carry == pytest.approx(1, abs=1e-4)
        assert window.ratio is not None and 1.1 < window.ratio < 1.9
    assert confirmed(t) == {"GA102"}
