"""Which statements belong to a loop's gradient skeleton: a flow-insensitive backward slice over names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from galint import program as p
from galint.run.nodes import raises, terminal
from galint.run.reach import GRADIENT
from galint.run.static import Static

_COMMON = frozenset({"self", "cls", "torch", "nn", "np", "os", "F", "optim", "super", "len", "range", "int", "float"})
_COMPOUND = p.If | p.For | p.While | p.With | p.Try | p.Match
_GROWS = frozenset({"append", "extend", "update", "add", "setdefault", "insert"})
_SCHEDULES = frozenset({"step", "update", "update_parameters", "set_defaults", "add_argument"})
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"})
_DUNDERS = frozenset({"__init__", "__enter__", "__exit__", "__iter__", "__next__", "__call__"})
_ROUNDS = 12


class Skeleton:
    """The statements of a program that its gradients depend on. `needed` are the names they read."""

    def __init__(self, bodies: Iterable[p.Body], static: Static, roots: Iterable[str]) -> None:
        self.static = static
        self.needed: set[str] = set(roots)
        self._kept: dict[p.Stmt, bool] = {}
        for _ in range(_ROUNDS):
            before = len(self.needed)
            self._kept = {}
            for body in bodies:
                self._visit(body)
            if len(self.needed) == before:
                break

    def keeps(self, stmt: p.Stmt) -> bool:
        """Whether a statement is part of the skeleton."""
        return self._kept.get(stmt, False)

    # --- the fixpoint --------------------------------------------------------------------------

    def _visit(self, body: p.Body) -> bool:
        """Decide every statement of a block, last first; True when any is kept."""
        found = False
        for stmt in reversed(body):
            kept = self._decide(stmt)
            self._kept[stmt] = kept
            if kept:
                found = True
                self._read(stmt)
        return found

    def _decide(self, stmt: p.Stmt) -> bool:
        match stmt:
            case p.FunctionDef(name=name, body=body):
                if name in self.needed or name in _DUNDERS or self.static.tags(stmt) & GRADIENT:
                    self._visit(body)
                    return True
                return False
            case p.ClassDef(name=name, body=body):
                if name in self.needed:
                    self._visit(body)
                    return True
                return False
            case p.If(body=body, orelse=orelse):
                inner = [self._visit(body), self._visit(orelse)]
                return any(inner) or bool(self.static.tags(stmt) & GRADIENT)
            case p.For() | p.While():
                inner = [self._visit(stmt.body), self._visit(stmt.orelse)]
                return self._works(stmt)
            case p.With(body=body):
                return self._visit(body) or bool(self.static.tags(stmt) & GRADIENT)
            case p.Try(body=body, handlers=handlers, orelse=orelse, final=final):
                return any([self._visit(b) for b in (body, orelse, final, *(h.body for h in handlers))])
            case p.Match(cases=cases):
                return any([self._visit(c.body) for c in cases])
            case p.Return() | p.Break() | p.Continue() | p.Scope() | p.Import() | p.ImportFrom():
                return True
            case p.Raise(exc=exc):
                return raises((stmt,)) is False and exc is not None
            case p.ExprStmt(value=p.Yield() | p.YieldFrom()):
                return True
        if self.static.tags(stmt) & GRADIENT:
            return True
        return bool(defined(stmt) & self.needed) or self._changes(stmt)

    def _works(self, stmt: p.For | p.While) -> bool:
        """A loop is kept for what it does, not for its `break`s."""
        if self.static.tags(stmt) & GRADIENT:
            return True
        own = self._jumps(stmt.body)
        return any(self._kept.get(s, False) and s not in own for s in below(stmt.body))

    def _jumps(self, body: p.Body) -> set[p.Stmt]:
        return {
            s
            for s in below(body)
            if isinstance(s, p.Break | p.Continue | p.Import | p.ImportFrom | p.Scope | _COMPOUND)
        }

    def _changes(self, stmt: p.Stmt) -> bool:
        """`names.append(x)` of a needed list, `scheduler.step()`, `parser.add_argument(…)`."""
        if not isinstance(stmt, p.ExprStmt | p.Assign) or not isinstance(stmt.value, p.Call):
            return False
        if isinstance(stmt, p.ExprStmt) and isinstance(stmt.value.func, p.Name):
            return _is_option(stmt.value)
        if not isinstance(stmt.value.func, p.Attr):
            return False
        name = stmt.value.func.name
        if isinstance(stmt, p.Assign):
            return name in _GROUPS  # whatever its name: arguments are added to it
        receiver = terminal(stmt.value.func.value)
        return name in _SCHEDULES or (name in _GROWS and receiver in self.needed)

    def _read(self, stmt: p.Stmt) -> None:
        for node in header(stmt):
            for inner in self.static.walk(node):
                if isinstance(inner, p.Name):
                    self.needed.add(inner.id)
                elif isinstance(inner, p.Attr):
                    self.needed.add(inner.name)
                elif isinstance(inner, p.Subscript):
                    self.needed.add(terminal(inner))
        self.needed -= _COMMON


def _is_option(call: p.Call) -> bool:
    """`arg("--n", default=4)`, where `arg = parser.add_argument`."""
    first = call.args[0].value if call.args else None
    return isinstance(first, p.Const) and isinstance(first.value, str) and first.value.startswith("-")


def header(stmt: p.Stmt) -> Iterator[p.Node]:
    """The expressions of a statement itself, not of the blocks below it."""
    for child in stmt.children():
        if isinstance(child, p.Stmt | p.Handler | p.Case):
            continue
        if isinstance(stmt, p.FunctionDef) and isinstance(child, p.Expr):
            continue  # decorators and annotations
        if isinstance(stmt, p.Assign) and child in stmt.targets and isinstance(child, p.Name):
            continue
        yield child


def defined(stmt: p.Stmt) -> set[str]:
    """The last names of what a simple statement binds."""
    match stmt:
        case p.Assign(targets=targets):
            return {n for t in targets for n in bound(t)}
        case p.AugAssign(target=target) | p.AnnAssign(target=target):
            return bound(target)
    return set()


def bound(target: p.Expr) -> set[str]:
    """The last names in an assignment target."""
    match target:
        case p.Sequence(elts=elts):
            return {n for e in elts for n in bound(e)}
        case p.Starred(value=value):
            return bound(value)
        case p.Subscript(value=value):
            return {terminal(target), terminal(value)}
    return {terminal(target)}


def below(body: p.Body) -> Iterator[p.Stmt]:
    """Every statement of a block and of the blocks in it, functions' bodies left out."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, p.FunctionDef | p.ClassDef):
            continue
        for block in blocks(stmt):
            yield from below(block)


