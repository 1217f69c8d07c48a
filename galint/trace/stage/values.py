"""What a slice computes with: unknown things, losses that carry a real gradient, and the file's own classes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "@": operator.matmul,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


FINITE = {"isnan": False, "isinf": False, "isneginf": False, "isposinf": False, "isfinite": True}
"""Questions about a loss, and the answers that the tiny model's losses give."""


class NoStage(Exception):
    """The slice needs something that the stage does not have."""


class StopStage(BaseException):
    """Enough was run."""


class TooLong(BaseException):
    """One slice ran for too long."""


class Unknown:
    """A value outside the skeleton, known by its spelling. `kind` is what it becomes when it is used.

    `data` says that it comes from the training data; `modules` are what went into the call that gave it;
    `origin` is the library name whose call gave it.
    """

    __slots__ = (
        "actor", "attrs", "data", "fact", "kind", "loader", "modules", "name", "origin", "path", "scaling", "source",
        "world",
    )  # fmt: skip

    def __init__(self, world: Any, path: str, kind: str = "", name: str = "", *, data: bool = False) -> None:
        self.world = world
        self.path = path
        self.kind = kind
        self.name = name or path
        self.data = data
        self.attrs: dict[str, Any] = {}
        self.modules: list[torch.nn.Module] = []
        self.origin = ""
        self.actor: Any = None
        self.loader: Any = None
        self.fact: bool | None = None
        """What a question about a loss has for an answer here, where the abstract run took no other: it is finite."""
        self.scaling: tuple[Unknown, str, Any, bool] | None = None
        """The value, operator and number that it was computed from, for it may turn out to be a loss."""
        self.source: Any = None
        """What went into the call that gave it and can be iterated: a progress bar or a logger passes it on."""

    def __bool__(self) -> bool:
        return bool(self.world.truth(self, self.path, (0, 0), None))

    def __iter__(self) -> Any:
        return iter(self.world.elements(self, "length"))

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<{self.path}>"


class Flow:
    """A model's output or a loss: `loss` is a real scalar with a gradient.

    `visible` says that the text shows how the loss is made (a torch loss function); `assumed` are the factors
    that the slice could not know and took as one.
    """

    __slots__ = ("addends", "assumed", "module", "parts", "prediction", "stamp", "target", "tensor", "visible", "world")

    def __init__(
        self,
        world: Any,
        prediction: torch.Tensor | None = None,
        target: torch.Tensor | None = None,
        tensor: torch.Tensor | None = None,
        *,
        visible: bool = False,
        assumed: frozenset[str] = frozenset(),
        parts: list[Flow] | None = None,
    ) -> None:
        self.world = world
        self.prediction = prediction
        self.target = target
        self.tensor = tensor
        self.visible = visible
        self.assumed = assumed
        self.parts = parts
        self.module: torch.nn.Module | None = None
        self.addends = 1
        """How many losses were added before any was computed; the graph shows each, for a mean of them divides by it."""
        self.stamp = world.stamp
        """The state of the parameters when it was made."""

    def fresh(self) -> Flow:
        """This flow; what is kept from before a step is run anew, for torch would refuse its graph."""
        held = self.tensor if self.tensor is not None else self.prediction
        deaf = torch.is_grad_enabled() and held is not None and not held.requires_grad  # made where gradients are off
        if self.stamp != self.world.stamp or deaf:
            if self.module is None:  # the factors that went into it are lost
                self.assumed = self.assumed | {"a loss from before the step"}
            again = self.world.forward(self.module if self.module is not None else self.world.main())
            self.prediction, self.target, self.tensor, self.stamp = again.prediction, again.target, None, again.stamp
        return self

    @property
    def loss(self) -> torch.Tensor:
        """The scalar loss, computed once."""
        self.fresh()
        if self.tensor is None:
            assert self.prediction is not None and self.target is not None
            self.tensor = torch.nn.functional.mse_loss(self.prediction, self.target)
            for _ in range(self.addends - 1):
                self.tensor = self.tensor + 0.0
        return self.tensor

    def become(self, tensor: torch.Tensor, *others: Flow, assumed: frozenset[str] = frozenset()) -> Flow:
        """A loss computed from this one and others."""
        flows = (self, *others)
        return Flow(
            self.world,
            tensor=tensor,
            visible=all(f.visible for f in flows),
            assumed=frozenset().union(assumed, *(f.assumed for f in flows)),
        )

    def operate(self, op: str, other: Any, text: str, reverse: bool = False) -> Any:
        """Arithmetic with a number or another loss by torch itself; an unknown factor is taken as one."""
        if op in {"==", "!=", "<", "<=", ">", ">="}:
            return Unknown(self.world, text, data=True)
        if self.prediction is not None and self.tensor is None and not isinstance(other, int | float | Flow):
            return self  # an output, not a loss yet: `(output - target) ** 2`
        if isinstance(other, Flow):
            if (
                self.prediction is not None
                and self.tensor is None
                and other.tensor is None
                and other.prediction is not None
            ):
                both = self.world.passed_on([self, other], False)
                if op == "+" and isinstance(both, Flow):
                    both.addends = self.addends + other.addends
                return both
            if op in {"+", "-"}:
                a, b = (other.loss, self.loss) if reverse else (self.loss, other.loss)
                return self.become(OPERATORS[op](a, b), other)
            return self.become(self.loss, other, assumed=frozenset({text}))
        if isinstance(other, bool | int | float) or (isinstance(other, torch.Tensor) and other.numel() == 1):
            pair: tuple[Any, Any] = (other, self.loss) if reverse else (self.loss, other)
            if op == "**":
                return self
            if op in {"+", "-", "*", "/"}:
                return self.become(OPERATORS[op](*pair))
            return self
        if op in {"+", "-"} and isinstance(other, Unknown) and not other.modules:
            # A term without a gradient, which counts where a mean of terms is taken.
            return self.become(self.loss + 0.0)
        name = other.path if isinstance(other, Unknown) else text
        return self.become(self.loss, assumed=frozenset({name}))

    def __add__(self, other: Any) -> Any:
        return self.operate("+", other, "a sum")

    def __radd__(self, other: Any) -> Any:
        return self.operate("+", other, "a sum", True)

    def __iter__(self) -> Any:
        return iter(self.parts or [self])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "<loss>"


