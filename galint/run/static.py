"""What a file's code can reach, read off once: gradient operations, guard names, how names are used.

These facts never accuse; they steer the abstract run (which branch leads to training, how long a loop
stands for, which unknown integer is N).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property, lru_cache

from galint import program as p
from galint.run.update_effects import is_update_effect
from galint.source import Span

_SLOTS: dict[type, tuple[tuple[str, bool | None], ...]] = {}
_SEVERAL = re.compile(r"tuple\[[A-Z]\w+, \.\.\.\]")
_HOLDS_NODES = re.compile(r"\b(?!Literal|None|NumberOrText)[A-Z]\w+")
_COMPOUND = (p.FunctionDef, p.ClassDef, p.For, p.While, p.If, p.With, p.Try, p.Match)
_HOLDERS = (*_COMPOUND, p.Handler, p.Case)
_GENERIC_METHODS = frozenset(
    [
        "train",
        "eval",
        "step",
        "forward",
        "backward",
        "zero_grad",
        "update",
        "to",
        "cuda",
        "cpu",
        "parameters",
        "state_dict",
        "load_state_dict",
        "add",
        "get",
        "set",
        "append",
        "extend",
        "items",
        "keys",
        "values",
        "close",
        "write",
        "log",
        "save",
        "load",
        "mean",
        "sum",
        "item",
        "size",
        "format",
        "join",
        "split",
        "copy",
        "reset",
    ]
)
_FOREIGN = 10_000_000
_NAMESAKES = 64
"""Functions of one name that a call is followed into."""
_TORCH_KINDS = frozenset({"module", "optimizer", "scheduler", "scaler", "loader", "criterion"})
_NOT_STEPPERS = re.compile(r"sched|^prof|profiler|^env|envs$|progress|pbar|timer|warmup|meter|logger", re.I)
_NAMED_SCALERS = re.compile(r"scaler|loss_scal|grad_scal", re.I)
LOSS_NAME = re.compile(r"loss|cost|objective|(^|_)(elbo|nll|ce|kld?)(_|$)", re.I)

BACKWARD, STEP, ZERO, SYNC, SCALE, WRAP, COUNT = "backward", "step", "zero", "sync", "scale", "wrap", "count"
EFFECT = "effect"
"""What belongs to the optimizer step though it is none, such as a moving average of the weights."""
_NOTHING: tuple[frozenset[str], frozenset[tuple[str, bool]]] = (frozenset(), frozenset())
GRADIENT = frozenset({BACKWARD, STEP, ZERO, SYNC, SCALE, WRAP, EFFECT})
_CALL_TAGS = {
    "zero_grad": ZERO,
    "unscale_": SYNC,
    "clip_grad_norm_": SYNC,
    "clip_grad_value_": SYNC,
    "clip_grad_norm": SYNC,
    "no_sync": SYNC,
    "no_backward_sync": SYNC,
    "set_requires_gradient_sync": SYNC,
    "accumulate": SYNC,
    "DistributedDataParallel": WRAP,
    "DDP": WRAP,
    "FullyShardedDataParallel": WRAP,
    "FSDP": WRAP,
    "fully_shard": WRAP,
    "GradScaler": WRAP,
    "Accelerator": WRAP,
    "convert_sync_batchnorm": WRAP,
    "initialize": WRAP,
}


def children(node: object) -> list[p.Node]:
    """The nodes directly below `node`."""
    cls = node.__class__
    plan = _SLOTS.get(cls)
    if plan is None:
        plan = _SLOTS[cls] = _node_slots(cls)
    out: list[p.Node] = []
    for slot, several in plan:
        value = getattr(node, slot)
        if several is None:
            out += [item for item in value if isinstance(item, p.Node)]
        elif several:
            out += value
        elif value is not None:
            out.append(value)
    return out


def _node_slots(cls: type) -> tuple[tuple[str, bool | None], ...]:
    """The fields that can hold nodes, and whether each holds one, several, or (None) several among other things."""
    if not is_dataclass(cls):
        return ()
    out: list[tuple[str, bool | None]] = []
    for f in fields(cls):
        kind = str(f.type)
        if f.name == "span" or not _HOLDS_NODES.search(kind):
            continue
        several = kind == "Body" or bool(_SEVERAL.fullmatch(kind))
        out.append((f.name, several if several or not kind.startswith("tuple") else None))
    return tuple(out)


def terminal(node: p.Expr | None) -> str:
    """The last name in an expression: `args.accum` → `accum`, `cfg["accum"]` → `accum`."""
    if isinstance(node, p.Name):
        return node.id
    if isinstance(node, p.Attr):
        return node.name
    if isinstance(node, p.Subscript):
        if isinstance(node.index, p.Const) and isinstance(node.index.value, str):
            return node.index.value
        return terminal(node.value)
    if isinstance(node, p.Call):
        inner = terminal(node.func)
        if inner in {"int", "max", "min", "round", "float", "abs"} and node.args:
            return next((t for a in node.args if (t := terminal(a.value))), inner)
        return inner
    return ""


@lru_cache(maxsize=4096)
def path_terminal(path: str) -> str:
    """The last name in a path's spelling."""
    names = re.findall(r"[A-Za-z_]\w*", path)
    return names[-1] if names else ""


