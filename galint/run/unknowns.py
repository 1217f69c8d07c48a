"""How unknowns get a number: the roles of settings, choices at unknown conditions, values made from names."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from galint import program as p
from galint.run.agreement import implied
from galint.run.asked import rounded
from galint.run.limits import asks_for_windows
from galint.run.machine import Machine, arithmetic
from galint.run.names import RANKS
from galint.run.nodes import path_terminal, terminal
from galint.run.reach import BACKWARD, STEP
from galint.run.scenario import Choice
from galint.run.values import Lit, Module, Opaque, Optimizer, Value
from galint.source import Span

_BATCH_SIZE = re.compile(r"len\(|\.size\(|\.shape|numel|batch_?size|n_samples|num_samples|\bbs\b")
_BATCHES = re.compile(r"len\(\w*loader", re.I)
"""The number of batches, whatever their size is called where the loader is made."""
_LOGGING = re.compile(r"(^|_)(log|print|save|eval|ckpt|checkpoint|display|report)", re.I)
_ACCUMULATION = re.compile(r"accum(ulat\w*)?(_grad\w*)?_?(steps?|iters?|batches|every|n)?$|grad\w*_acc(_|$)", re.I)
_EPOCHS = re.compile(r"^(n_?|num_?|max_?|total_?)?epochs?$", re.I)
LIMIT = 10**9
_RANK = re.compile(RANKS.pattern + r"|rank\b|rank\(|'RANK'|get_rank", re.I)
STEPLESS = "stepless"


class Unknowns(Machine):
    """Unknown numbers, conditions and things."""

    # --- numbers -------------------------------------------------------------------------------

    def resolve(self, value: Value) -> Value:
        """The number of an opaque setting, if this run has fixed it; otherwise the value itself."""
        if type(value) is not Opaque:
            return value
        numbers = self.result.known
        known = numbers.get(value.path)
        if known is None:
            known = self.scenario.values.get(value.path)
            if known is not None:
                numbers[value.path] = known
        if known is not None:
            return Lit(known, frozenset({value.path}), text=value.path, born=value.born)
        if value.deferred is not None and value.tried != len(numbers):
            op, left, right = value.deferred
            a, b = self.resolve(left), self.resolve(right)
            if isinstance(a, Lit) and isinstance(b, Lit) and a.is_number and b.is_number:
                number = arithmetic(op, a.value, b.value)
                if number is not None:
                    return Lit(number, a.keys | b.keys, born=max(a.born, b.born), text=value.path)
            value.tried = len(numbers)
        return value

    def demand(self, value: Value, role: str, node: p.Expr | None = None) -> Lit | None:
        """A number for `value`; unknown settings get one by their role in the loop.

        Roles: "window" (N), "length" (of a loader), "epochs", "windows", "updates", "limit", "counter" (unknown
        start), "batch" (samples in a micro-batch), "other".
        """
        asked = value
        if isinstance(asked, Opaque) and asked.deferred is not None:
            role = self._refine(asked, role, node)
        value = self.resolve(value)
        if isinstance(value, Lit):
            if not value.is_number:
                return None
            if role == "window" and value.value < 2 and isinstance(asked, Opaque) and asked.deferred is not None:
                # A quotient of settings whose numbers were made up: N is what it stands for.
                self.result.known[asked.path] = self.scenario.window
                self.result.roles[asked.path] = "window"
                return Lit(self.scenario.window, frozenset({asked.path}), text=asked.path, born=value.born)
            return value
        if not isinstance(value, Opaque) or type(value) is not Opaque:
            return None
        ranked = value.deferred is None and _RANK.search(_asked_of(value.path))
        role = role if ranked else self._refine(value, role, node)
        if role in {"other", "limit", "counter", "batch"} and ranked:
            rank = 2 if RANKS.search(_asked_of(value.path)) else 0
            self.result.known[value.path] = rank
            self.result.roles[value.path] = "rank"
            return Lit(rank, frozenset({value.path}), text=value.path)
        if self._counts_windows(value) and role in {"window", "windows"}:
            role = "length"  # of an epoch, in windows
        offset = value.deferred is not None and value.deferred[0] in {"+", "-"} and isinstance(value.deferred[2], Lit)
        whole = (role in {"window", "windows", "epochs"} and not offset) or (
            role == "length"
            and value.deferred is not None
            and value.deferred[0] in {"//", "/"}
            and not self._has_window(value.deferred[2])
        )
        if value.deferred is not None and role == "window":
            if (parts := self._parts(value)) is not None:
                return parts
            if self._measured(value, self.scenario.window):
                self.result.known[value.path] = self.scenario.window  # also where a later call spells it alike
                self.result.roles[value.path] = "window"
                return Lit(self.scenario.window, frozenset({value.path}), text=value.path, born=value.born)
        if (whole_units := rounded(value)) is not None:
            total, unit = self.demand(whole_units[0], role), self.demand(whole_units[1], "window")
            if total is not None and unit is not None and unit.value:
                return Lit(total.value // unit.value * unit.value, total.keys | unit.keys)
        if value.deferred is not None and not whole:
            op, left, right = value.deferred
            below = "window" if self._counts_windows(value) else role
            first, second = self._leaf_role(left, role), self._leaf_role(right, below)
            plain = all(getattr(side, "deferred", None) is None for side in (left, right))
            if op == "*" and role == "length" and plain and self._is_window(left) != self._is_window(right):
                # `range(updates * N)`: so many windows of N, whatever the witness's length
                first, second = ("window", "updates") if self._is_window(left) else ("updates", "window")
            if op in {"//", "/"} and role == "length" and self._has_window(right):
                second = "other"  # `len(dataset) // (batch_size * N)`: N divides the length, it does not grow with it
            a, b = self.demand(left, first), self.demand(right, second)
            if a is not None and b is not None:
                number: Any = arithmetic(op, a.value, b.value)
                if op in {"//", "/"} and number is not None and (number < 1 or (role == "limit" and b.value >= LIMIT)):
                    number = (number < 1 and self.batches(a, b)) or number
                    if role == "limit" and (number < 1 or b.value >= LIMIT):
                        # `max_tokens // (batch_size * tokens)`, all of them made up
                        number = self.result.known[value.path] = LIMIT
                if number is not None:
                    return Lit(number, a.keys | b.keys, born=max(a.born, b.born), text=value.path)
        number = (role == "counter" and self._stride(value)) or self._role_value(role)
        if role == "other" and {BACKWARD, STEP} <= self.test_tags:
            number = 2  # every so many updates another network is trained
        self.result.known[value.path] = number
        self.result.roles[value.path] = role
        return Lit(number, frozenset({value.path}), text=value.path, born=value.born)

    def _stride(self, value: Opaque) -> int:
        """By how much a counter grows with the variable of a loop around, where an inner loop counts on: its passes."""
        index = self.static.strides.get(path_terminal(value.path)) if value.deferred is None and self.loops else None
        around = [k for k, loop in enumerate(self.loops) if index is not None and index in self.static.given(loop.node)]
        return prod(loop.passes for loop in self.loops[around[-1] + 1 :]) if around else 0

    def _parts(self, value: Opaque) -> Lit | None:
        """`(batch - 1) // part`, which counts the parts of a batch: both get numbers, so that the last part is known."""
        op, above, part = value.deferred or ("", value, value)
        if op != "//" or not isinstance(above, Opaque) or above.deferred is None:
            return None
        sign, batch, one = above.deferred
        part = self.resolve(part)
        if not isinstance(batch, Opaque) or isinstance(self.resolve(batch), Lit) or batch.data:
            return None
        if sign != "-" or not isinstance(one, Lit) or one.value != 1:
            return None
        if not isinstance(part, Lit):
            if type(part) is not Opaque or part.data:
                return None
            self.result.known[part.path] = self._role_value("batch")
            part = self.resolve(part)
        if not isinstance(part, Lit) or not isinstance(part.value, int) or part.value < 1:
            return None
        self.result.known[batch.path] = int(part.value) * self.scenario.window
        self.result.roles[value.path] = "window"
        return Lit(self.scenario.window - 1, frozenset({value.path}), text=value.path, born=value.born)

    def _measured(self, value: Value, number: int) -> bool:
        """`batch // micro_batch` and the like, made to be a number: the divisor gets a size, the batch so many of it."""
        if not isinstance(value, Opaque) or value.data or value.path.startswith("len("):
            return False
        if value.deferred is None:
            if type(value) is not Opaque or value.kind or isinstance(self.resolve(value), Lit):
                return False
            self.result.known[value.path] = number
            return True
        op, left, right = value.deferred
        if op not in {"//", "/"} or not isinstance(left, Opaque) or isinstance(self.resolve(left), Lit):
            return False
        size = self.demand(right, "batch")
        if size is None or not isinstance(size.value, int) or size.value < 1:
            return False
        return self._measured(left, number * size.value)

    def batches(self, samples: Lit, size: Lit) -> int | None:
        """`len(dataset) // (batch_size * N)`: a witness's length counts batches, so that only N divides it."""
        if not any(key.startswith("len(") for key in samples.keys) or not any(map(_BATCH_SIZE.search, size.keys)):
            return None
        if samples.keys & size.keys:
            return None  # a part of a batch over the whole of it
        numbers = {**self.scenario.values, **self.result.known}
        n = 1
        for key in size.keys:
            if path_terminal(key) in self.static.window_names or self.result.roles.get(key) == "window":
                n *= int(numbers.get(key, 1))
        return max(int(samples.value) // max(n, 1), 1)

    def _counts_windows(self, value: Opaque) -> bool:
        """Whether a value is `len(loader) // N`."""
        if value.deferred is None or value.deferred[0] not in {"//", "/"} or not self._is_window(value.deferred[2]):
            return False
        _, left, right = value.deferred
        # Not for `len(dataset) // (batch_size * N)`.
        plain = len(right.keys) == 1 if isinstance(right, Lit) else getattr(right, "deferred", None) is None
        return plain and isinstance(left, Opaque) and left.path.startswith("len(")

    def _is_window(self, value: Value) -> bool:
        """Whether a value is N: its spelling divides or bounds a counter in a step's guard."""
        if isinstance(value, Lit):
            return any(path_terminal(k) in self.static.window_names for k in value.keys)
        return isinstance(value, Opaque) and path_terminal(value.path) in self.static.window_names

    def _has_window(self, value: Value) -> bool:
        """Whether a value is N or a product with N."""
        if isinstance(value, Opaque) and value.deferred is not None and value.deferred[0] == "*":
            return any(self._has_window(side) for side in value.deferred[1:] if isinstance(side, Value))
        return self._is_window(value)

    def _refine(self, value: Opaque, role: str, node: p.Expr | None) -> str:
        names = {path_terminal(value.path), terminal(node) if node is not None else ""}
        if value.path.startswith("len(") and value.path.endswith(")"):
            if role == "window":
                return "window"
            return "length" if role not in {"batch", "windows", "epochs"} else role
        if role == "other" and asks_for_windows(self.test_node, self.static):
            return "window" if any(map(_ACCUMULATION.search, names)) else role
        if (
            value.deferred is None
            and role in {"length", "epochs", "other", "limit", "counter"}
            and (
                names & self.static.divisors
                or any(_ACCUMULATION.search(n) for n in (names & self.static.window_names) - self.static.counters)
            )
        ):
            return "window"  # also where it only helps to count the steps of an epoch
        if role == "epochs" and names & self.static.ends:
            return "limit"  # `for epoch in range(total)`, left when so many steps are done
        if role in {"window", "limit", "other"} and any(map(_EPOCHS.search, names)):
            return "epochs"
        if names & self.static.counters:
            return "counter" if role in {"other", "window"} else role
        if role in {"other", "limit", "length", "counter"} and names & self.static.window_names - {""}:
            if role == "other" or (role == "length" and STEPLESS in self.test_tags):
                name = min(names & self.static.window_names)
                if not _LOGGING.search(name):
                    return "window"
        return role

    def _leaf_role(self, value: Value, role: str) -> str:
        if isinstance(value, Opaque) and value.deferred is None and value.data and _BATCH_SIZE.search(value.path):
            return "batch" if not _BATCHES.match(value.path) else role
        return role

    def _role_value(self, role: str) -> int:
        return {
            "window": self.scenario.window,
            "gather": self.scenario.window,
            "length": self.scenario.length,
            "epochs": self.scenario.epochs,
            "windows": 3,
            "updates": 5,
            "limit": LIMIT,
            "counter": self.scenario.start,
            "batch": 4,
        }.get(role, 1000)

    def begins_late(self, node: p.Expr, number: Value, bound: Value) -> bool:
        """`epoch >= cfg.begin`: the epoch's number and a setting that no loop runs to."""
        if not isinstance(number, Lit) or type(bound) is not Opaque or bound.kind or bound.data or bound.deferred:
            return False
        if not isinstance(node, p.Name) or bound.path in self.result.known:
            return False
        test = self.test_node
        returns = isinstance(test, p.If) and isinstance(test.body[-1], p.Return)  # leaves a helper, and no loop
        if "while" in self.test_tags or ("break" in self.test_tags and not returns):
            return False
        named = any(
            loop.role == "epochs" and isinstance(loop.node, p.For) and p.text(loop.node.target) == node.id
            for loop in self.loops
        )
        return named or (bool(number.keys) and all(self.result.roles.get(key) == "epochs" for key in number.keys))

    # --- conditions ----------------------------------------------------------------------------

    def choose(self, key: str, default: bool, *, data: bool, relevant: bool, span: Span, asked: str = "") -> bool:
        """Decide a condition the run cannot: the same key always gets the same answer.

        `asked` is how the code spells the condition, for messages.
        """
        negated = False
        while key.startswith("not "):
            key, negated = key[4:], not negated
        if negated:
            default = not default
        if asked and len(asked) <= 80:
            self.result.facts.setdefault("asked", {}).setdefault(key, (asked, negated))
        taken = self.scenario.choices.get(key)
        if data:
            base = default if taken is None else taken
            if self.scenario.rare == key:
                count = self.rare_seen.get(key, 0)
                self.rare_seen[key] = count + 1
                base = (not base) if count == self.scenario.rare_at else base
            taken = base
        elif (follows := self._follows(key)) is not None:
            taken = follows
        elif taken is None:
            taken = self.result.choices[key].taken if key in self.result.choices else default
        old = self.result.choices.get(key)
        if old is None or (relevant and not old.relevant):
            self.result.choices[key] = Choice(key, taken, data, relevant, span)
        return taken != negated

    def as_chosen(self, node: p.Expr, value: Value) -> Value:
        """A flag's default, or what this run has chosen for the flag where it was asked alone."""
        if (
            not self.scenario.choices
            or not isinstance(value, Lit)
            or not isinstance(value.value, bool)
            or not value.keys
        ):
            return value
        key = setting(node, value)
        taken = self.scenario.choices.get(key.removeprefix("not "))
        return value if taken is None else Lit(taken != key.startswith("not "), value.keys, value.moduli, value.born)

    def _follows(self, key: str) -> bool | None:
        """What earlier answers say about a condition: `a or b` is true where `b` is; where it is false, so is `b`."""
        wholes: dict[str, tuple[bool, tuple[str, ...]]] = self.result.facts.get("parts", {})
        if key in wholes:
            stop, parts = wholes[key]
            known = [self._answer(part) for part in parts]
            if stop in known or None not in known:
                return stop if stop in known else not stop
        if key in self.scenario.choices:
            return None
        made = ((k, c.taken) for k, c in self.result.choices.items() if c.relevant and k != key)
        if (agreed := implied(key, (*self.scenario.choices.items(), *made))) is not None:
            return agreed
        for whole, (stop, parts) in wholes.items():
            mine = [part for part in parts if part.removeprefix("not ") == key]
            taken = self._answer(whole) if mine else None
            others = [self._answer(part) for part in parts if part not in mine]
            if taken is (not stop) or (taken is stop and all(v is (not stop) for v in others)):
                return taken != mine[0].startswith("not ")
        return None

    def _answer(self, key: str) -> bool | None:
        """What a condition that training hangs on was taken to be, so far."""
        bare = key.removeprefix("not ")
        taken, made = self.scenario.choices.get(bare), self.result.choices.get(bare)
        if taken is None and made is not None and made.relevant:
            taken = made.taken
        return None if taken is None else taken != key.startswith("not ")

    # --- things --------------------------------------------------------------------------------

    def make_opaque(self, path: str, name: str = "", *, data: bool = False, born: int = 0, kind: str = "") -> Opaque:
        """A new unknown thing, of the kind its use or name suggests."""
        if len(path) > 160:
            path = f"#{self.tick()}"
        kind = kind or (self.static.kind_of(name) if name and not data else "")
        if kind == "module":
            return self.make_module(path)
        if kind == "optimizer":
            return self.make_optimizer(path)
        return Opaque(path, kind, data=data, born=born)

    def make_module(self, path: str, parents: frozenset[int] = frozenset(), **extra: Any) -> Module:
        """A module with its own identity."""
        module = Module(path, self.new_ident(parents), **extra)
        self.result.modules[module.ident] = module
        return module

    def make_optimizer(self, path: str, modules: frozenset[int] = frozenset(), *, known: bool = False) -> Optimizer:
        """An optimizer; its ledger starts when something first happens to it."""
        optimizer = Optimizer(path, modules, known=known)
        if path.startswith("#"):
            optimizer.born_seq = self.seq
        return optimizer


def _asked_of(path: str) -> str:
    """What a call's result is: `load(model, cfg.num_gpus)` loads, and only what `environ` or `getattr` is given names it."""
    name, bracket, _ = path.partition("(")
    return path if not bracket or re.search(r"environ|getenv|getattr|\bget$|int$|max$|min$|len$", name) else name


def setting(test: p.Expr, value: Lit) -> str:
    """What a condition asks: the setting itself, wherever it was handed on to, else the condition's own text."""
    bare = test.operand if isinstance(test, p.Unary) else test
    if len(value.keys) == 1 and isinstance(bare, (p.Name, p.Attr)) and isinstance(value.value, bool):
        key = min(value.keys)
        return key if bare is test else f"not {key}"
    return p.text(test)
