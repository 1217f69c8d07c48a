"""Which runs a file needs: the witnesses for N and loader lengths, the configurations, conditions that change."""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property

from galint import program as p
from galint.run.entries import Entry
from galint.run.facts import RunResult
from galint.run.fitting import Fitting
from galint.run.frame import Frame, RunOver, UserRaise
from galint.run.machine import FOREIGN
from galint.run.reach import BACKWARD
from galint.run.scenario import Choice, Scenario
from galint.run.static import Static
from galint.run.summary import (
    both,
    guards_of,
    in_vain,
    loops_of,
    multiple,
    negation,
    one_by_one,
    signature,
    undecided,
)
from galint.run.toward import Shown

_RUN_FUEL = 60_000
_FILE_FUEL = 400_000
_RUN_SITES = 8
"""Backward calls in a file that one run's budget is for; with more of them it grows."""
_FILE_SITES = 40
"""Backward calls in a file that all runs' budget is for."""
_SITE_FUEL = 5_000
_FLIPS = 10
_BEHIND = 6
"""Conditions that are flipped for what they give to others, on the way to backward calls that no run met."""
_RARES = 3


@dataclass
class EntryRuns:
    """The runs of one entry. `base` has loaders that N divides, `tail` loaders it does not.

    The runs that only confirm what these two show are made when they are asked for.
    """

    entry: Entry
    base: RunResult
    tail: RunResult
    later: Later | None = None
    flips: list[tuple[str, RunResult]] = field(default_factory=list)
    rares: list[tuple[str, RunResult]] = field(default_factory=list)
    """Runs in which a data-dependent condition changed once, at the first window's last micro-batch."""
    sides: list[tuple[str, EntryRuns]] = field(default_factory=list)
    """The flips that reach loops, or ends of windows, which `base` does not, with tails of their own."""

    @cached_property
    def other(self) -> RunResult:
        """As `base` with another N."""
        return self.later.other() if self.later is not None else self.base

    @cached_property
    def other_tail(self) -> RunResult:
        """As `tail` with another N."""
        return self.later.other_tail() if self.later is not None else self.base

    @cached_property
    def third(self) -> RunResult | None:
        """As `base` with a third N, for findings that another N happens to hide."""
        return self.later.third() if self.later is not None else None

    @cached_property
    def beyond(self) -> RunResult | None:
        """A run with loaders longer than a bound at which the loop is left; None without such a bound."""
        return self.later.beyond() if self.later is not None and self.later.bound else None

    @cached_property
    def other_beyond(self) -> RunResult | None:
        """As `beyond` with another N."""
        return self.later.other_beyond() if self.later is not None and self.later.bound else None

    def made(self) -> list[RunResult]:
        """Every run that was made so far."""
        names = ("other", "other_tail", "beyond", "other_beyond")
        witnesses = [self.__dict__[name] for name in names if self.__dict__.get(name) is not None]
        sides = [run for _, side in self.sides for run in side.made()]
        return [self.base, self.tail, *witnesses, *(run for _, run in (*self.flips, *self.rares)), *sides]


@dataclass(slots=True)
class Exploration:
    """Everything the runs of one file showed."""

    static: Static
    entries: list[EntryRuns] = field(default_factory=list)
    unreached: list[tuple[p.FunctionDef | None, str]] = field(default_factory=list)
    spent: int = 0


