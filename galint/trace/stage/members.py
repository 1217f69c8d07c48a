"""Attributes, calls and classes of the stage: what the things on it can be asked to do."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from galint.trace.stage import actors
from galint.trace.stage.cast import Cast
from galint.trace.stage.values import FINITE, Class, External, Flow, Instance, Method, NoStage, Unknown

if TYPE_CHECKING:
    from galint.trace.stage.world import World

MOST_DEPTH = 60
_GRADIENT = frozenset(["zero_", "mul_", "div_", "detach_", "detach", "norm", "clone", "copy_", "data", "add_", "item"])
_SOURCES = (range, enumerate, zip, torch.utils.data.DataLoader)
_HELPER = re.compile(r"scaler|loss_scal|grad_scal", re.I)
_LAUNCHERS = ["spawn", "start_processes", "launch", "notebook_launcher", "debug_launcher", "Process", "Fire", "run"]
"""Functions that call the function they are given, with `args` (spawn with the rank before them)."""
_LIST = frozenset(["append", "extend", "pop", "clear", "index", "copy", "insert", "remove", "count", "reverse", "sort"])
_DICT = frozenset(["get", "items", "keys", "values", "update", "pop", "setdefault", "copy", "clear"])


class Members(Cast):
    """The part of the stage that reads attributes and calls things."""

    # --- attributes ----------------------------------------------------------------------------

    def attr(self, holder: Any, name: str) -> Any:
        """`holder.name`."""
        holder = self.real(holder)
        if isinstance(holder, Instance):
            return self._of_instance(holder, name)
        if isinstance(holder, Flow):
            return self._of_flow(holder, name)
        if isinstance(holder, External):
            return self.imported(f"{holder.name}.{name}")
        if isinstance(holder, Class):
            return self._of_class(holder, name)
        if (isinstance(holder, list) and name in _LIST) or (isinstance(holder, dict) and name in _DICT):
            return Method(functools.partial(self._native, getattr(holder, name)))
        if isinstance(holder, torch.Tensor):
            return self._of_tensor(holder, name)
        found = self._of_torch(holder, name)
        if found is not None:
            return found
        if isinstance(holder, Unknown):
            if name == "backward" and not holder.kind:
                return Method(functools.partial(self._backward_of, holder))
            if name == "get":
                return Method(functools.partial(self._got, holder))
            return self.part(holder, name, f"{holder.path}.{name}")
        if isinstance(holder, int | float) and name in {"item", "float", "int", "long"}:
            return Method(lambda *_: holder)
        if isinstance(holder, int | float) and name in {
            "to",
            "cuda",
            "cpu",
            "mean",
            "detach",
            "clone",
            "requires_grad_",
        }:
            return Method(lambda *_, **__: holder)
        return Unknown(self, f"{name}")

    def _backward_of(self, holder: Unknown, *args: Any, **kwargs: Any) -> None:
        """`loss.backward()`, or `engine.backward(loss, optimizer)` of a library that is not known."""
        loss = next((v for v in (*args[:1], kwargs.get("loss")) if isinstance(v, Flow)), None)
        if loss is None:
            self.backward(holder, args[0] if args else kwargs.get("gradient"))
        else:
            self.backward(loss)

    def _got(self, holder: Unknown, key: Any = None, *default: Any) -> Any:
        """`settings.get("name", default)` of an unknown mapping."""
        found = self.part(holder, f"[{key!r}]", f"{holder.path}.get({key!r})", key)
        if isinstance(found, Unknown) and default and isinstance(default[0], int | float) and isinstance(key, str):
            return cast("World", self).setting(key, default[0])
        return found

    def _native(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A method of a list or dict; what is missing there is unknown."""
        try:
            return method(*args, **kwargs)
        except (LookupError, TypeError, ValueError):
            return Unknown(self, f"{method.__name__}(…)")

    def set_attr(self, holder: Any, name: str, value: Any) -> None:
        """`holder.name = value`."""
        holder = self.real(holder)
        if isinstance(holder, Instance | Unknown):
            number = self.number(f"{holder.path}.{name}") if isinstance(value, Unknown) and not value.data else None
            holder.attrs[name] = cast("World", self).named(value, name) if number is None else number
        elif isinstance(holder, Class):
            holder.fields[name] = value
        elif isinstance(holder, torch.Tensor) and name == "grad":
            holder.grad = value if isinstance(value, torch.Tensor) else None
        elif isinstance(holder, nn.parallel.DistributedDataParallel) and name == "require_backward_grad_sync":
            holder.require_backward_grad_sync = bool(value)

    def _of_instance(self, holder: Instance, name: str) -> Any:
        if name in holder.attrs:
            return holder.attrs[name]
        cls = holder.cls
        method = cls.find(name) if cls is not None else None
        if method is not None:
            function, kind = method
            if kind == "property":
                return self.call(function, name, holder)
            if kind == "staticmethod":
                return function
            return Method(functools.partial(self.apply, function, cls if kind == "classmethod" else holder))
        if cls is not None and cls.has(name):
            return cls.field(name)
        if name == "__dict__":
            return holder.attrs
        if holder.actor is not None:
            found = self._of_torch(holder.actor, name)
            if found is not None:
                return found
        number = self.number(f"{holder.path}.{name}")
        made = self.free(name, "") if number is None else number
        if isinstance(made, Unknown):
            made.path = f"{holder.path}.{name}"
        holder.attrs[name] = made
        return made

    def _of_class(self, holder: Class, name: str) -> Any:
        method = holder.find(name)
        if method is not None:
            function, kind = method
            return Method(functools.partial(self.apply, function, holder)) if kind == "classmethod" else function
        if holder.has(name):
            return holder.field(name)
        number = self.number(f"{holder.name}.{name}")
        return Unknown(self, f"{holder.name}.{name}") if number is None else number

    def _of_flow(self, flow: Flow, name: str) -> Any:
        if name == "backward":
            return Method(lambda gradient=None, **_: self.backward(flow, gradient))
        if name in {
            "item",
            "detach",
            "data",
            "numpy",
            "tolist",
            "size",
            "shape",
            "argmax",
            "max",
            "min",
            "ndim",
            "dtype",
            "device",
            "numel",
            "dim",
        }:
            return Unknown(self, f"loss.{name}", data=True)
        if name in FINITE:
            answer = Unknown(self, f"loss.{name}()", data=True)
            answer.fact = FINITE[name]
            return Method(lambda *_: answer)
        if name in {"div", "div_", "mul", "mul_", "add", "add_", "sub"}:
            op = {"div": "/", "mul": "*", "add": "+", "sub": "-"}[name.rstrip("_")]

            def arithmetic(other: Any, **_: Any) -> Any:
                out = flow.operate(op, other, f"loss.{name}(…)")
                if name.endswith("_") and isinstance(out, Flow):
                    flow.tensor, flow.assumed = out.loss, out.assumed
                return out

            return Method(arithmetic)
        if name == "items":
            return Method(lambda: [("loss", flow)])
        if name == "values":
            return Method(lambda: flow.parts or [flow])
        if name in {"mean", "sum"} and flow.parts:
            return Method(lambda *_, **__: self.joined(flow, name))
        if name in {"mean", "sum"} and flow.prediction is not None and flow.tensor is None:
            return Method(functools.partial(self._reduced, flow, name))
        return flow

    def _reduced(self, flow: Flow, name: str, *_: Any, **options: Any) -> Flow:
        """`.mean()` of an output makes a mean loss in plain sight; a sum or a part of it is not one."""
        plain = name == "mean" and not options and not _
        assumed = flow.assumed | (frozenset() if name == "mean" else frozenset({".sum()"}))
        return Flow(self, flow.prediction, flow.target, visible=plain or flow.visible, assumed=assumed)

    def joined(self, flow: Flow, name: str) -> Flow:
        """The sum or mean of stacked losses."""
        parts = flow.parts or [flow]
        total = parts[0].loss
        for part in parts[1:]:
            total = total + part.loss
        return parts[0].become(total / len(parts) if name == "mean" else total, *parts[1:])

    def _of_tensor(self, holder: torch.Tensor, name: str) -> Any:
        if name == "grad":
            return holder.grad
        if name in {"requires_grad"}:
            return holder.requires_grad
        if name in _GRADIENT and name not in {"data"}:
            method = getattr(holder, name)

            def change(*args: Any, **kwargs: Any) -> Any:
                with torch.no_grad():
                    return method(*[a for a in args if isinstance(a, int | float | torch.Tensor)])

            return Method(change)
        if name == "data":
            return holder.data
        return Unknown(self, name, data=True)

    def _of_torch(self, holder: Any, name: str) -> Any:
        """What real modules, optimizers, scalers, schedulers and Accelerate's things can be asked."""
        from galint.trace.stage.things import member

        return member(cast("World", self), holder, name)

    # --- calls ---------------------------------------------------------------------------------

    def call(self, function: Any, text: str, /, *args: Any, **kwargs: Any) -> Any:
        """`function(*args, **kwargs)`."""
        function = self.real(function)
        self.depth += 1
        try:
            if self.depth > MOST_DEPTH:
                raise NoStage("the calls nest too deeply")
            return self._call(function, text, args, kwargs)
        finally:
            self.depth -= 1

    def _call(self, function: Any, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, FunctionType):
            with self.inside(function) as endless:
                return (
                    self.unknown_call(function, text, args, kwargs)
                    if endless
                    else self.apply(function, *args, **kwargs)
                )
        if isinstance(function, Method):
            return function.run(*args, **kwargs)
        if isinstance(function, Class):
            return self.instantiate(function, kwargs, args, text)
        if isinstance(function, External):
            from galint.trace.stage.library import external

            return external(cast("World", self), function.name, text, args, kwargs)
        if isinstance(function, nn.Module):
            return self.forward(function, self.flows_in((args, kwargs)))
        if isinstance(function, Instance):
            return self._call_instance(function, text, args, kwargs)
        if isinstance(function, Flow):
            return function
        if isinstance(function, torch.amp.GradScaler) or (
            isinstance(function, Unknown) and _HELPER.search(function.path)
        ):
            from galint.trace.stage.things import stepped_by

            if stepped_by(cast("World", self), function, args, kwargs):
                return Unknown(self, text, data=True)
        return self.unknown_call(function, text, args, kwargs)

    def apply(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of the slice; arguments that do not fit are left out."""
        code = getattr(function, "__code__", None)
        if code is None:
            return function(*args, **kwargs)
        if not code.co_flags & 0x04:
            args = args[: code.co_argcount]
        if not code.co_flags & 0x08:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            taken = names[: min(len(args), code.co_argcount)]
            kwargs = {k: v for k, v in kwargs.items() if k in names and k not in taken}
        return function(*args, **kwargs)

    def _call_instance(self, target: Instance, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        cls = target.cls
        for name in ("__call__", "forward"):
            if cls is not None and cls.find(name) is not None and target.actor is None:
                return self._call(self.attr(target, name), text, args, kwargs)
        if target.actor is not None:
            return self.forward(target.actor, self.flows_in((args, kwargs)))
        return self.unknown_call(target, text, args, kwargs)

    def unknown_call(self, function: Any, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of something outside the skeleton: it passes losses on and knows which models went in."""
        origin = function.origin if isinstance(function, Unknown) else ""
        flows = self.flows_in((args, kwargs))
        if flows:
            path = function.path if isinstance(function, Unknown) else text
            return self.reduced(self.passed_on(flows, origin.startswith("torch.nn.")), path)
        for value in (*args, *kwargs.values()):
            if isinstance(value, FunctionType) and value.__name__ in self.job["callbacks"]:
                return self._launched(value, text, args, kwargs)
        if len(args) == 1 and isinstance(args[0], Instance) and args[0].cls is None and text not in self.spellings:
            return args[0]  # `args = check(args)`
        number = self.number(text)
        if number is None and isinstance(function, Unknown):
            number = self.number(f"{function.path}({', '.join(map(repr, args))})")
        if number is not None:
            return number
        made = Unknown(self, text, data=isinstance(function, Unknown) and function.data)
        made.modules = [m for v in (*args, *kwargs.values()) for m in self.modules_in(v)]
        if isinstance(function, Unknown):
            made.modules += function.modules
            made.fact = function.fact
        made.source = next(
            (a for a in args if isinstance(a, _SOURCES) or (isinstance(a, Unknown) and a.kind in {"loader", "range"})),
            None,
        )
        made.data = made.data or any(isinstance(v, Unknown) and v.data for v in (*args, *kwargs.values()))
        return made

    def _launched(self, target: FunctionType, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A launcher runs the function that it is given, once a process: here as the first of them."""
        launcher = text.split("(", 1)[0].rsplit(".", 1)[-1]
        if launcher not in _LAUNCHERS:
            raise NoStage(f"`{text}` calls back into the loop")
        given = kwargs.get("args", next((a for a in args if isinstance(a, tuple | list)), ()))
        rank = [0] if launcher in {"spawn", "start_processes"} else []
        return self.call(target, text, *rank, *(given if isinstance(given, tuple | list) else ()))

    def reduced(self, flow: Flow, text: str) -> Flow:
        """A loss function that is told to sum, or not to reduce, is no mean."""
        if "reduction='sum'" in text or "reduction='none'" in text:
            flow.assumed = flow.assumed | {text}
        return flow

    def passed_on(self, flows: list[Flow], visible: bool) -> Flow:
        """The result of a function of losses or outputs: a loss function's mean over the micro-batch."""
        first = flows[0]
        flows = [f.fresh() for f in flows]
        assumed = frozenset().union(*(f.assumed for f in flows))
        outputs = list({id(f.prediction): f for f in flows if f.prediction is not None}.values())
        if outputs:
            predictions = [f.prediction for f in outputs if f.prediction is not None]
            prediction = functools.reduce(lambda a, b: a + b, predictions)
            made = Flow(self, prediction, outputs[0].target, visible=visible, assumed=assumed)
            made.module, made.stamp = (outputs[0].module if len(outputs) == 1 else None), outputs[0].stamp
            return made
        return Flow(self, tensor=first.loss, visible=False, assumed=assumed)

    def flows_in(self, value: Any, depth: int = 0) -> list[Flow]:
        """The losses and outputs inside arguments."""
        if isinstance(value, Flow):
            return value.parts or [value] if value.parts else [value]
        if isinstance(value, Unknown) and isinstance(value.actor, Flow):
            return [value.actor]
        if depth < 4 and isinstance(value, list | tuple):
            return [f for v in value for f in self.flows_in(v, depth + 1)]
        if depth < 4 and isinstance(value, dict):
            return [f for v in value.values() for f in self.flows_in(v, depth + 1)]
        return []

    def modules_in(self, value: Any) -> list[nn.Module]:
        """The models inside an argument."""
        if isinstance(value, Unknown) and value.kind in {"module", "wrapped"}:
            value = self.real(value)
        if isinstance(value, Unknown):
            return list(value.modules)
        if isinstance(value, Instance) and value.actor is not None:
            return [value.actor]
        return [value] if isinstance(value, nn.Module) else []

    # --- classes -------------------------------------------------------------------------------

    def make_class(
        self, name: str, bases: list[Any], methods: list[Any], fields: list[Any], data: bool, trains: bool
    ) -> Class:
        """A class statement of the file."""
        return Class(name, bases, {n: (f, k) for n, f, k in methods}, dict(fields), data, trains)

    def instantiate(self, cls: Class, kwargs: dict[str, Any], args: tuple[Any, ...] = (), text: str = "") -> Any:
        """An object of a class: a tiny model for networks, a namespace for everything else."""
        foreign = set(cls.foreign)
        if not cls.trains and ("Module" in foreign or (cls.find("forward") and not cls.find("__init__"))):
            if foreign & {"_Loss"} or cls.name.lower().endswith(("loss", "criterion")):
                return Unknown(self, text or cls.name, "criterion")
            return self.module(cls.name)
        if actors.steps_itself(cls):
            return self.make_optimizer(cls.name, actors.parameters_in([*args[:1], kwargs.get("params")]))
        made = Instance(cls)
        if foreign & {"Module", "LightningModule", "PreTrainedModel"}:
            made.actor = self.module(cls.name)
        if cls.data:
            names = list(cls.fields)
            made.attrs.update(dict(zip(names, args, strict=False)))
            made.attrs.update(kwargs)
        elif (start := cls.find("__init__")) is not None:
            self.apply(start[0], made, *args, **kwargs)
        return made
