"""The training loops of a file as `LoopView`s: windows, configurations that differ, and what is not understood."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from galint import program as p
from galint.checks.view import View
from galint.explain.batch import effective
from galint.explain.model import Happening, LedgerView, LoopView, Variant, WindowView
from galint.explain.windows import merged, shape, windows
from galint.ledger import Guard, OptimizerLedger, Step, plain
from galint.run.explore import EntryRuns, Exploration
from galint.run.facts import RunResult
from galint.run.project import located
from galint.run.static import Static
from galint.run.summary import in_vain, parts
from galint.source import Span

_KINDS = 5
"""Windows of different shapes that are listed; more are only counted."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A loop or function of the program: its node, last row, and the function that holds it."""

    node: p.Node
    end_row: int
    function: str


def views(
    exploration: Exploration,
    program: p.Program,
    filename: str,
    lines: Sequence[str],
    understood: Iterable[Span],
    missed: Iterable[tuple[Span, str]],
) -> list[LoopView]:
    """Every training loop in order of its row.

    `understood` are the loops an optimizer step belongs to, `missed` the others with the reason.
    """
    places = _places(program)
    out = []
    for span in understood:
        runs = _best(exploration, span)
        if runs is not None:
            out.append(_loop(exploration.static, program, filename, lines, places, span, runs))
        else:
            out.append(_never(exploration, filename, lines, places, span))
    for span, reason in missed:
        place = places.get(span)
        out.append(
            LoopView(
                filename,
                span,
                place.end_row if place else span.end_row,
                _line(lines, span),
                place.function if place else "",
                False,
                reason=reason,
                reason_span=_where(exploration, reason),
            )
        )
    return sorted(out, key=lambda v: v.span)


def launched(
    exploration: Exploration, program: p.Program, others: Iterable[p.Program], understood: Iterable[Span]
) -> list[LoopView]:
    """The loops in followed files that a file's own code runs: what a launching file trains.

    `others` are the followed programs, `understood` the loops in them.
    """
    places = {span: place for other in others for span, place in _places(other).items()}
    out = []
    for span in understood:
        runs = _best(exploration, span)
        path, own = located(span)
        if runs is None or path is None:
            continue
        name = os.path.relpath(path)
        view = _loop(exploration.static, program, name, (), places, span, runs)
        place = places.get(span)
        ledgers = tuple(
            replace(x, guard=located(x.guard)[1] if x.guard is not None else None) for x in view.ledgers
        )  # what is shown are rows of the loop's file
        text = _header(place.node) if place is not None else ""
        last = place.end_row - (span.row - own.row) if place is not None else own.end_row
        out.append(replace(view, span=own, end_row=last, text=text, ledgers=ledgers, file=name))
    return sorted(out, key=lambda v: (v.file, v.span))


def _header(node: p.Node) -> str:
    """A loop's or function's first line, without the text at hand."""
    if isinstance(node, p.For):
        target = p.text(node.target)
        target = target[1:-1] if isinstance(node.target, p.Sequence) and target.startswith("(") else target
        return f"for {target} in {p.text(node.iter)}:"
    return f"while {p.text(node.test)}:" if isinstance(node, p.While) else f"def {getattr(node, 'name', '')}"


def at_line(loops: Sequence[LoopView], line: int) -> list[LoopView]:
    """The loops that `line` (1-based) belongs to: the innermost around it, else those where it acts."""
    around = [v for v in loops if v.span.row <= line <= v.end_row and not v.file]
    if around:
        innermost = min(around, key=lambda v: v.end_row - v.span.row)
        return [v for v in around if v.span == innermost.span]
    return [v for v in loops if any(h.span.row == line and not h.file for h in happenings(v))]


def happenings(view: LoopView) -> list[Happening]:
    """Everything that happens in a loop's windows, in order, each place once."""
    out: dict[tuple[str, Span, str], Happening] = {}
    for ledger in view.ledgers:
        for window in (*ledger.windows, *(w for v in ledger.variants for w in v.windows)):
            inner = [h for row in window.rows for h in row.happenings]
            for h in (*window.opening, *inner, *window.closing):
                out.setdefault((h.kind, h.span, h.file), h)
    return list(out.values())


