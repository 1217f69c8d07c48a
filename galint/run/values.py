"""Values of the abstract run: small concrete numbers, and opaque things with identity and ancestry."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from galint.ledger import ONE, Coefficient
from galint.program import ClassDef, FunctionDef, Lambda
from galint.source import Span

if TYPE_CHECKING:
    from galint.run.frame import Frame

NONE_KEYS: frozenset[str] = frozenset()
LONGEST = 4096
"""Elements of a list or characters of a text that are kept: what doubles in a loop must not fill the memory."""


class Value:
    """Base of everything a name can be bound to."""

    __slots__ = ()


_NUMBERS = frozenset({int, bool, Fraction})


class Lit(Value):
    """A known constant: int, Fraction (Python floats included), bool, str, bytes or None.

    `keys` are the settings that contributed to it; `moduli` the numbers that a counter was divided
    by or compared with on the way (candidates for N); `born` is the loop iteration it comes from.
    `data` marks values that depend on the batch's contents.
    """

    __slots__ = ("born", "keys", "moduli", "text", "value")

    def __init__(
        self,
        value: Any,
        keys: frozenset[str] = NONE_KEYS,
        moduli: tuple[tuple[str, int], ...] = (),
        born: int = 0,
        text: str = "",
    ) -> None:
        self.value = value
        self.keys = keys
        self.moduli = moduli
        self.born = born
        self.text = text

    @property
    def is_number(self) -> bool:
        """True for int, bool and Fraction."""
        return type(self.value) in _NUMBERS

    def __repr__(self) -> str:
        return f"Lit({self.value})"


class Opaque(Value):
    """Something without a known value, identified by its spelling.

    `modules` are the ids of modules whose parameters it holds or was computed from. `data` says that
    it comes from the training data, so that conditions on it are rare paths and not configuration.
    `deferred` is arithmetic over unresolved settings: (operator, left, right).
    """

    __slots__ = (
        "attrs",
        "born",
        "data",
        "deferred",
        "depth",
        "elements",
        "items",
        "kind",
        "length",
        "modules",
        "path",
        "role",
        "tried",
    )

    def __init__(
        self,
        path: str,
        kind: str = "",
        *,
        data: bool = False,
        born: int = 0,
        modules: frozenset[int] = frozenset(),
        role: str = "",
    ) -> None:
        self.path = path
        self.kind = kind
        self.role = role
        self.data = data
        self.born = born
        self.modules = modules
        self.attrs: dict[str, Value] = {}
        self.items: dict[Any, Value] = {}
        self.deferred: tuple[str, Value, Value] | None = None
        self.tried = -1
        """How many settings had a number when `deferred` was last found to have none."""
        self.depth = 0
        """How many operations `deferred` is deep."""
        self.length: Value | None = None
        self.elements: list[Value] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path}{':' + self.kind if self.kind else ''})"


class Module(Opaque):
    """A neural network module. `wrap` is "ddp", "fsdp", "fsdp2", "dp", "apex-ddp" or ""."""

    __slots__ = ("cls", "ident", "inner", "made", "sync", "training", "wrap")

    def __init__(self, path: str, ident: int, *, wrap: str = "", inner: Module | None = None) -> None:
        super().__init__(path, "module")
        self.ident = ident
        self.wrap = wrap
        self.inner = inner
        self.sync = True
        self.training = True
        self.cls: ClassDef | None = None
        self.made: Span | None = None
        self.modules = frozenset({ident}) | (inner.modules if inner else frozenset())


class Optimizer(Opaque):
    """An optimizer; `known` is True when its construction from torch is visible."""

    __slots__ = ("accelerated", "born_seq", "engine", "known", "made", "made_keys", "made_text")

    def __init__(self, path: str, modules: frozenset[int] = frozenset(), *, known: bool = False) -> None:
        super().__init__(path, "optimizer", modules=modules)
        self.known = known
        self.accelerated: Opaque | None = None
        self.born_seq = 0
        self.engine: Opaque | None = None
        self.made: Span | None = None
        self.made_keys: frozenset[str] = frozenset()
        self.made_text = ""


class Term:
    """One addend of a loss: its micro-batch and its coefficient."""

    __slots__ = ("coefficient", "keys", "micro")

    def __init__(self, micro: int, coefficient: Coefficient = ONE, keys: frozenset[str] = NONE_KEYS) -> None:
        self.micro = micro
        self.coefficient = coefficient
        self.keys = keys


class Tensor(Value):
    """A tensor computed from the data or the parameters."""

    __slots__ = (
        "bypassed", "done", "each", "grad", "hidden", "keys", "merged", "modules", "parent", "path", "penalties",
        "reduced", "scaled", "scaled_at", "summed", "synced", "terms", "unknown_scale",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        terms: tuple[Term, ...],
        *,
        modules: frozenset[int] = frozenset(),
        grad: bool = True,
    ) -> None:
        self.path = path
        self.terms = terms
        self.modules = modules
        self.grad = grad
        self.scaled: Opaque | None = None
        self.scaled_at: Span | None = None
        self.summed = False
        self.reduced = False
        self.hidden: frozenset[str] = NONE_KEYS
        self.keys: frozenset[str] = NONE_KEYS
        self.synced: dict[int, bool] = {}
        self.bypassed: frozenset[int] = frozenset()
        self.done = False
        """Backward already ran from this very tensor."""
        self.unknown_scale = False
        self.each = False
        """Surely a loss for each sample or element, that nothing has made one number of."""
        self.merged = 1
        """How many addends of one micro-batch and coefficient were added to make it."""
        self.parent: Tensor | None = None
        """What this tensor is a scaled copy of."""
        self.penalties: tuple[tuple[str, frozenset[str]], ...] = ()
        """Addends computed from the parameters alone, each with the settings it was scaled by."""

    @property
    def born(self) -> int:
        """The latest micro-batch in its ancestry."""
        return max((t.micro for t in self.terms), default=0)

    def copy(self) -> Tensor:
        """A tensor of the same ancestry that is another object."""
        out = Tensor(self.path, self.terms, modules=self.modules, grad=self.grad)
        out.scaled, out.scaled_at, out.summed = self.scaled, self.scaled_at, self.summed
        out.hidden, out.keys, out.synced, out.bypassed = self.hidden, self.keys, self.synced, self.bypassed
        out.merged, out.each = self.merged, self.each
        out.reduced, out.unknown_scale, out.penalties = self.reduced, self.unknown_scale, self.penalties
        return out

    def map(self, change: Callable[[Coefficient], Coefficient], keys: frozenset[str] = NONE_KEYS) -> Tensor:
        """The tensor with every addend's coefficient changed."""
        out = self.copy()
        out.terms = tuple(Term(t.micro, change(t.coefficient), t.keys | keys) for t in self.terms)
        out.keys = self.keys | keys
        out.penalties = tuple((path, own | keys) for path, own in self.penalties)
        return out

    def __repr__(self) -> str:
        return f"Tensor({self.path})"


