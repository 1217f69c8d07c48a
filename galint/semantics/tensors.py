"""Tensor arithmetic: which operations keep a loss's coefficient, which change it.

`mean` and `sum` are linear, so gradients scale with what the loss was multiplied by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.ledger import ONE
from galint.run.nodes import path_terminal
from galint.run.site import Site
from galint.run.tensors import invert
from galint.run.values import NONE, Lit, Opaque, Seq, Tensor, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _scaled(sign: int) -> Meaning:
    """`.mul`, `.div`, `torch.mul(a, b)`, `torch.div(a, b)`; in place for names that end in `_`."""

    def meaning(m: Calls, s: Site) -> Value | None:
        target = s.receiver
        rest = s.args
        if target is None:
            if len(rest) < 2:
                return None
            target, rest = rest[0], rest[1:]
        if not rest and not s.kwargs:
            return None
        factor = rest[0] if rest else next(iter(s.kwargs.values()))
        if isinstance(target, Opaque) and target.role == "grad":
            if not s.name.endswith("_") and s.kwargs.get("out") is not target:
                return m.binary("*" if sign > 0 else "/", target, factor, s.node)
            coefficient = m.symbol(factor)
            m.rescale(target.modules, coefficient if sign > 0 else invert(coefficient), s.span)
            return target
        if not isinstance(target, Tensor):
            if isinstance(target, Opaque) and target.data:
                return m.binary("*" if sign > 0 else "/", target, factor, s.node)
            return None
        result = m.binary("*" if sign > 0 else "/", target, factor, s.node)
        if s.name.endswith("_") and isinstance(result, Tensor):
            target.terms, target.keys = result.terms, result.keys
            if target.done:
                m.event(
                    "late_scale", s.span, target.path, before=ONE, after=result.terms[-1].coefficient, keys=result.keys
                )
            return target
        return result

    return meaning


def _foreach(sign: int) -> Meaning:
    """`torch._foreach_div_(grads, n)` in place over a list of gradients."""

    def meaning(m: Calls, s: Site) -> Value | None:
        grads = s.args[0].elts if len(s.args) > 1 and isinstance(s.args[0], Seq) else []
        held = [g for g in grads if isinstance(g, Opaque) and g.role == "grad"]
        if held:
            coefficient = m.symbol(s.args[1])
            modules = frozenset().union(*(g.modules for g in held))
            m.rescale(modules, coefficient if sign > 0 else invert(coefficient), s.span)
        return NONE if held else None

    return meaning


def _negated(m: Calls, s: Site) -> Value | None:
    target = s.receiver if s.receiver is not None else s.arg(0, "input")
    return target.map(lambda c: c.times(-1)) if isinstance(target, Tensor) else None


def _grad_op(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Opaque) and s.receiver.role == "grad":
        m.copied(s.receiver.modules)
        return Opaque(f"{s.receiver.path}.{s.name}()", data=True, born=m.token())
    return None


def _grad_zero(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Opaque) and s.receiver.role == "grad":
        m.clear(None, s.receiver.modules, s.span, s.text)
        return NONE
    if isinstance(s.receiver, Tensor):
        s.receiver.terms = ()
    return s.receiver


def _same(m: Calls, s: Site) -> Value | None:
    """Linear or shape-only: ancestry and coefficient stay."""
    if isinstance(s.receiver, Tensor):
        return s.receiver.copy()
    if isinstance(s.receiver, Opaque) and s.receiver.data:
        return s.receiver
    return None


_RESHAPED = (
    "clone detach double bfloat16 int bool type type_as pin_memory requires_grad_ view view_as reshape flatten permute "
    "transpose squeeze unsqueeze expand expand_as repeat numpy"
)
"""Methods of a tensor whose result holds the same samples."""


def _detached(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Tensor):
        out = s.receiver.copy()
        out.grad = False
        return out
    if isinstance(s.receiver, Opaque):
        if s.receiver.role == "grad":
            m.copied(s.receiver.modules)  # the detached gradient shares its numbers
        return s.receiver
    return None


def _of_its_batch(m: Calls, s: Site) -> Value | None:
    """`x.view(…)`, `x.clone()`: data of the same micro-batch, wherever it is asked for."""
    if isinstance(s.receiver, Opaque) and s.receiver.data and not s.receiver.kind and not s.receiver.role:
        return Opaque(p.text(s.node)[:100], data=True, born=s.receiver.born, modules=s.receiver.modules)
    return None


def _grad_copy(m: Calls, s: Site) -> Value | None:
    """`p.grad.copy_(value)`."""
    if isinstance(s.receiver, Opaque) and s.args:
        m.overwritten(s.receiver, s.args[0], s.span)
    return s.receiver


def _hooked(m: Calls, s: Site) -> Value | None:
    """`x.register_hook(f)`: f may change the gradient on its way."""
    if isinstance(s.receiver, Tensor):
        s.receiver.unknown_scale = True
    else:
        m.result.facts["manual_grad"] = True
    return None


def _detach_here(m: Calls, s: Site) -> Value | None:
    """`x.detach_()`: the very tensor loses its ancestry."""
    if isinstance(s.receiver, Tensor):
        s.receiver.grad = False
        s.receiver.modules = frozenset()
        s.receiver.synced = {}
    return s.receiver


def _scaled_elsewhere(m: Calls, s: Site) -> Value | None:
    """`scalers[k].scale(loss)`, of a scaler that was not seen to be one: the loss, of the micro-batch that it is of."""
    given = s.args[0] if len(s.args) == 1 and not s.kwargs else None
    return given if isinstance(given, Opaque) and given.data and not given.kind and not given.role else None


def _item(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, (Tensor, Opaque)):
        return Opaque(f"{s.receiver.path}.item()", data=True, born=s.receiver.born)
    return None


def _size(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, (Tensor, Opaque)):
        summed = isinstance(s.receiver, Tensor) and s.receiver.summed  # a sum is one number, and counts no samples
        return Opaque(
            f"{s.receiver.path}.{s.name}({', '.join(str(a.value) for a in s.args if isinstance(a, Lit))})",
            data=True,
            born=0 if summed else s.receiver.born,
        )
    return None


def _at_least(m: Calls, s: Site) -> Value | None:
    """`torch.maximum(count, torch.tensor(1))`: the count, kept from being zero."""
    first = s.arg(0, "input")
    return first if len(s.all_args()) > 1 and isinstance(first, Opaque) and first.data else None


def _mean(m: Calls, s: Site) -> Value | None:
    target = s.receiver if s.receiver is not None else s.arg(0, "input")
    if not isinstance(target, Tensor):
        return None
    return _reduced(target, s, summed=False)


def _reduced(target: Tensor, s: Site, *, summed: bool) -> Tensor:
    """A mean or a sum of a tensor; one along some dimensions leaves more than a number."""
    along = len(s.args) > (s.receiver is None) or not s.kwargs.keys().isdisjoint({"dim", "axis"})
    out = target.copy()
    out.summed, out.reduced = summed, target.reduced or not along
    out.each = out.each and not out.reduced
    return out


def _curved(m: Calls, s: Site) -> Value | None:
    """`softplus(-x / 4)`: what a curved function is given is no factor of what it gives."""
    given = [*([s.receiver] if s.receiver is not None else []), *s.all_args()]
    tensors = [t for v in given for t in m.tensors_in(v)]
    if all(term.coefficient == ONE for t in tensors for term in t.terms):
        return None
    keys = frozenset(k for t in tensors for k in (*t.keys, *(k for term in t.terms for k in term.keys)))
    return m.mix(tensors, path_terminal(s.name), keys | m._settings(given))


def _sum(m: Calls, s: Site) -> Value | None:
    target = s.receiver if s.receiver is not None else s.arg(0, "input")
    if not isinstance(target, Tensor):
        return None
    # A sum over already reduced losses adds a few terms; a sum over samples is a sum loss.
    return _reduced(target, s, summed=target.summed or not target.reduced)


def _dot(m: Calls, s: Site) -> Value | None:
    """`torch.dot(rows.flatten(), gradient.flatten())`: the sum of products, as a chunk's own part of a loss is written."""
    given = [*([s.receiver] if s.receiver is not None else []), *s.all_args()]
    live = [v for v in given if isinstance(v, Tensor) and v.grad]
    if len(live) != 1 or live[0].reduced:  # a loss times a number
        return None
    out = live[0].copy()
    out.summed = out.reduced = True
    out.each = False
    return out


