"""The gradient ledger: which micro-batch gradients an optimizer step applies, as exact formulas.

Shared by the abstract run and the tracer; it knows neither syntax trees nor torch. Arithmetic is
`fractions.Fraction`, never floats. g_i is the gradient of the i-th micro-batch's own mean loss.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction

from galint.source import Span


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A rational number times unknown quantities: `value * prod(symbol ** exponent)`.

    A symbol is the spelling of something whose number the run does not know (`loss_weight`).
    """

    value: Fraction = Fraction(1)
    symbols: tuple[tuple[str, int], ...] = ()

    def times(self, value: Fraction | int) -> Coefficient:
        """This coefficient multiplied by a known number."""
        return Coefficient(self.value * value, self.symbols)

    def times_symbol(self, name: str, exponent: int) -> Coefficient:
        """This coefficient multiplied by an unknown quantity to some power."""
        powers = dict(self.symbols)
        powers[name] = powers.get(name, 0) + exponent
        return Coefficient(self.value, tuple(sorted((k, v) for k, v in powers.items() if v)))

    def combine(self, other: Coefficient) -> Coefficient:
        """The product of two coefficients."""
        if other is ONE:
            return self
        out = self if other.value == 1 else self.times(other.value)
        for name, exponent in other.symbols:
            out = out.times_symbol(name, exponent)
        return out

    def substitute(self, known: dict[str, Fraction]) -> Coefficient:
        """Replace symbols whose number became known later in the run."""
        if not self.symbols:
            return self
        out = Coefficient(self.value)
        for name, exponent in self.symbols:
            if known.get(name):
                out = out.times(known[name] ** exponent)
            else:
                out = out.times_symbol(name, exponent)
        return out

    def __str__(self) -> str:
        text = str(self.value)
        for name, exponent in sorted(self.symbols, key=lambda pair: pair[1] < 0):  # factors first: `a·b/c`
            text += f"{'·' if exponent > 0 else '/'}{_power(name, exponent)}"
        return text


def _power(name: str, exponent: int) -> str:
    if re.search(r" [-+*/%] ", name):
        name = f"({name})"
    return name if abs(exponent) == 1 else f"{name}^{abs(exponent)}"


ONE = Coefficient()


@dataclass(frozen=True, slots=True)
class LossFacts:
    """What is known about the loss a backward started from.

    `terms` are the coefficients of its addends. `summed` means that it is visibly a sum over the
    samples, not a mean. `hidden` are settings that went into a call galint cannot see into, so a
    division by one of them may hide there. `synced` says for each wrapped module whether gradient
    synchronisation was on at the forward. `scale_span` is where the loss was multiplied by the loss scale.
    `term_keys` holds, term by term, the settings that term was multiplied or divided by; `penalties` are
    addends that only the parameters enter (an L1 term), each with its spelling and such settings.
    """

    terms: tuple[Coefficient, ...] = (ONE,)
    summed: bool = False
    hidden: frozenset[str] = frozenset()
    synced: tuple[tuple[str, bool], ...] = ()
    bypassed: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    scale_span: Span | None = None
    term_keys: tuple[frozenset[str], ...] = ()
    penalties: tuple[tuple[str, frozenset[str]], ...] = ()


@dataclass(slots=True)
class Entry:
    """One backward's share in the accumulated gradient of one optimizer."""

    micro: int
    coefficient: Coefficient
    scaled: bool
    span: Span
    seq: int
    facts: LossFacts = field(default_factory=LossFacts)
    sure: bool = True
    """False when the code does not show that this backward reaches this optimizer's parameters."""
    applied: bool = False
    """True once a step has applied it and nothing has cleared it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened to a ledger between two steps: a clear, an unscale, a clip."""

    kind: str
    span: Span
    seq: int
    micro: int
    pending: int
    """How many not yet applied micro-batches the gradient held at that moment."""
    scaled: bool = False
    detail: str = ""
    owner: str = ""
    """What did it: the spelling of the optimizer, module or scaler."""
    where: tuple[tuple[Span, int, int], ...] = ()
    """(loop header, run serial, iteration) of the loops running at that moment, outermost first."""


OWN_COUNT = "@own"
"""Among a guard's keys: a framework counts by itself, and the code has no condition that could be wrong."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that let a step run, and the numbers in it that can be N."""

    span: Span
    text: str
    moduli: tuple[tuple[str, int], ...] = ()
    """(key or literal text, value) of what a counter was divided by or compared with."""
    keys: frozenset[str] = frozenset()
    negated: bool = False


