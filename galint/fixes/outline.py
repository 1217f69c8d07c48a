"""A program with the way up: parents, bodies, neighbours, and the rows that each statement takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from galint import program as p
from galint.run.nodes import walk
from galint.source import Span

Holder = p.Node | None
"""What a body belongs to: a compound statement, handler or case; None for the module."""


@dataclass(slots=True)
class Seat:
    """Where a statement stands: the node that holds its body, the body, and its index there."""

    holder: Holder
    body: p.Body
    index: int


class Outline:
    """The tree of one program, indexed both ways."""

    def __init__(self, program: p.Program) -> None:
        self.program = program
        self.seats: dict[p.Stmt, Seat] = {}
        self.parent: dict[p.Node, p.Node | None] = {}
        self.spans: dict[Span, list[p.Node]] = {}
        self.string_rows: set[int] | None = None
        self._everything: tuple[p.Node, ...] | None = None
        self._place(program.body, None)

    def _place(self, body: p.Body, holder: Holder) -> None:
        for index, stmt in enumerate(body):
            self.seats[stmt] = Seat(holder, body, index)
            self._visit(stmt, holder)

    def _visit(self, node: p.Node, parent: p.Node | None) -> None:
        self.parent[node] = parent
        self.spans.setdefault(node.span, []).append(node)
        inside: set[int] = set()
        for body in bodies(node):
            self._place(body, node)
            inside.update(map(id, body))
        for child in node.children():
            if id(child) not in inside:
                self._visit(child, node)

    # --- finding ---------------------------------------------------------------------------

    def nodes(self, span: Span) -> list[p.Node]:
        """The nodes with exactly this span, outermost first."""
        return self.spans.get(span, [])

    def statement(self, span: Span) -> p.Stmt | None:
        """The innermost statement that holds the span in its own lines (a compound's header)."""
        best: p.Stmt | None = None
        for stmt in self.seats:
            if covers(stmt.span, span) and (best is None or covers(best.span, stmt.span)):
                best = stmt
        if best is None:
            best = next((s for s in self.seats if s.span.row <= span.row <= s.span.end_row), None)
        return best

    def owner(self, node: p.Node) -> p.Stmt | None:
        """The innermost statement that a node belongs to (itself, when it is one)."""
        here: p.Node | None = node
        while here is not None and not isinstance(here, p.Stmt):
            here = self.parent.get(here)
        return here

    def above(self, node: p.Node) -> Iterator[p.Node]:
        """The nodes around `node`, innermost first."""
        here = self.parent.get(node)
        while here is not None:
            yield here
            here = self.parent.get(here)

    def function(self, node: p.Node) -> p.FunctionDef | None:
        """The function whose body holds `node`."""
        return next((n for n in self.above(node) if isinstance(n, p.FunctionDef)), None)

    def owner_class(self, function: p.FunctionDef | None) -> p.ClassDef | None:
        """The class that a function is a method of."""
        holder = self.seats[function].holder if function is not None else None
        return holder if isinstance(holder, p.ClassDef) else None

    def in_body(self, node: p.Node, body: p.Body) -> p.Stmt | None:
        """The statement of `body` that holds `node`."""
        members = set(map(id, body))
        here: p.Node | None = node
        while here is not None:
            if id(here) in members and isinstance(here, p.Stmt):
                return here
            here = self.parent.get(here)
        return None

    def common(self, one: p.Node, other: p.Node) -> tuple[p.Stmt, p.Stmt] | None:
        """The two statements of the innermost shared body that hold `one` and `other`."""
        first, second = self.owner(one), self.owner(other)
        here: p.Node | None = first
        while here is not None:
            if isinstance(here, p.Stmt):
                match = self.in_body(second, self.seats[here].body) if second is not None else None
                if match is not None:
                    return here, match
            here = self.parent.get(here)
        return None

    def walk(self, node: p.Node) -> Iterator[p.Node]:
        """`node` and everything below it."""
        return walk(node)

    def everything(self) -> tuple[p.Node, ...]:
        """Every node of the program, in the order of the text's tree."""
        if self._everything is None:
            self._everything = tuple(walk(*self.program.body))
        return self._everything


def bodies(node: p.Node) -> list[p.Body]:
    """The bodies of a compound statement, handler or case, in the order of the text."""
    match node:
        case p.If() | p.For() | p.While():
            return [node.body, node.orelse]
        case p.Try():
            return [node.body, node.orelse, node.final]
        case p.With() | p.FunctionDef() | p.ClassDef() | p.Handler() | p.Case():
            return [node.body]
    return []


def covers(outer: Span, inner: Span) -> bool:
    """Whether `inner` lies within `outer`."""
    return (outer.row, outer.column) <= (inner.row, inner.column) and (inner.end_row, inner.end_column) <= (
        outer.end_row,
        outer.end_column,
    )


def last_row(node: p.Node) -> int:
    """The last row of a statement with everything in it."""
    row = node.span.end_row
    for child in node.children():
        row = max(row, last_row(child))
    return row


def first_row(node: p.Node) -> int:
    """The first row of a statement, its decorators included."""
    row = node.span.row
    if isinstance(node, (p.FunctionDef, p.ClassDef)):
        row = min([row, *(d.span.row for d in node.decorators)])
    return row
