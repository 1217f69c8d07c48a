"""GA301: `unscale_` runs before the window's last backward."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.run.names import TPU
from galint.source import Span

CODE = "GA301"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """An unscale that later scaled backwards of the same window, or a second unscale, make wrong."""
    if view.engine_on or view.run.facts.get("asks_scaler"):
        return
    if any(TPU.search(c.key) and c.taken for c in view.run.choices.values()):
        return  # no CUDA scaler scales there
    for ledger in view.ledgers:
        seen: set[Span] = set()
        for step in view.steps(ledger):
            count = len(dict.fromkeys(step.window))
            for mark in step.marks:
                if mark.kind != "unscale" or mark.span in seen or count < 2:
                    continue
                earlier = {e.micro for e in step.applied if e.seq < mark.seq}
                later = {e.micro for e in step.applied if e.seq > mark.seq and e.facts.scale_span is not None} - earlier
                updated = any(m.kind == "update" and m.seq > mark.seq for m in step.marks)
                if not later and mark.detail != "again":
                    continue
                seen.add(mark.span)
                held = mark.pending
                again = any(m.kind == "unscale" and m.seq > mark.seq for m in step.marks) or mark.detail == "again"
                prepared = getattr(view.run.optimizers.get(ledger.name), "accelerated", None) is not None
                if again and not later and prepared:
                    message = (
                        "the gradients are divided by the loss scale twice: Accelerate unscales the optimizer inside its "
                        "wrapper, and the scaler takes the wrapper for another one"
                    )
                elif again and not updated:
                    message = (
                        f"`unscale_` runs more than once in a window of {count} micro-batches: the second call before "
                        "`update()` raises RuntimeError"
                    )
                else:
                    message = (
                        f"`unscale_` runs after {held} of {count} micro-batches: the other {len(later)} add gradients still "
                        "multiplied by the loss scale"
                    )
                yield Finding(
                    CODE,
                    mark.span,
                    message,
                    step=step,
                    window=count,
                    related=view.places(step),
                    applied=_mixed(count, held, len(later)) if later else "",
                    expected=None if later else "",
                )


def _mixed(count: int, held: int, later: int) -> str:
    plain = " + ".join(f"g{k}" for k in range(1, min(held, 3) + 1)) or "0"
    scaled = " + ".join(f"g{k}" for k in range(held + 1, min(held + later, held + 3) + 1))
    return f"({plain} + scale·({scaled}))/{count}" if scaled else f"({plain})/{count}"
