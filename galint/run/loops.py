"""Loops of the abstract run: what a loop is for, and its iterations."""

from __future__ import annotations

import re

from galint import program as p
from galint.run.branches import Branches
from galint.run.elements import numbered, numbers_its_elements
from galint.run.frame import BREAK, CONTINUE, Frame, LoopFrame, Signal
from galint.run.nodes import asks_length, terminal
from galint.run.reach import BACKWARD, GRADIENT, SCALE, STEP
from galint.run.update_effects import averages, intervals
from galint.run.values import Instance, Lit, Mapping, Opaque, Seq, Value

_OPTIMIZERS = re.compile(r"optim|(^|[._])opts?($|[._(\[])", re.I)
_EPOCH = re.compile(r"epoch|^ep$", re.I)


class Loops(Branches):
    """`for` and `while`."""

    # --- roles ---------------------------------------------------------------------------------

    def loop_role(self, node: p.For | p.While) -> str:
        """What a pass stands for: "window" (its micro-batches), "length", "windows", "epochs", "gather" (losses), "idle" …"""
        tags = self.static.body_tags(node.body)
        if BACKWARD not in tags:
            if not tags & (GRADIENT - {SCALE}) and node in self.static.gathering:
                return "gather"
            return "other" if tags & GRADIENT else "idle"
        if self.over_optimizers(node):
            return "optimizers"
        if STEP not in tags:
            return "window"
        if self.counts_steps(node):
            return "length"
        inner = [n for s in node.body for n in self._inner_loops(s)]
        inner = [n for n in (*inner, *self._called_loops(node)) if not self.over_optimizers(n)]
        best = [self.static.body_tags(n.body) for n in inner]
        if any({BACKWARD, STEP} <= t for t in best):
            return "epochs"
        if any(BACKWARD in t for t in best):
            return "windows"
        return "length"

    def over_optimizers(self, node: p.For | p.While) -> bool:
        """True for a loop over optimizers, each of which has its own loss: its passes are no micro-batches."""
        target = node.target if isinstance(node, p.For) else None
        last = target.elts[-1] if isinstance(target, p.Sequence) and target.elts else target
        return isinstance(last, p.Name) and self.static.kind_of(last.id) == "optimizer"

    def _builds(self, stmt: p.For) -> bool:
        """True when a loop fills a list, whose length may matter later."""
        cache = self.static.builders
        if stmt not in cache:
            cache[stmt] = any(
                isinstance(n, p.Call) and terminal(n.func) in {"append", "extend"}
                for s in stmt.body
                for n in self.static.walk(s)
            )
        return cache[stmt]

    def counts_steps(self, node: p.Node) -> bool:
        """True when what the loop itself counts decides when the optimizer steps: its variable, or a counter that each
        pass moves once, outside any loop in it (`n += 1; for task in tasks: … if n >= N`)."""
        if not isinstance(node, (p.For, p.While)):
            return False
        if isinstance(node, p.For):
            names = {terminal(n) for n in self.static.walk(node.target) if isinstance(n, (p.Name, p.Attr))}
            if any(self.static.counted_by(node, name) for name in names & self.static.counters):
                return True
        moved = {terminal(s.target) for s in node.body if isinstance(s, p.AugAssign) and s.op == "+"}
        if moved:  # what loops in it count as well is no number of its own passes
            within = (n for stmt in node.body for loop in self._inner_loops(stmt) for n in self.static.walk(loop))
            moved -= {terminal(n.target) for n in within if isinstance(n, p.AugAssign)}
        names = self.static.counters | self.static.window_names
        return any(not _EPOCH.search(name) for name in moved & names) or _collects(node)

    def _inner_loops(self, stmt: p.Node) -> list[p.For | p.While]:
        out: list[p.For | p.While] = []
        for node in self.static.walk(stmt):
            if isinstance(node, (p.For, p.While)):
                out.append(node)
        return out

    def _called_loops(self, node: p.For | p.While) -> list[p.For | p.While]:
        seen: set[p.FunctionDef] = set()
        work: list[p.Node] = list(node.body)
        out: list[p.For | p.While] = []
        while work:
            for call in self.static.calls_in(work.pop()):
                for func in self.static.callees(call):
                    if (
                        func not in seen
                        and BACKWARD in self.static.tags(func)
                        and not self.static.holds(func, node)  # a function that runs the loop is not inside it
                    ):
                        seen.add(func)
                        out += self._inner_loops(func)
                        work.append(func)
        return out

    def _role_of(self, stmt: p.For | p.While) -> str:
        role = self.static.loop_roles.get(stmt)
        if role is None:
            role = self.static.loop_roles[stmt] = self.loop_role(stmt)
        return role

    def driven_role(self, stmt: p.For) -> str:
        """What a pass of a generator's loop stands for: what one of the loop that it drives does."""
        driver = self.loops[-1].role if self.loops else ""
        return driver if driver == "epochs" or (driver == "window" and _yields(stmt)) else "length"

    # --- running -------------------------------------------------------------------------------

    def _filled(self, stmt: p.For, source: Value) -> Value:
        """`for name in self.optimizers: self.optimizers[name].step()` over a dictionary or list that is filled out of
        sight, in a method that the run does not call: it holds one optimizer.
        """
        empty = (isinstance(source, Mapping) and not source.items) or (isinstance(source, Seq) and not source.elts)
        if not empty or not _OPTIMIZERS.search(p.text(stmt.iter)):
            return source
        tags = self.static.body_tags(stmt.body)
        if STEP not in tags or BACKWARD in tags:
            return source
        path = f"{p.text(stmt.iter).partition('(')[0]}[…]"
        made = next((o for o in self.optimizers.values() if o.path == path), None) or self.make_optimizer(path)
        if isinstance(source, Mapping):
            source.items["…"] = made
            return source
        pair = isinstance(stmt.target, p.Sequence) and len(stmt.target.elts) == 2
        return Seq([Seq([Lit("…"), made]) if pair else made])

    def run_for(self, stmt: p.For, frame: Frame) -> Signal | None:
        """A for loop."""
        if stmt in self.passed:
            return None
        role = self._role_of(stmt)
        if role == "idle" and frame.yields is not None:
            # A generator's own loop lasts as long as the loop that it drives.
            role = self.driven_role(stmt)
        elif role == "idle" and self._builds(stmt):
            role = "build"
        if self.loops and averages(stmt) and not self.result.facts.get("effects", set()).intersection(self.call_spans):
            guards = [*(g.text for g in self.guards), *intervals(frame.function)]
            self.event("update_effect", stmt.span, "average", guards=guards)
        source = self._filled(stmt, self.eval(stmt.iter, frame))
        loop = self._enter(stmt)
        loop.role = role
        counted = numbers_its_elements(stmt, self.static)
        result: list[Signal | None] = [None]

        def each(value: Value) -> Signal | None:
            self._next(loop, role)
            value = self.stamp(value, loop.token)
            if counted and type(value) is Opaque and isinstance(stmt.target, p.Sequence):
                value = numbered(counted, value, loop.iteration, len(stmt.target.elts))
            self.bind(stmt.target, value, frame)
            loop.residual.clear()
            signal = self.run_body(stmt.body, frame)
            if signal is None or signal is CONTINUE:
                return None
            result[0] = signal
            return signal

        try:
            self.iterate(source, each, stmt, role)
        finally:
            self.loops.pop()
        self.leave_loop(loop)
        signal = result[0]
        if signal is BREAK:
            return None
        if signal is not None:
            return signal
        return self.run_body(stmt.orelse, frame) if stmt.orelse else None

    def _enter(self, stmt: p.For | p.While) -> LoopFrame:
        self.serials += 1
        loop = LoopFrame(stmt, stmt.span, self.serials, -1, self.new_token(), role=self._role_of(stmt))
        self.loops.append(loop)
        return loop

    def _next(self, loop: LoopFrame, role: str) -> None:
        self.burn()
        loop.iteration += 1
        loop.token = self.new_token()

    def leave_loop(self, loop: LoopFrame) -> None:
        """Note the end of a loop that ran backward."""
        if loop.backwards:
            self.event("loop_end", loop.span, serial=loop.serial, iterations=loop.iteration + 1)

    def stamp(self, value: Value, token: int) -> Value:
        """Mark a loop variable as coming from this iteration."""
        if isinstance(value, Lit):
            return Lit(
                value.value, value.keys, value.moduli, token, value.text if value.text and not value.is_number else ""
            )
        if type(value) is Opaque and value.data:
            value.born = token
        elif isinstance(value, Seq) and value.kind == "tuple":
            return Seq([self.stamp(v, token) for v in value.elts], "tuple", value.path)
        elif isinstance(value, Instance) and value.data:
            value.born = token
            value.attrs = {name: self.stamp(v, token) for name, v in value.attrs.items()}
        return value

    def run_while(self, stmt: p.While, frame: Frame) -> Signal | None:
        """A while loop."""
        if stmt in self.passed:
            return None
        role = self._role_of(stmt)
        loop = self._enter(stmt)
        ahead = _drawn_ahead(stmt) if role in {"length", "window"} else ()
        tags = self.static.body_tags(stmt.body)
        limit = {"idle": 4, "other": 8, "epochs": 2}.get(role, 400)
        drives = frame.yields is not None  # a generator's loop lasts as long as the loop that it drives
        if drives:
            limit = 4000
        quiet = 0
        try:
            while True:
                old = self.test_node, self.test_tags
                self.test_node, self.test_tags = stmt, tags | {"while"}
                if role == "window":
                    self.test_tags = tags | {STEP}
                value = self.eval(stmt.test, frame)
                self.test_node, self.test_tags = old
                truth = self.truth(value)
                if truth is None:
                    gives = drives and any(isinstance(n, (p.Yield, p.YieldFrom)) for n in self.static.walk(stmt))
                    passes = self._driven(stmt) if gives else self._patience(role)
                    truth = (BACKWARD in tags or gives) and loop.iteration + 1 < passes
                if not truth:
                    if loop.iteration < 0 and isinstance(value, Lit) and BACKWARD in tags:
                        off = {key for key in value.keys if self.settings.get(key, 1) <= 0}
                        self.result.facts.setdefault("off", set()).update(off)
                    return self.run_body(stmt.orelse, frame) if stmt.orelse else None
                before = len(self.result.backwards)
                self._next(loop, role)
                for name in ahead:
                    if (drawn := frame.vars.get(name)) is not None:
                        frame.vars[name] = self.stamp(drawn, loop.token)
                loop.residual.clear()
                signal = self.run_body(stmt.body, frame)
                if signal is BREAK:
                    return None
                if signal is not None and signal is not CONTINUE:
                    return signal
                quiet = quiet + 1 if len(self.result.backwards) == before else 0
                if loop.iteration + 1 >= limit or (quiet > 12 and not drives):
                    return None
        finally:
            self.loops.pop()
            self.leave_loop(loop)

    def _driven(self, stmt: p.While) -> int:
        """How many passes a generator's loop makes that asks for what is unknown: `while step < args.steps: yield …`."""
        return self.scenario.length if _yields(stmt) else self.scenario.epochs

    def _patience(self, role: str) -> int:
        return {"window": self.scenario.window, "windows": 3, "epochs": self.scenario.epochs, "length": 400}.get(
            role, 3
        )


