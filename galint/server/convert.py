"""Findings as protocol diagnostics, and edits as workspace edits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types

from galint.diagnostic import Diagnostic, Edit, Related
from galint.pages import folder
from galint.rule import Severity
from galint.server.documents import Encoding, Page, to_range
from galint.server.study import Study
from galint.source import Source

_SEVERITY = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
_FADED = {"GA001", "GA203"}
"""Rules about code that has no effect: editors grey it out."""


def diagnostics(study: Study, encoding: Encoding) -> dict[str, list[types.Diagnostic]]:
    """Document or cell → its diagnostics; every part of the page is a key, so that old ones are cleared."""
    out: dict[str, list[types.Diagnostic]] = {uri: [] for uri, _, _ in study.page.parts}
    for d in study.report.diagnostics:
        uri, _ = study.page.locate(d.span)
        out[uri].append(diagnostic(d, study, encoding))
    return out


def diagnostic(d: Diagnostic, study: Study, encoding: Encoding) -> types.Diagnostic:
    """One finding; `data` holds the formulas and what a run measured."""
    page = study.page
    uri, span = page.locate(d.span)
    measured = study.confirmed.get((d.code, d.span))
    pages = folder()
    return types.Diagnostic(
        range=to_range(span, page.lines[uri], encoding),
        message=message(d, measured),
        severity=_SEVERITY[d.severity],
        code=d.code,
        code_description=types.CodeDescription((pages / f"{d.code}-{d.name}.md").as_uri()) if pages else None,
        source="galint",
        tags=[types.DiagnosticTag.Unnecessary] if d.code in _FADED else None,
        related_information=[_related(r, page, encoding) for r in d.related] or None,
        data={
            "name": d.name,
            "applied": d.applied,
            "expected": d.expected,
            "assumptions": list(d.assumptions),
            "configuration": d.configuration,
            "measured": measured,
        },
    )


def message(d: Diagnostic, measured: str | None = None) -> str:
    """The message with the two formulas, the configuration and what a run measured below it."""
    out = d.message
    if d.applied is not None and d.expected is not None:
        out += f"\napplied: {d.applied}\nlarge batch: {d.expected}"
    if d.configuration:
        out += f"\nholds {d.configuration}"
    for assumption in d.assumptions:
        out += f"\nassumes {assumption}"
    return f"{out}\n{measured}" if measured else out


def _related(r: Related, page: Page, encoding: Encoding) -> types.DiagnosticRelatedInformation:
    if r.filename is None or r.filename == page.filename:
        uri, span = page.locate(r.span)
        lines = page.lines[uri]
    else:
        path, span = Path(r.filename).absolute(), r.span
        uri = path.as_uri()
        try:
            lines = Source.read(path).lines
        except Exception:  # gone or unreadable: columns then count as the file's own
            lines = [" " * max(span.column, span.end_column)] * span.end_row
    return types.DiagnosticRelatedInformation(types.Location(uri, to_range(span, lines, encoding)), r.message)


def workspace_edit(edits: Iterable[Edit], page: Page, encoding: Encoding, versioned: bool) -> types.WorkspaceEdit:
    """Edits of the page's text; `versioned` lets the client refuse them when its text has moved on."""
    by_uri: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        uri, inner = page.locate_edit(edit)
        where = to_range(inner.span, page.lines[uri], encoding)
        by_uri.setdefault(uri, []).append(types.TextEdit(where, inner.content))
    if not versioned:
        return types.WorkspaceEdit(changes=by_uri)
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=page.version(uri)), list(text_edits)
            )
            for uri, text_edits in by_uri.items()
        ]
    )
