"""Tensors that are parameters: `torch.zeros(1, requires_grad=True)` and its relatives, made like an `nn.Parameter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import Value
from galint.semantics import tensors
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _made(otherwise: Meaning | None) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        wanted = s.kwargs.get("requires_grad")
        if wanted is None or m.truth(wanted) is not True:
            return otherwise(m, s) if otherwise is not None else None
        return m.unknown_call(s, s.name)

    return meaning


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
