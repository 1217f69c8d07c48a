"""An Accelerator that is told N and never told of a micro-batch: its `backward` divides, and every step acts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import program_nodes
from galint.ledger import Entry, Step
from galint.run.facts import Event
from galint.run.nodes import terminal
from galint.source import Span

_COUNTS = {"accumulate", "no_sync", "_do_sync", "_set_sync_gradients"}
"""What tells an Accelerator where a window ends, or is used by whoever counts by hand."""
_SETS = re.compile(r"\bsync_gradients$|accelerator.*\bgradient_accumulation_steps$", re.I)
_CONTEXT = re.compile(r"accum|sync|micro", re.I)


def never_entered(view: View, code: str) -> Iterator[Finding]:
    """Backwards that divide by N where each is applied alone."""
    divided = {e.span: e for e in view.run.events if e.kind == "divided" and e.data["n"] > 1 and _looped(view, e)}
    if not divided or view.run.facts.get("driven") or view.run.facts.get("manual_grad"):
        return
    steps = [step for ledger in view.ledgers for step in view.steps(ledger)]
    if any(len(set(step.window)) > 1 or step.carried for step in steps) or counted_by_hand(view):
        return
    for span, event in divided.items():
        shares = [(step, entry) for step in steps for entry in step.applied if entry.span == span]
        if not shares or not all(_divided(view, entry, event.data["n"]) for _, entry in shares):
            continue
        if not _in_the_open(view, span, event.text):
            continue
        yield _finding(view, code, event, *shares[0])


def _looped(view: View, event: Event) -> bool:
    """Whether the program itself runs the backward for many micro-batches; the caller of a mere step may accumulate."""
    return any(span in view.static.loops for span, _, _ in event.data["where"])


def _finding(view: View, code: str, event: Event, step: Step, entry: Entry) -> Finding:
    n, keys = int(event.data["n"]), event.data["keys"]
    named = f"`{keys[0]}` = {n}" if keys else str(n)
    return Finding(
        code,
        event.span,
        f"this backward divides by {named}, and no `accumulate()` is ever entered: every micro-batch is applied alone, "
        f"with 1/{n if _share(view, entry, n, 1) else n * n} of its gradient",
        step=step,
        window=n,
        related=((event.data["told"], "N is given here"), *view.places(step)),
        assumptions=("the loop runs without DeepSpeed, whose engine may count by itself",),
    )


def counted_by_hand(view: View) -> bool:
    """Whether the program says where windows end by other means than a condition around its step."""
    return view.static.once("windows are counted by hand", lambda: any(map(_counts, program_nodes(view))))


def _counts(node: p.Node) -> bool:
    if isinstance(node, p.Attr):
        return node.name in _COUNTS or "deepspeed" in node.name.lower()
    if isinstance(node, (p.Name, p.ImportFrom)):
        return "deepspeed" in (node.id if isinstance(node, p.Name) else node.module).lower()
    if isinstance(node, p.Assign):
        return any(isinstance(t, p.Attr) and _SETS.search(p.text(t)) for t in node.targets)
    return isinstance(node, p.Arg) and "deepspeed" in (node.keyword or "").lower()


def _divided(view: View, entry: Entry, n: int) -> bool:
    """Whether 1/N is left of an addend, once or with the loss's own division by N."""
    return _share(view, entry, n, 1) or _share(view, entry, n, 2)


def _share(view: View, entry: Entry, n: int, power: int) -> bool:
    terms = [c.substitute(view.known) for c in entry.facts.terms]
    return any(not c.symbols and abs(c.value) == Fraction(1, n**power) for c in terms)


def _in_the_open(view: View, span: Span, accelerator: str) -> bool:
    """False where something out of sight, a context or what gives the batches, is given the Accelerator and may count."""
    name = accelerator.rpartition(".")[2]
    for node in program_nodes(view):
        if not isinstance(node, (p.With, p.For)) or not any(n.span == span for n in view.static.walk(node)):
            continue
        for asked in [i.context for i in node.items] if isinstance(node, p.With) else [node.iter]:
            if isinstance(node, p.With) and _CONTEXT.search(
                terminal(asked.func if isinstance(asked, p.Call) else asked)
            ):
                return False
            if any(isinstance(n, p.Arg) and terminal(n.value) == name for n in view.static.walk(asked)):
                return False
    return True