def _yields(loop: p.For | p.While) -> bool:
    """True for a generator's loop that gives its elements itself, and not through a loop in it."""
    return any(isinstance(s, p.ExprStmt) and isinstance(s.value, p.Yield) for s in loop.body)


def _collects(loop: p.For | p.While) -> bool:
    """`parts.append(batch)`, then `if len(parts) < n: continue`: a pass goes on only when enough of them are there."""
    calls = [s.value.func for s in loop.body if isinstance(s, p.ExprStmt) and isinstance(s.value, p.Call)]
    filled = {terminal(f.value) for f in calls if isinstance(f, p.Attr) and f.name == "append"} - {""}
    waits = [s.test for s in loop.body if isinstance(s, p.If) and isinstance(s.body[-1], p.Continue)]
    return any(asks_length(test, name) for name in filled for test in waits)


def _drawn_ahead(loop: p.While) -> tuple[str, ...]:
    """What each pass of `while x is not None` finds drawn, by the pass before or ahead of the loop, and draws anew."""
    test = loop.test
    if not isinstance(test, p.Compare) or test.ops not in {("is not",), ("!=",)} or not isinstance(test.left, p.Name):
        return ()
    for stmt in loop.body:
        if isinstance(stmt, p.Assign) and isinstance(stmt.value, p.Call):
            target = stmt.targets[0]
            names = tuple(
                e.id for e in (target.elts if isinstance(target, p.Sequence) else (target,)) if isinstance(e, p.Name)
            )
            if test.left.id in names:
                return names
    return ()
