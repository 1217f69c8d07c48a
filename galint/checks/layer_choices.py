"""What the arguments, defaults and tests of a constructor choose: which layer a name stands for, which branch is taken."""

from __future__ import annotations

import re

from galint import program as p
from galint.run.nodes import terminal
from galint.run.static import Static
from galint.source import Span

NORM = re.compile(r"^(Lazy|Sync)?BatchNorm([123]d)?$")
_OPTION = re.compile(r"norm(?!al)|(^|_|\.)bn($|_)", re.I)
_WORD = re.compile(r"norm(?!al)|bn$|^(batch|instance|group|layer|gn|in|ln)_?([123]d)?$", re.I)
"""How options that choose a norm are called, and how the norms are in them."""


def is_norm(node: p.Expr) -> bool:
    """Whether an expression spells a BatchNorm class."""
    return isinstance(node, (p.Name, p.Attr)) and NORM.match(terminal(node)) is not None


def constructor(cls: p.ClassDef) -> p.FunctionDef | None:
    """A class's own `__init__`."""
    return next((s for s in cls.body if isinstance(s, p.FunctionDef) and s.name == "__init__"), None)


class Thing:
    """Something known: a constant, a BatchNorm class and where it is named, or another class or function."""

    def __init__(
        self,
        value: p.NumberOrText = None,
        *,
        constant: bool = False,
        norm: bool = False,
        name: str = "",
        text: str = "",
        span: Span | None = None,
    ) -> None:
        self.value = value
        self.constant = constant
        self.norm = norm
        self.name = name
        self.text = text
        self.span = span if span is not None else Span(0, 0, 0, 0)

    def __repr__(self) -> str:
        return repr(self.value) if self.constant else f"<{self.text or self.name}{self.norm}>"


Env = dict[str, Thing]


def layer_class(name: str, text: str, span: Span) -> Thing:
    """A class or function that is handed over."""
    norm = NORM.match(name) is not None
    return Thing(norm=norm, name=name, text=text if norm else name, span=span)


