"""Parsing a changed text in part gives exactly what parsing it whole gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galint.errors import ParseError
from galint.program import Node, Program
from galint.syntax import parse
from galint.syntax.incremental import Incremental
from tests.marks import fixtures

TEXTS = [path.read_text("utf-8") for path in fixtures()[::9]]
FRAGMENTS = [
    "\n", "\n\n", " ", "    ", "x", "else:\n", "else:\n    pass\n", "@wraps\n", "\\", "\\\n", '"""', "'", "(", ")", "#",
    "# note\n", "if a:\n    b\n", "def f():\n    return 1\n", "class A: x = 1; y = 2\n", "a; b\n", ":", "é", "\f", "\r\n",
    "try:\n    f()\nfinally:\n    g()\n", "loss.backward()\n", "async def g(): await h()\n", "\t", "=",
]  # fmt: skip


def dumped(value: Any) -> Any:
    """Everything that a program holds, spans included."""
    if isinstance(value, Program):
        return dumped(value.body), value.comments
    if isinstance(value, tuple):
        return tuple(map(dumped, value))
    if isinstance(value, Node):
        slots = [s for c in type(value).__mro__ for s in getattr(c, "__slots__", ())]
        return (type(value).__name__, *((slot, dumped(getattr(value, slot))) for slot in slots))
    return value


def same(incremental: Incremental, text: str) -> bool:
    """Whether both ways agree; True for valid Python."""
    try:
        whole = parse(text)
    except ParseError as error:
        with pytest.raises(ParseError) as caught:
            incremental.parse(text)
        assert (caught.value.message, caught.value.row) == (error.message, error.row)
        return False
    assert dumped(incremental.parse(text)) == dumped(whole)
    return True


@given(
    text=st.sampled_from(TEXTS),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), st.sampled_from(FRAGMENTS)), min_size=1, max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_random_edits(text: str, edits: list[tuple[float, int, str]]) -> None:
    incremental = Incremental()
    assert same(incremental, text)
    for where, removed, new in edits:
        start = int(where * len(text))
        changed = text[:start] + new + text[start + removed :]
        if same(incremental, changed):
            text = changed


@given(text=st.sampled_from(TEXTS), where=st.floats(0, 1), new=st.sampled_from(FRAGMENTS), removed=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_whole_lines(text: str, where: float, new: str, removed: int) -> None:
    """Lines come and go at the boundaries of statements, where what is typed may belong to a neighbour."""
    lines = text.splitlines(keepends=True)
    row = int(where * len(lines))
    incremental = Incremental()
    incremental.parse(text)
    same(incremental, "".join([*lines[:row], new, *lines[row + removed :]]))


BASE = "import a\n\n\n@d\ndef f():\n    x\n\n\nif f():\n    y  # why\nz = 1; w = 2\n"


@pytest.mark.parametrize(
    "text",
    [
        BASE,
        BASE.replace("import a", "import b"),
        BASE.replace("@d\n", ""),
        BASE.replace("@d\n", "@d\n@e\n"),
        BASE.replace("    y  # why\n", "    y  # why\nelse:\n    v\n"),
        BASE.replace("z = 1; w = 2\n", "z = 1; w = 3\n"),
        BASE.replace("z = 1; w = 2\n", "z = 1; w = 2"),
        BASE.replace("if f():\n", "if f(): \\\n"),
        BASE.replace("    x\n", "    x\n    # inside\n"),
        BASE.replace("import a\n", ""),
        BASE.replace("import a\n", "# top\nimport a\n"),
        BASE + "\n\n",
        "",
        "# only a comment\n",
    ],
)
def test_changes_at_boundaries(text: str) -> None:
    incremental = Incremental()
    incremental.parse(BASE)
    same(incremental, text)
    assert same(incremental, BASE)


def test_a_small_change_parses_little(monkeypatch: pytest.MonkeyPatch) -> None:
    from galint.syntax import incremental as room

    seen: list[int] = []

    def counting(text: str) -> Program:
        seen.append(text.count("\n"))
        return parse(text)

    monkeypatch.setattr(room, "parse", counting)
    text = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(200))
    incremental = Incremental()
    incremental.parse(text)
    incremental.parse(text.replace("return 100\n", "return 100 + 1\n"))
    incremental.parse(text.replace("return 100\n", "y = 1\n    return 100 + 1\n"))
    assert seen[0] == 800 and max(seen[1:]) < 12
