"""Who plays on the stage: which real thing an unknown name stands for, forward passes and backwards."""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import nn

from galint.trace.stage import actors
from galint.trace.stage.expressions import composed
from galint.trace.stage.values import External, Flow, NoStage, StopStage, Unknown

_KEY = re.compile(r"\[['\"](\w+)['\"]\]$")


MOST_RECURSION = 4
"""How often a function that trains nothing may be inside itself."""


class Cast:
    """The part of the stage that knows names and actors. `assumed` collects what was taken for granted before a backward."""

    def __init__(self, job: dict[str, Any], device: torch.device, rank: int = 0) -> None:
        self.job = job
        self.device = device
        self.known: dict[str, Any] = job["known"]
        self.values: dict[str, Any] = job["values"]
        self.settings: dict[str, Any] = job["settings"]
        self.kinds: dict[str, str] = job["kinds"]
        keys = [*job["known"], *job["choices"]]
        self.spellings = {k[: i + 1] for k in keys for i, c in enumerate(k[:-1]) if c == ")" and k[i + 1] in ".["}
        """Calls whose results the abstract run knows more about."""
        self.generator = torch.Generator().manual_seed(1234 + rank)
        self.cast: dict[str, Any] = {}
        """Actors by role and name, so that one name is one thing wherever it is read."""
        self.modules: dict[str, nn.Module] = {}
        self.optimizers: list[torch.optim.Optimizer] = []
        self.assumed: set[str] = set()
        self.hidden = False
        self.depth = 0
        self.entered: Counter[CodeType] = Counter()
        """How often each function of the slice is being run right now."""
        self.backwards = 0
        self.turn = 0
        """Optimizer steps taken so far."""

    @property
    def stamp(self) -> int:
        """The state of all parameters: it changes when any of them is written to."""
        return sum(q._version for m in self.modules.values() for q in m.parameters())

    @contextlib.contextmanager
    def inside(self, function: FunctionType) -> Iterator[bool]:
        """Count a call of a function of the file; True where it calls itself over the parts of something unknown."""
        self.entered[function.__code__] += 1
        try:
            deep = self.entered[function.__code__] > MOST_RECURSION
            yield deep and function.__name__ not in self.job["callbacks"]
        finally:
            self.entered[function.__code__] -= 1

    # --- naming --------------------------------------------------------------------------------

    def kind(self, name: str) -> str:
        """The kind that a name's use suggests."""
        return self.kinds.get(name.rsplit(".", 1)[-1], "")

    def number(self, path: str) -> Any:
        """The number that the abstract run gave a setting, by spelling or by its last name."""
        for table in (self.values, self.known):
            if path in table:
                return table[path]
        last = path.rsplit(".", 1)[-1]
        key = _KEY.search(path)
        if key is not None and key[1] in self.job["terminals"] and not composed(path):
            return self.job["terminals"][key[1]]  # a setting of a dictionary, whatever the dictionary is called here
        return self.job["terminals"].get(last) if last.isidentifier() and not composed(path) else None

    def free(self, name: str, hint: str) -> Any:
        """A name that nothing in the slice has bound."""
        last = hint.rsplit(".", 1)[-1]
        kinds = {"Accelerator": "accelerator", "Fabric": "fabric", "GradScaler": "scaler", "Optimizer": "optimizer"}
        kinds |= {"Module": "module", "DataLoader": "loader", "DistributedDataParallel": "wrapped"}
        kind = kinds.get(last, "" if last in {"int", "float", "str", "bool"} else self.kind(name))
        number = self.number(name) if not kind else None
        return Unknown(self, name, kind, name) if number is None else number

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
        made = Unknown(self, path, kind, str(name), data=holder.data)
        made.modules, made.origin, made.fact = holder.modules, holder.origin, holder.fact
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
        if value.kind == "optimizer" and self.job["single"]:
            return self.main_optimizer()
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
            case "fabric":
                from galint.trace.stage.things import Fabric

                made = Fabric()
            case "engine":
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
        owned = {id(q) for o in self.optimizers[:1] for g in o.param_groups for q in g["params"]}
        inner = next((m for m in self.modules.values() if any(id(q) in owned for q in m.parameters())), None)
        inner = inner if inner is not None else list(self.modules.values())[-1]
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

    def introduce(self) -> None:
        """Before the first backward: the optimizers that the loop steps later, so that they are seen from the start."""
        for path in self.job["optimizers"]:
            self.real(Unknown(self, path, "optimizer", path))
        if not self.optimizers:
            self.main_optimizer()

    def accelerator(self, steps: int) -> Any:
        """Accelerate's own Accelerator, where it is installed."""
        try:
            from accelerate import Accelerator  # type: ignore[import-untyped, unused-ignore]
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
            if flow.prediction is not None and flow.stamp == self.stamp:  # a state carried over a step is detached
                prediction = prediction + flow.prediction
        made = Flow(self, prediction, y)
        made.module = module
        return made

    def loss_of(self, value: Any) -> Flow:
        """The loss that an unknown value stands for: a forward of the model that went into it."""
        if isinstance(value, Flow):
            return value
        if isinstance(value, Unknown) and isinstance(value.actor, Flow):
            return value.actor
        modules = value.modules if isinstance(value, Unknown) else []
        if isinstance(value, Unknown) and value.scaling is not None:
            base, op, number, reverse = value.scaling
            made: Flow = self.loss_of(base).operate(op, number, value.path, reverse)
        else:
            made = self.forward(modules[0] if modules else self.main())
        if isinstance(value, Unknown):
            value.actor = made
        return made

    def backward(self, value: Any, gradient: Any = None) -> None:
        """A real backward of a loss."""
        flow = self.loss_of(value)
        self.assumed |= flow.assumed
        self.hidden = self.hidden or not flow.visible
        if not self.backwards:
            self.introduce()
        if self.backwards - self.turn * 2 > max(400, 8 * int(self.job["n"])):
            raise StopStage  # a loop that does not step: what it holds is told at the end
        self.backwards += 1
        # Two losses of one output share its graph, which the user's own losses need not.
        root: Any = flow.loss
        if isinstance(gradient, int | float):
            root.backward(torch.full_like(root, float(gradient)), retain_graph=True)
        else:
            if gradient is not None:
                self.assumed.add("gradient=")
            root.backward(retain_graph=True)
