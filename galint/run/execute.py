"""Statements of the abstract run: blocks, definitions, `with`, `try`, and what runs which statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from galint import program as p
from galint.run.frame import BREAK, CONTINUE, Frame, GeneratorExit_, RunOver, Signal, UserRaise
from galint.run.iterate import drive
from galint.run.loops import Loops
from galint.run.names import CONFIG, FRAMEWORKS
from galint.run.nodes import path_terminal, terminal
from galint.run.skipped import leads_to_continue, skipping
from galint.run.values import NONE, Class, Context, External, Function, Lit, Opaque, Partial, Value

_PROTOCOL = frozenset({"", "StopIteration", "IndexError", "StopAsyncIteration", "SystemExit", "KeyboardInterrupt"})
"""Exceptions that a program steers by, and `raise` alone, which hands one on."""


class Execute(Loops):
    """The statement half of the machine."""

    def run_body(self, body: p.Body, frame: Frame) -> Signal | None:
        """Run a block; a signal says that it was left early."""
        pushed = 0
        guards = self.guards
        try:
            for index, stmt in enumerate(body):
                self.fuel -= 1
                if self.fuel < 0:
                    self.burn(0)
                if isinstance(stmt, p.If):
                    signal, residual = self.run_if(stmt, frame, body[index + 1 :])
                    if residual is not None:
                        guards.append(residual)
                        pushed += 1
                else:
                    signal = _EXEC[type(stmt)](self, stmt, frame)
                if signal is not None:
                    return signal
        finally:
            if pushed:
                del guards[len(guards) - pushed :]
        return None

    # --- simple statements ---------------------------------------------------------------------

    def run_expr(self, stmt: p.ExprStmt, frame: Frame) -> None:
        """An expression for its effect."""
        self.eval(stmt.value, frame)

    def run_return(self, stmt: p.Return, frame: Frame) -> Signal:
        """`return value`."""
        value = self.eval(stmt.value, frame) if stmt.value is not None else NONE
        if isinstance(stmt.value, p.Const) and isinstance(stmt.value.value, bool):
            value = self.gated(value, self.guards[frame.depth :])
        return Signal("return", value)

    def run_break(self, stmt: p.Break, frame: Frame) -> Signal:
        """`break`."""
        return BREAK

    def run_continue(self, stmt: p.Continue, frame: Frame) -> Signal:
        """`continue`."""
        self.event("continue", stmt.span)
        return CONTINUE

    def run_nothing(self, stmt: p.Stmt, frame: Frame) -> None:
        """pass, assert and other statements without effect here."""

    def run_raise(self, stmt: p.Raise, frame: Frame) -> None:
        """`raise X`."""
        exc = stmt.exc.func if isinstance(stmt.exc, p.Call) else stmt.exc
        name = terminal(exc)
        checks = self.scenario.onward and stmt not in self.static.dead_ends
        if checks and name not in _PROTOCOL and not any(_handles(h, name) for h in self.handlers):
            return  # no run reaches the training but past this: what it checks, the program's own data pass
        raise UserRaise(name)

    def run_scope(self, stmt: p.Scope, frame: Frame) -> None:
        """`global` and `nonlocal`."""
        for name in stmt.names:
            if stmt.kind == "global":
                frame.nonlocals[name] = frame.globals
            elif frame.parent is not None:
                frame.nonlocals[name] = frame.parent.find(name) or frame.parent

    # --- imports and definitions ---------------------------------------------------------------

    def run_import(self, stmt: p.Import, frame: Frame) -> None:
        """`import a.b as c`."""
        for name, alias in stmt.names:
            frame.vars[alias or name.split(".")[0]] = self.imported(
                name if alias else name.split(".")[0], 0, None, frame
            )

    def run_import_from(self, stmt: p.ImportFrom, frame: Frame) -> None:
        """`from m import a as b`."""
        for name, alias in stmt.names:
            if name == "*":
                self.import_star(stmt, frame)
                continue
            value = self.imported(stmt.module, stmt.level, name, frame)
            if isinstance(value, External) and self._is_setting(stmt.module, alias or name):
                value = Opaque(alias or name)
            frame.vars[alias or name] = value

    def _is_setting(self, module: str, name: str) -> bool:
        """`from config import GRAD_ACCUM, cfg`: numbers and settings of a file that is not followed."""
        if module.partition(".")[0] in FRAMEWORKS:
            return False
        constant = name.isupper() and len(name) > 1 and "()" not in self.static.uses.get(name, ())
        return constant or CONFIG.search(name) or name in self.static.window_names | self.static.counters

    def import_star(self, stmt: p.ImportFrom, frame: Frame) -> None:
        """`from m import *`: nothing known unless project files are followed."""

    def imported(self, module: str, level: int, name: str | None, frame: Frame) -> Value:
        """What an import binds."""
        full = "." * level + module
        return External(f"{full}.{name}" if name else full)

    def run_function(self, stmt: p.FunctionDef, frame: Frame) -> None:
        """A function definition; a property's setter is kept beside its getter."""
        role = next((d.name for d in stmt.decorators if isinstance(d, p.Attr) and terminal(d.value) == stmt.name), "")
        name = f"{stmt.name}.{role}" if role in {"setter", "deleter"} else stmt.name
        made = frame.vars[name] = self.make_function(stmt, frame)
        for decorator in reversed(stmt.decorators):
            if isinstance(decorator, p.Call) and isinstance(decorator.func, p.Attr) and decorator.func.name == "on":
                registers = self.eval(decorator, frame)  # `@trainer.on(Events.EPOCH_COMPLETED)`
                if isinstance(registers, Partial):
                    self.call_value(registers, [made], {}, decorator, frame)

    def make_function(self, stmt: p.FunctionDef, frame: Frame) -> Function:
        """The function value of a definition."""
        defaults = {q.name: self.eval(q.default, frame) for q in stmt.params if q.default is not None}
        # A class's own names are not in scope inside its methods.
        in_class = frame.owner is not None and frame.function is None and frame.parent is not None
        return Function(stmt, frame.parent if in_class and frame.parent is not None else frame, defaults, frame.owner)

    def run_class(self, stmt: p.ClassDef, frame: Frame) -> None:
        """A class definition: its body is run for methods and class attributes."""
        bases = [self.eval(b.value, frame) for b in stmt.bases if not b.keyword and not b.star]
        inner = Frame(frame)
        cls = Class(stmt, bases, inner.vars, frame)
        cls.module_like = any(_module_base(b) for b in bases)
        inner.owner = cls
        simple = tuple(
            s
            for s in stmt.body
            if isinstance(s, (p.FunctionDef, p.ClassDef, p.Assign, p.AnnAssign, p.ExprStmt, p.If, p.Pass))
        )
        self.run_body(simple, inner)
        for item in stmt.body:
            if isinstance(item, (p.Assign, p.AnnAssign)):
                target = item.targets[0] if isinstance(item, p.Assign) else item.target
                if isinstance(target, p.Name):
                    value = inner.vars.get(target.id)
                    if isinstance(value, Lit) and value.is_number and not isinstance(value.value, bool):
                        path = f"{stmt.name}.{target.id}"
                        inner.vars[target.id] = Lit(value.value, frozenset({path}), text=path)
        frame.vars[stmt.name] = cls

    # --- iteration -----------------------------------------------------------------------------

    def iterate(self, value: Value, each: Callable[[Value], Signal | None], node: p.Node, role: str) -> Signal | None:
        """Drive an iterable through `each`; a signal from it stops the loop."""
        return drive(self, value, each, node, role)

    def do_yield(self, value: Value, frame: Frame) -> None:
        """Run the body of the loop that drives the generator."""
        holder: Frame | None = frame
        while holder is not None and holder.yields is None:
            holder = holder.parent
        if holder is None or holder.yields is None:
            return
        signal = holder.yields(value)
        if signal is not None:
            raise GeneratorExit_(signal)

    # --- with and try --------------------------------------------------------------------------

    def run_with(self, stmt: p.With, frame: Frame) -> Signal | None:
        """A with statement: contexts that matter are active for the body."""
        opened: list[Context] = []
        try:
            for item in stmt.items:
                value = self.eval(item.context, frame)
                context = self.enter_context(value, item, frame)
                if context is not None:
                    opened.append(context)
            return self.run_body(stmt.body, frame)
        finally:
            for context in reversed(opened):
                self.exit_context(context)

    def new_frame(self, func: Function, args: list[Value], kwargs: dict[str, Value]) -> Frame:
        """A frame with a function's parameters bound."""
        raise NotImplementedError

    def call_value(
        self,
        callee: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        node: p.Call,
        frame: Frame,
        *,
        star: bool = False,
    ) -> Value:
        """Call a value with evaluated arguments."""
        raise NotImplementedError

    def enter_context(self, value: Value, item: p.WithItem, frame: Frame) -> Context | None:
        """Enter one context manager."""
        raise NotImplementedError

    def exit_context(self, context: Context) -> None:
        """Leave one context manager."""
        raise NotImplementedError

    def run_try(self, stmt: p.Try, frame: Frame) -> Signal | None:
        """try: the body is the path; handlers run for what the program visibly raises."""
        catches = any(_catches_stop(h) for h in stmt.handlers)
        self.finite_iterators += catches
        counted = catches
        depth = len(self.handlers)
        self.handlers += stmt.handlers
        try:
            try:
                skips = self._fails(stmt, frame)
                signal = self.run_body(stmt.body, frame) if skips is None else self._skip(skips.body, frame)
            except UserRaise as raised:
                del self.handlers[depth:]
                self.finite_iterators -= counted
                counted = False
                for handler in stmt.handlers:
                    if _handles(handler, raised.name):
                        return self.run_body(handler.body, frame)
                raise
            if signal is None and stmt.orelse:
                signal = self.run_body(stmt.orelse, frame)
            return signal
        finally:
            del self.handlers[depth:]
            self.finite_iterators -= counted
            if stmt.final:
                self._finally(stmt, frame)

    def _fails(self, stmt: p.Try, frame: Frame) -> p.Handler | None:
        """The handler that leaves this micro-batch out, where this run is to see one that fails."""
        handler = skipping(self.static, stmt) if self.loops and self._feeds(frame) else None
        if handler is None:
            return None
        kind = p.text(handler.type) if handler.type is not None else "Exception"
        key = f"{kind} in row {handler.span.row}"
        return handler if self.choose(key, False, data=True, relevant=True, span=handler.span) else None

    def _skip(self, body: p.Body, frame: Frame) -> Signal | None:
        """Run a handler on the way that leads to its `continue`: the other ways are of other exceptions."""
        for stmt in body:
            sides = (stmt.body, stmt.orelse) if isinstance(stmt, p.If) else ()
            side = next((side for side in sides if leads_to_continue(side)), None)
            signal = self.run_body((stmt,), frame) if side is None else self._skip(side, frame)
            if signal is not None:
                return signal
        return None

    def _finally(self, stmt: p.Try, frame: Frame) -> None:
        try:
            self.run_body(stmt.final, frame)
        except (RunOver, UserRaise):
            return


