"""Reads the marks that fixtures and rule pages carry in their comments.

`# expect: GA101` (optionally several codes, each optionally followed by a quoted part of the message) and
`# event: backward x1/4` speak of their own line, or of the next code line when the comment stands alone.
`# observe: params` says once per file what the runtime must see.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
PAGES = ROOT / "rules"

_CODE = re.compile(r'(GA\d{3})(?:\s+"([^"]*)")?')
_FENCE = re.compile(r"^```(\S*)[ \t]*(\S*)[ \t]*$")
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True, slots=True, order=True)
class Expect:
    """A diagnostic that must be reported: 1-based row, code, and a part of its message ("" for any)."""

    row: int
    code: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """What the ledger must say at `row`: kind "backward" (value "x1/4") or "step" (a formula)."""

    row: int
    kind: str
    value: str

    @property
    def coefficient(self) -> Fraction:
        """The coefficient of a backward event."""
        return Fraction(self.value.lstrip("x\u00d7"))

    @property
    def weights(self) -> list[Fraction]:
        """Coefficient of each micro-batch of a step event, in order: `(g1 + g2)/4 + g3` → 1/4, 1/4, 1."""
        weights: list[Fraction] = []
        for group in re.finditer(r"\(([^)]*)\)(?:/(\d+))?|(?:(\d+)\*)?g\d+(?:/(\d+))?", self.value):
            inside, divisor, factor, below = group.groups()
            if inside is not None:
                terms = re.findall(r"(?:(\d+)\*)?g\d+", inside)
                weights += [Fraction(int(t or 1), int(divisor or 1)) for t in terms]
            else:
                weights.append(Fraction(int(factor or 1), int(below or 1)))
        return weights


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Each comment with the row it speaks of."""
    waiting: list[str] = []
    comment = ""
    code_rows: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comment = token.string.lstrip("# ")
            if token.start[0] in code_rows:
                yield token.start[0], comment
            else:
                waiting.append(comment)
        elif token.type not in _LAYOUT:
            code_rows.update(range(token.start[0], token.end[0] + 1))
            for kept in waiting:
                yield token.start[0], kept
            waiting.clear()
    for kept in waiting:
        yield 0, kept


def _marks(text: str, kind: str) -> Iterator[tuple[int, str]]:
    for row, comment in _comments(text):
        for part in comment.split("#"):
            head, colon, value = part.strip().partition(":")
            if colon and head == kind:
                yield row, value.strip()


def expects(text: str) -> list[Expect]:
    """Every `# expect:` of a text, sorted."""
    found = [Expect(row, code, part) for row, value in _marks(text, "expect") for code, part in _CODE.findall(value)]
    return sorted(found)


def events(text: str) -> list[Event]:
    """Every `# event:` of a text, in order."""
    return [Event(row, *value.split(maxsplit=1)) for row, value in _marks(text, "event")]


def note(text: str, kind: str) -> str | None:
    """The value of a mark that a file carries once, such as `# observe: params`; None where it has none."""
    return next((value for _, value in _marks(text, kind)), None)


def differences(wanted: Iterable[Expect], found: Iterable[tuple[int, str, str]]) -> list[str]:
    """What is missing and what is unexpected, as lines for a person; empty when both ways agree.

    `found` are (row, code, message). One mark stands for one diagnostic.
    """
    open_marks = list(wanted)
    lines: list[str] = []
    for row, code, message in sorted(found):
        hit = next((m for m in open_marks if (m.row, m.code) == (row, code) and m.part in message), None)
        if hit is None:
            lines.append(f"unexpected {code} on line {row}: {message}")
        else:
            open_marks.remove(hit)
    lines += [f"missing {m.code} on line {m.row}" + (f' with "{m.part}"' if m.part else "") for m in open_marks]
    return lines


def fixtures() -> list[Path]:
    """Every script of `fixtures/`, runs included."""
    return sorted(FIXTURES.rglob("*.py"))


def golden(path: Path) -> Path | None:
    """The repaired version next to a bad fixture, if it has one."""
    fixed = path.with_name(path.stem + ".fixed.py")
    return fixed if fixed.exists() else None


@dataclass(frozen=True, slots=True)
class Block:
    """A Python block of a page: its section, its first row in the page, and `fixed` from the fence."""

    page: Path
    section: str
    row: int
    fixed: bool
    text: str

    @property
    def id(self) -> str:
        """Name for test reports."""
        return f"{self.page.stem}:{self.row}"


def blocks(page: Path) -> list[Block]:
    """The ```python blocks of a rule's page, in order."""
    found: list[Block] = []
    section = ""
    opened: tuple[int, bool, bool] | None = None
    body: list[str] = []
    for row, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, body = (row + 1, fence[1] == "python", fence[2] == "fixed"), []
        elif opened is not None and line == "```":
            if opened[1]:
                found.append(Block(page, section, opened[0], opened[2], "\n".join(body) + "\n"))
            opened = None
        elif opened is not None:
            body.append(line)
        elif line.startswith("## "):
            section = line[3:].strip()
    return found


def pages() -> list[Path]:
    """Every rule page."""
    return sorted(PAGES.glob("GA*.md"))


def codes(found: Iterable[Expect]) -> Counter[str]:
    """How often each code is expected."""
    return Counter(mark.code for mark in found)
