"""GA202: the loss is divided by N twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from galint.checks.finding import Finding
from galint.checks.scaling import names_n
from galint.checks.view import View
from galint.checks.windows import Window, calls, divides_by, full_windows
from galint.ledger import Coefficient, Entry
from galint.run.nodes import terminal
from galint.source import Span

CODE = "GA202"
WITNESS = "even"
_N = re.compile(r"accum|update_freq|grad_acc|gas\b", re.I)


def check(view: View) -> Iterator[Finding]:
    """A full window whose every coefficient is 1/N², or 1/N of a division that a framework repeats."""
    seen: set[Span] = set()
    for window in full_windows(view):
        if len(window.micros) != window.n or (len(view.ledgers) > 1 and not view.lone(window.ledger)):
            continue
        keys = view.n_keys(window.ledger)
        for entry in window.step.first_of_each():
            helper = _helper(view, entry)
            if entry.span in seen or (entry.facts.summed and not helper) or not _twice(view, window, entry, helper):
                continue
            if any(names_n(view, key, keys) for key in entry.facts.hidden):
                continue
            if "?" in entry.facts.hidden and (window.literal or not helper or view.run.facts.get("driven")):
                continue  # with a helper both divisions were seen, whatever else the loss is made of
            if helper and not _sure_of(view, window, entry, helper):
                continue
            seen.add(entry.span)
            own = _largest(view, entry).value
            hand = Fraction(1, window.n) / abs(own) if own else Fraction(window.n)
            engines = "DeepSpeed" not in helper or hand in {1, window.n}  # else a number of its own
            named, share = (window.named, window.n) if engines else (str(hand), hand)
            ways = f"by hand and again by {helper}" if helper else "twice"
            yield Finding(
                CODE,
                entry.span,
                f"the loss is divided by {named} {ways}: the applied gradient is 1/{share} of the large batch's",
                step=window.step,
                window=window.n,
                related=view.places(window.step),
                assumptions=("the loss averages over the samples of its micro-batch",),
            )


def _helper(view: View, entry: Entry) -> str:
    if "accelerate" in entry.facts.keys:
        return "`accelerator.backward`"
    if "mmengine" in entry.facts.keys:
        return "the OptimWrapper"
    return "DeepSpeed's engine" if "deepspeed" in entry.facts.keys else ""


def _twice(view: View, window: Window, entry: Entry, helper: str) -> bool:
    n, own = window.n, _largest(view, entry)
    if not helper:
        # Each of several passes over one micro-batch has its share of the loss.
        own = own.times(window.step.passes(entry))
    if abs(own.value) == Fraction(1, n * n):
        # One division may divide by N squared or by something that happens to be as large.
        wanted = 1 if helper else 2
        sure = not window.literal and not view.scenario.choices  # then two values of N agree
        return sure or divides_by(view, n, entry.facts.keys | {window.label}) >= wanted
    if "DeepSpeed" in helper and not own.symbols and own.value and (hand := Fraction(1, n) / abs(own.value)) > 1:
        return hand.denominator == 1 and any(map(_N.search, entry.facts.keys))
    if helper and abs(own.value) == Fraction(1, n):
        return any(exponent == -1 and _N.search(name) for name, exponent in own.symbols)
    return False


def _largest(view: View, entry: Entry) -> Coefficient:
    """The coefficient of the loss's heaviest addend; weighted regularisers are lighter."""
    own = view.coefficient(entry)
    terms = [c.substitute(view.known) for c in entry.facts.terms]
    return max(terms, key=lambda c: abs(c.value)) if own in terms else own


def _sure_of(view: View, window: Window, entry: Entry, helper: str) -> bool:
    """True when the framework's own N is visible, or the very number that the script divides by."""
    if "DeepSpeed" in helper:
        # An engine stepped on every micro-batch accumulates by its own N; a guarded one leaves N to the script.
        return not any(guard.moduli for guard in window.step.guards)
    if "OptimWrapper" in helper:
        return not entry.coefficient.substitute(view.known).symbols
    if view.run.facts.get("framework_n"):
        return True  # the Trainer gives its Accelerator the very N by which it steps
    for call in calls(view):
        if terminal(call.func) == "Accelerator" and any(
            a.keyword in {"gradient_accumulation_steps", "gradient_accumulation_plugin"} for a in call.args
        ):
            return True
    own = {k for k in entry.facts.keys if view.run.roles.get(k) == "window"}
    symbols = {name for name, _ in entry.coefficient.symbols}
    return bool(own) and not symbols and all(k.endswith("accelerator.gradient_accumulation_steps") for k in own)