def _stack(m: Calls, s: Site) -> Value | None:
    """`torch.stack(losses)`, `torch.cat`: the addends together."""
    value = s.arg(0, "tensors")
    if isinstance(value, Seq):
        tensors = [v for v in value.elts if isinstance(v, Tensor)]
        if tensors and len(tensors) == len(value.elts):
            total = tensors[0].copy()
            for item in tensors[1:]:
                total = m.add_tensors([total, item])
            total.reduced = all(t.reduced for t in tensors)
            if len({t.micro for t in total.terms}) > 1:
                total.hidden |= {f"stack of {len(tensors)}"}
            return total
    return None


def _tensor_from(m: Calls, s: Site) -> Value | None:
    """`torch.tensor(x)`, `full_like(t, x)`, `ones_like(t)`: a constant tensor."""
    last = path_terminal(s.name)
    source: Value | None = s.arg(0)
    if last in {"full_like", "full"}:
        source = s.arg(1, "fill_value")
    if last in {"ones_like", "ones"}:
        source = Lit(1)
    if last in {"tensor", "as_tensor", "FloatTensor", "Tensor"} and isinstance(source, Tensor):
        out = source.copy()
        out.grad = False
        return out
    if isinstance(source, Seq) and len(source.elts) == 1:
        source = source.elts[0]
    if source is None:
        return None
    out = m.tensor(last, m.token())
    out.grad = False
    value = m.resolve(source)
    if isinstance(value, Lit) and value.is_number and value.value != 0:
        return m.scale_tensor(out, value, 1)
    if isinstance(value, Opaque) and not value.data:
        return m.scale_tensor(out, value, 1)
    if isinstance(value, Lit) and value.is_number:
        out.terms = ()
        return out
    return None


