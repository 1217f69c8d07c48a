"""The abstract machine's state and bookkeeping: scenario, order of events, places, what a value is made of."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from galint import program as p
from galint.ledger import Guard, OptimizerLedger
from galint.run.facts import Event, RunResult
from galint.run.frame import Frame, LoopFrame, RunOver
from galint.run.scenario import Scenario
from galint.run.static import Static
from galint.run.values import Context, Lit, Mapping, Opaque, Optimizer, Seq, Tensor, Term, Value
from galint.source import Span

NOWHERE = Span(1, 0, 1, 0)
FOREIGN = 10_000_000
"""Rows from here on belong to files that the linted one imports."""
_BORN = (Lit, Opaque, Tensor)


class Machine:
    """Everything that one run carries. `Evaluate`, `Execute` and `Calls` add behaviour on top."""

    def __init__(self, static: Static, scenario: Scenario, fuel: int = 60_000) -> None:
        self.static = static
        self.scenario = scenario
        self.fuel = fuel
        self.result = RunResult(scenario)
        self.base = OptimizerLedger("")
        self.seq = 0
        self.tokens = 0
        self.drawn: dict[int, int] = {}
        """Micro-batch → how many of the loops around its first backward are those that drew it and those around them."""
        self.serials = 0
        self.idents = 0
        self.loops: list[LoopFrame] = []
        self.guards: list[Guard] = []
        self.leading: list[Guard] = []
        """Those that gate only the steps before the next backward."""
        self.contexts: list[Context] = []
        self.ancestors: dict[int, frozenset[int]] = {}
        self.optimizers: dict[str, Optimizer] = {}
        self.call_stack: list[Any] = []
        self.call_spans: list[Span] = []
        self.file = ""
        self.test_node: p.Node | None = None
        self.test_tags: frozenset[str] = frozenset()
        self.max_backwards = 400
        self.max_steps = 60
        self.passed: frozenset[p.Node] = frozenset()
        """Loops that are passed over."""
        self.steps_taken = 0
        self.scale_generation: dict[str, int] = {}
        self.unscaled: dict[tuple[str, str], int] = {}
        self.rare_seen: dict[str, int] = {}
        self.finite_iterators = 0
        self.handlers: list[p.Handler] = []
        self.grad_hooks: list[tuple[Value, Value, Any]] = []
        self.settings: dict[str, int] = {}
        self.gone_by: frozenset[str] = frozenset()
        """Ledgers of a first call that has ended: optimizers of the same name that the second one makes take their place."""
        self.toggled: Optimizer | None = None
        """The only optimizer whose parameters require a gradient now (Lightning's `toggle_optimizer`)."""
        self.frozen: set[int] = set()
        """Modules whose parameters a training loop has switched off (`requires_grad = False`) for one of its losses."""
        self.nesting = 0
        """How many expressions are being evaluated, one within the other."""
        self.items_scaled = False
        """The items of a model's output were divided or multiplied in place, so a loss made of them has an unknown weight."""
        self.outputs: dict[int, Tensor] = {}
        """What the last forward of each module gave."""

    # --- bookkeeping ---------------------------------------------------------------------------

    def prepare(self, frame: Frame) -> None:
        """Set up the module frame before a run; a machine that follows imports puts more here."""

    def tick(self) -> int:
        """The next number in the order of events."""
        self.seq += 1
        return self.seq

    def burn(self, amount: int = 1) -> None:
        """Spend budget; ends the run when none is left."""
        self.fuel -= amount
        if self.fuel < 0:
            raise RunOver("the loop exceeds the step budget")

    def token(self) -> int:
        """The current innermost iteration; 0 outside loops."""
        return self.loops[-1].token if self.loops else 0

    def new_token(self) -> int:
        """A fresh iteration identity."""
        self.tokens += 1
        return self.tokens

    def new_ident(self, parents: frozenset[int] = frozenset()) -> int:
        """A fresh module identity below the given ones."""
        self.idents += 1
        self.ancestors[self.idents] = parents | {self.idents}
        return self.idents

    def event(self, kind: str, span: Span, text: str = "", **data: Any) -> Event:
        """Record something for the window table and the checks."""
        event = Event(kind, span, self.tick(), self.file, self.token(), text, data)
        self.result.events.append(event)
        return event

    def odd_window(self, bound: Lit) -> None:
        """Note a setting whose default makes a window of one, or too long a one to run."""
        value = int(bound.value)
        if bound.keys and bound.text and (value <= 1 or value > 64):
            self.result.facts.setdefault("odd_windows", []).append(bound.text)
        elif value > 64:
            self.max_backwards = max(self.max_backwards, 6 * min(value, 512))

    def escape(self, span: Span, reason: str) -> None:
        """From here on the ledger is unknown, because of `reason`."""
        self.result.escapes.append((span, reason))

    def related(self, one: frozenset[int], other: frozenset[int]) -> bool:
        """True when a module of one set contains or is one of the other set."""
        if one & other:
            return True
        for a in one:
            up = self.ancestors.get(a, frozenset())
            if up & other:
                return True
        return any(self.ancestors.get(b, frozenset()) & one for b in other)

    def place(self, span: Span) -> Span:
        """Where an event is shown: in a loop of the linted file, the call that led into a followed file."""
        if span.row < FOREIGN or not self.loops or self.loops[-1].span.row >= FOREIGN:
            return span
        return next((s for s in reversed(self.call_spans) if s.row < FOREIGN), span)

    def where(self) -> tuple[tuple[Span, int, int], ...]:
        """The running loops, outermost first."""
        return tuple((f.span, f.serial, f.iteration) for f in self.loops)

    # --- values --------------------------------------------------------------------------------

    def modules_in(self, value: Value, depth: int = 0) -> frozenset[int]:
        """The modules whose parameters `value` holds or was computed from."""
        if isinstance(value, Tensor):
            return value.modules
        if isinstance(value, Opaque):
            return value.modules
        if depth < 4:
            if isinstance(value, Seq):
                return frozenset().union(*(self.modules_in(v, depth + 1) for v in value.elts))
            if isinstance(value, Mapping):
                return frozenset().union(*(self.modules_in(v, depth + 1) for v in value.items.values()))
        return frozenset()

    def tensors_in(self, value: Value, depth: int = 0) -> list[Tensor]:
        """The tensors inside a value."""
        if isinstance(value, Tensor):
            return [value]
        if depth < 4:
            if isinstance(value, Seq):
                return [t for v in value.elts for t in self.tensors_in(v, depth + 1)]
            if isinstance(value, Mapping):
                return [t for v in value.items.values() for t in self.tensors_in(v, depth + 1)]
        return []

    def born_of(self, value: Value, depth: int = 0) -> int:
        """The latest iteration a value comes from."""
        if isinstance(value, _BORN):
            return value.born
        if depth < 4 and isinstance(value, Seq):
            return max((self.born_of(v, depth + 1) for v in value.elts), default=0)
        if depth < 4 and isinstance(value, Mapping):
            return max((self.born_of(v, depth + 1) for v in value.items.values()), default=0)
        return 0

    def is_data(self, value: Value, depth: int = 0) -> bool:
        """True for what depends on the contents of the training data."""
        if isinstance(value, Tensor):
            return True
        if isinstance(value, Opaque):
            return value.data
        if depth < 4 and isinstance(value, Seq):
            return any(self.is_data(v, depth + 1) for v in value.elts)
        return False

    def no_grad(self) -> bool:
        """True inside `torch.no_grad()` or inference mode."""
        return any(c.kind == "no_grad" for c in self.contexts)

    def tensor(self, path: str, micro: int, modules: frozenset[int] = frozenset()) -> Tensor:
        """A fresh tensor of coefficient one."""
        return Tensor(path, (Term(micro or self.token()),), modules=modules, grad=not self.no_grad())


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """`a op b` on exact numbers; None when it is undefined or too large to matter."""
    if (
        _large(a)
        or _large(b)
        or (isinstance(a, (str, bytes)) and op != "+")
        or (isinstance(b, (str, bytes)) and op == "*")
    ):
        return None
    try:
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return Fraction(a) / Fraction(b)
            case "//":
                return a // b
            case "%":
                return a % b
            case "**" if abs(b) <= 64 and abs(a) <= 10**6:
                return Fraction(a) ** b if isinstance(b, int) else Fraction(float(a) ** float(b))
            case "&" | "|" | "^" | "<<" | ">>" if isinstance(a, int) and isinstance(b, int):
                if op == "&":
                    return a & b
                if op == "|":
                    return a | b
                if op == "^":
                    return a ^ b
                return a << b if op == "<<" and 0 <= b < 64 else a >> b if op == ">>" and b >= 0 else None
    except (ZeroDivisionError, ValueError, OverflowError, TypeError):
        return None
    return None


def _large(value: Any) -> bool:
    """True for numbers and texts that no loop is steered by and that arithmetic could grow without end."""
    if isinstance(value, (str, bytes)):
        return len(value) > 10_000
    if isinstance(value, int):
        return value.bit_length() > 2048
    return type(value) is Fraction and max(abs(value.numerator), value.denominator).bit_length() > 2048


def compared(op: str, a: Any, b: Any) -> bool | None:
    """A comparison of two known values; None where Python would raise."""
    try:
        match op:
            case "==" | "is":
                return bool(a == b)
            case "!=" | "is not":
                return bool(a != b)
            case "<":
                return bool(a < b)
            case "<=":
                return bool(a <= b)
            case ">":
                return bool(a > b)
            case ">=":
                return bool(a >= b)
    except TypeError:
        return None
    return None
