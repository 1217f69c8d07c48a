"""`lint(source, config) -> Report`: parse, run on paper, check. No printing, no I/O but project imports."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from galint import program as p
from galint import suppress
from galint.checks.all import CHECKS, Check
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.config import Config
from galint.diagnostic import Diagnostic, NotUnderstood, Related, Report
from galint.errors import ParseError, SourceError, TooComplex
from galint.explain import LoopView, acquitted, at_line, views
from galint.registry import RULES
from galint.run.explore import EntryRuns, Exploration, Explorer, negation
from galint.run.facts import RunResult
from galint.run.project import STRIDE, Linked, Project
from galint.run.static import BACKWARD, STEP, Static, children, terminal
from galint.semantics.configured import configured
from galint.source import Source, Span
from galint.syntax import deep, parse

_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages are no project: their files are linted each on its own."""
_RULES = {rule.code: rule for rule in RULES}


@dataclass(slots=True)
class Analysis:
    """One file's program and what its runs showed."""

    program: p.Program
    static: Static
    exploration: Exploration
    sites: list[BackwardSite] = field(default_factory=list)
    project: Project | None = None
    broken: list[str] = field(default_factory=list)
    """Checks that failed inside galint, one line each."""
    found: list[Diagnostic] | None = None
    """What `diagnose` found, once it was asked."""


@dataclass(slots=True)
class BackwardSite:
    """A backward call in the text, and the loop or function that holds it."""

    span: Span
    holder: Span


def analyse(program: p.Program, config: Config, root: Path | None = None, path: Path | None = None) -> Analysis | None:
    """Run a program's loops on paper; None when it trains nothing."""
    alone = Static([program.body])
    if not _touches_gradients(program, alone):
        return None
    project = _project(program, root, path)
    bodies = [program.body, *(unit.program.body for unit in project.order)] if project is not None else [program.body]
    static = Static(bodies) if len(bodies) > 1 else alone
    sites = backward_sites(program, static)
    if not sites and not any(BACKWARD in static.tags(node) for node in _own_code(program)):
        return Analysis(program, static, Exploration(static), [], project) if project is not None else None
    if project is not None and project.order:
        explorer = Explorer(program, static, Linked, project=project)
    else:
        explorer = Explorer(program, static)
    with configured(config):
        return Analysis(program, static, explorer.explore(), sites, project)


def _own_code(program: p.Program) -> Iterator[p.Stmt]:
    """The statements of a file and the methods of its classes."""
    for stmt in program.body:
        yield stmt
        if isinstance(stmt, p.ClassDef):
            yield from stmt.body


def _touches_gradients(program: p.Program, static: Static) -> bool:
    """Whether a file runs, steps, clears, wraps or clips anything itself; others need no run and no imports."""
    if any(static.tags(stmt) for stmt in program.body):
        return True
    return any(static.tags(func) for group in static.functions.values() for func in group)


def _project(program: p.Program, root: Path | None, path: Path | None) -> Project | None:
    """The project files that a program imports; None where there is no root to stay inside."""
    if root is None or path is None or _INSTALLED & set(path.parts):
        return None
    project = Project(root.absolute(), path.absolute(), parse)
    project.collect(program)
    return project


def lint(source: Source, config: Config, root: Path | None = None) -> Report:
    """The findings of one file, suppressed ones left out, and the counts of its loops."""
    return _linted(source, config, root)[0]


@deep()
def study(
    source: Source, config: Config, root: Path | None = None, parser: Callable[[str], p.Program] = parse
) -> tuple[Report, list[LoopView]]:
    """What `lint` and `explain` say of one file, from one analysis; no loops where it is not valid Python.

    `parser` may know an earlier text of the file and parse only what changed.
    """
    report, analysis = _linted(source, config, root, parser)
    return report, _views(analysis, source, report)


