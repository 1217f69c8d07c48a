"""Inlay hints and hovers: the gradient each step applies, each backward's share, and a finding's rule page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lsprotocol import types

from galint.config.selectors import find_rule
from galint.diagnostic import Diagnostic
from galint.explain import LoopView, listed
from galint.pages import page as rule_page
from galint.render.explain_text import title
from galint.server.convert import message
from galint.server.documents import Encoding, to_range
from galint.server.study import Study
from galint.source import Span

_LABEL = 60
"""Characters of an inlay hint."""
_DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, slots=True)
class Note:
    """What is said behind a call: a short label, and a longer text in Markdown."""

    span: Span
    label: str
    detail: str


def pretty(formula: str) -> str:
    """`(g1 + g2)/4` as `(g₁+g₂)/4`."""
    out, digits = "", False
    for char in formula.replace(" + ", "+"):
        digits = (digits or out.endswith("g")) and char.isdigit()
        out += char.translate(_DIGITS) if digits else char
    return out


def notes(study: Study) -> list[Note]:
    """A note for each optimizer step and each backward of the loops that accumulate."""
    out: dict[tuple[Span, str], Note] = {}
    for view in study.views:
        windows = [w for _, w in listed(view)]
        if view.file or not any(len(w.rows) > 1 or w.verdict == "different" for w in windows):
            continue
        for note in (*_steps(view), *_shares(view)):
            out.setdefault((note.span, note.label), note)
    return sorted(out.values(), key=lambda note: (note.span, note.label))


def _steps(view: LoopView) -> Iterator[Note]:
    """What each step applies in the usual configuration; the tooltip says the rest."""
    spans = {w.step for _, w in listed(view) if w.step is not None}
    for span in spans:
        here = [(label, w) for label, w in listed(view) if w.step == span]
        usual = [w.applied for label, w in here if not label] or [here[0][1].applied]
        labels = list(dict.fromkeys(map(pretty, usual)))
        shown = " then ".join(labels[:2]) + (" …" if len(labels) > 2 else "")
        mark = "" if all(w.verdict != "different" for label, w in here if not label) else " ≠ large batch"
        lines = []
        for label, w in here[:6]:
            lines.append(f"{title(w)}{', ' + label if label else ''}:")
            lines.append(f"- applied: `{w.applied}`\n- large batch: `{w.expected}`\n")
        if view.batch is not None:
            lines.append(f"effective batch: {view.batch}")
        yield Note(span, f"⟵ {_short(shown)}{mark}", "\n".join(lines))


def _shares(view: LoopView) -> Iterator[Note]:
    shares: dict[Span, list[str]] = {}
    for label, window in listed(view):
        for row in window.rows if not label else ():
            for h in row.happenings:
                if h.kind == "backward" and not h.file and row.share:
                    share = f"×{row.share}" + (" · loss scale" if row.scaled_loss else "")
                    known = shares.setdefault(h.span, [])
                    if share not in known:
                        known.append(share)
    for span, known in shares.items():
        text = " or ".join(known[:3])
        said = text.replace(" · ", ", times the ").replace("×", "times ")
        yield Note(span, _short(text), f"each backward adds its micro-batch's gradient {said}")


def _short(label: str) -> str:
    """A label that leaves the line readable; the tooltip has the whole formula."""
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"


def inlay(study: Study, uri: str, wanted: types.Range, encoding: Encoding) -> list[types.InlayHint]:
    """The notes of a document or cell in a range, as inlay hints."""
    out = []
    for note in notes(study):
        where, span = study.page.locate(note.span)
        if where != uri:
            continue
        end = to_range(span, study.page.lines[uri], encoding).end
        if not wanted.start.line <= end.line <= wanted.end.line:
            continue
        tooltip = types.MarkupContent(types.MarkupKind.Markdown, note.detail)
        out.append(types.InlayHint(position=end, label=note.label, tooltip=tooltip, padding_left=True))
    return out


def hover(study: Study, row: int, column: int, encoding: Encoding) -> types.Hover | None:
    """The page of the finding at a place of the page's text, else the note of the step or backward there."""
    parts: list[str] = []
    at: Span | None = None
    for d in study.report.diagnostics:
        if _holds(d.span, row, column):
            at = at or d.span
            parts.append(_finding(d, study))
    here = [n for n in notes(study) if _holds(n.span, row, column)] or [
        n for n in notes(study) if n.span.row <= row <= n.span.end_row and not parts
    ]
    for note in here:
        at = at or note.span
        parts.insert(0, f"**{note.label}**\n\n{note.detail}")
    if at is None:
        return None
    uri, span = study.page.locate(at)
    body = types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(parts))
    return types.Hover(body, to_range(span, study.page.lines[uri], encoding))


def _holds(span: Span, row: int, column: int) -> bool:
    return (span.row, span.column) <= (row, column) <= (span.end_row, span.end_column)


def _finding(d: Diagnostic, study: Study) -> str:
    said = message(d, study.confirmed.get((d.code, d.span))).replace("\n", "  \n")
    page = rule_page(find_rule(d.code)).partition("\n\n")[2]  # without its heading, which this one replaces
    return f"**{d.code} {d.name}** ({d.severity})\n\n{said}\n\n{page}"