class Seq(Value):
    """A list or tuple whose elements are known. `open` marks a list that unknown code may grow."""

    __slots__ = ("elts", "kind", "length", "open", "path")

    def __init__(self, elts: list[Value], kind: str = "list", path: str = "") -> None:
        self.elts = elts
        self.kind = kind
        self.path = path
        self.open = False
        self.length: Opaque | None = None

    def __repr__(self) -> str:
        return f"Seq({self.elts})"


class Mapping(Value):
    """A dict with known keys; other keys read as opaque values. `soft` dicts are configuration."""

    __slots__ = ("items", "path")

    def __init__(self, items: dict[Any, Value], path: str = "") -> None:
        self.items = items
        self.path = path


class Range(Value):
    """`range(start, stop, step)` with known numbers."""

    __slots__ = ("keys", "start", "step", "stop")

    def __init__(self, start: int, stop: int, step: int, keys: frozenset[str]) -> None:
        self.start, self.stop, self.step, self.keys = start, stop, step, keys


class Iterable(Value):
    """A lazy iterable: `kind` is enumerate, zip, chain, islice, cycle, map, opaque or repeat."""

    __slots__ = ("args", "kind", "start")

    def __init__(self, kind: str, args: list[Value], start: Value | None = None) -> None:
        self.kind = kind
        self.args = args
        self.start = start


class Iterator(Value):
    """What `iter(x)` gives: a position in an iterable."""

    __slots__ = ("infinite", "position", "source", "stored")

    def __init__(self, source: Value) -> None:
        self.source = source
        self.position = 0
        self.stored: list[Value] | None = None
        self.infinite = False


class GeneratorCall(Value):
    """A generator function of the file that was called and not yet driven."""

    __slots__ = ("args", "func", "kwargs")

    def __init__(self, func: Function, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs


class Function(Value):
    """A function or lambda of the project, with the frame it closes over."""

    __slots__ = ("closure", "defaults", "node", "owner")

    def __init__(
        self, node: FunctionDef | Lambda, closure: Frame, defaults: dict[str, Value], owner: Class | None = None
    ) -> None:
        self.node, self.closure, self.defaults, self.owner = node, closure, defaults, owner

    @property
    def name(self) -> str:
        """The function's name, or `<lambda>`."""
        return self.node.name if isinstance(self.node, FunctionDef) else "<lambda>"


class Class(Value):
    """A class of the project; `bases` are its evaluated bases."""

    __slots__ = ("bases", "closure", "members", "module_like", "node")

    def __init__(self, node: ClassDef, bases: list[Value], members: dict[str, Value], closure: Frame) -> None:
        self.node, self.bases, self.members, self.closure = node, bases, members, closure
        self.module_like = False


class Instance(Opaque):
    """An object of a project class. Missing attributes are opaque."""

    __slots__ = ("cls",)

    def __init__(self, cls: Class, path: str) -> None:
        super().__init__(path, "instance")
        self.cls = cls


class Bound(Value):
    """A method bound to its receiver, of the project (`func`) or of an opaque thing (`name`)."""

    __slots__ = ("func", "name", "receiver")

    def __init__(self, receiver: Value, name: str, func: Function | None = None) -> None:
        self.receiver, self.name, self.func = receiver, name, func


class ModuleValue(Value):
    """A project file that was imported; its names are the frame's."""

    __slots__ = ("frame", "name")

    def __init__(self, name: str, frame: Frame) -> None:
        self.name, self.frame = name, frame


class External(Value):
    """A dotted name of another package: `torch.nn.functional.cross_entropy`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"External({self.name})"


class Partial(Value):
    """`functools.partial`."""

    __slots__ = ("args", "func", "kwargs")

    def __init__(self, func: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs


class Context(Value):
    """A context manager with an effect: `kind` is "no_sync", "sync", "no_grad", "accumulate", "stack" or "null".

    `flag` None means unconditional; a known bool switches it.
    """

    __slots__ = ("data", "kind", "span", "target")

    def __init__(self, kind: str, target: Value | None, span: Span, data: dict[str, Any] | None = None) -> None:
        self.kind, self.target, self.span = kind, target, span
        self.data = data or {}


class Super(Value):
    """`super()` inside a method."""

    __slots__ = ("cls", "instance")

    def __init__(self, cls: Class, instance: Value) -> None:
        self.cls, self.instance = cls, instance


NONE, TRUE, FALSE = Lit(None), Lit(True), Lit(False)

__all__ = [name for name in dir() if not name.startswith("_")]
