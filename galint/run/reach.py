"""The gradient operations that running a node can reach, through the functions that it calls too."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from galint import program as p
from galint.run.index import COMPOUND, Index, table_of
from galint.run.kinds import LOSS_NAME
from galint.run.nodes import bails, terminal
from galint.run.update_effects import is_update_effect
from galint.run.words import Words

_HOLDERS = COMPOUND | {p.Handler, p.Case}
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
_NAMED_SCALERS = Words(r"scaler|loss_scal|grad_scal", re.I)
BACKWARD, STEP, ZERO, SYNC, SCALE, WRAP, COUNT = "backward", "step", "zero", "sync", "scale", "wrap", "count"
EFFECT = "effect"
"""What belongs to the optimizer step though it is none, such as a moving average of the weights."""
_NOTHING: tuple[frozenset[str], frozenset[tuple[str, bool]]] = (frozenset(), frozenset())
GRADIENT = frozenset({BACKWARD, STEP, ZERO, SYNC, SCALE, WRAP, EFFECT})
_CALL_TAGS = {
    "zero_grad": ZERO,
    "unscale_": SYNC,
    **dict.fromkeys(("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "multi_tensor_applier"), SYNC),
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
_WRAPPERS = frozenset(name for name, tag in _CALL_TAGS.items() if tag == WRAP)


class Reach(Index):
    """An indexed program with the tags of its nodes."""

    def __init__(self, bodies: Iterable[p.Body]) -> None:
        super().__init__(bodies)
        self._own: dict[p.Node, tuple[frozenset[str], frozenset[tuple[str, bool]]]] = {}
        self._reach: dict[p.Node, frozenset[str]] = {}
        self._last_rows: dict[p.FunctionDef, int] = {}
        self._branches: dict[p.If, tuple[frozenset[str], frozenset[str], bool]] = {}
        self._decides: dict[p.If, frozenset[str]] = {}
        self._comes_back: dict[p.Node, bool] = {}
        self._callees: dict[tuple[str, bool], tuple[p.FunctionDef, ...]] = {}
        self._function_tags: dict[p.FunctionDef, frozenset[str]] = {}
        self._fixpoint()

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
            if not below and not isinstance(node, p.Call):
                own[node] = _NOTHING
                continue
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
        below = node.children()
        if type(node) not in _HOLDERS:
            return below  # expressions and simple statements hold no definitions
        skipped = node.decorators if isinstance(node, p.FunctionDef) else ()
        return [c for c in below if not isinstance(c, (p.FunctionDef, p.ClassDef)) and c not in skipped]

    def _call_tags(self, node: p.Call, tags: set[str], calls: set[tuple[str, bool]]) -> None:
        func = node.func
        name = terminal(func)
        if isinstance(func, p.Attr):
            receiver = terminal(func.value)
            if name in {"backward", "manual_backward", "accumulate_gradients"}:
                tags.add(BACKWARD)
            elif name in {"second_step", "step_and_update_lr"}:
                tags.add(STEP)  # of sharpness-aware minimisation; of an optimizer that holds its own schedule
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
        if table := table_of(func) or (self.looked_up.get(name, "") if isinstance(func, p.Name) else ""):
            calls |= {(held, True) for held in self.tables.get(table, ())}
        if name == "update_params" and isinstance(func, p.Attr) and len(node.args) == 1:
            tags |= {BACKWARD, STEP}  # mmengine's OptimWrapper
        if (known := self.renamed.get(name, name) if isinstance(func, p.Name) else name) in _CALL_TAGS:
            tags.add(_CALL_TAGS[known])
        if is_update_effect(node):
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
            if isinstance(arg.value, p.Name):
                if any(f not in self.method_of for f in self.functions.get(arg.value.id, ())):  # `step` is no method
                    calls.add((arg.value.id, True))
            elif (
                isinstance(arg.value, p.Attr) and p.text(arg.value.value) == "self" and arg.value.name in self.functions
            ):
                calls.add((arg.value.name, True))

    def _assign_tags(self, node: p.Assign, tags: set[str]) -> None:
        for target in node.targets:
            name = terminal(target)
            if isinstance(target, p.Attr) and name in {"grad", "require_backward_grad_sync"}:
                cleared = name == "grad" and isinstance(node.value, p.Const) and node.value.value is None
                tags |= {SYNC, ZERO} if cleared else {SYNC}
            if LOSS_NAME.search(name) and any(
                isinstance(n, p.BinOp) and n.op in {"/", "*"} for n in self.walk(node.value)
            ):
                tags.add(SCALE)

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
        if direct and name in self.method_aliases and not found:
            found += [f for f in self.functions.get(self.method_aliases[name], ()) if f in self.method_of]
        if direct and name in self.renamed:
            found += self._foreign(self.renamed[name])
        if direct or name not in _GENERIC_METHODS:
            for cls in self.classes.get(self.made_by.get(call, ""), ()):  # `step = Step(optimizer)`, `step(loss)`
                found += [f for f in cls.body if isinstance(f, p.FunctionDef) and f.name == "__call__"]
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
                if isinstance(stmt, (p.FunctionDef, p.ClassDef)):
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

    def comes_back(self, body: p.Body) -> bool:
        """Whether a block runs backward only by calling the function that it stands in, which then evaluates."""
        known = self._comes_back.get(body[0])
        if known is None:
            known = self._comes_back[body[0]] = self._calls_its_own(body)
        return known

    def _calls_its_own(self, body: p.Body) -> bool:
        first, every = body[0], [func for funcs in self.functions.values() for func in funcs]
        seen = {func for func in every if self.holds(func, first) and first in self.walk(func)}
        work: list[p.Node] = [*body]
        while work and seen:
            node = work.pop()
            inside = node.body if isinstance(node, p.FunctionDef) else (node,)
            for tags, calls in map(self._own_tags, inside):
                if BACKWARD in tags:
                    return False
                called = {func for call in calls for func in self.callees(call)} - seen
                seen |= called
                work += called
        return bool(seen)

    def branches(self, node: p.If) -> tuple[frozenset[str], frozenset[str], bool]:
        """The tags of both sides of an `if`, and whether the first one always leaves the block.

        A side that raises the flag under which the model is wrapped counts as wrapping it.
        """
        known = self._branches.get(node)
        if known is None:
            body, orelse = self.body_tags(node.body), self.body_tags(node.orelse)
            if WRAP not in body and any(self._raises_flag(s) for s in node.body):
                body |= {WRAP}
            known = self._branches[node] = (body, orelse, bails(node.body))
        return known

    @property
    def _wrap_flags(self) -> frozenset[str]:
        """Names in conditions on wrapping a model for distributed training (`if self.is_distributed: model = DDP(model)`)."""
        return self.once("wrap_flags", self._find_wrap_flags)

    def _find_wrap_flags(self) -> frozenset[str]:
        if _WRAPPERS.isdisjoint(self.renamed.get(name, name) for name in self.called):
            return frozenset()
        return frozenset(
            terminal(part)
            for node in self.everything()
            if isinstance(node, p.If) and any(WRAP in self._own_tags(s)[0] for s in node.body)
            for part in self.walk(node.test)
            if isinstance(part, (p.Name, p.Attr))
        )

    def _raises_flag(self, stmt: p.Stmt) -> bool:
        if not isinstance(stmt, p.Assign) or terminal(stmt.targets[0]) not in self._wrap_flags:
            return False
        value = stmt.value  # `True`, or `int(os.environ["WORLD_SIZE"]) > 1`
        return value.value is True if isinstance(value, p.Const) else isinstance(value, p.Compare) and ">" in value.ops

    def decides(self, node: p.If) -> frozenset[str]:
        """What depends on the condition of an `if`: the tags of both sides, "break" and "yield"."""
        known = self._decides.get(node)
        if known is None:
            body, orelse, leaves = self.branches(node)
            known = body | orelse
            if leaves and isinstance(node.body[-1], (p.Break, p.Return, p.Raise)) and not known & {STEP, BACKWARD}:
                known |= {"break"}
            if any(isinstance(s, p.ExprStmt) and isinstance(s.value, p.Yield) for s in node.body):
                known |= {"yield"}
            self._decides[node] = known
        return known

    def calls_in(self, node: p.Node) -> frozenset[tuple[str, bool]]:
        """The (name, direct) of the calls inside a node."""
        if isinstance(node, p.FunctionDef):
            out: frozenset[tuple[str, bool]] = frozenset()
            for stmt in node.body:
                if not isinstance(stmt, (p.FunctionDef, p.ClassDef)):
                    out |= self._own_tags(stmt)[1]
            return out
        return self._own_tags(node)[1]
