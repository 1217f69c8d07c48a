"""Full accumulation windows of a run, as the checks of what happens inside a window ask for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from galint import program as p
from galint.checks.delayed import is_delayed
from galint.checks.scaling import is_accumulation, steady
from galint.checks.view import View
from galint.ledger import Mark, OptimizerLedger, Step
from galint.run.facts import Event
from galint.run.nodes import path_terminal, terminal
from galint.source import Span


@dataclass(slots=True)
class Window:
    """A window of several micro-batches and the step that ends it."""

    ledger: OptimizerLedger
    step: Step
    micros: list[int]
    n: int
    """N as the guard says it, the length of the window where no number gates the step."""
    label: str
    """What spells N; "" where nothing does."""
    automatic: bool
    """Accelerate or DeepSpeed decide when the step acts."""
    guarded: bool = True
    """A condition with N in it gates the step."""

    @property
    def named(self) -> str:
        """N for a message."""
        return f"`{self.label}` = {self.n}" if self.label and not self.label.isdigit() else str(self.n)

    @property
    def literal(self) -> bool:
        """N is written as a number, so that other witnesses run with the same N."""
        return not self.label or self.label.isdigit()


def overlap(step: Step, before: Step | None) -> set[int]:
    """The micro-batches that the window before also held: their other losses came after its step."""
    return {*step.window} & {*before.window} if before is not None else set()


def full_windows(view: View, *, any_loop: bool = False) -> Iterator[Window]:
    """Steady windows of every optimizer that accumulates; none where closures or hand-written gradients steer.

    `any_loop` asks for several backwards before a step whatever they stand for, tasks or episodes included.
    """
    if view.run.facts.get("closure") or view.run.facts.get("manual_grad"):
        return
    accumulates = [e for e in view.run.events if e.kind == "accumulate"]
    automatic = bool(accumulates) or any(b.name == "engine" for b in view.run.backwards)
    for ledger in view.ledgers:
        cadence = view.cadence(ledger)
        if is_delayed(view, ledger):
            continue
        for step in steady(view, view.steps(ledger)):
            micros = view.window(step)
            if len(micros) < 2 or not is_accumulation(view, step, any_loop or cadence is not None or automatic):
                continue
            label, n = (cadence.label, cadence.n) if cadence is not None else _automatic(accumulates, len(micros))
            yield Window(ledger, step, micros, n, label, automatic, cadence is not None)


def _automatic(accumulates: list[Event], length: int) -> tuple[str, int]:
    """How the accelerator's N is spelled, and N."""
    for event in accumulates:
        keys = event.data.get("keys", [])
        return str(keys[0]) if keys else "", int(event.data["n"])
    return "", length


def events_in(view: View, window: Window, kind: str) -> dict[Span, list[Event]]:
    """Events of a kind that ran in the iterations of a window's micro-batches, by place."""
    tokens = set(window.micros)
    out: dict[Span, list[Event]] = {}
    for event in view.run.events:
        if event.kind == kind and event.micro in tokens:
            out.setdefault(event.span, []).append(event)
    return out


def every_micro(window: Window, events: list[Event]) -> bool:
    """True when events ran in each micro-batch of a window."""
    return {e.micro for e in events} >= set(window.micros)


def later_micros(window: Window, mark: Mark) -> set[int]:
    """Micro-batches that add to the gradient only after a mark."""
    before = {e.micro for e in window.step.applied if e.seq < mark.seq}
    return {e.micro for e in window.step.applied if e.seq > mark.seq} - before


def calls(view: View) -> Iterator[p.Call]:
    """Every call of the program."""
    yield from view.static.calls


def program_nodes(view: View) -> Iterator[p.Node]:
    """Every node of the program."""
    yield from view.static.everything()


def divides_by(view: View, number: int, settings: frozenset[str] = frozenset()) -> int:
    """How often the program divides by a number or one of some settings, or multiplies by the inverse."""
    names = {path_terminal(s) for s in settings} - {""}
    count = 0
    for node in program_nodes(view):
        if isinstance(node, p.BinOp):
            op, right = node.op, node.right
        elif isinstance(node, p.AugAssign):
            op, right = node.op, node.value
        else:
            continue
        constant = right.value if isinstance(right, p.Const) else None
        count += op == "/" and (constant == number or terminal(right) in names)
        count += op == "*" and constant is not None and constant == 1 / number
    return count


_SWITCHES = frozenset({"set_requires_gradient_sync", "disable_allreduce", "enable_allreduce"})
"""The own switches of FSDP2 and of apex."""
_REDUCES = re.compile(r"all_?reduce|sync_grad|average_grad|reduce_grad|grad\w*_sync\b|mean_grad", re.I)


def reduces_by_hand(view: View) -> bool:
    """True when the program all-reduces gradients itself."""
    return view.static.once("gradients are all-reduced by hand", lambda: _reduces(view))


def _reduces(view: View) -> bool:
    for call in calls(view):
        name = terminal(call.func)
        if name in _SWITCHES:
            continue
        if _REDUCES.search(name):
            spelled = " ".join([*(p.text(a.value) for a in call.args), name.replace("all_reduce", "")])
            if re.search(r"grad|param|model|\bp\b|flat|coalesced|bucket", spelled):
                return True
    return False


def recurrent(view: View, loop: p.Node) -> bool:
    """`out, state = model(x, state)`: the passes of a loop hand a state on, through which all contribute."""
    for node in view.static.walk(loop):
        if not isinstance(node, p.Assign) or not isinstance(node.value, p.Call):
            continue
        given = {p.text(a.value) for a in node.value.args}
        targets = [e for t in node.targets for e in (t.elts if isinstance(t, p.Sequence) else (t,))]
        if given & {p.text(t) for t in targets}:
            return True
    return False
