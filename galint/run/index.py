"""One walk over a program: its functions, classes, imports, loops and calls, and how its names are used."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

from galint import program as p
from galint.run.kinds import kind_by_use
from galint.run.names import CONFIG, SETTINGS
from galint.run.nodes import global_name, opposed, terminal
from galint.source import Span

T = TypeVar("T")

COMPOUND: frozenset[type] = frozenset({p.FunctionDef, p.ClassDef, p.For, p.While, p.If, p.With, p.Try, p.Match})


class Index:
    """What one program holds, and the project files that it imports, when given."""

    def __init__(self, bodies: Iterable[p.Body]) -> None:
        self._found: dict[str, Any] = {}
        self.functions: dict[str, list[p.FunctionDef]] = defaultdict(list)
        self.classes: dict[str, list[p.ClassDef]] = defaultdict(list)
        self.method_of: dict[p.FunctionDef, p.ClassDef] = {}
        self.uses: dict[str, set[str]] = defaultdict(set)
        self.called_with: dict[str, set[str]] = defaultdict(set)
        self.imported: set[str] = set()
        """Names that imports bind."""
        self.renamed: dict[str, str] = {}
        """What `from m import name as alias` calls by another name: alias → name."""
        self.aliases: dict[str, str] = {}
        """Other names that the code gives a function: `go = run` and `go = partial(run, …)`, name → function."""
        self.method_aliases: dict[str, str] = {}
        """Other names for an object's own methods: `self.run = self._run_plain`."""
        self.tables: dict[str, tuple[str, ...]] = {}
        """Dictionaries of functions: name → the names of those."""
        self.looked_up: dict[str, str] = {}
        """What is looked up in a dictionary and called by a name of its own: `go = STEPS[kind]`, name → dictionary."""
        self.made_by: dict[tuple[str, bool], str] = {}
        """What an object was made by: its name, and whether it is a plain one, → class."""
        self._flat: dict[p.Node, tuple[list[p.Node], int, int]] = {}
        """Compound statement → all nodes of the top-level statement around it, and its own stretch of them."""
        self._kinds: dict[str, str] = {}
        self.bodies = list(bodies)
        for body in self.bodies:
            for stmt in body:
                self._index(stmt, None)
                if type(stmt) in COMPOUND:
                    self._flatten(stmt)

    def _index(self, top: p.Node, holder: p.ClassDef | None) -> None:
        stack: list[tuple[p.Node, p.ClassDef | None]] = [(top, holder)]
        while stack:
            node, owner = stack.pop()
            below = owner if isinstance(node, (p.If, p.Try, p.With)) else None
            if isinstance(node, p.FunctionDef):
                self.functions[node.name].append(node)
                if owner is not None:
                    self.method_of[node] = owner
            elif isinstance(node, p.ClassDef):
                self.classes[node.name].append(node)
                below = node
            elif isinstance(node, p.Import):
                self.imported |= {alias or name.split(".")[0] for name, alias in node.names}
            elif isinstance(node, p.ImportFrom):
                self.imported |= {alias or name for name, alias in node.names}
                self.renamed |= {alias: name for name, alias in node.names if alias and alias != name}
            elif isinstance(node, p.Assign):
                self._note_alias(node)
            elif isinstance(node, p.Call):
                if isinstance(node.func, p.Attr):
                    name = terminal(node.func.value)
                    if name:
                        self.uses[name].add(node.func.name)
                        if node.args:
                            self.called_with[name].add(node.func.name)
                elif isinstance(node.func, p.Name):
                    self.uses[node.func.id].add("()")
            stack.extend([(child, below) for child in reversed(node.children())])

    def _note_table(self, node: p.Assign) -> None:
        name, value = terminal(node.targets[0]), node.value
        if isinstance(value, p.Dict):
            self.tables[name] = tuple(v.id for v in value.values if isinstance(v, p.Name))
        elif isinstance(node.targets[0], p.Name) and (table := table_of(value)):
            self.looked_up[name] = table

    def _note_alias(self, node: p.Assign) -> None:
        self._note_table(node)
        value = node.value
        if isinstance(value, p.Call) and (maker := terminal(value.func))[:1].isupper():
            for target in node.targets:
                if isinstance(target, (p.Name, p.Attr)):
                    self.made_by[terminal(target), isinstance(target, p.Name)] = maker
        if isinstance(value, p.Call) and terminal(value.func) == "partial" and value.args:
            value = value.args[0].value
        if isinstance(value, p.Attr) and isinstance(value.value, p.Name) and value.value.id == "self":
            others = {
                name for t in node.targets if isinstance(t, (p.Name, p.Attr)) and (name := terminal(t)) != value.name
            }
            self.method_aliases |= dict.fromkeys(others, value.name)
        if isinstance(value, p.Name):
            self.aliases |= {t.id: value.id for t in node.targets if isinstance(t, p.Name) and t.id != value.id}
        elif name := global_name(value):
            self.aliases |= {t.id: name for t in node.targets if isinstance(t, p.Name)}

    def walk(self, node: p.Node) -> Iterator[p.Node]:
        """`node` and everything below it, nested functions included; what is below a compound statement is kept."""
        if type(node) not in COMPOUND:
            return self._walk(node)
        if node not in self._flat:
            self._flatten(node)
        flat, start, end = self._flat[node]
        return iter(flat[start:end])

    def _flatten(self, top: p.Node) -> None:
        """Walk once for `top` and all compound statements in it: the nodes below each stand in a row."""
        flat: list[p.Node] = []
        stack: list[p.Node] = [top]
        opened: list[tuple[p.Node, int, int]] = []
        """Compound statements that are not left yet: where each begins, and how much waited when it did."""
        while stack:
            node = stack.pop()
            depth = len(stack)
            while opened and depth < opened[-1][2]:
                closed, start, _ = opened.pop()
                self._flat[closed] = flat, start, len(flat)
            if type(node) in COMPOUND:
                opened.append((node, len(flat), depth))
            flat.append(node)
            stack += node.children()
        for closed, start, _ in opened:
            self._flat[closed] = flat, start, len(flat)

    def once(self, name: str, find: Callable[[], T]) -> T:
        """What is found when it is first asked for, and then kept; mypyc does not compile `cached_property`."""
        if name not in self._found:
            self._found[name] = find()
        found: T = self._found[name]
        return found

    @property
    def loops(self) -> dict[Span, p.For | p.While]:
        """The loops of the program by their headers."""
        return self.once("loops", self._find_loops)

    def _find_loops(self) -> dict[Span, p.For | p.While]:
        out: dict[Span, p.For | p.While] = {}
        for node in self.everything():
            if isinstance(node, (p.For, p.While)):
                out.setdefault(node.span, node)
        return out

    @property
    def loop_over(self) -> dict[p.Node, p.For]:
        """The loop whose iterable a node is part of, also where the iterable has a name: `it = trange(n); for _ in it:`."""
        return self.once("loop_over", self._find_loop_over)

    def _find_loop_over(self) -> dict[p.Node, p.For]:
        loops = [node for node in self.everything() if isinstance(node, p.For)]
        out = {part: node for node in loops for part in self._walk(node.iter)}
        named = {node.iter.id: node for node in loops if isinstance(node.iter, p.Name)}
        for made in self.everything() if named else ():
            if isinstance(made, p.Assign) and isinstance(made.value, p.Call) and isinstance(made.targets[0], p.Name):
                if (loop := named.get(made.targets[0].id)) is not None:
                    for part in self._walk(made.value):
                        out.setdefault(part, loop)
        return out

    @property
    def calls(self) -> list[p.Call]:
        """Every call of the program."""
        return self.once("calls", self._find_calls)

    def _find_calls(self) -> list[p.Call]:
        return [node for node in self.everything() if isinstance(node, p.Call)]

    @property
    def counted(self) -> frozenset[str]:
        """The spellings of the attributes that the program counts up or down: `state.step` is then no method."""
        return self.once("counted", self._find_counted)

    def _find_counted(self) -> frozenset[str]:
        return frozenset(
            p.text(node.target)
            for node in self.everything()
            if isinstance(node, p.AugAssign) and isinstance(node.target, p.Attr)
        )

    @property
    def trained_by_settings(self) -> frozenset[tuple[str, str]]:
        """What holds settings, and the optimizer or scaler in it: `cfg.optimizer` where that is cleared and steps."""
        return self.once("trained by settings", self._find_trained_by_settings)

    def _find_trained_by_settings(self) -> frozenset[tuple[str, str]]:
        uses: dict[tuple[str, str], set[str]] = defaultdict(set)
        for call in self.calls:
            if isinstance(call.func, p.Attr):
                given = [call.func.value, *(a.value for a in call.args if call.func.name == "step")]
                for thing in given:  # `cfg.optimizer.step()`, `scaler.step(cfg.optimizer)`
                    if not isinstance(thing, (p.Attr, p.Subscript)):
                        continue
                    if CONFIG.search(p.text(thing.value)) or SETTINGS.search(p.text(thing.value)):
                        uses[terminal(thing.value), terminal(thing)].add(call.func.name)
        return frozenset(k for k, used in uses.items() if {"zero_grad", "step"} <= used or {"scale", "step"} <= used)

    @property
    def switches(self) -> frozenset[str]:
        """The spellings of what is only ever set to 0 and to 1: a flag, and no counter."""
        return self.once("switches", self._find_switches)

    def _find_switches(self) -> frozenset[str]:
        values: dict[str, set[object]] = defaultdict(set)
        for node in self.everything():
            if isinstance(node, p.Assign):
                constant = node.value.value if isinstance(node.value, p.Const) else None
                for target in node.targets:
                    for part in (target, *(n for n in target.children() if isinstance(n, p.Expr))):
                        values[p.text(part)].add(constant if part is target and type(constant) is int else None)
            elif isinstance(node, (p.AugAssign, p.For)):
                for below in self._walk(node.target):
                    if isinstance(below, p.Expr):
                        values[p.text(below)].add(None)
        return frozenset(name for name, given in values.items() if given == {0, 1})

    @property
    def moved(self) -> frozenset[str]:
        """The last names of what the program adds to or takes from: totals that run on over several micro-batches."""
        return self.once("moved", self._find_moved)

    def _find_moved(self) -> frozenset[str]:
        return frozenset(terminal(node.target) for node in self.everything() if isinstance(node, p.AugAssign))

    @property
    def ends(self) -> frozenset[str]:
        """The settings that a counter reaches where a loop is left: `if done == total: break`."""
        return self.once("ends", self._find_ends)

    def _find_ends(self) -> frozenset[str]:
        nodes = list(self.everything())
        moved = {p.text(n.target) for n in nodes if isinstance(n, p.AugAssign)}
        out: set[str] = set()
        for node in nodes:
            if isinstance(node, p.If) and isinstance(node.body[-1], p.Break) and isinstance(node.test, p.Compare):
                sides = (node.test.left, *node.test.comparators)
                if any(p.text(side) in moved for side in sides):
                    out |= {terminal(side) for side in sides if p.text(side) not in moved}
        return frozenset(out - {""})

    @property
    def called(self) -> frozenset[str]:
        """The last names of everything that is called."""
        return self.once("called", self._find_called)

    def calls_any(self, pattern: re.Pattern[str]) -> bool:
        """Whether the last name of anything that is called contains what a pattern asks for."""
        return self.once("calls " + pattern.pattern, lambda: any(map(pattern.search, self.called)))

    def _find_called(self) -> frozenset[str]:
        return frozenset(terminal(call.func) for call in self.calls)

    def everything(self) -> Iterator[p.Node]:
        """Every node of the program and of the files it imports."""
        return iter(self._nodes)

    @property
    def _nodes(self) -> list[p.Node]:
        return self.once("nodes", self._find_nodes)

    def _find_nodes(self) -> list[p.Node]:
        return [node for body in self.bodies for stmt in body for node in self.walk(stmt)]

    def _walk(self, node: p.Node) -> Iterator[p.Node]:
        stack = [node]
        while stack:
            top = stack.pop()
            yield top
            stack += top.children()

    def kind_of(self, name: str) -> str:
        """The kind a bare name suggests: by the methods called on it first, by its spelling last."""
        kind = self._kinds.get(name)
        if kind is None:
            kind = kind_by_use(name, self.uses.get(name, set()), self.called_with.get(name, set()))
            self._kinds[name] = kind
        return kind

    @property
    def dead_ends(self) -> frozenset[p.Node]:
        """`raise` statements before others of their block, which therefore never run."""
        return self.once("dead_ends", self._find_dead_ends)

    def _find_dead_ends(self) -> frozenset[p.Node]:
        return frozenset(s for block in self._blocks for s in block[:-1] if isinstance(s, p.Raise))

    @property
    def other_sides(self) -> dict[p.If, p.Body]:
        """What runs where a condition is false though it stands by itself, before it: `if i % n: …`, `if i % n == 0: …`."""
        return self.once("other_sides", self._find_other_sides)

    def _find_other_sides(self) -> dict[p.If, p.Body]:
        return {
            second: first.body
            for block in self._blocks
            for first, second in pairwise(block)
            if isinstance(first, p.If)
            and isinstance(second, p.If)
            and not (first.orelse or second.orelse)
            and opposed(first.test, second.test)
        }

    @property
    def _blocks(self) -> list[p.Body]:
        return self.once("blocks", self._find_blocks)

    def _find_blocks(self) -> list[p.Body]:
        blocks: list[object] = [*self.bodies]
        for node in self.everything():
            blocks += [getattr(node, name, ()) for name in ("body", "orelse", "final")]
        return [block for block in blocks if isinstance(block, tuple)]


def table_of(value: p.Expr) -> str:
    """The dictionary that `TABLE[key]` or `TABLE.get(key)` looks something up in, else ""."""
    if isinstance(value, p.Subscript):
        return terminal(value.value) if isinstance(value.value, (p.Name, p.Attr)) else ""
    gets = isinstance(value, p.Call) and isinstance(value.func, p.Attr) and value.func.name == "get"
    return terminal(value.func.value) if gets and isinstance(value, p.Call) and isinstance(value.func, p.Attr) else ""
