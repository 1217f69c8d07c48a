"""Parts of networks that are put in `eval()` whenever the network trains, so that their statistics stay as they are."""

from __future__ import annotations

from collections.abc import Iterable

from galint import program as p
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD
from galint.run.static import Static
from galint.run.values import Module

_EVERYTHING = ""
_MODES = ("train", "forward", "training_step", "on_train_start", "on_train_epoch_start", "on_train_batch_start")
"""The methods of a network that training calls before its layers are used."""


class Stillness:
    """Which fields of the classes of a program are still."""

    def __init__(self, static: Static) -> None:
        self.static = static
        self._of: dict[int, frozenset[str]] = {}
        self._outside: frozenset[str] | None = None

    def whole(self, cls: p.ClassDef) -> bool:
        """Whether all of a class is."""
        return _EVERYTHING in self.of(cls)

    def kept(self, target: p.Expr, cls: p.ClassDef | None) -> bool:
        """Whether what is assigned is such a part, or a name that becomes one."""
        if cls is None or not self.of(cls):
            return False
        if isinstance(target, p.Attr):
            return _field(target) in self.of(cls)
        stored = [n for n in self.static.walk(cls) if isinstance(n, p.Assign) and p.text(n.value) == p.text(target)]
        return any(_field(t) in self.of(cls) for n in stored for t in n.targets)

    def holds(self, module: Module) -> bool:
        """Whether a module that the run has made is such a part, by the field that it was stored in."""
        made, name = module.made, module.path.rpartition(".")[2]
        if made is None or not name:
            return False
        around = [
            cls
            for classes in self.static.classes.values()
            for cls in classes
            if cls.span.row <= made.row <= max(n.span.end_row for n in self.static.walk(cls))
        ]
        return any(name in self.of(cls) or self.whole(cls) for cls in around)

    def of(self, cls: p.ClassDef) -> frozenset[str]:
        """The fields of a class that are still."""
        if id(cls) not in self._of:
            self._of[id(cls)] = frozenset()  # a class may derive from its own name
            self._of[id(cls)] = self._find(cls)
        return self._of[id(cls)]

    def _find(self, cls: p.ClassDef) -> frozenset[str]:
        methods = {s.name: s for s in cls.body if isinstance(s, p.FunctionDef)}
        modes = [methods[name] for name in _MODES if name in methods]
        called = {
            terminal(n.func)
            for method in modes
            for n in self.static.walk(method)
            if isinstance(n, p.Call) and isinstance(n.func, p.Attr) and p.text(n.func.value) == "self"
        }
        modes += [methods[name] for name in sorted(called) if name in methods and methods[name] not in modes]
        off = _off_by_default(methods.get("__init__"))
        found = frozenset(name for method in modes for name in self._stilled(method, off))
        fields = {_field(t) for n in self.static.walk(cls) if isinstance(n, p.Assign) for t in n.targets}
        found |= self._stilled_outside() & fields
        for base in cls.bases:
            for inherited in self.static.classes.get(terminal(base.value), ()):
                found |= self.of(inherited)
        return found

    def _stilled(self, method: p.FunctionDef, off: frozenset[str]) -> set[str]:
        """The fields that a method puts in `eval()`; the empty name for the network itself."""
        skipped: set[p.Node] = set()
        loops: dict[str, list[p.Expr]] = {}
        found: set[str] = set()
        for node in self.static.walk(method):
            if isinstance(node, p.If) and _needs(node.test, off):
                skipped |= {n for stmt in node.body for n in self.static.walk(stmt)}
            elif isinstance(node, p.For):
                loops.setdefault(terminal(node.target), []).append(node.iter)
            elif isinstance(node, p.Assign) and isinstance(node.targets[0], p.Name):
                loops.setdefault(node.targets[0].id, []).append(node.value)
            receiver = _put_in_eval(node)
            if receiver is not None and node not in skipped:
                sources = loops.get(receiver.id, [receiver]) if isinstance(receiver, p.Name) else [receiver]
                for source in sources:
                    found |= self._fields_in(source)
        return found

    def _put_in_eval_by(self, function: p.FunctionDef) -> list[p.Expr]:
        """What a function puts in evaluation; for a loop's variable what the loop goes over."""
        nodes = list(self.static.walk(function))
        loops = [(n.target.id, n.iter) for n in nodes if isinstance(n, p.For) and isinstance(n.target, p.Name)]
        parts = [part for part in map(_put_in_eval, nodes) if part is not None]
        names = {part.id for part in parts if isinstance(part, p.Name)}
        return [*parts, *(over for name, over in loops if name in names)]

    def _parts_in(self, expr: p.Expr) -> set[str]:
        """`model.body` and `self.model.body`, not `self.model`."""
        attrs = [n for n in self.static.walk(expr) if isinstance(n, p.Attr)]
        return {n.name for n in attrs if p.text(n.value) != "self" and n.name != "module"}

    def _fields_in(self, expr: p.Expr) -> set[str]:
        """`self.body` of `self.body.layers[0]`; the whole of `self.modules()`, `super()` and `getattr(self, …)`."""
        fields = {name for n in self.static.walk(expr) if isinstance(n, p.Attr) and (name := _field(n))}
        calls = {"modules", "children", "named_modules", "named_children"} & fields
        if (fields and not calls) or (isinstance(expr, p.Name) and expr.id != "self"):
            return fields
        return {_EVERYTHING}

    def _stilled_outside(self) -> frozenset[str]:
        """Fields of a network that the training code puts in `eval()` beside the network's `train()`."""
        if self._outside is None:
            self._outside = frozenset(self._find_outside())
        return self._outside

    def _find_outside(self) -> set[str]:
        found: set[str] = set()
        again: set[str] = set()
        for functions in self.static.functions.values():
            for function in functions:
                modes = [n for n in self.static.walk(function) if isinstance(n, p.Call) and terminal(n.func) == "train"]
                again |= {terminal(n.func.value) for n in modes if isinstance(n.func, p.Attr) and not _put_in_eval(n)}
                if modes or BACKWARD in self.static.tags(function):
                    found |= {name for part in self._put_in_eval_by(function) for name in self._parts_in(part)}
        return found - again


def evaluated(node: p.Node | None) -> p.Expr | None:
    """What `x.eval()` puts in evaluation."""
    if not isinstance(node, p.Call) or not isinstance(node.func, p.Attr):
        return None
    return node.func.value if node.func.name == "eval" and not node.args else None


def _put_in_eval(node: p.Node) -> p.Expr | None:
    """What `x.eval()` and `x.train(False)` put in evaluation."""
    if (network := evaluated(node)) is not None or not isinstance(node, p.Call) or not isinstance(node.func, p.Attr):
        return network
    off = len(node.args) == 1 and isinstance(node.args[0].value, p.Const) and node.args[0].value.value is False
    return node.func.value if node.func.name == "train" and off else None


def _field(node: p.Expr) -> str:
    """The name of `self.name`."""
    return node.name if isinstance(node, p.Attr) and isinstance(node.value, p.Name) and node.value.id == "self" else ""


def _off_by_default(init: p.FunctionDef | None) -> frozenset[str]:
    params: Iterable[p.Param] = init.params if init is not None else ()
    return frozenset(q.name for q in params if isinstance(q.default, p.Const) and not q.default.value)


def _needs(test: p.Expr, off: frozenset[str]) -> bool:
    """Whether a test is true only where an option is given that is off by default."""
    parts = test.values if isinstance(test, p.BoolOp) and test.op == "and" else (test,)
    return any(terminal(part) in off for part in parts if isinstance(part, (p.Name, p.Attr)))
