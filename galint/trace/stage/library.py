"""Functions of other packages and Python's own, as far as a gradient skeleton needs them."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from galint.trace.losses import FUNCTIONS
from galint.trace.stage import actors
from galint.trace.stage.things import Fabric
from galint.trace.stage.values import FINITE, Class, External, Flow, Instance, Method, NoStage, Numbered, Unknown

if TYPE_CHECKING:
    from galint.trace.stage.world import World

_WRAPS = frozenset({"DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP"})
_STAYS = frozenset(
    {"DataParallel", "compile", "convert_sync_batchnorm", "convert", "get_peft_model", "deepcopy", "cast"}
)
_BARS = frozenset({"tqdm", "track", "tqdm_notebook", "progress_bar", "Progress"})
_CREATES = frozenset({"tensor", "as_tensor", "zeros", "FloatTensor", "ones", "full"})
_MATH: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "prod": math.prod,
}


def external(world: World, dotted: str, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a library's function."""
    last = dotted.rsplit(".", 1)[-1]
    root = dotted.split(".", 1)[0]
    args = tuple(world.real(a) for a in args)
    kwargs = {k: world.real(v) for k, v in kwargs.items()}
    special = _SPECIAL.get(last)
    if special is not None:
        return special(world, text, args, kwargs)
    if last in {"GradScaler", "ShardedGradScaler"}:
        enabled = kwargs.get("enabled", True)
        if isinstance(enabled, Unknown):
            enabled = world.decide(enabled, enabled.path, None, True)
        return actors.scaler(world.device, bool(enabled))
    if last == "Fabric":
        return Fabric()
    if root in {"deepspeed", "lightning", "pytorch_lightning"} and last in {"initialize", "Trainer"}:
        raise NoStage(f"`{dotted}` has no tiny stand-in")
    if actors.is_scheduler(dotted):
        owner = next((a for a in (*args, *kwargs.values()) if isinstance(a, torch.optim.Optimizer)), None)
        return actors.scheduler(owner or world.main_optimizer())
    if actors.is_optimizer(dotted):
        return world.make_optimizer(last, _owned(world, (*args[:1], kwargs.get("params"))))
    if last in _WRAPS:
        inner = args[0] if args else kwargs.get("module")
        return world.wrap(inner if isinstance(inner, nn.Module) else world.main()) if world.job["ddp"] else inner
    if last in _STAYS and args:
        return args[0]
    if last in _BARS:
        return args[0] if args else kwargs.get("iterable", Unknown(world, text))
    if last in _CREATES and args and isinstance(args[0], int | float) and root == "torch":
        return float(args[0]) if last in {"tensor", "as_tensor"} else 0.0
    if last in _CREATES and args and isinstance(args[0], list) and len(args[0]) == 1:
        return args[0][0]
    if root in {"math", "np", "numpy"} and last in _MATH and args and all(isinstance(a, int | float) for a in args):
        return _MATH[last](*args)
    flows = world.flows_in((args, kwargs))
    if last == "DataLoader":
        return Unknown(
            world, text, "loader"
        )  # whatever it is made of: a name may have taken its data for a model's output
    if flows:
        stacked = last in {"stack", "cat", "mean", "sum"} and root == "torch"
        if stacked:
            joined = Flow(world, tensor=flows[0].loss, visible=all(f.visible for f in flows), parts=flows)
            return world.joined(joined, last) if last in {"mean", "sum"} else joined
        return world.reduced(world.passed_on(flows, root in {"torch", "F", "functional"} and last in FUNCTIONS), text)
    made = world.unknown_call(External(dotted), text, args, kwargs)
    if isinstance(made, Unknown):
        made.origin = dotted
        made.data = made.data or (
            root in {"torch", "np", "numpy", "random"}
            and last not in {"load", "device"}
            and not dotted.startswith("torch.nn")
        )
        if dotted.startswith("torch.nn.") and not last.endswith("Loss") and not made.kind and last[:1].isupper():
            return world.module(text)
        if dotted.startswith("torch.nn.") and last.endswith("Loss"):
            made.kind = "criterion"
    return made


