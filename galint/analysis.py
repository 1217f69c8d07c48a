"""A file run on paper: its program, the project files it imports, its backward calls, and what the runs showed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from galint import program as p
from galint.config import Config
from galint.diagnostic import Diagnostic
from galint.run.explore import Exploration, Explorer
from galint.run.nodes import terminal
from galint.run.project import Linked, Project
from galint.run.reach import BACKWARD
from galint.run.static import Static
from galint.semantics.configured import configured
from galint.source import Span
from galint.syntax import parse_any

_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages are no project: their files are linted each on its own."""


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
    views: dict[int, Any] = field(default_factory=dict)
    """What `galint.diagnosing.view_of` keeps."""


@dataclass(slots=True)
class BackwardSite:
    """A backward call in the text, and the loop or function that holds it."""

    span: Span
    holder: Span


def analyse(
    program: p.Program, config: Config, root: Path | None = None, path: Path | None = None, *, launches: bool = False
) -> Analysis | None:
    """Run a program's loops on paper; None when it trains nothing.

    With `launches` a file that only calls other files' training is run too: it has no findings of its own.
    """
    alone = Static([program.body])
    if not launches and not _touches_gradients(program, alone):
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
    if any(static.tags(func) for group in static.functions.values() for func in group):
        return True
    loops = (n for stmt in program.body for n in static.walk(stmt) if isinstance(n, (p.For, p.While)))
    calls = (n.func for loop in loops for n in static.walk(loop) if isinstance(n, p.Call))
    return any(isinstance(func, p.Name) and "backward" in func.id for func in calls)  # a helper of another file


def _project(program: p.Program, root: Path | None, path: Path | None) -> Project | None:
    """The project files that a program imports; None where there is no root to stay inside."""
    if root is None or path is None or _INSTALLED & set(path.parts):
        return None
    project = Project(root.absolute(), path.absolute(), parse_any)
    project.collect(program)
    return project


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
        elif kind is p.Name or kind is p.Const:
            continue
        stack += [(child, holder) for child in reversed(node.children())]
    return out
