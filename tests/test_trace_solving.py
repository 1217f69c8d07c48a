"""Recovered weights: exact on what determines them, the ledger's answer on what does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from galint.trace import solving  # noqa: E402
from galint.trace.solving import compare, gram, solve  # noqa: E402


def solved(rows: torch.Tensor, weights: list[float], guess: list[float], stale: bool = False) -> object:
    applied = (torch.tensor(weights, dtype=rows.dtype)[:, None] * rows).sum(0)
    return solve(gram(torch.cat([rows, applied[None]])), guess, stale)


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=8), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_any_weights_are_recovered_whatever_was_predicted(weights: list[float], seed: int) -> None:
    torch.manual_seed(seed)
    rows = torch.randn(len(weights), 400, dtype=torch.float64)
    answer = solved(rows, weights, [1.0] * len(weights))
    assert answer.rows == pytest.approx(weights, abs=1e-6)


def test_a_loss_scale_on_some_rows_hides_none() -> None:
    torch.manual_seed(0)
    rows = torch.randn(3, 1000) * torch.tensor([[1.0], [65536.0], [65536.0]])
    answer = solved(rows, [1.0, 1 / 65536, 0.0], [1.0, 1.0, 1.0])
    assert answer.rows[0] == pytest.approx(1, abs=1e-3)
    assert answer.rows[1] * 65536 == pytest.approx(1, abs=1e-3)
    assert answer.rows[2] * 65536 == pytest.approx(0, abs=1e-3)


def test_the_same_batch_twice_keeps_the_prediction() -> None:
    row = torch.randn(1, 500)
    answer = solved(torch.cat([row, row]), [1.0, 1.0], [1.0, 1.0])
    assert answer.rows == pytest.approx([1, 1])
    # What is determined, the sum, is measured even when the prediction is wrong.
    answer = solved(torch.cat([row, row]), [2.0, 2.0], [1.0, 1.0])
    assert sum(answer.rows) == pytest.approx(4, abs=1e-5)


def test_the_carry_is_told_apart() -> None:
    rows = torch.randn(4, 500, dtype=torch.float64)
    answer = solved(rows, [0.5, 0.5, 0.5, 1.0], [0.5, 0.5, 0.5, 0.0], stale=True)
    assert answer.carry == pytest.approx(1)
    assert len(answer.rows) == 3


def test_what_is_not_a_combination_shows_as_residual() -> None:
    torch.manual_seed(1)
    rows = torch.randn(2, 500)
    answer = solve(gram(torch.cat([rows, torch.randn(1, 500)])), [1.0, 1.0], False)
    assert answer is not None and answer.residual > 0.9


def test_gradients_that_are_not_finite_have_no_answer() -> None:
    rows = torch.tensor([[1.0, float("inf")], [1.0, 2.0]])
    assert solve(gram(rows), [1.0], False) is None


def test_a_zero_row_keeps_its_prediction() -> None:
    rows = torch.cat([torch.zeros(1, 50), torch.ones(1, 50)])
    assert solved(rows, [1.0, 2.0], [1.0, 1.0]).rows == pytest.approx([1, 2])


def test_comparison_against_a_reference() -> None:
    rows = torch.eye(2, 4)
    ratio, cosine, error = compare(gram(torch.cat([rows, 4 * rows.mean(0, keepdim=True)])), [0.5, 0.5])
    assert (ratio, cosine, error) == pytest.approx((4, 1, 3))


@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_elimination_gives_what_the_eigenvalues_give(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(count)
    shared = torch.randn(1, 500)
    rows = shared + torch.randn(count, 500) * torch.logspace(0, 4, count)[:, None]
    weights = torch.linspace(-1, 2, count)
    matrix = gram(torch.cat([rows, (weights @ rows)[None]]))
    quick = solve(matrix, [1.0] * count, False)
    monkeypatch.setattr(solving, "FEW", 0)
    slow = solve(matrix, [1.0] * count, False)
    assert quick is not None and slow is not None
    assert quick.rows == pytest.approx(weights.tolist(), rel=1e-4, abs=1e-5)
    assert slow.rows == pytest.approx(quick.rows, rel=1e-6, abs=1e-8)


def test_elimination_leaves_what_is_not_determined_to_the_prediction() -> None:
    row = torch.randn(1, 500, generator=torch.Generator().manual_seed(3))
    answer = solve(gram(torch.cat([row, row, 2 * row])), [0.5, 1.5], False)
    assert answer is not None and answer.rows == pytest.approx([0.5, 1.5], abs=1e-9)