def bails(body: p.Body) -> bool:
    """True when a block always leaves: raise, return, continue, break or exit at its end."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, p.Raise | p.Return | p.Continue | p.Break):
        return True
    if isinstance(last, p.ExprStmt) and isinstance(last.value, p.Call):
        return terminal(last.value.func) in {"exit", "_exit", "quit", "abort"}
    while isinstance(last, p.If) and len(last.orelse) == 1 and isinstance(last.orelse[0], p.If):  # `elif`
        if not bails(last.body):
            return False
        last = last.orelse[0]
    if isinstance(last, p.If):
        return bool(last.orelse) and bails(last.body) and bails(last.orelse)
    return False


def raises(body: p.Body) -> bool:
    """True when a block always ends in an exception or in leaving the program."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, p.Raise):
        exc = last.exc.func if isinstance(last.exc, p.Call) else last.exc
        return terminal(exc) not in {"StopIteration", "IndexError", "StopAsyncIteration"}
    if isinstance(last, p.ExprStmt) and isinstance(last.value, p.Call):
        return terminal(last.value.func) in {"exit", "_exit", "quit", "abort"}
    while isinstance(last, p.If) and len(last.orelse) == 1 and isinstance(last.orelse[0], p.If):  # `elif`
        if not raises(last.body):
            return False
        last = last.orelse[0]
    if isinstance(last, p.If):
        return bool(last.orelse) and raises(last.body) and raises(last.orelse)
    return False


def ends_in_raise(body: p.Body) -> bool:
    """True for a run of early returns that ends in `raise`: one of the returns is the path."""
    return bool(body) and raises(body) and all(isinstance(s, p.If | p.Raise | p.ExprStmt) for s in body)


