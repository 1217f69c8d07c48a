"""Losses and criterions: what `reduction` makes of them.

See the PyTorch documentation of `torch.nn.functional.cross_entropy`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from galint import program as p
from galint.run.nodes import path_terminal
from galint.run.site import Site
from galint.run.values import Lit, Mapping, Opaque, Tensor, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls

_COUNT = re.compile(r"(^|_|\W)(num|n|count|total|denom\w*|normali[sz]er|divisor)(_|\W|$)|tokens|items|valid", re.I)
_LOSSES = frozenset({"cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"})


def _loss(m: Calls, s: Site) -> Value | None:
    """A loss of `torch.nn.functional`: reads `reduction=`."""
    tensors = [t for v in s.all_args() for t in m.tensors_in(v)]
    path = path_terminal(s.name)
    data = s.all_args()
    if tensors:
        out = m.mix(tensors, f"{path}(…)")
    else:
        out = m.tensor(f"{path}(…)", max((m.born_of(v) for v in data), default=0))
    return _reduction(s.kwargs, out)


def _reduction(kwargs: dict[str, Value], out: Tensor) -> Tensor:
    reduction = kwargs.get("reduction")
    out.reduced = True
    if isinstance(reduction, Lit):
        out.summed = reduction.value == "sum"
        out.reduced, out.each = reduction.value != "none", reduction.value == "none"
    for old in ("size_average", "reduce"):
        flag = kwargs.get(old)
        if isinstance(flag, Lit) and flag.value is False:
            out.summed, out.reduced = old == "size_average", old == "size_average"
    return out


def _criterion(m: Calls, s: Site) -> Value | None:
    """A criterion object applied to outputs."""
    holder = s.receiver
    tensors = [t for v in s.all_args() for t in m.tensors_in(v)]
    # What follows outputs and targets may be N.
    hidden = m._settings([v for v in (*s.args[2:], *s.kwargs.values()) if isinstance(v, (Lit, Opaque))])
    if tensors:
        out = m.mix(tensors, "loss", hidden)
    else:
        born = max((m.born_of(v) for v in s.all_args()), default=0)
        out = m.tensor("loss", born)
    made = holder.items.get("__kwargs__") if isinstance(holder, Opaque) else None
    if isinstance(holder, Opaque):
        out.hidden |= _held_settings(holder)
    out.unknown_scale = out.unknown_scale or _counts_the_window(m, s)
    return _reduction({**(made.items if isinstance(made, Mapping) else {}), **s.kwargs}, out)


def _counts_the_window(m: Calls, s: Site) -> bool:
    """Whether a criterion is given a count that is older than the outputs: it may divide by the whole window's items.

    One that is given the processes to talk to counts with them, as it likes.
    """
    if len(s.args) < 3 and not s.kwargs:
        return False
    if any(name.endswith("group") for name in s.kwargs):
        return True
    latest = max((m.born_of(v) for v in s.args[:2]), default=0)
    spelled = {(a.keyword or ""): p.text(a.value) for a in s.node.args if a.keyword and not a.star}
    plain = [p.text(a.value) for a in s.node.args if not a.keyword and not a.star]
    given = [*zip(plain[2:], s.args[2:], strict=False)]
    given += [(f"{name} {text}", s.kwargs[name]) for name, text in spelled.items() if name in s.kwargs]
    return any(_COUNT.search(text) and m.is_data(value) and m.born_of(value) < latest for text, value in given)


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


METHODS: dict[tuple[str, str], Meaning] = {
    ("criterion", "()"): _criterion,
    **{
        ("criterion", name): _itself
        for name in ("cuda", "cpu", "to", "half", "float", "double", "bfloat16", "train", "eval", "requires_grad_")
    },
}