@deep()
def explain(source: Source, config: Config, root: Path | None = None, line: int | None = None) -> list[LoopView]:
    """What each training loop does, or only the loop at a 1-based `line`. Raises ParseError."""
    program = parse(source.text)
    analysis = analyse(program, config, root, source.path)
    loops = _views(analysis, source, Report(files=1))
    return loops if line is None else at_line(loops, line)


def _views(analysis: Analysis | None, source: Source, report: Report) -> list[LoopView]:
    if analysis is None:
        return []
    understood = _count(analysis, source, report)
    missed = [(loop.span, loop.reason) for loop in report.not_understood]
    loops = views(analysis.exploration, analysis.program, source.filename, source.lines, understood, missed)
    if analysis.found is None:
        diagnose(analysis, source)
    return [view if _accused(view, analysis.found or ()) else acquitted(view) for view in loops]


def _accused(view: LoopView, found: Iterable[Diagnostic]) -> bool:
    """Whether a finding about an applied gradient speaks of a loop, whether it is shown or not."""
    for d in found:
        rows = {d.span.row, *(r.span.row for r in d.related)}
        if d.applied is not None and any(row >= STRIDE or view.span.row <= row <= view.end_row for row in rows):
            return True
    return bool(view.file)


@deep()
def _linted(
    source: Source, config: Config, root: Path | None, parser: Callable[[str], p.Program] = parse
) -> tuple[Report, Analysis | None]:
    report = Report(files=1)
    selected = config.codes_for(source.path)
    try:
        program = parser(source.text)
    except TooComplex as error:
        report.followed = []
        span = Span(error.row, error.column - 1, error.row, error.column)
        report.loops, report.not_understood = 1, [NotUnderstood(source.filename, span, error.message)]
        return report, None
    except ParseError as error:
        report.followed = []
        if "GA000" in selected:
            span = Span(error.row, max(error.column - 1, 0), error.row, error.column)
            found = Diagnostic("GA000", "syntax-error", _RULES["GA000"].severity, error.message, source.filename, span)
            report.diagnostics = [found]
        return report, None
    try:
        analysis = analyse(program, config, root, source.path)
    except RecursionError:
        span = program.body[0].span
        report.loops, report.not_understood = 1, [NotUnderstood(source.filename, span, "the code nests too deeply")]
        return report, None
    if analysis is not None:
        _count(analysis, source, report)
        found_all = [d for d in diagnose(analysis, source) if d.code in selected]
        report.diagnostics = [d for d in found_all if d.span.row < STRIDE]
        report.elsewhere = _elsewhere(analysis, [d for d in found_all if d.span.row >= STRIDE], source)
        report.internal_errors += sorted(set(analysis.broken))
        if analysis.project is not None:
            report.followed = sorted(map(str, analysis.project.touched))
    if analysis is None or analysis.project is None:
        report.followed = []
    report.diagnostics = suppress.apply(
        report.diagnostics, source.text, program.comments, filename=source.filename, selected=selected
    )
    report.diagnostics.sort(key=lambda d: (d.span, d.code))
    return report, analysis


# --- findings ----------------------------------------------------------------------------------


def diagnose(analysis: Analysis, source: Source) -> list[Diagnostic]:
    """Every finding that holds for all its witnesses."""
    found: dict[tuple[str, Span], Diagnostic] = {}
    for entry in analysis.exploration.entries:
        for check in CHECKS:
            for finding, configuration in _of_entry(analysis, entry, check):
                key = (finding.code, finding.span)
                if key not in found or (found[key].configuration and not configuration):
                    found[key] = _diagnostic(finding, configuration, source, analysis)
    off = {span for code, span in found if code == "GA401"}
    wiped = {span for code, span in found if code == "GA101"}
    piling = {r.span for (code, _), d in found.items() if code == "GA102" for r in d.related}
    # Where the cadence itself is off, or every window is cleared there or none ever, the tail follows from it.
    analysis.found = [
        d
        for (code, span), d in found.items()
        if not (code in {"GA402", "GA403"} and span in off)
        and not (code == "GA403" and any(r.span in wiped for r in d.related))
        and not (code == "GA402" and any(r.span in piling for r in d.related))
    ]
    return analysis.found


