"""Where runs of a file start: the module, roots that reach backward and step, whatever else holds a backward."""

from __future__ import annotations

from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from galint import program as p
from galint.run.calls import Calls
from galint.run.facts import RunResult
from galint.run.machine import FOREIGN
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD, STEP
from galint.run.static import Static

_BASES = 6
"""How many base classes are looked through, and calls between their methods, on the way to what drives a method."""


@dataclass(slots=True)
class Entry:
    """Where a run starts: the module itself, a function, or a method."""

    function: p.FunctionDef | None
    owner: p.ClassDef | None = None
    inner: p.FunctionDef | None = None
    """The owner's own method that the function, which a base class gives, calls for each batch or epoch."""
    known: dict[str, RunResult] = field(default_factory=dict)
    """The runs that were made, by their scenarios."""
    passed: frozenset[p.Node] = frozenset()
    """Loops that use up a run, and are left out in this one for what stands after them."""

    @property
    def name(self) -> str:
        """For messages."""
        if self.function is None:
            return "the module"
        return f"{self.owner.name}.{self.function.name}" if self.owner else self.function.name


class Entries:
    """The entry points of one program."""

    def __init__(self, program: p.Program, static: Static, machine: type[Calls] = Calls, **options: Any) -> None:
        self.program = program
        self.static = static
        self.machine = machine
        self.options = options
        self.spent = 0
        self._wholes: dict[str, tuple[bool, tuple[str, ...]]] = {}
        self.context: Context = copy_context()

    def _own(self, func: p.FunctionDef) -> frozenset[str]:
        out: frozenset[str] = frozenset()
        for stmt in func.body:
            if not isinstance(stmt, (p.FunctionDef, p.ClassDef)):
                out |= self.static._own_tags(stmt)[0]
        return out

    def _entries(self) -> list[Entry]:
        """The module first, then roots that reach backward and step, then whatever holds a backward."""
        entries = [Entry(None)]
        trainers: list[p.FunctionDef] = []
        for group in self.static.functions.values():
            for func in group:
                if BACKWARD in self.static.tags(func) and func.span.row < FOREIGN:
                    trainers.append(func)
        below: dict[p.FunctionDef, list[p.FunctionDef]] = {}
        for func in trainers:
            callees = {c for call in self.static.calls_in(func) for c in self.static.callees(call)} - {func}
            below[func] = sorted(callees, key=lambda f: f.span)
        called = {callee for callees in below.values() for callee in callees}
        nested = self._nested()
        order = _callers_first(trainers, below)

        def rank(func: p.FunctionDef) -> tuple[int, int, int]:
            tags = self.static.tags(func)
            full = {BACKWARD, STEP} <= tags
            return (0 if full and func not in called else 1 if full else 2, func in nested, order[func])

        for func in sorted(trainers, key=rank):
            owner = self.static.method_of.get(func)
            if func in nested or (owner is None and func.name in {"closure"}):
                continue
            if owner is not None and (outer := self._driver(func, owner)) is not None:
                entries.append(Entry(outer, owner, func))
            entries.append(Entry(func, owner))
        factories = {self._holder(func) for func in trainers if func in nested}
        entries += [
            Entry(func, self.static.method_of.get(func))
            for func in sorted(filter(None, factories), key=lambda f: f.span)
            if func not in trainers
        ]
        return entries

    def _driver(self, func: p.FunctionDef, owner: p.ClassDef) -> p.FunctionDef | None:
        """The outermost method of the base classes that leads to a call of this method of the class."""
        bases: list[p.ClassDef] = []
        work = [owner]
        while work and len(bases) < _BASES:
            names = [terminal(arg.value) for arg in work.pop(0).bases]
            above = [c for name in names for c in self.static.classes.get(name, ())[:1] if c is not owner]
            bases += above
            work += above
        own = {s.name for s in owner.body if isinstance(s, p.FunctionDef)}
        found: p.FunctionDef | None = None
        name = func.name
        for _ in range(_BASES):
            methods = [s for c in bases for s in c.body if isinstance(s, p.FunctionDef) and s.name not in own]
            outer = next((m for m in methods if m.name != name and self._calls_own(m, name)), None)
            if outer is None:
                break
            found, name = outer, outer.name
            own.add(name)
        return found

    def _calls_own(self, method: p.FunctionDef, name: str) -> bool:
        return any(
            isinstance(n, p.Call)
            and isinstance(n.func, p.Attr)
            and n.func.name == name
            and isinstance(n.func.value, p.Name)
            and n.func.value.id == "self"
            for stmt in method.body
            for n in self.static.walk(stmt)
        )

    def _holder(self, inner: p.FunctionDef) -> p.FunctionDef | None:
        """The outermost function that defines `inner`."""
        for stmt in self.program.body:
            tops = (
                [stmt] if isinstance(stmt, p.FunctionDef) else list(stmt.body) if isinstance(stmt, p.ClassDef) else []
            )
            for top in tops:
                if (
                    isinstance(top, p.FunctionDef)
                    and top is not inner
                    and any(n is inner for n in self.static.walk(top))
                ):
                    return top
        return None

    def _nested(self) -> set[p.FunctionDef]:
        """Functions defined inside other functions: they run only through those."""
        out: set[p.FunctionDef] = set()
        for group in self.static.functions.values():
            for func in group:
                for stmt in func.body:
                    for node in self.static.walk(stmt):
                        if isinstance(node, p.FunctionDef):
                            out.add(node)
        return out


def _callers_first(
    funcs: list[p.FunctionDef], below: dict[p.FunctionDef, list[p.FunctionDef]]
) -> dict[p.FunctionDef, int]:
    """Places in which a function stands before what it calls, and else as in the file.

    What a caller has run needs no run of its own, where the numbers that the caller counts would stand still.
    """
    done: list[p.FunctionDef] = []
    seen: set[p.FunctionDef] = set()
    for root in sorted(funcs, key=lambda f: f.span, reverse=True):
        stack = [(root, False)]
        while stack:
            func, left = stack.pop()
            if left:
                done.append(func)
            elif func not in seen:
                seen.add(func)
                stack.append((func, True))
                stack += [(callee, False) for callee in below.get(func, ()) if callee not in seen]
    return {func: place for place, func in enumerate(reversed(done))}
