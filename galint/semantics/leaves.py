"""Tensors made by their size: with `requires_grad=True` made like an `nn.Parameter`, else of a known number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import Lit, Opaque, Seq, Value
from galint.semantics import tensors
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls

_DRAWN = frozenset({"rand", "randn"})
_BY_SIZE = frozenset({"zeros", "ones", "rand", "randn", "empty"})


def _made(otherwise: Meaning | None) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        wanted = s.kwargs.get("requires_grad")
        if wanted is not None and m.truth(wanted) is True:
            return m.unknown_call(s, s.name)
        out = otherwise(m, s) if otherwise is not None else None
        rows = _rows(s) if out is None else None
        drawn = s.name.rpartition(".")[2] in _DRAWN
        if out is not None or (rows is None and not drawn):
            return out
        made = m.unknown_call(s, s.name)
        if type(made) is Opaque:
            made.length = rows or made.length
            if drawn and m.loops:  # what is drawn once stands for any batch
                made.data, made.born = True, made.born or m.token()
        return made

    return meaning


def _rows(s: Site) -> Lit | None:
    """The first dimension, where the size is given in numbers: `torch.randn(12, 8)`, `torch.zeros((12, 8))`."""
    if s.name.rpartition(".")[2] not in _BY_SIZE:
        return None
    first = s.arg(0, "size")
    if isinstance(first, Seq) and first.elts:
        first = first.elts[0]
    return first if isinstance(first, Lit) and type(first.value) is int else None


FUNCTIONS: dict[str, Meaning] = {
    name: _made(tensors.FUNCTIONS.get(name))
    for name in (
        "torch.zeros",
        "torch.ones",
        "torch.full",
        "torch.tensor",
        "torch.as_tensor",
        "torch.rand",
        "torch.randn",
        "torch.empty",
        "torch.FloatTensor",
    )
}
METHODS: dict[tuple[str, str], Meaning] = {}