class Static:
    """Facts of one program (and of the project files it imports, when given)."""

    def __init__(self, bodies: Iterable[p.Body]) -> None:
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
        self.window_names: set[str] = set()
        self.counters: set[str] = set()
        """Names that stand left of `% N` in a step's guard."""
        self.guard_names: set[str] = set()
        self._flat: dict[p.Node, list[p.Node]] = {}
        self._kinds: dict[str, str] = {}
        self._own: dict[p.Node, tuple[frozenset[str], frozenset[tuple[str, bool]]]] = {}
        self._reach: dict[p.Node, frozenset[str]] = {}
        self._last_rows: dict[p.FunctionDef, int] = {}
        self._branches: dict[p.If, tuple[frozenset[str], frozenset[str], bool]] = {}
        self._callees: dict[tuple[str, bool], tuple[p.FunctionDef, ...]] = {}
        self._function_tags: dict[p.FunctionDef, frozenset[str]] = {}
        self.bodies = list(bodies)
        for body in self.bodies:
            for stmt in body:
                self._index(stmt, None)
        self._fixpoint()
        self._find_window_names()

    # --- index ---------------------------------------------------------------------------------

    def _index(self, top: p.Node, holder: p.ClassDef | None) -> None:
        stack: list[tuple[p.Node, p.ClassDef | None]] = [(top, holder)]
        while stack:
            node, owner = stack.pop()
            below = owner if isinstance(node, p.If | p.Try | p.With) else None
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
            stack.extend([(child, below) for child in reversed(children(node))])

    def _note_alias(self, node: p.Assign) -> None:
        value = node.value
        if isinstance(value, p.Call) and terminal(value.func) == "partial" and value.args:
            value = value.args[0].value
        if isinstance(value, p.Name):
            self.aliases |= {t.id: value.id for t in node.targets if isinstance(t, p.Name) and t.id != value.id}

    # --- reachability --------------------------------------------------------------------------

    def _own_tags(self, top: p.Node) -> tuple[frozenset[str], frozenset[tuple[str, bool]]]:
        """Tags of the subtree itself, and the (name, through self) of what it calls."""
        known = self._own.get(top)
        if known is not None:
            return known
        own = self._own
        order: list[tuple[p.Node, list[p.Node]]] = []
        stack: list[p.Node] = [top]
        while stack:  # no recursion, for a long chain of `elif` is deep
            node = stack.pop()
            if node not in own:
                below = self._counted(node)
                order.append((node, below))
                stack += below
        for node, below in reversed(order):  # children first
            tags: set[str] = set()
            calls: set[tuple[str, bool]] = set()
            if isinstance(node, p.Call):
                self._call_tags(node, tags, calls)
            elif isinstance(node, p.AugAssign):
                name = terminal(node.target)
                if node.op in {"/", "*"} and LOSS_NAME.search(name):
                    tags.add(SCALE)
                if isinstance(node.target, p.Attr) and node.target.name == "grad":
                    tags.add(SCALE)
            elif isinstance(node, p.Assign):
                self._assign_tags(node, tags)
            elif isinstance(node, p.Attr) and node.name in {"no_sync", "no_backward_sync"}:
                tags.add(SYNC)  # `context = model.no_sync if hold else nullcontext`
            for child in below:
                found = own[child]
                if found is not _NOTHING:
                    tags |= found[0]
                    calls |= found[1]
            own[node] = (frozenset(tags), frozenset(calls)) if tags or calls else _NOTHING
        return own[top]

    @staticmethod
    def _counted(node: p.Node) -> list[p.Node]:
        """The children whose operations are the node's own: not those of nested functions, classes and decorators."""
        below = children(node)
        if not isinstance(node, _HOLDERS):
            return below  # expressions and simple statements hold no definitions
        skipped = node.decorators if isinstance(node, p.FunctionDef) else ()
        return [c for c in below if not isinstance(c, p.FunctionDef | p.ClassDef) and c not in skipped]

    def _call_tags(self, node: p.Call, tags: set[str], calls: set[tuple[str, bool]]) -> None:
        func = node.func
        name = terminal(func)
        if isinstance(func, p.Attr):
            receiver = terminal(func.value)
            if name in {"backward", "manual_backward"}:
                tags.add(BACKWARD)
            elif (name == "step" and not _NOT_STEPPERS.search(receiver) and receiver != "") or (
                name == "step" and receiver == ""
            ):
                tags.add(STEP)
            through_self = isinstance(func.value, p.Name) and func.value.id in {"self", "cls"}
            through_self = through_self or (isinstance(func.value, p.Call) and terminal(func.value.func) == "super")
            if isinstance(func.value, p.Name) and func.value.id in self.imported:
                calls.add((f"@{name}", True))  # a function of an imported file
            if through_self or name not in _GENERIC_METHODS or self.kind_of(receiver) not in _TORCH_KINDS:
                calls.add((name, through_self))
        elif isinstance(func, p.Name):
            calls.add((name, True))
        if name in _CALL_TAGS:
            tags.add(_CALL_TAGS[name])
        if is_update_effect(func):
            tags.add(EFFECT)
        if name in {"zero_", "mul_", "div_"} and isinstance(func, p.Attr) and "grad" in p.text(func.value):
            tags.add(ZERO if name == "zero_" else SCALE)
        if name in {"optimize", "optimizer_step", "step_optimizer", "take_step"} and any(
            "opt" in p.text(a.value) for a in node.args
        ):
            tags.add(STEP)
        if _NAMED_SCALERS.search(name) and len(node.args) >= 2:
            spelled = " ".join(p.text(a.value) for a in node.args[:3])
            if re.search(r"optim", spelled, re.I):
                tags |= {BACKWARD, STEP}
        for arg in node.args:  # a function handed over is a function that may be called
            if isinstance(arg.value, p.Name) and arg.value.id in self.functions:
                calls.add((arg.value.id, True))
            elif (
                isinstance(arg.value, p.Attr) and p.text(arg.value.value) == "self" and arg.value.name in self.functions
            ):
                calls.add((arg.value.name, True))

    def _assign_tags(self, node: p.Assign, tags: set[str]) -> None:
        for target in node.targets:
            name = terminal(target)
            if isinstance(target, p.Attr) and name in {"grad", "require_backward_grad_sync"}:
                tags.add(SYNC)
            if LOSS_NAME.search(name) and any(
                isinstance(n, p.BinOp) and n.op in {"/", "*"} for n in self.walk(node.value)
            ):
                tags.add(SCALE)

    def walk(self, node: p.Node) -> Iterator[p.Node]:
        """`node` and everything below it, nested functions included; what is below a compound statement is kept."""
        if not isinstance(node, _COMPOUND):
            return self._walk(node)
        known = self._flat.get(node)
        if known is None:
            known = self._flat[node] = list(self._walk(node))
        return iter(known)

    @cached_property
    def loops(self) -> dict[Span, p.For | p.While]:
        """The loops of the program by their headers."""
        out: dict[Span, p.For | p.While] = {}
        for node in self.everything():
            if isinstance(node, p.For | p.While):
                out.setdefault(node.span, node)
        return out

    @cached_property
    def loop_over(self) -> dict[p.Node, p.For]:
        """The loop whose iterable a node is part of."""
        return {part: node for node in self.everything() if isinstance(node, p.For) for part in self._walk(node.iter)}

    @cached_property
    def calls(self) -> list[p.Call]:
        """Every call of the program."""
        return [node for node in self.everything() if isinstance(node, p.Call)]

    @cached_property
    def called(self) -> frozenset[str]:
        """The last names of everything that is called."""
        return frozenset(terminal(call.func) for call in self.calls)

    def everything(self) -> Iterator[p.Node]:
        """Every node of the program and of the files it imports."""
        for body in self.bodies:
            for stmt in body:
                yield from self.walk(stmt)

    def _walk(self, node: p.Node) -> Iterator[p.Node]:
        stack = [node]
        while stack:
            top = stack.pop()
            yield top
            stack += children(top)

    def callees(self, call: tuple[str, bool]) -> tuple[p.FunctionDef, ...]:
        """The functions of the file that a call by this name may run."""
        known = self._callees.get(call)
        if known is not None:
            return known
        name, direct = call
        found: list[p.FunctionDef] = []
        if name.startswith("@"):
            self._callees[call] = tuple(self._foreign(name[1:]))
            return self._callees[call]
        for func in self.functions.get(name, ()):
            is_method = func in self.method_of
            if (
                direct
                or (is_method and name not in _GENERIC_METHODS)
                or (
                    is_method
                    and name in {"train", "step", "update", "forward"}
                    and not self._is_module(self.method_of[func])
                )
            ):
                found.append(func)
        for cls in self.classes.get(name, ()):
            if direct:
                found += [f for f in cls.body if isinstance(f, p.FunctionDef) and f.name == "__init__"]
        if direct and name in self.aliases:
            found += [f for f in self.functions.get(self.aliases[name], ()) if f not in self.method_of]
        if direct and name in self.renamed:
            found += self._foreign(self.renamed[name])
        if name in {"__call__"}:
            found += [f for f in self.functions.get("__call__", ())]
        self._callees[call] = tuple(found[:_NAMESAKES])
        return self._callees[call]

    def _foreign(self, name: str) -> list[p.FunctionDef]:
        """The functions of imported files by this name."""
        return [f for f in self.functions.get(name, ()) if f not in self.method_of and f.span.row >= _FOREIGN]

    @staticmethod
    def _is_module(cls: p.ClassDef) -> bool:
        return any(terminal(b.value) in {"Module", "LightningModule", "Optimizer"} for b in cls.bases)

    def _fixpoint(self) -> None:
        everything = [f for group in self.functions.values() for f in group]
        own: dict[p.FunctionDef, tuple[frozenset[str], frozenset[tuple[str, bool]]]] = {}
        for func in everything:
            tags: set[str] = set()
            calls: set[tuple[str, bool]] = set()
            for stmt in func.body:
                if isinstance(stmt, p.FunctionDef | p.ClassDef):
                    continue
                below = self._own_tags(stmt)
                tags |= below[0]
                calls |= below[1]
            own[func] = (frozenset(tags), frozenset(calls))
            self._function_tags[func] = own[func][0]
        callers: dict[p.FunctionDef, list[p.FunctionDef]] = defaultdict(list)
        for func in everything:
            for call in own[func][1]:
                for callee in self.callees(call):
                    callers[callee].append(func)
        work = list(everything)
        while work:
            callee = work.pop()
            for func in callers[callee]:
                merged = self._function_tags[func] | self._function_tags[callee]
                if merged != self._function_tags[func]:
                    self._function_tags[func] = merged
                    work.append(func)

    def tags(self, node: p.Node) -> frozenset[str]:
        """The gradient operations that running `node` can reach, through the file's functions too."""
        known = self._reach.get(node)
        if known is not None:
            return known
        if isinstance(node, p.FunctionDef):
            result = self._function_tags.get(node, frozenset())
        elif isinstance(node, p.ClassDef):
            result = frozenset()
        else:
            tags, calls = self._own_tags(node)
            merged = set(tags)
            for call in calls:
                for callee in self.callees(call):
                    # `simulator.run(…)` inside `run` is another object's method, not a recursion.
                    if call[1] or not self.holds(callee, node):
                        merged |= self._function_tags[callee]
            result = frozenset(merged)
        self._reach[node] = result
        return result

    def holds(self, func: p.FunctionDef, node: p.Node) -> bool:
        """Whether `node` stands inside a function."""
        last = self._last_rows.get(func)
        if last is None:
            last = self._last_rows[func] = max((n.span.end_row for n in self.walk(func)), default=0)
        return func.span.row <= node.span.row <= last

    def body_tags(self, body: p.Body) -> frozenset[str]:
        """The union of `tags` over a block."""
        out: frozenset[str] = frozenset()
        for stmt in body:
            out |= self.tags(stmt)
        return out

    def branches(self, node: p.If) -> tuple[frozenset[str], frozenset[str], bool]:
        """The tags of both sides of an `if`, and whether the first one always leaves the block."""
        known = self._branches.get(node)
        if known is None:
            known = self._branches[node] = (self.body_tags(node.body), self.body_tags(node.orelse), bails(node.body))
        return known

    def calls_in(self, node: p.Node) -> frozenset[tuple[str, bool]]:
        """The (name, direct) of the calls inside a node."""
        if isinstance(node, p.FunctionDef):
            out: frozenset[tuple[str, bool]] = frozenset()
            for stmt in node.body:
                if not isinstance(stmt, p.FunctionDef | p.ClassDef):
                    out |= self._own_tags(stmt)[1]
            return out
        return self._own_tags(node)[1]

    # --- N by use ------------------------------------------------------------------------------

    def _find_window_names(self) -> None:
        guards: list[p.Expr] = []
        for body in self.bodies:
            self._collect_guards(body, guards)
        names: set[str] = set()
        for test in guards:
            self._divisors(test, names)
            for node in self.walk(test):
                if isinstance(node, p.BinOp) and node.op == "%":
                    self.counters |= {n.id for n in self.walk(node.left) if isinstance(n, p.Name)}
        assigns: dict[str, list[p.Expr]] = defaultdict(list)
        for body in self.bodies:
            for stmt in body:
                for node in self.walk(stmt):
                    if isinstance(node, p.Assign):
                        for target in node.targets:
                            assigns[terminal(target)].append(node.value)
                    elif isinstance(node, p.FunctionDef):
                        for inner in self.walk(node):
                            if isinstance(inner, p.Return) and inner.value is not None:
                                assigns[node.name].append(inner.value)
                    elif isinstance(node, p.Arg) and node.keyword:
                        assigns[node.keyword].append(node.value)
        seen: set[str] = set()
        work = [n for t in guards for n in self._names(t)]
        while work:
            name = work.pop()
            if name in seen:
                continue
            seen.add(name)
            for value in assigns.get(name, ()):
                before = len(names)
                self._divisors(value, names)
                if len(names) > before or isinstance(value, p.Compare | p.BoolOp | p.Unary):
                    work += self._names(value)
        self.guard_names = seen
        self.window_names = names

    def _collect_guards(self, top: p.Body, out: list[p.Expr]) -> None:
        stack = [iter(enumerate(top))]
        bodies: list[tuple[p.Body, p.Body]] = [(top, ())]  # a block, and what follows the branches it stands in
        while stack:
            position = next(stack[-1], None)
            if position is None:
                stack.pop()
                bodies.pop()
                continue
            index, stmt = position
            body, outer = bodies[-1]
            after = (*body[index + 1 :], *outer) if isinstance(stmt, p.If) else ()
            blocks = self._guards_of(stmt, after, out)
            for block in reversed(blocks):
                stack.append(iter(enumerate(block)))
                bodies.append((block, after))

    def _guards_of(self, stmt: p.Stmt, after: p.Body, out: list[p.Expr]) -> list[p.Body]:
        """Adds the conditions of one statement that gate a step, and returns the blocks below it."""
        if isinstance(stmt, p.FunctionDef | p.ClassDef | p.With):
            return [stmt.body]
        if isinstance(stmt, p.If):
            inside = self.body_tags(stmt.body) | self.body_tags(stmt.orelse)
            if inside & {STEP, ZERO} or (bails(stmt.body) and STEP in self.body_tags(after)):
                if not (
                    BACKWARD in inside and STEP in inside and any(isinstance(s, p.For | p.While) for s in stmt.body)
                ):
                    out.append(stmt.test)
            return [stmt.body, stmt.orelse]
        if isinstance(stmt, p.For | p.While):
            inside = self.body_tags(stmt.body)
            if BACKWARD in inside and STEP not in inside:
                out.append(stmt.iter if isinstance(stmt, p.For) else stmt.test)
            return [stmt.body, stmt.orelse]
        if isinstance(stmt, p.Try):
            return [stmt.body, stmt.orelse, stmt.final, *(h.body for h in stmt.handlers)]
        if isinstance(stmt, p.Match):
            if STEP in self.tags(stmt):
                out.append(stmt.subject)
            return [case.body for case in stmt.cases]
        for node in self.walk(stmt):
            if isinstance(node, p.Arg) and node.keyword in {
                "update_grad",
                "need_update",
                "should_step",
                "do_step",
                "step_now",
            }:
                out.append(node.value)
        return []

    def _names(self, expr: p.Expr) -> list[str]:
        return [t for n in self.walk(expr) if isinstance(n, p.Name | p.Attr | p.Call) and (t := terminal(n))]

    def _divisors(self, expr: p.Expr, out: set[str]) -> None:
        for node in self.walk(expr):
            if isinstance(node, p.BinOp) and node.op == "%":
                out.add(terminal(node.right))
            elif isinstance(node, p.Compare) and set(node.ops) & {"==", ">=", ">", "<", "<=", "!="}:
                for side in (node.left, *node.comparators):
                    out.add(terminal(side))
                    if isinstance(side, p.BinOp) and side.op in {"-", "+"}:
                        out.add(terminal(side.left))
                        out.add(terminal(side.right))
            elif isinstance(node, p.Call) and terminal(node.func) == "range":
                for arg in node.args:
                    out.add(terminal(arg.value))
        out.discard("")

    # --- what a name is ------------------------------------------------------------------------

    def kind_of(self, name: str) -> str:
        """The kind a bare name suggests: by the methods called on it first, by its spelling last."""
        kind = self._kinds.get(name)
        if kind is None:
            kind = kind_by_use(name, self.uses.get(name, set()), self.called_with.get(name, set()))
            self._kinds[name] = kind
        return kind


