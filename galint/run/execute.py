"""Statements of the abstract run: assignment, branches, loops, with, try, match, definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from galint import program as p
from galint.ledger import Guard
from galint.run.evaluate import Evaluate
from galint.run.frame import BREAK, CONTINUE, Frame, GeneratorExit_, LoopFrame, RunOver, Signal, UserRaise
from galint.run.iterate import drive
from galint.run.match import matches
from galint.run.static import BACKWARD, GRADIENT, STEP, WRAP, bails, ends_in_raise, path_terminal, raises, terminal
from galint.run.values import (
    LONGEST,
    NONE,
    Bound,
    Class,
    Context,
    External,
    Function,
    Instance,
    Lit,
    Mapping,
    Module,
    Opaque,
    Optimizer,
    Seq,
    Tensor,
    Value,
)

_RETYPED = {"optimizer", "module", "scaler", "scheduler", "loader", "criterion", "accelerator", "fabric", "engine"}


class Execute(Evaluate):
    """The statement half of the machine."""

    def run_body(self, body: p.Body, frame: Frame) -> Signal | None:
        """Run a block; a signal says that it was left early."""
        pushed = 0
        guards = self.guards
        try:
            for index, stmt in enumerate(body):
                self.fuel -= 1
                if self.fuel < 0:
                    self.burn(0)
                kind = type(stmt)
                if kind is p.If:
                    signal, residual = self.run_if(stmt, frame, body[index + 1 :])  # type: ignore[arg-type]
                    if residual is not None:
                        guards.append(residual)
                        pushed += 1
                else:
                    signal = _EXEC[kind](self, stmt, frame)
                if signal is not None:
                    return signal
        finally:
            if pushed:
                del guards[len(guards) - pushed :]
        return None

    # --- simple statements ---------------------------------------------------------------------

    def run_expr(self, stmt: p.ExprStmt, frame: Frame) -> None:
        """An expression for its effect."""
        self.eval(stmt.value, frame)

    def run_assign(self, stmt: p.Assign, frame: Frame) -> None:
        """`a = b = value`."""
        if len(stmt.targets) == 1:
            paired = self._paired(stmt.targets[0], stmt.value, frame)
            if paired:
                return
        value = self.eval(stmt.value, frame)
        if frame.parent is None and isinstance(value, Lit) and isinstance(stmt.value, p.Const) and value.is_number:
            name = terminal(stmt.targets[0])
            if isinstance(stmt.targets[0], p.Name) and not isinstance(value.value, bool):
                value = Lit(value.value, frozenset({name}), text=name)
        for target in stmt.targets:
            if isinstance(value, Tensor) and self._rebinds(target, value, frame):
                self._late_scaling(target, value, stmt, frame)
            self.bind(target, self._passed_through(target, value, stmt.value, frame), frame)

    def _paired(self, target: p.Expr, value: p.Expr, frame: Frame) -> bool:
        """`a, b = x, y` with known pairs binds each on its own."""
        if not (
            isinstance(target, p.Sequence) and isinstance(value, p.Sequence) and len(target.elts) == len(value.elts)
        ):
            return False
        if any(isinstance(e, p.Starred) for e in (*target.elts, *value.elts)):
            return False
        values = [self.eval(v, frame) for v in value.elts]
        for item, one in zip(target.elts, values, strict=True):
            self.bind(item, one, frame)
        return True

    def _rebinds(self, target: p.Expr, value: Tensor, frame: Frame) -> bool:
        return value.done and isinstance(target, p.Name)

    def _late_scaling(self, target: p.Expr, value: Tensor, stmt: p.Stmt, frame: Frame) -> None:
        """Note a division that comes after the backward it should have changed."""
        if not isinstance(target, p.Name):
            return
        holder = frame.find(target.id)
        old = holder.vars.get(target.id) if holder else None
        if isinstance(old, Tensor) and old.done and old.terms and value.terms and old is not value:
            before, after = old.terms[-1].coefficient, value.terms[-1].coefficient
            if before != after:
                keys = value.terms[-1].keys
                self.event("late_scale", stmt.span, target.id, before=before, after=after, keys=keys)

    def _passed_through(self, target: p.Expr, value: Value, node: p.Expr, frame: Frame) -> Value:
        """`model, opt = wrap(model, opt)`: what an unknown call returns under the same name is the same thing."""
        if not isinstance(node, p.Call) or not isinstance(value, Opaque) or type(value) is not Opaque or value.kind:
            return value
        wanted = [target] if not isinstance(target, p.Sequence) else list(target.elts)
        args = {p.text(a.value): a.value for a in node.args}
        shared = [t for t in wanted if p.text(t) in args]
        if not shared:
            return value
        kept: list[Value] = []
        for one in wanted:
            text = p.text(one)
            old = self.eval(args[text], frame) if text in args else None
            if isinstance(old, Module | Optimizer | Instance) or (isinstance(old, Opaque) and old.kind in _RETYPED):
                kept.append(old)
            else:
                name = terminal(one)
                kept.append(self.make_opaque(text or f"#{self.tick()}", name, data=value.data, born=value.born))
        return kept[0] if len(kept) == 1 and not isinstance(target, p.Sequence) else Seq(kept, "tuple")

    def bind(self, target: p.Expr, value: Value, frame: Frame) -> None:
        """Bind `target` to `value`, unpacking and retyping by name where the value says nothing."""
        if isinstance(target, p.Name):
            value = self._retype(target.id, target.id, value)
            holder = frame.nonlocals.get(target.id, frame)
            holder.vars[target.id] = value
        elif isinstance(target, p.Attr):
            receiver = self.eval(target.value, frame)
            self.set_attr(receiver, target.name, value, target)
        elif isinstance(target, p.Subscript):
            self._set_item(target, value, frame)
        elif isinstance(target, p.Sequence):
            self._unpack(target, value, frame)
        elif isinstance(target, p.Starred):
            self.bind(target.value, value, frame)

    def _retype(self, name: str, path: str, value: Value) -> Value:
        if type(value) is Opaque:
            if value.kind == "namespace" and value.path.startswith("#"):
                value.path = path
            if not value.kind and value.role == "" and value.deferred is None:
                kind = self.static.kind_of(name)
                sure = kind in {"module", "optimizer"} and self.static.uses.get(name, set()) & {
                    "parameters",
                    "zero_grad",
                }
                if kind in _RETYPED and (sure or not value.data):
                    known = value.items.get(("as", kind))
                    if isinstance(known, Opaque):
                        return known
                    made = self.make_opaque(path, name, kind=kind)
                    value.items["as", kind] = made
                    if isinstance(made, Optimizer):
                        made.modules |= value.modules
                    if kind == "loader":
                        made.length = value.length
                    return made
            if value.path.startswith("#"):
                value.path = path
        elif (
            (isinstance(value, Instance | Mapping) and value.path.startswith("#"))
            or (isinstance(value, Seq) and not value.path)
            or (isinstance(value, Module | Optimizer) and value.path.startswith("#"))
        ):
            value.path = path
        return value

    def set_attr(self, receiver: Value, name: str, value: Value, target: p.Attr) -> None:
        """`receiver.name = value`, with the effects that some attributes have."""
        if isinstance(receiver, Module) and name == "require_backward_grad_sync":
            truth = self.truth(value)
            receiver.sync = True if truth is None else truth
            self.event("sync_flag", target.span, receiver.path, on=receiver.sync, known=truth is not None)
            return
        if name in {"grad", "main_grad"} and isinstance(receiver, Opaque | Tensor):
            if isinstance(value, Lit) and value.value is None:
                self.clear(None, receiver.modules, target.span, f"{p.text(target)} = None")
            elif isinstance(value, Opaque) and value.role == "grad":
                pass
            elif isinstance(value, (Tensor, Opaque)):
                self.copied(receiver.modules)
                self.result.facts["manual_grad"] = True
            return
        if isinstance(receiver, Tensor) and isinstance(value, Tensor):
            receiver.terms, receiver.keys = value.terms, value.keys  # `output.loss /= N`
        elif isinstance(receiver, Instance | Module | Opaque):
            path = f"{receiver.path}.{name}"
            receiver.attrs[name] = self._retype(name, path, value)
            if isinstance(value, Module) and receiver.modules:
                self.adopt(receiver, value)
        elif isinstance(receiver, Class):
            receiver.members[name] = value

    def adopt(self, parent: Opaque, child: Module) -> None:
        """Make `child` a part of `parent`'s modules."""
        up = frozenset().union(*(self.ancestors.get(i, frozenset()) for i in parent.modules))
        for ident in child.modules:
            self.ancestors[ident] = self.ancestors.get(ident, frozenset({ident})) | up

    def _set_item(self, target: p.Subscript, value: Value, frame: Frame) -> None:
        receiver = self.eval(target.value, frame)
        index = self.eval(target.index, frame) if not isinstance(target.index, p.Slice) else NONE
        if isinstance(receiver, Mapping):
            key: Any = index.value if isinstance(index, Lit) else getattr(index, "path", None)
            receiver.items[key] = value
        elif isinstance(receiver, Seq) and isinstance(index, Lit) and isinstance(index.value, int):
            if -len(receiver.elts) <= index.value < len(receiver.elts):
                receiver.elts[index.value] = value
        elif isinstance(receiver, Opaque) and isinstance(index, Lit) and not receiver.data:
            receiver.items[index.value] = value

    def _unpack(self, target: p.Sequence, value: Value, frame: Frame) -> None:
        elts = target.elts
        if isinstance(value, Seq) and len(value.elts) == 1 and len(elts) > 1 and value.path:
            value = Seq(value.elts * len(elts))  # a comprehension over something of unknown length
        if isinstance(value, Seq) and value.elts:
            star = next((i for i, e in enumerate(elts) if isinstance(e, p.Starred)), None)
            if star is None and len(value.elts) == len(elts):
                for item, one in zip(elts, value.elts, strict=True):
                    self.bind(item, one, frame)
                return
            if star is not None and len(value.elts) >= len(elts) - 1:
                after = len(elts) - star - 1
                end = len(value.elts) - after
                for item, one in zip(elts[:star], value.elts[:star], strict=False):
                    self.bind(item, one, frame)
                self.bind(elts[star], Seq(value.elts[star:end]), frame)
                for item, one in zip(elts[star + 1 :], value.elts[end:], strict=False):
                    self.bind(item, one, frame)
                return
        for position, item in enumerate(elts):
            self.bind(item, self._part(value, position, item), frame)

    def _part(self, value: Value, position: int, item: p.Expr) -> Value:
        """One element of an unpacked unknown."""
        name = terminal(item)
        if isinstance(value, Tensor):
            return value.copy()
        if isinstance(value, Opaque):
            if value.data:
                return Opaque(name or f"{value.path}[{position}]", data=True, born=value.born, modules=value.modules)
            if position in value.items:
                return value.items[position]
            kind = self.static.kind_of(name)
            made = self.make_opaque(name if kind else f"{value.path}[{position}]", name, born=value.born)
            if isinstance(made, Optimizer):
                made.modules |= value.modules
            value.items[position] = made
            return made
        return self.make_opaque(name or f"#{self.tick()}", name)

    def run_augassign(self, stmt: p.AugAssign, frame: Frame) -> None:
        """`target op= value`."""
        old = self.eval(stmt.target, frame)
        right = self.eval(stmt.value, frame)
        if isinstance(old, Opaque) and old.role == "grad":
            if stmt.op in {"*", "/"}:
                factor = self.symbol(right)
                self.rescale(old.modules, factor if stmt.op == "*" else _inverse(factor), stmt.span)
            return
        if isinstance(old, Seq) and stmt.op == "+" and isinstance(right, Seq):
            old.elts += right.elts[: max(LONGEST - len(old.elts), 0)]
            return
        if isinstance(old, Opaque) and not old.data and isinstance(self.resolve(right), Lit) and stmt.op in {"+", "-"}:
            number = self.resolve(right)
            if isinstance(number, Lit) and number.is_number and old.kind == "" and old.deferred is None:
                start = self.demand(old, "counter", stmt.target)
                if start is not None:
                    old = Lit(start.value, start.keys | {f"{old.path}@start"}, born=start.born, text="")
        value = self.binary(stmt.op, old, right, stmt, stmt.value)
        if isinstance(value, Tensor) and isinstance(old, Tensor) and old.done:
            self._late_scaling(stmt.target, value, stmt, frame)
        if isinstance(value, Lit) and value.text:
            value = Lit(value.value, value.keys, value.moduli, value.born)
        self.bind(stmt.target, value, frame)

    def run_annassign(self, stmt: p.AnnAssign, frame: Frame) -> None:
        """`name: type = value`."""
        if stmt.value is not None:
            self.run_assign(p.Assign(stmt.span, (stmt.target,), stmt.value), frame)

    def run_return(self, stmt: p.Return, frame: Frame) -> Signal:
        """`return value`."""
        return Signal("return", self.eval(stmt.value, frame) if stmt.value is not None else NONE)

    def run_break(self, stmt: p.Break, frame: Frame) -> Signal:
        """`break`."""
        return BREAK

    def run_continue(self, stmt: p.Continue, frame: Frame) -> Signal:
        """`continue`."""
        self.event("continue", stmt.span)
        return CONTINUE

    def run_nothing(self, stmt: p.Stmt, frame: Frame) -> None:
        """pass, assert and other statements without effect here."""

    def run_raise(self, stmt: p.Raise, frame: Frame) -> None:
        """`raise X`."""
        exc = stmt.exc.func if isinstance(stmt.exc, p.Call) else stmt.exc
        raise UserRaise(terminal(exc))

    def run_delete(self, stmt: p.Delete, frame: Frame) -> None:
        """`del name`: only dict items and names go."""
        for target in stmt.targets:
            if isinstance(target, p.Subscript):
                receiver = self.eval(target.value, frame)
                if isinstance(receiver, Mapping) and not isinstance(target.index, p.Slice):
                    index = self.eval(target.index, frame)
                    if isinstance(index, Lit):
                        receiver.items.pop(index.value, None)

    def run_scope(self, stmt: p.Scope, frame: Frame) -> None:
        """`global` and `nonlocal`."""
        for name in stmt.names:
            if stmt.kind == "global":
                frame.nonlocals[name] = frame.globals
            elif frame.parent is not None:
                frame.nonlocals[name] = frame.parent.find(name) or frame.parent

    def run_import(self, stmt: p.Import, frame: Frame) -> None:
        """`import a.b as c`."""
        for name, alias in stmt.names:
            frame.vars[alias or name.split(".")[0]] = self.imported(
                name if alias else name.split(".")[0], 0, None, frame
            )

    def run_import_from(self, stmt: p.ImportFrom, frame: Frame) -> None:
        """`from m import a as b`."""
        for name, alias in stmt.names:
            if name == "*":
                self.import_star(stmt, frame)
                continue
            frame.vars[alias or name] = self.imported(stmt.module, stmt.level, name, frame)

    def import_star(self, stmt: p.ImportFrom, frame: Frame) -> None:
        """`from m import *`: nothing known unless project files are followed."""

    def imported(self, module: str, level: int, name: str | None, frame: Frame) -> Value:
        """What an import binds."""
        full = "." * level + module
        return External(f"{full}.{name}" if name else full)

    # --- definitions ---------------------------------------------------------------------------

    def run_function(self, stmt: p.FunctionDef, frame: Frame) -> None:
        """A function definition."""
        frame.vars[stmt.name] = self.make_function(stmt, frame)

    def make_function(self, stmt: p.FunctionDef, frame: Frame) -> Function:
        """The function value of a definition."""
        defaults = {q.name: self.eval(q.default, frame) for q in stmt.params if q.default is not None}
        # A class's own names are not in scope inside its methods.
        in_class = frame.owner is not None and frame.function is None and frame.parent is not None
        return Function(stmt, frame.parent if in_class and frame.parent is not None else frame, defaults, frame.owner)

    def run_class(self, stmt: p.ClassDef, frame: Frame) -> None:
        """A class definition: its body is run for methods and class attributes."""
        bases = [self.eval(b.value, frame) for b in stmt.bases if not b.keyword and not b.star]
        inner = Frame(frame)
        cls = Class(stmt, bases, inner.vars, frame)
        cls.module_like = any(_module_base(b) for b in bases)
        inner.owner = cls
        simple = tuple(
            s
            for s in stmt.body
            if isinstance(s, p.FunctionDef | p.ClassDef | p.Assign | p.AnnAssign | p.ExprStmt | p.If | p.Pass)
        )
        self.run_body(simple, inner)
        for item in stmt.body:
            if isinstance(item, p.Assign | p.AnnAssign):
                target = item.targets[0] if isinstance(item, p.Assign) else item.target
                if isinstance(target, p.Name):
                    value = inner.vars.get(target.id)
                    if isinstance(value, Lit) and value.is_number and not isinstance(value.value, bool):
                        path = f"{stmt.name}.{target.id}"
                        inner.vars[target.id] = Lit(value.value, frozenset({path}), text=path)
        frame.vars[stmt.name] = cls

    # --- branches ------------------------------------------------------------------------------

    def run_if(self, stmt: p.If, frame: Frame, rest: p.Body = ()) -> tuple[Signal | None, Guard | None]:
        """A branch. The second result is the guard on what follows, when the body leaves the block."""
        body_tags = self.static.body_tags(stmt.body)
        else_tags = self.static.body_tags(stmt.orelse)
        old = self.test_node, self.test_tags
        leaves = bails(stmt.body)
        rest_tags = self.static.body_tags(rest) if leaves else frozenset()
        self.test_node = stmt
        tags = body_tags | else_tags
        if leaves and isinstance(stmt.body[-1], p.Break | p.Return | p.Raise) and not tags & {STEP, BACKWARD}:
            tags |= {"break"}
        self.test_tags = tags
        value = self.eval(stmt.test, frame)
        self.test_node, self.test_tags = old
        value = self.resolve(value)
        truth = self.truth(value)
        rest_gates = leaves and STEP in rest_tags and BACKWARD not in rest_tags
        if truth is None:
            truth = self._decide(stmt, value, body_tags, else_tags, rest)
        elif (
            leaves and isinstance(stmt.body[-1], p.Continue) and isinstance(value, Lit) and not truth and not rest_gates
        ):
            if any(self.result.roles.get(k) in {"limit", "other", "window"} for k in value.keys):
                self.result.facts["skips"] = True  # micro-batches may be left out by a bound that is not known
        elif isinstance(value, Lit) and value.keys and raises(stmt.body if truth else stmt.orelse):
            truth = not truth  # an argument check: the program's path is the other side
        elif isinstance(value, Lit) and value.keys and (body_tags ^ else_tags) & GRADIENT and not value.born:
            truth = self._soft_choice(stmt, value, truth)
        if isinstance(value, Lit) and value.keys and self.scenario.choices:
            truth = self.scenario.choices.get(p.text(stmt.test), truth)
        moduli = value.moduli if isinstance(value, Lit) else ()
        if isinstance(value, Opaque) and "__moduli__" in value.items:
            moduli = getattr(value.items["__moduli__"], "moduli", ())
        if moduli and leaves and isinstance(stmt.body[-1], p.Break):
            bounds = self.result.facts.setdefault("break_bounds", set())
            bounds |= {v for label, v in moduli if label.startswith("≥") and 1 < v <= 64 and "len(" not in label}
        if moduli and not gates(body_tags, else_tags, rest_tags if leaves else None):
            moduli = ()
        keys = value.keys if isinstance(value, Lit) else frozenset()
        body = stmt.body if truth else stmt.orelse
        if STEP in tags and moduli and self.loops:
            self.event(
                "guard",
                self.place(stmt.span),
                p.text(stmt.test),
                taken=truth,
                moduli=moduli,
                keys=keys,
                steps=STEP in body_tags,
            )
        if not body:
            leaves = leaves and not isinstance(stmt.body[-1], p.Break | p.Raise)
            residual = Guard(stmt.span, p.text(stmt.test), moduli, keys, True) if leaves and moduli else None
            return None, residual
        guard = Guard(self.place(stmt.span), p.text(stmt.test), moduli, keys, not truth)
        self.guards.append(guard)
        try:
            signal = self.run_body(body, frame)
        finally:
            self.guards.pop()
        residual = guard if not truth and leaves and moduli and signal is None else None
        return signal, residual

    def _soft_choice(self, stmt: p.If, value: Lit, truth: bool) -> bool:
        """A condition decided by a setting's default is still a configuration that can be flipped."""
        text = p.text(stmt.test)
        body, orelse = self.static.body_tags(stmt.body), self.static.body_tags(stmt.orelse)
        if (WRAP in body) != (WRAP in orelse):
            return self.choose(text, truth, data=False, relevant=True, span=stmt.span)
        if any(isinstance(m[1], int) for m in value.moduli) or len(value.keys) > 1:
            return truth
        key = min(value.keys)
        if key in self.scenario.values or key.endswith("@start"):
            return truth
        number = self.result.known.get(key)
        if number is not None:
            return truth
        return self.choose(text, truth, data=False, relevant=True, span=stmt.span)

    def _decide(
        self, stmt: p.If, value: Value, body: frozenset[str], orelse: frozenset[str], rest: p.Body = ()
    ) -> bool:
        """A condition the run does not know: take the branch that trains."""
        key = value.path if isinstance(value, Opaque | Tensor) else p.text(stmt.test)
        if not key or key.startswith("#") or key.startswith("f-string"):
            key = p.text(stmt.test)
        data = self.is_data(value)
        leaves, else_leaves = bails(stmt.body), bails(stmt.orelse)
        trains = {BACKWARD, STEP}
        gradient = (body | orelse) & GRADIENT
        role = value.role if isinstance(value, Opaque) else ""
        if isinstance(value, Opaque) and "__default__" in value.items:
            default = bool(getattr(value.items["__default__"], "value", False))
        elif role == "rank":
            default = False if not gradient else bool(body & GRADIENT)
        elif STEP in body and STEP not in orelse and BACKWARD not in orelse:
            default = True
        elif STEP in orelse and STEP not in body and BACKWARD not in body:
            default = False
        elif BACKWARD in body and BACKWARD not in orelse and not (leaves and not body & trains):
            default = True
        elif (BACKWARD in orelse and BACKWARD not in body) or (raises(stmt.body) and not body & trains):
            default = False
        elif (
            (raises(stmt.orelse) and not orelse & trains)
            or (leaves and not stmt.orelse and isinstance(stmt.body[-1], p.Return) and ends_in_raise(rest))
            or (leaves and isinstance(stmt.body[-1], p.Return) and stmt.orelse and bails(stmt.orelse))
        ):
            default = True
        elif leaves and not body & {BACKWARD, STEP}:
            default = False
        elif (else_leaves and not orelse & trains) or ((body & GRADIENT) and not (orelse & GRADIENT)):
            default = True
        elif (orelse & GRADIENT) and not (body & GRADIENT):
            default = False
        elif stmt.orelse:
            default = True
        else:
            default = not data and bool(body & GRADIENT)
        if data and not gradient and not leaves:
            default = bool(stmt.orelse) and default
        taken_key = key
        relevant = bool(gradient) or (leaves and data and bool(self.loops))
        return self.choose(taken_key, default, data=data, relevant=relevant, span=stmt.span)

    def run_match(self, stmt: p.Match, frame: Frame) -> Signal | None:
        """A match statement."""
        subject = self.eval(stmt.subject, frame)
        unknown: list[p.Case] = []
        moduli = _moduli(subject)
        for case in stmt.cases:
            verdict = matches(self, case.pattern, subject, frame)
            if verdict and case.guard is not None:
                verdict = self.truth(self.eval(case.guard, frame))
            if verdict is False:
                continue
            if verdict is None:
                unknown.append(case)
                continue
            if unknown and not self.static.body_tags(case.body) & GRADIENT:
                break
            return self._run_case(case, stmt, moduli, frame)
        if not unknown:
            return None
        best = max(unknown, key=lambda c: len(self.static.body_tags(c.body) & GRADIENT))
        for case in unknown:
            if not bails(case.body) and (
                case is best or self.static.body_tags(case.body) == self.static.body_tags(best.body)
            ):
                return self._run_case(case, stmt, moduli, frame)
        return self._run_case(best, stmt, moduli, frame)

    def _run_case(
        self, case: p.Case, stmt: p.Match, moduli: tuple[tuple[str, int], ...], frame: Frame
    ) -> Signal | None:
        self.guards.append(Guard(case.span, f"match {p.text(stmt.subject)}", moduli))
        try:
            return self.run_body(case.body, frame)
        finally:
            self.guards.pop()

    # --- loops ---------------------------------------------------------------------------------

    def loop_role(self, node: p.For | p.While) -> str:
        """What one pass of a loop stands for: "window" (micro-batches of one), "length", "windows", "epochs", "idle"."""
        tags = self.static.body_tags(node.body)
        if BACKWARD not in tags:
            return "idle" if not tags & GRADIENT else "other"
        if STEP not in tags:
            return "window"
        if isinstance(node, p.For) and self._counts_steps(node):
            return "length"
        inner = [n for s in node.body for n in self._inner_loops(s)]
        inner += [n for n in self._called_loops(node)]
        best = [self.static.body_tags(n.body) for n in inner]
        if any({BACKWARD, STEP} <= t for t in best):
            return "epochs"
        if any(BACKWARD in t for t in best):
            return "windows"
        return "length"

    def _builds(self, stmt: p.For) -> bool:
        """True when a loop fills a list, whose length may matter later."""
        cache: dict[int, bool] = self.result.facts.setdefault("builders", {})
        if id(stmt) not in cache:
            cache[id(stmt)] = any(
                isinstance(n, p.Call) and terminal(n.func) in {"append", "extend"}
                for s in stmt.body
                for n in self.static.walk(s)
            )
        return cache[id(stmt)]

    def _counts_steps(self, node: p.For) -> bool:
        """True when the loop's own variable decides when the optimizer steps."""
        names = {n.id for n in self.static.walk(node.target) if isinstance(n, p.Name)}
        return bool(names & self.static.counters)

    def _inner_loops(self, stmt: p.Node) -> list[p.For | p.While]:
        out: list[p.For | p.While] = []
        for node in self.static.walk(stmt):
            if isinstance(node, p.For | p.While):
                out.append(node)
        return out

    def _called_loops(self, node: p.For | p.While) -> list[p.For | p.While]:
        seen: set[p.FunctionDef] = set()
        work: list[p.Node] = list(node.body)
        out: list[p.For | p.While] = []
        while work:
            for call in self.static.calls_in(work.pop()):
                for func in self.static.callees(call):
                    if func not in seen and BACKWARD in self.static.tags(func):
                        seen.add(func)
                        out += self._inner_loops(func)
                        work.append(func)
        return out

    def run_for(self, stmt: p.For, frame: Frame) -> Signal | None:
        """A for loop."""
        role = self._role_of(stmt)
        if role == "idle" and frame.yields is not None:
            role = "length"  # a generator's own loop lasts as long as the loop that it drives
        elif role == "idle" and self._builds(stmt):
            role = "build"
        source = self.eval(stmt.iter, frame)
        loop = self._enter(stmt)
        loop.role = role
        result: list[Signal | None] = [None]

        def each(value: Value) -> Signal | None:
            self._next(loop, role)
            value = self._stamp(value, loop.token)
            self.bind(stmt.target, value, frame)
            loop.residual.clear()
            signal = self.run_body(stmt.body, frame)
            if signal is None or signal is CONTINUE:
                return None
            result[0] = signal
            return signal

        try:
            self.iterate(source, each, stmt, role)
        finally:
            self.loops.pop()
        self._leave(loop)
        signal = result[0]
        if signal is BREAK:
            return None
        if signal is not None:
            return signal
        return self.run_body(stmt.orelse, frame) if stmt.orelse else None

    def _role_of(self, stmt: p.For | p.While) -> str:
        cache = self.result.facts.setdefault("loop_roles", {})
        role = cache.get(id(stmt))
        if role is None:
            role = cache[id(stmt)] = self.loop_role(stmt)
        return str(role)

    def _enter(self, stmt: p.For | p.While) -> LoopFrame:
        self.serials += 1
        loop = LoopFrame(stmt, stmt.span, self.serials, -1, self.new_token(), role=self._role_of(stmt))
        self.loops.append(loop)
        return loop

    def _next(self, loop: LoopFrame, role: str) -> None:
        self.burn()
        loop.iteration += 1
        loop.token = self.new_token()

    def _leave(self, loop: LoopFrame) -> None:
        if loop.backwards:
            self.event("loop_end", loop.span, serial=loop.serial, iterations=loop.iteration + 1)

    def _stamp(self, value: Value, token: int) -> Value:
        """Mark a loop variable as coming from this iteration."""
        if isinstance(value, Lit):
            return Lit(
                value.value, value.keys, value.moduli, token, value.text if value.text and not value.is_number else ""
            )
        if type(value) is Opaque and value.data:
            value.born = token
        elif isinstance(value, Seq) and value.kind == "tuple":
            return Seq([self._stamp(v, token) for v in value.elts], "tuple", value.path)
        return value

    def run_while(self, stmt: p.While, frame: Frame) -> Signal | None:
        """A while loop."""
        role = self._role_of(stmt)
        loop = self._enter(stmt)
        tags = self.static.body_tags(stmt.body)
        limit = {"idle": 4, "other": 8, "epochs": 2}.get(role, 400)
        drives = frame.yields is not None  # a generator's loop lasts as long as the loop that it drives
        if drives:
            limit = 4000
        quiet = 0
        try:
            while True:
                old = self.test_node, self.test_tags
                self.test_node, self.test_tags = stmt, tags | {"while"}
                if role == "window":
                    self.test_tags = tags | {STEP}
                value = self.eval(stmt.test, frame)
                self.test_node, self.test_tags = old
                truth = self.truth(value)
                if truth is None:
                    relevant = BACKWARD in tags
                    truth = relevant if loop.iteration + 1 < (self._patience(role)) else False
                if not truth:
                    return self.run_body(stmt.orelse, frame) if stmt.orelse else None
                before = len(self.result.backwards)
                self._next(loop, role)
                loop.residual.clear()
                signal = self.run_body(stmt.body, frame)
                if signal is BREAK:
                    return None
                if signal is not None and signal is not CONTINUE:
                    return signal
                quiet = quiet + 1 if len(self.result.backwards) == before else 0
                if loop.iteration + 1 >= limit or (quiet > 12 and not drives):
                    return None
        finally:
            self.loops.pop()
            self._leave(loop)

    def _patience(self, role: str) -> int:
        return {"window": self.scenario.window, "windows": 3, "epochs": self.scenario.epochs, "length": 400}.get(
            role, 3
        )

    def iterate(self, value: Value, each: Callable[[Value], Signal | None], node: p.Node, role: str) -> Signal | None:
        """Drive an iterable through `each`; a signal from it stops the loop."""
        return drive(self, value, each, node, role)

    def do_yield(self, value: Value, frame: Frame) -> None:
        """Run the body of the loop that drives the generator."""
        holder: Frame | None = frame
        while holder is not None and holder.yields is None:
            holder = holder.parent
        if holder is None or holder.yields is None:
            return
        signal = holder.yields(value)
        if signal is not None:
            raise GeneratorExit_(signal)

    # --- with and try --------------------------------------------------------------------------

    def run_with(self, stmt: p.With, frame: Frame) -> Signal | None:
        """A with statement: contexts that matter are active for the body."""
        opened: list[Context] = []
        try:
            for item in stmt.items:
                value = self.eval(item.context, frame)
                context = self.enter_context(value, item, frame)
                if context is not None:
                    opened.append(context)
            return self.run_body(stmt.body, frame)
        finally:
            for context in reversed(opened):
                self.exit_context(context)

    def new_frame(self, func: Function, args: list[Value], kwargs: dict[str, Value]) -> Frame:
        """A frame with a function's parameters bound."""
        raise NotImplementedError

    def call_value(
        self,
        callee: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        node: p.Call,
        frame: Frame,
        *,
        star: bool = False,
    ) -> Value:
        """Call a value with evaluated arguments."""
        raise NotImplementedError

    def enter_context(self, value: Value, item: p.WithItem, frame: Frame) -> Context | None:
        """Enter one context manager."""
        raise NotImplementedError

    def exit_context(self, context: Context) -> None:
        """Leave one context manager."""
        raise NotImplementedError

    def run_try(self, stmt: p.Try, frame: Frame) -> Signal | None:
        """try: the body is the path; handlers run for what the program visibly raises."""
        catches = any(_catches_stop(h) for h in stmt.handlers)
        self.finite_iterators += catches
        counted = catches
        try:
            try:
                signal = self.run_body(stmt.body, frame)
            except UserRaise as raised:
                self.finite_iterators -= counted
                counted = False
                for handler in stmt.handlers:
                    if _handles(handler, raised.name):
                        return self.run_body(handler.body, frame)
                raise
            if signal is None and stmt.orelse:
                signal = self.run_body(stmt.orelse, frame)
            return signal
        finally:
            self.finite_iterators -= counted
            if stmt.final:
                self._finally(stmt, frame)

    def _finally(self, stmt: p.Try, frame: Frame) -> None:
        try:
            self.run_body(stmt.final, frame)
        except (RunOver, UserRaise):
            return


