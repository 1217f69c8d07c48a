"""Hugging Face Accelerate: `accumulate`, `backward`, prepared objects.

Documented behaviour (Accelerate's guide "Performing gradient accumulation"): `backward` divides the loss by
`gradient_accumulation_steps`; inside `accumulate` a prepared optimizer's `step` and `zero_grad`, and a prepared
scheduler's `step`, act only on the synchronising micro-batch; the end of a prepared loader synchronises.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from galint.ledger import ONE, Coefficient
from galint.run.site import Site
from galint.run.values import NONE, TRUE, Context, Lit, Opaque, Optimizer, Seq, Value
from galint.semantics.backward import loss_in
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _make(m: Calls, s: Site) -> Value | None:
    out = Opaque("accelerator", "accelerator")
    steps = s.kwargs.get("gradient_accumulation_steps")
    plugin = s.kwargs.get("gradient_accumulation_plugin")
    if isinstance(plugin, Opaque) and "num_steps" in plugin.items:
        steps = plugin.items["num_steps"]
        out.items["__plugin__"] = plugin
    out.items["__steps__"] = steps if steps is not None else Lit(1)
    out.items["__given__"] = Lit(steps is not None or any(k == "**" or k.endswith("_plugin") for k in s.kwargs))
    out.items["__made__"] = Lit(s.text)
    if steps is not None:
        out.items["__told__"] = Lit(s.span)
    out.attrs["sync_gradients"] = TRUE
    out.items["__count__"] = Lit(0)
    if steps is None and "**" in s.kwargs:
        out.items["__steps__"] = Opaque("gradient_accumulation_steps")
    return out


def _plugin(m: Calls, s: Site) -> Value | None:
    out = Opaque("plugin", "plugin")
    steps = s.arg(0, "num_steps")
    if steps is not None:
        out.items["num_steps"] = steps
    return out


def steps_of(m: Calls, accelerator: Opaque) -> Lit:
    """The accelerator's N; an accelerator handed in from elsewhere has an unknown N."""
    steps = accelerator.items.get("__steps__")
    if steps is None:
        steps = accelerator.attrs.get("gradient_accumulation_steps") or Opaque(
            f"{accelerator.path}.gradient_accumulation_steps"
        )
        accelerator.items["__steps__"] = steps
    return m.demand(steps, "window") or Lit(1)


def enter(m: Calls, context: Context) -> None:
    """Entering `accumulate`: the counter advances and `sync_gradients` is decided."""
    accelerator = context.target
    if not isinstance(accelerator, Opaque):
        return
    count = accelerator.items.get("__count__")
    steps = steps_of(m, accelerator)
    number = (int(count.value) if isinstance(count, Lit) and count.is_number else 0) + 1
    last = _loader_ends(m)
    sync = number % max(int(steps.value), 1) == 0
    if last and not sync:
        sync, number = True, 0
    elif last:
        number = 0
    accelerator.items["__count__"] = Lit(number)
    nested = any(c.kind == "accumulate" and c.target is accelerator for c in m.contexts)
    before = accelerator.items.get("__entered__")
    again = isinstance(before, Lit) and before.born == m.token() > 0 and before.value != context.span
    accelerator.items["__entered__"] = Lit(context.span, born=m.token())
    n = int(steps.value)
    accelerator.attrs["sync_gradients"] = Lit(sync, steps.keys, (("gradient_accumulation_steps", n),))
    m.event(
        "accumulate",
        context.span,
        accelerator.path,
        sync=sync,
        last=last,
        n=int(steps.value),
        args=context.data.get("models", []),
        nested=nested,
        again=again,
        keys=sorted(steps.keys),
        made="__made__" in accelerator.items,
        given=accelerator.items.get("__given__", NONE),
    )


def _loader_ends(m: Calls) -> bool:
    return bool(m.loops) and m.loops[-1].last


def _accumulate(m: Calls, s: Site) -> Value | None:
    if not isinstance(s.receiver, Opaque):
        return None
    return Context("accumulate", s.receiver, s.span, {"models": list(s.args), "keys": frozenset()})


