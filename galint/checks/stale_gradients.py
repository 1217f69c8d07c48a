"""GA107: one loss's backward leaves gradients that another optimizer applies later."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import program_nodes
from galint.ledger import Entry, OptimizerLedger, Step
from galint.run.nodes import terminal
from galint.run.values import Module
from galint.source import Span

CODE = "GA107"
WITNESS = "even"
_FREEZES = re.compile(
    r"requires_?grad|freez|froze|thaw|trainable|(toggle|switch|set|stop|allow)_(?!.*enabled)\w*grad", re.I
)
"""Names of what keeps gradients out of a network for a while."""
_CONTEXTS = frozenset({"accumulate", "no_sync"})


def check(view: View) -> Iterator[Finding]:
    """A step that applies, besides its own loss, what a backward left before another optimizer's step."""
    if len(view.ledgers) < 2 or view.run.facts.get("closure") or view.run.facts.get("manual_grad") or _frozen(view):
        return
    seen: set[Span] = set()
    for ledger in view.ledgers:
        if getattr(view.run.optimizers.get(ledger.name), "engine", None) is not None:
            continue  # DeepSpeed keeps and clears its own gradients
        steps = view.steps(ledger)
        stale = [(s, found) for s in steps if (found := _left_over(view, ledger, s))]
        if len(stale) < min(2, len(steps) - 1) or not stale or (len(stale) == 1 and stale[0][0] is steps[0]):
            continue  # what another training has left in front of the first step
        step, (entry, other) = stale[:2][-1]
        if entry.span in seen:
            continue
        seen.add(entry.span)
        own = next(e for e in step.applied if e.span != entry.span)
        yield Finding(
            CODE,
            entry.span,
            f"this backward also leaves gradients in the parameters of `{ledger.name}`, whose next step applies them "
            f"with its own: {_remedy(step, entry, own, other)}",
            step=step,
            related=((own.span, "the step's own loss"), *view.places(step)),
            applied="",
            expected="",
        )


def _left_over(view: View, ledger: OptimizerLedger, step: Step) -> tuple[Entry, str] | None:
    """An applied entry older than another optimizer's step, where this loss came after that step."""
    if not step.applied or not all(e.sure for e in step.applied) or step.carried:
        return None
    owned = _owned(view, ledger)
    reached_by = {b.seq: b.modules for b in view.run.backwards}
    if any(not owned & reached_by.get(e.seq, frozenset()) for e in step.applied):
        return None  # the forward of a module around them does not show which parts it reaches
    last = max(step.applied, key=lambda e: e.seq)
    for other in view.ledgers:
        if other is ledger or owned & _with_outer(view, other):
            continue  # both own parts of one module: its forward does not show which parts a loss reaches
        if any(e.seq == last.seq for s in other.steps for e in s.applied):
            continue
        theirs = _owned(view, other)
        for taken in other.steps:
            mine = {e.seq for e in taken.applied}
            for entry in step.applied:
                if entry.seq not in mine or entry.span == last.span:
                    continue
                if not theirs & reached_by.get(entry.seq, frozenset()):
                    continue
                before = entry.seq < taken.seq < last.seq and _forward_between(view, taken, last)
                if before or _goes_on(step, taken, entry, last):
                    return entry, other.name
    return None


def _goes_on(step: Step, taken: Step, entry: Entry, last: Entry) -> bool:
    """True when the other optimizer gathers the entry's losses over a window of its own: the step comes between the two
    losses of its last micro-batch, and so without that micro-batch's part of the other loss.
    """
    return entry.seq < step.seq < taken.seq and any(
        e.span == entry.span and e.micro == last.micro and e.seq > step.seq for e in taken.applied
    )


def _remedy(step: Step, entry: Entry, own: Entry, other: str) -> str:
    """Clearing would wipe what has been accumulated, where the two losses take turns within a window."""
    first = min(e.seq for e in step.applied if e.span == own.span)
    if any(e.span == entry.span and e.seq > first for e in step.applied):
        return "set `requires_grad_(False)` on them around this pass"
    return f"clear them after `{other}` has stepped"


def _owned(view: View, ledger: OptimizerLedger) -> frozenset[int]:
    """The modules whose parameters an optimizer holds."""
    return frozenset(getattr(view.run.optimizers.get(ledger.name), "modules", frozenset()))


def _with_outer(view: View, ledger: OptimizerLedger) -> frozenset[int]:
    """The modules an optimizer owns, and those that hold them as attributes."""
    found = _owned(view, ledger)
    while True:
        outer = {
            ident
            for ident, module in view.run.modules.items()
            if any(found & part.modules for part in module.attrs.values() if isinstance(part, Module))
        }
        if outer <= found:
            return found
        found |= outer


def _forward_between(view: View, taken: Step, last: Entry) -> bool:
    """True when the later loss is a new one: something went forward after the other optimizer's step."""
    return any(e.kind == "forward" and taken.seq < e.seq < last.seq for e in view.run.events)


def _frozen(view: View) -> bool:
    """True when the program switches gradients off somewhere, so reach cannot be told."""
    for node in program_nodes(view):
        if isinstance(node, p.Assign) and any(
            isinstance(t, p.Attr) and t.name == "requires_grad" for t in node.targets
        ):
            if not _is_true(node.value):
                return True
        elif isinstance(node, p.Call):
            name = terminal(node.func)
            asks = name == "requires_grad_" and all(_is_true(a.value) for a in node.args)  # of an image, say
            if (_FREEZES.search(name) and not asks and not _of_a_tensor(node)) or name == "toggle_optimizer":
                return True
            if "backward" in name and any(a.keyword == "inputs" for a in node.args):
                return True
        elif isinstance(node, p.ExprStmt) and _out_of_sight(view, node.value):
            assert isinstance(node.value, p.Call)
            if any(isinstance(a.value, p.Const) and a.value.value in {0, 1} for a in node.value.args):
                return True  # `utils.learns(critic, False)`
        elif isinstance(node, p.With) and any(_out_of_sight(view, item.context) for item in node.items):
            return True  # `with utils.still(critic):`
    return False


def _out_of_sight(view: View, node: p.Expr) -> bool:
    """True for a call that galint cannot see into and that is given a network as it is: it may switch gradients off."""
    if not isinstance(node, p.Call) or not node.args or not isinstance(node.args[0].value, (p.Name, p.Attr)):
        return False
    name, given = terminal(node.func), terminal(node.args[0].value)
    network = given in view.static.called or "parameters" in view.static.uses.get(given, ())
    return network and name not in view.static.functions and name not in _CONTEXTS


def _is_true(value: p.Expr) -> bool:
    return isinstance(value, p.Const) and value.value is True


def _of_a_tensor(call: p.Call) -> bool:
    """`hidden.detach().requires_grad_(False)`."""
    made = call.func.value if isinstance(call.func, p.Attr) else None
    return isinstance(made, p.Call) and terminal(made.func) in {"detach", "clone", "copy_"}