def _of_entry(analysis: Analysis, entry: EntryRuns, check: Check) -> list[tuple[Finding, str | None]]:
    if check.witness == "rare":
        return [(finding, None) for _, run in entry.rares for finding in _run(analysis, run, check)]
    even = check.witness == "even"
    main = entry.base if even else entry.tail
    out: list[tuple[Finding, str | None]] = []
    confirmed: set[tuple[str, Span]] | None = None
    doubtful: list[Finding] = []
    findings = _run(analysis, main, check)
    if findings and (witness := entry.other if even else entry.other_tail) is not main:
        confirmed = {(f.code, f.span) for f in _run(analysis, witness, check)}
    for finding in findings:
        if confirmed is None or (finding.code, finding.span) in confirmed:
            out.append((finding, None))
        else:
            doubtful.append(finding)
    if doubtful and check.code == "GA401" and entry.third is not None:
        # A counter that moves by two is right for an odd N and wrong for an even one.
        again = {(f.code, f.span) for f in _run(analysis, entry.third, check)}
        out += [(f, None) for f in doubtful if (f.code, f.span) in again]
    if check.witness == "tail" and entry.beyond is not None:
        seen = {(f.code, f.span) for f, _ in out}
        longer = [f for f in _run(analysis, entry.beyond, check) if (f.code, f.span) not in seen]
        if longer and entry.other_beyond is not None:
            agreed = {(f.code, f.span) for f in _run(analysis, entry.other_beyond, check)}
            out += [(f, None) for f in longer if (f.code, f.span) in agreed]
    if check.witness == "even":
        flipped = [(label, _run(analysis, run, check)) for label, run in entry.flips]
        asked = {
            k: v for run in (*(r for _, r in entry.flips), entry.base) for k, v in run.facts.get("asked", {}).items()
        }
        out = [(finding, _needs(finding, flipped, asked)) for finding, _ in out]
        seen = {(f.code, f.span) for f, _ in out}
        for label, findings in flipped:
            for finding in findings:
                if (finding.code, finding.span) not in seen:
                    seen.add((finding.code, finding.span))
                    out.append((finding, _when(label, asked)))
    return out


def _needs(
    finding: Finding, flipped: list[tuple[str, list[Finding]]], asked: dict[str, tuple[str, bool]]
) -> str | None:
    """The configuration a finding needs: the choice whose flip makes it go away."""
    for label, findings in flipped:
        if all((f.code, f.span) != (finding.code, finding.span) for f in findings):
            return _when(negation(label), asked)
    return None


def _when(label: str, asked: dict[str, tuple[str, bool]]) -> str:
    """A configuration in the words of the code: `asked` maps a condition's key to its text and whether that negates it."""
    truth = not label.startswith("not ")
    text, negated = asked.get(label.removeprefix("not "), (label.removeprefix("not "), False))
    truth = truth != negated
    while text.startswith("not ") and " and " not in text and " or " not in text:
        text, truth = text[4:], not truth
    return f"when `{text}` is {'true' if truth else 'false'}"


def _run(analysis: Analysis, run: RunResult, check: Check) -> list[Finding]:
    try:
        return list(check.run(View(run, analysis.static, analysis.program)))
    except Exception as error:  # one broken check must not hide what the others found
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        analysis.broken.append(f"{check.code}: {type(error).__name__}: {error}{place}")
        return []


def _elsewhere(analysis: Analysis, found: list[Diagnostic], source: Source) -> list[Diagnostic]:
    """Findings that this file's run shows in files it imports, suppressed ones left out."""
    out: list[Diagnostic] = []
    if analysis.project is None:
        return out
    by_file: dict[Path, list[Diagnostic]] = {}
    for diagnostic in found:
        path, span = analysis.project.where(diagnostic.span)
        if path is not None:
            by_file.setdefault(path, []).append(replace(diagnostic, filename=_shown(path, source), span=span))
    for path, diagnostics in by_file.items():
        try:
            text = Source.read(path).text
        except SourceError:
            continue
        out += suppress.apply(diagnostics, text, filename=diagnostics[0].filename, selected=())
    return out