_OPTIMIZER = re.compile(r"(^|_)(opt|optim|optimizer)(s?$|_|\d)|optimizer", re.I)
_NOT_OPTIMIZER = re.compile(
    r"optimizer?s?_?(step|config|cfg|name|type|class|cls|args|kwargs|params|groups?|state|lr|wrapper_cfg|idx|index|dict)"
    r"|(^|_)opts?$(?<!opt)|num_|n_opt|optimized|optimize_|^opts$|hyper",
    re.I,
)
_SCHEDULER = re.compile(r"sched", re.I)
_MODULE = re.compile(
    r"^(_?model|_?net|network|.*_model|.*_net|model_.*|net[A-Z_].*|generator|discriminator|critic|encoder|decoder|"
    r"actor|policy|backbone|student|teacher|unet|vae|transformer|gpt|bert|[GD]|net[GD]|ddp_model|unwrapped_model)$"
)
_NOT_MODULE = re.compile(
    r"(cfg|config|name|path|dir|args|type|dim|size|id|kwargs|dict|state|file|params?|parameters|groups?)$", re.I
)
_LOADER = re.compile(r"(loader|(^|_)dl|data_?iter|batches|dataset)s?\d*$", re.I)
_NUMBER_OF = re.compile(r"(^|_)(n|nb|num|max|total|count|len|idx|per|min|every)_", re.I)
_CRITERION = re.compile(r"criterion|loss_?(fn|func|function|fct|module|layer)|objective|(^|_)crit$", re.I)