def _zeros(m: Calls, s: Site) -> Value | None:
    out = m.tensor("0", m.token())
    out.terms, out.grad = (), False
    return out


def _chunk(m: Calls, s: Site) -> Value | None:
    """`x.chunk(n)`, `torch.chunk(x, n)`: a collection of n micro-batches of the data."""
    target, rest = s.receiver, s.args
    if target is None:
        if not rest:
            return None
        target, rest = rest[0], rest[1:]
    count = rest[0] if rest else s.kwargs.get("chunks") or s.kwargs.get("sections")
    if isinstance(target, Tensor) and target.grad:
        return target
    if isinstance(target, (Opaque, Tensor)):
        out = Opaque(f"{target.path}.{path_terminal(s.name)}", data=True, born=target.born)
        if count is not None and path_terminal(s.name) in {"chunk", "tensor_split", "array_split"}:
            number = m.resolve(count)
            if (isinstance(number, Lit) and number.is_number) or (isinstance(number, Opaque) and not number.data):
                out.length = number
        return out
    return None


_LINEAR = (
    "to cuda cpu float half double bfloat16 type squeeze unsqueeze view reshape contiguous clone requires_grad_ flatten "
    "type_as retain_grad expand permute transpose item_ real requires_grad astype nanmean"
)

_CURVED = (
    "exp expm1 log log1p log2 log10 sqrt rsqrt pow square sigmoid tanh softmax log_softmax softplus logsigmoid silu gelu "
    "selu elu celu mish sin cos erf reciprocal logsumexp"
)

