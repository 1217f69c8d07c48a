"""`torch.optim`: construction, `step`, `zero_grad`, schedulers.

`Optimizer.zero_grad` sets every managed gradient to None (or zero); `step` applies `.grad` as it stands and
does not clear it: see the PyTorch documentation of `torch.optim.Optimizer`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from galint import program as p
from galint.run.nodes import path_terminal
from galint.run.site import Site
from galint.run.values import NONE, Bound, Function, Lit, Opaque, Optimizer, Partial, Seq, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls

_CLASS = re.compile(
    r"^(\w*(Adam|AdamW|SGD|RMSprop|Adagrad|Adadelta|Lion|LAMB|Lamb|LARS|Lars|Sophia\w*|Adafactor|Muon|NovoGrad|RAdam|Ranger|"
    r"AdaBelief|Prodigy|Shampoo|ASGD|Rprop|NAdam|Adamax)\w*|\w*Optimizer|\w*Optim)$"
)
_COUNTS = re.compile(r"total|steps|warm_?up|max_iter|horizon|schedule", re.I)
"""What an optimizer that schedules itself is told of the training's length, which N divides wherever the loss is scaled."""


def make(m: Calls, s: Site) -> Value | None:
    modules = frozenset().union(*(m.modules_in(v) for v in s.all_args())) if s.all_args() else frozenset()
    inner = next((v for v in s.all_args() if isinstance(v, Optimizer)), None)
    if inner is not None:  # a wrapper around an optimizer acts on the same gradients
        return inner
    optimizer = m.make_optimizer(f"#{m.tick()}", modules, known=s.name.startswith("torch.optim."))
    optimizer.made = s.span
    given = {name: v for name, v in s.kwargs.items() if not _COUNTS.search(name)}
    optimizer.made_keys = m._settings([*s.args, *given.values()]) | frozenset(
        k for v in given.values() if isinstance(v, Lit) for k in v.keys
    )
    optimizer.made_text = " ".join(p.text(a.value) for a in s.node.args if not _COUNTS.search(a.keyword or ""))
    optimizer.items["__class__"] = Lit(path_terminal(s.name))
    lr = s.kwargs.get("lr") or s.arg(1)
    if isinstance(lr, Opaque):
        optimizer.made_keys |= frozenset(_leaves(lr))
    return optimizer


def _leaves(value: Value) -> list[str]:
    if isinstance(value, Opaque):
        if value.deferred is not None:
            return [x for part in value.deferred[1:] for x in _leaves(part)]
        return [value.path]
    return list(value.keys) if isinstance(value, Lit) else []


def _step(m: Calls, s: Site) -> Value | None:
    """`optimizer.step()`; with a closure the closure runs first, as LBFGS and Lightning do."""
    target = s.receiver
    if not isinstance(target, Optimizer):
        return None
    closure = s.arg(0, "closure")
    if isinstance(closure, (Function, Partial, Bound)):
        m.call_value(closure, [], {}, s.node, s.frame)
        m.result.facts["closure"] = True
    if target.accelerated is not None:
        accelerator = target.accelerated
        if m.truth(accelerator.attrs.get("sync_gradients", Lit(True))) is False:
            m.event("inert", s.span, target.path, what="step")
            return NONE
    m.step(target, s.span)
    return NONE


def _zero_grad(m: Calls, s: Site) -> Value | None:
    target = s.receiver
    if not isinstance(target, Optimizer):
        return None
    if target.engine is not None:
        return NONE
    if target.accelerated is not None and m.truth(target.accelerated.attrs.get("sync_gradients", Lit(True))) is False:
        m.event("inert", s.span, target.path, what="zero_grad")
        return NONE
    m.clear([target], target.modules, s.span, s.text)
    return NONE


def _some_zero_grad(m: Calls, s: Site) -> Value | None:
    """`self.trainer.zero_grad()` of a wrapper that another file defines."""
    m.clear_applied()
    return NONE


def _first_step(m: Calls, s: Site) -> Value | None:
    """Sharpness-aware minimisation, first half: the gradient moves the weights to where the second backward is taken."""
    if not isinstance(s.receiver, Optimizer):
        return None
    m.result.facts["manual_grad"] = True
    return _zero_grad(m, s) if s.flag(0, "zero_grad") else NONE


def _second_step(m: Calls, s: Site) -> Value | None:
    """Its second half moves the weights back and steps."""
    if not isinstance(s.receiver, Optimizer):
        return None
    m.result.facts["manual_grad"] = True
    m.step(s.receiver, s.span)
    return _zero_grad(m, s) if s.flag(0, "zero_grad") else NONE


