"""Cuts a text that is too large to be taken in one piece into portions that stand alone, rows and columns kept.

A portion holds some of the training code and every top-level statement that binds a name in it; all else is blank. What
binds a name is told from words alone, so a portion may hold too much, never too little: what changes a thing names it.
Loops that a module runs one after the other are taken some at a time, with their neighbours for what those leave behind.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

MANY_BACKWARDS = 100
"""Backward calls from which a text is better taken in portions: what asks about the whole text asks once for each."""
_TOGETHER = 24
"""Functions that train, or statements of a module that do, in one portion."""
_NEIGHBOURS = 3
"""Statements before and after a module's that are taken along."""
_LONG = 1 << 16
"""Characters of a list or dict display from which its elements are no longer looked at."""

_TOKEN = re.compile(
    r"#[^\r\n]*|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*(?:\"\"\"|\Z)|'''(?:[^'\\]|\\.|'(?!''))*(?:'''|\Z)"
    r"|\"(?:[^\"\\\r\n]|\\(?:\r\n|.))*\"?|'(?:[^'\\\r\n]|\\(?:\r\n|.))*'?|\\(?:\r\n|.)|[\r\n]+|[\[\](){}]",
    re.DOTALL,
)
_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b|[)\]}#]|[ \t\f]")
_TRAINS = re.compile(
    r"backward|zero_grad|accumulate|scaler|\bstep\b|_step\b|no_sync|\bDDP\(|FSDP\(|DataParallel|fully_shard\("
)
_DEFINES = re.compile(r"^(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.M)
_ASSIGNS = re.compile(r"[\w., \t]+=(?!=)")
_BINDS = re.compile(r"(\w+)[ \t]*(?::[^=\r\n]+)?=(?!=)")
_DISPLAY = re.compile(r"\w+[ \t]*=[ \t]*[\[{(]")
_IMPORTS = re.compile(r"(?:import|from)\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMON = frozenset(dir(builtins)) | frozenset(keyword.kwlist)


@dataclass(eq=False)
class _Statement:
    """A top-level statement with the comments below it; `text` leaves out the elements of a long display."""

    start: int
    end: int
    text: str

    @cached_property
    def words(self) -> frozenset[str]:
        """The names in it."""
        return frozenset(_WORD.findall(self.text)) - _COMMON

    @cached_property
    def defines(self) -> str:
        """The function or class that it defines."""
        return _defined(self.text)

    @cached_property
    def binds(self) -> frozenset[str]:
        """The names that it may bind or whose things it may change."""
        if name := self.defines or _bound(self.text):
            return frozenset({name})
        return self.words


@dataclass(frozen=True, slots=True)
class Portion:
    """A part of a text, all other rows blank. What it shows of the rows in `beside` another portion shows better."""

    text: str
    beside: tuple[range, ...] = ()


def portions(text: str) -> list[Portion]:
    """The portions of a text without a byte order mark; empty where there is no training code."""
    starts = _starts(text)
    ends = [*starts, len(text)][1:]
    imports: list[_Statement] = []
    training: list[_Statement] = []
    rest: list[tuple[int, int]] = []  # places only: there may be a million
    for start, end in zip(starts, ends, strict=True):
        statement = _Statement(start, end, _short(text[start:end]))
        if _IMPORTS.match(statement.text):
            imports.append(statement)
        elif _TRAINS.search(statement.text):
            training.append(statement)
        else:
            rest.append((start, end))
    modules = frozenset(word for s in imports for word in s.words)
    needed = _needed(text, rest, training, modules)
    head = text[: starts[0]] if starts else ""
    out: list[Portion] = []
    for group, beside in _groups(needed, training, modules):
        parts, at = [head], len(head)
        for statement in sorted({*imports, *group}, key=lambda s: s.start):
            parts += [_blank(text, at, statement.start), statement.text]
            at = statement.end
            if len(statement.text) < at - statement.start:
                parts.append(_blank(text, statement.start, at))
        rows = [range(1 + _rows(text, 0, s.start), 1 + _rows(text, 0, s.end) + (s.end == len(text))) for s in beside]
        out.append(Portion("".join([*parts, _blank(text, at, len(text))]), tuple(rows)))
    return out


def _defined(statement: str) -> str:
    found = _DEFINES.search(statement) if statement[0] in "@adc" else None
    return found[1] if found else ""


def _bound(statement: str) -> str:
    """The name that a plain assignment binds; "" where it may change other things too."""
    found = _BINDS.match(statement)
    return found[1] if found and "(" not in statement else ""


def _starts(text: str) -> list[int]:
    """Where the top-level statements begin; an `else` or a decorated definition begins none."""
    out: list[int] = []
    depth = 0
    if text[:1] and not _CONTINUES.match(text) and text[0] not in "\r\n":
        out.append(0)
    for match in _TOKEN.finditer(text):
        mark = text[match.start()]
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth = max(depth - 1, 0)
        elif mark in "\r\n" and not depth:
            at = match.end()
            if at < len(text) and not _CONTINUES.match(text, at) and not (out and _decorates(text, out[-1], at)):
                out.append(at)
    return out


def _decorates(text: str, start: int, end: int) -> bool:
    """Whether what began at `start` and lasts until `end` is decorators only."""
    return text[start] == "@" and _DEFINES.search(text, start, end) is None


def _short(statement: str) -> str:
    """A statement; of a long `NAME = [ … ]` only that it is some data."""
    found = _DISPLAY.match(statement) if len(statement) > _LONG else None
    if found is None:
        return statement
    depth = 0
    for match in _TOKEN.finditer(statement, found.end() - 1):
        mark = statement[match.start()]
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
            if not depth:
                rest = re.sub(r"#[^\r\n]*", "", statement[match.end() :]).strip()
                return statement if rest else f"{statement[: found.end() - 1]}__data__()"
    return statement


def _needed(
    text: str, rest: list[tuple[int, int]], training: list[_Statement], modules: frozenset[str]
) -> list[_Statement]:
    """The statements that training code may depend on, those of `training` among them."""
    kept = list(training)
    names = set[str]().union(*(s.words for s in training)) - modules
    more = True
    while more:
        more, left = False, []
        for start, end in rest:
            statement = _short(text[start:end])
            name = _defined(statement) or _bound(statement)
            if name not in names if name else names.isdisjoint(_WORD.findall(statement)):
                left.append((start, end))
                continue
            more = True
            kept.append(_Statement(start, end, statement))
            names |= kept[-1].words - modules
        rest = left
    return sorted(kept, key=lambda s: s.start)


def _groups(
    needed: list[_Statement], training: list[_Statement], modules: frozenset[str]
) -> list[tuple[set[_Statement], list[_Statement]]]:
    """What is taken together, and which of it stands in another group too: the module's own training code by stretches,
    and functions and classes that no other one needs."""
    binders: dict[str, list[_Statement]] = defaultdict(list)
    for statement in needed:
        for name in statement.binds - modules:
            binders[name].append(statement)
    loose = [s for s in training if not s.defines]
    turns = [s for s in loose if not _ASSIGNS.match(s.text)]

    def closure(tops: Iterable[_Statement], barred: set[_Statement]) -> set[_Statement]:
        work = list(tops)
        found = set(work)
        while work:
            for name in work.pop().words:
                for statement in binders.get(name, ()):
                    if statement not in found and statement not in barred:
                        found.add(statement)
                        work.append(statement)
        return found

    groups: list[tuple[set[_Statement], list[_Statement]]] = []
    covered: set[_Statement] = set()
    for first in range(0, len(turns), _TOGETHER):
        own = turns[first : first + _TOGETHER]
        near = turns[max(first - _NEIGHBOURS, 0) : first + _TOGETHER + _NEIGHBOURS]
        found = closure(near, set(turns) - set(near))
        covered |= found
        groups.append((found, [s for s in near if s not in own]))
    # A definition does not depend on the loops that the module runs. Whoever calls others has the larger closure.
    alone = {s: closure([s], set(turns)) for s in training if s.defines and s not in covered}
    together = 0
    for statement, found in sorted(alone.items(), key=lambda item: (-len(item[1]), item[0].start)):
        if statement in covered:
            continue
        covered |= found
        if not together:
            groups.append((set(), []))
        groups[-1][0].update(found)
        together = (together + 1) % _TOGETHER
    return groups


def _rows(text: str, start: int, end: int) -> int:
    return len(_blank(text, start, end).replace("\r\n", "\n"))


def _blank(text: str, start: int, end: int) -> str:
    """The line ends of a stretch of text."""
    if "\r" not in text:
        return "\n" * text.count("\n", start, end)
    return "".join(re.findall(r"[\r\n]+", text[start:end]))
