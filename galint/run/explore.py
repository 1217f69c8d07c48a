"""Which runs a file needs: its entry points, the witnesses for N and loader lengths, the configurations."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from galint import program as p
from galint.run.calls import Calls
from galint.run.facts import RunResult
from galint.run.frame import Frame, LoopFrame, RunOver, UserRaise
from galint.run.machine import FOREIGN
from galint.run.scenario import Choice, Scenario
from galint.run.static import BACKWARD, STEP, Static, terminal
from galint.run.values import Class, Function, Lit, Opaque, Value

_RUN_FUEL = 60_000
_FILE_FUEL = 400_000
_FLIPS = 10
_RARES = 3
_BATCH = re.compile(
    r"batch|data|input|sample|image|img|label|target|x$|y$|ids|text|prompt|chosen|rejected|loss|instruction|output",
    re.I,
)


@dataclass(slots=True)
class Entry:
    """Where a run starts: the module itself, a function, or a method."""

    function: p.FunctionDef | None
    owner: p.ClassDef | None = None

    @property
    def name(self) -> str:
        """For messages."""
        if self.function is None:
            return "the module"
        return f"{self.owner.name}.{self.function.name}" if self.owner else self.function.name


@dataclass(slots=True)
class EntryRuns:
    """The runs of one entry. `base` has loaders that N divides, `tail` loaders it does not, `other` another N."""

    entry: Entry
    base: RunResult
    tail: RunResult
    other: RunResult
    other_tail: RunResult
    flips: list[tuple[str, RunResult]] = field(default_factory=list)
    beyond: tuple[RunResult, RunResult] | None = None
    """Runs with loaders longer than a bound at which the loop is left, for two values of N."""
    third: Callable[[], RunResult] | None = None
    """Runs the entry with a third N, for findings that another N happens to hide."""
    rares: list[tuple[str, RunResult]] = field(default_factory=list)
    """Runs in which a data-dependent condition changed once, at the first window's last micro-batch."""


@dataclass(slots=True)
class Exploration:
    """Everything the runs of one file showed."""

    static: Static
    entries: list[EntryRuns] = field(default_factory=list)
    unreached: list[tuple[p.FunctionDef | None, str]] = field(default_factory=list)
    spent: int = 0


