"""`galint explain` as JSON: one object; rows and columns are 1-based, columns in code points."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from galint.explain import EffectiveBatch, Happening, LedgerView, LoopView, MicroRow, WindowView
from galint.source import Span

Locate = Callable[[Span], tuple[int | None, Span]]
"""A span as (notebook cell, span in it); the cell is None in a plain file."""


def _plain(span: Span) -> tuple[int | None, Span]:
    return None, span


def render(views: Sequence[LoopView], *, locate: Locate = _plain) -> str:
    """`{"version": 1, "loops": [...]}`."""
    return json.dumps({"version": 1, "loops": [_loop(v, locate) for v in views]}, indent=2, ensure_ascii=False) + "\n"


def _span(span: Span | None, locate: Locate) -> dict[str, Any] | None:
    if span is None:
        return None
    cell, inner = locate(span)
    out: dict[str, Any] = {"cell": cell} if cell is not None else {}
    out["location"] = {"row": inner.row, "column": inner.column + 1}
    out["end_location"] = {"row": inner.end_row, "column": inner.end_column + 1}
    return out


def _loop(view: LoopView, locate: Locate) -> dict[str, Any]:
    return {
        "filename": view.filename,
        "place": _span(view.span, locate),
        "end_row": locate(Span(view.end_row, 0, view.end_row, 0))[1].row,
        "text": view.text,
        "function": view.function,
        "understood": view.understood,
        "framework": view.framework or None,
        "warnings": list(view.warnings),
        "reason": view.reason or None,
        "reason_place": _span(view.reason_span, locate),
        "assumptions": list(view.assumptions),
        "effective_batch": _batch(view.batch),
        "optimizers": [_ledger(ledger, locate) for ledger in view.ledgers],
    }


def _batch(batch: EffectiveBatch | None) -> dict[str, Any] | None:
    if batch is None:
        return None
    return {
        "text": str(batch),
        "micro_batch": batch.micro or None,
        "micro_batch_size": batch.micro_size,
        "n": batch.n,
        "n_label": batch.n_label or None,
        "times_ranks": batch.ranks,
        "samples_per_rank": batch.samples,
    }


def _ledger(ledger: LedgerView, locate: Locate) -> dict[str, Any]:
    return {
        "optimizer": ledger.optimizer,
        "n": ledger.n,
        "n_label": ledger.n_label or None,
        "guard": _span(ledger.guard, locate),
        "guard_text": ledger.guard_text or None,
        "unless": ledger.unless,
        "windows": [_window(w, locate) for w in ledger.windows],
        "more": ledger.more,
        "variants": [
            {"when": variant.label, "windows": [_window(w, locate) for w in variant.windows]}
            for variant in ledger.variants
        ],
    }


def _window(window: WindowView, locate: Locate) -> dict[str, Any]:
    return {
        "first": window.first,
        "last": window.last,
        "numbers": list(window.numbers),
        "before": [_happening(h, locate) for h in window.opening],
        "micro_batches": [_micro(row, locate) for row in window.rows],
        "after": [_happening(h, locate) for h in window.closing],
        "step": _span(window.step, locate),
        "applied": window.applied,
        "large_batch": window.expected or None,
        "verdict": window.verdict,
        "stale": window.stale,
        "notes": list(window.notes),
    }


def _micro(row: MicroRow, locate: Locate) -> dict[str, Any]:
    return {
        "number": row.number,
        "share": row.share,
        "gradient_state": row.scaler,
        "scaled_loss": row.scaled_loss,
        "all_reduced": row.synced,
        "holds": row.holds,
        "fate": row.fate,
        "discarded_at": _span(row.lost_at, locate),
        "events": [_happening(h, locate) for h in row.happenings],
    }


def _happening(h: Happening, locate: Locate) -> dict[str, Any]:
    place = {"file": h.file, **(_span(h.span, _plain) or {})} if h.file else _span(h.span, locate)
    return {"kind": h.kind, "place": place, "detail": h.detail or None}