def _shown(path: Path, source: Source) -> str:
    """A followed file's name, spelled the way the linted file's is."""
    if source.path is None or Path(source.filename).is_absolute():
        return str(path)
    return os.path.relpath(path, source.path.absolute().parent / os.path.relpath(".", Path(source.filename).parent))


def _diagnostic(finding: Finding, configuration: str | None, source: Source, analysis: Analysis) -> Diagnostic:
    rule = _RULES[finding.code]
    applied, expected = finding.applied, finding.expected
    if finding.step is not None and applied is None:
        run = _run_of(analysis, finding)
        if run is not None:
            view = View(run, analysis.static, analysis.program)
            applied = view.applied(finding.step)
    if finding.step is not None and expected is None:
        run = _run_of(analysis, finding)
        if run is not None:
            expected = View(run, analysis.static, analysis.program).expected(finding.step, finding.window)
    message = spelled(finding.message)
    related: dict[Span, Related] = {}
    for span, note in finding.related:
        if span == finding.span:
            continue
        path, own = analysis.project.where(span) if analysis.project is not None else (None, span)
        here, _ = analysis.project.where(finding.span) if analysis.project is not None else (None, span)
        related.setdefault(
            span,
            Related(own, spelled(note), None if path == here else _shown(path, source) if path else source.filename),
        )
    return Diagnostic(
        finding.code,
        rule.name,
        rule.severity,
        message,
        source.filename,
        finding.span,
        applied or None,
        expected or None,
        tuple(related.values()),
        finding.assumptions,
        configuration,
    )


def spelled(message: str) -> str:
    """A message without the run's own names for things that the code does not name."""
    message = re.sub(r"#\d+'*\.", "self.", message)
    return re.sub(r"`#\d+'*`", "the optimizer", re.sub(r"(`[\w.]+)'+`", r"\1`", message))


def _run_of(analysis: Analysis, finding: Finding) -> RunResult | None:
    for entry in analysis.exploration.entries:
        for run in entry.made():
            for ledger in run.ledgers.values():
                if any(s is finding.step for s in ledger.steps):
                    return run
    return None


# --- counting ----------------------------------------------------------------------------------


def backward_sites(program: p.Program, static: Static) -> list[BackwardSite]:
    """The backward calls of a file with the innermost loop or function around each."""
    out: list[BackwardSite] = []
    stack: list[tuple[p.Node, Span]] = [(stmt, stmt.span) for stmt in reversed(program.body)]
    while stack:
        node, holder = stack.pop()
        kind = type(node)
        if kind is p.Call:
            assert isinstance(node, p.Call)
            func = node.func
            if isinstance(func, p.Attr) and func.name in {"backward", "manual_backward"}:
                own = isinstance(func.value, p.Name) and func.value.id == "self" and func.name in static.functions
                if not own and terminal(func.value) not in {"ctx", "super", "Function"}:
                    out.append(BackwardSite(node.span, holder))
        elif isinstance(node, p.FunctionDef):
            if node.name in {"backward", "setup_context"} and any("ctx" in q.name for q in node.params[:2]):
                continue  # a torch.autograd.Function
            holder = node.span
        elif kind is p.For or kind is p.While:
            holder = node.span
        stack += [(child, holder) for child in reversed(children(node))]
    return out


def _loop_nodes(analysis: Analysis) -> dict[Span, p.Node]:
    out: dict[Span, p.Node] = {}
    for stmt in analysis.program.body:
        for node in analysis.static.walk(stmt):
            if isinstance(node, p.For | p.While):
                out[node.span] = node
    return out


