"""What a trace tells of a loss: events alone take a shorter way through the graph and must say the same."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from galint.trace import watch  # noqa: E402
from galint.trace.losses import glance, read_loss  # noqa: E402

X, Y = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
HALF, ROW = torch.tensor(0.5), torch.tensor([0.5])
KNOWN: dict[str, tuple[Any, tuple[str, str, int]]] = {
    "as it is": (lambda z: F.cross_entropy(z, Y), ("cross_entropy", "mean", 6)),
    "a sum": (lambda z: F.cross_entropy(z, Y, reduction="sum"), ("cross_entropy", "sum", 6)),
    "divided by N": (lambda z: F.cross_entropy(z, Y) / 4, ("cross_entropy", "mean", 6)),
    "number first": (lambda z: 0.25 * F.mse_loss(z, X), ("mse_loss", "mean", 6)),
    "by a tensor": (lambda z: HALF * F.mse_loss(z, X) / HALF, ("mse_loss", "mean", 6)),
    "a module": (lambda z: nn.SmoothL1Loss()(z, X) / 2, ("smooth_l1_loss", "mean", 6)),
}
OTHER: dict[str, Any] = {
    "two terms": lambda z: F.cross_entropy(z, Y) + 0.1 * F.mse_loss(z, X),
    "a product of losses": lambda z: F.cross_entropy(z, Y) * F.mse_loss(z, X),
    "divided by the loss": lambda z: 1.0 / F.cross_entropy(z, Y),
    "a tensor divided by the loss": lambda z: HALF / F.cross_entropy(z, Y),
    "the logarithm": lambda z: F.cross_entropy(z, Y).log(),
    "own mean": lambda z: (z - X).pow(2).mean() / 4,
    "one element, one dimension": lambda z: F.cross_entropy(z, Y) * ROW,
    "no graph": lambda z: F.cross_entropy(z.detach(), Y),
}


@pytest.mark.parametrize("case", KNOWN)
def test_the_short_way_sees_a_scaled_loss(case: str) -> None:
    make, expected = KNOWN[case]
    with watch(nn.Linear(3, 3)):  # loss functions leave their tags only while a trace runs
        loss = make(X.clone().requires_grad_())
    assert glance(loss) == expected
    walked = read_loss(loss)
    assert (walked.name, walked.reduction, walked.batch_size) == expected


@pytest.mark.parametrize("case", OTHER)
def test_the_short_way_leaves_the_rest_to_the_walk(case: str) -> None:
    with watch(nn.Linear(3, 3)):
        loss = OTHER[case](X.clone().requires_grad_())
    assert glance(loss) is None


@pytest.mark.parametrize(("n", "factors"), [(4, []), (2, [0.5])])
def test_a_mean_of_two_terms_is_no_accumulation_unless_n_is_two(n: int, factors: list[float]) -> None:
    z = X.clone().requires_grad_()
    mean = read_loss((F.cross_entropy(z, Y) + F.mse_loss(z, X)) / 2)
    assert mean.addends == 2
    assert [f for f in mean.accumulating(n, {n, 2}) if f != 1] == factors
    own = read_loss(F.cross_entropy(z, Y) / 2)
    assert own.accumulating(n, {n}) == [0.5]  # a loop that divides by the wrong N


def test_what_autograd_backward_accepts_is_left_to_the_walk() -> None:
    assert glance([X]) is None
    assert glance(None) is None


@pytest.mark.parametrize("scaled", [False, True])
def test_events_alone_are_the_events_of_a_sampled_trace(scaled: bool) -> None:
    def run(sampling: bool) -> list[tuple[Any, ...]]:
        torch.manual_seed(0)
        model = nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, enabled=scaled)
        with watch(model, optimizer, sampling=sampling) as t:
            for _ in range(2):
                for _ in range(2):
                    scaler.scale(F.cross_entropy(model(X), Y) / 2).backward()
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
            (F.cross_entropy(model(X), Y) + model(X).pow(2).mean()).backward()
        return [(e.kind, e.line, e.data) for e in t.events]

    alone = run(False)
    assert alone == run(True)
    assert [d["loss"] for k, _, d in alone if k == "backward"][:4] == ["cross_entropy"] * 4
    assert [k for k, _, _ in alone].count("step") == 2
