"""Expressions of the abstract run: arithmetic, comparisons, attributes, subscripts, conditions."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from galint import program as p
from galint.ledger import ONE, Coefficient
from galint.run.frame import Frame, Signal
from galint.run.machine import Machine, arithmetic
from galint.run.static import path_terminal, terminal
from galint.run.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Class,
    External,
    Function,
    GeneratorCall,
    Instance,
    Iterable,
    Iterator,
    Lit,
    Mapping,
    Module,
    ModuleValue,
    Opaque,
    Optimizer,
    Partial,
    Range,
    Seq,
    Super,
    Tensor,
    Value,
)

BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "dict",
        "divmod",
        "enumerate",
        "filter",
        "float",
        "frozenset",
        "getattr",
        "hasattr",
        "id",
        "int",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "list",
        "map",
        "max",
        "min",
        "next",
        "object",
        "open",
        "print",
        "property",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "setattr",
        "slice",
        "sorted",
        "staticmethod",
        "classmethod",
        "str",
        "sum",
        "super",
        "tuple",
        "type",
        "vars",
        "zip",
        "callable",
        "hash",
        "format",
        "input",
        "eval",
        "exec",
        "exit",
        "quit",
        "Exception",
        "ValueError",
        "RuntimeError",
        "StopIteration",
        "KeyError",
        "TypeError",
        "NotImplementedError",
        "AssertionError",
        "KeyboardInterrupt",
        "globals",
        "locals",
        "bytes",
        "iter",
    ]
)


class Evaluate(Machine):
    """The expression half of the machine."""

    # The statement and call halves, one layer up, fill these in.
    def call(self, node: p.Call, frame: Frame) -> Value:
        """Evaluate a call."""
        raise NotImplementedError

    def call_function(self, func: Function, args: list[Value], kwargs: dict[str, Value], node: p.Node) -> Value:
        """Run a project function."""
        raise NotImplementedError

    def iterate(self, value: Value, each: Callable[[Value], Signal | None], node: p.Node, role: str) -> Signal | None:
        """Drive an iterable."""
        raise NotImplementedError

    def eval(self, node: p.Expr, frame: Frame) -> Value:
        """The value of an expression."""
        self.fuel -= 1
        handler = _EVAL.get(type(node))
        if handler is None:
            return Opaque(p.text(node))
        result: Value = handler(self, node, frame)
        return result

    # --- names, attributes, items --------------------------------------------------------------

    def eval_name(self, node: p.Name, frame: Frame) -> Value:
        """A name: local, enclosing, global, builtin, or opaque."""
        holder: Frame | None = frame
        name = node.id
        while holder is not None:
            value = holder.vars.get(name)
            if value is not None:
                return self.soft(value)
            holder = holder.parent
        if name in BUILTINS:
            return External(f"builtins.{name}")
        if name == "__name__":
            return Lit("__main__")
        made = self.make_opaque(name, name)
        frame.globals.vars[name] = made
        return made

    def soft(self, value: Value) -> Value:
        """A setting's default, or the value that this run gives the setting instead."""
        if isinstance(value, Lit) and value.text in value.keys and isinstance(value.value, int):
            if value.value <= 1 and not isinstance(value.value, bool) and value.text not in self.scenario.values:
                value = self._meant(value)
            self.settings[value.text] = int(self.scenario.values.get(value.text, value.value))
        if isinstance(value, Lit) and value.text and value.text in self.scenario.values and value.text in value.keys:
            return Lit(self.scenario.values[value.text], value.keys, value.moduli, value.born, value.text)
        return value

    def _meant(self, value: Lit) -> Lit:
        """A default that switches a feature off, read as if the feature were on: one rank, a window of one."""
        name = path_terminal(value.text)
        if _ONE_RANK.search(name):
            if name == value.text:
                return value  # a plain assignment says what it means
            number = 0 if _RANK_NAME.search(name) else 2
        elif _ONE_WINDOW.search(name) and value.value != 0:
            number = 2 if _SIZE.search(name) else self.scenario.window
        else:
            return value
        return Lit(number, value.keys, value.moduli, value.born, value.text)

    def eval_attr(self, node: p.Attr, frame: Frame) -> Value:
        """`value.name`."""
        return self.get_attr(self.eval(node.value, frame), node.name, node)

    def get_attr(self, value: Value, name: str, node: p.Expr) -> Value:
        """The attribute of a value; unknown ones are opaque and remembered."""
        if isinstance(value, External):
            return External(f"{value.name}.{name}")
        if isinstance(value, ModuleValue):
            found = value.frame.vars.get(name)
            return self.soft(found) if found is not None else External(f"{value.name}.{name}")
        if isinstance(value, Module):
            return self._module_attr(value, name)
        if isinstance(value, Instance):
            return self._instance_attr(value, name, node)
        if isinstance(value, Opaque):
            return self._opaque_attr(value, name)
        if isinstance(value, Tensor):
            return self.tensor_attr(value, name)
        if isinstance(value, Class):
            found = self.class_member(value, name)
            return found if found is not None else Opaque(f"{value.node.name}.{name}")
        if isinstance(value, Super):
            for base in value.cls.bases:
                if isinstance(base, Class):
                    found = self.class_member(base, name)
                    if isinstance(found, Function):
                        return Bound(value.instance, name, found)
            return Bound(Opaque("super()"), name)
        if isinstance(value, Bound) and value.func is None and isinstance(value.receiver, Opaque):
            return Opaque(f"{value.receiver.path}.{value.name}.{name}")
        if isinstance(value, Mapping | Seq | Iterator | Lit | Iterable | Range):
            return Bound(value, name)
        return Opaque(p.text(node))

    def _module_attr(self, value: Module, name: str) -> Value:
        if name in value.attrs:
            return value.attrs[name]
        if name == "module" and value.inner is not None:
            return value.inner
        if name == "require_backward_grad_sync":
            return TRUE if value.sync else FALSE
        if name == "training":
            return TRUE if value.training else FALSE
        if name in {"device", "config", "dtype"}:
            return Opaque(f"{value.path}.{name}")
        if name in _MODULE_METHODS:
            return Bound(value, name)
        if value.cls is not None:
            owner = value.items.get("__class__")
            if isinstance(owner, Class):
                found = self.class_member(owner, name)
                if isinstance(found, Function):
                    return Bound(value, name, found)
                if found is not None:
                    return found
        if name == "module":
            value.attrs[name] = self.make_module(f"{value.path}.module", self.ancestors[value.ident])
            value.attrs[name].modules |= value.modules  # type: ignore[attr-defined]
            return value.attrs[name]
        sub = self.make_module(f"{value.path}.{name}", self.ancestors[value.ident])
        value.attrs[name] = sub
        return sub

    def _instance_attr(self, value: Instance, name: str, node: p.Expr) -> Value:
        if name in value.attrs:
            return self.soft(value.attrs[name])
        found = self.class_member(value.cls, name)
        if isinstance(found, Function):
            if any(terminal(d) in {"property", "cached_property"} for d in getattr(found.node, "decorators", ())):
                return self.call_function(found, [value], {}, node)
            if any(terminal(d) == "staticmethod" for d in getattr(found.node, "decorators", ())):
                return found
            return Bound(value, name, found)
        if found is not None:
            return self.soft(found)
        if value.cls.module_like and name in _MODULE_METHODS:
            return Bound(value, name)
        made = self.make_opaque(f"{value.path}.{name}", name)
        if isinstance(made, Module) and value.modules:
            made.modules |= value.modules
        value.attrs[name] = made
        return made

    def _opaque_attr(self, value: Opaque, name: str) -> Value:
        if name in value.attrs:
            return self.soft(value.attrs[name])
        defaults = value.items.get("__defaults__")
        if isinstance(defaults, Mapping) and name in defaults.items:
            default = defaults.items[name]
            if isinstance(default, Lit):
                path = f"{value.path}.{name}"
                return self.soft(Lit(default.value, frozenset({path}), text=path))
            return default
        if isinstance(value, Optimizer) or value.kind in {"scaler", "scheduler", "accelerator", "fabric", "engine"}:
            special = self.kind_attr(value, name)
            if special is not None:
                return special
        if value.role == "param" and name in {"grad", "main_grad"}:
            made = Opaque(f"{value.path}.grad", role="grad", modules=value.modules)
            value.attrs[name] = made
            return made
        if value.role == "grad" and name == "data":
            return value
        kind = "" if value.data or _CONFIG.search(value.path) else self.static.kind_of(name)
        if value.kind in {"namespace", "config"}:
            kind = ""
        if name in _GRADIENT_METHODS and kind == "":
            return Bound(value, name)
        made = self.make_opaque(
            f"{value.path}.{name}", name if kind else "", data=value.data, born=value.born, kind=kind
        )
        if value.modules and not made.modules:
            made.modules = value.modules
        value.attrs[name] = made
        return made

    def kind_attr(self, value: Opaque, name: str) -> Value | None:
        """An attribute with a meaning on an optimizer, scaler, accelerator …; None when it has none."""
        return None

    def tensor_attr(self, value: Tensor, name: str) -> Value:
        """An attribute of a tensor or of a model's output."""
        if name in {"shape", "ndim", "dtype", "device", "is_cuda"}:
            return Opaque(f"{value.path}.{name}", data=name == "shape", born=value.born)
        if name in {"data"}:
            out = value.copy()
            out.grad = False
            return out
        if name == "requires_grad":
            return TRUE if value.grad else FALSE
        if name == "grad":
            return Opaque(f"{value.path}.grad", role="grad", modules=value.modules)
        out = value.copy()
        out.path = f"{value.path}.{name}"
        return out

    def class_member(self, cls: Class, name: str) -> Value | None:
        """Look a name up in a class and its project bases."""
        if name in cls.members:
            return cls.members[name]
        for base in cls.bases:
            if isinstance(base, Class):
                found = self.class_member(base, name)
                if found is not None:
                    return found
        return None

    def eval_subscript(self, node: p.Subscript, frame: Frame) -> Value:
        """`value[index]`."""
        value = self.eval(node.value, frame)
        if isinstance(node.index, p.Slice):
            return self._slice(value, node.index, frame, node)
        index = self.eval(node.index, frame)
        return self.get_item(value, index, node)

    def _slice(self, value: Value, part: p.Slice, frame: Frame, node: p.Expr) -> Value:
        bounds = [self.eval(b, frame) if b is not None else None for b in (part.lower, part.upper, part.step)]
        if isinstance(value, Seq):
            numbers = [b.value if isinstance(b, Lit) and isinstance(b.value, int) else None for b in bounds]
            if all(n is not None or b is None for n, b in zip(numbers, bounds, strict=True)):
                return Seq(value.elts[slice(*numbers)], value.kind)
            return value
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Opaque):
            if value.data or value.kind == "loader":
                return Opaque(
                    f"{value.path}[…]", data=True, born=max([value.born, *(self.born_of(b) for b in bounds if b)])
                )
            return value
        return Opaque(p.text(node), data=self.is_data(value))

    def get_item(self, value: Value, index: Value, node: p.Expr) -> Value:
        """`value[index]` for an evaluated index."""
        if isinstance(index, Opaque):
            index = self.resolve(index)
        if isinstance(value, Seq):
            if isinstance(index, Lit) and isinstance(index.value, int) and value.elts:
                if -len(value.elts) <= index.value < len(value.elts):
                    return self.soft(value.elts[index.value])
            return value.elts[0] if value.elts else Opaque(p.text(node), data=True, born=self.token())
        if isinstance(value, Mapping):
            if isinstance(index, Lit) and index.value in value.items:
                return self.soft(value.items[index.value])
            if isinstance(index, Lit):
                path = f"{value.path or p.text(node)}[{index.value!r}]" if value.path else p.text(node)
                made = self.make_opaque(path, str(index.value) if isinstance(index.value, str) else "")
                value.items[index.value] = made
                return made
            return next(iter(value.items.values()), Opaque(p.text(node)))
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Opaque):
            key = index.value if isinstance(index, Lit) else getattr(index, "path", None)
            if not value.data and key is not None and not (isinstance(index, Lit) and index.born):
                if key in value.items:
                    return self.soft(value.items[key])
                name = key if isinstance(key, str) and isinstance(index, Lit) else ""
                defaults = value.items.get("__defaults__")
                if isinstance(defaults, Mapping) and key in defaults.items:
                    return defaults.items[key]
                made = self.make_opaque(
                    f"{value.path}[{key!r}]" if name else f"{value.path}[{key}]", name, born=value.born
                )
                made.modules |= value.modules
                value.items[key] = made
                return made
            born = max(value.born, self.born_of(index))
            if (isinstance(index, Lit) and index.born) or self.is_data(index):
                return Opaque(p.text(node), data=True, born=born, modules=value.modules)
            return Opaque(f"{value.path}[…]", data=value.data, born=born, modules=value.modules)
        if isinstance(value, External):
            return Opaque(p.text(node))
        return Opaque(p.text(node), data=self.is_data(value), born=self.born_of(value))

    # --- operators -----------------------------------------------------------------------------

    def eval_binop(self, node: p.BinOp, frame: Frame) -> Value:
        """`left op right`."""
        return self.binary(node.op, self.eval(node.left, frame), self.eval(node.right, frame), node, node.right)

    def binary(self, op: str, left: Value, right: Value, node: p.Node, right_node: p.Expr | None = None) -> Value:
        """An arithmetic operation on two values."""
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return self.tensor_binary(op, left, right)
        left, right = self.resolve(left), self.resolve(right)
        if op == "%" and isinstance(right, Opaque) and (isinstance(left, Lit) or not right.data):
            wanted = self.demand(right, "other" if not isinstance(left, Lit) or left.is_number else "", right_node)
            right = wanted or right
        if (
            op == "//"
            and type(right) is Opaque
            and not right.data
            and not right.kind
            and isinstance(left, Lit)
            and left.is_number
        ) and (terminal(right_node) or path_terminal(right.path)) in self.static.window_names:
            right = self.demand(right, "window", right_node) or right
        if (
            op == "%" and isinstance(left, Opaque) and isinstance(right, Lit) and right.is_number and not left.data
        ) or (op == "%" and isinstance(left, Opaque) and isinstance(right, Lit) and right.is_number and left.deferred):
            left = self.demand(left, "counter", None) or left
        if isinstance(left, Lit) and isinstance(right, Lit):
            if left.is_number and right.is_number:
                number = arithmetic(op, left.value, right.value)
                if number is not None:
                    moduli = left.moduli + right.moduli
                    if op == "%" and isinstance(right.value, int):
                        label = right.text or (next(iter(sorted(right.keys))) if right.keys else str(right.value))
                        if right_node is not None and right.keys:
                            self.spell(label, right_node)
                        moduli = (*moduli, (label, int(right.value)))
                    keys = left.keys | right.keys
                    text = self._op_text(op, left, right, node)
                    if text and text in self.scenario.values:
                        number = self.scenario.values[text]
                    return Lit(number, keys, moduli[-4:], max(left.born, right.born), text)
            if op == "+" and type(left.value) is type(right.value) and isinstance(left.value, str | bytes):
                return Lit(left.value + right.value, left.keys | right.keys)
            if op == "%" and isinstance(left.value, str):
                return Opaque(p.text(node) if isinstance(node, p.Expr) else "%", data=self.is_data(right))
        if isinstance(left, Seq) and isinstance(right, Seq) and op == "+":
            return Seq(left.elts + right.elts, left.kind)
        if isinstance(left, Seq) and op == "*" and isinstance(right, Lit) and isinstance(right.value, int):
            return Seq(left.elts * min(max(right.value, 0), 64), left.kind)
        return self.defer(op, left, right, node)

    def _op_text(self, op: str, left: Lit, right: Lit, node: p.Node) -> str:
        if not left.keys and not right.keys:
            return ""
        return p.text(node) if isinstance(node, p.Expr) else ""

    def defer(self, op: str, left: Value, right: Value, node: p.Node) -> Value:
        """Arithmetic over something unknown, kept so that it can be computed once it is known."""
        data = self.is_data(left) or self.is_data(right)
        born = max(self.born_of(left), self.born_of(right))
        if isinstance(left, Opaque) and left.role == "grad":
            return Opaque(left.path, role="grad", modules=left.modules)
        out = Opaque(self.path_of(left, op, right), data=data, born=born)
        if len(out.path) > 120:
            out.path = p.text(node) if isinstance(node, p.Expr) and len(p.text(node)) < 120 else f"#{self.tick()}"
        out.depth = 1 + max(getattr(left, "depth", 0), getattr(right, "depth", 0))
        if isinstance(left, Lit | Opaque) and isinstance(right, Lit | Opaque) and out.depth <= _DEEPEST:
            out.deferred = (op, left, right)
        elif out.depth > _DEEPEST:
            out.depth = 0
        out.modules = self.modules_in(left) | self.modules_in(right)
        return out

    def path_of(self, left: Value, op: str, right: Value) -> str:
        """The canonical spelling of an operation on two values."""
        return f"{_spell(left)} {op} {_spell(right)}"

    def tensor_binary(self, op: str, left: Value, right: Value) -> Value:
        """Arithmetic in which a tensor takes part."""
        if op in {"*", "/"} and not (isinstance(left, Tensor) and isinstance(right, Tensor)):
            if isinstance(left, Tensor):
                return self.scale_tensor(left, right, 1 if op == "*" else -1)
            if op == "*" and isinstance(right, Tensor):
                return self.scale_tensor(right, left, 1)
        tensors = [v for v in (left, right) if isinstance(v, Tensor)]
        if op in {"+", "-"}:
            return self.add_tensors(tensors, negate_second=op == "-")
        if op in {"*", "/"} and len(tensors) == 2:
            return self.multiply_tensors(tensors[0], tensors[1], 1 if op == "*" else -1)
        mixed = self.mix(tensors, f"({op})")
        mixed.unknown_scale = op == "/"
        return mixed

    def multiply_tensors(self, left: Tensor, right: Tensor, sign: int) -> Tensor:
        """A product or quotient of tensors: the one that is not a loss is a weight of unknown size."""
        main, other = (left, right) if left.grad or not right.grad else (right, left)
        if main is right and sign < 0:
            return self.mix([left, right], "/")
        if sign > 0 and not other.unknown_scale:
            weight = other.terms[-1].coefficient if other.terms and not other.grad else ONE
            out = main.map(lambda c: c.combine(weight), other.keys if not other.grad else frozenset())
        else:
            out = main.map(lambda c: c.times_symbol(other.path, sign))
        out.unknown_scale = main.unknown_scale or other.unknown_scale
        out.hidden |= other.keys | other.hidden
        out.modules |= other.modules if other.grad else frozenset()
        out.reduced = main.reduced
        return out

    def scale_tensor(self, tensor: Tensor, factor: Value, sign: int) -> Value:
        """A tensor multiplied (sign 1) or divided (sign -1) by a number or by something unknown."""
        factor = self.resolve(factor)
        if isinstance(factor, Lit) and factor.is_number:
            number = Fraction(factor.value)
            if number == 0:
                out = tensor.copy()
                out.unknown_scale = True
                return out
            change = number if sign > 0 else 1 / number
            settings = factor.keys if sign < 0 or number <= 1 else frozenset()
            out = tensor.map(lambda c: c.times(change), settings | {m[0] for m in factor.moduli} | {_literal(factor)})
            return self._late(tensor, out)
        if isinstance(factor, Opaque) and sign > 0 and _SAMPLES.search(factor.path):
            out = tensor.copy()
            out.summed = True  # a mean times the number of samples is a sum
            return self._late(tensor, out)
        if (
            isinstance(factor, Opaque)
            and sign > 0
            and factor.data
            and factor.deferred is None
            and not _SCALE_NAME.search(factor.path)
        ):
            return self._late(tensor, tensor.copy())  # weights of the samples, not a factor of the whole
        if isinstance(factor, Opaque):
            coefficient = self.symbol(factor)
            out = tensor.map(
                lambda c: c.combine(coefficient if sign > 0 else invert(coefficient)), frozenset({factor.path})
            )
            return self._late(tensor, out)
        return tensor

    def _late(self, old: Tensor, new: Tensor) -> Tensor:
        new.done = old.done
        return new

    def symbol(self, value: Value) -> Coefficient:
        """An unknown number as a coefficient, arithmetic kept where it is a product or quotient."""
        value = self.resolve(value)
        if isinstance(value, Lit) and value.is_number and value.value != 0:
            return Coefficient(Fraction(value.value))
        if isinstance(value, Opaque) and value.deferred is not None and value.deferred[0] in {"*", "/"}:
            op, left, right = value.deferred
            a, b = self.symbol(left), self.symbol(right)
            return a.combine(b if op == "*" else invert(b))
        return ONE.times_symbol(getattr(value, "path", "?") or "?", 1)

    def add_tensors(self, tensors: list[Tensor], *, negate_second: bool = False) -> Tensor:
        """A sum of tensors: the union of their addends."""
        if len(tensors) == 1:
            return tensors[0].copy()
        first, second = tensors[0], tensors[1]
        if not first.grad and second.grad:
            first, second = second, first
        if first.grad and not second.grad:
            out = first.copy()
            out.hidden |= second.hidden
            return out
        right = second.map(lambda c: c.times(-1)) if negate_second else second
        terms = {(t.micro, t.coefficient): t for t in (*first.terms, *right.terms)}
        out = first.copy()
        out.terms = tuple(list(terms.values())[-32:])
        out.modules |= second.modules
        out.hidden |= second.hidden
        out.keys |= second.keys
        out.summed = first.summed and second.summed
        out.synced = {**second.synced, **first.synced}
        out.bypassed |= second.bypassed
        out.scaled = first.scaled or second.scaled
        out.done = False
        return out

    def mix(self, tensors: list[Tensor], path: str, hidden: frozenset[str] = frozenset()) -> Tensor:
        """A tensor computed from others in a way that does not keep their coefficients."""
        live = [t for t in tensors if t.grad] or tensors
        out = self.tensor(path, max((t.born for t in tensors), default=0))
        out.grad = any(t.grad for t in tensors) and not self.no_grad()
        for tensor in live:
            if tensor.grad:
                out.modules |= tensor.modules
                out.synced = {**tensor.synced, **out.synced}
                out.bypassed |= tensor.bypassed
            out.hidden |= tensor.hidden
        out.hidden |= hidden
        return out

    def eval_unary(self, node: p.Unary, frame: Frame) -> Value:
        """`-x`, `+x`, `~x`, `not x`."""
        value = self.eval(node.operand, frame)
        if node.op == "not":
            return self.negate(value, node)
        if isinstance(value, Tensor):
            return value.map(lambda c: c.times(-1)) if node.op == "-" else value
        value = self.resolve(value)
        if isinstance(value, Lit) and value.is_number:
            held = value.value
            number = -held if node.op == "-" else ~int(held) if node.op == "~" else held
            return Lit(number, value.keys, value.moduli, value.born, p.text(node) if value.keys else "")
        return Opaque(p.text(node), data=self.is_data(value), born=self.born_of(value))

    def negate(self, value: Value, node: p.Expr) -> Value:
        """`not value`."""
        truth = self.truth(value)
        if truth is not None:
            if isinstance(value, Lit):
                return Lit(not truth, value.keys, value.moduli, value.born)
            return FALSE if truth else TRUE
        path = value.path if isinstance(value, Opaque) else p.text(node)
        out = Opaque(
            path[4:] if path.startswith("not ") else f"not {path}", data=self.is_data(value), born=self.born_of(value)
        )
        out.role = "condition"
        return out

    def truth(self, value: Value) -> bool | None:
        """Truth of a value; None when unknown."""
        value = self.resolve(value)
        if isinstance(value, Lit):
            return bool(value.value)
        if isinstance(value, Seq):
            return True if value.elts else None if value.open else False
        if isinstance(value, Mapping):
            return True if value.items else None
        if isinstance(
            value, Module | Optimizer | Instance | Function | Class | Bound | Partial | GeneratorCall | Iterator
        ):
            return True
        if (
            isinstance(value, Opaque)
            and value.kind in {"optimizer", "accelerator", "loader", "criterion"}
            and not value.data
        ):
            return True
        if type(value) is Opaque and not value.data and not value.kind and not value.role:
            if path_terminal(value.path) in self.static.window_names and value.deferred is None:
                wanted = self.demand(value, "other", None)
                if wanted is not None and self.result.roles.get(value.path) == "window":
                    return bool(wanted.value)
                self.result.known.pop(value.path, None)
        return None

    def eval_boolop(self, node: p.BoolOp, frame: Frame) -> Value:
        """`a and b`, `a or b` with unknown operands kept."""
        stop = node.op == "or"
        unknown: list[Value] = []
        keys: frozenset[str] = frozenset()
        moduli: tuple[tuple[str, int], ...] = ()
        last: Value = NONE
        for item in node.values:
            last = self.eval(item, frame)
            truth = self.truth(last)
            if isinstance(last, Lit):
                keys |= last.keys
                moduli += last.moduli
            if truth is None:
                unknown.append(last)
            elif truth is stop:
                if unknown and stop is False:
                    return Lit(False, keys, moduli)
                if unknown:
                    return Lit(True, keys, moduli)
                if isinstance(last, Lit):
                    return Lit(last.value, keys, (moduli + last.moduli)[-4:], last.born, last.text)
                return last
        if not unknown:
            if isinstance(last, Lit):
                return Lit(last.value, keys, moduli[-4:], last.born, last.text)
            return last
        if len(unknown) == 1 and isinstance(unknown[0], Opaque):
            only = unknown[0]
            if not moduli:
                return only
            out = Opaque(only.path, only.kind, data=only.data, born=only.born)
            out.role = "condition"
            out.items["__moduli__"] = Lit(None, keys, moduli)
            out.items["__default__"] = Lit(node.op == "and")
            return out
        path = f" {node.op} ".join(v.path for v in unknown if isinstance(v, Opaque | Tensor)) or p.text(node)
        out = Opaque(path, data=all(self.is_data(v) for v in unknown), born=max(map(self.born_of, unknown)))
        out.role = "condition"
        if moduli:
            out.items["__moduli__"] = Lit(None, keys, moduli)
            out.items["__default__"] = Lit(node.op == "and")
        return out

    def eval_compare(self, node: p.Compare, frame: Frame) -> Value:
        """Comparisons, chained ones included."""
        left = self.eval(node.left, frame)
        left_node = node.left
        result: Value = TRUE
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.eval(right_node, frame)
            result = self.compare(op, left, right, left_node, right_node, node)
            if self.truth(result) is not True:
                return result
            left, left_node = right, right_node
        return result

    def compare(self, op: str, left: Value, right: Value, left_node: p.Expr, right_node: p.Expr, node: p.Expr) -> Value:
        """One comparison of two values."""
        left, right = self.resolve(left), self.resolve(right)
        if op in {"is", "is not", "==", "!="}:
            known = self._identity(op, left, right)
            if known is not None:
                return known
        if op in {"in", "not in"}:
            return self._membership(op, left, right, node)
        if isinstance(left, Lit) and left.is_number and isinstance(right, Opaque):
            right = self._demand_bound(right, right_node, left, op) or right
        elif isinstance(right, Lit) and right.is_number and isinstance(left, Opaque):
            left = self._demand_bound(left, left_node, right, op) or left
        elif isinstance(left, Opaque) and isinstance(right, Opaque) and op not in {"is", "is not"}:
            left, right = self._demand_both(left, right, left_node, right_node, op)
        if isinstance(left, Lit) and isinstance(right, Lit):
            outcome = _compare(op, left.value, right.value)
            if outcome is not None:
                moduli = left.moduli + right.moduli
                if left.is_number and right.is_number and self._is_counterlike(op, left, right):
                    if isinstance(right.value, int) and not left.moduli:
                        moduli = (*moduli, self._bound(right, right_node))
                return Lit(outcome, left.keys | right.keys, moduli[-4:], max(left.born, right.born))
        out = Opaque(f"{_spell(left)} {op} {_spell(right)}", data=self.is_data(left) or self.is_data(right))
        if out.path.count("#"):
            out.path = p.text(node)
        out.born = max(self.born_of(left), self.born_of(right))
        out.role = "condition"
        return out

    def spell(self, label: str, node: p.Expr) -> None:
        """Remember how the code itself spells a setting, for messages."""
        text = p.text(node)
        if len(text) <= 60:
            self.result.facts.setdefault("spelling", {}).setdefault(label, text)

    def _bound(self, right: Lit, right_node: p.Expr | None = None) -> tuple[str, int]:
        """What a counter is compared with: the setting in it (`N` in `N - 1`), else the number itself."""
        if len(right.keys) == 1:
            key = min(right.keys)
            if right_node is not None and not isinstance(right_node, p.BinOp):
                self.spell(key, right_node)
            number = self.result.known.get(key, self.settings.get(key))
            if isinstance(number, int) and not isinstance(number, bool) and abs(number - int(right.value)) <= 1:
                return f"≥{key}", number
        return f"≥{right.text or (min(right.keys) if right.keys else str(right.value))}", int(right.value)

    @staticmethod
    def _is_counterlike(op: str, left: Lit, right: Lit) -> bool:
        return op in {"==", ">=", ">", "<", "<=", "!="} and not isinstance(left.value, bool)

    def _demand_bound(self, value: Opaque, node: p.Expr, other: Lit, op: str) -> Lit | None:
        if value.kind and value.kind != "instance":
            return None
        if value.data:
            if value.deferred is None or not _samples(value):
                return None
            self._fit_batch(value, other)
            return self.demand(value, "batch", node)
        name = terminal(node) or path_terminal(value.path)
        guarding = name in self.static.window_names
        if self.test_tags & {"break"}:
            return self.demand(value, "limit" if not guarding else "other", node)
        if isinstance(node, p.Expr) and other.keys | set() and not guarding and "step" not in self.test_tags:
            return self.demand(value, "limit" if op in {"<", "<=", ">", ">="} else "other", node)
        if guarding:
            return self.demand(value, "counter" if self._counts(value) else "other", node)
        if (
            op in {"<", "<=", ">", ">=", "==", "!="}
            and other.born == 0
            and not other.keys
            and isinstance(other.value, int)
        ):
            return None if value.path not in self.result.known else self.demand(value, "other", node)
        return self.demand(value, "limit" if op in {"<", "<=", ">", ">="} else "other", node)

    def _counts(self, value: Opaque) -> bool:
        return value.deferred is not None and value.deferred[0] in {"+", "-"}

    def _fit_batch(self, value: Opaque, bound: Lit) -> None:
        """Choose the samples of a micro-batch so that an unknown sample counter fills N of them."""
        leaves: list[Opaque] = []
        stack: list[Value] = [value]
        while stack:
            top = stack.pop()
            if isinstance(top, Opaque):
                if top.deferred is not None:
                    stack += top.deferred[1:]
                elif top.path not in self.result.known:
                    leaves.append(top)
        for leaf in leaves:
            self.result.known[leaf.path] = max(1, int(bound.value) // self.scenario.window)
            self.result.roles[leaf.path] = "batch"

    def _demand_both(
        self, left: Opaque, right: Opaque, left_node: p.Expr, right_node: p.Expr, op: str
    ) -> tuple[Value, Value]:
        if left.data or right.data or left.kind or right.kind:
            return left, right
        names = self.static.window_names
        if terminal(left_node) in names or terminal(right_node) in names or "step" in self.test_tags:
            bound = self.demand(right, "window", right_node)
            return (self.demand(left, "counter", left_node) or left), (bound or right)
        return left, right

    def _identity(self, op: str, left: Value, right: Value) -> Value | None:
        negate = op in {"is not", "!="}
        if isinstance(left, Opaque) and left.role == "grad" and isinstance(right, Lit) and right.value is None:
            return TRUE if negate else FALSE
        for one, other in ((left, right), (right, left)):
            if isinstance(other, Lit) and other.value is None:
                if isinstance(one, Lit):
                    return Lit((one.value is None) != negate, one.keys)
                if not isinstance(one, Opaque):
                    return FALSE if not negate else TRUE
                if isinstance(one, Module | Optimizer | Instance) and not one.path.startswith("?"):
                    return FALSE if not negate else TRUE
                if one.kind in {"accelerator", "loader", "criterion"}:
                    return FALSE if not negate else TRUE
                out = Opaque(f"{one.path} is None", role="condition", data=one.data and one.deferred is not None)
                if negate:
                    out.path = f"not {out.path}"
                return out
        if op in {"is", "is not"} and left is right:
            return TRUE if not negate else FALSE
        return None

    def _membership(self, op: str, left: Value, right: Value, node: p.Expr) -> Value:
        negate = op == "not in"
        if isinstance(left, Lit):
            if isinstance(right, Seq) and all(isinstance(v, Lit) for v in right.elts):
                found = any(isinstance(v, Lit) and v.value == left.value for v in right.elts)
                return Lit(found != negate, left.keys, left.moduli)
            if isinstance(right, Mapping) and left.value in right.items:
                return Lit(not negate)
            if isinstance(right, Lit) and isinstance(right.value, str) and isinstance(left.value, str):
                return Lit((left.value in right.value) != negate, left.keys | right.keys)
        path = f"{_spell(left)} in {_spell(right)}"
        out = Opaque(
            f"not {path}" if negate else path, role="condition", data=self.is_data(left) or self.is_data(right)
        )
        if isinstance(left, Opaque) and isinstance(right, Seq) and not left.data:
            values = [v.value for v in right.elts if isinstance(v, Lit)]
            if -1 in values and 0 in values:  # the usual spelling of "not distributed, or the main process"
                out.role = "rank"
        return out

    # --- displays, lambdas and the rest --------------------------------------------------------

    def eval_const(self, node: p.Const, frame: Frame) -> Value:
        """A literal."""
        value = node.value
        if isinstance(value, float):
            try:
                return Lit(Fraction(repr(value)))
            except (ValueError, OverflowError):
                return Opaque(repr(value))
        if isinstance(value, complex):
            return Opaque(repr(value))
        return Lit(value)

    def eval_sequence(self, node: p.Sequence, frame: Frame) -> Value:
        """A tuple, list or set display."""
        out: list[Value] = []
        for item in node.elts:
            if isinstance(item, p.Starred):
                inner = self.eval(item.value, frame)
                out += inner.elts if isinstance(inner, Seq) else [inner]
            else:
                out.append(self.eval(item, frame))
        return Seq(out, node.kind)

    def eval_dict(self, node: p.Dict, frame: Frame) -> Value:
        """A dict display."""
        items: dict[Any, Value] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.eval(value_node, frame)
            if key_node is None:
                if isinstance(value, Mapping):
                    items.update(value.items)
                continue
            key = self.eval(key_node, frame)
            name: Any = key.value if isinstance(key, Lit) else getattr(key, "path", p.text(key_node))
            items[name] = value
        return Mapping(items)

    def eval_ifexp(self, node: p.IfExp, frame: Frame) -> Value:
        """`body if test else orelse`; an unknown configuration test is a choice like any other."""
        test = self.eval(node.test, frame)
        truth = self.truth(test)
        if truth is None:
            left, right = self.static.tags(node.body), self.static.tags(node.orelse)
            key = getattr(test, "path", "") or p.text(node.test)
            data = self.is_data(test)
            relevant = (bool(left | right) and left != right) or self._scales(node)
            default = not data or bool(left)
            if all(isinstance(x, p.Const) and isinstance(x.value, int) for x in (node.body, node.orelse)):
                default = node.body.value >= node.orelse.value  # type: ignore[attr-defined]
            truth = self.choose(key, default, data=data, relevant=relevant, span=node.span)
        elif _switches(node, truth):
            return Lit(max(node.body.value, node.orelse.value), frozenset({p.text(node.test)}), text=p.text(node))  # type: ignore[attr-defined]
        elif isinstance(test, Lit) and test.moduli:
            chosen = self.eval(node.body if truth else node.orelse, frame)
            if isinstance(chosen, Lit):
                return Lit(chosen.value, chosen.keys | test.keys, chosen.moduli + test.moduli, chosen.born, chosen.text)
            return chosen
        return self.eval(node.body if truth else node.orelse, frame)

    def _scales(self, node: p.IfExp) -> bool:
        return any(
            isinstance(n, p.BinOp) and n.op in {"/", "*"}
            for side in (node.body, node.orelse)
            for n in self.static.walk(side)
        )

    def eval_lambda(self, node: p.Lambda, frame: Frame) -> Value:
        """A lambda keeps its frame."""
        defaults = {q.name: self.eval(q.default, frame) for q in node.params if q.default is not None}
        return Function(node, frame, defaults)

    def eval_named(self, node: p.NamedExpr, frame: Frame) -> Value:
        """`(name := value)`."""
        value = self.eval(node.value, frame)
        frame.vars[node.target.id] = value
        return value

    def eval_fstring(self, node: p.FString, frame: Frame) -> Value:
        """An f-string: opaque text."""
        return Opaque("f-string")

    def eval_comp(self, node: p.Comp, frame: Frame) -> Value:
        """A comprehension, run for real over what it iterates."""
        inner = Frame(frame)
        out: list[Value] = []
        keys: list[Value] = []
        relevant = bool(self.static.tags(node))

        def level(depth: int) -> Signal | None:
            self.burn()
            if depth == len(node.generators):
                if node.key is not None:
                    keys.append(self.eval(node.key, inner))
                out.append(self.eval(node.elt, inner))
                return None
            gen = node.generators[depth]

            def each(value: Value) -> Signal | None:
                self.bind(gen.target, value, inner)
                for test in gen.ifs:
                    if self.truth(self.eval(test, inner)) is False:
                        return None
                return level(depth + 1)

            return self.iterate(
                self.eval(gen.iter, inner if depth else frame), each, node, "comp" if not relevant else "micro"
            )

        level(0)
        if node.kind == "dict":
            items = {
                getattr(k, "value", None) if isinstance(k, Lit) else p.text(node.key): v
                for k, v in zip(keys, out, strict=True)
            }
            return Mapping(items)
        return Seq(out, "list" if node.kind != "set" else "set", path=p.text(node))

    def bind(self, target: p.Expr, value: Value, frame: Frame) -> None:
        """Bind a loop or assignment target; the statement half overrides this with the full form."""
        raise NotImplementedError

    def eval_await(self, node: p.Await, frame: Frame) -> Value:
        """`await x` is `x`."""
        return self.eval(node.value, frame)

    def eval_yield(self, node: p.Yield, frame: Frame) -> Value:
        """`yield x` hands x to the loop around the generator."""
        value = self.eval(node.value, frame) if node.value is not None else NONE
        self.do_yield(value, frame)
        return NONE

    def eval_yield_from(self, node: p.YieldFrom, frame: Frame) -> Value:
        """`yield from xs`."""
        source = self.eval(node.value, frame)

        def each(value: Value) -> Signal | None:
            self.do_yield(value, frame)
            return None

        self.iterate(source, each, node, "data")
        return NONE

    def do_yield(self, value: Value, frame: Frame) -> None:
        """Give a value to whoever drives the generator."""
        raise NotImplementedError

    def eval_starred(self, node: p.Starred, frame: Frame) -> Value:
        """`*x` outside a display."""
        return self.eval(node.value, frame)

    def eval_call(self, node: p.Call, frame: Frame) -> Value:
        """A call."""
        return self.call(node, frame)


def _switches(node: p.IfExp, truth: bool) -> bool:
    """`4 if big else 1` where the 1 was chosen: accumulation is what there is to look at."""
    sides = (node.body, node.orelse)
    if not all(isinstance(x, p.Const) and isinstance(x.value, int) and not isinstance(x.value, bool) for x in sides):
        return False
    chosen, other = sides if truth else sides[::-1]
    return bool(chosen.value == 1 < other.value)  # type: ignore[attr-defined]


def invert(coefficient: Coefficient) -> Coefficient:
    """One over a coefficient."""
    out = Coefficient(1 / coefficient.value if coefficient.value else Fraction(1))
    for name, exponent in coefficient.symbols:
        out = out.times_symbol(name, -exponent)
    return out


def _literal(value: Lit) -> str:
    return "" if value.keys else str(value.value)


def _spell(value: Value) -> str:
    if isinstance(value, Lit):
        if value.text:
            return value.text
        return str(value.value) if value.is_number else repr(value.value)
    if isinstance(value, Opaque | Tensor):
        return f"({value.path})" if " " in value.path else value.path
    if isinstance(value, External):
        return value.name
    if isinstance(value, Seq):
        return f"[{', '.join(map(_spell, value.elts[:6]))}]"
    return "#"


def _samples(value: Opaque) -> bool:
    stack: list[Value] = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Tensor):
            return False
        if isinstance(top, Opaque):
            if top.deferred is not None:
                stack += top.deferred[1:]
            elif not (
                top.path.startswith("len(") or ".size(" in top.path or ".shape" in top.path or "numel" in top.path
            ):
                return False
    return True