def _runs(analysis: Analysis) -> list[RunResult]:
    return [run for e in analysis.exploration.entries for run in (e.base, *(r for _, r in e.flips))]


def loops_understood(analysis: Analysis) -> dict[Span, set[Span]]:
    """Loop header → the backward calls whose gradients an optimizer step was seen to apply."""
    out: dict[Span, set[Span]] = {}
    for run in _runs(analysis):
        for ledger in run.ledgers.values():
            for step in ledger.steps:
                for entry in [*step.applied, *(e for e, _ in step.lost)]:
                    micro = run.micros.get(entry.micro)
                    if micro is not None and micro.loop is not None:
                        out.setdefault(micro.loop, set()).add(entry.span)
                    else:
                        out.setdefault(entry.span, set()).add(entry.span)
    return out


def _called_from(analysis: Analysis, understood: dict[Span, set[Span]]) -> set[Span]:
    """The functions that understood loops call, on any of their branches."""
    static = analysis.static
    out: set[Span] = set()
    work: list[p.Node] = [node for span, node in _loop_nodes(analysis).items() if span in understood]
    while work:
        for call in static.calls_in(work.pop()):
            for func in static.callees(call):
                if func.span not in out:
                    out.add(func.span)
                    work.append(func)
    return out


def _count(analysis: Analysis, source: Source, report: Report) -> set[Span]:
    """Fills the report's counts and returns the loops that are understood."""
    understood = loops_understood(analysis)
    covered = {span for spans in understood.values() for span in spans}
    executed = {b.span for run in _runs(analysis) for b in run.backwards}
    steps = any(STEP in analysis.static.tags(s) for s in analysis.program.body) or any(
        STEP in analysis.static.tags(f) for group in analysis.static.functions.values() for f in group
    )
    wiped = {m.span for run in _runs(analysis) for ledger in run.ledgers.values() for m, _ in ledger.lost} | {
        e.span for run in _runs(analysis) for ledger in run.ledgers.values() for s in ledger.steps for e, _ in s.lost
    }
    stuck = {
        f.span
        for e in analysis.exploration.entries
        for c in CHECKS
        if c.code == "GA401"
        for f in _run(analysis, e.base, c)
    }
    missed: dict[Span, str] = {}
    escapes = [e for run in _runs(analysis) for e in run.escapes]
    stopped = {run.stopped for run in _runs(analysis) if run.stopped}
    loops = _loop_nodes(analysis)
    functions = {func.span for group in analysis.static.functions.values() for func in group}
    wrappers = {func.span for func in analysis.static.functions.get("backward", ())}
    halves = {s.holder for s in analysis.sites if s.span in covered} | _called_from(analysis, understood)
    for site in analysis.sites:
        if site.span in covered or not steps:
            continue
        node = loops.get(site.holder)
        if site.span in executed and (node is None or site.span in wiped) and understood:
            continue  # a probe whose gradient is cleared unused
        if node is None and understood and site.holder not in functions:
            continue  # a statement of its own, outside any loop
        if node is None and site.span not in executed and site.holder in halves:
            continue  # the other branch of a function that an understood loop runs
        if node is None and site.span not in executed and site.holder in wrappers:
            continue  # a library's own `backward`, which other files call
        if node is not None and any(n.span in understood for n in analysis.static.walk(node)):
            continue  # another branch of a loop that is understood
        if site.span in executed and stuck and not covered:
            understood.setdefault(site.holder, set()).add(site.span)  # understood: it never steps
            continue
        if site.span in executed:
            reason = escapes[0][1] if escapes else "its gradients reach no optimizer step that galint can see"
        else:
            reason = next(iter(stopped), "the run does not reach it")
        missed.setdefault(site.holder, reason)
    missed = {span: reason for span, reason in missed.items() if span not in understood}
    own = {span for span in understood if span.row < STRIDE}
    report.loops = len(own) + len(missed)
    report.understood = len(own)
    report.not_understood = [NotUnderstood(source.filename, span, reason) for span, reason in missed.items()]
    return own
