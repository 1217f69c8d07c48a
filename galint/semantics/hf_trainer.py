"""Hugging Face `Trainer` subclasses: the Trainer calls an overridden `training_step` once a micro-batch and steps itself.

See the transformers documentation, "Trainer" (`training_step`, `compute_loss`, `gradient_accumulation_steps`). The step and
the clearing after every N calls are the Trainer's. Who divides is the version's affair, and the signature tells which: since
4.46 the Trainer passes `num_items_in_batch`, its Accelerator divides by nothing, and `training_step` itself divides unless
the loss was divided by `num_items_in_batch`; before, its Accelerator was made with N and `accelerator.backward` divides.
`loss.backward()` divides in no version. The short window at an epoch's end is the Trainer's affair and is not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.ledger import OWN_COUNT, Guard
from galint.run.frame import Frame, LoopFrame
from galint.run.nodes import terminal
from galint.run.site import Site
from galint.run.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Lit,
    Module,
    Opaque,
    Seq,
    Tensor,
    Value,
)
from galint.semantics.backward import loss_in
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls

_ROOTS = {"transformers", "trl"}
_SETTING = "gradient_accumulation_steps"
_ITEMS = "num_items_in_batch"
_WINDOWS = 3


def is_trainer(cls: Class) -> bool:
    """Whether a class descends from a Trainer of transformers or trl."""
    for base in cls.bases:
        if isinstance(base, Class) and is_trainer(base):
            return True
        if isinstance(base, External) and base.name.partition(".")[0] in _ROOTS and base.name.endswith("Trainer"):
            return True
    return False


def train(m: Calls, trainer: Instance, step: Function, site: p.Call, frame: Frame) -> None:
    """Call `training_step` as the Trainer does: N times, then a step and a clear, for a few windows."""
    node = step.node
    counted = _passes_items(node)
    model, optimizer = m.make_module("model"), m.make_optimizer("self.optimizer")
    args = m.get_attr(trainer, "args", site)
    steps = m.get_attr(args, _SETTING, site) if _accumulates(m) else Lit(1)
    n = max(int((m.demand(steps, "window") or Lit(1)).value), 1)
    _equip(m, trainer, model, Lit(1) if counted else steps)
    trainer.attrs["optimizer"] = optimizer
    m.items_scaled = counted and _reads_items(m, trainer.cls)
    m.result.facts["driven"] = "the Trainer calls this once a micro-batch, and steps after the window's last"
    m.result.facts["framework_n"] = not counted
    guard = Guard(
        node.span, f"(step + 1) % args.{_SETTING} == 0", ((getattr(steps, "path", str(n)), n),), frozenset({OWN_COUNT})
    )
    loop = LoopFrame(node, node.span, 1_000_000, -1, m.new_token(), role="length")
    m.loops.append(loop)
    try:
        for index in range(_WINDOWS * n):
            loop.iteration, loop.token = index, m.new_token()
            loop.residual.clear()
            batch = Opaque("inputs", data=True, born=loop.token)
            items = Opaque(_ITEMS, data=True, born=loop.token)
            given: list[Value] = [trainer, model, batch, *([items] if counted else [])]
            m.call_value(step, given, {}, site, frame)
            if (index + 1) % n == 0:
                m.guards.append(guard)
                scaler = trainer.attrs.get("scaler")
                m.step(optimizer, node.span, scaler=scaler.path if isinstance(scaler, Opaque) else "")
                m.guards.pop()
                m.clear([optimizer], frozenset(), node.span, "the Trainer")
    finally:
        m.loops.pop()


def _equip(m: Calls, trainer: Instance, model: Module, divisor: Value) -> None:
    """What the Trainer's own methods and attributes are."""
    own = Opaque("super()", "hf_trainer")
    own.attrs["instance"] = trainer
    trainer.items["__super__"] = own
    accelerator = Opaque("self.accelerator", "accelerator")
    accelerator.attrs["sync_gradients"] = TRUE
    accelerator.items["__steps__"] = divisor
    accelerator.items["__plain__"] = TRUE if isinstance(divisor, Lit) and divisor.value == 1 else FALSE
    trainer.attrs |= {"accelerator": accelerator, "model": model, "model_wrapped": model}
    for name in ("compute_loss", "training_step"):
        if m.class_member(trainer.cls, name) is None:
            trainer.attrs[name] = Bound(own, name)


def _passes_items(step: p.FunctionDef | p.Lambda) -> bool:
    """Whether a `training_step` takes a third argument: only then can the Trainer be 4.46 or later."""
    positional = [q for q in step.params if q.kind == "arg"]
    return len(positional) > 3 or any(q.kind == "vararg" for q in step.params)


def _reads_items(m: Calls, cls: Class) -> bool:
    """Whether a Trainer's methods read the window's item count, by which they may divide."""
    if any(isinstance(node, p.Name) and node.id == _ITEMS for node in m.static.walk(cls.node)):
        return True
    return any(isinstance(base, Class) and _reads_items(m, base) for base in cls.bases)


def _accumulates(m: Calls) -> bool:
    """Whether the program speaks of the Trainer's N, and not only to say that it is 1, which is the default."""
    given: list[p.Expr] = []
    read = False
    for body in m.static.bodies:
        for stmt in body:
            for node in m.static.walk(stmt):
                if isinstance(node, p.Arg) and node.keyword == _SETTING:
                    given.append(node.value)
                read = read or (isinstance(node, (p.Name, p.Attr)) and terminal(node) == _SETTING)
    if given and all(isinstance(value, p.Const) and value.value == 1 for value in given):
        return False
    return read or bool(given)


def _compute_loss(m: Calls, s: Site) -> Value | None:
    """The Trainer's own: the model's loss, a mean over the micro-batch unless it is given the window's item count."""
    model, inputs = s.arg(0, "model"), s.arg(1, "inputs")
    if not isinstance(model, (Module, Instance)) or inputs is None:
        return None
    loss = m.run_forward(Site("forward", [inputs], {}, s.node, s.frame, model))
    if not isinstance(loss, Tensor):
        return None
    items = s.arg(3, _ITEMS)
    loss.unknown_scale = items is not None and not (isinstance(items, Lit) and items.value is None)
    if m.truth(s.arg(2, "return_outputs") or FALSE):
        return Seq([loss, Opaque("outputs", data=True, born=loss.born)], "tuple")
    return loss


def _training_step(m: Calls, s: Site) -> Value | None:
    """The Trainer's own: the (perhaps overridden) `compute_loss`, divided as the version and the model want it."""
    trainer = s.receiver.attrs.get("instance") if isinstance(s.receiver, Opaque) else None
    model, inputs = s.arg(0, "model"), s.arg(1, "inputs")
    if not isinstance(trainer, Instance) or model is None or inputs is None:
        return None
    callee = m.get_attr(trainer, "compute_loss", s.node.func)
    loss = loss_in(m, m.call_value(callee, [model, inputs], {}, s.node, s.frame))
    loss.unknown_scale = True
    m.backward(loss, s.span, name="training_step")
    out = loss.copy()
    out.grad = False
    return out


FUNCTIONS: dict[str, Meaning] = {}
METHODS: dict[tuple[str, str], Meaning] = {
    ("hf_trainer", "compute_loss"): _compute_loss,
    ("hf_trainer", "training_step"): _training_step,
    ("hf_trainer", "__init__"): lambda m, s: NONE,
}
