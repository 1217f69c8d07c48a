"""Attributes, calls and actors of the stage: which real thing an unknown name stands for, and what it can do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch import nn

from galint.trace.stage import actors
from galint.trace.stage.values import Class, External, Flow, Instance, Method, NoStage, Unknown

MOST_DEPTH = 60
_GRADIENT = frozenset("zero_ mul_ div_ detach_ detach norm clone copy_ data add_ item".split())
_LIST = frozenset("append extend pop clear index copy insert remove count reverse sort".split())
_DICT = frozenset("get items keys values update pop setdefault copy clear".split())


class Members:
    """The part of the stage that knows things. `notes` collects what was assumed on the way to a backward."""

    def __init__(self, job: dict[str, Any], device: torch.device, rank: int = 0) -> None:
        self.job = job
        self.device = device
        self.known: dict[str, Any] = job["known"]
        self.values: dict[str, Any] = job["values"]
        self.settings: dict[str, Any] = job["settings"]
        self.kinds: dict[str, str] = job["kinds"]
        self.generator = torch.Generator().manual_seed(1234 + rank)
        self.cast: dict[str, Any] = {}
        """Actors by role and name, so that one name is one thing wherever it is read."""
        self.modules: dict[str, nn.Module] = {}
        self.optimizers: list[torch.optim.Optimizer] = []
        self.assumed: set[str] = set()
        self.hidden = False
        self.depth = 0
        self.backwards = 0

    # --- naming --------------------------------------------------------------------------------

    def kind(self, name: str) -> str:
        """The kind that a name's use suggests."""
        return self.kinds.get(name.rsplit(".", 1)[-1], "")

    def number(self, path: str) -> Any:
        """The number that the abstract run gave a setting, by spelling or by its last name."""
        for table in (self.values, self.known):
            if path in table:
                return table[path]
        return self.job["terminals"].get(path.rsplit(".", 1)[-1]) if path.replace(".", "").isidentifier() else None

    def free(self, name: str, hint: str) -> Any:
        """A name that nothing in the slice has bound."""
        last = hint.rsplit(".", 1)[-1]
        kinds = {"Accelerator": "accelerator", "Fabric": "fabric", "GradScaler": "scaler", "Optimizer": "optimizer"}
        kinds |= {"Module": "module", "DataLoader": "loader", "DistributedDataParallel": "wrapped"}
        kind = kinds.get(last, "" if last in {"int", "float", "str", "bool"} else self.kind(name))
        number = self.number(name) if not kind else None
        return Unknown(self, name, kind, name) if number is None else number  # type: ignore[arg-type]

    def imported(self, dotted: str) -> Any:
        """A name of another package: a library's function, or something unknown of that kind."""
        name = dotted.rsplit(".", 1)[-1]
        number = self.number(name) if name.isupper() else None
        return External(dotted) if number is None else number

    def part(self, holder: Unknown, key: str, text: str, index: Any = None) -> Any:
        """An attribute or element of something unknown, made once."""
        if key in holder.attrs:
            return holder.attrs[key]
        path = f"{holder.path}{key}" if key.startswith("[") else f"{holder.path}.{key}"
        for spelling in (path, text):
            number = self.number(spelling)
            if number is not None and not holder.data:
                return number
        name = index if isinstance(index, str) else key
        kind = "" if holder.data or not isinstance(name, str) else self.kind(name)
        made = Unknown(self, path, kind, str(name), data=holder.data)  # type: ignore[arg-type]
        made.modules, made.origin = holder.modules, holder.origin
        holder.attrs[key] = made
        return made

    # --- actors --------------------------------------------------------------------------------

    def real(self, value: Any) -> Any:
        """The real thing that an unknown name of a known kind stands for."""
        if not isinstance(value, Unknown) or not value.kind:
            return value
        if value.actor is None:
            value.actor = self._actor(value)
        return value if value.actor is None else value.actor

    def _actor(self, value: Unknown) -> Any:
        name = value.name.rsplit(".", 1)[-1]
        key = f"{value.kind}:{name}"
        if key in self.cast:
            return self.cast[key]
        made: Any = None
        match value.kind:
            case "module" | "wrapped":
                made = self.module(name)
                if value.kind == "wrapped" or name in self.job["wrapped"]:
                    made = self.wrap(made)
            case "optimizer":
                made = self.make_optimizer("SGD", self._near(name))
            case "scaler":
                made = actors.scaler(self.device, True)
            case "scheduler":
                made = actors.scheduler(self.main_optimizer())
            case "accelerator":
                made = self.accelerator(self.job["window"])
            case "fabric" | "engine":
                raise NoStage(f"`{name}` is a {value.kind}")
        if made is not None:
            self.cast[key] = made
        return made

    def module(self, name: str) -> nn.Module:
        """A tiny model; one for all names, unless several optimizers own different ones."""
        key = name if self.job["distinct"] else "model"
        if key not in self.modules:
            self.modules[key] = actors.tiny(7 + len(self.modules), self.job["norm"]).to(self.device)
        return self.modules[key]

    def main(self) -> nn.Module:
        """The model where none is named: the last one, in its wrapper when it has one."""
        if not self.modules:
            return self.module("model")
        inner = list(self.modules.values())[-1]
        return self.wrappers.get(id(inner), inner)

    @functools.cached_property
    def wrappers(self) -> dict[int, nn.Module]:
        """Inner module's id → its DDP."""
        return {}

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module in DDP; once."""
        inner = actors.bare(module)
        if id(inner) not in self.wrappers:
            self.wrappers[id(inner)] = actors.wrapped(inner, self.device)
        return self.wrappers[id(inner)]

    def _near(self, name: str) -> list[nn.Parameter]:
        """Parameters for an optimizer whose construction is not seen: those of a module named like it, or all."""
        last = name.rsplit("_", 1)[-1].lower()
        alike = [m for n, m in self.modules.items() if self.job["distinct"] and n.lower().endswith(last[-1:])]
        chosen = alike[:1] or list(self.modules.values()) or [self.module("model")]
        return [q for m in chosen for q in m.parameters()]

    def make_optimizer(self, name: str, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """A real optimizer over real parameters."""
        chosen = parameters or list(self.main().parameters())
        made = actors.optimizer(actors.family(name), chosen)
        self.optimizers.append(made)
        return made

    def main_optimizer(self) -> torch.optim.Optimizer:
        """The optimizer where none is named."""
        if not self.optimizers:
            self.cast.setdefault("optimizer:optimizer", self.make_optimizer("SGD", self._near("optimizer")))
        return self.optimizers[-1]

    def accelerator(self, steps: int) -> Any:
        """Accelerate's own Accelerator, where it is installed."""
        try:
            from accelerate import Accelerator
        except ImportError:
            raise NoStage("accelerate is not installed here") from None
        return Accelerator(gradient_accumulation_steps=steps, cpu=self.device.type == "cpu")

    # --- forward and backward ------------------------------------------------------------------

    def forward(self, module: nn.Module, flows: list[Flow] | None = None) -> Flow:
        """Run a tiny model on a fresh micro-batch of random numbers."""
        x = torch.randn(actors.BATCH, actors.FEATURES, generator=self.generator).to(self.device)
        y = torch.randn(actors.BATCH, actors.CLASSES, generator=self.generator).to(self.device)
        prediction = module(x)
        for flow in flows or []:
            if flow.prediction is not None:
                prediction = prediction + flow.prediction
        return Flow(self, prediction, y)  # type: ignore[arg-type]

    def loss_of(self, value: Any) -> Flow:
        """The loss that an unknown value stands for: a forward of the model that went into it."""
        if isinstance(value, Flow):
            return value
        if isinstance(value, Unknown) and isinstance(value.actor, Flow):
            return value.actor
        modules = value.modules if isinstance(value, Unknown) else []
        made = self.forward(modules[0] if modules else self.main())
        if isinstance(value, Unknown):
            value.actor = made
        return made

    def backward(self, value: Any, gradient: Any = None) -> None:
        """A real backward of a loss."""
        flow = self.loss_of(value)
        self.assumed |= flow.assumed
        self.hidden = self.hidden or not flow.visible
        self.backwards += 1
        # Two losses of one output share its graph, which the user's own losses need not.
        root = flow.loss
        if isinstance(gradient, int | float):
            root.backward(torch.full_like(root, float(gradient)), retain_graph=True)
        else:
            if gradient is not None:
                self.assumed.add("gradient=")
            root.backward(retain_graph=True)

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
        if isinstance(holder, list) and name in _LIST:
            return Method(getattr(holder, name))
        if isinstance(holder, dict) and name in _DICT:
            return Method(getattr(holder, name))
        if isinstance(holder, torch.Tensor):
            return self._of_tensor(holder, name)
        found = self._of_torch(holder, name)
        if found is not None:
            return found
        if isinstance(holder, Unknown):
            if name == "backward" and not holder.kind:
                return Method(lambda gradient=None, **_: self.backward(holder, gradient))
            return self.part(holder, name, f"{holder.path}.{name}")
        if isinstance(holder, int | float) and name in {"item", "float", "int", "long"}:
            return Method(lambda *_: holder)
        if isinstance(holder, int | float) and name in {"to", "cuda", "cpu", "mean", "detach", "clone", "requires_grad_"}:
            return Method(lambda *_, **__: holder)
        return Unknown(self, f"{name}")  # type: ignore[arg-type]

    def set_attr(self, holder: Any, name: str, value: Any) -> None:
        """`holder.name = value`."""
        holder = self.real(holder)
        if isinstance(holder, Instance | Unknown):
            holder.attrs[name] = self.named(value, name)  # type: ignore[attr-defined]
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
        return Unknown(self, f"{holder.name}.{name}") if number is None else number  # type: ignore[arg-type]

    def _of_flow(self, flow: Flow, name: str) -> Any:
        if name == "backward":
            return Method(lambda gradient=None, **_: self.backward(flow, gradient))
        if name in {"item", "detach", "data", "numpy", "tolist", "size", "shape", "argmax", "max", "min", "ndim", "dtype", "device", "numel", "dim"}:
            return Unknown(self, f"loss.{name}", data=True)  # type: ignore[arg-type]
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
        return flow

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
        return Unknown(self, name, data=True)  # type: ignore[arg-type]

    def _of_torch(self, holder: Any, name: str) -> Any:
        """What real modules, optimizers, scalers, schedulers and Accelerate's things can be asked."""
        from galint.trace.stage.things import member

        return member(self, holder, name)

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
            return self.apply(function, *args, **kwargs)
        if isinstance(function, Method):
            return function.run(*args, **kwargs)
        if isinstance(function, Class):
            return self.instantiate(function, kwargs, args, text)
        if isinstance(function, External):
            from galint.trace.stage.library import external

            return external(self, function.name, text, args, kwargs)
        if isinstance(function, nn.Module):
            return self.forward(function, self.flows_in((args, kwargs)))
        if isinstance(function, Instance):
            return self._call_instance(function, text, args, kwargs)
        if isinstance(function, Flow):
            return function
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
            return self.passed_on(flows, origin.startswith("torch.nn."))
        for value in (*args, *kwargs.values()):
            if isinstance(value, FunctionType) and self.job["callbacks"]:
                raise NoStage(f"`{text}` calls back into the loop")
        number = self.number(text)
        if number is not None:
            return number
        made = Unknown(self, text, data=isinstance(function, Unknown) and function.data)  # type: ignore[arg-type]
        made.modules = [m for v in (*args, *kwargs.values()) for m in self.modules_in(v)]
        if isinstance(function, Unknown):
            made.modules += function.modules
        made.data = made.data or any(isinstance(v, Unknown) and v.data for v in (*args, *kwargs.values()))
        return made

    def passed_on(self, flows: list[Flow], visible: bool) -> Flow:
        """The result of a function of losses or outputs: a loss function's mean over the micro-batch."""
        first = flows[0]
        assumed = frozenset().union(*(f.assumed for f in flows))
        outputs = [f for f in flows if f.prediction is not None]
        if outputs:
            return Flow(self, outputs[0].prediction, outputs[0].target, visible=visible, assumed=assumed)  # type: ignore[arg-type]
        return Flow(self, tensor=first.loss, visible=False, assumed=assumed)  # type: ignore[arg-type]

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
                return Unknown(self, text or cls.name, "criterion")  # type: ignore[arg-type]
            return self.module(cls.name)
        made = Instance(cls)
        if foreign & {"Module", "LightningModule", "PreTrainedModel"}:
            made.actor = self.module(cls.name)
        if cls.data:
            names = list(cls.fields)
            made.attrs.update(dict(zip(names, args, strict=False)))
            made.attrs.update(kwargs)
        elif cls.find("__init__") is not None:
            function, _ = cls.find("__init__")  # type: ignore[misc]
            self.apply(function, made, *args, **kwargs)
        return made