def gates(body: frozenset[str], orelse: frozenset[str], rest: frozenset[str] | None) -> bool:
    """Whether a condition gates the step and not the training itself.

    `rest` are the tags of what follows when the body leaves the block. A branch that holds both backward and step is
    a schedule (a critic, a Hessian estimate), unless the other branch runs backward too and does not step.
    """
    if rest is not None and STEP not in body | orelse:
        return BACKWARD not in rest
    for one, other in ((body, orelse), (orelse, body)):
        if STEP in one and STEP not in other:
            return BACKWARD not in one or BACKWARD in other
    return not (body | orelse) & {STEP}


def _inverse(coefficient: Any) -> Any:
    from galint.run.tensors import invert

    return invert(coefficient)


def _moduli(value: Value) -> tuple[tuple[str, int], ...]:
    if isinstance(value, Lit):
        return value.moduli
    if isinstance(value, Seq):
        return tuple(m for v in value.elts for m in _moduli(v))
    return ()


def _module_base(base: Value) -> bool:
    if isinstance(base, Class):
        return base.module_like
    if isinstance(base, External):
        return base.name.split(".")[-1] in {"Module", "LightningModule", "PreTrainedModel", "ModelMixin", "Sequential"}
    return isinstance(base, Opaque) and path_terminal(base.path) in {"Module", "LightningModule"}


