"""A run as the checks look at it: windows, N, guards, the formulas."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from galint import program as p
from galint.ledger import Coefficient, Entry, Guard, OptimizerLedger, Step, formula, mean_formula, plain, unsigned
from galint.run.facts import BackwardFact, Event, Micro, RunResult
from galint.run.names import ONE_RANK
from galint.run.nodes import path_terminal
from galint.run.scenario import Scenario
from galint.run.static import Static
from galint.source import Span

_TWINS = 3
"""So many optimizers of one name that step once each are one optimizer that the run met anew each time."""


@dataclass(slots=True)
class Cadence:
    """How an optimizer's steps are gated: N as the guard says it, and the guard."""

    n: int
    label: str
    guard: Guard | None
    ambiguous: bool = False
    """The number is compared with and spelled out, so the window may be one longer than it."""


class View:
    """One run, with the questions that several checks ask."""

    def __init__(self, run: RunResult, static: Static, program: p.Program) -> None:
        self.run = run
        self.static = static
        self.program = program
        self._cadences: dict[int, Cadence | None] = {}

    @property
    def scenario(self) -> Scenario:
        """The run's scenario."""
        return self.run.scenario

    @property
    def engine_on(self) -> bool:
        """Whether DeepSpeed was chosen: its engine runs the backwards, divides, scales and steps.

        What the program does by hand with these belongs to runs without it.
        """
        return any("deepspeed" in key.lower() and taken for key, taken in self.scenario.choices.items())

    @cached_property
    def ledgers(self) -> list[OptimizerLedger]:
        """Ledgers of optimizers that really step."""
        stepping = [ledger for ledger in self.run.ledgers.values() if any(s.window or s.applied for s in ledger.steps)]
        alike = Counter(plain(ledger.name) for ledger in stepping if len(ledger.steps) == 1)
        return [k for k in stepping if len(k.steps) > 1 or alike[plain(k.name)] < _TWINS]

    @cached_property
    def known(self) -> dict[str, Fraction]:
        """Settings whose number the run fixed."""
        return {
            k: Fraction(v)
            for k, v in self.run.known.items()
            if isinstance(v, (int, Fraction)) and not isinstance(v, bool)
        }

    def coefficient(self, entry: Entry) -> Coefficient:
        """An entry's coefficient with everything known put in."""
        return entry.coefficient.substitute(self.known)

    def micro(self, token: int) -> Micro | None:
        """Where a micro-batch stands."""
        return self.run.micros.get(token)

    def steps(self, ledger: OptimizerLedger) -> list[Step]:
        """Steps that had something to apply."""
        return [s for s in ledger.steps if s.window or s.applied]

    @cached_property
    def _one_after_the_other(self) -> bool:
        """True when all optimizers are one name, bound anew by each call: the next begins where the last has ended."""
        if len({re.sub(r"#\d+", "#", plain(ledger.name)) for ledger in self.ledgers}) != 1:  # of objects without a name
            return False
        spans = sorted((ledger.steps[0].seq, ledger.steps[-1].seq) for ledger in self.ledgers if ledger.steps)
        return all(end < start for (_, end), (start, _) in itertools.pairwise(spans))

    def left(self, ledger: OptimizerLedger) -> list[int]:
        """The micro-batches that wait for a step when the run ends, without those that a later call's optimizer applied."""
        name = plain(ledger.name)
        later = {
            t for o in self.ledgers if o is not ledger and plain(o.name) == name for s in o.steps for t in s.window
        }
        return [t for t in dict.fromkeys(ledger.window) if t not in later]

    def stalled(self, ledger: OptimizerLedger) -> Step | None:
        """The window that waits for a step which never comes, as a step at the guard would apply it.

        None where steps go on. GA401 speaks of such a guard; how the losses are scaled is a question of its own.
        """
        cadence, steps = self.cadence(ledger), self.steps(ledger)
        if cadence is None or cadence.n < 2 or len(steps) > 2:
            return None
        waiting = self.left(ledger)
        if len(waiting) <= 2 * cadence.n:
            return None
        window = waiting[: cadence.n]
        held = [e for e in ledger.pending if e.micro in window and not e.applied]
        last = steps[-1]
        return Step(ledger.name, last.span, last.seq, held, [], [], window, [], last.guards, last.position)

    def lone(self, ledger: OptimizerLedger) -> bool:
        """True when no other optimizer could own the gradients, or the code shows who owns them."""
        if len(self.ledgers) <= 1 or self._one_after_the_other:
            return True
        if not self.together and any(self._share(ledger, other) for other in self.ledgers if other is not ledger):
            return False  # each has its part of one module's parameters
        return all(e.sure for s in ledger.steps for e in s.applied) and all(
            e.sure for s in ledger.steps for e, _ in s.lost
        )

    def _share(self, one: OptimizerLedger, other: OptimizerLedger) -> bool:
        owned: list[frozenset[int]] = [
            getattr(self.run.optimizers.get(k.name), "modules", frozenset()) for k in (one, other)
        ]
        return bool(owned[0] & owned[1])

    @cached_property
    def together(self) -> bool:
        """True when all optimizers step together, at one guard: whose the gradients are changes no window."""
        # A condition without a number in it, such as the epoch from which a part is trained, changes no window.
        return (
            len(
                {
                    tuple((tuple(g.span for g in s.guards if g.moduli), tuple(s.window)) for s in k.steps)
                    for k in self.ledgers
                }
            )
            == 1
        )

    def window(self, step: Step) -> list[int]:
        """The micro-batches of a step's window, without those that were dropped after their loop had ended."""
        if not self.repeats(step):
            return list(dict.fromkeys(step.window))[-1:]
        dropped: set[int] = {t for t in step.window if t in self._foreign(step)}
        for entry, mark in step.lost:
            micro = self.micro(entry.micro)
            if micro is not None and micro.loop is not None:
                if not any(span == micro.loop and serial == micro.serial for span, serial, _ in mark.where):
                    dropped.add(entry.micro)
        dropped |= self.given_up(step)
        return [t for t in dict.fromkeys(step.window) if t not in dropped]

    def flushes(self, step: Step) -> bool:
        """Whether a step comes after the loop of its window's last micro-batch, for what the loop has left."""
        last = self.micro(step.window[-1]) if step.window else None
        return last is not None and len(step.position) < len(last.path)

    def given_up(self, step: Step) -> frozenset[int]:
        """Micro-batches of whole windows that were cleared because a bound besides N kept the step back, a first step
        that is left out for one.
        """
        if not step.lost:
            return frozenset()
        exact = {g.span for g in step.guards if any(v > 1 and not label.startswith("≥") for label, v in g.moduli)}
        bounds = {
            g.span: g.negated
            for g in step.guards
            if g.moduli and all(label.startswith("≥") and (exact or v < 1) for label, v in g.moduli)
        }
        if not bounds:
            return frozenset()
        kept = {e.micro for e in self.guard_events if e.span in bounds and e.data["taken"] == bounds[e.span]}
        ended = {e.micro for e in self.guard_events if e.span in exact and e.data["taken"]} if exact else kept
        return frozenset(e.micro for e, mark in step.lost if mark.micro in kept & ended)

    @cached_property
    def _shared(self) -> dict[str, frozenset[Span]]:
        """Optimizer → backward calls that serve another optimizer, where it has calls of its own (GAN losses)."""
        reach: dict[Span, set[str]] = {}
        for backward in self.run.backwards:
            reach.setdefault(backward.span, set()).update(map(plain, backward.optimizers))
        names = {plain(ledger.name) for ledger in self.ledgers}
        out: dict[str, frozenset[Span]] = {}
        for name in names:
            mine = {span for span, who in reach.items() if name in who}
            own = {span for span in mine if not (reach[span] & names) - {name}}
            out[name] = frozenset(mine - own) if own else frozenset()
        return out

    def shared(self, ledger: OptimizerLedger) -> frozenset[Span]:
        """Backward calls that serve another optimizer, where this one has calls of its own."""
        return self._shared.get(plain(ledger.name), frozenset())

    def repeats(self, step: Step) -> bool:
        """False where several optimizers share the losses and no backward call of the window runs a second time:
        the losses of a generator and a discriminator are no micro-batches of one large batch.
        """
        if len(self.ledgers) < 2:
            return True
        entries = [*step.applied, *(e for e, _ in step.lost)]
        calls = {(e.span, e.seq) for e in entries}
        return len({span for span, _ in calls}) < len(calls) or len({e.micro for e in entries}) < 2

    def _foreign(self, step: Step) -> set[int]:
        """Micro-batches of a window that only another optimizer's backward contributed to."""
        shared = self._shared.get(plain(step.optimizer), frozenset())
        if not shared:
            return set()
        entries = [*step.applied, *(e for e, _ in step.lost)]
        own = {e.micro for e in entries if e.span not in shared}
        return {e.micro for e in entries if e.span in shared} - own

    # --- N -------------------------------------------------------------------------------------

    def cadence(self, ledger: OptimizerLedger) -> Cadence | None:
        """N as the step's guard spells it; None when no number gates the steps."""
        if id(ledger) not in self._cadences:
            self._cadences[id(ledger)] = self._cadence(ledger)
        return self._cadences[id(ledger)]

    def _cadence(self, ledger: OptimizerLedger) -> Cadence | None:
        numbers: Counter[tuple[str, int]] = Counter()
        guards: dict[tuple[str, int], Guard] = {}
        for step in self.steps(ledger):
            for guard in reversed(step.guards):
                usable = [(k, v) for k, v in guard.moduli if 1 <= v <= 4096 and not _counts_ranks(k)]
                exact = [u for u in usable if not u[0].startswith("≥")] or usable
                if exact and self._asked_per_micro(guard):
                    mark = exact[0]
                    numbers[mark] += 1
                    guards.setdefault(mark, guard)
                    break
        if not numbers:
            return None
        mark = numbers.most_common(1)[0][0]
        label = self.run.facts.get("spelling", {}).get(mark[0].lstrip("≥"), mark[0].lstrip("≥"))
        return Cadence(mark[1], label, guards[mark], mark[0].startswith("≥") and label.isdigit())

    def _asked_per_micro(self, guard: Guard) -> bool:
        """True when the guard is asked about once a micro-batch; asked once a window, its number counts windows.

        Only the micro-batches of the loops it is asked in count: several loops may train one after the other.
        """
        asked = self._askings.get(guard.span)
        if asked is None:
            return True
        tops = {self.top_of(token) for token in asked}
        if None in tops:
            return len(asked) * 2 > len(self.run.micros)
        return len(asked) * 2 > sum(self._under_top[top] for top in tops if top is not None)

    def top_of(self, token: int) -> Span | None:
        """The outermost loop around a micro-batch."""
        return self._micro_tops.get(token)

    @cached_property
    def _askings(self) -> dict[Span, list[int]]:
        """Guard → the iterations in which it was asked."""
        out: dict[Span, list[int]] = {}
        for event in self.guard_events:
            out.setdefault(event.span, []).append(event.micro)
        return out

    @cached_property
    def _micro_tops(self) -> dict[int, Span]:
        """Micro-batch → the outermost loop around it."""
        return {token: micro.path[0][0] for token, micro in self.run.micros.items() if micro.path}

    @cached_property
    def _under_top(self) -> Counter[Span]:
        """How many micro-batches each outermost loop has."""
        return Counter(self._micro_tops.values())

    @cached_property
    def guard_events(self) -> list[Event]:
        """Every evaluation of a condition that gates a step and has a number in it."""
        return [e for e in self.run.events if e.kind == "guard"]

    def accumulates(self, ledger: OptimizerLedger) -> bool:
        """True when some window holds more than one micro-batch."""
        return any(len(self.window(s)) > 1 for s in self.steps(ledger))

    def n_keys(self, ledger: OptimizerLedger) -> frozenset[str]:
        """Spellings that stand for N: the guard's number, the inner loop's length."""
        out: set[str] = set()
        for step in self.steps(ledger):
            for guard in step.guards:
                exact = {label for label, _ in guard.moduli if not label.startswith("≥")}
                out |= exact or {label[1:] for label, _ in guard.moduli}
        out |= {k for k, role in self.run.roles.items() if role == "window"}
        out |= set(self.run.facts.get("window_keys", ()))
        return frozenset(k for k in out if not k.isdigit())

    # --- formulas ------------------------------------------------------------------------------

    def weights(self, step: Step) -> dict[int, Coefficient]:
        """Position in the window → coefficient of the micro-batch's own mean loss."""
        order = {token: k for k, token in enumerate(dict.fromkeys(step.window), start=1)}
        out: dict[int, Coefficient] = {}
        for entry in step.applied:
            position = order.get(entry.micro)
            if position is not None and position not in out:
                out[position] = self.coefficient(entry)
        return dict(sorted(out.items()))

    def applied(self, step: Step) -> str:
        """The gradient a step applies, as a formula."""
        text = formula(unsigned(self.weights(step)))
        if step.carried:
            count = len({e.micro for e in step.carried})
            text += f" + {count} stale gradient{'s' if count > 1 else ''}"
        return text

    def expected(self, step: Step, n: int = 0) -> str:
        """The large batch's gradient over the window."""
        return mean_formula(n or len(dict.fromkeys(step.window)))

    # --- places --------------------------------------------------------------------------------

    def loop_of(self, token: int) -> Span | None:
        """The header of a micro-batch's loop."""
        micro = self.micro(token)
        return micro.loop if micro else None

    def backwards(self) -> list[BackwardFact]:
        """All backward calls of the run."""
        return self.run.backwards

    def places(self, step: Step) -> tuple[tuple[Span, str], ...]:
        """The loop, the guard and the step, for the diagnostic's related places."""
        out: list[tuple[Span, str]] = []
        if self.run.facts.get("driven"):
            return ((step.span, self.run.facts["driven"]),)
        loop = self.loop_of(step.window[-1]) if step.window else None
        if loop is not None:
            out.append((loop, "the micro-batch loop"))
        guard = next((g for g in reversed(step.guards) if g.moduli), None)
        if guard is not None:
            out.append((guard.span, "the step's guard"))
        out.append((step.span, "the optimizer step"))
        return tuple(out)


_PLAIN = re.compile(r"≥?[\w.]+")


def _counts_ranks(label: str) -> bool:
    """True for a number of ranks, which is no N: `if failed == world_size: return`."""
    return _PLAIN.fullmatch(label) is not None and ONE_RANK.search(path_terminal(label))