def _backward(m: Calls, s: Site) -> Value | None:
    """`accelerator.backward(loss)` divides by the accelerator's own N."""
    if not isinstance(s.receiver, Opaque) or not s.args:
        return None
    steps = s.receiver.items.get("__steps__")
    factor = ONE
    asked = "gradient_accumulation_steps" in s.receiver.attrs  # the program reads its N, and so knows of one
    if steps is None and not s.receiver.items.get("__count__") and not asked and not _accumulates(m, s.receiver):
        value = None
    else:
        value = steps_of(m, s.receiver)
    if value is not None and value.value:
        factor = Coefficient(Fraction(1) / Fraction(value.value))
        told = s.receiver.items.get("__told__")
        if isinstance(told, Lit) and not _accumulates(m, s.receiver):
            n, keys = int(value.value), sorted(value.keys)
            if all("." in key or key in _parameters(m) for key in keys):
                m.odd_window(value)  # an option; a name that is given the number one means one
            m.event("divided", m.place(s.span), s.receiver.path, n=n, keys=keys, told=told.value, where=m.where())
    loss = loss_in(m, s.args[0])
    if value is not None and s.receiver.items.get("__plain__") is not TRUE and not _undivided(m, s.receiver):
        loss = loss.map(lambda c: c, value.keys | frozenset({"accelerate"}))
    m.backward(loss, s.span, factor, "accelerator")
    return NONE


def _parameters(m: Calls) -> set[str]:
    """The names of all parameters: plain names that a caller may give another number."""
    functions = m.static.functions.values()
    return m.static.once("parameters", lambda: {q.name for same in functions for f in same for q in f.params})


def _undivided(m: Calls, accelerator: Opaque) -> bool:
    """True for an accelerator that is made here without N and never accumulates by itself: its `backward` divides by 1,
    unless `accelerate launch` was given an N.
    """
    given = accelerator.items.get("__given__")
    if not isinstance(given, Lit) or given.value or _accumulates(m, accelerator):
        return False
    return "gradient_accumulation_steps" not in accelerator.attrs and not any(
        "deepspeed" in n.lower() for n in m.static.uses
    )


def _accumulates(m: Calls, accelerator: Opaque) -> bool:
    return any("accumulate" in uses for name, uses in m.static.uses.items() if name.endswith("accelerator"))


def _prepare(m: Calls, s: Site) -> Value | None:
    out: list[Value] = []
    for value in s.args:
        if isinstance(value, Optimizer) and isinstance(s.receiver, Opaque):
            value.accelerated = s.receiver
        elif isinstance(value, Opaque) and value.kind == "scheduler" and isinstance(s.receiver, Opaque):
            value.items["__prepared__"] = s.receiver
        out.append(value)
    if s.star:
        return None
    return out[0] if len(out) == 1 else Seq(out, "tuple")


def _unwrap(m: Calls, s: Site) -> Value | None:
    return s.arg(0, "model")


def _no_sync(m: Calls, s: Site) -> Value | None:
    return Context("no_sync", s.arg(0, "model"), s.span)


def _autocast(m: Calls, s: Site) -> Value | None:
    return Context("null", None, s.span)


FUNCTIONS: dict[str, Meaning] = {
    "accelerate.Accelerator": _make,
    "accelerate.accelerator.Accelerator": _make,
    "accelerate.utils.GradientAccumulationPlugin": _plugin,
    "*.GradientAccumulationPlugin": _plugin,
    "*.Accelerator": _make,
}

METHODS: dict[tuple[str, str], Meaning] = {
    ("accelerator", "accumulate"): _accumulate,
    ("accelerator", "backward"): _backward,
    ("accelerator", "prepare"): _prepare,
    ("accelerator", "prepare_model"): _prepare,
    ("accelerator", "prepare_optimizer"): _prepare,
    ("accelerator", "prepare_scheduler"): _prepare,
    ("accelerator", "prepare_data_loader"): _prepare,
    ("accelerator", "unwrap_model"): _unwrap,
    ("accelerator", "unwrap_optimizer"): _unwrap,  # of a subclass: Accelerate itself has none
    ("accelerator", "no_sync"): _no_sync,
    ("accelerator", "autocast"): _autocast,
}
