"""Tensor arithmetic and losses: which operations keep a loss's coefficient, which change it.

`mean` and `sum` are linear, so gradients scale with what the loss was multiplied by; see the PyTorch
documentation of `torch.Tensor.backward` and of `torch.nn.functional.cross_entropy` (`reduction`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.ledger import ONE, Coefficient
from galint.run.site import Site
from galint.run.static import path_terminal
from galint.run.tensors import invert
from galint.run.values import NONE, Lit, Mapping, Module, Opaque, Optimizer, Seq, Tensor, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _backward(m: Calls, s: Site) -> Value | None:
    """`loss.backward(gradient=w)` and `engine.backward(loss)` by shape."""
    given = s.arg(0, "gradient")
    target = s.receiver
    if isinstance(target, Seq):
        return None
    if not s.args and "loss" in s.kwargs:
        s.args.append(s.kwargs["loss"])
    losses = [t for v in s.args[:1] for t in m.tensors_in(v) if t.grad]
    if isinstance(target, Optimizer | Module) or (
        isinstance(target, Opaque) and target.kind in {"engine", "accelerator", "fabric"}
    ):
        if losses:
            m.backward(losses[0], s.span)
        elif s.args:
            m.backward(_as_loss(m, s.args[0]), s.span)
        return NONE
    factor = ONE
    if given is not None and not (isinstance(given, Lit) and (given.value is None or isinstance(given.value, bool))):
        factor = _gradient_factor(m, given)
    if isinstance(target, Tensor):
        m.backward(target, s.span, factor)
        return NONE
    if losses:
        m.backward(losses[0], s.span)
        return NONE
    if isinstance(target, Opaque):
        m.backward(_as_loss(m, target), s.span, factor)
        return NONE
    return None


def _gradient_factor(m: Calls, given: Value) -> Coefficient:
    """What `gradient=` multiplies the loss by; `torch.tensor(1 / N)` and `full_like(loss, x)` are seen through."""
    given = m.resolve(given)
    if isinstance(given, Tensor):
        coefficient = given.terms[-1].coefficient if given.terms else ONE
        return coefficient
    if isinstance(given, Lit | Opaque):
        return m.symbol(given)
    return ONE


def _as_loss(m: Calls, value: Value) -> Tensor:
    """A loss known only as an opaque value."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Opaque):
        coefficient, base = _peel(m, value)
        out = m.tensor(base.path, value.born or base.born or m.token(), value.modules | base.modules)
        out.grad = True
        keys = frozenset(name for name, _ in coefficient.symbols)
        out = out.map(lambda c: c.combine(coefficient), keys)
        for ident in {a for i in base.modules for a in m.ancestors.get(i, ())}:
            # `raw_model.last_loss`: the forward that left it there
            if (output := m.outputs.get(ident)) is not None:
                out.synced = {**output.synced, **out.synced}
                out.bypassed |= output.bypassed
        return out
    return m.tensor("loss", m.token())


def _peel(m: Calls, value: Opaque) -> tuple[Coefficient, Opaque]:
    """Split `x / N` kept as deferred arithmetic into its factor and its base."""
    if value.deferred is not None and value.deferred[0] in {"*", "/"}:
        op, left, right = value.deferred
        if op == "*" and not isinstance(left, Opaque) and isinstance(right, Opaque):
            left, right = right, left
        if isinstance(left, Opaque):
            inner, base = _peel(m, left)
            factor = m.symbol(right)
            return inner.combine(factor if op == "*" else invert(factor)), base
    return ONE, value


def _autograd_backward(m: Calls, s: Site) -> Value | None:
    """`torch.autograd.backward(tensors, grad_tensors)`."""
    if not s.args and "tensors" not in s.kwargs:
        return None
    what = s.arg(0, "tensors")
    weights = s.arg(1, "grad_tensors")
    losses = m.tensors_in(what) if what is not None else []
    if not losses and isinstance(what, Opaque):
        losses = [_as_loss(m, what)]
    factors: list[Coefficient] = [ONE] * len(losses)
    if weights is not None and not (isinstance(weights, Lit) and weights.value is None):
        parts = weights.elts if isinstance(weights, Seq) else [weights]
        factors = [_gradient_factor(m, parts[min(i, len(parts) - 1)]) for i in range(len(losses))] if parts else factors
    for loss, factor in zip(losses, factors, strict=True):
        m.backward(loss, s.span, factor)
    return NONE


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


def _item(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Tensor | Opaque):
        return Opaque(f"{s.receiver.path}.item()", data=True, born=s.receiver.born)
    return None


def _size(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Tensor | Opaque):
        return Opaque(
            f"{s.receiver.path}.{s.name}({', '.join(str(a.value) for a in s.args if isinstance(a, Lit))})",
            data=True,
            born=s.receiver.born,
        )
    return None


def _mean(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Tensor):
        out = s.receiver.copy()
        out.summed, out.reduced = False, True
        return out
    if s.receiver is None and s.args and isinstance(s.args[0], Tensor):
        out = s.args[0].copy()
        out.summed, out.reduced = False, True
        return out
    if s.receiver is None and s.args and isinstance(s.args[0], Seq):
        return None
    return None


def _sum(m: Calls, s: Site) -> Value | None:
    target = s.receiver if s.receiver is not None else s.arg(0)
    if isinstance(target, Tensor):
        out = target.copy()
        # A sum over already reduced losses adds a few terms; a sum over samples is a sum loss.
        out.summed = target.summed or not target.reduced
        return out
    if isinstance(target, Seq):
        total: Value = target.elts[0] if target.elts else NONE
        for item in target.elts[1:]:
            total = m.binary("+", total, item, s.node)
        return total
    return None


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