class Explorer(Fitting):
    """Runs a program's entries under several scenarios within a budget."""

    def explore(self) -> Exploration:
        """Run every entry that reaches a backward."""
        self.context = copy_context()  # what is configured now holds for the runs that are made later
        out = Exploration(self.static)
        executed: set[int] = set()
        reached: set[int] = set()
        work = self._entries()
        while work:
            entry = work.pop(0)
            done = entry.inner or entry.function
            if done is not None and id(done) in executed and not entry.passed:
                continue
            runs = self._run_entry(entry)
            if runs is None:
                continue
            work = self._after(entry, runs.base) + work
            for result in (runs.base, *(r for _, r in runs.flips)):
                if any(ledger.steps for ledger in result.ledgers.values()) or not result.backwards:
                    executed |= result.executed
                reached |= {id(b) for b in result.backwards}
            if runs.base.backwards or any(r.backwards for _, r in runs.flips) or in_vain(runs.base):
                out.entries.append(runs)
            elif entry.function is not None and entry.inner is None and BACKWARD in self._own(entry.function):
                out.unreached.append((entry.function, runs.base.stopped or "no backward ran"))
            if self.spent > self._file_fuel:
                break
        out.spent = self.spent
        return out

    def _after(self, entry: Entry, run: RunResult) -> list[Entry]:
        """The entry once more without the loop that its run ended in, for the loops that stand after that one."""
        loop = run.facts.get("enough_of")
        owner = entry.function.body if entry.function is not None else self.program.body
        if loop is None or not self._trains_after(owner, loop):
            return []
        return [Entry(entry.function, entry.owner, entry.inner, passed=entry.passed | {loop})]

    def _trains_after(self, body: p.Body, loop: p.Node) -> bool:
        """Whether a block goes on with another backward after a loop in it."""
        blocks = (s for s in body if not isinstance(s, (p.FunctionDef, p.ClassDef)) and s.span.row < FOREIGN)
        for stmt in blocks:
            if stmt is loop or any(n is loop for n in self.static.walk(stmt)):
                inner = (getattr(stmt, "body", ()), getattr(stmt, "orelse", ())) if stmt is not loop else ()
                return any(BACKWARD in self.static.tags(s) for s in blocks) or any(
                    self._trains_after(block, loop) for block in inner
                )
        return False

    # --- the runs of one entry -----------------------------------------------------------------

    def _run_entry(self, entry: Entry) -> EntryRuns | None:
        scenario = Scenario()
        first = self.run(entry, scenario)
        if not first.backwards:
            flipped = (
                self._with_bounds(entry, scenario, first)
                or self._toward_training(entry, scenario, first)
                or self._past_checks(entry, scenario, first)
                or self._once_ready(entry, scenario)
            )
            if flipped is None:
                base, scenario = self._adapted(entry, first, scenario)
                if not in_vain(base):
                    return EntryRuns(entry, first, first)
                return self._with_tail(entry, base, scenario, self.window_of(base, scenario))
            first, scenario = flipped
        if first.facts.get("on_none"):
            first, scenario = self._toward_training(entry, scenario, first, avoid="on_none") or (first, scenario)
        base, scenario = self._adapted(entry, first, scenario)
        if self._misses_steps(entry, base):
            trains = self._toward_training(entry, scenario, base, steps=True)
            base, scenario = self._adapted(entry, *trains) if trains is not None else (base, scenario)
        n = self.window_of(base, scenario)
        runs = self._with_tail(entry, base, scenario, n)
        if any(ledger.steps for ledger in base.ledgers.values()) or base.backwards:
            self._flip(entry, runs, scenario)
            self._rare(entry, runs, scenario, n)
        return runs

    def _adapted(self, entry: Entry, run: RunResult, scenario: Scenario) -> tuple[RunResult, Scenario]:
        """The run of the scenario that a first run asks for."""
        scenario = self._adapt(run, scenario)
        base = self.run(entry, scenario)
        again = self._adapt(base, scenario)
        if again.values != scenario.values or again.length != scenario.length:
            scenario = again
            base = self.run(entry, scenario)
        return base, scenario

    def _with_tail(self, entry: Entry, base: RunResult, scenario: Scenario, n: int) -> EntryRuns:
        if one_by_one(base):
            return EntryRuns(entry, base, base, Later(self, entry, base, scenario, 0))
        # A loop that is left at a bound has its tail there, if the loader is longer.
        beyond = max((b + n + 1 for b in base.facts.get("break_bounds", ())), default=0)
        tail = self.run(entry, scenario.variant(length=2 * n + max(1, n // 2)))
        return EntryRuns(entry, base, tail, Later(self, entry, base, scenario, beyond))

    def _rare(self, entry: Entry, runs: EntryRuns, scenario: Scenario, n: int) -> None:
        """Take data-dependent branches that leave the loop body once, on the micro-batch that should step."""
        keys = [c.key for c in runs.base.choices.values() if c.data and c.relevant]
        mark = signature(runs.base)
        for key in keys[:_RARES]:
            result = self.run(entry, scenario.variant(rare=key, rare_at=n - 1))
            if result.backwards and signature(result) != mark:
                runs.rares.append((key, result))

    def _flip(self, entry: Entry, runs: EntryRuns, scenario: Scenario) -> None:
        """Flips of the conditions that matter: each alone, or with the flip that leads to it."""
        done: set[str] = set(scenario.choices)
        shown = Shown({signature(runs.base)}, loops_of(runs.base) | guards_of(runs.base))
        work: list[tuple[Choice, dict[str, bool]]] = [(c, {}) for c in undecided(runs.base)]
        while work and len(done) < _FLIPS + len(scenario.choices) and self.spent < self._file_fuel:
            choice, led = work.pop(0)
            if choice.key in done:
                continue
            done.add(choice.key)
            result = self._flipped(entry, runs, scenario, led | {choice.key: not choice.taken}, shown)
            if result is not None:
                beyond = led | {choice.key: not choice.taken}
                known = runs.base.choices
                work += [(c, {} if c.key in known else beyond) for c in undecided(result) if c.key not in done]
        names = self.names_before(entry, runs.made()) | runs.base.facts.get("skipped_losses", set())
        work = [(c, {}) for c in self.giving(names, runs.base)]
        sides = runs.base.facts.get("loss_sides", ())
        work += [(c, {}) for c in runs.base.choices.values() if c.key in sides]
        tried = 0
        while work and tried < _BEHIND and self.spent < self._file_fuel:
            choice, led = work.pop(0)
            if choice.key in done:
                continue
            done.add(choice.key)
            tried += 1
            taken = led | {choice.key: not choice.taken}
            self._flipped(entry, runs, scenario, taken, shown)
            result = self.run(entry, scenario.variant(choices=taken))
            work += [(c, taken) for c in self.giving(names, result) if c.key not in runs.base.choices]

    def _flipped(
        self, entry: Entry, runs: EntryRuns, scenario: Scenario, taken: dict[str, bool], shown: Shown
    ) -> RunResult | None:
        """The run with some choices taken the other way; None where it shows nothing new."""
        flipped = scenario.variant(choices=taken)
        result = self.run(entry, flipped)
        fitted = self._adapt(result, flipped)
        if fitted.values.keys() <= scenario.values.keys():
            fitted = flipped
        else:  # only this side of the condition accumulates, and not by default
            result = self.run(entry, fitted)
        mark = signature(result)
        if mark in shown.marks or not result.backwards:
            return None
        if result.facts.get("on_none") and not runs.base.facts.get("on_none"):
            return None  # the program would have raised: it calls a method of None there
        shown.marks.add(mark)
        label = both(key if is_true else negation(key) for key, is_true in taken.items())
        runs.flips.append((label, result))
        places = loops_of(result) | guards_of(result)
        if places - shown.places and self.spent < self._file_fuel:
            shown.places |= places
            runs.sides.append((label, self._with_tail(entry, result, fitted, self.window_of(result, fitted))))
        return result

    # --- one run -------------------------------------------------------------------------------

    def run(self, entry: Entry, scenario: Scenario) -> RunResult:
        """One abstract run; a scenario that was run before is not run again."""
        key = repr(scenario)
        known = entry.known.get(key)
        if known is None:
            known = entry.known[key] = self.context.run(self._run, entry, scenario)
        return known

    @cached_property
    def _sites(self) -> int:
        """How many calls of a backward the linted file holds."""
        return sum(
            isinstance(call.func, p.Attr) and call.func.name in {"backward", "manual_backward"}
            for call in self.static.calls
            if call.span.row < FOREIGN
        )

    @cached_property
    def _file_fuel(self) -> int:
        return _FILE_FUEL + _SITE_FUEL * max(self._sites - _FILE_SITES, 0)

    def _run(self, entry: Entry, scenario: Scenario) -> RunResult:
        many = self._sites if self._sites > _RUN_SITES else 0  # loops in a row take their turns in one run
        fuel = _RUN_FUEL + _SITE_FUEL * many
        machine = self.machine(self.static, scenario, fuel, **self.options)
        # A joined condition that is chosen decides its parts, also those that are asked before it.
        machine.result.facts["parts"] = {k: v for k, v in self._wholes.items() if k in scenario.choices}
        n = max(scenario.window, scenario.length)
        machine.max_backwards = max(48, 6 * n, 2 * n * many)
        machine.max_steps = max(machine.max_steps, 8 * many)
        machine.passed = entry.passed
        frame = Frame(None)
        machine.prepare(frame)
        try:
            if entry.function is None:
                machine.run_body(self.program.body, frame)
            else:
                self._call_entry(machine, entry, frame)
        except RunOver as over:
            machine.result.stopped = over.reason
            machine.result.truncated = True
            machine.result.ended_in_loop = bool(machine.loops)
        except UserRaise as raised:
            machine.result.stopped = "" if raised.name == "SystemExit" else f"it raises {raised.name}"
            machine.result.truncated = True
        except RecursionError:
            machine.result.stopped = "the code nests too deeply"
            machine.result.truncated = True
        machine.settle_micros()
        machine.result.fuel = fuel - machine.fuel
        machine.result.facts["from_module"] = entry.function is None
        self.spent += machine.result.fuel
        self._wholes |= machine.result.facts["parts"]
        machine.result.facts["ancestors"] = machine.ancestors
        return machine.result


class Later:
    """The runs of an entry with another N, and those beyond a bound: only findings ask for them."""

    def __init__(self, explorer: Explorer, entry: Entry, base: RunResult, scenario: Scenario, bound: int) -> None:
        self._explorer = explorer
        self._entry = entry
        self._base = base
        self._scenario = scenario
        self.bound = bound

    def _run(self, scenario: Scenario) -> RunResult:
        return self._explorer.run(self._entry, scenario)

    @cached_property
    def _other(self) -> tuple[RunResult, Scenario, int]:
        """The run with another N, its scenario and that N."""
        smaller = self._explorer._other(self._base, self._scenario)
        other = self._run(smaller)
        m = self._explorer.window_of(other, smaller)
        if smaller.length % max(m, 1):
            smaller = smaller.variant(length=multiple(m))
            other = self._run(smaller)
        return other, smaller, m

    def other(self) -> RunResult:
        """Another N, by which the loaders' length can be divided."""
        return self._other[0]

    def other_tail(self) -> RunResult:
        """Another N and a short last window."""
        _, smaller, m = self._other
        return self._run(smaller.variant(length=2 * m + max(1, m // 2)))

    def beyond(self) -> RunResult:
        """Loaders that do not end before the bound."""
        return self._run(self._scenario.variant(length=self.bound))

    def other_beyond(self) -> RunResult:
        """As `beyond` with another N."""
        return self._run(self._other[1].variant(length=self.bound))

    def third(self) -> RunResult:
        """A third N, an even one."""
        values = {label: 6 for label, value in self._explorer._soft_keys(self._base).items() if value > 1}
        return self._run(self._scenario.variant(window=6, values=values, length=12))
