"""Ignore comments: what each one covers, which findings they silence, and which of them are unused (GA001)."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from galint.config.selectors import expand, find_rule
from galint.config.settings import nearest
from galint.diagnostic import Applicability, Diagnostic, Edit, Fix
from galint.errors import UnknownRule
from galint.source import Span, split_lines

_KINDS = ("ignore-file", "ignore", "disable", "enable")
_PRAGMA = re.compile(
    r"(?:^|#)\s*galint:\s*(?P<kind>[\w-]+)\s*(?:\[(?P<rules>[^\]#]*)\])?(?:\s*--\s*(?P<reason>[^#]*))?"
)
_NOQA = re.compile(r"(?:^|#)\s*noqa\s*:\s*(?P<rules>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)", re.IGNORECASE)
_SKIP = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)

Kind = Literal["ignore-file", "ignore", "disable", "enable", "noqa", "unknown"]


@dataclass(slots=True)
class Directive:
    """One ignore comment: where it stands, the rules it names, the rows it covers.

    `reason` is what follows `--`. `selectors` hold what was written; those that name no rule are in
    `unknown`. `first` and `last` are rows, both covered (an `enable` covers none, nor does a comment of
    the kind "unknown", whose `word` galint does not know).
    """

    kind: Kind
    span: Span
    selectors: tuple[str, ...]
    reason: str | None = None
    word: str = ""
    unknown: list[UnknownRule] = field(default_factory=list)
    codes: dict[str, frozenset[str]] = field(default_factory=dict)
    first: int = 0
    last: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    """Code → row where an `enable` ends a block earlier than `last`."""
    used: set[str] = field(default_factory=set)

    def covers(self, row: int, code: str) -> bool:
        """Whether a finding of `code` that starts in `row` is silenced; notes the selector as used."""
        if not self.first <= row <= self.ends.get(code, self.last):
            return False
        named = [selector for selector, codes in self.codes.items() if code in codes]
        self.used.update(named)
        return bool(named)


def apply(
    diagnostics: Iterable[Diagnostic],
    text: str,
    comments: Mapping[int, str] | None = None,
    *,
    filename: str = "",
    selected: Collection[str] | None = None,
) -> list[Diagnostic]:
    """The diagnostics that no comment silences, and GA001 for comments that silence nothing.

    `comments` are line → text without the `#`; None lets this function find them. `selected` are the
    codes that ran: a comment about a rule that did not run is not called unused.
    """
    found = list(diagnostics)
    if "galint:" not in text and "noqa" not in text.lower():
        return found
    directives = parse(text, comments if comments is not None else scan(text))
    if not directives:
        return found
    kept = [d for d in found if not any([x.covers(d.span.row, d.code) for x in directives])]
    if selected is None or "GA001" in selected:
        lines = split_lines(text)
        name = filename or (found[0].filename if found else "")
        unused = [d for x in directives for d in _unused(x, name, lines, selected)]
        kept += [d for d in unused if not any([x.covers(d.span.row, "GA001") for x in directives])]
    return kept


def scan(text: str) -> dict[int, str]:
    """Line → text of its comment without the `#`, as far as the text can be tokenized."""
    out: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                out[token.start[0]] = token.string[1:]
    except (tokenize.TokenError, SyntaxError):
        pass
    return out


def parse(text: str, comments: Mapping[int, str]) -> list[Directive]:
    """All ignore comments of a file, in order, with the rows that each covers."""
    lines = split_lines(text)
    directives: list[Directive] = []
    for row, comment in sorted(comments.items()):
        if 1 <= row <= len(lines) and ("galint:" in comment or "noqa" in comment.lower()):
            directives += _read(row, comment, lines[row - 1])
    if directives:
        _place(directives, text, lines)
    return directives


def _read(row: int, comment: str, line: str) -> list[Directive]:
    start = line.rfind(comment)
    start = line.rfind("#", 0, start + 1) if start >= 0 else line.find("#")
    body = line[start + 1 :]
    out: list[Directive] = []
    matches: list[tuple[Kind, re.Match[str]]] = []
    for match in _PRAGMA.finditer(body):
        if match["kind"] in _KINDS:
            matches.append((match["kind"], match))  # type: ignore[arg-type]
        elif match["rules"] is not None or match.end() == len(body.rstrip()):  # a slip, and not a sentence
            matches.append(("unknown", match))
    matches += [("noqa", match) for match in _NOQA.finditer(body)]
    for kind_, match in matches:
        rules = [rule for rule in re.split(r"[,\s]+", match["rules"] or "") if rule]
        if kind_ == "noqa":
            rules = [rule.upper() for rule in rules if rule.upper().startswith("GA") and rule[2:].isdigit()]
            if not rules:
                continue
        reason = (match.groupdict().get("reason") or "").strip() or None
        first = start + 1 + match.start() if match.group().startswith("#") else start
        end = start + 1 + match.start() + len(match.group().rstrip())
        directive = Directive(kind_, Span(row, first, row, end), tuple(rules), reason)
        if kind_ == "unknown":
            directive.word, rules = match["kind"], []
        for rule in rules:
            try:
                directive.codes[rule] = expand(rule)
            except UnknownRule as error:
                directive.unknown.append(error)
        out.append(directive)
    return out


def _place(directives: list[Directive], text: str, lines: Sequence[str]) -> None:
    """Fill in the rows that each directive covers."""
    statements: list[tuple[int, int, int]] | None = None
    for index, directive in enumerate(directives):
        row = directive.span.row
        own_line = not lines[row - 1][: directive.span.column].strip()
        if directive.kind == "ignore-file":
            directive.first, directive.last = 1, len(lines)
        elif directive.kind == "disable":
            directive.first, directive.last = row, len(lines)
            for later in directives[index + 1 :]:
                if later.kind == "enable" and later.span.row > row:
                    _close(directive, later)
        elif directive.kind in ("ignore", "noqa"):
            if statements is None:
                statements = _logical_lines(text)
            directive.first, directive.last = _statement(row, own_line and directive.kind == "ignore", statements)


def _close(block: Directive, end: Directive) -> None:
    """`enable[…]` ends the block for the rules that it names; the block goes on for the others."""
    for selector, codes in end.codes.items():
        for code in codes:
            if code not in block.ends and any(code in named for named in block.codes.values()):
                block.ends[code] = end.span.row
                end.used.add(selector)


def _logical_lines(text: str) -> list[tuple[int, int, int]]:
    """(first row, last row, indentation) of each logical line, as far as the text can be tokenized."""
    out: list[tuple[int, int, int]] = []
    start: tuple[int, int] | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                if start is not None:
                    out.append((start[0], token.start[0], start[1]))
                start = None
            elif token.type not in _SKIP and start is None:
                # `@` marks a decorator: what it decorates belongs to the same statement.
                start = (token.start[0], token.start[1] if token.string != "@" else -1 - token.start[1])
    except (tokenize.TokenError, SyntaxError):
        pass
    return out


def _statement(row: int, own_line: bool, statements: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """The rows of the logical line that holds `row`, or of the whole statement that follows it."""
    for first, last, _ in statements:
        if first <= row <= last:
            return first, last
    if not own_line:
        return row, row
    following = [statement for statement in statements if statement[0] > row]
    if not following:
        return row, row
    first, last, indent = following[0]
    decorated = indent < 0
    indent = -1 - indent if decorated else indent
    for _, end, column in following[1:]:
        real = -1 - column if column < 0 else column
        if not (real > indent or (decorated and real == indent)):
            break
        decorated = decorated and column < 0
        last = end
    return first, last


def _unused(
    directive: Directive, filename: str, lines: Sequence[str], selected: Collection[str] | None
) -> list[Diagnostic]:
    messages = [f"an ignore comment names an {error}" for error in directive.unknown]
    if directive.kind == "unknown":
        messages.append(f"`{directive.word}` silences nothing{nearest(directive.word, _KINDS)}")
    elif not directive.selectors:
        messages.append(f"`{directive.kind}` names no rule, so it silences nothing: write `{directive.kind}[GA101]`")
    idle = [
        selector
        for selector, codes in directive.codes.items()
        if selector not in directive.used and (selected is None or codes & set(selected)) and codes != {"GA001"}
    ]
    if idle and directive.kind == "enable":
        messages.append(f"`enable[{', '.join(idle)}]` ends no block of `disable`")
    elif idle:
        messages.append(f"no finding of {', '.join(idle)} is silenced by this comment")
    rule = find_rule("GA001")
    fix = _removal(directive, idle, lines) if idle else None
    return [
        Diagnostic(rule.code, rule.name, rule.severity, message, filename, directive.span, fix=fix)
        for message in messages
    ]


def _removal(directive: Directive, idle: Sequence[str], lines: Sequence[str]) -> Fix:
    """Take the idle rules out of the comment, and the comment away when none is left; reasons stay."""
    span, line = directive.span, lines[directive.span.row - 1]
    written = line[span.column : span.end_column]
    listed = (_NOQA if directive.kind == "noqa" else _PRAGMA).search(written)
    if listed is not None:
        rules = [rule for rule in re.split(r"[,\s]+", listed["rules"]) if rule]
        left = [rule for rule in rules if rule not in idle and rule.upper() not in idle]
        if left:
            content = written[: listed.start("rules")] + ", ".join(left) + written[listed.end("rules") :]
            return Fix(f"remove {', '.join(idle)} from the comment", Applicability.SAFE, (Edit(span, content),))
    before, after = line[: span.column], line[span.end_column :]
    if after.strip():  # another comment follows and takes this one's place
        gone = Span(span.row, span.column, span.row, len(line) - len(after.lstrip()))
    elif before.strip() or span.row == len(lines):
        gone = Span(span.row, len(before.rstrip()), span.row, len(line))
    else:
        gone = Span(span.row, 0, span.row + 1, 0)
    return Fix("remove the comment", Applicability.SAFE, (Edit(gone, ""),))