def _loss(m: Calls, s: Site) -> Value | None:
    """A loss of `torch.nn.functional`: reads `reduction=`."""
    tensors = [t for v in s.all_args() for t in m.tensors_in(v)]
    path = path_terminal(s.name)
    data = s.all_args()
    if not tensors and not any(m.is_data(v) for v in data):
        micro = max((m.born_of(v) for v in data), default=0)
        out = m.tensor(f"{path}(…)", micro)
    else:
        out = m.mix(tensors, f"{path}(…)", frozenset())
        if not tensors:
            out = m.tensor(f"{path}(…)", max((m.born_of(v) for v in data), default=0))
        else:
            out.terms = m.mix(tensors, path).terms
    return _reduction(s.kwargs, out)


def _reduction(kwargs: dict[str, Value], out: Tensor) -> Tensor:
    reduction = kwargs.get("reduction")
    out.reduced = True
    if isinstance(reduction, Lit):
        out.summed = reduction.value == "sum"
        out.reduced = reduction.value != "none"
    for old in ("size_average", "reduce"):
        flag = kwargs.get(old)
        if isinstance(flag, Lit) and flag.value is False:
            out.summed, out.reduced = old == "size_average", old == "size_average"
    return out


def _criterion(m: Calls, s: Site) -> Value | None:
    """A criterion object applied to outputs."""
    holder = s.receiver
    tensors = [t for v in s.all_args() for t in m.tensors_in(v)]
    hidden = m._settings([v for v in s.kwargs.values() if isinstance(v, Lit | Opaque)])
    if tensors:
        out = m.mix(tensors, "loss", hidden)
    else:
        born = max((m.born_of(v) for v in s.all_args()), default=0)
        out = m.tensor("loss", born)
    made = holder.items.get("__kwargs__") if isinstance(holder, Opaque) else None
    if isinstance(holder, Opaque):
        out.hidden |= frozenset(k for k, v in holder.attrs.items() if False) | _held_settings(holder)
    return _reduction({**(made.items if isinstance(made, Mapping) else {}), **s.kwargs}, out)


def _itself(m: Calls, s: Site) -> Value | None:
    """`criterion.cuda()`, `.to(device)`: a module's methods that give the module back."""
    return s.receiver


def _held_settings(holder: Opaque) -> frozenset[str]:
    held = holder.items.get("__settings__")
    return held.keys if isinstance(held, Lit) else frozenset()


def _make_criterion(m: Calls, s: Site) -> Value | None:
    out = Opaque(f"#{m.tick()}", "criterion")
    out.items["__kwargs__"] = Mapping(dict(s.kwargs))
    return out


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
    if isinstance(target, Opaque | Tensor):
        out = Opaque(f"{target.path}.{path_terminal(s.name)}", data=True, born=target.born)
        if count is not None and path_terminal(s.name) in {"chunk", "tensor_split", "array_split"}:
            number = m.resolve(count)
            if (isinstance(number, Lit) and number.is_number) or (isinstance(number, Opaque) and not number.data):
                out.length = number
        return out
    return None


def guess(name: str) -> Meaning | None:
    """Losses and criterions of torch by their usual spelling."""
    root, _, rest = name.partition(".")
    last = name.rpartition(".")[2]
    if root == "torch" and "functional" in rest and (last.endswith("_loss") or last in _LOSSES):
        return _loss
    if root == "torch" and ".nn." in f".{rest}" and last.endswith("Loss"):
        return _make_criterion
    if last.endswith("Loss") and last[:1].isupper():
        return _make_other_criterion
    return None


def _make_other_criterion(m: Calls, s: Site) -> Value | None:
    """A loss class of another file: settings given to it may scale."""
    out = Opaque(f"#{m.tick()}", "criterion")
    out.items["__kwargs__"] = Mapping({k: v for k, v in s.kwargs.items() if k == "reduction"})
    out.items["__settings__"] = Lit(None, m._settings(s.all_args()))
    return out


_LOSSES = frozenset({"cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"})
_LINEAR = (
    "to cuda cpu float half double bfloat16 type squeeze unsqueeze view reshape contiguous clone requires_grad_ flatten "
    "type_as retain_grad expand permute transpose item_ real requires_grad astype nanmean"
)

FUNCTIONS: dict[str, Meaning] = {
    "torch.autograd.backward": _autograd_backward,
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
    ("*", "backward"): _backward,
    ("*", "manual_backward"): _backward,
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
    ("opaque", "mul_"): _scaled(1),
    ("opaque", "div_"): _scaled(-1),
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
    ("tensor", "detach"): _detached,
    ("tensor", "item"): _item,
    ("tensor", "tolist"): _item,
    ("tensor", "size"): _size,
    ("tensor", "numel"): _size,
    ("opaque", "size"): _size,
    ("opaque", "numel"): _size,
    ("opaque", "item"): _item,
    ("opaque", "chunk"): _chunk,
    ("opaque", "split"): _chunk,
    ("opaque", "tensor_split"): _chunk,
    ("criterion", "()"): _criterion,
    **{
        ("criterion", name): _itself
        for name in ("cuda", "cpu", "to", "half", "float", "double", "bfloat16", "train", "eval", "requires_grad_")
    },
    **{("tensor", name): _same for name in _LINEAR.split()},
    **{
        ("opaque", name): _same for name in ("to", "cuda", "cpu", "float", "half", "long", "contiguous", "non_blocking")
    },
}