def _places(program: p.Program) -> dict[Span, _Place]:
    out: dict[Span, _Place] = {}

    def visit(node: p.Node, inside: str) -> int:
        name = inside
        if isinstance(node, (p.FunctionDef, p.ClassDef)):
            name = f"{inside}.{node.name}" if inside else node.name
        end = node.span.end_row
        for child in node.children():
            end = max(end, visit(child, name))
        if isinstance(node, (p.For, p.While, p.FunctionDef)):
            out.setdefault(node.span, _Place(node, end, name))
        return end

    for stmt in program.body:
        visit(stmt, "")
    return out


def _never(
    exploration: Exploration, filename: str, lines: Sequence[str], places: dict[Span, _Place], span: Span
) -> LoopView:
    """A loop that galint follows to its end without an optimizer step, or without a backward before its steps."""
    place = places.get(span)
    end, function = (place.end_row, place.function) if place else (span.end_row, "")
    idle = (stmt for e in exploration.entries for stmt, _ in in_vain(e.base) if span.row <= stmt.span.row <= end)
    stmt = next(idle, None)
    why = (
        f"no backward runs unless N is 1: `{p.text(stmt.test)}`" if stmt is not None else "no optimizer step ever runs"
    )
    return LoopView(filename, span, end, _line(lines, span), function, True, reason=why)


def _line(lines: Sequence[str], span: Span) -> str:
    return lines[span.row - 1].strip() if 1 <= span.row <= len(lines) else ""


def _where(exploration: Exploration, reason: str) -> Span | None:
    for entry in exploration.entries:
        for run in (entry.base, *(r for _, r in entry.flips)):
            for span, why in run.escapes:
                if why == reason:
                    return span
    return None


def _loops_of(run: RunResult, step: Step) -> set[Span]:
    """The loops whose micro-batches a step applied or lost, spelled as the engine counts loops."""
    out: set[Span] = set()
    for entry in [*step.applied, *(e for e, _ in step.lost)]:
        micro = run.micros.get(entry.micro)
        out.add(micro.loop if micro is not None and micro.loop is not None else entry.span)
    return out


def _steps_here(run: RunResult, span: Span) -> bool:
    return any(span in _loops_of(run, s) for ledger in run.ledgers.values() for s in ledger.steps)


def _best(exploration: Exploration, span: Span) -> EntryRuns | None:
    for entry in exploration.entries:
        if _steps_here(entry.base, span):
            return entry
    for entry in exploration.entries:
        if any(_steps_here(run, span) for _, run in entry.flips):
            return entry
    return None


def _loop(
    static: Static,
    program: p.Program,
    filename: str,
    lines: Sequence[str],
    places: dict[Span, _Place],
    span: Span,
    runs: EntryRuns,
) -> LoopView:
    place = places.get(span)
    main, circumstances = runs.base, ""
    if not _steps_here(main, span):
        circumstances, main = next((label, run) for label, run in runs.flips if _steps_here(run, span))
    view = View(main, static, program)
    ledgers: list[LedgerView] = []
    for ledger in view.ledgers:
        if any(span in _loops_of(main, s) for s in ledger.steps):
            shown = _ledger(view, ledger, runs, span, lines)
            if not any(_says_no_more(shown, other) for other in ledgers):
                ledgers.append(shown)
    n = max(
        (
            w_len
            for g in ledgers
            for w_len in [g.n or max(_joined(w) for w in g.windows if w.step is not None or len(g.windows) == 1)]
        ),
        default=1,
    )
    label = next((g.n_label for g in ledgers if g.n_label), "")
    micro = next((m for m in main.micros.values() if m.loop == span), None)
    assumptions = [_when(circumstances)] if circumstances else []
    assumptions += [f"{key} = {value}" for key, value in sorted(main.scenario.values.items())]
    return LoopView(
        filename,
        span,
        place.end_row if place else span.end_row,
        _line(lines, span),
        place.function if place else runs.entry.name if runs.entry.function is not None else "",
        True,
        tuple(ledgers),
        effective(static, program, main, place.node if place else None, n, label),
        assumptions=tuple(assumptions),
        file=micro.file if micro is not None else "",
    )


