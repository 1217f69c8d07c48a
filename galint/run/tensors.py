"""Arithmetic in which a tensor takes part: what it does to a loss's addends and their coefficients."""

from __future__ import annotations

import re
from fractions import Fraction

from galint import program as p
from galint.ledger import ONE, Coefficient
from galint.run.compare import Compare
from galint.run.nodes import path_terminal
from galint.run.values import Lit, Opaque, Tensor, Term, Value
from galint.run.words import Words

_SCALE_NAME = Words(r"scale|factor|norm|ratio|frac|inv|accum|div|num|count|size|len", re.I)
_COUNTS = Words(r"\b(sum|count_nonzero|size|numel|nelement|len)\(|\.shape\b")
"""What counts the samples or tokens of a batch, or weighs them."""
_SAMPLES = Words(r"^[^/]*(\.shape\b|\.size\(|^len\(|\bbs\b|batch_?size)[^/]*$", re.I)


_ZEROED = Words(r"\* ?0(\.0*)?(?![\d.])|(?<![\d.])0(\.0*)? ?\*")


class Tensors(Compare):
    """Tensor arithmetic."""

    def tensor_binary(self, op: str, left: Value, right: Value) -> Value:
        """Arithmetic in which a tensor takes part."""
        if op in {"*", "/"} and not (isinstance(left, Tensor) and isinstance(right, Tensor)):
            if isinstance(left, Tensor):
                return self.scale_tensor(left, right, 1 if op == "*" else -1)
            if op == "*" and isinstance(right, Tensor):
                return self.scale_tensor(right, left, 1)
        tensors = [v for v in (left, right) if isinstance(v, Tensor)]
        if op in {"+", "-"}:
            out = self.add_tensors(tensors, negate_second=op == "-")
            other = right if isinstance(left, Tensor) else left
            if isinstance(other, Opaque) and tensors[0].grad and (keys := _penalty(other)) is not None:
                out.penalties += ((other.path, keys),)
            return out
        if op in {"*", "/"} and len(tensors) == 2:
            return self.multiply_tensors(tensors[0], tensors[1], 1 if op == "*" else -1)
        mixed = self.mix(tensors, f"({op})")
        mixed.unknown_scale = op == "/"
        return mixed

    def multiply_tensors(self, left: Tensor, right: Tensor, sign: int) -> Tensor:
        """A product or quotient of tensors: the one that is not a loss is a weight of unknown size."""
        main, other = (left, right) if left.grad or not right.grad else (right, left)
        if sign < 0 and left.summed and right.summed and left.born == right.born:
            return self._average(left, right)
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

    def _average(self, left: Tensor, right: Value) -> Tensor:
        """A sum over a micro-batch, divided by a sum or a count over the same: as a mean, it does not grow with the batch."""
        out = left.copy()
        out.summed = False
        if isinstance(right, Tensor):
            out.unknown_scale = left.unknown_scale or right.unknown_scale
            out.hidden |= right.keys | right.hidden
            out.modules |= right.modules if right.grad else frozenset()
        return out

    def _mean_of_addends(self, tensor: Tensor) -> Tensor:
        """`(a + b) / 2`: weighed as one loss; should N be the very number, it may be meant by it."""
        out = tensor.copy()
        out.hidden |= {str(tensor.merged)}
        out.merged = 1
        return out

    def scale_tensor(self, tensor: Tensor, factor: Value, sign: int) -> Value:
        """A tensor multiplied (sign 1) or divided (sign -1) by a number or by something unknown."""
        factor = self.resolve(factor)
        if isinstance(factor, Lit) and factor.is_number:
            number = Fraction(factor.value)
            if number == 0 and sign > 0 and factor.text in factor.keys:
                off = Opaque(factor.text)  # a term's weight that is 0 by default
                return self._late(tensor, self._weigh(tensor, off, sign))
            if number == 0:
                out = tensor.copy()
                out.unknown_scale = True
                return out
            change = number if sign > 0 else 1 / number
            if change == Fraction(1, tensor.merged) and tensor.merged > 1 and not factor.keys:
                return self._late(tensor, self._mean_of_addends(tensor))
            settings = factor.keys if sign < 0 or number <= 1 else frozenset()
            told = str(number) if sign < 0 else _literal(factor)
            out = tensor.map(lambda c: c.times(change), settings | {m[0] for m in factor.moduli} | {told})
            return self._late(tensor, out)
        if not isinstance(factor, Opaque):
            return tensor
        return self._late(tensor, self._weigh(tensor, factor, sign))

    def _weigh(self, tensor: Tensor, factor: Opaque, sign: int) -> Tensor:
        """A tensor multiplied or divided by something unknown: weights or counts of samples, or a factor of the whole."""
        counts = _counts_own(factor, tensor)
        if sign > 0 and (_SAMPLES.search(factor.path) or (counts and tensor.reduced)):
            out = tensor.copy()
            out.summed = True  # a mean times the number of samples is a sum
            return out
        if sign > 0 and factor.data and factor.deferred is None and not _SCALE_NAME.search(factor.path):
            return tensor.copy()  # weights of the samples, not a factor of the whole
        if sign < 0 and counts and tensor.summed:
            return self._average(tensor, factor)
        # A mean times a number of the batch may be a sum: the number, a count.
        if (sign < 0 or tensor.each) and self._of_the_batch(factor, tensor):
            out = tensor.copy()
            out.hidden |= {factor.path}
            # What a part of a batch says may be of the whole batch: a sum divided by that needs no 1/N.
            out.unknown_scale = out.unknown_scale or (sign < 0 and tensor.summed and self._draws_parts())
            return out
        coefficient = self.symbol(factor) if sign > 0 else invert(self.symbol(factor))
        return tensor.map(lambda c: c.combine(coefficient), frozenset({factor.path}))

    def _draws_parts(self) -> bool:
        """Whether the innermost loop goes over the parts of something, not through numbers."""
        loop = self.loops[-1] if self.loops else None
        node = loop.node if loop is not None and loop.role == "window" else None
        return isinstance(node, p.For) and "range(" not in p.text(node.iter)

    def _of_the_batch(self, factor: Value, tensor: Tensor) -> bool:
        """Whether a factor is made of the micro-batch's own data and of numbers: it weighs samples, and cannot be 1/N."""
        if isinstance(factor, Lit):
            return factor.is_number and not factor.keys
        if not isinstance(factor, Opaque):
            return False
        if factor.deferred is not None:
            return factor.data and all(self._of_the_batch(part, tensor) for part in factor.deferred[1:])
        own = factor.data and factor.born == tensor.born and not _COUNTS.search(factor.path)
        return own and path_terminal(factor.path) not in self.static.moved

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
        terms: dict[tuple[int, Coefficient], Term] = {}
        passed: frozenset[str] = frozenset()
        for term in (*first.terms, *right.terms):
            place = (term.micro, term.coefficient)
            # Of addends that weigh the same, one that no setting weighs stands for the loss's own weight.
            known = terms.get(place)
            if known is not None and (known.keys < term.keys or term.keys < known.keys):
                passed |= known.keys ^ term.keys
            if known is None or not known.keys < term.keys:
                terms[place] = term
        out = first.copy()
        out.terms = tuple(list(terms.values())[-32:])
        out.merged = first.merged + second.merged if len(terms) == 1 else 1
        out.modules |= second.modules
        out.hidden |= second.hidden
        out.keys = (out.keys | second.keys) - passed
        out.summed = first.summed and second.summed
        out.synced = {**second.synced, **first.synced}
        out.bypassed |= second.bypassed
        out.penalties += right.penalties
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


