"""Arithmetic on numbers: known ones are computed, unknown ones kept so that they can be computed later."""

from __future__ import annotations

from galint import program as p
from galint.run.asked import spelled
from galint.run.frame import Frame
from galint.run.machine import arithmetic
from galint.run.nodes import path_terminal, terminal
from galint.run.reach import BACKWARD, STEP
from galint.run.tensors import Tensors
from galint.run.unknowns import LIMIT
from galint.run.values import LONGEST, Class, External, Function, Instance, Lit, Opaque, Seq, Tensor, Value

_DEEPEST = 24
_COMPUTED = (Lit, Opaque)
_OWN = {"+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "//": "__floordiv__", "%": "__mod__"}


class Arithmetic(Tensors):
    """Binary and unary operators."""

    def eval_binop(self, node: p.BinOp, frame: Frame) -> Value:
        """`left op right`."""
        return self.binary(node.op, self.eval(node.left, frame), self.eval(node.right, frame), node, node.right)

    def binary(self, op: str, left: Value, right: Value, node: p.Node, right_node: p.Expr | None = None) -> Value:
        """An arithmetic operation on two values."""
        if type(left) is Lit and type(right) is Lit and left.is_number and right.is_number:
            return self._of_numbers(op, left, right, node, right_node) or self.defer(op, left, right, node)
        if op == "|" and isinstance(right, (External, Class)) and (isinstance(left, (External, Class)) or _union(left)):
            return Seq([*(left.elts if isinstance(left, Seq) else [left]), right], "tuple", "|")
        if isinstance(left, External):
            left = Opaque(left.name)
        if isinstance(right, External):
            right = Opaque(right.name)
        if isinstance(left, Instance) and (own := self.class_member(left.cls, _OWN.get(op, ""))) is not None:
            if isinstance(own, Function):
                return self.call_function(own, [left, right], {}, node)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return self.tensor_binary(op, left, right)
        left, right = self.resolve(left), self.resolve(right)
        if op == "%" and isinstance(left, Lit) and isinstance(left.value, (str, bytes)):
            return Opaque(p.text(node) if isinstance(node, p.Expr) else "%", data=self.is_data(right))  # a message
        if op == "%" and isinstance(right, Opaque) and (isinstance(left, Lit) or not right.data):
            role = "other" if not isinstance(left, Lit) or left.is_number else ""
            divided = right.deferred is not None and right.deferred[0] in {"//", "/"}
            if role and STEP in self.test_tags and divided:
                role = "window"  # `(i + 1) % (batch // micro_batch)`
            zero = isinstance(left, Lit) and left.is_number and left.value == 0
            if divided and zero and not self.test_tags & {STEP, BACKWARD}:
                return left  # `updates % (len(loader) // n)`: no number has to be made up for it
            wanted = self.demand(right, role, right_node)
            right = wanted or right
        if (
            op == "//"
            and type(right) is Opaque
            and not right.data
            and not right.kind
            and isinstance(left, Lit)
            and left.is_number
        ) and (
            (terminal(right_node) or path_terminal(right.path)) in self.static.window_names or STEP in self.test_tags
        ):
            right = self.demand(right, "window", right_node) or right
        if (
            op == "%" and isinstance(left, Opaque) and isinstance(right, Lit) and right.is_number and not left.data
        ) or (op == "%" and isinstance(left, Opaque) and isinstance(right, Lit) and right.is_number and left.deferred):
            left = self.demand(left, "counter", None) or left
        if isinstance(left, Lit) and isinstance(right, Lit):
            if left.is_number and right.is_number:
                known = self._of_numbers(op, left, right, node, right_node)
                if known is not None:
                    return known
            joined = type(left.value) is type(right.value) and isinstance(left.value, (str, bytes))
            if op == "+" and joined and len(left.value) + len(right.value) <= LONGEST:
                return Lit(left.value + right.value, left.keys | right.keys)
        if (
            isinstance(left, Seq)
            and isinstance(right, Seq)
            and op == "+"
            and len(left.elts) + len(right.elts) <= LONGEST
        ):
            return Seq(left.elts + right.elts, left.kind)
        if isinstance(left, Seq) and op == "*" and isinstance(right, Lit) and isinstance(right.value, int):
            return Seq(left.elts * min(max(right.value, 0), 64, LONGEST // max(len(left.elts), 1)), left.kind)
        return self.defer(op, left, right, node)

    def _soon(self, number: Lit, node: p.Expr | None) -> Lit:
        """A setting that says every how many updates another network is trained: few enough that the run sees it."""
        if number.text not in number.keys or not {BACKWARD, STEP} <= self.test_tags or type(number.value) is not int:
            return number
        if number.value <= 2 or self._refine(Opaque(number.text), "other", node) != "other":
            return number
        self.result.facts["sparse"] = True
        return Lit(2, number.keys, number.moduli, number.born, number.text)

    def _of_numbers(self, op: str, left: Lit, right: Lit, node: p.Node, right_node: p.Expr | None) -> Value | None:
        if op == "/" and LIMIT in (left.value, right.value):
            # A number that only stands for "no bound": what the quotient would be, nobody knows.
            return Opaque(p.text(node) if isinstance(node, p.Expr) else "/", born=max(left.born, right.born))
        if op == "%" and right.keys:
            right = self._soon(right, right_node)
        number = arithmetic(op, left.value, right.value)
        if number is None:
            return None
        if op in {"//", "/"} and number < 1:
            number = self.batches(left, right) or number
        counts = op == "//" or (op == "/" and STEP in self.test_tags)
        if counts and left.text in left.keys and right.text in right.keys and isinstance(right.value, int):
            self.result.facts.setdefault("quotients", {})[left.text] = right.text, right.value
        moduli = left.moduli + right.moduli
        if op == "%" and isinstance(right.value, int):
            label = right.text or (min(right.keys) if right.keys else str(right.value))
            if right_node is not None and right.keys:
                self.spell(label, right_node)
            moduli = (*moduli, (label, int(right.value)))
        text = self._op_text(op, left, right, node)
        if text and text in self.scenario.values:
            number = self.scenario.values[text]
        return Lit(number, left.keys | right.keys, moduli[-4:], max(left.born, right.born), text)

    def _op_text(self, op: str, left: Lit, right: Lit, node: p.Node) -> str:
        if not left.keys and not right.keys:
            return ""
        return p.text(node) if isinstance(node, p.Expr) else ""

    def defer(self, op: str, left: Value, right: Value, node: p.Node) -> Value:
        """Arithmetic over something unknown, kept so that it can be computed once it is known."""
        data = self.is_data(left) or self.is_data(right)
        born = max(self.born_of(left), self.born_of(right))
        for grad, other in ((left, right), (right, left)):
            if isinstance(grad, Opaque) and grad.role == "grad" and (grad is left or op == "*"):
                scaled = Opaque(grad.path, role="grad", modules=grad.modules)
                scaled.deferred = (op, grad, other) if op in {"*", "/"} else grad.deferred
                return scaled
        out = Opaque(self.path_of(left, op, right), data=data, born=born)
        if len(out.path) > 120:
            out.path = p.text(node) if isinstance(node, p.Expr) and len(p.text(node)) < 120 else f"#{self.tick()}"
        out.depth = 1 + getattr(left, "depth", 0) + getattr(right, "depth", 0)  # operands may be shared: `n * n`
        if isinstance(left, _COMPUTED) and isinstance(right, _COMPUTED) and out.depth <= _DEEPEST:
            out.deferred = (op, left, right)
        elif out.depth > _DEEPEST:
            out.depth = 0
        out.modules = self.modules_in(left) | self.modules_in(right)
        return out

    def path_of(self, left: Value, op: str, right: Value) -> str:
        """The canonical spelling of an operation on two values."""
        return f"{spelled(left)} {op} {spelled(right)}"

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


def _union(value: Value) -> bool:
    """True for `int | str`, which is kept as the tuple that `isinstance` takes."""
    return isinstance(value, Seq) and value.path == "|"
