"""GA401: accumulation windows are not N micro-batches long."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from galint import program as p
from galint.checks.counters import moves, target_names
from galint.checks.delayed import is_delayed
from galint.checks.finding import Finding
from galint.checks.scaling import loop_around
from galint.checks.step_in_each_pass import steps_in_each_pass
from galint.checks.view import Cadence, View
from galint.checks.windows import overlap, program_nodes
from galint.ledger import OWN_COUNT, OptimizerLedger, Step
from galint.run.facts import Event
from galint.run.names import ONE_WINDOW
from galint.run.nodes import path_terminal, terminal
from galint.source import Span

CODE = "GA401"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """Compare the windows' lengths with the N that the guard itself names."""
    reported: set[Span] = set()
    yield from _never(view)
    yield from _short_inner_loops(view)
    yield from _step_beside_the_guard(view)
    for step, name in steps_in_each_pass(view):
        message = (
            f"every window has 1 micro-batch: the loss is divided by `{name}`, and the step stands inside its loop"
        )
        yield Finding(CODE, step.span, message, step=step, related=view.places(step)[1:], applied="", expected="")
    for ledger in view.ledgers:
        cadence = view.cadence(ledger)
        if cadence is None or cadence.guard is None or cadence.n < 2 or not (view.lone(ledger) or view.together):
            continue
        if OWN_COUNT in cadence.guard.keys:
            continue  # a framework counts by itself
        if _start_unknown(view, cadence) or _drawn(view, cadence.guard.keys) or is_delayed(view, ledger):
            continue
        steps = _judged(view, _of_loop(view, view.steps(ledger), cadence.guard.span), cadence.n)
        if not _gates(view, ledger, cadence) and not _divided_in_vain(view, steps, cadence):
            continue
        steps = [s for s in steps if view.window(s)]  # one that was dropped whole, at an epoch's end, has no length
        lengths = [
            len({*view.window(s)} - overlap(s, before)) for before, s in zip([None, *steps], steps, strict=False)
        ]
        divided = {view.coefficient(e).value * cadence.n for s in steps for e in s.applied}
        if cadence.ambiguous and len(set(lengths)) == 1 and lengths[0] == cadence.n + 1 and divided != {1}:
            continue  # `micro == 3` from zero is a window of four
        if _asked(view, steps, cadence) == {cadence.n} and not _ahead(view, steps):
            continue  # the guard itself was asked N times a window
        fault = _fault(view, ledger, steps, lengths, cadence)
        if fault is None or cadence.guard.span in reported:
            continue
        reported.add(cadence.guard.span)
        step = next((s for s in steps if len(view.window(s)) != cadence.n), view.steps(ledger)[-1])
        yield Finding(
            CODE,
            cadence.guard.span,
            fault,
            step=step,
            window=cadence.n,
            related=tuple(q for q in view.places(step) if q[0] != cadence.guard.span),
        )


def _of_loop(view: View, steps: list[Step], guard: Span) -> list[Step]:
    """The steps of the guarded loop: one that a set-up takes before it (to fill an optimizer's state) counts nothing."""
    homes = {view.loop_of(s.window[-1]) for s in steps if s.window and any(g.span == guard for g in s.guards)}
    return [s for s in steps if not homes or not s.window or view.loop_of(s.window[-1]) in homes]


def _gates(view: View, ledger: OptimizerLedger, cadence: Cadence) -> bool:
    """True when backward also runs where the guard is not taken: the guard gates steps, not training."""
    assert cadence.guard is not None
    span = cadence.guard.span
    stepping = {s.window[-1] for s in ledger.steps if s.window}
    total = {t for s in ledger.steps for t in s.window} | set(ledger.window)
    if len(total) <= len(stepping) and all(len(s.window) <= 1 for s in ledger.steps):
        return False
    return any(e.span == span for e in view.guard_events) or any(g.span == span for s in ledger.steps for g in s.guards)


def _divided_in_vain(view: View, steps: list[Step], cadence: Cadence) -> bool:
    """True when one guard or another steps on every micro-batch, and each loss is divided by N all the same."""
    weights = {abs(view.coefficient(e).value) for s in steps for e in s.applied}
    sites = {g.span for s in steps for g in s.guards if g.moduli}
    return len(steps) >= 2 * cadence.n and weights == {Fraction(1, cadence.n)} and len(sites) > 1


