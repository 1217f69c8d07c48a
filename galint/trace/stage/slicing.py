"""Cut a loop program to its gradient skeleton and rebuild that as Python, each statement at the user's line."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from galint import program as p
from galint.run.nodes import raises, terminal
from galint.run.reach import BACKWARD, GRADIENT, STEP, ZERO
from galint.run.static import Static
from galint.source import Span
from galint.trace.stage.expressions import (
    NoSlice,
    arguments,
    at,
    const,
    expr,
    hidden,
    load,
    pattern,
    place,
    staged,
    test,
)
from galint.trace.stage.relevance import Skeleton, below, local_names, losses_of, scopes, yields

_CAUGHT = {"StopIteration", "IndexError", "KeyError", "StopAsyncIteration", "AttributeError"}


@dataclass(slots=True)
class Slice:
    """A rebuilt skeleton. `names` are all names it reads; `entry` is what to call after its definitions."""

    tree: ast.Module
    names: set[str]

    @property
    def text(self) -> str:
        """The slice as Python, for people."""
        return ast.unparse(self.tree)


def cut(
    bodies: Sequence[p.Body], static: Static, entry: p.FunctionDef | None, owner: p.ClassDef | None, calls: str
) -> Slice:
    """The slice of a program (its own body first, then those of followed files). Raises NoSlice.

    `entry` is the function to call once everything is defined, None to run the module. `calls` says how: `once`,
    `twice` (an epoch's function) or `batch` (a micro-batch's function).
    """
    roots = {n.name for n in (entry, owner) if n is not None} | losses_of(bodies, static) | {"__main__"}
    skeleton = Skeleton([b for body in bodies for b in [body]], static, roots)
    builder = _Builder(skeleton, static, losses_of(bodies, static))
    out: list[ast.stmt] = []
    for body in reversed(bodies[1:]):
        out += builder.block([s for s in body if _is_definition(s, static)])
    if entry is None:
        out += builder.block(bodies[0])
    else:
        out += builder.block([s for s in bodies[0] if _is_definition(s, static)])
        builder.define(entry, owner, bodies, out)
        out.append(_enter(builder, entry, owner, calls))
    tree = ast.Module(out, [])
    ast.fix_missing_locations(tree)
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return Slice(tree, names)


def _is_definition(stmt: p.Stmt, static: Static) -> bool:
    if isinstance(stmt, p.FunctionDef | p.ClassDef | p.Import | p.ImportFrom):
        return True
    if isinstance(stmt, p.If):
        return "__name__" not in p.text(stmt.test) and not static.tags(stmt) & {BACKWARD, STEP}
    if isinstance(stmt, p.Try):
        return not static.tags(stmt) & {BACKWARD, STEP}
    if isinstance(stmt, p.Assign | p.AnnAssign):
        return not static.tags(stmt) & {BACKWARD, STEP}
    return (
        isinstance(stmt, p.ExprStmt) and isinstance(stmt.value, p.Call) and terminal(stmt.value.func) == "add_argument"
    )


def _enter(builder: _Builder, entry: p.FunctionDef, owner: p.ClassDef | None, calls: str) -> ast.stmt:
    target: ast.expr = load(entry.name) if owner is None else const(None)
    made = load(owner.name) if owner is not None else const(None)
    names = ast.List([const(q.name) for q in entry.params if q.kind in {"arg", "kwonly"}], ast.Load())
    call = staged("enter", target, made, const(entry.name), names, const(calls))
    out = ast.Expr(call)
    at(out, entry.span)
    return out


class _Builder:
    """Statements of the loop program as Python."""

    def __init__(self, skeleton: Skeleton, static: Static, losses: set[str]) -> None:
        self.skeleton = skeleton
        self.static = static
        self.losses = losses
        self.defined: set[p.FunctionDef | p.ClassDef] = set()

    def block(self, body: Iterable[p.Stmt]) -> list[ast.stmt]:
        """The kept statements of a block."""
        out: list[ast.stmt] = []
        for stmt in body:
            if not self.skeleton.keeps(stmt):
                continue
            for made in self.stmt(stmt):
                at(made, stmt.span)
                out.append(made)
        return out

    def body(self, body: Iterable[p.Stmt]) -> list[ast.stmt]:
        """A block that Python does not allow to be empty."""
        return self.block(body) or [ast.Pass()]

    def define(
        self, entry: p.FunctionDef, owner: p.ClassDef | None, bodies: Sequence[p.Body], out: list[ast.stmt]
    ) -> None:
        """Make sure that an entry nested in a block that did not run is there."""
        if entry in self.defined or (owner is not None and owner in self.defined):
            return
        made = self._class(owner) if owner is not None else self._function(entry)
        for stmt in made:
            at(stmt, entry.span)
            out.append(stmt)

    # --- statements ----------------------------------------------------------------------------

    def stmt(self, stmt: p.Stmt) -> list[ast.stmt]:
        match stmt:
            case p.ExprStmt(value=value):
                return [ast.Expr(expr(value))]
            case p.Assign(targets=targets, value=value):
                return self._assign(list(targets), value)
            case p.AnnAssign(target=target, value=value):
                return self._assign([target], value) if value is not None else []
            case p.AugAssign():
                return self._augmented(stmt)
            case p.If():
                return self._if(stmt)
            case p.For():
                return self._for(stmt)
            case p.While(test=condition, body=body, orelse=orelse):
                tick = ast.Expr(staged("tick"))
                gives = BACKWARD in self.static.body_tags(body) or yields(body, self.static)
                role = "length" if gives else "idle"
                again = staged("again", expr(condition), const(p.text(condition)), place(stmt.span), const(role))
                return [ast.While(again, [tick, *self.body(body)], self.block(orelse))]
            case p.With():
                return self._with(stmt)
            case p.Try():
                return self._try(stmt)
            case p.FunctionDef():
                return self._function(stmt)
            case p.ClassDef():
                return self._class(stmt)
            case p.Return(value=value):
                return [ast.Return(expr(value))]
            case p.Break():
                return [ast.Break()]
            case p.Continue():
                return [ast.Continue()]
            case p.Import(names=names):
                return [
                    self._bind(alias or dotted.split(".")[0], dotted if alias else dotted.split(".")[0])
                    for dotted, alias in names
                ]
            case p.ImportFrom(module=module, names=names):
                return [
                    self._bind(alias or name, f"{module}.{name}" if module else name)
                    for name, alias in names
                    if name != "*" and not self._is_ours(alias or name)
                ]
            case p.Match():
                return self._match(stmt)
            case p.Raise(exc=exc):
                name = terminal(exc.func if isinstance(exc, p.Call) else exc)
                return [ast.Expr(staged("raised", const(name)))]
        return []

    def _is_ours(self, name: str) -> bool:
        """A function or class of the project that the slice defines itself."""
        return name in self.skeleton.needed and (name in self.static.functions or name in self.static.classes)

    def _bind(self, name: str, dotted: str) -> ast.stmt:
        return ast.Assign([ast.Name(name, ast.Store())], staged("imported", const(dotted)))

    def _assign(self, targets: list[p.Expr], value: p.Expr) -> list[ast.stmt]:
        right = expr(value)
        simple = targets[0] if len(targets) == 1 else None
        if isinstance(value, p.Const) and simple is not None:
            right = staged("setting", const(p.text(simple)), right)
        elif isinstance(simple, p.Name):
            ours = isinstance(value, p.Call) and terminal(value.func) in self.static.functions
            right = staged("named", right, const(simple.id), *([const(True)] if ours else []))
        if len(targets) == 1:
            return self._store(targets[0], right)
        name = hidden(targets[-1]) + "all"
        out: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], right)]
        for target in targets:
            out += self._store(target, load(name))
        return out

    def _store(self, target: p.Expr, value: ast.expr) -> list[ast.stmt]:
        match target:
            case p.Name(id=name):
                value = staged("born", value) if name in self.losses else value
                return [ast.Assign([ast.Name(name, ast.Store())], value)]
            case p.Sequence():
                native, shape = pattern(target)
                return [ast.Assign([native], staged("unpack", value, shape)), *self._settle(target)]
            case p.Attr(value=holder, name=name):
                if name in self.losses:
                    value = staged("born", value)
                return [ast.Expr(staged("set_attr", expr(holder), const(name), value))]
            case p.Subscript(value=holder, index=index):
                return [ast.Expr(staged("set_item", expr(holder), expr(index), value))]
        return [ast.Expr(value)]

    def _settle(self, target: p.Expr) -> list[ast.stmt]:
        """Put the hidden parts of an unpacked value where they belong; losses become real."""
        match target:
            case p.Name(id=name):
                return self._store(target, load(name)) if name in self.losses else []
            case p.Sequence(elts=elts):
                return [s for e in elts for s in self._settle(e)]
            case p.Starred():
                return []
        return self._store(target, load(hidden(target)))

    def _augmented(self, stmt: p.AugAssign) -> list[ast.stmt]:
        text = const(f"{p.text(stmt.target)} {stmt.op} {p.text(stmt.value)}")
        old = expr(stmt.target)
        value = staged("augment", const(stmt.op), old, expr(stmt.value), text)
        return self._store(stmt.target, value)

    def _if(self, stmt: p.If) -> list[ast.stmt]:
        if raises(stmt.body) and not self.static.body_tags(stmt.body) & {BACKWARD, STEP}:
            return self.block(stmt.orelse)  # an argument check: the program's path is the other side
        if stmt.orelse and raises(stmt.orelse) and not self.static.body_tags(stmt.orelse) & {BACKWARD, STEP}:
            return self.block(stmt.body)
        body, orelse = self.body(stmt.body), self.block(stmt.orelse)
        tags = self.static.body_tags(stmt.body) | self.static.body_tags(stmt.orelse)
        weighs = bool(tags & {BACKWARD, STEP, ZERO})
        condition = test(stmt.test, stmt.span, self._default(stmt), weighs)
        return [ast.If(condition, body, orelse)]

    def _default(self, stmt: p.If) -> bool:
        """What an undecided branch does: it trains."""
        body, orelse = self.static.body_tags(stmt.body), self.static.body_tags(stmt.orelse)
        for kind in (STEP, BACKWARD):
            if (kind in body) != (kind in orelse):
                return kind in body
        if bool(body & GRADIENT) != bool(orelse & GRADIENT):
            return bool(body & GRADIENT)
        jumps = [s for s in below(stmt.body) if isinstance(s, p.Break | p.Continue | p.Return)]
        return bool(stmt.orelse) and not jumps

    def _for(self, stmt: p.For) -> list[ast.stmt]:
        target, shape = pattern(stmt.target)
        tags = self.static.body_tags(stmt.body)
        inner = any(isinstance(s, p.For | p.While) and BACKWARD in self.static.tags(s) for s in below(stmt.body))
        role = "epochs" if BACKWARD in tags and inner else "length" if BACKWARD in tags else "idle"
        if role == "epochs" and terminal(stmt.iter) and any("loader" in n for n in (terminal(stmt.iter).lower(),)):
            role = "length"
        if role == "idle" and yields(stmt.body, self.static):
            role = "source"
        source = staged("iterate", expr(stmt.iter), place(stmt.span), const(role), shape)
        body = [*self._settle(stmt.target), ast.Expr(staged("tick")), *self.body(stmt.body)]
        return [ast.For(target, source, body, self.block(stmt.orelse))]

    def _with(self, stmt: p.With) -> list[ast.stmt]:
        items: list[ast.withitem] = []
        head: list[ast.stmt] = []
        for item in stmt.items:
            target: ast.expr | None = None
            if item.target is not None:
                target, _ = pattern(item.target)
                if isinstance(item.target, p.Name) and item.target.id in self.losses:
                    head += self._store(item.target, load(item.target.id))
            items.append(ast.withitem(staged("context", expr(item.context), const(p.text(item.context))), target))
        return [ast.With(items, [*head, *self.body(stmt.body)])]

    def _try(self, stmt: p.Try) -> list[ast.stmt]:
        handlers: list[ast.ExceptHandler] = []
        for handler in stmt.handlers:
            names = (
                {terminal(n) for n in self.static.walk(handler.type) if isinstance(n, p.Expr)}
                if handler.type
                else set()
            )
            caught = sorted(names & _CAUGHT)
            if handler.type is not None and not caught:
                continue
            kinds = caught or ["StopIteration"]
            kind = ast.Tuple([staged("exception", const(k)) for k in kinds], ast.Load())
            body: list[ast.stmt] = self.body(handler.body)
            handlers.append(ast.ExceptHandler(kind, handler.name, body))
        final = self.block(stmt.final)
        if not handlers and not final:
            return [*self.block(stmt.body), *self.block(stmt.orelse)]
        orelse = self.block(stmt.orelse)
        if not handlers:
            return [ast.Try([*self.body(stmt.body), *orelse], [], [], final)]
        return [ast.Try(self.body(stmt.body), handlers, orelse, final)]

    def _match(self, stmt: p.Match) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        tail = out
        for case in stmt.cases:
            condition = self._case(stmt.subject, case.pattern)
            if condition is None and case.guard is None:
                tail += self.body(case.body)
                break
            parts = [c for c in (condition, test(case.guard) if case.guard else None) if c is not None]
            check = parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)
            branch = ast.If(check, self.body(case.body), [])
            tail.append(branch)
            tail = branch.orelse
        return out

    def _case(self, subject: p.Expr, wanted: p.Pattern) -> ast.expr | None:
        match wanted:
            case p.MatchValue(value=value):
                text = f"{p.text(subject)} == {p.text(value)}"
                compared = staged("compare", const("=="), expr(subject), expr(value), const(text))
                return staged("truth", compared, const(text), place(wanted.span), const(None))
            case p.MatchOr(patterns=patterns):
                parts = [self._case(subject, q) for q in patterns]
                return ast.BoolOp(ast.Or(), [q for q in parts if q is not None])
            case p.MatchAs(pattern=None):
                return None
        raise NoSlice(f"the pattern at line {wanted.span.row}")

    # --- definitions ---------------------------------------------------------------------------

    def _function(self, node: p.FunctionDef, name: str | None = None) -> list[ast.stmt]:
        self.defined.add(node)
        decorators: list[ast.expr] = []
        if any(terminal(d) in {"contextmanager", "asynccontextmanager"} for d in node.decorators):
            decorators.append(staged("context_manager").func)
        body = [*scopes(node), *self._unknown_locals(node), *self.body(node.body)]
        for stmt in body:
            at(stmt, node.span)
        made = ast.FunctionDef(name or node.name, arguments(node.params), body, decorators, None, None)
        if hasattr(made, "type_params"):
            made.type_params = []
        if node.is_generator and not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(made)):
            raise NoSlice(f"the generator `{node.name}`")
        return [made]

    def _unknown_locals(self, node: p.FunctionDef) -> list[ast.stmt]:
        """Every local name starts out unknown, so that a statement that was cut away leaves no hole."""
        return [
            ast.Assign([ast.Name(n, ast.Store())], staged("free", const(n), const("")))
            for n in local_names(node, self.static)
        ]

    def _class(self, node: p.ClassDef) -> list[ast.stmt]:
        self.defined.add(node)
        out: list[ast.stmt] = []
        methods: list[ast.expr] = []
        fields: list[ast.expr] = []
        for stmt in node.body:
            match stmt:
                case p.FunctionDef(name=name):
                    if not self.skeleton.keeps(stmt) and not self._gradient(stmt):
                        continue
                    inner = f"{node.name}__{name}"
                    out += self._function(stmt, inner)
                    kinds = [terminal(d) for d in stmt.decorators]
                    kind = next((k for k in kinds if k in {"property", "staticmethod", "classmethod"}), "")
                    methods.append(ast.Tuple([const(name), load(inner), const(kind)], ast.Load()))
                case p.Assign(targets=(p.Name(id=name),), value=value):
                    fields.append(ast.Tuple([const(name), self._field(name, value)], ast.Load()))
                case p.AnnAssign(target=p.Name(id=name), value=value):
                    right = self._field(name, value) if value is not None else staged("free", const(name), const(""))
                    fields.append(ast.Tuple([const(name), right], ast.Load()))
        data = any(terminal(d) in {"dataclass", "attrs", "define"} for d in node.decorators)
        trains = any(isinstance(s, p.FunctionDef) and BACKWARD in self.static.tags(s) for s in node.body)
        bases = ast.List([expr(b.value) for b in node.bases if not b.keyword and not b.star], ast.Load())
        call = staged(
            "make_class", const(node.name), bases, ast.List(methods, ast.Load()), ast.List(fields, ast.Load()),
            const(data), const(trains),
        )  # fmt: skip
        out.append(ast.Assign([ast.Name(node.name, ast.Store())], call))
        for made in out:
            at(made, Span(node.span.row, 0, node.span.row, 0))
        return out

    def _field(self, name: str, value: p.Expr) -> ast.expr:
        right = expr(value)
        return staged("setting", const(name), right) if isinstance(value, p.Const) else right

    def _gradient(self, func: p.FunctionDef) -> bool:
        return bool(self.static.tags(func) & GRADIENT)