def _catches_stop(handler: p.Handler) -> bool:
    if handler.type is None:
        return True
    names = (
        [terminal(e) for e in handler.type.elts] if isinstance(handler.type, p.Sequence) else [terminal(handler.type)]
    )
    return bool({"StopIteration", "Exception", "BaseException", "StopAsyncIteration"} & set(names))


def _handles(handler: p.Handler, raised: str) -> bool:
    if handler.type is None:
        return True
    names = (
        [terminal(e) for e in handler.type.elts] if isinstance(handler.type, p.Sequence) else [terminal(handler.type)]
    )
    return not raised or raised in names or bool({"Exception", "BaseException"} & set(names))


_EXEC: dict[type, Any] = {
    p.ExprStmt: Execute.run_expr,
    p.Assign: Execute.run_assign,
    p.AugAssign: Execute.run_augassign,
    p.AnnAssign: Execute.run_annassign,
    p.Return: Execute.run_return,
    p.Break: Execute.run_break,
    p.Continue: Execute.run_continue,
    p.Pass: Execute.run_nothing,
    p.Assert: Execute.run_nothing,
    p.Raise: Execute.run_raise,
    p.Delete: Execute.run_delete,
    p.Scope: Execute.run_scope,
    p.Import: Execute.run_import,
    p.ImportFrom: Execute.run_import_from,
    p.FunctionDef: Execute.run_function,
    p.ClassDef: Execute.run_class,
    p.For: Execute.run_for,
    p.While: Execute.run_while,
    p.With: Execute.run_with,
    p.Try: Execute.run_try,
    p.Match: Execute.run_match,
}
_ = Bound