def _step_beside_the_guard(view: View) -> Iterator[Finding]:
    """The loss is divided by N and clipping waits for N micro-batches, and the optimizer steps on each."""
    for ledger in view.ledgers:
        steps = [s for s in view.steps(ledger) if len(view.window(s)) == 1 and len(s.applied) == 1]
        if len(steps) < 4 or len(steps) != len(ledger.steps) or not view.lone(ledger):
            continue
        optimizer = view.run.optimizers.get(ledger.name)
        if getattr(optimizer, "engine", None) is not None or getattr(optimizer, "accelerated", None) is not None:
            continue  # a framework counts by itself
        entry = steps[1].applied[0]
        divided = {k for k in entry.facts.keys if view.coefficient(entry).value * view.run.known.get(k, 0) == 1}
        loop = loop_around(view, entry.micro)
        if not divided or loop is None:
            continue
        called = {name for k in divided if ONE_WINDOW.search(name := path_terminal(k))}
        spelled = called | {
            terminal(n.targets[0])
            for n in program_nodes(view)
            if isinstance(n, p.Assign) and called & {terminal(n.value)}
        }
        for guard in (n for n in view.static.walk(loop) if isinstance(n, p.If)):
            asked = [n for n in view.static.walk(guard.test) if isinstance(n, p.BinOp) and n.op == "%"]
            within = [n.func for s in guard.body for n in view.static.walk(s) if isinstance(n, p.Call)]
            waits = [n for n in within if terminal(n).startswith(("clip_grad", "unscale_"))]
            if waits and any(terminal(n.right) in spelled for n in asked) and "step" not in map(terminal, within):
                name = next(terminal(n.right) for n in asked if terminal(n.right) in spelled)
                yield Finding(
                    CODE,
                    steps[1].span,
                    f"every window has 1 micro-batch: the loss is divided by `{name}` and `{terminal(waits[0])}` waits for so many, "
                    "the step does not",
                    step=steps[1],
                    related=((guard.span, "the condition that the step stands outside of"), *view.places(steps[1])[1:]),
                    applied="",
                    expected="",
                )
                break


def _start_unknown(view: View, cadence: Cadence) -> bool:
    """True where the counter's first value is given by a caller or read from a checkpoint.

    A number of epochs that is read there moves no remainder, but how far a counter is from its first mark.
    """
    if cadence.guard is None:
        return False
    distance = any(label.startswith("≥") for label, _ in cadence.guard.moduli)
    read = {
        k
        for k in cadence.guard.keys
        if "[" in k and view.run.roles.get(k) == "counter" and (distance or "epoch" not in path_terminal(k).lower())
    }
    asked = {k for e in view.guard_events if e.span == cadence.guard.span for k in e.data["keys"]}
    return bool(read) or any(map(partial(_counted_outside, view), asked))


def _counted_outside(view: View, key: str) -> bool:
    """Whether a number begins, or is moved, where galint cannot see it."""
    return key.endswith("@start") or key in view.run.facts.get("counted_elsewhere", ())


def _drawn(view: View, keys: frozenset[str]) -> bool:
    """True when a guard's number is drawn by a loop from something that galint cannot see into: it may be anything."""
    names = {n.id for loop in program_nodes(view) if isinstance(loop, p.For) for n in target_names(loop.target)}
    counted = {terminal(n.target) for n in program_nodes(view) if isinstance(n, p.AugAssign)}  # another loop's, by name
    return bool(keys & (names - counted))


def _asked(view: View, steps: list[Step], cadence: Cadence) -> set[int]:
    """How often the guard was asked before each step since the one before."""
    assert cadence.guard is not None
    asked = [e.seq for e in view.guard_events if e.span == cadence.guard.span]
    out: set[int] = set()
    before = 0
    for step in steps:
        count = sum(before < seq < step.seq for seq in asked)
        out.add(count)
        before = step.seq
    return out if asked else set()


def _ahead(view: View, steps: list[Step]) -> bool:
    """True when each step stands before the backward of its own pass through the loop, and after none of it."""
    passes = [tuple(iteration for _, _, iteration in b.where) for b in view.run.backwards]
    for step in steps:
        after = bisect(view.run.backwards, step.seq, key=lambda b: b.seq)
        if not 0 < after < len(passes) or passes[after - 1] == step.position or passes[after] != step.position:
            return False
    return bool(steps)