def _module_base(base: Value) -> bool:
    if isinstance(base, Class):
        return base.module_like
    if isinstance(base, External):
        return base.name.split(".")[-1] in {"Module", "LightningModule", "PreTrainedModel", "ModelMixin", "Sequential"}
    return isinstance(base, Opaque) and path_terminal(base.path) in {"Module", "LightningModule"}


def _catches_stop(handler: p.Handler) -> bool:
    if handler.type is None:
        return True
    names = (
        [terminal(e) for e in handler.type.elts] if isinstance(handler.type, p.Sequence) else [terminal(handler.type)]
    )
    return bool({"StopIteration", "Exception", "BaseException", "StopAsyncIteration"} & set(names))


def _handles(handler: p.Handler, raised: str) -> bool:
    if handler.type is None:
        return True
    names = (
        [terminal(e) for e in handler.type.elts] if isinstance(handler.type, p.Sequence) else [terminal(handler.type)]
    )
    return not raised or raised in names or bool({"Exception", "BaseException"} & set(names))


_EXEC: dict[type, Any] = {
    p.ExprStmt: Execute.run_expr,
    p.Assign: Execute.run_assign,
    p.AugAssign: Execute.run_augassign,
    p.AnnAssign: Execute.run_annassign,
    p.Return: Execute.run_return,
    p.Break: Execute.run_break,
    p.Continue: Execute.run_continue,
    p.Pass: Execute.run_nothing,
    p.Assert: Execute.run_nothing,
    p.Raise: Execute.run_raise,
    p.Delete: Execute.run_delete,
    p.Scope: Execute.run_scope,
    p.Import: Execute.run_import,
    p.ImportFrom: Execute.run_import_from,
    p.FunctionDef: Execute.run_function,
    p.ClassDef: Execute.run_class,
    p.For: Execute.run_for,
    p.While: Execute.run_while,
    p.With: Execute.run_with,
    p.Try: Execute.run_try,
    p.Match: Execute.run_match,
}
