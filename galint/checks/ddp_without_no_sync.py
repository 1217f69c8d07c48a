"""GA601: DDP or FSDP all-reduces every micro-batch of a window."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.sync import ABOUT, NAMES, windows
from galint.checks.view import View
from galint.checks.windows import program_nodes
from galint.source import Span

CODE = "GA601"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """More than one synchronised micro-batch in a window, with no attempt to switch it off."""
    if any(e.kind == "sync_flag" and e.data.get("known") is False for e in view.run.events):
        return  # the program switches, by something that the run does not know
    seen: set[Span] = set()
    # Of several optimizers, the one that applies these gradients speaks before one that clears them.
    for window in sorted(windows(view), key=lambda w: bool(w.step.lost)):
        if window.synced < 2 or window.inert is not None or window.bypassed:
            continue
        if window.synced < window.total and 2 * window.synced <= window.total:
            # Most micro-batches are off: the loop does switch, once for each of its windows.
            continue
        entry = window.first
        if entry.span in seen:
            continue
        if _declined(view):
            return
        seen.add(entry.span)
        yield Finding(
            CODE,
            entry.span,
            f"{NAMES.get(window.wrap, window.wrap)} all-reduces the gradients on {window.synced} of {window.total} micro-batches; one "
            "all-reduce a window gives the same gradient",
            step=window.step,
            window=window.total,
            related=((window.made, "wrapped here"), *view.places(window.step))
            if window.made
            else view.places(window.step),
            applied=None,
        )


def _declined(view: View) -> bool:
    """True where the program can put synchronisation off, and an option of it says no: it is asked for, for memory's sake."""
    answers = {
        k.removeprefix("not "): c.taken != k.startswith("not ") for k, c in view.run.choices.items() if not c.data
    }
    for node in program_nodes(view):
        if not isinstance(node, (p.IfExp, p.If)):
            continue
        test = node.test
        parts = {p.text(test), *(p.text(v) for v in test.values)} if isinstance(test, p.BoolOp) else {p.text(test)}
        if isinstance(node, p.If):  # what else a branch is about may have forgotten `no_sync` on its other side
            parts = {part for part in parts if ABOUT.search(part)}
        if not parts & answers.keys():
            continue
        sides = ((node.body,), (node.orelse,)) if isinstance(node, p.IfExp) else (node.body, node.orelse)
        wanted, other = (any(_switches(view, part) for part in side) for side in sides)
        if wanted == other:
            continue
        stops = isinstance(test, p.BoolOp) and (test.op == "or") != wanted  # one part alone decides
        asked = parts if stops else {p.text(test)}
        if any(answers.get(part, wanted) != wanted for part in asked):
            return True
    return False


def _switches(view: View, side: p.Expr | p.Stmt) -> bool:
    """Whether a part of a condition's side opens `no_sync`."""
    return any(isinstance(n, p.Attr) and n.name in {"no_sync", "no_backward_sync"} for n in view.static.walk(side))
