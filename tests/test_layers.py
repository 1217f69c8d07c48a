"""Imports point down only, and each heavy library is imported in one room only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "galint"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "collecting"),
    ("rule", "source", "patterns"),
    ("registry", "program", "diagnostic"),
    ("config", "pages"),
    ("discovery", "suppress", "notebook", "baseline", "cache"),
    ("syntax",),
    ("ledger",),
    ("run",),
    ("semantics",),
    ("run.calls",),
    ("run.entries",),
    ("run.entry_calls",),
    ("run.toward",),
    ("run.fitting",),
    ("run.project", "run.explore"),
    ("checks",),
    ("explain",),
    ("analysis",),
    ("diagnosing",),
    ("counting",),
    ("engine",),
    ("fixes",),
    ("render",),
    ("pool",),
    ("scanning",),
    ("driver",),
    ("trace",),
    ("server",),
    ("trace.command",),
    ("cli",),
    ("__main__", "__init__"),
)
"""From the bottom up. A room may import what lies below it, not its neighbours of the same row (unless listed).

A module with a row of its own (`run.calls`, which asks `semantics` what a call means) stands apart from its room.
"""

NEIGHBOURS = {("diagnostic", "registry")}
"""Imports within a row that are meant."""

ONLY_IN = {
    "libcst": {"syntax", "fixes"},
    "torch": {"trace"},
    "numpy": {"trace"},
    "matplotlib": {"trace"},
    "click": {"cli", "trace.command"},
    "rich": {"cli", "trace", "trace.command"},
    "pygls": {"server"},
    "lsprotocol": {"server"},
    "pathspec": {"discovery"},
}
"""Library → the rooms that may import it."""

RANK = {room: number for number, row in enumerate(LAYERS) for room in row}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(parts: Sequence[str]) -> str:
    """`run.calls` when that module has a row of its own, else `run`."""
    return ".".join(parts[:2]) if ".".join(parts[:2]) in RANK else parts[0]


def room(path: Path) -> str:
    """The room that a file of the package belongs to."""
    return room_of([part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts])


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports anywhere, inside functions too, but for what only type checkers read."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            if node.module == "galint":
                yield from (f"galint.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_down(path: Path) -> None:
    here = room(path)
    assert here in RANK, f"{here} has no row in LAYERS: say where it belongs"
    for name in imported(path):
        parts = name.split(".")
        if parts[0] != "galint" or len(parts) == 1:
            continue
        there = room_of(parts[1:])
        if there == here or there.startswith("__"):
            continue
        assert there in RANK, f"{here} imports the unknown room {there}"
        assert RANK[there] < RANK[here] or (here, there) in NEIGHBOURS, f"{here} imports {there}, which is not below it"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_each_library_stays_in_its_room(path: Path) -> None:
    for name in imported(path):
        library = name.split(".")[0]
        assert room(path) in ONLY_IN.get(library, {room(path)}), f"{room(path)} imports {library}"


def test_every_module_says_what_it_is_for() -> None:
    texts = {path: path.read_text("utf-8") for path in modules()}
    assert [path.name for path, text in texts.items() if text.strip() and not ast.get_docstring(ast.parse(text))] == []
