"""Whether numbers are finite: asked of tensors, and so of data, whatever the tensor is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import Opaque, Tensor, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls

_ASKS = ("isfinite", "isinf", "isnan", "isneginf", "isposinf")


def _of(m: Calls, s: Site) -> Value | None:
    """`torch.isfinite(p.grad)`, `p.grad.isnan()`: of a gradient as well as of a loss."""
    asked = s.receiver if isinstance(s.receiver, Opaque) and s.receiver.role == "grad" else s.arg(0, "input")
    if isinstance(asked, Tensor) or asked is None or m.is_data(asked):
        return None
    return Opaque(s.text, data=True, born=m.token())


FUNCTIONS: dict[str, Meaning] = {f"{home}.{name}": _of for home in ("torch", "numpy") for name in _ASKS}
METHODS: dict[tuple[str, str], Meaning] = {("grad", name): _of for name in _ASKS}
