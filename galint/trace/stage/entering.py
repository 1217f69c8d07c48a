"""How a slice is entered and left: calls of its entry, `with` blocks, and the budget of its loops."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch

from galint.trace.stage.containers import PLAIN, Containers
from galint.trace.stage.values import Class, External, Flow, Instance, Method, NoStage, StopStage, Unknown

MOST_TICKS = 20_000


class Entering(Containers):
    """The part of the stage that calls the entry and goes into contexts."""

    def __init__(self, job: dict[str, Any], device: torch.device, rank: int = 0) -> None:
        super().__init__(job, device, rank)
        self.ticks = 0

    # --- budget --------------------------------------------------------------------------------

    def tick(self) -> None:
        """One iteration of a loop; ends the slice when there are too many."""
        self.ticks += 1
        if self.ticks > MOST_TICKS:
            raise StopStage

    # --- contexts ------------------------------------------------------------------------------

    def context(self, value: Any, text: str) -> Any:
        """The context manager of a `with`; what is not about gradients does nothing."""
        if isinstance(value, Instance) and value.cls is not None and value.cls.find("__enter__"):
            return self._entered(value)
        if isinstance(value, Method | Unknown | Instance | External | Class | PLAIN):
            return contextlib.nullcontext(value)
        if isinstance(value, Flow):
            return contextlib.nullcontext(value)
        if hasattr(value, "__enter__"):
            return value
        return contextlib.nullcontext(value)

    @contextlib.contextmanager
    def _entered(self, value: Instance) -> Iterator[Any]:
        result = self.call(self.attr(value, "__enter__"), "__enter__")
        try:
            yield result
        finally:
            self.call(self.attr(value, "__exit__"), "__exit__", None, None, None)

    def context_manager(self, function: Any) -> Any:
        """`@contextmanager` over a function of the file."""
        return Method(contextlib.contextmanager(function))

    # --- entry ---------------------------------------------------------------------------------

    def enter(self, target: Any, owner: Any, name: str, params: list[str], calls: str) -> None:
        """Call the entry as the loop or the script in another file would."""
        if owner is not None:
            instance = self.instantiate(owner, {})
            target = self.attr(instance, name)
            params = [q for q in params if q not in {"self", "cls"}]
        code = getattr(getattr(target, "run", target), "__code__", None)
        if code is None and not isinstance(target, Method):
            raise NoStage(f"`{name}` cannot be called")
        count = self.job["length"] if calls == "batch" else 2 if calls == "twice" else 1
        fixed: dict[str, Any] = {}
        for index in range(count):
            arguments: dict[str, Any] = {}
            for param in params:
                if self.job["roles"].get(param) == "counter":
                    arguments[param] = int(self.known.get(param, 0)) + (index if calls == "batch" else 0)
                elif self.has_default(target, param):
                    continue
                elif calls == "batch" and not self.kind(param):
                    number = self.number(param)
                    arguments[param] = Unknown(self, param, data=True) if number is None else number
                else:
                    fixed.setdefault(param, self.free(param, ""))
                    arguments[param] = fixed[param]
            self.drain(self.call(target, name, **arguments))

    def has_default(self, target: Any, param: str) -> bool:
        """Whether a parameter's own default is a number or a text."""
        function = getattr(target, "run", target)
        if isinstance(function, functools.partial) and function.args:
            function = function.args[0]  # a method of an instance: `apply` with the function and the instance
        function = getattr(function, "__wrapped__", function)
        code = getattr(function, "__code__", None)
        if code is None:
            return False
        names = code.co_varnames[: code.co_argcount]
        defaults = dict(
            zip(names[len(names) - len(function.__defaults__ or ()) :], function.__defaults__ or (), strict=True)
        )
        defaults |= function.__kwdefaults__ or {}
        return isinstance(defaults.get(param), bool | int | float | str)

    def drain(self, result: Any) -> None:
        """Run a generator that the entry returned."""
        if hasattr(result, "__next__") and not isinstance(result, torch.Tensor):
            for _ in result:
                self.tick()