def _compare(op: str, a: Any, b: Any) -> bool | None:
    try:
        match op:
            case "==" | "is":
                return bool(a == b)
            case "!=" | "is not":
                return bool(a != b)
            case "<":
                return bool(a < b)
            case "<=":
                return bool(a <= b)
            case ">":
                return bool(a > b)
            case ">=":
                return bool(a >= b)
    except TypeError:
        return None
    return None


_SCALE_NAME = re.compile(r"scale|factor|norm|ratio|frac|inv|accum|div|num|count|size|len", re.I)
_SAMPLES = re.compile(r"^[^/]*(\.shape\b|\.size\(|^len\(|\bbs\b|batch_?size)[^/]*$", re.I)
_DEEPEST = 24
_RANK_NAME = re.compile(r"rank$", re.I)
_ONE_RANK = re.compile(r"(^|_)(local_rank|rank|world_?size|n_?gpus?|num_gpus|nproc\w*|num_processes|gpus)$", re.I)
_SIZE = re.compile(r"micro_?(batch)?_?(size)?$|micro_?bs$", re.I)
_ONE_WINDOW = re.compile(
    r"accum|micro_?batch|(^|_)iter_size|update_freq|subdivision|grad_acc|batch_chunk|num_chunks", re.I
)
_CONFIG = re.compile(r"(^|\.)(args|cfg|config|conf|opts?|hparams|hp|params|flags|FLAGS|settings|_args|_config)$")
_MODULE_METHODS = frozenset(
    [
        "parameters",
        "named_parameters",
        "buffers",
        "modules",
        "named_modules",
        "children",
        "state_dict",
        "load_state_dict",
        "train",
        "eval",
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "zero_grad",
        "no_sync",
        "requires_grad_",
        "apply",
        "register_buffer",
        "forward",
        "__call__",
        "named_children",
        "set_requires_gradient_sync",
        "gradient_checkpointing_enable",
        "save_pretrained",
        "backward",
        "step",
        "join",
    ]
)
_GRADIENT_METHODS = frozenset(
    [
        "backward",
        "step",
        "zero_grad",
        "no_sync",
        "accumulate",
        "no_backward_sync",
        "unscale_",
        "scale",
        "update",
        "clip_grad_norm_",
        "parameters",
        "named_parameters",
        "manual_backward",
        "item",
        "append",
    ]
)

_EVAL: dict[type, Any] = {
    p.Name: Evaluate.eval_name,
    p.Const: Evaluate.eval_const,
    p.Attr: Evaluate.eval_attr,
    p.Subscript: Evaluate.eval_subscript,
    p.Call: Evaluate.eval_call,
    p.BinOp: Evaluate.eval_binop,
    p.Unary: Evaluate.eval_unary,
    p.BoolOp: Evaluate.eval_boolop,
    p.Compare: Evaluate.eval_compare,
    p.IfExp: Evaluate.eval_ifexp,
    p.Sequence: Evaluate.eval_sequence,
    p.Dict: Evaluate.eval_dict,
    p.Comp: Evaluate.eval_comp,
    p.Lambda: Evaluate.eval_lambda,
    p.Starred: Evaluate.eval_starred,
    p.NamedExpr: Evaluate.eval_named,
    p.FString: Evaluate.eval_fstring,
    p.Await: Evaluate.eval_await,
    p.Yield: Evaluate.eval_yield,
    p.YieldFrom: Evaluate.eval_yield_from,
}
