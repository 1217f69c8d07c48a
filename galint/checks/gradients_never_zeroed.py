"""GA102: a step applies gradients that an earlier step already applied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.scaling import loop_node
from galint.checks.view import View
from galint.checks.windows import calls, program_nodes
from galint.ledger import OptimizerLedger, Step, plain
from galint.run.nodes import path_terminal, terminal
from galint.source import Span

CODE = "GA102"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """Two steps in a row of one optimizer with nothing cleared between them."""
    for ledger in view.ledgers:
        if (late := _cleared_late(view, ledger)) is not None:
            step, n = late
            when = "between epochs only" if _cleared_before(view, ledger, [step]) else f"after every {n}"
            yield Finding(
                CODE,
                step.span,
                f"`{ledger.name}` steps after each micro-batch but is cleared {when}: this step applies "
                f"{n - 1} gradient{'s' if n > 2 else ''} that earlier steps applied along with its own",
                step=step,
                window=1,
                related=view.places(step)[:1],
            )
        if (again := _stepped_again(view, ledger)) is not None:
            first, second, plain_twice = again
            yield Finding(
                CODE,
                second.span,
                f"`{ledger.name}` has just stepped{'' if plain_twice else ' by its scaler'}: this step applies "
                f"the window's {len({e.micro for e in second.carried})} gradients once more",
                step=second,
                related=((first.span, "the step that has applied them"),),
            )
        stale = never_cleared(view, ledger)
        if not stale:
            continue
        step = stale[0]
        fresh, old = len({e.micro for e in step.applied}), len({e.micro for e in step.carried})
        when = "cleared before the loop only" if _cleared_before(view, ledger, stale) else "never cleared"
        yield Finding(
            CODE,
            step.span,
            f"`{ledger.name}` is {when}: this step applies {old} gradients of earlier windows along with its own {fresh}",
            step=step,
            window=fresh,
            related=view.places(step)[:1],
        )


def never_cleared(view: View, ledger: OptimizerLedger) -> list[Step]:
    """The steps that apply old gradients, where surely nothing clears an optimizer's between its steps; else none."""
    steps = view.steps(ledger)
    stale = [s for s in steps if s.carried]
    if not stale or not view.accumulates(ledger):
        return []
    optimizer = view.run.optimizers.get(ledger.name)
    before = _cleared_before(view, ledger, stale)
    fresh_starts = len({m.serial for s in steps if s.window and (m := view.micro(s.window[-1]))}) if before else 1
    if len(stale) < len(steps) - fresh_starts:
        return []
    others = [o for o in view.ledgers if o is not ledger]
    certain = (
        getattr(optimizer, "known", False)
        or (before and getattr(optimizer, "engine", None) is None)
        or any(any(m.kind == "clear" for s in o.steps for m in s.marks) for o in others)
    )
    named = [e for e in view.run.events if e.kind == "zero_grad" and _names(e.text, ledger.name)]
    if not certain or any(e.span not in before for e in named):
        return []
    if _cleared_unseen(view, stale) or _cleared_where_the_run_was_not(view, ledger.name, stale):
        return []
    if not all(e.sure for s in stale for e in s.carried) and len(view.ledgers) > 1:
        return []
    return stale


def _cleared_late(view: View, ledger: OptimizerLedger) -> tuple[Step, int] | None:
    """The last step of a window whose steps all run while only its clear waits for N, and N; None for other loops."""
    steps = view.steps(ledger)
    held = [len({e.micro for e in s.carried}) for s in steps]
    n = max(held, default=0) + 1
    windows = n in {*view.known.values(), view.scenario.window} and n > 1 and len(steps) >= 2 * n and view.lone(ledger)
    if not windows or held != [k % n for k in range(len(steps))] or any(len(set(s.window)) != 1 for s in steps):
        return None
    loops = {m.loop for s in steps for t in s.window if (m := view.micro(t)) is not None}
    if len(loops) != 1 or view.run.facts.get("closure"):
        return None
    return steps[n - 1], n