def blocks(stmt: p.Stmt) -> Iterator[p.Body]:
    """The blocks directly below a compound statement."""
    for name in ("body", "orelse", "final"):
        block = getattr(stmt, name, None)
        if isinstance(block, tuple):
            yield block
    if isinstance(stmt, p.Try):
        yield from (h.body for h in stmt.handlers)
    if isinstance(stmt, p.Match):
        yield from (c.body for c in stmt.cases)


def losses_of(bodies: Sequence[p.Body], static: Static) -> set[str]:
    """Names from which backward starts: what is bound to them becomes a real loss at once."""
    out: set[str] = set()
    for body in bodies:
        for stmt in body:
            for node in static.walk(stmt):
                if not isinstance(node, p.Call) or not isinstance(node.func, p.Attr):
                    continue
                if node.func.name in {"backward", "manual_backward"}:
                    receiver = node.func.value
                    out.add(
                        terminal(node.args[0].value)
                        if node.args and terminal(receiver) not in out
                        else terminal(receiver)
                    )
                    out.add(terminal(receiver))
                elif node.func.name in {"scale", "scale_loss"} and node.args:
                    out.add(terminal(node.args[0].value))
    return out - {"", "self", "accelerator", "fabric", "scaler", "optimizer", "engine", "model", "torch", "autograd"}


def local_names(node: p.FunctionDef, static: Static) -> list[str]:
    """The names that a function binds itself, parameters left out."""
    known = {q.name for q in node.params}
    outer: set[str] = set()
    names: dict[str, None] = {}

    def visit(current: p.Node) -> None:
        if isinstance(current, p.FunctionDef | p.ClassDef):
            if isinstance(current, p.ClassDef) or current is not node:
                return
        if isinstance(current, p.Scope):
            outer.update(current.names)
        targets: tuple[p.Expr, ...] = ()
        if isinstance(current, p.Assign):
            targets = current.targets
        elif isinstance(current, p.AugAssign | p.AnnAssign | p.For | p.NamedExpr):
            targets = (current.target,)
        elif isinstance(current, p.With):
            targets = tuple(i.target for i in current.items if i.target is not None)
        for target in targets:
            for inner in static.walk(target):
                if isinstance(inner, p.Name) and not isinstance(target, p.Attr | p.Subscript):
                    names[inner.id] = None
        for child in current.children():
            if not isinstance(child, p.Lambda | p.Comp):
                visit(child)

    for stmt in node.body:
        if not isinstance(stmt, p.FunctionDef | p.ClassDef):
            visit(stmt)
    return [n for n in names if n not in known and n not in outer]


def yields(body: p.Body, static: Static) -> bool:
    """Whether a block gives a generator's elements: micro-batches, as far as one can know."""
    return any(isinstance(n, p.Yield) for s in body for n in static.walk(s))


def scopes(node: p.FunctionDef) -> list[ast.stmt]:
    """`global` and `nonlocal` of a function, before anything uses the names (older Pythons took them anywhere)."""
    found = [s for s in below(node.body) if isinstance(s, p.Scope)]
    return [ast.Global(list(s.names)) if s.kind == "global" else ast.Nonlocal(list(s.names)) for s in found]