class Numbered(enumerate[Any]):
    """`enumerate(source)` that tells what it counts."""

    source: Any

    def __new__(cls, source: Any, start: int = 0) -> Numbered:
        made = super().__new__(cls, source, start)
        made.source = source
        return made


class External:
    """A dotted name of another package."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Method:
    """Something that the stage itself can be asked to do."""

    __slots__ = ("name", "run")

    def __init__(self, run: Callable[..., Any], name: str = "") -> None:
        self.run = run
        self.name = name
        """Of Python's own functions and types."""


class Class:
    """A class of the file: `methods` are (function, kind), `fields` its class attributes."""

    def __init__(
        self,
        name: str,
        bases: list[Any],
        methods: dict[str, tuple[Any, str]],
        fields: dict[str, Any],
        data: bool,
        trains: bool,
    ) -> None:
        self.name = name
        self.bases = bases
        self.methods = methods
        self.fields = fields
        self.data = data
        self.trains = trains

    def find(self, name: str) -> tuple[Any, str] | None:
        """A method by name, through the bases of the file."""
        if name in self.methods:
            return self.methods[name]
        for base in self.bases:
            if isinstance(base, Class) and (found := base.find(name)) is not None:
                return found
        return None

    def field(self, name: str) -> Any:
        """A class attribute; None when there is none (and then `has` is false)."""
        if name in self.fields:
            return self.fields[name]
        return next((b.field(name) for b in self.bases if isinstance(b, Class) and b.has(name)), None)

    def has(self, name: str) -> bool:
        """Whether the class or a base has the attribute."""
        return name in self.fields or any(isinstance(b, Class) and b.has(name) for b in self.bases)

    @property
    def foreign(self) -> list[str]:
        """Last names of bases that are not the file's."""
        out: list[str] = []
        for base in self.bases:
            if isinstance(base, Class):
                out += base.foreign
            elif isinstance(base, External):
                out.append(base.name.rsplit(".", 1)[-1])
            elif isinstance(base, Unknown):
                out.append(base.path.rsplit(".", 1)[-1])
        return out


class Instance:
    """An object of a class of the file: a plain namespace."""

    __slots__ = ("actor", "attrs", "cls", "path")

    def __init__(self, cls: Class | None, path: str = "self") -> None:
        self.cls = cls
        self.path = path
        self.attrs: dict[str, Any] = {}
        self.actor: Any = None