def invert(coefficient: Coefficient) -> Coefficient:
    """One over a coefficient."""
    out = Coefficient(1 / coefficient.value if coefficient.value else Fraction(1))
    for name, exponent in coefficient.symbols:
        out = out.times_symbol(name, -exponent)
    return out


def _counts_own(count: Opaque, tensor: Tensor) -> bool:
    """Whether a number counts the samples of the very micro-batch that a tensor comes from, and not of a window."""
    return count.data and count.born == tensor.born and _COUNTS.search(count.path)


def _penalty(value: Opaque) -> frozenset[str] | None:
    """The settings that weigh a term computed from parameters alone; None when it is no such term."""
    keys: set[str] = set()
    parameters = False
    stack: list[Value] = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Lit):
            keys |= top.keys | {_literal(top)}
        elif isinstance(top, Opaque):
            if top.data:
                return None
            parameters = parameters or (bool(top.modules) and "(" in top.path)
            if top.deferred is None:
                if _ZEROED.search(top.path):
                    return None  # `sum(p.sum() * 0 …)`, likewise
                keys.add(top.path)
                continue
            op, *operands = top.deferred
            if op == "*" and any(isinstance(o, Lit) and o.is_number and o.value == 0 and not o.keys for o in operands):
                return None  # `0 * sum(p.sum() …)` only keeps DDP's unused parameters alive
            stack += operands
    return frozenset(keys) if parameters else None


def _literal(value: Lit) -> str:
    return "" if value.keys else str(value.value)
