"""Which names are N: what the conditions around optimizer steps count, divide and compare by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from galint import program as p
from galint.run.intervals import Interval, interval_of, number_asked
from galint.run.kinds import LOSS_NAME
from galint.run.limits import limits_in
from galint.run.losses import Losses
from galint.run.nodes import asks_elements, asks_length, bails, terminal
from galint.run.reach import BACKWARD, STEP, ZERO

if TYPE_CHECKING:
    from galint.run.values import Lit


_PLAYED = re.compile(
    r"episode|rollout|trajector|transition|reward|memory|replay|buffer|horizon|action|task|game|\bepoch", re.I
)
"""Words of what is collected and no batch: the losses of its parts may be meant to be summed."""


class Static(Losses):
    """All facts of one program (and of the project files it imports, when given): index, reach, and names of N.

    They never accuse; they steer the abstract run: which branch leads to training, how long a loop stands for,
    which unknown integer is N.
    """

    def __init__(self, bodies: Iterable[p.Body]) -> None:
        self.divisors: set[str] = set()
        """Names that stand for N in `% N`."""
        super().__init__(bodies)
        self.window_names: set[str] = set()
        self.counters: set[str] = set()
        """Names that stand left of `% N` in a step's guard."""
        self.limits: set[p.Node] = set()
        self._asked: dict[str, list[p.Node]] = defaultdict(list)
        """Where each of them does."""
        self._counting: dict[str, set[p.For | None]] = {}
        """The loops whose variable each of them is; None where it stands in no loop that gives it."""
        self.guard_names: set[str] = set()
        self.literals: dict[p.Const, Lit] = {}
        """Values of literals, which no run changes."""
        self.loop_roles: dict[p.Node, str] = {}
        self._gated: dict[p.Node, bool] = {}
        self._flags: dict[p.If, tuple[p.Name | p.Attr, ...]] = {}
        self.builders: dict[p.Node, bool] = {}
        """Loops that fill a list."""
        self.over_losses: dict[p.For, bool] = {}
        """Loops that `galint.run.made_losses` was asked about."""
        self.summing: dict[p.If, bool] = {}
        """Guards that `galint.run.summed` was asked about."""
        self._intervals: dict[p.If, tuple[p.If, Interval] | None] = {}
        self._find_window_names()

    def kind_of(self, name: str) -> str:
        """The kind a bare name suggests; what counters are divided by is a number, called `G` or not."""
        return "" if name in self.divisors else super().kind_of(name)

    def interval(self, node: p.If) -> tuple[p.If, Interval] | None:
        """The condition by which a statement saves or evaluates every so many updates: its own, or the one right under it
        where it asks whether there is a number of them.
        """
        if node not in self._intervals:
            inner = node.body[0] if len(node.body) == 1 and number_asked(node.test) else node
            tags = self.body_tags(node.body) | self.body_tags(node.orelse)
            found = interval_of(inner) if isinstance(inner, p.If) and not tags & {STEP, BACKWARD} else None
            self._intervals[node] = (inner, found) if found is not None and isinstance(inner, p.If) else None
            if inner is not node and isinstance(inner, p.If):
                self._intervals[inner] = None  # asked already
        return self._intervals[node]

    @property
    def gathering(self) -> dict[p.Node, frozenset[str]]:
        """Loops over a number of passes that only make losses; a backward after them starts from these.

        With each the names that are given anew in every pass, of which the backward has the last one's only.
        """
        return self.once("gathering", self._find_gathering)

    def _find_gathering(self) -> dict[p.Node, frozenset[str]]:
        out: dict[p.Node, frozenset[str]] = {}
        work: list[tuple[p.Body, p.Body]] = [(body, ()) for body in self.bodies]
        while work:
            block, outer = work.pop()
            for index, stmt in enumerate(block):
                after = (*block[index + 1 :], *outer)
                if isinstance(stmt, p.For) and (found := self._gathered(stmt, after)) is not None:
                    out[stmt] = found
                below = after if isinstance(stmt, p.With) else ()
                parts = stmt.handlers if isinstance(stmt, p.Try) else stmt.cases if isinstance(stmt, p.Match) else ()
                for holder in (stmt, *parts):
                    fields = (getattr(holder, name, ()) for name in ("body", "orelse", "final"))
                    work += [(body, below) for body in fields if body and isinstance(body, tuple)]
        return out

    def _gathered(self, loop: p.For, after: p.Body) -> frozenset[str] | None:
        """The losses that each pass gives anew; None where no backward after the loop starts from its losses."""
        counted = isinstance(loop.iter, p.Call) and terminal(loop.iter.func) in {"range", "trange"}
        if not counted or BACKWARD not in self.body_tags(after) or BACKWARD in self.body_tags(loop.body):
            return None
        steps = [s for s in after if STEP in self.tags(s)]
        if all(isinstance(s, p.If) and STEP not in self.body_tags(s.orelse) for s in steps):
            return None  # what the step's condition counts are the passes of the loop around
        made: set[str] = set()
        grows: set[str] = set()
        for node in (n for stmt in loop.body for n in self.walk(stmt)):
            if isinstance(node, (p.Assign, p.AugAssign)):
                given = node.targets[0] if isinstance(node, p.Assign) else node.target
                names = {terminal(t) for t in (given.elts if isinstance(given, p.Sequence) else (given,))}
                made |= {name for name in names if LOSS_NAME.search(name)}
                grows |= names if isinstance(node, p.AugAssign) else names & {*self.names_in(node.value)}
            elif isinstance(node, p.Call) and isinstance(node.func, p.Attr) and node.func.name == "append":
                name = terminal(node.func.value)
                made |= {name} if LOSS_NAME.search(name) else set()
                grows.add(name)
            elif isinstance(node, p.If):
                grows |= {*self.names_in(node.test)}  # `if loss < best_loss: best_loss = loss`
        for stmt in after:
            for node in self.walk(stmt):
                if isinstance(node, p.Call) and terminal(node.func) == "backward":
                    started = {*self.names_in(node.func), *(n for a in node.args for n in self.names_in(a.value))}
                    if started & made:
                        return frozenset((made - grows) & started)
                elif isinstance(node, (p.Assign, p.AugAssign)) and made & set(self.names_in(node.value)):
                    target = terminal(node.targets[0] if isinstance(node, p.Assign) else node.target)
                    made.add(target)
                    grows.add(target)
        return None

    def _find_window_names(self) -> None:
        guards: list[p.Expr] = []
        for body in self.bodies:
            self._collect_guards(body, guards)
        names: set[str] = set()
        for test in guards:
            self._divisors(test, names)
            self._remainders(test)
        assigns: dict[str, list[p.Expr]] = defaultdict(list)
        deciding: dict[str, list[p.Expr]] = defaultdict(list)
        for body in self.bodies:
            for stmt in body:
                for node in self.walk(stmt):
                    if isinstance(node, p.If):
                        for flag in self.flags(node):
                            deciding[terminal(flag)].append(node.test)
                    elif isinstance(node, p.Assign):
                        for target in node.targets:
                            assigns[terminal(target)].append(node.value)
                    elif isinstance(node, p.FunctionDef):
                        for inner in self.walk(node):
                            if isinstance(inner, p.Return) and inner.value is not None:
                                assigns[node.name].append(inner.value)
                            elif isinstance(inner, p.If) and any(map(_tells, (*inner.body, *inner.orelse))):
                                deciding[node.name].append(inner.test)
                    elif isinstance(node, p.Arg) and node.keyword:
                        assigns[node.keyword].append(node.value)
        seen: set[str] = set()
        work = [n for t in guards for n in self.names_in(t)]
        while work:
            name = work.pop()
            if name in seen:
                continue
            seen.add(name)
            for test in deciding.get(name, ()):
                self._remainders(test)
                self._divisors(test, names)
                work += self.names_in(test)
            for value in assigns.get(name, ()):
                before = len(names)
                self._divisors(value, names)
                if len(names) > before or isinstance(value, (p.Compare, p.BoolOp, p.Unary)):
                    work += self.names_in(value)
        self.divisors -= self.counters | {""}
        for name in [n for n in names if n.startswith("_")]:  # `self._every = cfg.every`: a private copy of a setting
            names |= {terminal(v) for v in assigns.get(name, ()) if isinstance(v, p.Attr) and terminal(v) == name[1:]}
        handed = assigns.get("gradient_accumulation_steps", ())  # what frameworks are told N is
        names |= {terminal(v) for v in handed if isinstance(v, (p.Name, p.Attr, p.Subscript))} - self.counters - {""}
        self.guard_names = seen
        self.window_names = names - {"len", "__name__"}  # a function is no setting

    def gated(self, loop: p.For | p.While) -> bool:
        """Whether a loop runs backward and steps by a condition that counts: its iterations are the micro-batches."""
        known = self._gated.get(loop)
        if known is None:
            tags = self.body_tags(loop.body)
            known = bool(self.counters) and BACKWARD in tags and STEP in tags and self._counts(loop)
            self._gated[loop] = known
        return known

    def _counts(self, loop: p.For | p.While) -> bool:
        """Whether the loop moves a number of which some guard of a step takes the remainder."""
        moved = self.given(loop)
        moved |= {terminal(s.target) for s in loop.body if isinstance(s, p.AugAssign)}
        moved |= {terminal(t) for s in loop.body if isinstance(s, p.Assign) for t in s.targets}
        return bool(moved & self.counters)

    def flags(self, node: p.If) -> tuple[p.Name | p.Attr, ...]:
        """What a side of an `if` sets to True or False: what these gate, its condition gates."""
        known = self._flags.get(node)
        if known is None:
            told = [(t, s) for s in (*node.body, *node.orelse) if isinstance(s, p.Assign) for t in s.targets]
            flags = [(t, s) for t, s in told if isinstance(t, (p.Name, p.Attr))]
            known = tuple(t for t, s in flags if _truth(s.value) or p.text(t) in self.switches)
            self._flags[node] = known
        return known

    def _remainders(self, test: p.Expr) -> None:
        """Note the counter and the divisor of each remainder."""
        for node in self.walk(test):
            if isinstance(node, p.BinOp) and node.op == "%":
                for name in {terminal(n) for n in self.walk(node.left) if isinstance(n, (p.Name, p.Attr))} - {"self"}:
                    self.counters.add(name)
                    self._asked[name].append(node)
                self.divisors.add(terminal(node.right))

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
        if isinstance(stmt, (p.FunctionDef, p.ClassDef, p.With)):
            return [stmt.body]
        if isinstance(stmt, p.If):
            inside = self.body_tags(stmt.body) | self.body_tags(stmt.orelse)
            ends = bails(stmt.body) and not isinstance(
                stmt.body[-1], p.Break
            )  # where a loop is left is no window's end
            if inside & {STEP, ZERO} or (ends and STEP in self.body_tags(after)):
                loops = [s for s in stmt.body if isinstance(s, (p.For, p.While))]
                if STEP not in inside or not any(self._trains_itself(s) for s in loops):
                    out.append(stmt.test)
                self.limits |= {*limits_in(stmt, self)}
            return [stmt.body, stmt.orelse]
        if isinstance(stmt, (p.For, p.While)):
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

    def counted_by(self, loop: p.For, name: str) -> bool:
        """True when a step's guard may read this loop's variable: no loop further in, or elsewhere, gives it that name anew."""
        if name not in self._counting:
            holding = [
                (n, {*self.walk(n)}) for n in self.everything() if isinstance(n, p.For) and name in self.given(n)
            ]
            around = [[(len(within), n) for n, within in holding if guard in within] for guard in self._asked[name]]
            self._counting[name] = {min(found, key=lambda pair: pair[0])[1] if found else None for found in around}
        return not self._counting[name].isdisjoint((loop, None))

    def given(self, loop: p.Node) -> set[str]:
        """The names that a `for` gives in each pass."""
        return {n.id for n in self.walk(loop.target) if isinstance(n, p.Name)} if isinstance(loop, p.For) else set()

    @property
    def countdowns(self) -> frozenset[str]:
        """Names that a step's condition asks and that run down by one."""
        return self.once("countdowns", self._find_countdowns)

    def _find_countdowns(self) -> frozenset[str]:
        down = [n for n in self.everything() if isinstance(n, p.AugAssign) and n.op == "-" and p.text(n.value) == "1"]
        return frozenset({terminal(n.target) for n in down} & self.window_names)

    @property
    def strides(self) -> dict[str, str]:
        """Names that multiply a loop's variable where another loop's is added (`i * size + j`), with that variable."""
        return self.once("strides", self._find_strides)

    def _find_strides(self) -> dict[str, str]:
        out: dict[str, str] = {}
        targets = {name for loop in self.loops.values() for name in self.given(loop)}
        for node in self.everything():
            if isinstance(node, p.BinOp) and node.op == "+" and isinstance(node.left, p.BinOp):
                for part in self.walk(node.left):
                    if isinstance(part, p.BinOp) and part.op == "*":
                        for one, other in ((part.left, part.right), (part.right, part.left)):
                            if isinstance(one, p.Name) and one.id in targets and (size := terminal(other)):
                                out.setdefault(size, one.id)
        return out

    def collects(self, node: p.If) -> bool:
        """True for the guard of a step whose micro-batches were collected, and are run through under it."""
        below = [s for s in node.body if isinstance(s, p.For) and BACKWARD in self.body_tags(s.body)]
        told = " ".join(p.text(e) for s in below for e in (s.iter, s.target, node.test))
        return bool(below) and not any(map(self._trains_itself, below)) and not _PLAYED.search(told)

    def _trains_itself(self, loop: p.For | p.While) -> bool:
        """True for a loop under a guard that runs backward, over other batches than those collected for the step."""
        collected = isinstance(loop, p.For) and "append" in self.uses.get(terminal(loop.iter), ())
        tags = self.body_tags(loop.body)
        return BACKWARD in tags and (STEP in tags or not collected)

    def gathers(self, loop: p.For) -> bool:
        """True for a loop over batches that were appended to a list until it was as long as wanted."""
        name = terminal(loop.iter)
        if not isinstance(loop.iter, (p.Name, p.Attr)) or "append" not in self.uses.get(name, ()):
            return False
        told = [p.text(n.test) for n in self.everything() if isinstance(n, p.If) and asks_length(n.test, name)]
        return bool(told) and not any(map(_PLAYED.search, (*told, p.text(loop.iter), p.text(loop.target))))

    def run_by(self, nodes: Iterable[p.Node]) -> set[p.FunctionDef]:
        """The functions of the file that running some nodes calls, and those that these call."""
        out: set[p.FunctionDef] = set()
        work = list(nodes)
        while work:
            called = {func for call in self.calls_in(work.pop()) for func in self.callees(call)} - out
            out |= called
            work += called
        return out

    def names_in(self, expr: p.Expr) -> list[str]:
        """The last names of what an expression reads and calls."""
        return [t for n in self.walk(expr) if isinstance(n, (p.Name, p.Attr, p.Call)) and (t := terminal(n))]

    def _divisors(self, expr: p.Expr, out: set[str]) -> None:
        within = {n for call in self.walk(expr) if asks_elements(call) for n in self.walk(call)}
        for node in self.walk(expr):
            if node in within or node in self.limits:
                continue
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


def _truth(value: p.Expr) -> bool:
    return isinstance(value, p.Const) and isinstance(value.value, bool)


def _tells(stmt: p.Stmt) -> bool:
    return isinstance(stmt, p.Return) and stmt.value is not None and _truth(stmt.value)
