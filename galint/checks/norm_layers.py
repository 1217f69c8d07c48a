"""BatchNorm layers that the constructors of networks make, as far as what they are given tells."""

from __future__ import annotations

import re
from collections.abc import Iterable

from galint import program as p
from galint.checks.layer_choices import Choices, Env, Thing, constructor, is_norm
from galint.checks.still_parts import Stillness, evaluated
from galint.run.nodes import terminal
from galint.run.static import Static
from galint.source import Span

Place = tuple[Span, str]

_VISITS = 8
"""In how many ways one class or function is read."""
_OF_NORM = re.compile(r"norm|bn", re.I)
_OTHER_NORM = re.compile(r"(Group|Instance|Layer|RMS|Frozen\w*)_?Norm|^Identity$", re.I)


class NormLayers(Choices):
    """One reading of the classes of the trained networks, and of what they name, with the arguments that are given."""

    def __init__(self, static: Static, still: Stillness) -> None:
        super().__init__(static)
        self.still = still
        self.found: set[Place] = set()
        self._seen: dict[int, set[str]] = {}
        self._methods: list[tuple[p.ClassDef, set[str]]] = []
        """The classes that are being read, and which of their methods were."""
        self._doubt = 0
        """Inside how many branches this is that only one answer of an unknown option takes."""

    def read_class(self, cls: p.ClassDef, given: Env) -> None:
        """The layers of a class that is made with these arguments."""
        self._class(cls, dict(given), {})

    # -- classes and functions -------------------------------------------------------------------------------

    def _again(self, node: p.Node, env: Env) -> bool:
        """True where a class or function was read with the same arguments, or in enough ways."""
        key = repr(sorted((name, repr(thing)) for name, thing in env.items()))
        seen = self._seen.setdefault(id(node), set())
        if key in seen or len(seen) >= _VISITS:
            return True
        seen.add(key)
        return False

    def _class(self, cls: p.ClassDef, given: Env | None, around: Env) -> None:
        init = constructor(cls)
        env = {**around, **(given or {})} if init is None else self._bound(init.params[1:], given, around)
        if self._again(cls, env) or self.still.whole(cls):
            return
        self._methods.append((cls, {"__init__"}))
        for stmt in cls.body:
            if not isinstance(stmt, p.FunctionDef):
                self._body((stmt,), env)
        for base in cls.bases:
            if init is None or not any(map(_makes_base, self.static.walk(init))):
                for node in self.named.get(terminal(base.value), []):
                    self._definition(node, given if init is None else None, around if init is None else env)
        if init is not None:
            self._defaults(init.params, env)
            self._body(init.body, env)
        done = self._methods[-1][1]
        for stmt in cls.body:  # those that no constructor calls are called by others
            if isinstance(stmt, p.FunctionDef) and stmt.name not in done:
                done.add(stmt.name)
                self._function(stmt, None, env, own=True)
        self._methods.pop()

    def _definition(self, node: p.Node, given: Env | None, around: Env) -> None:
        """Read what a name stands for: what it is called with, None where it is only handed on."""
        doubt = self._doubt
        if doubt and isinstance(node, (p.ClassDef, p.FunctionDef)) and _OF_NORM.search(node.name):
            return
        self._doubt = 0  # a network that an option chooses may well be the one
        self._read(node, given, around)
        self._doubt = doubt

    def _read(self, node: p.Node, given: Env | None, around: Env) -> None:
        if isinstance(node, p.ClassDef):
            self._class(node, given, _outside(around))
        elif isinstance(node, p.FunctionDef):
            self._function(node, given, _outside(around))
        elif isinstance(node, p.Assign):
            if not self._again(node, {}):
                self._body((node,), dict(_outside(around)))

    def _function(self, node: p.FunctionDef, given: Env | None, around: Env, own: bool = False) -> None:
        env = self._bound(node.params, given, around)
        if self._again(node, env) or any(map(_evaluates, self.static.walk(node))):
            return  # a network that is handed out for evaluation keeps its statistics
        self._defaults(node.params, env)
        self._body(node.body, env)
        if own:
            around |= {name: thing for name, thing in env.items() if name.startswith("self.")}

    def _defaults(self, params: Iterable[p.Param], env: Env) -> None:
        """Layers that parameters stand for: their own default, or what is given instead."""
        for param in params:
            thing = env.get(param.name)
            if thing is not None and thing.norm:
                self._note(thing.span, thing.text)

    def _note(self, span: Span, text: str) -> None:
        if not self._doubt:
            self.found.add((span, text))

    # -- statements ------------------------------------------------------------------------------------------

    def _body(self, body: p.Body, env: Env) -> bool:
        """Read statements in turn; True where the rest is not reached."""
        doubts = 0
        ended = False
        for stmt in body:
            if isinstance(stmt, p.If):
                over, doubtful = self._if(stmt, env)
                if doubtful:  # what comes after is the other answer
                    doubts += 1
                    self._doubt += 1
            else:
                over = self._stmt(stmt, env)
            if over:
                ended = True
                break
        self._doubt -= doubts
        return ended

    def _if(self, stmt: p.If, env: Env) -> tuple[bool, bool]:
        truth = self.truth(stmt.test, env)
        self._expr(stmt.test, env)
        if truth is not None:
            return self._body(stmt.body if truth else stmt.orelse, env), False
        doubt = self.asks_option(stmt)
        self._doubt += doubt
        one, other = dict(env), dict(env)
        ended = self._body(stmt.body, one), self._body(stmt.orelse, other)
        self._doubt -= doubt
        left = [branch for branch, over in zip((one, other), ended, strict=True) if not over]
        env.clear()
        if left:
            env |= {k: v for k, v in left[0].items() if all(repr(b.get(k)) == repr(v) for b in left)}
        return all(ended), doubt and ended[0] and not ended[1]

    def _stmt(self, stmt: p.Stmt, env: Env) -> bool:
        if isinstance(stmt, (p.FunctionDef, p.ClassDef)):
            if stmt not in (known := self.named.setdefault(stmt.name, [])):
                known.append(stmt)
        elif isinstance(stmt, (p.Assign, p.AnnAssign)):
            self._assign(stmt, env)
        elif isinstance(stmt, p.Match):
            self._match(stmt, env)
        elif isinstance(stmt, (p.Return, p.Raise)):
            for child in stmt.children():
                self._any(child, env)
            return True
        else:
            for child in stmt.children():
                self._any(child, env)
        return False

    def _any(self, node: p.Node, env: Env) -> None:
        if isinstance(node, p.Stmt):
            if isinstance(node, p.If):
                self._if(node, env)
            else:
                self._stmt(node, env)
        elif isinstance(node, p.Expr):
            self._expr(node, env)
        else:
            for child in node.children():
                self._any(child, env)

    def _match(self, stmt: p.Match, env: Env) -> None:
        subject = self.value(stmt.subject, env)
        for case in stmt.cases:
            fits = self.fits(case, subject)
            if fits is False:
                continue
            self._doubt += fits is None
            self._body(case.body, env if fits else dict(env))
            self._doubt -= fits is None
            if fits:
                break

    def _assign(self, stmt: p.Assign | p.AnnAssign, env: Env) -> None:
        targets = stmt.targets if isinstance(stmt, p.Assign) else (stmt.target,)
        if stmt.value is None or any(
            self.still.kept(t, self._methods[-1][0] if self._methods else None) for t in targets
        ):
            return
        thing = self.value(stmt.value, env)
        if isinstance(stmt.value, (p.Name, p.Attr)) and is_norm(stmt.value):
            thing = Thing(norm=True, span=stmt.span, text=p.text(stmt.value))
        if thing is not None and thing.norm:
            self._note(thing.span, thing.text)
        self._expr(stmt.value, env)
        for target in targets:
            for part in target.elts if isinstance(target, p.Sequence) else (target,):
                env.pop(p.text(part), None)
                if thing is not None and part is target:
                    env[p.text(part)] = thing

    # -- expressions -----------------------------------------------------------------------------------------

    def _expr(self, node: p.Expr, env: Env) -> None:
        if isinstance(node, p.Call):
            self._call(node, env)
        elif isinstance(node, p.Name):
            for definition in self.named.get(node.id, []):
                self._definition(definition, None, env)
        elif isinstance(node, p.IfExp):
            truth = self.truth(node.test, env)
            doubt = truth is None and self.asks(node.test)
            self._expr(node.test, env)
            self._doubt += doubt
            for branch, taken in ((node.body, truth is not False), (node.orelse, truth is not True)):
                if taken:
                    self._expr(branch, env)
            self._doubt -= doubt
        elif isinstance(node, p.Subscript) and (table := self.table(node.value)) is not None:
            chosen = self.looked_up(table, node.index, env)
            if chosen is not None:
                self._expr(chosen, env)
        elif isinstance(node, p.Dict) and _of_choices(node):
            return  # one of them is looked up, by what is seen there
        else:
            for child in node.children():
                self._any(child, env)

    def _call(self, node: p.Call, env: Env) -> None:
        name = terminal(node.func)
        if is_norm(node.func):
            self._note(node.span, p.text(node.func))
        elif name == "partial" and node.args and is_norm(node.args[0].value):
            self._note(node.span, p.text(node.args[0].value))
        elif isinstance(node.func, p.Subscript) and (thing := self.value(node.func, env)) is not None and thing.norm:
            self._note(node.span, thing.text)
        called, inside = self._called(node, env)
        around = env
        for definition, params in called:
            explicit = terminal(node.func) == "__init__" and not _makes_super(node)
            given = self.given(node.args[1:] if explicit else node.args, params, env)
            around = {**around, **given}
            if isinstance(definition, p.FunctionDef) and inside:
                self._methods[-1][1].add(definition.name)
                self._function(definition, given, env, own=True)
            else:
                self._definition(definition, given, env)
        if not called:
            self._expr(node.func, env)
        for arg in node.args:
            self._expr(arg.value, around)

    def _called(self, node: p.Call, env: Env) -> tuple[list[tuple[p.Node, tuple[p.Param, ...]]], bool]:
        """What a call runs, with the parameters that it fills; whether it is one of the object's own methods."""
        func = node.func
        cls = self._methods[-1][0] if self._methods else None
        if isinstance(func, p.Attr) and cls is not None:
            if p.text(func.value) in {"self", "cls", cls.name}:
                own = [s for s in cls.body if isinstance(s, p.FunctionDef) and s.name == func.name]
                if own:
                    return [(s, s.params if _static(s) else s.params[1:]) for s in own], True
            if func.name == "__init__":
                bases = [d for b in cls.bases if not b.keyword for d in self.named.get(terminal(b.value), [])]
                return [(d, self.parameters(d)) for d in bases if isinstance(d, p.ClassDef)], False
        held = env.get(p.text(func)) if isinstance(func, (p.Name, p.Attr)) else None
        name = held.name if held is not None else func.id if isinstance(func, p.Name) else ""
        found = [d for d in self.named.get(name, []) if isinstance(d, (p.ClassDef, p.FunctionDef))]
        return [(d, self.parameters(d)) for d in found], False


def _outside(env: Env) -> Env:
    """What another class or function may be told by name: not the fields of this object."""
    return {name: thing for name, thing in env.items() if not name.startswith("self.")}


def _makes_base(node: p.Node) -> bool:
    """`super().__init__(…)`, or a base's own `__init__`."""
    return isinstance(node, p.Call) and terminal(node.func) == "__init__"


def _makes_super(node: p.Call) -> bool:
    """`super().__init__(…)`: the object itself is no argument of it."""
    return isinstance(node.func, p.Attr) and isinstance(node.func.value, p.Call)


def _static(method: p.FunctionDef) -> bool:
    return any(terminal(d) == "staticmethod" for d in method.decorators)


def _of_choices(node: p.Dict) -> bool:
    """`{"bn": nn.BatchNorm2d(c), "gn": nn.GroupNorm(8, c)}`: norms of several kinds by their names."""
    made = [v.func if isinstance(v, p.Call) else v for v in node.values]
    return any(map(is_norm, made)) and any(_OTHER_NORM.search(terminal(v)) for v in made)


def _evaluates(node: p.Node) -> bool:
    """`return network.eval()`."""
    return isinstance(node, p.Return) and evaluated(node.value) is not None