@dataclass(slots=True)
class Step:
    """One optimizer step: the applied gradient and how it came about."""

    optimizer: str
    span: Span
    seq: int
    applied: list[Entry]
    carried: list[Entry]
    """Entries an earlier step already applied and nothing cleared since."""
    lost: list[tuple[Entry, Mark]]
    window: list[int]
    """Micro-batches whose backward ran since the previous step, in order."""
    marks: list[Mark]
    guards: tuple[Guard, ...] = ()
    position: tuple[int, ...] = ()
    """Iteration numbers of the enclosing loops, outermost first."""
    truncated: bool = False
    unscaled_here: bool = False
    """The step itself unscaled (scaler.step)."""
    skipped: bool = False

    def micros(self) -> list[int]:
        """The distinct micro-batches in the applied gradient, in order."""
        return list(dict.fromkeys(e.micro for e in self.applied))

    def first_of_each(self) -> list[Entry]:
        """The first applied entry of each backward call."""
        out: dict[Span, Entry] = {}
        for entry in self.applied:
            out.setdefault(entry.span, entry)
        return list(out.values())

    def passes(self, entry: Entry) -> int:
        """How often the backward call of an applied entry ran over its micro-batch, as adversarial training does."""
        return len({e.seq for e in self.applied if (e.micro, e.span) == (entry.micro, entry.span)})


@dataclass(slots=True)
class OptimizerLedger:
    """The accumulated gradient of one optimizer's parameters, between and across steps."""

    name: str
    pending: list[Entry] = field(default_factory=list)
    lost: list[tuple[Entry, Mark]] = field(default_factory=list)
    window: list[int] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    copied: bool = False
    """Gradients were read by other code, so a clear does not mean that they are lost."""

    def clone(self, name: str) -> OptimizerLedger:
        """A ledger for an optimizer first seen now, holding what was accumulated so far."""
        return OptimizerLedger(
            name,
            [replace(e) for e in self.pending],
            list(self.lost),
            list(self.window),
            list(self.marks),
            copied=self.copied,
        )

    def gone(self) -> list[Entry]:
        """Entries that were cleared or applied."""
        lost = [e for e, _ in self.lost]
        return lost + [e for s in self.steps for e in (*s.applied, *(e for e, _ in s.lost))]

    def backward(self, entry: Entry) -> None:
        """Accumulate one backward."""
        self.pending.append(entry)
        if entry.micro not in self.window[-1:]:
            self.window.append(entry.micro)

    def fresh(self) -> list[Entry]:
        """Entries that no step has applied yet."""
        return [e for e in self.pending if not e.applied]

    def held(self) -> int:
        """Number of distinct not yet applied micro-batches."""
        return len({e.micro for e in self.pending if not e.applied})

    def clear(self, mark: Mark) -> None:
        """Set the gradients to zero or None."""
        self.marks.append(mark)
        if not self.copied:
            self.lost += [(e, mark) for e in self.pending if not e.applied]
        self.pending.clear()

    def rescale(self, factor: Coefficient) -> None:
        """Multiply every accumulated gradient."""
        for entry in self.pending:
            entry.coefficient = entry.coefficient.combine(factor)

    def unscale(self, mark: Mark) -> None:
        """Divide the loss scale out of everything accumulated so far."""
        self.marks.append(mark)
        for entry in self.pending:
            entry.scaled = False

    def step(self, step: Step) -> Step:
        """Apply the accumulated gradient; fills `step` and starts the next window."""
        step.applied = [replace(e) for e in self.pending if not e.applied]
        step.carried = [replace(e) for e in self.pending if e.applied]
        step.lost, step.window, step.marks = self.lost, self.window, self.marks
        for entry in self.pending:
            entry.applied = True
        self.lost, self.window, self.marks = [], [], []
        self.copied = False
        self.steps.append(step)
        return step


def plain(name: str) -> str:
    """An optimizer's name without what tells the objects of several calls apart."""
    return name.rstrip("'")


def formula(weights: dict[int, Coefficient]) -> str:
    """The sum of `weights[i] * g_i` as a person would write it, e.g. `(g1 + g2)/2`.

    Keys are 1-based positions in the window. An empty gradient is `0`.
    """
    if not weights:
        return "0"
    values = list(weights.values())
    names = [f"g{k}" for k in weights]
    if all(v == values[0] for v in values):
        return _scaled(_joined(names), values[0], many=len(names) > 1)
    return " + ".join(_scaled(n, v, many=False) for n, v in zip(names, values, strict=True))


def unsigned(weights: dict[int, Coefficient]) -> dict[int, Coefficient]:
    """The weights without a minus sign that all of them share: `-log_prob.mean()` is the micro-batch's own loss."""
    return {k: w.times(-1) for k, w in weights.items()} if all(w.value < 0 for w in weights.values()) else weights


def mean_formula(count: int) -> str:
    """The large batch's gradient: the mean over `count` micro-batches."""
    return formula({k: Coefficient(Fraction(1, max(count, 1))) for k in range(1, count + 1)})


def _joined(names: list[str]) -> str:
    if len(names) <= 6:
        return " + ".join(names)
    return f"{names[0]} + {names[1]} + … + {names[-1]}"


def _scaled(body: str, weight: Coefficient, *, many: bool) -> str:
    if weight == ONE:
        return body
    wrapped = f"({body})" if many else body
    top, bottom = weight.value.numerator, weight.value.denominator
    for name, exponent in weight.symbols:
        if exponent > 0:
            wrapped = f"{_power(name, exponent)}·{wrapped}"
    text = wrapped if top == 1 else f"{top}·{wrapped}" if top != -1 else f"-{wrapped}"
    if bottom != 1:
        text += f"/{bottom}"
    for name, exponent in weight.symbols:
        if exponent < 0:
            text += f"/{_power(name, exponent)}"
    return text
