"""Lightning's manual optimization: `optimizers`, `manual_backward`, `toggle_optimizer`, `clip_gradients`.

See the Lightning documentation, "Manual Optimization": the user's `training_step` runs once a batch, `manual_backward`
divides by nothing, and `accumulate_grad_batches` has no effect. `toggle_optimizer` sets `requires_grad` to False for
the parameters of the other optimizers, so a backward reaches one optimizer alone. With automatic optimization
(the default) the Trainer divides, steps and clears by itself, and there is no loop to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import NONE, Function, Instance, Mapping, Module, Opaque, Optimizer, Seq, Value
from galint.semantics.backward import loss_in
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _manual_backward(m: Calls, s: Site) -> Value | None:
    """The loss's own backward; what the Trainer's precision plugin adds is undone before the step."""
    loss = s.arg(0, "loss")
    if loss is None:
        return None
    m.backward(loss_in(m, loss), s.span, name="manual_backward")
    return NONE


def _optimizers(m: Calls, s: Site) -> Value | None:
    """What `configure_optimizers` made: one optimizer, or a list of them."""
    module = s.receiver
    if not isinstance(module, Instance):
        return None
    if "__optimizers__" not in module.attrs:
        method = m.class_member(module.cls, "configure_optimizers")
        made = m.call_function(method, [module], {}, s.node) if isinstance(method, Function) else None
        found = _flat(made)
        if not found:  # made in another file, and the same ones at each call
            module.attrs["__optimizers__"] = Opaque(s.text)
        else:
            module.attrs["__optimizers__"] = found[0] if len(found) == 1 else Seq([*found], "list")
    return module.attrs["__optimizers__"]


def _flat(value: Value | None) -> list[Optimizer]:
    """The optimizers in what `configure_optimizers` may return: one, a list, a pair of lists, a dict, dicts."""
    if isinstance(value, Optimizer):
        return [value]
    if isinstance(value, Seq):
        return [one for part in value.elts for one in _flat(part)]
    if isinstance(value, Mapping):
        return _flat(value.items.get("optimizer"))
    return []


def _toggle(m: Calls, s: Site) -> Value | None:
    target = s.arg(0, "optimizer")
    m.toggled = target if isinstance(target, Optimizer) else None
    return NONE


def _untoggle(m: Calls, s: Site) -> Value | None:
    m.toggled = None
    return NONE


def _clip(m: Calls, s: Site) -> Value | None:
    target = s.arg(0, "optimizer")
    m.clip(frozenset(), s.span, s.text, target if isinstance(target, Optimizer) else None)
    return NONE


def _schedulers(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, (Instance, Module)) and not s.args:
        return Opaque("lr_scheduler", "scheduler")
    return None


FUNCTIONS: dict[str, Meaning] = {}
METHODS: dict[tuple[str, str], Meaning] = {
    ("module", "manual_backward"): _manual_backward,
    ("module", "optimizers"): _optimizers,
    ("module", "toggle_optimizer"): _toggle,
    ("module", "untoggle_optimizer"): _untoggle,
    ("module", "clip_gradients"): _clip,
    ("module", "lr_schedulers"): _schedulers,
}
