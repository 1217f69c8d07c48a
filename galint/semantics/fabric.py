"""Lightning Fabric: `backward` does not scale the loss, `no_backward_sync(enabled=)` switches synchronisation.

See the Fabric documentation, "Efficient gradient accumulation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import NONE, TRUE, Context, Lit, Module, Opaque, Seq, Value
from galint.semantics.backward import loss_in
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _make(m: Calls, s: Site) -> Value | None:
    made = Opaque("fabric", "fabric")
    devices, nodes = s.arg(2, "devices"), s.arg(3, "num_nodes")
    if isinstance(devices, Seq) and len(devices.elts) == 1 and not devices.open:
        devices = Lit(1)  # `devices=[0]`
    one = [isinstance(n, Lit) and not n.keys and n.value in {1, "1"} for n in (devices, nodes) if n is not None]
    if devices is not None and all(one):
        made.items["__alone__"] = TRUE
    return made


def _setup(m: Calls, s: Site) -> Value | None:
    out: list[Value] = []
    for value in s.args:
        alone = isinstance(s.receiver, Opaque) and "__alone__" in s.receiver.items  # one process wraps nothing
        if isinstance(value, Module) and not value.wrap and not alone:
            value.wrap = "fabric"
            value.made = s.span
        out.append(value)
    if not out or s.star:
        return None
    return out[0] if len(out) == 1 else Seq(out, "tuple")


def _backward(m: Calls, s: Site) -> Value | None:
    if not s.args:
        return None
    loss = loss_in(m, s.args[0])
    m.backward(loss, s.span, name="fabric")
    return NONE


def _no_sync(m: Calls, s: Site) -> Value | None:
    enabled = s.arg(1, "enabled")
    truth = True if enabled is None else m.truth(enabled)
    return Context("no_sync" if truth is not False else "null", s.arg(0, "module"), s.span)


FUNCTIONS: dict[str, Meaning] = {
    "lightning.Fabric": _make,
    "lightning.fabric.Fabric": _make,
    "lightning_fabric.Fabric": _make,
    "*.Fabric": _make,
}
METHODS: dict[tuple[str, str], Meaning] = {
    ("fabric", "setup"): _setup,
    ("fabric", "setup_module"): _setup,
    ("fabric", "setup_optimizers"): _setup,
    ("fabric", "setup_dataloaders"): _setup,
    ("fabric", "backward"): _backward,
    ("fabric", "no_backward_sync"): _no_sync,
}
