"""GA701: `accumulate()` given a list, nested or twice in a row, without N, around a bare `loss.backward()`, or never entered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.never_accumulates import never_entered
from galint.checks.view import View
from galint.checks.windows import program_nodes
from galint.run.facts import Event
from galint.run.nodes import terminal
from galint.run.values import Lit, Seq
from galint.source import Span

CODE = "GA701"
WITNESS = "even"
_N = re.compile(r"(gradient|grad)_(accumulation|accum|acc)(_steps?)?|accum(ulation)?_(steps|iter)")
_ACCELERATORS_N = re.compile(r"accelerator.*\bgradient_accumulation_steps$", re.I)


def check(view: View) -> Iterator[Finding]:
    """Each misuse is a fact of the contexts that were entered."""
    seen: set[Span] = set()
    for event in view.run.events:
        if event.kind != "accumulate" or event.span in seen:
            continue
        message = _misuse(view, event)
        if message:
            seen.add(event.span)
            yield Finding(CODE, event.span, message, window=int(event.data["n"]))
    if not seen:
        yield from never_entered(view, CODE)


def _misuse(view: View, event: Event) -> str:
    n = int(event.data["n"])
    given = event.data.get("args", [])
    if event.data.get("nested") and n > 1:
        return (
            f"nested `accumulate` contexts advance the counter twice a micro-batch: the step comes every "
            f"{max(n // 2, 1)} micro-batches instead of {n}; give all models to one `accumulate`"
        )
    if given and isinstance(given[0], Seq) and len(given[0].elts) != 0:
        return (
            "`accumulate` takes models, not a list of them: `no_sync` stays off and every micro-batch all-reduces; "
            "unpack the list"
        )
    if event.data.get("again") and n > 1:
        return (
            "a second `accumulate` context in one micro-batch advances the counter again: steps come at other "
            f"micro-batches than every {n}th; give all models to one `accumulate`"
        )
    flag = event.data.get("given")
    missing = isinstance(flag, Lit) and flag.value is False
    if n == 1 and event.data.get("made") and missing and _wants_n(view):
        return "the Accelerator has no `gradient_accumulation_steps`, so `accumulate` steps on every micro-batch"
    if n > 1:
        return _bare(view, event, n)
    return ""


def _bare(view: View, event: Event, n: int) -> str:
    """A backward that is not the accelerator's misses its division by N."""
    later = [e.seq for e in view.run.events if e.kind == "accumulate" and e.seq > event.seq]
    end = later[0] if later else 10**9
    inside = [b for b in view.run.backwards if event.seq < b.seq < end and b.micro == event.micro]
    bare = [b for b in inside if b.name == "" and "accelerate" not in b.facts.keys]
    if not bare or len(bare) != len(inside):
        return ""
    for fact in bare:
        terms = [c.substitute(view.known) for c in fact.facts.terms]
        if fact.facts.summed or fact.facts.hidden & {"?"} or any(c.symbols or abs(c.value) < 1 for c in terms):
            return ""
    return (
        f"a bare `backward()` inside `accumulate` misses the division by N: {n} losses are summed and the applied "
        f"gradient is {n} times the large batch's; call `accelerator.backward(loss)`"
    )


def _wants_n(view: View) -> bool:
    """True when the program has a setting for N and gives it to no Accelerator, not even later."""
    found = False
    calls = (n for n in program_nodes(view) if isinstance(n, p.Call) and terminal(n.func) == "backward")
    sent = {n for call in calls for arg in call.args for n in view.static.walk(arg.value)}
    for node in program_nodes(view):
        if isinstance(node, p.Assign) and any(_ACCELERATORS_N.search(p.text(t)) for t in node.targets):
            return False
        if isinstance(node, p.Attr) and "accelerator" in terminal(node.value).lower() and node not in sent:
            continue  # asked for something else than a loss: `accelerate launch` may have given it
        name = node.name if isinstance(node, p.Attr) else node.id if isinstance(node, p.Name) else ""
        found = found or bool(_N.fullmatch(name))
    return found