def _scheduler_step(m: Calls, s: Site) -> Value | None:
    receiver = s.receiver
    data: dict[str, object] = {}
    if isinstance(receiver, Opaque):
        data = {
            "prepared": bool(receiver.items.get("__prepared__")),
            "class": receiver.items.get("__class__"),
            "args": len(s.args),
        }
        data |= {name: receiver.items.get(f"__{name}__") for name in ("horizon", "made")}
        if receiver.items.get("__prepared__"):
            accelerator = receiver.items["__prepared__"]
            if isinstance(accelerator, Opaque) and m.truth(accelerator.attrs.get("sync_gradients", Lit(True))) is False:
                return NONE
    m.event("scheduler", s.span, s.text, **data)
    return NONE


def _make_scheduler(m: Calls, s: Site) -> Value | None:
    out = Opaque(f"#{m.tick()}", "scheduler")
    out.items["__class__"] = Lit(path_terminal(s.name))
    horizon = next((s.kwargs[name] for name in _HORIZONS if name in s.kwargs), None)
    if horizon is None:
        name = path_terminal(s.name)
        warmup = name.startswith("get_") and name.endswith("warmup") and "constant" not in name
        horizon = s.arg(_HORIZON_AT.get(name, 2 if warmup or name.endswith("Schedule") else 99))
    if horizon is not None:
        out.items["__horizon__"] = Lit(getattr(horizon, "path", "") or s.text, frozenset(_leaves(horizon)))
    out.items["__made__"] = Lit(s.span)
    return out


_HORIZONS = (
    "num_training_steps",
    "total_steps",
    "total_iters",
    "T_max",
    "t_total",
    "t_initial",
    "max_iters",
    "steps_per_epoch",
)
_HORIZON_AT = {"CosineAnnealingLR": 1, "PolynomialLR": 1, "get_scheduler": 3}


def _add_param_group(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Optimizer):
        s.receiver.modules |= frozenset().union(*(m.modules_in(v) for v in s.all_args()))
    return NONE


_FILLS = re.compile(r"none|missing|nan|inf|unused|empty", re.I)
"""`zero_none_grad` gives zeros to parameters that have no gradient: it clears nothing."""


def guess(name: str) -> Meaning | None:
    """Optimizer and scheduler classes by their usual names."""
    last = name.rpartition(".")[2]
    if re.match(r"(zero|clear)_\w*grad(ient)?s?$", last) and "." in name and not _FILLS.search(last):
        return _clear_function
    if "lr_scheduler" in name or re.search(r"Scheduler$|LR$|^get_\w*schedule\w*$|^Warmup\w*Schedule$", last):
        return _make_scheduler
    if name.startswith("torch.optim.") and last[:1].isupper() and "swa_utils" not in name:
        return make
    if _CLASS.match(last) and last[:1].isupper() and not name.startswith(("builtins.", "tensorflow", "tf.", "keras")):
        return make
    return None


def _clear_function(m: Calls, s: Site) -> Value | None:
    """A function of another file that clears the gradients of what it is given."""
    optimizers = [v for v in s.all_args() if isinstance(v, Optimizer)]
    modules = frozenset().union(*(m.modules_in(v) for v in s.all_args())) if s.all_args() else frozenset()
    m.clear(optimizers or None, modules, s.span, s.text)
    return NONE


def _grad_hook(m: Calls, s: Site) -> Value | None:
    """`p.register_post_accumulate_grad_hook(f)`: f runs inside backward, once p's gradient is there."""
    hook, parameter = s.arg(0, "hook"), s.receiver
    if hook is not None and parameter is not None and not any(held[2].span == s.span for held in m.grad_hooks):
        m.grad_hooks.append((hook, parameter, s))
    return NONE


def _all_of(m: Calls, s: Site) -> Value | None:
    """`optimizers.values()` of a container whose optimizers are not known: one stands for all."""
    one = s.receiver
    if s.args or not isinstance(one, Optimizer) or s.name.endswith("to_dict"):
        return one if not s.args else None
    return Seq([Seq([Opaque("name"), one], "tuple") if s.name.endswith("items") else one], "list")


FUNCTIONS: dict[str, Meaning] = {}

METHODS: dict[tuple[str, str], Meaning] = {
    ("*", "register_post_accumulate_grad_hook"): _grad_hook,
    ("optimizer", "step"): _step,
    ("optimizer", "step_and_update_lr"): _step,
    ("optimizer", "first_step"): _first_step,
    ("optimizer", "second_step"): _second_step,
    ("optimizer", "zero_grad"): _zero_grad,
    ("*", "zero_grad"): _some_zero_grad,
    ("optimizer", "add_param_group"): _add_param_group,
    ("optimizer", "to_dict"): _all_of,
    ("optimizer", "values"): _all_of,
    ("optimizer", "items"): _all_of,
    ("scheduler", "step"): _scheduler_step,
    ("scheduler", "step_update"): _scheduler_step,
}