def _owned(world: World, given: tuple[Any, ...]) -> list[nn.Parameter]:
    """The parameters that an optimizer is made over; those of the models behind an unknown list of groups."""
    found = [q for a in given for q in actors.parameters_in(a)]
    return found or [q for a in given if isinstance(a, Unknown) for m in a.modules for q in m.parameters()]


# --- special functions -------------------------------------------------------------------------


def _clip(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = [q for a in (*args[:1], kwargs.get("parameters")) for q in actors.parameters_in(a)] or list(
        world.main().parameters()
    )
    limit = args[1] if len(args) > 1 else next((v for k, v in kwargs.items() if k in {"max_norm", "clip_value"}), 1.0)
    limit = float(limit) if isinstance(limit, int | float) else 1.0
    if "clip_grad_value" in text:
        return torch.nn.utils.clip_grad_value_(found, limit)
    torch.nn.utils.clip_grad_norm_(found, limit)
    return Unknown(world, text, data=True)


def _autograd(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "autograd" not in text:
        return world.unknown_call(External("backward"), text, args, kwargs)
    losses = args[0] if args else kwargs.get("tensors")
    weights = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
    losses = list(losses) if isinstance(losses, list | tuple) else [losses]
    weights = list(weights) if isinstance(weights, list | tuple) else [weights] * len(losses)
    for loss, weight in zip(losses, weights, strict=False):
        world.backward(loss, weight)
    return None


def _accelerator(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    steps = kwargs.get("gradient_accumulation_steps", 1)
    plugin = kwargs.get("gradient_accumulation_plugin")
    if isinstance(plugin, Unknown):
        raise NoStage("the accumulation plugin of Accelerate")
    return world.accelerator(steps if isinstance(steps, int) else world.job["window"])


def _averaged(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    module = args[0] if args and isinstance(args[0], nn.Module) else world.main()
    return torch.optim.swa_utils.AveragedModel(actors.bare(module))


def _parser(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return Parser(world).facade


def _null(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return contextlib.nullcontext(args[0] if args else None)


def _no_grad(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return torch.no_grad()


def _stack(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return contextlib.ExitStack()


def _partial(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    head, rest = args[0], args[1:]
    return Method(lambda *more, **named: world.call(head, text, *rest, *more, **{**kwargs, **named}))


def _shard(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else None


def _finite(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    answer = Unknown(world, text, data=True)
    answer.fact = next((v for k, v in FINITE.items() if f"{k}(" in text), None)
    return answer


def _range(world: World, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return builtin(world, "range")(*args)


_SPECIAL: dict[str, Callable[..., Any]] = {
    "clip_grad_norm_": _clip,
    "clip_grad_value_": _clip,
    "clip_grad_norm": _clip,
    "backward": _autograd,
    "Accelerator": _accelerator,
    "AveragedModel": _averaged,
    "ArgumentParser": _parser,
    "nullcontext": _null,
    "suppress": _null,
    "autocast": _null,
    "no_grad": _no_grad,
    "inference_mode": _no_grad,
    "ExitStack": _stack,
    "partial": _partial,
    "fully_shard": _shard,
    "trange": _range,
    **dict.fromkeys(FINITE, _finite),
    "cycle": lambda w, t, a, k: itertools.cycle(builtin(w, "iter")(a[0])),
    "chain": lambda w, t, a, k: itertools.chain(*[builtin(w, "iter")(v) for v in a]),
    "islice": lambda w, t, a, k: itertools.islice(
        builtin(w, "iter")(a[0]), *[v if isinstance(v, int) else None for v in a[1:]]
    ),
    "count": lambda w, t, a, k: itertools.count(*[v for v in a if isinstance(v, int)]),
    "zip_longest": lambda w, t, a, k: builtin(w, "zip")(*a),
    "SimpleNamespace": lambda w, t, a, k: _namespace(w, k),
    "Namespace": lambda w, t, a, k: _namespace(w, k),
    "EasyDict": lambda w, t, a, k: _namespace(w, a[0] if a and isinstance(a[0], dict) else k),
}


def _namespace(world: World, fields: dict[str, Any]) -> Instance:
    made = Instance(None, "args")
    made.attrs.update({k: world.setting(k, v) for k, v in fields.items()})
    return made


class Parser:
    """An argument parser: its defaults are settings."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.found = Instance(None, "args")
        self.facade = Instance(None, "parser")
        again = Method(lambda *_, **__: self.facade)
        self.facade.attrs.update(
            add_argument=Method(self.add),
            add_argument_group=again,
            add_mutually_exclusive_group=again,
            add_subparsers=again,
            add_parser=again,
            set_defaults=Method(lambda **k: self.found.attrs.update(k)),
            parse_args=Method(lambda *_, **__: self.found),
            parse_known_args=Method(lambda *_, **__: (self.found, [])),
        )

    def add(self, *flags: Any, **options: Any) -> None:
        """`add_argument`: a number or a text is a default; a switch is the abstract run's choice."""
        names = [f for f in flags if isinstance(f, str)]
        name = options.get("dest") or next((f for f in names if f.startswith("--")), names[0] if names else "")
        if not isinstance(name, str) or not name:
            return
        name = name.lstrip("-").replace("-", "_")
        default = options.get("default")
        path = f"args.{name}"
        tables = (self.world.values, self.world.known, self.world.job["terminals"])
        number = next((t[k] for t in tables for k in (path, name) if k in t), None)
        if number is not None:
            self.found.attrs[name] = number
        elif isinstance(default, int | float | str) and not isinstance(default, bool) and not self.world.open(path):
            self.found.attrs[name] = self.world.setting(name, default)
        elif name in self.world.settings and default is not None and not isinstance(default, bool):
            self.found.attrs[name] = self.world.settings[name]
        else:
            self.found.attrs[name] = Unknown(self.world, path)


# --- Python's own ------------------------------------------------------------------------------

_PURE: dict[str, Callable[..., Any]] = {
    "abs": abs, "bool": bool, "dict": dict, "divmod": divmod, "float": float, "int": int, "list": list, "max": max,
    "min": min, "pow": pow, "reversed": reversed, "round": round, "set": list, "sorted": sorted, "str": str, "tuple": tuple,
    "any": any, "all": all, "sum": sum,
}  # fmt: skip


def builtin(world: World, name: str) -> Callable[..., Any]:
    """Python's own function by that name, over the stage's values."""
    elements = _iterable(world)

    def pure(*args: Any, **kwargs: Any) -> Any:
        if name in {"int", "float", "bool", "round", "abs"} and args and isinstance(args[0], Unknown | Flow):
            return args[0] if name != "bool" or not isinstance(args[0], Unknown) else bool(args[0])
        known = [a for a in args if not isinstance(a, Unknown)]
        if name in {"max", "min"} and len(args) > 1 and len(known) < len(args):
            numbers = [a for a in known if isinstance(a, int | float)]
            return (
                next((a for a in args if isinstance(a, Unknown)), None)
                if not numbers or max(numbers) <= 1
                else numbers[0]
            )
        if name in {"list", "tuple", "sum", "sorted", "reversed", "any", "all", "max", "min", "set"} and args:
            args = (elements(args[0]), *args[1:]) if len(args) == 1 or name in {"sum", "sorted"} else args
        kwargs.pop("key", None)
        try:
            return _PURE[name](*args, **kwargs)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return Unknown(world, f"{name}(…)")

    def numbers(*args: Any) -> Any:
        unknown = next((a for a in args if not isinstance(a, int | float)), None)
        if unknown is not None:
            return Unknown(world, f"range({getattr(unknown, 'path', '')})", "range")
        return range(*[int(a) for a in args])

    def length(value: Any) -> Any:
        value = world.real(value) if not isinstance(value, Unknown) else value
        if isinstance(value, Unknown):
            number = world.number(f"len({value.path})")
            if number is None and value.kind == "loader":
                number = world.job["length"]
            return number if number is not None else Unknown(world, f"len({value.path})", data=value.data)
        if isinstance(value, Instance):
            return world.number(f"len({value.path})") or world.job["length"]
        try:
            return len(value)
        except TypeError:
            return Unknown(world, "len(…)")

    def following(source: Any, *default: Any) -> Any:
        if not hasattr(source, "__next__"):
            return Unknown(world, "batch", data=True)
        return world.batch(next(source, *default))

    def named(holder: Any, key: Any, *default: Any) -> Any:
        if not isinstance(key, str):
            return Unknown(world, "getattr(…)")
        value = world.attr(holder, key)
        if (
            default
            and isinstance(value, Unknown)
            and not value.kind
            and isinstance(default[0], int | float)
            and not isinstance(default[0], bool)
        ):
            return world.setting(key, default[0])
        return value

    def is_a(value: Any, kinds: Any) -> Any:
        names = [_type_name(k) for k in (kinds if isinstance(kinds, tuple) else (kinds,))]
        if isinstance(value, Flow) and all(names):
            return any(n.endswith("Tensor") for n in names)
        plain = {"int": int, "float": float, "str": str, "list": list, "tuple": tuple, "dict": dict, "bool": bool}
        if isinstance(value, int | float | str | list | tuple | dict) and all(n in plain for n in names):
            return isinstance(value, tuple(plain[n] for n in names))
        shown = getattr(value, "path", type(value).__name__)
        return Unknown(
            world, f"isinstance({shown}, {', '.join(names)})", data=isinstance(value, Unknown) and value.data
        )

    table: dict[str, Callable[..., Any]] = {
        "range": numbers,
        "isinstance": is_a,
        "len": length,
        "enumerate": lambda iterable=(), start=0: Numbered(elements(iterable), start if isinstance(start, int) else 0),
        "zip": lambda *vs, **_: zip(*[elements(v) for v in vs], strict=False),
        "iter": lambda v, *_: iter(elements(v)),
        "next": following,
        "map": lambda f, *vs: (world.call(f, "map", *v) for v in zip(*[elements(v) for v in vs], strict=False)),
        "filter": lambda f, v: (e for e in elements(v) if bool(world.call(f, "filter", e))),
        "getattr": named,
        "setattr": lambda holder, key, value: world.set_attr(holder, key, value) if isinstance(key, str) else None,
        "print": lambda *_, **__: None,
    }
    return table.get(name, pure)


def _type_name(kind: Any) -> str:
    """The last name of a type, as far as it is known."""
    if isinstance(kind, Method | Class):
        return kind.name
    return kind.name.rsplit(".", 1)[-1] if isinstance(kind, External) else ""


def _iterable(world: World) -> Callable[[Any], Any]:
    def iterable(value: Any) -> Any:
        if isinstance(value, Unknown) and value.kind not in {"loader", ""}:
            value = world.real(value)
        if isinstance(value, Unknown):
            return world.elements(value, "length")
        if isinstance(value, Instance):
            return world.of_instance(value, "length", (0, 0))
        if isinstance(value, External | Class | Method | nn.Module | int | float | None):
            return [Unknown(world, "element", data=True)]
        return value

    return iterable


BUILTINS = frozenset(_PURE) | {
    "range", "len", "isinstance", "enumerate", "zip", "iter", "next", "map", "filter", "getattr", "setattr", "print",
}  # fmt: skip


def names(world: World, wanted: set[str]) -> dict[str, Any]:
    """The globals of a slice: every name it reads, Python's own where the file does not bind them."""
    out: dict[str, Any] = {"__builtins__": {}, "__name__": "__main__"}
    for name in wanted:
        if name in BUILTINS:
            out[name] = Method(builtin(world, name), name)
        elif name == "torch" or name in {"nn", "F", "math", "itertools", "functools", "contextlib"}:
            out[name] = External({"nn": "torch.nn", "F": "torch.nn.functional"}.get(name, name))
        elif name not in out:
            out[name] = world.free(name, "")
    return out