def _judged(view: View, steps: list[Step], n: int) -> list[Step]:
    """The steps whose windows the guard alone decides.

    A loop that N does not divide ends in a partial window; where that goes is GA402's and GA403's business, so only
    windows inside the first run of such a loop count.
    """
    ends = [e for e in view.run.events if e.kind == "loop_end"]
    uneven = {e.data["serial"] for e in ends if e.data["iterations"] % n}
    out: list[Step] = []
    for step in steps:
        serials = {m.serial for t in view.window(step) if (m := view.micro(t)) is not None}
        if uneven and serials & uneven and (serials != {min(uneven)} or _last_of(view, step, ends)):
            break
        if uneven and len(serials) > 1 and max(serials) > min(uneven):
            break
        out.append(step)
    return out


def _last_of(view: View, step: Step, ends: list[Event]) -> bool:
    """True when a window holds the last micro-batch of its loop's run: a flush."""
    window = view.window(step)
    micro = view.micro(window[-1]) if window else None
    if micro is None:
        return False
    if not any(e.data["serial"] == micro.serial for e in ends):
        return False
    return micro.iteration == max(m.iteration for m in view.run.micros.values() if m.serial == micro.serial)


def _never(view: View) -> Iterator[Finding]:
    """A guard that is asked for several windows and never lets a step through."""
    if any(ledger.steps for ledger in view.run.ledgers.values()) or len(view.run.backwards) < 4:
        return
    asked: dict[Span, list[Event]] = {}
    for event in view.guard_events:
        if event.data["steps"]:
            asked.setdefault(event.span, []).append(event)
    for span, events in asked.items():
        exact = [(k, v) for k, v in events[0].data["moduli"] if v > 1 and not k.startswith("≥")]
        if not exact or any(e.data["taken"] or e.data["refused"] for e in events) or len(events) < 2 * exact[0][1]:
            continue
        if view.run.truncated and len(events) < 6 * exact[0][1]:
            continue
        if max((m.iteration for m in view.run.micros.values()), default=0) + 1 < exact[0][1]:
            continue  # the run's loops are shorter than a window
        keys = {key for e in events for key in e.data["keys"]}
        if any(map(partial(_counted_outside, view), keys)) or _drawn(view, events[0].data["keys"]):
            continue
        if not moves(view, events[0].text) or _other_mode(view, span):
            continue
        label, n = exact[0]
        named = label if label.isdigit() else f"`{label}` = {n}"
        yield Finding(
            CODE,
            span,
            f"the optimizer never steps: {len(events)} micro-batches pass and the guard with {named} is never true",
            window=n,
            applied="0",
            related=((view.run.backwards[0].span, "the gradients pile up here"),),
        )


def _other_mode(view: View, guard: Span) -> bool:
    """True for a guard that steps in another mode too, or asks for a mode by name that this run is none of.

    `(mode == "accum" and step % n == 0) or mode in ("each", "random")`: what is neither is no mode of the program's.
    """
    node = next((n for n in program_nodes(view) if isinstance(n, p.If) and n.span == guard), None)
    if node is None:
        return False
    if isinstance(node.test, p.BoolOp) and node.test.op == "or" and any(map(_asks_a_name, node.test.values)):
        return True
    asked = {p.text(part) for part in view.static.walk(node.test) if isinstance(part, p.Compare) and _asks_a_name(part)}
    return any(not taken and key in asked for key, taken in view.scenario.choices.items())


def _asks_a_name(test: p.Expr) -> bool:
    """`mode == "accum"`, `mode in ["each", "random"]`."""
    if not isinstance(test, p.Compare) or len(test.comparators) != 1:
        return False
    right = test.comparators[0]
    named = right.elts if isinstance(right, p.Sequence) else (right,)
    return all(isinstance(v, p.Const) and isinstance(v.value, str) for v in named)


def _short_inner_loops(view: View) -> Iterator[Finding]:
    """`for micro in range(1, N)`, or `range(N - 1)`, with losses divided by N."""
    seen: set[Span] = set()
    for ledger in view.ledgers:
        for step in view.steps(ledger)[1:3]:
            window = view.window(step)
            node = loop_around(view, window[-1]) if window else None
            if not isinstance(node, p.For) or not isinstance(node.iter, p.Call):
                continue
            bound = _longer(node.iter)
            if bound is None:
                continue
            weights = {view.coefficient(e).value for e in step.applied}
            if (
                len(weights) != 1
                or next(iter(weights)) * (len(window) + 1) != 1
                or node.span in seen
                or len(window) < 2
            ):
                continue
            seen.add(node.span)
            n = len(window) + 1
            yield Finding(
                CODE,
                node.span,
                f"the loop runs {len(window)} micro-batches, one less than the `{bound}` = {n} that the loss "
                "is divided by",
                step=step,
                window=n,
                related=view.places(step)[1:],
            )


