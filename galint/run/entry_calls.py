"""Calling an entry with unknown arguments: once, per epoch or per micro-batch, as the code in another file would."""

from __future__ import annotations

import contextlib
import re

from galint import program as p
from galint.ledger import OptimizerLedger
from galint.run.calls import Calls
from galint.run.entries import Entries, Entry
from galint.run.frame import Frame, LoopFrame, UserRaise
from galint.run.kinds import LOSS_NAME
from galint.run.nodes import path_terminal, terminal
from galint.run.reach import BACKWARD, STEP
from galint.run.static import Static
from galint.run.values import Class, Function, GeneratorCall, Instance, Lit, Opaque, Value
from galint.semantics import hf_trainer, ignite

_BATCH = re.compile(
    r"batch|data|input|sample|image|img|label|target|x$|y$|ids|text|prompt|chosen|rejected|loss|instruction|output",
    re.I,
)
"""Arguments that another file's loop makes anew for each micro-batch; models, optimizers and settings stay."""
_LOSS = re.compile(r"(^|_)loss(es)?$", re.I)
_PLACE = re.compile(r"\w+(\.\w+)+")
"""An attribute of something that has a name."""


class EntryCalls(Entries):
    """How an entry is called."""

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
                same = isinstance(found, Function) and (found.node is func or entry.inner is not None)
                target = found if same else machine.make_function(func, frame)
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
        if (
            func.name == "training_step"
            and args
            and isinstance(args[0], Instance)
            and hf_trainer.is_trainer(args[0].cls)
        ):
            if STEP not in self.static.tags(func):
                hf_trainer.train(machine, args[0], target, site, frame)
                return
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
            machine.gone_by = frozenset(machine.result.ledgers)
            machine.base = OptimizerLedger("")  # an optimizer that this call makes has not seen the first call
            result = machine.call_value(target, args, kwargs, site, frame)
            self._drain(machine, result, site)

    def _once_is_a_batch(self, func: p.FunctionDef) -> bool:
        """True when one call handles one micro-batch: backward and a step, and no loop around the backward."""
        if not {BACKWARD, STEP} <= self.static.tags(func):
            return False
        if self._asks_for_its_batch(func):
            return True
        seen: set[p.FunctionDef] = set()
        work = [func]
        while work:
            top = work.pop()
            if top in seen:
                continue
            seen.add(top)
            for stmt in top.body:
                for node in self.static.walk(stmt):
                    if isinstance(node, (p.For, p.While)) and BACKWARD in self.static.body_tags(node.body):
                        return False
            if top is func and any(name == "backward" for name, _ in self.static.calls_in(top)):
                break  # what it calls besides runs backward for terms of their own
            work += [
                c
                for call in self.static.calls_in(top)
                for c in self.static.callees(call)
                if BACKWARD in self.static.tags(c)
            ]
        return True

    def _asks_for_its_batch(self, func: p.FunctionDef) -> bool:
        """Whether Lightning's `training_step` asks for the number of its batch, which it is given at each call."""
        params = [q.name for q in func.params if q.kind == "arg"]
        if func.name != "training_step" or len(params) < 3:
            return False
        tests = [n.test for stmt in func.body for n in self.static.walk(stmt) if isinstance(n, p.If)]
        return any(isinstance(n, p.Name) and n.id == params[2] for test in tests for n in self.static.walk(test))

    def _call_per_batch(
        self, machine: Calls, target: Function, args: list[Value], kwargs: dict[str, Value], site: p.Call, frame: Frame
    ) -> None:
        """Call a per-micro-batch function as the loop in another file would."""
        node = target.node
        loop = LoopFrame(node, node.span, 1_000_000, -1, machine.new_token(), role="length")
        machine.loops.append(loop)
        params = [q for q in node.params if q.kind == "arg"][len(args) :]
        kept: dict[str, Value] = {}
        beside: frozenset[str] = frozenset()
        if args and isinstance(args[0], Instance):
            beside = self.static.once(f"counted beside {node.span}", lambda: self._counted_beside(node))
        try:
            for index in range(machine.scenario.length):
                loop.iteration, loop.token = index, machine.new_token()
                loop.residual.clear()
                given = [*args]
                if args:
                    ignite.count(args[0], index + 1, loop.token)
                for position, param in enumerate(params):
                    if getattr(node, "name", "") == "training_step" and args and position == 1:
                        given.append(Lit(index))  # Lightning counts the batches of an epoch from 0
                    elif machine.result.roles.get(param.name) == "counter":
                        number = int(machine.result.known.get(param.name, 0)) + index
                        given.append(Lit(number, frozenset({f"{param.name}@start"})))
                    elif target.defaults.get(param.name) is None:
                        if param.name not in kept or _BATCH.search(param.name) or LOSS_NAME.search(param.name):
                            kept[param.name] = self._param(machine, param)
                        given.append(kept[param.name])
                    else:
                        break
                fresh = [self._handed(machine, v, loop.token) for v in given]
                result = machine.call_value(target, fresh, kwargs, site, frame)
                self._drain(machine, result, site)
                self._count_elsewhere(machine)
                for name in beside:
                    self._count_beside(args[0], name)
        finally:
            machine.loops.pop()

    def _count_elsewhere(self, machine: Calls) -> None:
        """Move the counters of objects that no line in sight moves: what calls the function with each batch counts."""
        given = self.static.once("given", self._given_names)
        for path, role in machine.result.roles.items():
            if role == "counter" and _PLACE.fullmatch(path) and path_terminal(path) not in given:
                machine.result.known[path] = machine.result.known.get(path, 0) + 1
                machine.result.facts.setdefault("counted_elsewhere", set()).add(path)

    def _counted_beside(self, func: p.Node) -> frozenset[str]:
        """The attributes whose remainders are asked for, and which only a method beside those that `func` runs counts up."""
        own = {func, *self.static.run_by([func])}
        moved = {
            (terminal(n.target), f)
            for group in self.static.functions.values()
            for f in group
            for n in self.static.walk(f)
            if isinstance(n, p.AugAssign) and isinstance(n.target, p.Attr) and n.op == "+"
        }
        names = {name for name, _ in moved} & self.static.counters
        return frozenset(
            name
            for name in names
            if all(f not in own and not self.static.tags(f) & {BACKWARD, STEP} for other, f in moved if other == name)
        )

    def _count_beside(self, instance: Value, name: str) -> None:
        old = instance.attrs.get(name) if isinstance(instance, Instance) else None
        if isinstance(instance, Instance) and isinstance(old, Lit) and old.is_number:
            instance.attrs[name] = Lit(old.value + 1, old.keys | {f"self.{name}@start"}, born=old.born)

    def _given_names(self) -> frozenset[str]:
        """The last names of everything that the program assigns, and of its functions."""
        out: set[str] = set()
        for node in self.static.everything():
            if isinstance(node, p.Assign):
                out.update(terminal(e) for t in node.targets for e in (t.elts if isinstance(t, p.Sequence) else (t,)))
            elif isinstance(node, p.AugAssign):
                out.add(terminal(node.target))
            elif isinstance(node, p.FunctionDef):
                out.add(node.name)
        return frozenset(out)

    def _handed(self, machine: Calls, value: Value, token: int) -> Value:
        """An argument for one micro-batch: a loss that comes from another file may have been divided there."""
        if type(value) is not Opaque or value.kind or not _BATCH.search(value.path):
            return value
        if _LOSS.search(value.path):
            loss = machine.tensor(value.path, token)
            loss.grad, loss.unknown_scale = True, True
            return loss
        return Opaque(value.path, data=True, born=token)

    def _drain(self, machine: Calls, result: Value, site: p.Call) -> None:
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
        loops = [n for s in func.body for n in self.static.walk(s) if isinstance(n, (p.For, p.While))]
        trains = [n for n in loops if {BACKWARD, STEP} <= self.static.body_tags(n.body)]
        if len(trains) > 1 or any(n in self.static.limits for loop in trains for n in self.static.walk(loop)):
            return False  # a pass that is left out at the end of a training has no next one
        if not trains:
            return not any(BACKWARD in self.static.body_tags(n.body) for n in loops)
        if self._goes_on(func, trains[0]):
            return False
        inner = [n for s in trains[0].body for n in self.static.walk(s) if isinstance(n, (p.For, p.While))]
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

    def _goes_on(self, func: p.FunctionDef, loop: p.For | p.While) -> bool:
        """Whether a loop counts steps and draws each batch from something that has no end: a training, and no pass over data."""
        if not isinstance(loop, p.For):
            return False
        told = [func.name, *(q.name for q in func.params), p.text(loop.iter)]
        if "range(" not in told[-1] or any(re.search(r"epoch|len\(", text) for text in told):
            return False
        inside = {terminal(n.func) for s in loop.body for n in self.static.walk(s) if isinstance(n, p.Call)}
        anew = any(isinstance(n, p.Call) and terminal(n.func) == "iter" for s in func.body for n in self.static.walk(s))
        return "next" in inside and (not anew or "iter" in inside)  # an iterator made at the head is one pass's

    def _trains(self, stmt: p.Assign | p.AnnAssign) -> bool:
        """Whether an assignment runs a training; one that only binds arguments does not."""
        bound = isinstance(stmt.value, p.Call) and terminal(stmt.value.func) == "partial"
        return not bound and bool(self.static.tags(stmt) & {BACKWARD, STEP})

    def _definitions(self, machine: Calls, frame: Frame) -> None:
        """Run the module's imports, definitions and plain assignments."""
        for stmt in self.program.body:
            if isinstance(stmt, (p.FunctionDef, p.ClassDef, p.Import, p.ImportFrom, p.Assign, p.AnnAssign)):
                if isinstance(stmt, (p.Assign, p.AnnAssign)) and self._trains(stmt):
                    continue
                machine.run_body((stmt,), frame)
            elif isinstance(stmt, (p.Try, p.If)) and not self.static.tags(stmt) & {BACKWARD, STEP}:
                if isinstance(stmt, p.If) and "__name__" in p.text(stmt.test):
                    continue
                machine.run_body((stmt,), frame)
            elif (
                isinstance(stmt, p.ExprStmt)
                and isinstance(stmt.value, p.Call)
                and terminal(stmt.value.func) == "add_argument"
            ):
                machine.run_body((stmt,), frame)


def _has_training_loop(static: Static, func: p.FunctionDef) -> bool:
    return any(
        isinstance(n, (p.For, p.While)) and BACKWARD in static.body_tags(n.body)
        for s in func.body
        for n in static.walk(s)
    )