FUNCTIONS: dict[str, Meaning] = {
    **{
        f"{home}.{name}": _curved
        for home in ("torch", "torch.nn.functional", "torch.special")
        for name in _CURVED.split()
    },
    "torch.mul": _scaled(1),
    "torch.multiply": _scaled(1),
    "torch.div": _scaled(-1),
    "torch.divide": _scaled(-1),
    "torch.true_divide": _scaled(-1),
    "torch.neg": _negated,
    "torch.negative": _negated,
    "torch._foreach_mul_": _foreach(1),
    "torch._foreach_div_": _foreach(-1),
    "torch.mean": _mean,
    "torch.sum": _sum,
    "torch.dot": _dot,
    "torch.vdot": _dot,
    "torch.maximum": _at_least,
    "torch.max": _at_least,
    "torch.clamp": _at_least,
    "torch.clamp_min": _at_least,
    "torch.stack": _stack,
    "torch.cat": _stack,
    "torch.tensor": _tensor_from,
    "torch.as_tensor": _tensor_from,
    "torch.FloatTensor": _tensor_from,
    "torch.Tensor": _tensor_from,
    "torch.cuda.FloatTensor": _tensor_from,
    "torch.full": _tensor_from,
    "torch.ones": _tensor_from,
    "torch.full_like": _tensor_from,
    "torch.ones_like": _tensor_from,
    "torch.zeros_like": _zeros,
    "torch.zeros": _zeros,
    "torch.chunk": _chunk,
    "torch.split": _chunk,
    "torch.tensor_split": _chunk,
    "numpy.array_split": _chunk,
}

METHODS: dict[tuple[str, str], Meaning] = {
    ("tensor", "mul"): _scaled(1),
    ("tensor", "mul_"): _scaled(1),
    ("tensor", "multiply"): _scaled(1),
    ("tensor", "div"): _scaled(-1),
    ("tensor", "div_"): _scaled(-1),
    ("tensor", "divide_"): _scaled(-1),
    ("tensor", "true_divide_"): _scaled(-1),
    ("tensor", "multiply_"): _scaled(1),
    ("tensor", "divide"): _scaled(-1),
    ("tensor", "true_divide"): _scaled(-1),
    ("tensor", "neg"): _negated,
    ("tensor", "negative"): _negated,
    **{("opaque", name): _scaled(1) for name in ("mul", "mul_", "multiply")},
    **{("opaque", name): _scaled(-1) for name in ("div", "div_", "divide", "true_divide")},
    **{("grad", name): _scaled(1) for name in ("mul", "mul_", "multiply", "multiply_")},
    **{("grad", name): _scaled(-1) for name in ("div", "div_", "divide", "divide_", "true_divide", "true_divide_")},
    ("grad", "copy_"): _grad_copy,
    ("*", "register_hook"): _hooked,
    ("grad", "zero_"): _grad_zero,
    ("grad", "clone"): _grad_op,
    ("grad", "detach"): _detached,
    ("grad", "detach_"): _same,
    ("tensor", "detach_"): _detach_here,
    ("tensor", "zero_"): _grad_zero,
    ("tensor", "mean"): _mean,
    ("tensor", "sum"): _sum,
    ("tensor", "dot"): _dot,
    ("tensor", "vdot"): _dot,
    ("tensor", "detach"): _detached,
    ("tensor", "item"): _item,
    ("tensor", "tolist"): _item,
    ("tensor", "size"): _size,
    ("tensor", "numel"): _size,
    ("opaque", "size"): _size,
    ("opaque", "numel"): _size,
    ("opaque", "item"): _item,
    ("opaque", "scale"): _scaled_elsewhere,
    ("opaque", "chunk"): _chunk,
    ("opaque", "split"): _chunk,
    ("opaque", "tensor_split"): _chunk,
    **{("tensor", name): _same for name in _LINEAR.split()},
    **{("tensor", name): _curved for name in _CURVED.split()},
    **{
        ("opaque", name): _same for name in ("to", "cuda", "cpu", "float", "half", "long", "contiguous", "non_blocking")
    },
    **{("opaque", name): _of_its_batch for name in _RESHAPED.split()},
}