class Explorer:
    """Runs a program's entries under several scenarios within a budget."""

    def __init__(self, program: p.Program, static: Static, machine: type[Calls] = Calls, **options: Any) -> None:
        self.program = program
        self.static = static
        self.machine = machine
        self.options = options
        self.spent = 0

    def explore(self) -> Exploration:
        """Run every entry that reaches a backward."""
        out = Exploration(self.static)
        executed: set[int] = set()
        reached: set[int] = set()
        for entry in self._entries():
            if entry.function is not None and id(entry.function) in executed:
                continue
            runs = self._run_entry(entry)
            if runs is None:
                continue
            for result in (runs.base, *(r for _, r in runs.flips)):
                if any(ledger.steps for ledger in result.ledgers.values()) or not result.backwards:
                    executed |= result.executed
                reached |= {id(b) for b in result.backwards}
            if runs.base.backwards or any(r.backwards for _, r in runs.flips):
                out.entries.append(runs)
            elif entry.function is not None and BACKWARD in self._own(entry.function):
                out.unreached.append((entry.function, runs.base.stopped or "no backward ran"))
            if self.spent > _FILE_FUEL:
                break
        out.spent = self.spent
        return out

    def _own(self, func: p.FunctionDef) -> frozenset[str]:
        out: frozenset[str] = frozenset()
        for stmt in func.body:
            if not isinstance(stmt, p.FunctionDef | p.ClassDef):
                out |= self.static._own_tags(stmt)[0]
        return out

    def _entries(self) -> list[Entry]:
        """The module first, then roots that reach backward and step, then whatever holds a backward."""
        entries = [Entry(None)]
        trainers: list[p.FunctionDef] = []
        for group in self.static.functions.values():
            for func in group:
                if BACKWARD in self.static.tags(func) and func.span.row < FOREIGN:
                    trainers.append(func)
        called: dict[p.FunctionDef, int] = {}
        for func in trainers:
            for call in self.static.calls_in(func):
                for callee in self.static.callees(call):
                    if callee is not func:
                        called[callee] = called.get(callee, 0) + 1

        nested = self._nested()

        def rank(func: p.FunctionDef) -> tuple[int, int, int]:
            tags = self.static.tags(func)
            full = {BACKWARD, STEP} <= tags
            return (0 if full and func not in called else 1 if full else 2, func in nested, func.span.row)

        for func in sorted(trainers, key=rank):
            owner = self.static.method_of.get(func)
            if func in nested or (owner is None and func.name in {"closure"}):
                continue
            entries.append(Entry(func, owner))
        factories = {self._holder(func) for func in trainers if func in nested}
        entries += [
            Entry(func, self.static.method_of.get(func))
            for func in factories
            if func is not None and func not in trainers
        ]
        return entries

    def _holder(self, inner: p.FunctionDef) -> p.FunctionDef | None:
        """The outermost function that defines `inner`."""
        for stmt in self.program.body:
            tops = (
                [stmt] if isinstance(stmt, p.FunctionDef) else list(stmt.body) if isinstance(stmt, p.ClassDef) else []
            )
            for top in tops:
                if (
                    isinstance(top, p.FunctionDef)
                    and top is not inner
                    and any(n is inner for n in self.static.walk(top))
                ):
                    return top
        return None

    def _nested(self) -> set[p.FunctionDef]:
        """Functions defined inside other functions: they run only through those."""
        out: set[p.FunctionDef] = set()
        for group in self.static.functions.values():
            for func in group:
                for stmt in func.body:
                    for node in self.static.walk(stmt):
                        if isinstance(node, p.FunctionDef):
                            out.add(node)
        return out

    # --- one entry -----------------------------------------------------------------------------

    def _run_entry(self, entry: Entry) -> EntryRuns | None:
        scenario = Scenario()
        first = self.run(entry, scenario)
        if not first.backwards:
            flipped = self._toward_training(entry, scenario, first)
            if flipped is None:
                return EntryRuns(entry, first, first, first, first)
            first, scenario = flipped
        scenario = self._adapt(first, scenario)
        base = self.run(entry, scenario)
        again = self._adapt(base, scenario)
        if again.values != scenario.values or again.length != scenario.length:
            scenario = again
            base = self.run(entry, scenario)
        n = self.window_of(base, scenario)
        # A loop that is left at a bound has its tail there, if the loader is longer.
        beyond = max((b + n + 1 for b in base.facts.get("break_bounds", ())), default=0)
        tail = self.run(entry, scenario.variant(length=2 * n + max(1, n // 2)))
        smaller = self._other(base, scenario)
        other = self.run(entry, smaller)
        m = self.window_of(other, smaller)
        if smaller.length % max(m, 1):
            smaller = smaller.variant(length=_multiple(m))
            other = self.run(entry, smaller)
        other_tail = self.run(entry, smaller.variant(length=2 * m + max(1, m // 2)))
        runs = EntryRuns(entry, base, tail, other, other_tail)
        if beyond:
            runs.beyond = (self.run(entry, scenario.variant(length=beyond)), self.run(entry, smaller.variant(length=beyond)))
        runs.third = lambda: self._third(entry, base, scenario)
        if any(ledger.steps for ledger in base.ledgers.values()) or base.backwards:
            self._flip(entry, runs, scenario)
            self._rare(entry, runs, scenario, n)
        return runs

    def _rare(self, entry: Entry, runs: EntryRuns, scenario: Scenario, n: int) -> None:
        """Take data-dependent branches that leave the loop body once, on the micro-batch that should step."""
        keys = [c.key for c in runs.base.choices.values() if c.data and c.relevant]
        mark = signature(runs.base)
        for key in keys[:_RARES]:
            result = self.run(entry, scenario.variant(rare=key, rare_at=n - 1))
            if result.backwards and signature(result) != mark:
                runs.rares.append((key, result))

    def _toward_training(self, entry: Entry, scenario: Scenario, first: RunResult) -> tuple[RunResult, Scenario] | None:
        """No backward ran: flip the choices made, latest first, until one does."""
        for key, choice in list(reversed(first.choices.items()))[:6]:
            if choice.data:
                continue
            changed = scenario.variant(choices={key: not choice.taken})
            result = self.run(entry, changed)
            if result.backwards:
                return result, changed
        return None

    def window_of(self, run: RunResult, scenario: Scenario) -> int:
        """The N of a run: the modulus of its step guards, else the longest window."""
        best = 0
        for value in self._guard_numbers(run).values():
            if 1 < value <= 512:
                best = max(best, value)
        return best or scenario.window

    def _guard_numbers(self, run: RunResult) -> dict[str, int]:
        """Numbers in step guards: what counters are divided by, or compared with where nothing is divided."""
        exact: dict[str, int] = {}
        bounds: dict[str, int] = {}
        for moduli, _ in _moduli(run):
            for label, value in moduli:
                if label.startswith("≥"):
                    if "len(" not in label:
                        bounds[label[1:]] = value
                else:
                    exact[label] = value
        for event in run.events:
            if event.kind == "accumulate":
                exact["gradient_accumulation_steps"] = event.data["n"]
        return exact or bounds

    def _soft_keys(self, run: RunResult) -> dict[str, int]:
        """Settings with a default that take part in step guards, and their values."""
        out: dict[str, int] = {}
        numbers = self._guard_numbers(run)
        for moduli, keys in _moduli(run):
            for label, value in moduli:
                name = label.lstrip("≥")
                if name in keys and name in numbers:
                    out[name] = value
        return out

    def _adapt(self, run: RunResult, scenario: Scenario) -> Scenario:
        """Give a default N of 1 a real value, and fit the loader to a literal N."""
        values: dict[str, Any] = {}
        for label, value in self._soft_keys(run).items():
            if value <= 1 or value > 64:
                values[label] = scenario.window
        for key in self._ones(run):
            values.setdefault(key, scenario.window)
        changed = scenario.variant(values=values)
        n = 1
        for label, value in self._guard_numbers(run).items():
            number = values.get(label, value)
            if 1 < number <= 512:
                n = max(n, number)
        return changed.variant(length=_multiple(n if n > 1 else scenario.window))

    def _ones(self, run: RunResult) -> list[str]:
        """Settings whose default of 1 switches accumulation off (Accelerate's N, an inner loop's length)."""
        out: list[str] = []
        for event in run.events:
            if event.kind == "accumulate" and event.data["n"] == 1:
                out += event.data.get("keys", [])
        out += run.facts.get("odd_windows", [])
        return out

    def _other(self, run: RunResult, scenario: Scenario) -> Scenario:
        """The same with another N, where N is a setting and not a literal."""
        values = {label: 3 for label, value in self._soft_keys(run).items() if value > 1}
        for key in scenario.values:
            values.setdefault(key, 3)
        for key, role in run.roles.items():
            if role == "window":
                values.pop(key, None)
        literal = max((v for k, v in self._guard_numbers(run).items() if k.isdigit() and 1 < v <= 512), default=0)
        changed = scenario.variant(window=3, values=values)
        return changed.variant(length=_multiple(literal or 3))

    def _third(self, entry: Entry, base: RunResult, scenario: Scenario) -> RunResult:
        values = {label: 6 for label, value in self._soft_keys(base).items() if value > 1}
        return self.run(entry, scenario.variant(window=6, values=values, length=12))

    def _flip(self, entry: Entry, runs: EntryRuns, scenario: Scenario) -> None:
        """Single flips of the conditions that matter."""
        done: set[str] = set(scenario.choices)
        work: list[Choice] = [c for c in runs.base.choices.values() if c.relevant and not c.data]
        seen = {signature(runs.base)}
        while work and len(done) < _FLIPS + len(scenario.choices) and self.spent < _FILE_FUEL:
            choice = work.pop(0)
            if choice.key in done:
                continue
            done.add(choice.key)
            result = self.run(entry, scenario.variant(choices={choice.key: not choice.taken}))
            mark = signature(result)
            if mark in seen or not result.backwards:
                continue
            seen.add(mark)
            label = choice.key if not choice.taken else negation(choice.key)
            runs.flips.append((label, result))
            work += [c for c in result.choices.values() if c.relevant and not c.data and c.key not in done]

    # --- one run -------------------------------------------------------------------------------

    def run(self, entry: Entry, scenario: Scenario) -> RunResult:
        """One abstract run."""
        machine = self.machine(self.static, scenario, _RUN_FUEL, **self.options)
        n = max(scenario.window, scenario.length)
        machine.max_backwards = max(48, 6 * n)
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
        machine.result.fuel = _RUN_FUEL - machine.fuel
        machine.result.facts["from_module"] = entry.function is None
        self.spent += machine.result.fuel
        machine.result.facts["ancestors"] = machine.ancestors
        return machine.result

    def _call_entry(self, machine: Calls, entry: Entry, frame: Frame) -> None:
        """Define the module's names, then call the entry with unknown arguments (twice if it is one epoch)."""
        self._definitions(machine, frame)
        func = entry.function
        assert func is not None
        site = p.Call(func.span, p.Name(func.span, func.name), ())
        args: list[Value] = []
        target: Value | None = None
        if entry.owner is not None:
            owner = frame.vars.get(entry.owner.name)
            if not isinstance(owner, Class):
                machine.run_class(entry.owner, frame)
                owner = frame.vars.get(entry.owner.name)
            if isinstance(owner, Class):
                instance = self._instance(machine, owner, site, frame)
                found = machine.class_member(owner, func.name)
                target = (
                    found if isinstance(found, Function) and found.node is func else machine.make_function(func, frame)
                )
                args = [instance]
        else:
            target = frame.vars.get(func.name)
            if not isinstance(target, Function) or target.node is not func:
                target = machine.make_function(func, frame)
        if not isinstance(target, Function):
            return
        if entry.owner is not None and target.owner is None:
            holder = frame.vars.get(entry.owner.name)
            target.owner = holder if isinstance(holder, Class) else None
        fixed = list(args)
        given = [q for q in func.params if q.kind == "arg"][len(args) :]
        for param in given:
            default = target.defaults.get(param.name)
            if default is None:
                args.append(self._param(machine, param))
            elif isinstance(default, Lit) and default.is_number and not isinstance(default.value, bool):
                args.append(machine.soft(Lit(default.value, frozenset({param.name}), text=param.name)))
            else:
                args.append(self._param(machine, param))
        kwargs: dict[str, Value] = {}
        for param in func.params:
            if param.kind == "kwonly":
                default = target.defaults.get(param.name)
                if isinstance(default, Lit) and default.is_number and not isinstance(default.value, bool):
                    kwargs[param.name] = machine.soft(Lit(default.value, frozenset({param.name}), text=param.name))
                else:
                    kwargs[param.name] = self._param(machine, param)
        flat = self._once_is_an_epoch(func)
        if self._once_is_a_batch(func):
            self._call_per_batch(machine, target, fixed, kwargs, site, frame)
            return
        result = machine.call_value(target, args, kwargs, site, frame)
        self._drain(machine, result, site)
        if (
            isinstance(result, Function)
            and isinstance(result.node, p.FunctionDef)
            and BACKWARD in self.static.tags(result.node)
        ):
            self._call_per_batch(machine, result, [], {}, site, frame)
            return
        if flat and machine.result.backwards and not machine.result.facts.get("manual_grad"):
            machine.result.facts["called_twice"] = True
            result = machine.call_value(target, args, kwargs, site, frame)
            self._drain(machine, result, site)

    def _once_is_a_batch(self, func: p.FunctionDef) -> bool:
        """True when one call handles one micro-batch: backward and a step, and no loop around the backward."""
        if not {BACKWARD, STEP} <= self.static.tags(func):
            return False
        seen: set[p.FunctionDef] = set()
        work = [func]
        while work:
            top = work.pop()
            if top in seen:
                continue
            seen.add(top)
            for stmt in top.body:
                for node in self.static.walk(stmt):
                    if isinstance(node, p.For | p.While) and BACKWARD in self.static.body_tags(node.body):
                        return False
            work += [
                c
                for call in self.static.calls_in(top)
                for c in self.static.callees(call)
                if BACKWARD in self.static.tags(c)
            ]
        return True

    def _call_per_batch(
        self, machine: Calls, target: Function, args: list[Value], kwargs: dict[str, Value], site: p.Call, frame: Frame
    ) -> None:
        """Call a per-micro-batch function as the loop in another file would."""
        node = target.node
        loop = LoopFrame(node, node.span, 1_000_000, -1, machine.new_token(), role="length")
        machine.loops.append(loop)
        params = [q for q in node.params if q.kind == "arg"][len(args) :]
        try:
            for index in range(machine.scenario.length):
                loop.iteration, loop.token = index, machine.new_token()
                loop.residual.clear()
                given = [*args]
                for param in params:
                    if machine.result.roles.get(param.name) == "counter":
                        number = int(machine.result.known.get(param.name, 0)) + index
                        given.append(Lit(number, frozenset({f"{param.name}@start"})))
                    elif target.defaults.get(param.name) is None:
                        given.append(self._param(machine, param))
                    else:
                        break
                fresh = [
                    Opaque(v.path, data=True, born=loop.token)
                    if type(v) is Opaque and not v.kind and _BATCH.search(v.path)
                    else v
                    for v in given
                ]
                result = machine.call_value(target, fresh, kwargs, site, frame)
                self._drain(machine, result, site)
        finally:
            machine.loops.pop()

    def _drain(self, machine: Calls, result: Value, site: p.Call) -> None:
        from galint.run.values import GeneratorCall

        if isinstance(result, GeneratorCall):
            machine.iterate(result, lambda v: None, site, "data")

    def _param(self, machine: Calls, param: p.Param) -> Value:
        """An unknown argument, of the kind its annotation, use or name suggests."""
        hint = terminal(param.annotation) if param.annotation is not None else ""
        kind = {
            "Accelerator": "accelerator",
            "Fabric": "fabric",
            "GradScaler": "scaler",
            "Optimizer": "optimizer",
            "Module": "module",
            "DataLoader": "loader",
            "DistributedDataParallel": "module",
        }.get(hint, "")
        if hint in {"int", "float", "str", "bool"}:
            return Opaque(param.name)
        if self.static.kind_of(param.name) == "engine":
            kind = "engine"
        return machine.make_opaque(param.name, param.name, kind=kind)

    def _instance(self, machine: Calls, owner: Class, site: p.Call, frame: Frame) -> Value:
        """An object of the class, its `__init__` run with unknown arguments."""
        from galint.run.values import Instance

        init = machine.class_member(owner, "__init__")
        instance = Instance(owner, "self")
        if owner.module_like:
            instance.modules = frozenset({machine.new_ident()})
        fields = machine._fields(owner)
        if fields is not None:
            machine._fill(instance, fields, [], {})
        elif isinstance(init, Function) and isinstance(init.node, p.FunctionDef):
            args: list[Value] = [instance]
            for param in [q for q in init.node.params if q.kind == "arg"][1:]:
                default = init.defaults.get(param.name)
                if isinstance(default, Lit) and default.is_number and not isinstance(default.value, bool):
                    args.append(machine.soft(Lit(default.value, frozenset({param.name}), text=param.name)))
                else:
                    args.append(self._param(machine, param))
            with contextlib.suppress(UserRaise):
                machine.call_function(init, args, {}, site)
        return instance

    def _once_is_an_epoch(self, func: p.FunctionDef) -> bool:
        """True when one call runs one pass over the data: a flat loop and no loop around it."""
        loops = [n for s in func.body for n in self.static.walk(s) if isinstance(n, p.For | p.While)]
        trains = [n for n in loops if {BACKWARD, STEP} <= self.static.body_tags(n.body)]
        if len(trains) > 1:
            return False
        if not trains:
            return not any(BACKWARD in self.static.body_tags(n.body) for n in loops)
        inner = [n for s in trains[0].body for n in self.static.walk(s) if isinstance(n, p.For | p.While)]
        return (
            isinstance(trains[0], p.For)
            and not any(BACKWARD in self.static.body_tags(n.body) for n in inner)
            and not any(
                BACKWARD in self.static.tags(callee) and _has_training_loop(self.static, callee)
                for s in trains[0].body
                for call in self.static.calls_in(s)
                for callee in self.static.callees(call)
            )
        )

    def _definitions(self, machine: Calls, frame: Frame) -> None:
        """Run the module's imports, definitions and plain assignments."""
        for stmt in self.program.body:
            if isinstance(stmt, p.FunctionDef | p.ClassDef | p.Import | p.ImportFrom | p.Assign | p.AnnAssign):
                if self.static.tags(stmt) & {BACKWARD, STEP} and isinstance(stmt, p.Assign | p.AnnAssign):
                    continue
                machine.run_body((stmt,), frame)
            elif isinstance(stmt, p.Try | p.If) and not self.static.tags(stmt) & {BACKWARD, STEP}:
                if isinstance(stmt, p.If) and "__name__" in p.text(stmt.test):
                    continue
                machine.run_body((stmt,), frame)
            elif (
                isinstance(stmt, p.ExprStmt)
                and isinstance(stmt.value, p.Call)
                and terminal(stmt.value.func) == "add_argument"
            ):
                machine.run_body((stmt,), frame)


def _moduli(run: RunResult) -> list[tuple[tuple[tuple[str, int], ...], frozenset[str]]]:
    """The numbers in the guards of steps, taken or not, with the settings behind them."""
    out = [(g.moduli, g.keys) for ledger in run.ledgers.values() for s in ledger.steps[:6] for g in s.guards]
    out += [(e.data["moduli"], e.data["keys"]) for e in run.events if e.kind == "guard"]
    return out


def _has_training_loop(static: Static, func: p.FunctionDef) -> bool:
    return any(
        isinstance(n, p.For | p.While) and BACKWARD in static.body_tags(n.body)
        for s in func.body
        for n in static.walk(s)
    )


def _multiple(n: int) -> int:
    """A loader length that n divides, with at least two windows and some eight batches."""
    return n * max(2, -(-8 // max(n, 1)))


def negation(key: str) -> str:
    """A condition's spelling for "is false"."""
    return key[4:] if key.startswith("not ") else f"not {key}"


def signature(run: RunResult) -> tuple[Any, ...]:
    """What a run showed, for telling configurations apart."""
    parts: list[Any] = []
    for key, ledger in run.ledgers.items():
        steps = ledger.steps[:8]
        parts.append(
            (
                key,
                tuple(
                    (
                        s.span,
                        len(s.window),
                        tuple((e.span, str(e.coefficient), e.scaled, e.facts.synced) for e in s.applied),
                        tuple((mk.kind, mk.span, mk.pending) for mk in s.marks),
                        len(s.lost),
                        len(s.carried),
                    )
                    for s in steps
                ),
            )
        )
    return tuple(parts)
