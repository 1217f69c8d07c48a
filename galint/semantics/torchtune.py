"""torchtune's `scale_grads`, which divides the gradients of a window at once.

See the torchtune documentation, `torchtune.training.scale_grads`: it multiplies every gradient, so that recipes run
backward through sums over tokens and divide once by the window's tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import NONE, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _scale(m: Calls, s: Site) -> Value | None:
    """`scale_grads(model, factor)`, `scale_grads_(parameters, factor)`."""
    target, factor = s.arg(0), s.arg(1, "scaler")
    if target is None or factor is None:
        return None
    m.rescale(m.modules_in(target), m.symbol(m.resolve(factor)), s.span)
    return NONE


FUNCTIONS: dict[str, Meaning] = {
    "torchtune.*.scale_grads": _scale,
    "torchtune.*.scale_grads_": _scale,
}
METHODS: dict[tuple[str, str], Meaning] = {}