def kind_by_use(name: str, uses: set[str], called_with: set[str]) -> str:
    """Kind of a thing called `name` whose methods `uses` are called (`called_with`: with arguments)."""
    if name in {"self", "cls", "torch", "nn", "dist", "np", "os"}:
        return ""
    if "backward" in called_with and "step" in uses and "zero_grad" not in uses and not _OPTIMIZER.search(name):
        return "engine"
    if "unscale_" in uses or re.search(r"(^|_)scaler$|grad_?scaler|^amp_scaler|loss_scaler$", name, re.I):
        return "scaler"
    if (
        _SCHEDULER.search(name)
        and not {"zero_grad", "step"} <= uses
        and not re.search(r"type|name|args|cfg|config|step|kwargs", name, re.I)
    ):
        return "scheduler"
    if re.fullmatch(r"(self\.)?_?accelerator", name):
        return "accelerator"
    if re.fullmatch(r"_?fabric", name):
        return "fabric"
    if ("zero_grad" in uses and "step" in uses) or (_OPTIMIZER.search(name) and not _NOT_OPTIMIZER.search(name)):
        return "optimizer"
    if (
        uses
        & {
            "parameters",
            "named_parameters",
            "no_sync",
            "load_state_dict",
            "train",
            "eval",
            "state_dict",
            "modules",
        }
        and not _NOT_MODULE.search(name)
        and not re.search(r"trainer|ema|sampler|loader", name, re.I)
    ):
        return "module"
    if _CRITERION.search(name):
        return "criterion"
    if _MODULE.match(name) and not _NOT_MODULE.search(name):
        return "module"
    if _LOADER.search(name) and not _NUMBER_OF.search(name):
        return "loader"
    return ""
