"""Expressions of the abstract run: displays, comprehensions, conditions, and what evaluates which node."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from galint import program as p
from galint.run.arithmetic import Arithmetic
from galint.run.elements import unknown_length
from galint.run.frame import Frame, Signal
from galint.run.nodes import asks_elements
from galint.run.values import NONE, Function, Instance, Lit, Mapping, Opaque, Seq, Tensor, Value

_NESTED = 64
"""Elements up to which a comprehension over several iterables is run out, such as the cells of a table to be drawn."""

_NESTING = 1_200
"""Expressions within expressions, over all calls: Python's own limit of frames is met first, but compiled code has none."""


class Evaluate(Arithmetic):
    """The expression half of the machine."""

    # The statement and call halves, one layer up, fill these in.
    def call(self, node: p.Call, frame: Frame) -> Value:
        """Evaluate a call."""
        raise NotImplementedError

    def iterate(self, value: Value, each: Callable[[Value], Signal | None], node: p.Node, role: str) -> Signal | None:
        """Drive an iterable."""
        raise NotImplementedError

    def bind(self, target: p.Expr, value: Value, frame: Frame) -> None:
        """Bind a loop or assignment target; the statement half overrides this with the full form."""
        raise NotImplementedError

    def do_yield(self, value: Value, frame: Frame) -> None:
        """Give a value to whoever drives the generator."""
        raise NotImplementedError

    def eval(self, node: p.Expr, frame: Frame) -> Value:
        """The value of an expression."""
        self.fuel -= 1
        if isinstance(node, p.Name) and (value := frame.vars.get(node.id)) is not None:
            return self.soft(value) if type(value) is Lit and value.keys else value
        handler = _EVAL.get(type(node))
        if handler is None:
            return Opaque(p.text(node))
        self.nesting += 1
        if self.nesting > _NESTING:
            raise RecursionError("expressions and calls nest too deeply")
        try:
            return handler(self, node, frame)  # type: ignore[no-any-return]
        finally:
            self.nesting -= 1

    # --- displays, lambdas and the rest --------------------------------------------------------

    def eval_const(self, node: p.Const, frame: Frame) -> Value:
        """A literal."""
        known = self.static.literals.get(node)
        if known is not None:
            return known
        value: Any = node.value
        if isinstance(value, float):
            try:
                value = Fraction(repr(value))
            except (ValueError, OverflowError):
                return Opaque(repr(value))
        if isinstance(value, complex):
            return Opaque(repr(value))
        made = self.static.literals[node] = Lit(value)
        return made

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
            truth = self.choose(key, default, data=data, relevant=relevant, span=node.span, asked=p.text(node.test))
        if _switches(node, truth):
            return Lit(max(node.body.value, node.orelse.value), frozenset({p.text(node.test)}), text=p.text(node))  # type: ignore[attr-defined]
        flag = isinstance(node.body, p.Const) and isinstance(node.body.value, bool)  # `True if world_size else False`
        if isinstance(test, Lit) and (test.moduli or (test.keys and flag)):
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
        sources: list[Value] = []
        nested = len(node.generators) > 1 and not relevant

        def level(depth: int) -> Signal | None:
            self.burn()
            if depth == len(node.generators):
                if node.key is not None:
                    keys.append(self.eval(node.key, inner))
                out.append(self.eval(node.elt, inner))
                return None
            gen = node.generators[depth]

            def each(value: Value) -> Signal | None:
                if nested and len(out) >= _NESTED:
                    return Signal("break")
                self.bind(gen.target, value, inner)
                for test in gen.ifs:
                    if self.truth(self.eval(test, inner)) is False:
                        return None
                return level(depth + 1)

            source = self.eval(gen.iter, inner if depth else frame)
            if not depth:
                sources.append(source)
            return self.iterate(source, each, node, "comp" if not relevant else "micro")

        around = self.loops[-1] if self.loops else None
        last = around is not None and around.last
        level(0)
        if around is not None:
            around.last = last  # what a comprehension comes to the end of is no loop's
        if node.kind == "dict":
            items = {
                getattr(k, "value", None) if isinstance(k, Lit) else p.text(node.key): v
                for k, v in zip(keys, out, strict=True)
            }
            return Mapping(items)
        made = Seq(out, "list" if node.kind != "set" else "set", path=p.text(node))
        if nested and len(out) >= _NESTED:
            made.open = True
        elif not relevant and out and all(map(_plain, out)):
            for packed in out:
                if isinstance(packed, Instance) and any(map(self.is_data, packed.attrs.values())):
                    packed.data = True  # what a loop draws from here belongs to its iteration
            size = unknown_length(self, sources[0])  # type: ignore[arg-type]  # the layers above are there when it runs
            if size is not None:
                made.open = True  # it was run for one element of them all
                if len(node.generators) == 1 and not node.generators[0].ifs:
                    made.length = size
        return made

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

    def eval_starred(self, node: p.Starred, frame: Frame) -> Value:
        """`*x` outside a display."""
        return self.eval(node.value, frame)

    def eval_call(self, node: p.Call, frame: Frame) -> Value:
        """A call."""
        if not asks_elements(node):
            return self.call(node, frame)
        tags, self.test_tags = self.test_tags, frozenset()
        try:
            value = self.call(node, frame)
        finally:
            self.test_tags = tags
        return Opaque(value.path, data=True, born=value.born) if type(value) is Opaque and not value.data else value


def _switches(node: p.IfExp, truth: bool) -> bool:
    """`4 if big else 1` where the 1 was chosen: accumulation is what there is to look at."""
    sides = (node.body, node.orelse)
    if not all(isinstance(x, p.Const) and isinstance(x.value, int) and not isinstance(x.value, bool) for x in sides):
        return False
    chosen, other = sides if truth else sides[::-1]
    return bool(chosen.value == 1 < other.value)  # type: ignore[attr-defined]


def _plain(value: Value) -> bool:
    """Data and numbers, of which there may be any many; not models, optimizers or losses."""
    if isinstance(value, Seq):
        return all(map(_plain, value.elts))
    if isinstance(value, Mapping):
        return all(map(_plain, value.items.values()))
    if isinstance(value, Instance):  # of a class of the project that a batch is put into
        return all(_plain(v) or (isinstance(v, Tensor) and not v.grad) for v in value.attrs.values())
    return isinstance(value, Lit) or (type(value) is Opaque and not value.kind and not value.modules)


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