def _stepped_again(view: View, ledger: OptimizerLedger) -> tuple[Step, Step, bool] | None:
    """`scaler.step(optimizer)` and `optimizer.step()`, or the latter twice, one after the other at the end of every window.

    The third is True where no scaler steps. None for other steps.
    """
    by_span = {c.span: c for c in calls(view)}
    found: list[tuple[Step, Step, bool]] = []
    for first, second in itertools.pairwise(ledger.steps):
        before, after = by_span.get(first.span), by_span.get(second.span)
        if second.window or second.applied or not second.carried or before is None or after is None:
            continue
        if not isinstance(before.func, p.Attr) or not isinstance(after.func, p.Attr) or after.args or before is after:
            continue
        scaled = len(before.args) == 1
        stepped = before.args[0].value if scaled else before.func.value
        same = p.text(stepped) == p.text(after.func.value) and (scaled or before.func.name == after.func.name == "step")
        if same and {e.seq for e in first.applied} == {e.seq for e in second.carried}:
            found.append((first, second, not scaled))
    lone = view.lone(ledger) or (bool(found) and found[0][2])  # whose gradients they are, twice is twice
    if not found or len(found) != len(view.steps(ledger)) or not (lone and view.accumulates(ledger)):
        return None
    return found[0]


def _cleared_before(view: View, ledger: OptimizerLedger, stale: list[Step]) -> frozenset[Span]:
    """The clears, where all of them stand outside the loop of the micro-batches: once, or once an epoch."""
    loops = {view.loop_of(s.window[-1]) for s in stale if s.window}
    clears = [m for m in (*(m for s in ledger.steps for m in s.marks), *ledger.marks) if m.kind == "clear"]
    inside = any(span in loops for m in clears for span, _, _ in m.where)
    return frozenset() if inside or None in loops else frozenset(m.span for m in clears)


def _names(cleared: str, name: str) -> bool:
    """Whether what was cleared may be this optimizer: an element of the same collection has the same name."""
    return cleared.startswith(name) or path_terminal(plain(cleared)) == path_terminal(plain(name))


def _other_side(view: View, steps: list[Step]) -> frozenset[int]:
    """Rows on the other side of the conditions that the steps stand under: what clears there belongs to other steps."""
    stepping = {s.span.row for s in steps}
    out: set[int] = set()
    for node in program_nodes(view):
        if isinstance(node, p.If) and node.orelse:
            sides = [{n.span.row for stmt in body for n in view.static.walk(stmt)} for body in (node.body, node.orelse)]
            for one, other in (sides, sides[::-1]):
                if stepping <= one:
                    out |= other - one
    return frozenset(out)


def _cleared_where_the_run_was_not(view: View, name: str, steps: list[Step]) -> bool:
    """True when code that the run did not come to clears something of the optimizer's name."""
    seen = {e.span.row for e in view.run.events if e.kind == "zero_grad"} | _other_side(view, steps)
    wanted = path_terminal(plain(name))
    return any(
        isinstance(node, p.Call)
        and isinstance(node.func, p.Attr)
        and node.func.name == "zero_grad"
        and terminal(node.func.value) == wanted
        and node.span.row not in seen
        for node in program_nodes(view)
    )


def _cleared_unseen(view: View, steps: list[Step]) -> bool:
    """True when the loop clears a network that the run could not tie to the optimizer: made by an unknown wrapper, say."""
    seen = {e.span.row for e in view.run.events if e.kind == "zero_grad"} | _other_side(view, steps)
    stepping = {s.span.row for s in steps}
    for step in steps[:1]:
        micro = view.micro(step.window[-1]) if step.window else None
        for span, _, _ in micro.path if micro else ():
            loop = loop_node(view, span)
            for node in view.static.walk(loop) if isinstance(loop, (p.For, p.While)) else ():
                if isinstance(node, p.Call) and isinstance(node.func, p.Attr) and node.func.name == "zero_grad":
                    if node.span.row not in seen | stepping:
                        return True
    return False