class Choices:
    """Values of names and answers of tests; None where only a run would tell."""

    def __init__(self, static: Static) -> None:
        self.static = static
        self.named: dict[str, list[p.Node]] = {}
        for body in static.bodies:
            for stmt in body:
                if isinstance(stmt, (p.ClassDef, p.FunctionDef)):
                    self.named.setdefault(stmt.name, []).append(stmt)
                elif isinstance(stmt, p.Assign) and isinstance(stmt.targets[0], p.Name):
                    self.named.setdefault(stmt.targets[0].id, []).append(stmt)

    def parameters(self, definition: p.Node) -> tuple[p.Param, ...]:
        """What a class or function is given, its own object left out; a class without a constructor has its base's."""
        if isinstance(definition, p.FunctionDef):
            return definition.params
        seen: list[p.Node] = []
        while isinstance(definition, p.ClassDef) and definition not in seen:
            seen.append(definition)
            init = constructor(definition)
            if init is not None:
                return init.params[1:]
            bases = [d for b in definition.bases for d in self.named.get(terminal(b.value), [])]
            definition = bases[0] if bases else definition
        return ()

    def given(self, args: tuple[p.Arg, ...], params: tuple[p.Param, ...], env: Env) -> dict[str, Thing]:
        """The arguments of a call by the names of the parameters; a name alone stands for what is not known."""
        out: Env = {}
        names = [q.name for q in params if q.kind == "arg"]
        for place, arg in enumerate(args):
            if arg.star == "*":
                names = []
            elif arg.star:
                out |= {q.name: env[q.name] for q in params if q.name in env and q.name not in out}
            else:
                name = arg.keyword or (names[place] if place < len(names) else "")
                if name:
                    out[name] = self.value(arg.value, env) or UNKNOWN
        return out

    def _bound(self, params: tuple[p.Param, ...], given: Env | None, around: Env) -> Env:
        """What parameters stand for; without arguments, for what is called so where the function is handed on.

        An unknown argument is taken for the default where that is a number or text.
        """
        env = {name: thing for name, thing in {**around, **(given or {})}.items() if thing is not UNKNOWN}
        for param in params:
            default = self._default(param)
            if given is None:
                if param.name not in around and default is not None:
                    env[param.name] = default
            elif given.get(param.name, UNKNOWN) is UNKNOWN:
                env.pop(param.name, None)
                sure = param.name not in given or (
                    default is not None and default.constant and default.value is not None
                )
                if default is not None and sure:
                    env[param.name] = default
        return env

    def _default(self, param: p.Param) -> Thing | None:
        if param.default is None:
            return None
        if is_norm(param.default):
            return Thing(norm=True, span=param.span, text=p.text(param.default))
        return self.value(param.default, {})

    def value(self, node: p.Expr, env: Env) -> Thing | None:
        """What an expression gives."""
        if isinstance(node, p.Const):
            return Thing(node.value, constant=True)
        if isinstance(node, (p.Name, p.Attr)):
            return self._held(node, env)
        if isinstance(node, p.Lambda):
            makes = next((c.func for c in self.static.walk(node) if isinstance(c, p.Call) and is_norm(c.func)), None)
            return Thing(norm=makes is not None, name="<lambda>", text=p.text(makes) if makes else "", span=node.span)
        if isinstance(node, p.IfExp):
            truth = self.truth(node.test, env)
            return None if truth is None else self.value(node.body if truth else node.orelse, env)
        if isinstance(node, p.BoolOp):
            for operand in node.values:
                thing = self.value(operand, env)
                if thing is None or _true(thing) == (node.op == "or"):
                    return thing
            return thing
        if isinstance(node, p.Subscript) and (table := self.table(node.value)) is not None:
            chosen = self.looked_up(table, node.index, env)
            return self.value(chosen, env) if chosen is not None else None
        return self._result(node, env) if isinstance(node, p.Call) else None

    def _held(self, node: p.Name | p.Attr, env: Env) -> Thing | None:
        text = p.text(node)
        name = terminal(node)
        if text in env:
            return env[text]
        if is_norm(node):
            return layer_class(name, text, node.span)
        known = isinstance(node, p.Name) and any(
            isinstance(d, (p.ClassDef, p.FunctionDef)) for d in self.named.get(name, [])
        )
        return layer_class(name, text, node.span) if known or (name[:1].isupper() and not name.isupper()) else None

    def _result(self, node: p.Call, env: Env) -> Thing | None:
        name = terminal(node.func)
        if name == "partial" and node.args:
            thing = self.value(node.args[0].value, env)
            return thing if thing is None or not thing.norm else Thing(norm=True, text=thing.text, span=node.span)
        if isinstance(node.func, p.Attr) and name in {"lower", "upper", "strip"} and not node.args:
            thing = self.value(node.func.value, env)
            if thing is not None and isinstance(thing.value, str):
                text = thing.value
                changed = text.lower() if name == "lower" else text.upper() if name == "upper" else text.strip()
                return Thing(changed, constant=True)
        return None

    def truth(self, test: p.Expr, env: Env) -> bool | None:
        """The answer of a test."""
        if isinstance(test, p.Unary) and test.op == "not":
            truth = self.truth(test.operand, env)
            return None if truth is None else not truth
        if isinstance(test, p.BoolOp):
            answers = [self.truth(v, env) for v in test.values]
            decisive = test.op == "or"
            return decisive if decisive in answers else None if None in answers else not decisive
        if isinstance(test, p.Compare):
            return self._compared(test, env) if len(test.ops) == 1 else None
        thing = self.value(test, env)
        return None if thing is None else _true(thing)

    def _compared(self, test: p.Compare, env: Env) -> bool | None:
        op, right = test.ops[0], test.comparators[0]
        left = self.value(test.left, env)
        if left is None:
            return None
        if op in {"in", "not in"} and isinstance(right, p.Sequence):
            options = [self.value(v, env) for v in right.elts]
            if not left.constant or not all(v is not None and v.constant for v in options):
                return None
            return any(v is not None and v.value == left.value for v in options) == (op == "in")
        other = self.value(right, env)
        if op not in {"==", "!=", "is", "is not"} or other is None or not (left.constant or other.constant):
            return None
        same = left.constant and other.constant and left.value == other.value
        return same == (op in {"==", "is"})

    def fits(self, case: p.Case, subject: Thing | None) -> bool | None:
        """Whether a case of a `match` is taken."""
        texts = {n.value for n in self.static.walk(case.pattern) if isinstance(n, p.Const)}
        if not texts:
            return True
        return subject.value in texts if subject is not None and subject.constant else None

    def table(self, node: p.Expr) -> p.Dict | None:
        """The dictionary that something is looked up in: written there, in `ModuleDict(…)`, or a name of the file's."""
        if isinstance(node, p.Call) and terminal(node.func) in {"ModuleDict", "dict"} and node.args:
            node = node.args[0].value
        if isinstance(node, p.Name):
            made = [d.value for d in self.named.get(node.id, []) if isinstance(d, p.Assign)]
            return made[0] if len(made) == 1 and isinstance(made[0], p.Dict) else None
        return node if isinstance(node, p.Dict) else None

    def looked_up(self, table: p.Dict, index: p.Expr, env: Env) -> p.Expr | None:
        """What a dictionary has under a key."""
        key = self.value(index, env)
        if key is None or not key.constant:
            return None
        pairs = zip(table.keys, table.values, strict=True)
        return next((v for k, v in pairs if isinstance(k, p.Const) and k.value == key.value), None)

    def asks(self, test: p.Expr) -> bool:
        """Whether a test asks which of several norms is wanted, by their names."""
        for node in self.static.walk(test):
            if isinstance(node, p.Compare):
                sides = [node.left, *node.comparators]
                sides += [e for side in sides if isinstance(side, p.Sequence) for e in side.elts]
                words = [s.value for s in sides if isinstance(s, p.Const) and isinstance(s.value, str)]
                if words and (any(map(_WORD.search, words)) or any(_OPTION.search(p.text(s)) for s in sides)):
                    return True
        return False

    def asks_option(self, stmt: p.If) -> bool:
        """Whether an unknown test chooses: by a word, or because no layer was given (`if norm is None: norm = …`)."""
        if self.asks(stmt.test):
            return True
        test = stmt.test
        asked = p.text(test.left) if isinstance(test, p.Compare) and test.ops[0] in {"is", "is not"} else ""
        return any(isinstance(s, p.Assign) and p.text(s.targets[0]) == asked for s in (*stmt.body, *stmt.orelse))


def _true(thing: Thing) -> bool:
    return bool(thing.value) if thing.constant else True


UNKNOWN = Thing()
"""An argument that is given, but only a run would tell what it is."""