def _longer(call: p.Call) -> str | None:
    """The N that a range stays one below: `range(1, N)`, `range(N - 1)`; None for any other iterable."""
    if terminal(call.func) not in {"range", "trange"} or len(call.args) not in {1, 2}:
        return None
    first, last = call.args[0].value, call.args[-1].value
    if len(call.args) == 2 and isinstance(first, p.Const) and first.value == 1:
        return p.text(last)
    short = isinstance(last, p.BinOp) and last.op == "-" and isinstance(last.right, p.Const) and last.right.value == 1
    from_zero = len(call.args) == 1 or (isinstance(first, p.Const) and first.value == 0)
    return p.text(last.left) if short and from_zero and isinstance(last, p.BinOp) else None


def _fault(view: View, ledger: OptimizerLedger, steps: list[Step], lengths: list[int], cadence: Cadence) -> str | None:
    n, label = cadence.n, cadence.label
    named = f"`{label}` = {n}" if not label.isdigit() else str(n)
    left = len(view.left(ledger))
    never_again = left > 2 * n and len(lengths) >= 1
    if never_again and getattr(view.run.optimizers.get(ledger.name), "engine", None) is not None:
        return None  # DeepSpeed's N is in a file of its own, and may be 1
    if never_again and len(lengths) <= 2:
        return f"the optimizer steps {_times(len(lengths))} and never again: {left} micro-batches follow without a step"
    if not any(lengths) or all(x == n for x in lengths):
        return None  # where every step finds its gradients cleared, other code has filled them
    inside = {x for x, s in zip(lengths, steps, strict=True) if not view.flushes(s)}
    if len(inside) == 1 and min(inside) > n and len({*lengths}) > 1:
        return f"windows have {_plural(min(inside))} instead of {named}, but for what is flushed after the loop"
    epochs = _epoch_starts(view, steps)
    rest = [x for k, x in enumerate(lengths) if k not in epochs]
    firsts = [x for k, x in enumerate(lengths) if k in epochs]
    if rest and all(x == n for x in rest) and firsts:
        wrong = [x for x in firsts if x != n]
        once = len(firsts) == 1 or firsts[1:] == [n] * (len(firsts) - 1)
        if not once and len(set(firsts)) > 1:
            return f"the first windows of the epochs have {', '.join(map(str, firsts[:4]))} micro-batches instead of {named}"
        every = "the first window" if once else "the first window of each epoch"
        return f"{every} has {_plural(wrong[0])} instead of {named}: the guard is off by {_off(wrong[0], n)}"
    if len(lengths) == 1:
        return f"the first window has {_plural(lengths[0])} instead of {named}"
    if len(set(lengths)) == 1:
        which = (
            "the first window of each epoch" if not rest and all(_goes_on(view, s) for s in steps) else "every window"
        )
        return f"{which} has {_plural(lengths[0])} instead of {named}"
    if len(lengths) > 2 and len(set(lengths[1:])) == 1 and lengths[1] != n:
        return f"windows have {_plural(lengths[1])} instead of {named} (the first has {lengths[0]})"
    if all(x == n for x in lengths[:6]):
        return None  # a guard that is wrong shows it in the first windows
    shown = ", ".join(map(str, lengths[:6]))
    return f"windows have {shown} micro-batches instead of {named} each"


def _epoch_starts(view: View, steps: list[Step]) -> set[int]:
    """Indices of the windows that hold the first micro-batch of a run of the loop."""
    out: set[int] = set()
    seen: set[int] = set()
    for index, step in enumerate(steps):
        for token in step.window:
            micro = view.micro(token)
            if micro is not None and micro.serial not in seen:
                seen.add(micro.serial)
                out.add(index)
    return out


def _goes_on(view: View, step: Step) -> bool:
    """True when the loop that a window begins has micro-batches beyond it: other windows may be of another length."""
    last = view.micro(step.window[-1]) if step.window else None
    return last is not None and any(
        m.serial == last.serial and m.iteration > last.iteration for m in view.run.micros.values()
    )


def _off(length: int, n: int) -> str:
    return "one" if abs(length - n) == 1 or length == 1 else str(abs(length - n))


def _plural(count: int) -> str:
    return f"{count} micro-batch{'es' if count != 1 else ''}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