def _says_no_more(new: LedgerView, known: LedgerView) -> bool:
    """Whether an optimizer that a second call constructs anew does just what the first one did."""
    stepping = {shape(w) for w in new.windows if w.step is not None}
    return new.optimizer == known.optimizer and stepping <= {shape(w) for w in known.windows}


def _joined(window: WindowView) -> int:
    """The micro-batches whose gradients stand together in a window."""
    return max(1, sum(row.fate != "discarded" for row in window.rows))


def _ledger(view: View, ledger: OptimizerLedger, runs: EntryRuns, loop: Span, lines: Sequence[str]) -> LedgerView:
    cadence = view.cadence(ledger)
    shown = merged(windows(view, ledger, loop))
    known = [shape(w) for w in shown]
    variants = []
    others = [(_tail_label(runs), runs.tail)] if runs.tail is not view.run else []
    others += [(_when(label), run) for label, run in runs.flips if run is not view.run]
    for label, run in others:
        other = next((x for x in run.ledgers.values() if x.name == ledger.name), None)
        if other is None or not other.steps:
            continue
        seen = merged(windows(View(run, view.static, view.program), other, loop))
        new = [w for w in seen if shape(w) not in known]
        if new:
            known += [shape(w) for w in new]
            variants.append(Variant(label, tuple(new[:_KINDS])))
    guard = cadence.guard if cadence is not None else None
    return LedgerView(
        _name(view, ledger),
        cadence.n if cadence is not None else None,
        cadence.label if cadence is not None and not cadence.label.isdigit() else "",
        guard.span if guard is not None else None,
        _spelled(guard, lines) if guard is not None else "",
        guard is not None and guard.negated,
        tuple(shown[:_KINDS]),
        tuple(variants),
        max(0, len(shown) - _KINDS),
    )


def _spelled(guard: Guard, lines: Sequence[str]) -> str:
    """A guard as the file writes it, when it is of this file and on one line."""
    span = guard.span
    if span.row == span.end_row and span.row <= len(lines):
        written = re.sub(r"^(?:if|elif|while)\b\s*|\s*:$", "", lines[span.row - 1][span.column : span.end_column])
        if _bare(written) == _bare(guard.text):
            return written
    return guard.text


def _bare(text: str) -> str:
    return "".join(c for c in text if c not in " ()\"'")


def _name(view: View, ledger: OptimizerLedger) -> str:
    """The optimizer as the code spells it at its step; internal object numbers are left out."""
    name = plain(ledger.name)
    head, dot, rest = name.partition(".")
    return f"self.{rest}" if head.startswith("#") and dot else name if not head.startswith("#") else "optimizer"


def _tail_label(runs: EntryRuns) -> str:
    return f"when the loader has {runs.tail.scenario.length} micro-batches, which N does not divide"


def _when(label: str) -> str:
    told = (f"`{x[4:]}` is false" if x.startswith("not ") else f"`{x}` is true" for x in parts(label))
    return "when " + " and ".join(told)


def listed(view: LoopView) -> list[tuple[str, WindowView]]:
    """Every window that a view lists with the circumstances it needs (empty for the usual ones)."""
    out: list[tuple[str, WindowView]] = []
    for ledger in view.ledgers:
        out += [("", w) for w in ledger.windows]
        out += [(variant.label, w) for variant in ledger.variants for w in variant.windows]
    return out


def acquitted(view: LoopView) -> LoopView:
    """A loop of which no check says that its gradient is wrong: then no window says so either.

    A step on one micro-batch stands for itself, whatever factor its loss has (`0.5 * criterion(…)`); what else
    looks different is the code's affair (a GAN's two losses clear each other's gradients) and is not compared.
    """

    def window(w: WindowView) -> WindowView:
        if w.verdict != "different" or w.step is None:
            return w
        alone = len(w.rows) == 1 and w.rows[0].fate == "applied" and not w.stale and not w.notes
        return replace(w, verdict="same", expected=w.applied) if alone else replace(w, verdict="unknown")

    ledgers = [
        replace(
            ledger,
            windows=tuple(map(window, ledger.windows)),
            variants=tuple(replace(v, windows=tuple(map(window, v.windows))) for v in ledger.variants),
        )
        for ledger in view.ledgers
    ]
    return replace(view, ledgers=tuple(ledgers))
