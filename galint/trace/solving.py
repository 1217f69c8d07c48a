"""Recover the micro-batch weights: solve applied = sum of w_i g_i + carry * stale from inner products.

The unknowns are few (N + 1) and the samples long, so everything after the Gram matrix is a small
problem in float64. The rows are brought to unit norm first, because a loss scale of 65536 on some of
them would otherwise hide the others. Where micro-batches are (nearly) the same batch the system
does not determine the split; there the answer nearest to the ledger's prediction is taken, which
changes nothing in the directions that the numbers do determine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

CUTOFF = 1e-9
"""Eigenvalues of the unit-norm Gram matrix below this are rounding of float32 samples, not information."""

FEW = 12
"""Rows up to which elimination is quicker than numpy."""

PIVOT = 1e-2
"""Least share of a row that those before it must leave unexplained for plain elimination to be exact."""


@dataclass(slots=True)
class Solution:
    """Coefficients of the rows (`rows` first, then `carry`), and the comparisons that N rows allow."""

    rows: list[float] = field(default_factory=list)
    carry: float | None = None
    residual: float = math.nan
    norms: list[float] = field(default_factory=list)
    applied_norm: float = math.nan


def gram(rows: torch.Tensor) -> torch.Tensor:
    """Inner products of the rows, float64, on the CPU. One synchronisation of the device."""
    if rows.device.type == "mps":  # has no float64
        rows = rows.cpu()
    wide = rows.to(torch.float64)
    return (wide @ wide.T).cpu()


def solve(matrix: torch.Tensor, predicted: list[float], stale: bool) -> Solution | None:
    """Solve from the Gram matrix of k micro-batch rows, then the stale row when `stale`, then the applied row.

    `predicted` are the ledger's coefficients of the k rows (and of the stale row when there is one).
    None when a gradient is not finite.
    """
    table: list[list[float]] = matrix.tolist()
    if not all(map(math.isfinite, (x for line in table for x in line))):
        return None
    count = len(table) - 1
    whole = table[count][count]
    applied_norm = math.sqrt(max(whole, 0.0))
    norms = [math.sqrt(max(table[i][i], 0.0)) for i in range(count)]
    answer = _eliminated(table, norms) if count <= FEW and all(norms) else None
    if answer is None:
        answer = _nearest(matrix.numpy(), norms, predicted, stale)
    left = whole - 2 * sum(a * line[count] for a, line in zip(answer, table, strict=False))
    left += sum(a * b * x for a, line in zip(answer, table, strict=False) for b, x in zip(answer, line, strict=False))
    residual = math.sqrt(max(left, 0.0)) / applied_norm if applied_norm > 0 else 0.0
    carry = answer.pop() if stale else None
    return Solution(answer, carry, residual, norms[: len(answer)], applied_norm)


def _eliminated(table: list[list[float]], norms: list[float]) -> list[float] | None:
    """The solution by elimination on the unit-norm matrix; None where it is not plainly determined.

    A window's matrix is a few numbers wide: starting an eigenvalue routine for it costs more than this does.
    """
    count = len(norms)
    rows = [
        [table[i][j] / (norms[i] * norms[j]) for j in range(count)] + [table[i][count] / norms[i]] for i in range(count)
    ]
    for i, row in enumerate(rows):
        if row[i] < PIVOT:
            return None
        for other in rows[i + 1 :]:
            factor = other[i] / row[i]
            for j in range(i, count + 1):
                other[j] -= factor * row[j]
    answer = [0.0] * count
    for i in reversed(range(count)):
        row = rows[i]
        answer[i] = (row[count] - sum(row[j] * answer[j] for j in range(i + 1, count))) / row[i]
    return [a / n for a, n in zip(answer, norms, strict=True)]


def _nearest(table: Any, lengths: list[float], predicted: list[float], stale: bool) -> list[float]:
    """The solution that is nearest to the ledger's prediction in the directions that the rows do not determine."""
    count = len(table) - 1
    system, right, whole = table[:count, :count], table[:count, count], float(table[count, count])
    norms = np.asarray(lengths)
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    guess = np.asarray(predicted, dtype=np.float64)
    if stale and guess[-1] != 0:
        # Gradients may have been cleared where no hook sees it. With fewer numbers than unknowns only the simpler
        # explanation tells: take the guess that leaves less.
        cleared = np.append(guess[:-1], 0.0)
        if _left(system, right, whole, cleared) < _left(system, right, whole, guess):
            guess = cleared
    values, vectors = np.linalg.eigh(system * np.outer(inverse, inverse))
    gap = vectors.T @ ((right - system @ guess) * inverse)
    keep = values > CUTOFF * max(count, 1)
    answer = guess + inverse * (vectors @ np.divide(gap, values, out=np.zeros_like(gap), where=keep))
    return [float(x) for x in answer]


def _left(system: Any, right: Any, whole: float, answer: Any) -> float:
    """Squared norm of what the answer does not explain."""
    return whole - 2 * float(answer @ right) + float(answer @ system @ answer)


def compare(matrix: torch.Tensor, weights: list[float]) -> tuple[float, float, float]:
    """Ratio of norms, cosine and relative error of the applied row (last) against sum of weights times rows.

    Rows after the first `len(weights)` count with weight 0. (nan, nan, nan) when the reference is zero.
    """
    table: list[list[float]] = matrix.tolist()
    last = len(table) - 1
    applied = table[last][last]
    inner = sum(w * x for w, x in zip(weights, table[last], strict=False))
    reference = sum(
        a * b * x for a, line in zip(weights, table, strict=False) for b, x in zip(weights, line, strict=False)
    )
    if not reference > 0:
        return math.nan, math.nan, math.nan
    ratio = math.sqrt(max(applied, 0.0) / reference)
    cosine = inner / math.sqrt(reference * applied) if applied > 0 else math.nan
    error = math.sqrt(max(applied - 2 * inner + reference, 0.0) / reference)
    return ratio, cosine, error
