"""Ways to a training that a first run does not meet: conditions taken the other way, exceptions passed over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from galint import program as p
from galint.run.entries import Entry
from galint.run.entry_calls import EntryCalls
from galint.run.facts import RunResult
from galint.run.machine import FOREIGN
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD, STEP
from galint.run.scenario import Choice, Scenario
from galint.run.unknowns import LIMIT
from galint.source import Span

_TOWARD = 12
"""How many conditions are flipped, one at a time, on the way to a backward."""


class Toward(EntryCalls):
    """Finds what to change so that an entry trains."""

    # The layer above fills this in.
    def run(self, entry: Entry, scenario: Scenario) -> RunResult:
        """One abstract run."""
        raise NotImplementedError

    def _misses_steps(self, entry: Entry, run: RunResult) -> bool:
        """True where a run holds backwards and no step, though code that runs backward outside of it steps: it may have
        met a validation that runs backward too."""
        if any(ledger.steps for ledger in run.ledgers.values()):
            return False
        top = entry.function
        tags = self.static.tags(top) if top is not None else self.static.body_tags(self.program.body)
        return STEP in tags

    def _toward_training(
        self, entry: Entry, scenario: Scenario, first: RunResult, avoid: str = "", *, steps: bool = False
    ) -> tuple[RunResult, Scenario] | None:
        """Flip the choices made, latest first, until a backward (or a step) runs and the fact to avoid is gone."""
        made = [(key, choice) for key, choice in reversed(first.choices.items()) if not choice.data]
        past = first.facts.get("past_backward", ())
        for key, choice in sorted(made, key=lambda item: (item[0] not in past, not item[1].relevant))[:_TOWARD]:
            changed = scenario.variant(choices={key: not choice.taken})
            result = self.run(entry, changed)
            if not result.backwards and result.stopped.startswith("it raises") and not scenario.onward:
                changed = changed.variant(onward=True)  # a check of the arguments stands on the way
                result = self.run(entry, changed)
            trains = any(ledger.steps for ledger in result.ledgers.values()) if steps else bool(result.backwards)
            if trains and not result.facts.get(avoid):
                return result, changed
        return None

    def _with_bounds(self, entry: Entry, scenario: Scenario, first: RunResult) -> tuple[RunResult, Scenario] | None:
        """A run in which the numbers of steps that are none by default are given: `while step < args.max_steps`."""
        off: set[str] = first.facts.get("off", set())
        if not off:
            return None
        given = scenario.variant(values=dict.fromkeys(off, LIMIT))
        result = self.run(entry, given)
        return (result, given) if result.backwards else self._toward_training(entry, given, result)

    def _past_checks(self, entry: Entry, scenario: Scenario, first: RunResult) -> tuple[RunResult, Scenario] | None:
        """A run past the exceptions that end every other one before it trains."""
        if not first.stopped.startswith("it raises"):
            return None
        onward = scenario.variant(onward=True)
        result = self.run(entry, onward)
        if result.backwards:
            return result, onward
        return self._toward_training(entry, onward, result)

    def _once_ready(self, entry: Entry, scenario: Scenario) -> tuple[RunResult, Scenario] | None:
        """A run in which there is enough to train with from the start: `if len(memory) > 5000:`."""
        ready = scenario.variant(ready=True)
        result = self.run(entry, ready)
        return (result, ready) if result.backwards else None

    def names_before(self, entry: Entry, runs: Iterable[RunResult]) -> set[str]:
        """The names that are asked before backward calls which no run met, in functions that ran."""
        made = list(runs)
        met = {b.span for run in made for b in run.backwards}
        ran = {function for run in made for function in run.executed}
        homes = [f for group in self.static.functions.values() for f in group if id(f) in ran or f is entry.function]
        missing = {
            call
            for call in self.static.calls
            if isinstance(call.func, p.Attr)
            and call.func.name in {"backward", "manual_backward"}
            and call.span.row < FOREIGN
            and call.span not in met
            and any(self.static.holds(home, call) for home in homes)
        }
        asked = (node for node in self.static.everything() if isinstance(node, p.If)) if missing else ()
        before = {
            name
            for node in asked
            if any(part in missing for stmt in (*node.body, *node.orelse) for part in self.static.walk(stmt))
            for name in self.static.names_in(node.test)
        }
        tops = homes if entry.function is not None else [*homes, *self.program.body]
        for node in {n for top in tops for n in self.static.walk(top) if isinstance(n, p.If)}:
            if any(self._passed_by(body, ran) for body in (node.body, node.orelse)):
                before.update(self.static.names_in(node.test))
        return before

    def _passed_by(self, body: p.Body, ran: set[int]) -> bool:
        """Whether a block calls a function of the file that runs backward, and no run has entered it."""
        called = {f for stmt in body for call in self.static.calls_in(stmt) for f in self.static.callees(call)}
        trains = [f for f in called if BACKWARD in self.static.tags(f)]
        return bool(trains) and not any(id(f) in ran for f in trains)

    def giving(self, names: set[str], run: RunResult) -> list[Choice]:
        """The conditions that do not matter by themselves, and decide what some names are given."""
        if not names:
            return []
        places = {c.span: c for c in run.choices.values() if not c.relevant and not c.data}
        return [
            places[node.span]
            for node in self.static.everything()
            if isinstance(node, p.If)
            and node.span in places
            and any(
                isinstance(part, p.Assign) and {terminal(t) for t in part.targets} & names
                for stmt in (*node.body, *node.orelse)
                for part in self.static.walk(stmt)
            )
        ]


@dataclass(slots=True)
class Shown:
    """What the runs of an entry have shown so far: their signatures, the loops they train in, what ends their windows."""

    marks: set[tuple[Any, ...]]
    places: set[Span]
