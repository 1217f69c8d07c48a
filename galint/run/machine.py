"""The abstract machine's state: scenario, ledgers, loops, guards, and how unknowns get a number."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

from galint import program as p
from galint.ledger import ONE, Coefficient, Entry, Guard, LossFacts, Mark, OptimizerLedger, Step
from galint.run.facts import BackwardFact, Event, Micro, RunResult
from galint.run.frame import Frame, LoopFrame, RunOver
from galint.run.scenario import Choice, Scenario
from galint.run.static import LOSS_NAME, Static, path_terminal, terminal
from galint.run.values import (
    Context,
    Instance,
    Lit,
    Mapping,
    Module,
    Opaque,
    Optimizer,
    Seq,
    Tensor,
    Term,
    Value,
)
from galint.source import Span

NOWHERE = Span(1, 0, 1, 0)
_BATCH_SIZE = re.compile(r"len\(|\.size\(|\.shape|numel|batch_?size|n_samples|num_samples|\bbs\b")
_LOGGING = re.compile(r"(^|_)(log|print|save|eval|ckpt|checkpoint|display|report)", re.I)
_LIMIT = 10**9
FOREIGN = 10_000_000
"""Rows from here on belong to files that the linted one imports."""
_WORLD = re.compile(r"world_?size|device_count|n_?gpus?\b|num_gpus|num_replicas|num_processes|nproc|num_devices", re.I)
_RANK = re.compile(_WORLD.pattern + r"|rank\b|rank\(|'RANK'|get_rank", re.I)


class Machine:
    """Everything that one run carries. `Evaluate`, `Calls` and `Execute` add behaviour on top."""

    def __init__(self, static: Static, scenario: Scenario, fuel: int = 60_000) -> None:
        self.static = static
        self.scenario = scenario
        self.fuel = fuel
        self.result = RunResult(scenario)
        self.base = OptimizerLedger("")
        self.seq = 0
        self.tokens = 0
        self.serials = 0
        self.idents = 0
        self.loops: list[LoopFrame] = []
        self.guards: list[Guard] = []
        self.contexts: list[Context] = []
        self.ancestors: dict[int, frozenset[int]] = {}
        self.optimizers: dict[str, Optimizer] = {}
        self.call_stack: list[Any] = []
        self.call_spans: list[Span] = []
        self.file = ""
        self.test_node: p.Node | None = None
        self.test_tags: frozenset[str] = frozenset()
        self.max_backwards = 400
        self.max_steps = 60
        self.steps_taken = 0
        self.scale_generation: dict[str, int] = {}
        self.unscaled: dict[tuple[str, str], int] = {}
        self.rare_seen: dict[str, int] = {}
        self.finite_iterators = 0
        self.grad_hooks: list[tuple[Value, Value, Any]] = []
        self.settings: dict[str, int] = {}

    # --- bookkeeping ---------------------------------------------------------------------------

    def prepare(self, frame: Frame) -> None:
        """Set up the module frame before a run; a machine that follows imports puts more here."""

    def tick(self) -> int:
        """The next number in the order of events."""
        self.seq += 1
        return self.seq

    def burn(self, amount: int = 1) -> None:
        """Spend budget; ends the run when none is left."""
        self.fuel -= amount
        if self.fuel < 0:
            raise RunOver("the loop exceeds the step budget")

    def token(self) -> int:
        """The current innermost iteration; 0 outside loops."""
        return self.loops[-1].token if self.loops else 0

    def new_token(self) -> int:
        """A fresh iteration identity."""
        self.tokens += 1
        return self.tokens

    def new_ident(self, parents: frozenset[int] = frozenset()) -> int:
        """A fresh module identity below the given ones."""
        self.idents += 1
        self.ancestors[self.idents] = parents | {self.idents}
        return self.idents

    def event(self, kind: str, span: Span, text: str = "", **data: Any) -> Event:
        """Record something for the window table and the checks."""
        event = Event(kind, span, self.tick(), self.file, self.token(), text, data)
        self.result.events.append(event)
        return event

    def odd_window(self, bound: Lit) -> None:
        """Note a setting whose default makes a window of one, or too long a one to run."""
        value = int(bound.value)
        if bound.keys and bound.text and (value <= 1 or value > 64):
            self.result.facts.setdefault("odd_windows", []).append(bound.text)
        elif value > 64:
            self.max_backwards = max(self.max_backwards, 6 * min(value, 512))

    def escape(self, span: Span, reason: str) -> None:
        """From here on the ledger is unknown, because of `reason`."""
        self.result.escapes.append((span, reason))

    def related(self, one: frozenset[int], other: frozenset[int]) -> bool:
        """True when a module of one set contains or is one of the other set."""
        if one & other:
            return True
        for a in one:
            up = self.ancestors.get(a, frozenset())
            if up & other:
                return True
        return any(self.ancestors.get(b, frozenset()) & one for b in other)

    # --- unknown numbers -----------------------------------------------------------------------

    def resolve(self, value: Value) -> Value:
        """The number of an opaque setting, if this run has fixed it; otherwise the value itself."""
        if not isinstance(value, Opaque):
            return value
        if type(value) is Opaque:
            known = self.result.known.get(value.path)
            if known is None:
                known = self.scenario.values.get(value.path)
                if known is not None:
                    self.result.known[value.path] = known
            if known is not None:
                return Lit(known, frozenset({value.path}), text=value.path, born=value.born)
            if value.deferred is not None:
                op, left, right = value.deferred
                a, b = self.resolve(left), self.resolve(right)
                if isinstance(a, Lit) and isinstance(b, Lit) and a.is_number and b.is_number:
                    number = arithmetic(op, a.value, b.value)
                    if number is not None:
                        return Lit(number, a.keys | b.keys, born=max(a.born, b.born), text=value.path)
        return value

    def demand(self, value: Value, role: str, node: p.Expr | None = None) -> Lit | None:
        """A number for `value`; unknown settings get one by their role in the loop.

        Roles: "window" (N), "length" (of a loader), "epochs", "windows", "limit", "counter" (unknown
        start), "batch" (samples in a micro-batch), "other".
        """
        asked = value
        if isinstance(asked, Opaque) and asked.deferred is not None:
            role = self._refine(asked, role, node)
        value = self.resolve(value)
        if isinstance(value, Lit):
            if not value.is_number:
                return None
            if role == "window" and value.value < 2 and isinstance(asked, Opaque) and asked.deferred is not None:
                # A quotient of settings whose numbers were made up: N is what it stands for.
                self.result.known[asked.path] = self.scenario.window
                self.result.roles[asked.path] = "window"
                return Lit(self.scenario.window, frozenset({asked.path}), text=asked.path, born=value.born)
            return value
        if not isinstance(value, Opaque) or type(value) is not Opaque:
            return None
        ranked = _RANK.search(value.path) and value.deferred is None
        role = role if ranked else self._refine(value, role, node)
        if role in {"other", "limit", "counter", "batch"} and _RANK.search(value.path) and value.deferred is None:
            number = 2 if _WORLD.search(value.path) else 0
            self.result.known[value.path] = number
            self.result.roles[value.path] = "rank"
            return Lit(number, frozenset({value.path}), text=value.path)
        offset = value.deferred is not None and value.deferred[0] in {"+", "-"} and isinstance(value.deferred[2], Lit)
        whole = (role in {"window", "windows", "epochs"} and not offset) or (
            role == "length"
            and value.deferred is not None
            and value.deferred[0] in {"//", "/"}
            and not self._is_window(value.deferred[2])
        )
        if value.deferred is not None and not whole:
            op, left, right = value.deferred
            a, b = self.demand(left, self._leaf_role(left, role)), self.demand(right, self._leaf_role(right, role))
            if a is not None and b is not None:
                number = arithmetic(op, a.value, b.value)
                if number is not None:
                    return Lit(number, a.keys | b.keys, born=max(a.born, b.born), text=value.path)
        number = self._role_value(role)
        self.result.known[value.path] = number
        self.result.roles[value.path] = role
        return Lit(number, frozenset({value.path}), text=value.path, born=value.born)

    def _is_window(self, value: Value) -> bool:
        """Whether a value is N: its spelling divides or bounds a counter in a step's guard."""
        if isinstance(value, Lit):
            return any(path_terminal(k) in self.static.window_names for k in value.keys)
        return isinstance(value, Opaque) and path_terminal(value.path) in self.static.window_names

    def _refine(self, value: Opaque, role: str, node: p.Expr | None) -> str:
        names = {path_terminal(value.path), terminal(node) if node is not None else ""}
        if value.path.startswith("len(") and value.path.endswith(")"):
            if role == "window":
                return "window"
            return "length" if role not in {"batch", "windows", "epochs"} else role
        if names & self.static.counters:
            return "counter" if role in {"other", "window"} else role
        if role in {"other", "limit", "length", "counter"} and names & self.static.window_names - {""}:
            if role == "other" or (role == "length" and STEPLESS in self.test_tags):
                name = next(iter(names & self.static.window_names))
                if not _LOGGING.search(name):
                    return "window"
        return role

    def _leaf_role(self, value: Value, role: str) -> str:
        if isinstance(value, Opaque) and _BATCH_SIZE.search(value.path) and not value.path.startswith("len(loader"):
            return "batch" if value.data else role
        return role

    def _role_value(self, role: str) -> int:
        return {
            "window": self.scenario.window,
            "length": self.scenario.length,
            "epochs": self.scenario.epochs,
            "windows": 3,
            "limit": _LIMIT,
            "counter": self.scenario.start,
            "batch": 4,
        }.get(role, 1000)

    # --- opaque things -------------------------------------------------------------------------

    def make_opaque(self, path: str, name: str = "", *, data: bool = False, born: int = 0, kind: str = "") -> Opaque:
        """A new unknown thing, of the kind its use or name suggests."""
        if len(path) > 160:
            path = f"#{self.tick()}"
        kind = kind or (self.static.kind_of(name) if name and not data else "")
        if kind == "module":
            return self.make_module(path)
        if kind == "optimizer":
            return self.make_optimizer(path)
        return Opaque(path, kind, data=data, born=born)

    def make_module(self, path: str, parents: frozenset[int] = frozenset(), **extra: Any) -> Module:
        """A module with its own identity."""
        module = Module(path, self.new_ident(parents), **extra)
        self.result.modules[module.ident] = module
        return module

    def make_optimizer(self, path: str, modules: frozenset[int] = frozenset(), *, known: bool = False) -> Optimizer:
        """An optimizer; its ledger starts when something first happens to it."""
        optimizer = Optimizer(path, modules, known=known)
        if path.startswith("#"):
            optimizer.born_seq = self.seq
        return optimizer

    def ledger(self, optimizer: Optimizer) -> OptimizerLedger:
        """The optimizer's ledger, begun with what was accumulated before it was first seen."""
        key = self._optimizer_key(optimizer)
        ledger = self.result.ledgers.get(key)
        if ledger is None:
            ledger = self.base.clone(key)
            if optimizer.born_seq:  # made after those gradients were accumulated
                ledger.pending = [e for e in ledger.pending if e.seq > optimizer.born_seq]
                ledger.lost = [(e, m) for e, m in ledger.lost if e.seq > optimizer.born_seq]
                kept = {e.micro for e in ledger.pending} | {e.micro for e, _ in ledger.lost}
                ledger.window = [t for t in ledger.window if t in kept]
                ledger.marks = [m for m in ledger.marks if m.seq > optimizer.born_seq]
            if optimizer.modules:
                ledger.pending = [
                    e
                    for e in ledger.pending
                    if not self._modules_of(e) or self.related(self._modules_of(e), optimizer.modules)
                ]
            self.result.ledgers[key] = ledger
        return ledger

    def _modules_of(self, entry: Entry) -> frozenset[int]:
        fact = self._by_seq.get(entry.seq)
        return fact.modules if fact else frozenset()

    @property
    def _by_seq(self) -> dict[int, BackwardFact]:
        return {b.seq: b for b in self.result.backwards}

    def _optimizer_key(self, optimizer: Optimizer) -> str:
        for key, known in self.optimizers.items():
            if known is optimizer:
                return key
        key = optimizer.path or "optimizer"
        while key in self.optimizers:
            key += "'"
        self.optimizers[key] = optimizer
        self.result.optimizers[key] = optimizer
        return key

    def place(self, span: Span) -> Span:
        """Where an event is shown: in a loop of the linted file, the call that led into a followed file."""
        if span.row < FOREIGN or not self.loops or self.loops[-1].span.row >= FOREIGN:
            return span
        return next((s for s in reversed(self.call_spans) if s.row < FOREIGN), span)

    # --- gradient events -----------------------------------------------------------------------

    def where(self) -> tuple[tuple[Span, int, int], ...]:
        """The running loops, outermost first."""
        return tuple((f.span, f.serial, f.iteration) for f in self.loops)

    def backward(self, tensor: Tensor, span: Span, factor: Coefficient = ONE, name: str = "") -> None:
        """Accumulate the gradient of `tensor` in every optimizer it may reach."""
        self.burn(5)
        span = self.place(span)
        done: Tensor | None = tensor
        while done is not None:
            done.done, done = True, done.parent
        micro = self.token()
        scaled = tensor.scaled is not None
        terms = tuple(dict.fromkeys(t.coefficient.combine(factor) for t in tensor.terms)) or (factor,)
        keys = frozenset().union(*(t.keys for t in tensor.terms)) | tensor.keys
        sync = tuple((str(ident), flag) for ident, flag in sorted(tensor.synced.items()))
        facts = LossFacts(
            terms,
            tensor.summed,
            tensor.hidden,
            sync,
            frozenset(map(str, tensor.bypassed)),
            keys,
            tensor.scaled_at,
        )
        if tensor.unknown_scale:
            facts = replace(facts, hidden=facts.hidden | {"?"})
        seq = self.tick()
        micros = sorted({t.micro for t in tensor.terms} or {0})
        latest = micros[-1] if micros[-1] else -micro  # data from before the loops: its own identity each time
        if len(micros) == 1:
            micros = [latest]
        for token in micros:
            self.note_micro(token)
        reached: list[str] = []
        targets = [(self.base, "", True)]
        for key, ledger in self.result.ledgers.items():
            optimizer = self.optimizers.get(key)
            mods = optimizer.modules if optimizer is not None else frozenset()
            sure = bool(mods and tensor.modules)
            if sure and not self.related(mods, tensor.modules):
                continue
            targets.append((ledger, key, sure))
        for ledger, key, sure in targets:
            for token in micros:
                coefficient = next(
                    (
                        t.coefficient.combine(factor)
                        for t in reversed(tensor.terms)
                        if t.micro == token or len(micros) == 1
                    ),
                    factor,
                )
                ledger.backward(Entry(token, coefficient, scaled, span, seq, facts, sure))
            if key:
                reached.append(key)
        self.result.backwards.append(
            BackwardFact(
                span,
                seq,
                latest,
                facts,
                scaled,
                self.file,
                tuple(reached),
                tensor.modules,
                name,
                self.where(),
                len(micros),
            )
        )
        self.event("backward", span, coefficient=terms[0], scaled=scaled, sync=sync, terms=terms)
        for loop in self.loops:
            loop.backwards = True
        if len(self.result.backwards) >= self.max_backwards:
            self.result.truncated = True
            raise RunOver

    def note_micro(self, token: int) -> None:
        """Remember where a micro-batch stands, at its first backward."""
        if token not in self.result.micros:
            path = self.where()
            last = path[-1] if path else (None, 0, 0)
            self.result.micros[token] = Micro(token, last[0], last[1], last[2], path, self.file)

    def clear(self, optimizers: list[Optimizer] | None, modules: frozenset[int], span: Span, what: str) -> None:
        """`zero_grad` of some optimizers, or of every optimizer over `modules`."""
        span = self.place(span)
        self.event("zero_grad", span, what)
        if optimizers is not None:
            for optimizer in optimizers:
                ledger = self.ledger(optimizer)
                ledger.clear(self._mark("clear", span, ledger, what))
            if len(self.result.ledgers) <= 1:
                self.base.pending.clear()
            return
        for key, ledger in self.result.ledgers.items():
            mods = self.optimizers[key].modules
            if not mods or not modules or self.related(mods, modules):
                ledger.clear(self._mark("clear", span, ledger, what))
        self.base.clear(self._mark("clear", span, self.base, what))

    def _mark(self, kind: str, span: Span, ledger: OptimizerLedger, owner: str, detail: str = "") -> Mark:
        fresh = ledger.fresh()
        return Mark(
            kind,
            span,
            self.tick(),
            self.token(),
            ledger.held(),
            any(e.scaled for e in fresh),
            detail=detail,
            owner=owner,
            where=self.where(),
        )

    def unscale(self, optimizer: Optimizer, scaler: str, span: Span) -> None:
        """`scaler.unscale_(optimizer)`."""
        span = self.place(span)
        ledger = self.ledger(optimizer)
        again = self.unscaled.get((scaler, ledger.name), -1) == self.scale_generation.get(scaler, 0)
        self.unscaled[scaler, ledger.name] = self.scale_generation.get(scaler, 0)
        ledger.unscale(self._mark("unscale", span, ledger, scaler, "again" if again else ""))
        self.event("unscale", span, ledger.name)

    def clip(self, modules: frozenset[int], span: Span, what: str, optimizer: Optimizer | None = None) -> None:
        """Gradient clipping over some parameters (unknown when `modules` is empty)."""
        span = self.place(span)
        self.event("clip", span, what)
        ledgers = list(self.result.ledgers.items()) or [("", self.base)]
        for key, ledger in ledgers:
            owner = self.optimizers.get(key)
            mods = owner.modules if owner is not None else frozenset()
            if optimizer is not None and owner is not optimizer:
                continue
            if mods and modules and not self.related(mods, modules):
                continue
            ledger.marks.append(self._mark("clip", span, ledger, what))

    def rescale(self, modules: frozenset[int], factor: Coefficient, span: Span) -> None:
        """`p.grad *= factor` over some parameters."""
        self.event("rescale", span, str(factor))
        for key, ledger in [*self.result.ledgers.items(), ("", self.base)]:
            mods = self.optimizers[key].modules if key else frozenset()
            if not mods or not modules or self.related(mods, modules):
                ledger.rescale(factor)

    def copied(self, modules: frozenset[int]) -> None:
        """Gradients were read by other code."""
        for key, ledger in [*self.result.ledgers.items(), ("", self.base)]:
            mods = self.optimizers[key].modules if key else frozenset()
            if not mods or not modules or self.related(mods, modules):
                ledger.copied = True

    def step(self, optimizer: Optimizer, span: Span, *, scaler: str = "", skipped: bool = False) -> Step:
        """`optimizer.step()` or `scaler.step(optimizer)`."""
        self.burn(5)
        span = self.place(span)
        ledger = self.ledger(optimizer)
        if scaler:
            self.unscaled[scaler, ledger.name] = self.scale_generation.get(scaler, 0)
        if not ledger.pending and not ledger.lost and optimizer.modules and not ledger.steps and self.base.pending:
            # No backward was seen to reach its parameters (adapters, copies): the code does not show who reaches what.
            optimizer.modules = frozenset()
            fresh = self.base.clone(ledger.name)
            for entry in fresh.pending:
                entry.sure = False
            ledger.pending, ledger.window, ledger.lost = fresh.pending, fresh.window, fresh.lost
        guards = [*self.guards]
        for loop in self.loops:
            guards += loop.residual
        step = Step(
            ledger.name,
            span,
            self.tick(),
            [],
            [],
            [],
            [],
            [],
            tuple(guards),
            tuple(f.iteration for f in self.loops),
            unscaled_here=bool(scaler),
            skipped=skipped,
        )
        raw = any(e.scaled for e in ledger.pending)
        ledger.step(step)
        if scaler:
            for entry in step.applied:
                entry.scaled = entry.scaled and any(m.kind == "unscale" for m in step.marks)
            for entry in ledger.pending:
                entry.scaled = False
        self.event("step", span, ledger.name, applied=len(step.micros()), window=len(step.window), raw=raw)
        for loop in self.loops:
            loop.steps = True
        if step.applied or step.window:
            self.steps_taken += 1
        if self.steps_taken >= self.max_steps:
            self.result.truncated = True
            raise RunOver
        return step

    def choose(self, key: str, default: bool, *, data: bool, relevant: bool, span: Span) -> bool:
        """Decide a condition the run cannot: the same key always gets the same answer."""
        negated = False
        while key.startswith("not "):
            key, negated = key[4:], not negated
        if negated:
            default = not default
        taken = self.scenario.choices.get(key)
        if data:
            base = default if taken is None else taken
            if self.scenario.rare == key:
                count = self.rare_seen.get(key, 0)
                self.rare_seen[key] = count + 1
                base = (not base) if count == self.scenario.rare_at else base
            taken = base
        elif taken is None:
            taken = self.result.choices[key].taken if key in self.result.choices else default
        old = self.result.choices.get(key)
        if old is None or (relevant and not old.relevant):
            self.result.choices[key] = Choice(key, taken, data, relevant, span)
        return taken != negated

    # --- ancestry ------------------------------------------------------------------------------

    def modules_in(self, value: Value, depth: int = 0) -> frozenset[int]:
        """The modules whose parameters `value` holds or was computed from."""
        if isinstance(value, Tensor):
            return value.modules
        if isinstance(value, Opaque):
            return value.modules
        if depth < 4:
            if isinstance(value, Seq):
                return frozenset().union(*(self.modules_in(v, depth + 1) for v in value.elts))
            if isinstance(value, Mapping):
                return frozenset().union(*(self.modules_in(v, depth + 1) for v in value.items.values()))
        return frozenset()

    def tensors_in(self, value: Value, depth: int = 0) -> list[Tensor]:
        """The tensors inside a value."""
        if isinstance(value, Tensor):
            return [value]
        if depth < 4:
            if isinstance(value, Seq):
                return [t for v in value.elts for t in self.tensors_in(v, depth + 1)]
            if isinstance(value, Mapping):
                return [t for v in value.items.values() for t in self.tensors_in(v, depth + 1)]
        return []

    def born_of(self, value: Value, depth: int = 0) -> int:
        """The latest iteration a value comes from."""
        if isinstance(value, Lit | Opaque | Tensor):
            return value.born
        if depth < 4 and isinstance(value, Seq):
            return max((self.born_of(v, depth + 1) for v in value.elts), default=0)
        if depth < 4 and isinstance(value, Mapping):
            return max((self.born_of(v, depth + 1) for v in value.items.values()), default=0)
        return 0

    def is_data(self, value: Value, depth: int = 0) -> bool:
        """True for what depends on the contents of the training data."""
        if isinstance(value, Tensor):
            return True
        if isinstance(value, Opaque):
            return value.data
        if depth < 4 and isinstance(value, Seq):
            return any(self.is_data(v, depth + 1) for v in value.elts)
        return False

    def no_grad(self) -> bool:
        """True inside `torch.no_grad()` or inference mode."""
        return any(c.kind == "no_grad" for c in self.contexts)

    def tensor(self, path: str, micro: int, modules: frozenset[int] = frozenset()) -> Tensor:
        """A fresh tensor of coefficient one."""
        return Tensor(path, (Term(micro or self.token()),), modules=modules, grad=not self.no_grad())


STEPLESS = "stepless"


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """`a op b` on exact numbers; None when it is undefined or too large to matter."""
    try:
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return Fraction(a) / Fraction(b)
            case "//":
                return a // b
            case "%":
                return a % b
            case "**" if abs(b) <= 64 and abs(a) <= 10**6:
                return Fraction(a) ** b if isinstance(b, int) else Fraction(float(a) ** float(b))
            case "&" | "|" | "^" | "<<" | ">>" if isinstance(a, int) and isinstance(b, int):
                if op == "&":
                    return a & b
                if op == "|":
                    return a | b
                if op == "^":
                    return a ^ b
                return a << b if op == "<<" and 0 <= b < 64 else a >> b if op == ">>" and b >= 0 else None
    except (ZeroDivisionError, ValueError, OverflowError, TypeError):
        return None
    return None


def is_loss_name(name: str) -> bool:
    """True when a name speaks of a loss."""
    return bool(LOSS_NAME.search(name))


__all__ = ["NOWHERE", "STEPLESS", "Instance", "Machine", "arithmetic", "is_loss_name"]
