"""From an analysis to diagnostics: every check on the runs it witnesses, worded, and placed in the file it speaks of."""

from __future__ import annotations

import os
import re
import traceback
from dataclasses import replace
from pathlib import Path

from galint import suppress
from galint.analysis import Analysis
from galint.checks.all import CHECKS, Check
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.diagnostic import Diagnostic, Related
from galint.errors import SourceError
from galint.registry import RULES
from galint.run.explore import EntryRuns
from galint.run.facts import RunResult
from galint.run.project import located
from galint.run.summary import negation, parts
from galint.source import Source, Span

_RULES = {rule.code: rule for rule in RULES}


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
    # Where the cadence itself is off, or every window is cleared there, the tail follows from it.
    analysis.found = [
        d
        for (code, span), d in found.items()
        if not (code in {"GA402", "GA403"} and span in off)
        and not (code == "GA403" and any(r.span in wiped for r in d.related))
        and not (code == "GA403" and d.configuration and ("GA402", span) in found)
    ]
    return analysis.found


def _of_entry(analysis: Analysis, entry: EntryRuns, check: Check) -> list[tuple[Finding, str | None]]:
    if check.witness == "rare":
        return [(finding, None) for _, run in entry.rares for finding in checked(analysis, run, check)]
    even = check.witness == "even"
    main = entry.base if even else entry.tail
    out: list[tuple[Finding, str | None]] = []
    confirmed: set[tuple[str, Span]] | None = None
    doubtful: list[Finding] = []
    findings = checked(analysis, main, check)
    if findings and (witness := entry.other if even else entry.other_tail) is not main:
        confirmed = {(f.code, f.span) for f in checked(analysis, witness, check)}
    for finding in findings:
        if confirmed is None or (finding.code, finding.span) in confirmed:
            out.append((finding, None))
        else:
            doubtful.append(finding)
    if doubtful and check.code == "GA401" and entry.third is not None:
        # A counter that moves by two is right for an odd N and wrong for an even one.
        again = {(f.code, f.span) for f in checked(analysis, entry.third, check)}
        out += [(f, None) for f in doubtful if (f.code, f.span) in again]
    if check.witness == "tail" and entry.beyond is not None:
        seen = {(f.code, f.span) for f, _ in out}
        longer = [f for f in checked(analysis, entry.beyond, check) if (f.code, f.span) not in seen]
        if longer and entry.other_beyond is not None:
            agreed = {(f.code, f.span) for f in checked(analysis, entry.other_beyond, check)}
            out += [(f, None) for f in longer if (f.code, f.span) in agreed]
    if check.witness == "tail":
        seen = {(f.code, f.span) for f, _ in out}
        for label, side in entry.sides:
            more = [f for f, _ in _of_entry(analysis, side, check) if (f.code, f.span) not in seen]
            out += [(f, _when(label, side.base.facts.get("asked", {}))) for f in more]
            seen |= {(f.code, f.span) for f in more}
    if check.witness == "even":
        flipped = [(label, checked(analysis, run, check)) for label, run in entry.flips]
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
        if len(parts(label)) == 1 and all((f.code, f.span) != (finding.code, finding.span) for f in findings):
            return _when(negation(label), asked)
    return None


def _when(label: str, asked: dict[str, tuple[str, bool]]) -> str:
    """A configuration in the words of the code: `asked` maps a condition's key to its text and whether that negates it."""
    return "when " + " and ".join(_is(part, asked) for part in parts(label))


def _is(label: str, asked: dict[str, tuple[str, bool]]) -> str:
    truth = not label.startswith("not ")
    text, negated = asked.get(label.removeprefix("not "), (label.removeprefix("not "), False))
    truth = truth != negated
    while text.startswith("not ") and " and " not in text and " or " not in text:
        text, truth = text[4:], not truth
    return f"`{text}` is {'true' if truth else 'false'}"


def view_of(analysis: Analysis, run: RunResult) -> View:
    """The view of a run, one for all checks: what one of them has worked out, the others need not."""
    known: View | None = analysis.views.get(id(run))
    if known is None:
        known = analysis.views[id(run)] = View(run, analysis.static, analysis.program)
    return known


def checked(analysis: Analysis, run: RunResult, check: Check) -> list[Finding]:
    """What one check finds in one run; a check that breaks finds nothing, and the analysis says so in `broken`."""
    try:
        return list(check.run(view_of(analysis, run)))
    except Exception as error:  # one broken check must not hide what the others found
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        analysis.broken.append(f"{check.code}: {type(error).__name__}: {error}{place}")
        return []


def elsewhere(analysis: Analysis, found: list[Diagnostic], source: Source) -> list[Diagnostic]:
    """Findings that this file's run shows in files it imports, suppressed ones left out."""
    out: list[Diagnostic] = []
    if analysis.project is None:
        return out
    by_file: dict[Path, list[Diagnostic]] = {}
    for diagnostic in found:
        path, span = located(diagnostic.span)
        if path is not None:
            by_file.setdefault(path, []).append(replace(diagnostic, filename=shown(path, source), span=span))
    for path, diagnostics in by_file.items():
        try:
            text = Source.read(path).text
        except SourceError:
            continue
        out += suppress.apply(diagnostics, text, filename=diagnostics[0].filename, selected=())
    return out


def shown(path: Path, source: Source) -> str:
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
            view = view_of(analysis, run)
            applied = view.applied(finding.step)
    if finding.step is not None and expected is None:
        run = _run_of(analysis, finding)
        if run is not None:
            expected = view_of(analysis, run).expected(finding.step, finding.window)
    message = spelled(finding.message)
    related: dict[Span, Related] = {}
    here, _ = located(finding.span)
    for span, note in finding.related:
        if span == finding.span:
            continue
        path, own = located(span)
        related.setdefault(
            span,
            Related(own, spelled(note), None if path == here else shown(path, source) if path else source.filename),
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
