"""Truth, comparisons and boolean operators, and the numbers that they give to unknown sides."""

from __future__ import annotations

import re
from fractions import Fraction

from galint import program as p
from galint.run.asked import asks_version, counts_samples, covers_all, spelled
from galint.run.attributes import Attributes
from galint.run.frame import Frame
from galint.run.machine import compared
from galint.run.names import OVERFLOW
from galint.run.nodes import path_terminal, terminal
from galint.run.reach import BACKWARD, STEP
from galint.run.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Class,
    External,
    Function,
    GeneratorCall,
    Instance,
    Iterator,
    Lit,
    Mapping,
    Module,
    Opaque,
    Optimizer,
    Partial,
    Seq,
    Tensor,
    Value,
)
from galint.run.words import Words

_ALWAYS_TRUE = (Module, Optimizer, Instance, Function, Class, Bound, Partial, GeneratorCall, Iterator)


_EPOCH = Words(r"(^|_)(epoch|ep)(_?(idx|num|no|number|i))?$", re.I)
"""What counts the passes over the data: beside an unknown bound, no counter of micro-batches."""


class Compare(Attributes):
    """Comparisons and truth."""

    # --- truth ---------------------------------------------------------------------------------

    def truth(self, value: Value) -> bool | None:
        """Truth of a value; None when unknown."""
        if type(value) is not Lit:
            value = self.resolve(value)
        if isinstance(value, Lit):
            return bool(value.value)
        if isinstance(value, Seq):
            return True if value.elts else None if value.open else False
        if isinstance(value, Mapping):
            return True if value.items else None
        if isinstance(value, _ALWAYS_TRUE):
            return True
        if (
            isinstance(value, Opaque)
            and value.kind in {"optimizer", "accelerator", "loader", "criterion"}
            and not value.data
        ):
            return True
        if type(value) is Opaque and not value.data and not value.kind and not value.role:
            if path_terminal(value.path) in self.static.window_names and value.deferred is None:
                wanted = self.demand(value, "other", None)
                if wanted is not None and self.result.roles.get(value.path) == "window":
                    return bool(wanted.value)
                self.result.known.pop(value.path, None)
        if type(value) is Opaque and (chosen := self.result.choices.get(f"{value.path} is None")) and chosen.taken:
            return False  # this run has already taken it to be None
        return None

    def negate(self, value: Value, node: p.Expr) -> Value:
        """`not value`."""
        truth = self.truth(value)
        if truth is not None:
            if isinstance(value, Lit):
                return Lit(not truth, value.keys, value.moduli, value.born)
            return FALSE if truth else TRUE
        path = p.text(node)
        if isinstance(value, Opaque):
            path = value.path[4:] if value.path.startswith("not ") else f"not {value.path}"
        out = Opaque(path, data=self.is_data(value), born=self.born_of(value))
        out.role = "condition"
        return out

    def eval_boolop(self, node: p.BoolOp, frame: Frame) -> Value:
        """`a and b`, `a or b` with unknown operands kept."""
        stop = node.op == "or"
        unknown: list[Value] = []
        keys: frozenset[str] = frozenset()
        moduli: tuple[tuple[str, int], ...] = ()
        last: Value = NONE
        for item in node.values:
            last = self.as_chosen(item, self.eval(item, frame))
            truth = self.truth(last)
            if isinstance(last, Lit):
                keys |= last.keys
                moduli += last.moduli
            if truth is None:
                unknown.append(last)
            elif truth is stop:
                if not stop and not moduli and STEP in self.test_tags and self.loops:
                    moduli = self._moduli_behind(node, item, frame)
                if unknown and stop is False:
                    return Lit(False, keys, moduli)
                if unknown:
                    held = self.resolve(last)  # a setting's number may be known by now
                    number = isinstance(held, Lit) and held.is_number and not isinstance(held.value, bool)
                    if number and len(unknown) == 1 and isinstance(unknown[0], Opaque) and not unknown[0].data:
                        return unknown[0]  # `args.accum or 1`: the setting, where it is given
                    if isinstance(last, Instance):
                        return last  # `config or Config()`
                    return Lit(True, keys, moduli)
                if isinstance(last, Lit):
                    return Lit(last.value, keys, (moduli + last.moduli)[-4:], last.born, last.text)
                return last
        if not unknown:
            if isinstance(last, Lit):
                return Lit(last.value, keys, moduli[-4:], last.born, last.text)
            return last
        if len(unknown) == 1 and isinstance(unknown[0], Opaque):
            only = unknown[0]
            if not moduli:
                return only
            out = Opaque(only.path, only.kind, data=only.data, born=only.born)
            out.role = "condition"
            out.items["__moduli__"] = Lit(None, keys, moduli)
            out.items["__default__"] = Lit(node.op == "and")
            return out
        if node.op == "or" and covers_all(unknown):
            return Lit(True, keys, moduli[-4:])
        path = f" {node.op} ".join(v.path for v in unknown if isinstance(v, (Opaque, Tensor))) or p.text(node)
        if path.startswith("not "):
            path = f"({path})"  # `not a and not b` is no negation of `a and not b`
        out = Opaque(path, data=all(self.is_data(v) for v in unknown), born=max(map(self.born_of, unknown)))
        out.role = "condition"
        if not any(map(self.is_data, unknown)) and all(isinstance(v, Opaque) for v in unknown):
            parts = self.result.facts.setdefault("parts", {})
            parts[path] = stop, tuple(v.path for v in unknown if isinstance(v, Opaque))
        if moduli:
            out.items["__moduli__"] = Lit(None, keys, moduli)
            out.items["__default__"] = Lit(node.op == "and")
        elif any(_has_default(v, stop) for v in unknown):
            out.items["__default__"] = Lit(stop)  # one that decides the whole
        return out

    def _moduli_behind(self, node: p.BoolOp, item: p.Expr, frame: Frame) -> tuple[tuple[str, int], ...]:
        """What is divided by behind a false operand: `i and i % N == 0` asks for N on the first micro-batch too."""
        rest = node.values[node.values.index(item) + 1 :]
        calm = [v for v in rest if not any(isinstance(n, (p.Call, p.NamedExpr)) for n in self.static.walk(v))]
        values = [self.eval(v, frame) for v in calm if "%" in p.text(v)]
        return tuple(m for v in values if isinstance(v, Lit) for m in v.moduli)

    # --- comparisons ---------------------------------------------------------------------------

    def eval_compare(self, node: p.Compare, frame: Frame) -> Value:
        """Comparisons, chained ones included."""
        left = self.eval(node.left, frame)
        left_node = node.left
        result: Value = TRUE
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.eval(right_node, frame)
            result = self.compare(op, left, right, left_node, right_node, node)
            if self.truth(result) is not True:
                return result
            left, left_node = right, right_node
        return result

    def compare(self, op: str, left: Value, right: Value, left_node: p.Expr, right_node: p.Expr, node: p.Expr) -> Value:
        """One comparison of two values."""
        if op not in {"is", "is not", "in", "not in"}:  # `import settings`, `settings.N > 1`
            if isinstance(left, External) and isinstance(right, Lit) and right.is_number:
                left = Opaque(left.name)
            elif isinstance(right, External) and isinstance(left, Lit) and left.is_number:
                right = Opaque(right.name)
        left, right = self.resolve(left), self.resolve(right)
        both = type(left) is Lit and type(right) is Lit
        if (
            not both
            and op in {"<", "<=", ">", ">=", "==", "!="}
            and (version := asks_version(left) - asks_version(right))
        ):
            newer = op in {">", ">=", "!="} if version > 0 else op in {"<", "<=", "!="}
            return TRUE if newer else FALSE  # PyTorch is newer than any version that code asks for
        if op in {"is", "is not", "==", "!="}:
            known = self._identity(op, left, right)
            if known is not None:
                return known
        if op in {"in", "not in"}:
            return self._membership(op, left, right, node)
        if both:
            pass
        elif op in {"==", "!="} and isinstance(right_node, p.Const) and self._asked_while_leaving(left):
            pass  # `if pieces == 1: return`: a number that is asked for by name bounds nothing
        elif op in {"<", "<=", ">", ">="} and (
            self.begins_late(left_node, left, right) or self.begins_late(right_node, right, left)
        ):
            # Both halves of a training are runs of their own, the first one first.
            half = Opaque(p.text(node), role="condition")
            half.items["__default__"] = Lit((op[0] == "<") == isinstance(left, Lit))
            return half
        elif isinstance(left, Lit) and left.is_number and isinstance(right, Opaque):
            right = self._demand_bound(right, right_node, left, op) or right
        elif isinstance(right, Lit) and right.is_number and isinstance(left, Opaque):
            left = self._demand_bound(left, left_node, right, op) or left
        elif isinstance(left, Opaque) and isinstance(right, Opaque) and op not in {"is", "is not"}:
            left, right = self._demand_both(left, right, left_node, right_node, op)
        if isinstance(left, Lit) and isinstance(right, Lit):
            outcome = compared(op, left.value, right.value)
            if outcome is not None:
                moduli = left.moduli + right.moduli
                if left.is_number and right.is_number and self._is_counterlike(op, left, right):
                    if isinstance(right.value, int) and not left.moduli and node not in self.static.limits:
                        moduli = (*moduli, self._countdown(left, right) or self._bound(right, right_node))
                return Lit(outcome, left.keys | right.keys, moduli[-4:], max(left.born, right.born))
        out = Opaque(f"{spelled(left)} {op} {spelled(right)}", data=self.is_data(left) or self.is_data(right))
        if out.path.count("#"):
            out.path = p.text(node)
        out.born = max(self.born_of(left), self.born_of(right))
        out.role = "condition"
        return out

    def _asked_while_leaving(self, value: Value) -> bool:
        return "break" in self.test_tags and type(value) is Opaque and value.path not in self.result.known

    def spell(self, label: str, node: p.Expr) -> None:
        """Remember how the code itself spells a setting, for messages."""
        text = p.text(node)
        if len(text) <= 60:
            self.result.facts.setdefault("spelling", {}).setdefault(label, text)

    def _countdown(self, left: Lit, right: Lit) -> tuple[str, int] | None:
        """`left == 0` for a counter that began at N and runs down."""
        if right.value != 0 or right.keys:
            return None
        windows = [k for k in left.keys if self.result.roles.get(k) == "window"]
        if not windows and len(left.keys) == 1:
            windows = [k for k in left.keys if self.settings.get(k)]
        if len(windows) != 1:
            return None
        return f"≥{windows[0]}", int(self.result.known.get(windows[0], self.settings.get(windows[0], 0)))

    def _bound(self, right: Lit, right_node: p.Expr | None = None) -> tuple[str, int]:
        """What a counter is compared with: the setting in it (`N` in `N - 1`), else the number itself."""
        if len(right.keys) == 1:
            key = min(right.keys)
            if right_node is not None and not isinstance(right_node, p.BinOp):
                self.spell(key, right_node)
            number = self.result.known.get(key, self.settings.get(key))
            if isinstance(number, int) and not isinstance(number, bool) and abs(number - int(right.value)) <= 1:
                return f"≥{key}", number
        return f"≥{right.text or (min(right.keys) if right.keys else str(right.value))}", int(right.value)

    @staticmethod
    def _is_counterlike(op: str, left: Lit, right: Lit) -> bool:
        return op in {"==", ">=", ">", "<", "<=", "!="} and not isinstance(left.value, bool)

    def _demand_bound(self, value: Opaque, node: p.Expr, other: Lit, op: str) -> Lit | None:
        if (value.kind and value.kind != "instance") or OVERFLOW.search(value.path) or OVERFLOW.search(terminal(node)):
            return None
        if value.data:
            if value.deferred is None or not counts_samples(value) or {"while", BACKWARD} <= self.test_tags:
                return None  # `while at < data.size(0) - 1:` is no question about a micro-batch
            self._fit_batch(value, other)
            return self.demand(value, "batch", node)
        if "while" in self.test_tags and value.deferred is not None and value.deferred[0] == "+":
            if type(self.resolve(value.deferred[2])) is Opaque:
                return None  # a counter of samples beside the loop's own: how fast it moves, nobody knows
        if "while" in self.test_tags and value.deferred is None and p.text(node) in self.static.counted:
            return self.demand(value, "counter", node)
        name = terminal(node) or path_terminal(value.path)
        guarding = name in self.static.window_names
        if self.test_tags & {"break"}:
            counts = self.goes_on(value) or (value.deferred is None and terminal(node) in self.static.moved)
            return self.demand(value, "counter" if counts else "other" if guarding else "limit", node)
        if "yield" in self.test_tags and self.loops and op in {"==", ">="} and not value.kind:
            return self.demand(value, "window", node)  # `if len(held) == n: yield held`
        if isinstance(node, p.Expr) and other.keys | set() and not guarding and "step" not in self.test_tags:
            return self.demand(value, "limit" if op in {"<", "<=", ">", ">="} else "other", node)
        if guarding:
            return self.demand(value, "counter" if self._counts(value) else "other", node)
        if (
            op in {"<", "<=", ">", ">=", "==", "!="}
            and other.born == 0
            and not other.keys
            and isinstance(other.value, (int, Fraction))
        ):
            return None if value.path not in self.result.known else self.demand(value, "other", node)
        return self.demand(value, "limit" if op in {"<", "<=", ">", ">="} else "other", node)

    def _counts(self, value: Opaque) -> bool:
        return value.deferred is not None and value.deferred[0] in {"+", "-"}

    def _fit_batch(self, value: Opaque, bound: Lit) -> None:
        """Choose the samples of a micro-batch so that an unknown sample counter fills N of them."""
        leaves: list[Opaque] = []
        stack: list[Value] = [value]
        while stack:
            top = stack.pop()
            if isinstance(top, Opaque):
                if top.deferred is not None:
                    stack += top.deferred[1:]
                elif top.path not in self.result.known:
                    leaves.append(top)
        for leaf in leaves:
            self.result.known[leaf.path] = max(1, int(bound.value) // self.scenario.window)
            self.result.roles[leaf.path] = "batch"

    def _demand_both(
        self, left: Opaque, right: Opaque, left_node: p.Expr, right_node: p.Expr, op: str
    ) -> tuple[Value, Value]:
        if left.data or right.data or left.kind or right.kind:
            return left, right
        names = self.static.window_names
        if self._counts_windows(left) != self._counts_windows(right):  # a cap beside an epoch's number of windows
            roles = ("length", "limit") if self._counts_windows(left) else ("limit", "length")
            return self.demand(left, roles[0], left_node) or left, self.demand(right, roles[1], right_node) or right
        asked = {terminal(left_node), terminal(right_node)}
        if (asked & names or "step" in self.test_tags) and not any(map(_EPOCH.search, asked)):
            whole = {"while", BACKWARD, STEP} <= self.test_tags  # the loop holds whole windows
            bound = self.demand(right, "length" if whole else "window", right_node)
            return (self.demand(left, "counter", left_node) or left), (bound or right)
        return left, right

    def _identity(self, op: str, left: Value, right: Value) -> Value | None:
        negate = op in {"is not", "!="}
        if isinstance(left, Opaque) and left.role == "grad" and isinstance(right, Lit) and right.value is None:
            return TRUE if negate else FALSE
        for one, other in ((left, right), (right, left)):
            if isinstance(other, Lit) and other.value is None:
                if isinstance(one, Lit):
                    return Lit((one.value is None) != negate, one.keys)
                if not isinstance(one, Opaque):
                    return FALSE if not negate else TRUE
                if isinstance(one, (Module, Optimizer, Instance)) and not one.path.startswith("?"):
                    return FALSE if not negate else TRUE
                if one.kind in {"accelerator", "loader", "criterion"} or {"__drawn__", "__made__"} & one.items.keys():
                    return FALSE if not negate else TRUE
                out = Opaque(f"{one.path} is None", role="condition", data=one.data and one.deferred is not None)
                if negate:
                    out.path = f"not {out.path}"
                return out
        same = isinstance(left, External) and isinstance(right, External) and left.name == right.name
        if same or (op in {"is", "is not"} and left is right):
            return TRUE if not negate else FALSE
        return None

    def _membership(self, op: str, left: Value, right: Value, node: p.Expr) -> Value:
        negate = op == "not in"
        if isinstance(left, Lit):
            if isinstance(right, Seq) and all(isinstance(v, Lit) for v in right.elts):
                found = any(isinstance(v, Lit) and v.value == left.value for v in right.elts)
                return Lit(found != negate, left.keys, left.moduli)
            if isinstance(right, Mapping) and left.value in right.items:
                return Lit(not negate)
            if isinstance(right, Lit) and isinstance(right.value, str) and isinstance(left.value, str):
                return Lit((left.value in right.value) != negate, left.keys | right.keys)
        where = spelled(right)
        if where == "#" and isinstance(node, p.Compare):
            where = p.text(node.comparators[-1])  # two dictionaries are two conditions
        path = f"{spelled(left)} in {where}"
        out = Opaque(
            f"not {path}" if negate else path, role="condition", data=self.is_data(left) or self.is_data(right)
        )
        if isinstance(left, Opaque) and isinstance(right, Seq) and not left.data:
            values = [v.value for v in right.elts if isinstance(v, Lit)]
            if -1 in values and 0 in values:  # the usual spelling of "not distributed, or the main process"
                out.role = "rank"
        return out


def _has_default(value: Value, wanted: bool) -> bool:
    default = value.items.get("__default__") if isinstance(value, Opaque) else None
    return isinstance(default, Lit) and default.value is wanted
