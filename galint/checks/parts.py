"""Loops over the parts of a batch: what numbers say how many there are."""

from __future__ import annotations

from galint import program as p
from galint.run.nodes import terminal


def quotient(loop: p.Node | None) -> tuple[p.Expr, p.Expr] | None:
    """The batch's size and a part's, in `for k in range(0, total, part)`: so many parts are there as their quotient is.

    None for other loops, and where the sizes are no settings: `len(batch)` may well leave a rest.
    """
    call = loop.iter if isinstance(loop, p.For) else None
    if isinstance(call, p.Call) and call.args and terminal(call.func) not in {"range", "trange"}:
        call = call.args[0].value  # `tqdm(range(…))`
    if not isinstance(call, p.Call) or terminal(call.func) not in {"range", "trange"} or len(call.args) != 3:
        return None
    first, total, part = (a.value for a in call.args)
    if not isinstance(first, p.Const) or first.value != 0 or any(a.keyword or a.star for a in call.args):
        return None
    return (total, part) if _named(total) and _named(part) else None


def _named(size: p.Expr) -> bool:
    """`args.batch_size`, `cfg["part"]`; no `batch.shape[0]`."""
    if isinstance(size, p.Subscript):
        return isinstance(size.index, p.Const) and isinstance(size.index.value, str)
    return isinstance(size, (p.Name, p.Attr))
