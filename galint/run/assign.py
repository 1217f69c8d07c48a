"""Assignments of the abstract run: names, attributes, items, unpacking, augmented assignment and `del`."""

from __future__ import annotations

from typing import Any

from galint import program as p
from galint.ledger import ONE, Coefficient
from galint.run.evaluate import Evaluate
from galint.run.frame import Frame
from galint.run.names import CONFIG
from galint.run.nodes import terminal
from galint.run.tensors import invert
from galint.run.values import (
    LONGEST,
    NONE,
    Class,
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
from galint.source import Span

_SETTLED = frozenset({Lit, Tensor, Function, Class})
"""Values that no name says more about."""
_RETYPED = {"optimizer", "module", "scaler", "scheduler", "loader", "criterion", "accelerator", "fabric", "engine"}


class Assign(Evaluate):
    """What an assignment changes."""

    # --- assignment statements -----------------------------------------------------------------

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
        if isinstance(value, Mapping) and isinstance(stmt.value, p.Dict):
            _set_up(value, p.text(stmt.targets[0]))
        if (
            isinstance(stmt.value, p.BinOp)
            and isinstance(value, Lit)
            and terminal(stmt.targets[0]) in self.static.divisors
        ):
            value = self._quotient(value, stmt.value)
        if (
            type(value) is Lit
            and isinstance(stmt.value, p.Name)
            and terminal(stmt.targets[0]) in self.static.countdowns
        ):
            if type(value.value) is int and 1 < value.value <= 64 and not value.keys:
                # `left = many`, run down from there.
                value = Lit(value.value, moduli=((f"≥{value.value}", value.value),))
        for target in stmt.targets:
            if isinstance(value, Tensor) and self._rebinds(target, value, frame):
                self._late_scaling(target, value, stmt, frame)
            self.bind(target, self._passed_through(target, value, stmt.value, frame), frame)

    def _quotient(self, value: Lit, node: p.BinOp) -> Lit:
        """N computed as a quotient: of defaults that switch it off, or of numbers that were made up, it is any N."""
        made_up = any(self.result.roles.get(key) in {"limit", "other"} for key in value.keys)
        off = value.is_number and value.value <= 1 and any(key in self.settings for key in value.keys)
        if node.op not in {"//", "/"} or not (off or (made_up and not 2 <= value.value <= 512)):
            return value
        text = p.text(node)
        number = self.result.known[text] = self.scenario.window
        self.result.roles[text] = "window"
        return Lit(number, frozenset({text}), text=text, born=value.born)

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
        if not isinstance(node, p.Call) or type(value) is not Opaque or value.deferred is not None or not node.args:
            return value
        among = value.kind == "loader" and isinstance(target, p.Sequence)  # a loader went in among other things
        if value.kind and not among:
            return value
        if (decorated := self._decorated(target, node, frame)) is not None:
            return decorated
        wanted = [target] if not isinstance(target, p.Sequence) else list(target.elts)
        args = {p.text(a.value): a.value for a in node.args}
        if not any(p.text(t) in args for t in wanted):
            return value
        kept: list[Value] = []
        for one in wanted:
            text = p.text(one)
            old = self.eval(args[text], frame) if text in args else None
            if (
                old is value  # the call was followed and gave back what it was given
                or isinstance(old, (Module, Optimizer, Instance))
                or (isinstance(old, Opaque) and old.kind in {*_RETYPED, "argparser"})
            ):
                kept.append(old)
            else:
                name = terminal(one)
                kept.append(self.make_opaque(text or f"#{self.tick()}", name, data=value.data, born=value.born))
        if among and not any(isinstance(one, (Module, Optimizer)) for one in kept):
            return value
        return kept[0] if len(kept) == 1 and not isinstance(target, p.Sequence) else Seq(kept, "tuple")

    def _decorated(self, target: p.Expr, node: p.Expr, frame: Frame) -> Function | None:
        """The function that unknown calls are given and give back: `step = timed("step")(counted(step))`."""
        while isinstance(node, p.Call) and len(node.args) == 1:
            node = node.args[0].value
        if not isinstance(node, p.Name) or p.text(node) != p.text(target):
            return None
        given = self.eval(node, frame)
        return given if isinstance(given, Function) else None

    def run_augassign(self, stmt: p.AugAssign, frame: Frame) -> None:
        """`target op= value`."""
        old = self.eval(stmt.target, frame)
        right = self.eval(stmt.value, frame)
        if isinstance(old, Opaque) and old.role == "grad":
            if stmt.op in {"*", "/"}:
                factor = self.symbol(right)
                self.rescale(old.modules, factor if stmt.op == "*" else invert(factor), stmt.span)
            return
        if isinstance(old, Seq) and stmt.op == "+" and isinstance(right, Seq):
            old.elts += right.elts[: max(LONGEST - len(old.elts), 0)]
            return
        if isinstance(old, Opaque) and not old.data and isinstance(self.resolve(right), Lit) and stmt.op in {"+", "-"}:
            number = self.resolve(right)
            if isinstance(number, Lit) and number.is_number and old.kind == "" and old.deferred is None:
                countdown = stmt.op == "-" and old.path != p.text(stmt.target)  # `left = args.every`, `left -= 1`
                start = self.demand(old, "window", None) if countdown else self.demand(old, "counter", stmt.target)
                if start is not None:
                    unseen = frozenset() if countdown else frozenset({f"{old.path}@start"})
                    old = Lit(start.value, start.keys | unseen, born=start.born, text="")
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

    def run_delete(self, stmt: p.Delete, frame: Frame) -> None:
        """`del name`: only dict items and names go."""
        for target in stmt.targets:
            if isinstance(target, p.Subscript):
                receiver = self.eval(target.value, frame)
                if isinstance(receiver, Mapping) and not isinstance(target.index, p.Slice):
                    index = self.eval(target.index, frame)
                    if isinstance(index, Lit):
                        receiver.items.pop(index.value, None)

    # --- targets -------------------------------------------------------------------------------

    def bind(self, target: p.Expr, value: Value, frame: Frame) -> None:
        """Bind `target` to `value`, unpacking and retyping by name where the value says nothing."""
        if isinstance(target, p.Name):
            name = target.id
            holder = frame.nonlocals.get(name, frame) if frame.nonlocals else frame
            if type(value) not in _SETTLED:
                value = self._retype(name, name, value)
                if type(value) is Optimizer:
                    self.renew(holder.vars.get(name), value)
            holder.vars[name] = value
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
            if not value.kind and value.role == "" and value.deferred is None and not value.path.startswith("len("):
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
                        if "__batches__" in value.items:
                            made.items["__batches__"] = value.items["__batches__"]
                        made.length = value.length
                    return made
            if value.path.startswith("#"):
                value.path = path
        elif (
            (isinstance(value, (Instance, Mapping)) and value.path.startswith("#"))
            or (isinstance(value, Seq) and not value.path)
            or (isinstance(value, (Module, Optimizer)) and value.path.startswith("#"))
        ):
            value.path = path
        return value

    def set_attr(self, receiver: Value, name: str, value: Value, target: p.Attr) -> None:
        """`receiver.name = value`, with the effects that some attributes have."""
        if isinstance(receiver, Module) and name == "require_backward_grad_sync":
            truth = self.truth(value)
            receiver.sync = True if truth is None else truth
            receiver.attrs[name] = value
            self.event("sync_flag", target.span, receiver.path, on=receiver.sync, known=truth is not None)
            return
        if type(value) is Optimizer and isinstance(receiver, Opaque):
            self.renew(receiver.attrs.get(name), value)
        setter = self.class_member(receiver.cls, f"{name}.setter") if isinstance(receiver, Instance) else None
        if isinstance(setter, Function):
            self.call_function(setter, [receiver, value], {}, target)
            return
        setting = isinstance(receiver, Instance) and isinstance(value, Opaque) and not value.data and not value.role
        if name in {"grad", "main_grad"} and isinstance(receiver, (Opaque, Tensor)) and not setting:
            if isinstance(value, Lit) and value.value is None:
                self.clear(None, receiver.modules, target.span, f"{p.text(target)} = None")
            elif isinstance(value, Opaque) and value.role == "grad":
                if value.path == f"{receiver.path}.{name}" and value.deferred is not None:
                    self.rescale(receiver.modules, self.grad_factor(value), target.span)
            elif isinstance(value, (Tensor, Opaque)):
                self.copied(receiver.modules)
                self.result.facts["manual_grad"] = True
            return
        if isinstance(receiver, Opaque) and receiver.role == "param" and name == "requires_grad":
            self.freeze(receiver.modules, self.truth(value))
            return
        if isinstance(receiver, Opaque) and receiver.role == "grad" and name == "data":
            self.overwritten(receiver, value, target.span)
            return
        if isinstance(receiver, Tensor) and isinstance(value, Tensor):
            receiver.terms, receiver.keys = value.terms, value.keys  # `output.loss /= N`
        elif isinstance(receiver, (Instance, Module, Opaque)):
            path = f"{receiver.path}.{name}"
            receiver.attrs[name] = self._retype(name, path, value)
            if isinstance(value, Module) and receiver.modules:
                self.adopt(receiver, value)
        elif isinstance(receiver, Class):
            receiver.members[name] = value

    def overwritten(self, grad: Opaque, value: Value, span: Span) -> None:
        """`p.grad.data = value` and `p.grad.copy_(value)`: a multiple of itself, or something else."""
        if isinstance(value, Opaque) and value.role == "grad" and value.path == grad.path:
            if value.deferred is not None:
                self.rescale(grad.modules, self.grad_factor(value), span)
            return
        self.copied(grad.modules)
        self.result.facts["manual_grad"] = True

    def grad_factor(self, value: Value) -> Coefficient:
        """What a gradient was multiplied by on its way back into its parameter."""
        factor = ONE
        while isinstance(value, Opaque) and value.deferred is not None:
            op, value, other = value.deferred
            by = self.symbol(other)
            factor = factor.combine(by if op == "*" else invert(by))
        return factor

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
        elif (
            isinstance(receiver, Opaque) and isinstance(index, Lit) and (not receiver.data or isinstance(value, Tensor))
        ):
            receiver.items[index.value] = value
        elif isinstance(receiver, Tensor):
            if isinstance(value, Tensor) and value.keys - receiver.keys:
                self.items_scaled = True
        elif isinstance(receiver, Opaque) and _divided(value):
            receiver.items["__divided__"] = value  # the total may be taken of them afterwards

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


def _divided(value: Value) -> bool:
    """Whether a loss, or what may be one, was divided by something."""
    if isinstance(value, Opaque):
        return value.deferred is not None and value.deferred[0] == "/"
    return isinstance(value, Tensor) and any(
        t.coefficient.value < 1 or any(power < 0 for _, power in t.coefficient.symbols) for t in value.terms
    )


def _set_up(value: Mapping, name: str) -> None:
    """The numbers of a dict display that is called a configuration are defaults of settings."""
    if CONFIG.search(name.lower()):
        for key, item in value.items.items():
            if type(item) is Lit and item.is_number and not isinstance(item.value, bool) and not item.keys:
                path = f"{name}[{key!r}]"
                value.items[key] = Lit(item.value, frozenset({path}), text=path)
