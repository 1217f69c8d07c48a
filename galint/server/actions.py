"""Code actions: apply a proved fix, fix everything that is safe, ignore a finding, confirm it by running."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import lru_cache

from lsprotocol import types

from galint.diagnostic import Applicability, Diagnostic, Edit
from galint.server import convert
from galint.server.documents import Encoding, Page
from galint.server.study import Study
from galint.source import Span

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.galint"
CONFIRM = "galint.confirm"
_PRAGMA = re.compile(r"#\s*galint:\s*ignore\[([^\]]*)\]")


def actions(
    study: Study,
    uri: str,
    rows: tuple[int, int],
    only: Sequence[str] | None,
    encoding: Encoding,
    *,
    versioned: bool,
    can_run: bool,
) -> list[types.CodeAction]:
    """What can be done about the findings in rows (first, last) of the page's text."""
    here = [d for d in study.report.diagnostics if d.span.row <= rows[1] and d.span.end_row >= rows[0]]
    out: list[types.CodeAction] = []
    if _wanted(only, types.CodeActionKind.QuickFix.value):
        for d in here:
            out += _of_finding(d, study, uri, encoding, versioned, can_run)
    if _wanted(only, FIX_ALL):
        edits = safe_edits(study.report.diagnostics, study.page)
        if edits:
            edit = convert.workspace_edit(edits, study.page, encoding, versioned)
            out.append(types.CodeAction("Fix all safe galint findings", kind=FIX_ALL, edit=edit))
    return out


def _wanted(only: Sequence[str] | None, kind: str) -> bool:
    """A requested kind also asks for the kinds below it; without a request every kind is wanted."""
    return only is None or any(kind == k or kind.startswith(f"{k}.") or k == "" for k in only)


def _of_finding(
    d: Diagnostic, study: Study, uri: str, encoding: Encoding, versioned: bool, can_run: bool
) -> Iterator[types.CodeAction]:
    shown = [convert.diagnostic(d, study, encoding)]
    kind = types.CodeActionKind.QuickFix
    fix = d.fix
    if fix is not None and fix.applicability is not Applicability.DISPLAY:
        safe = fix.applicability is Applicability.SAFE
        title = f"{d.code}: {fix.message}" + ("" if safe else " (unsafe: it changes more than the gradient)")
        edit = convert.workspace_edit(fix.edits, study.page, encoding, versioned)
        yield types.CodeAction(title, kind=kind, diagnostics=shown, is_preferred=safe or None, edit=edit)
    if d.code not in ("GA000", "GA001"):
        edit = convert.workspace_edit([ignoring(d, study.page)], study.page, encoding, versioned)
        yield types.CodeAction(f"Ignore {d.code} on this line", kind=kind, diagnostics=shown, edit=edit)
        if can_run and study.page.path is not None:
            command = types.Command("Confirm by running", CONFIRM, arguments=[uri, d.code, d.span.row])
            title = f"Confirm {d.code} by running its loop"
            yield types.CodeAction(title, kind=kind, diagnostics=shown, command=command)


def safe_edits(diagnostics: Sequence[Diagnostic], page: Page) -> list[Edit]:
    """The edits of all safe fixes that do not touch one another, in the order of the text."""
    from galint.fixes.textedit import Change, changes_of, overlaps

    taken: list[Change] = []
    out: list[Edit] = []
    for d in diagnostics:
        if d.fix is None or d.fix.applicability is not Applicability.SAFE:
            continue
        changes = changes_of(d.fix.edits, page.source)
        if not overlaps(changes, taken):
            taken += changes
            out += d.fix.edits
    return sorted(out, key=lambda edit: edit.span)


def ignoring(d: Diagnostic, page: Page) -> Edit:
    """The edit that puts an ignore comment on a finding's line, or above its statement where the line is open."""
    lines = page.source.lines
    row = d.span.row
    line = lines[row - 1] if row <= len(lines) else ""
    known = _PRAGMA.search(line)
    if known and known[1].strip():
        end = known.end(1)
        return Edit(Span(row, end, row, end), f", {d.code}")
    first = _open_rows(page.source.text).get(row)
    if first is not None:  # the line ends inside a string or after a backslash: a comment has no place there
        head = lines[first - 1]
        indent = head[: len(head) - len(head.lstrip())]
        newline = "\r\n" if "\r\n" in page.source.text else "\n"
        return Edit(Span(first, 0, first, 0), f"{indent}# galint: ignore[{d.code}]{newline}")
    end = len(line.rstrip())
    return Edit(Span(row, end, row, len(line)), f"  # galint: ignore[{d.code}]")


@lru_cache(maxsize=4)
def _open_rows(text: str) -> dict[int, int]:
    """Rows whose end is inside a string or a backslash continuation → first row of their statement."""
    out: dict[int, int] = {}
    first = 0
    last = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                continue
            first = first or token.start[0]
            for row in range(token.start[0], token.end[0]):
                out[row] = first
            if last and token.start[0] > last and _continued(text, last):
                out[last] = first
            last = token.end[0]
            if token.type == tokenize.NEWLINE:
                first = last = 0
    except (tokenize.TokenError, SyntaxError):
        pass
    return out


def _continued(text: str, row: int) -> bool:
    return text.split("\n")[row - 1].rstrip("\r").endswith("\\")
