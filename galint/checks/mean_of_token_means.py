"""GA206: token-averaged losses are averaged over micro-batches of different token counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import calls, full_windows, program_nodes
from galint.run.nodes import terminal
from galint.source import Span

CODE = "GA206"
WITNESS = "even"
_TOKENS = re.compile(r"token|vocab|input_ids|\bpad|seq_?len|sentence", re.I)


def check(view: View) -> Iterator[Finding]:
    """Equal weights 1/N for losses that are means over the tokens that `ignore_index` leaves."""
    ignoring = next((c for c in calls(view) if _ignores(c) and _runs(view, c)), None)
    if ignoring is None or not _about_tokens(view) or not _masks(view, ignoring):
        return
    seen: set[Span] = set()
    for window in full_windows(view):
        for entry in window.step.first_of_each():
            own = view.coefficient(entry)
            if entry.span in seen or entry.facts.summed or own.value != Fraction(1, len(window.micros)):
                continue
            if own.symbols or "?" in entry.facts.hidden:
                continue
            seen.add(entry.span)
            yield Finding(
                CODE,
                entry.span,
                f"each micro-batch weighs 1/{len(window.micros)} whatever its number of unmasked tokens: the large "
                "batch averages over all tokens; sum the losses and divide by the window's token count",
                step=window.step,
                window=len(window.micros),
                related=((ignoring.span, "the loss averages over the tokens that are left"), *view.places(window.step)),
            )


def _runs(view: View, call: p.Call) -> bool:
    """Whether the run came through the function that holds a call: an evaluation's criterion is not the training loss."""
    holders = [f for group in view.static.functions.values() for f in group if view.static.holds(f, call)]
    return not holders or any(id(f) in view.run.executed for f in holders)


def _ignores(call: p.Call) -> bool:
    """A cross entropy that leaves tokens out and averages over the rest."""
    if terminal(call.func) not in {"cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"}:
        return False
    words = {a.keyword: p.text(a.value) for a in call.args if a.keyword}
    return "ignore_index" in words and words.get("reduction", "'mean'").strip("'\"") == "mean"


def _masks(view: View, call: p.Call) -> bool:
    """True when padding or a label set to the ignored value shows that tokens are really left out."""
    ignored = next(a.value for a in call.args if a.keyword == "ignore_index")
    spelled = p.text(ignored)
    return "pad" in spelled.lower() or (spelled == "-100" and _spelled(view, "-100") > 1)


def _spelled(view: View, text: str) -> int:
    return sum(1 for node in program_nodes(view) if isinstance(node, p.Expr) and p.text(node) == text)


def _about_tokens(view: View) -> bool:
    for node in program_nodes(view):
        name = node.id if isinstance(node, p.Name) else node.name if isinstance(node, p.Attr) else ""
        if name and _TOKENS.search(name):
            return True
    return False
