"""Branches of the abstract run: which side of `if` and `match` runs, and what guards the steps in it."""

from __future__ import annotations

import re

from galint import program as p
from galint.ledger import Guard
from galint.run.assign import Assign
from galint.run.frame import Frame, Signal
from galint.run.intervals import Interval
from galint.run.limits import ready_to_train
from galint.run.match import matches
from galint.run.names import ONE_WINDOW, OVERFLOW, RANKS
from galint.run.nodes import bails, ends_in_raise, path_terminal, raises, terminal
from galint.run.reach import BACKWARD, GRADIENT, SCALE, STEP, WRAP, ZERO
from galint.run.sides import gates, makes_nothing, moduli_in, names_a_thing, resumes, steps_first, without_remainder
from galint.run.skipped import lacks_batch
from galint.run.summed import sums
from galint.run.unknowns import setting
from galint.run.values import TRUE, Lit, Opaque, Seq, Tensor, Value

_ASKS_NUMBERS = re.compile(r"\bis_?(finite|nan|inf)\([^()]*\bgrad\b", re.I)
"""What asks whether a gradient is a number."""


class Branches(Assign):
    """`if` and `match`."""

    # The layer above fills this in.
    def run_body(self, body: p.Body, frame: Frame) -> Signal | None:
        """Run a block; a signal says that it was left early."""
        raise NotImplementedError

    def run_if(self, stmt: p.If, frame: Frame, rest: p.Body = ()) -> tuple[Signal | None, Guard | None]:
        """A branch. The second result is the guard on what follows, when the body leaves the block."""
        body_tags, else_tags, leaves = self.static.branches(stmt)
        old = self.test_node, self.test_tags
        if self.loops and (interval := self.static.interval(stmt)) is not None:
            self._ask_interval(*interval, frame)
        rest_tags = self.static.body_tags(rest) if leaves else frozenset()
        self.test_node = stmt
        tags = self.test_tags = self.static.decides(stmt)
        value = self.eval(stmt.test, frame)
        self.test_node, self.test_tags = old
        static = self.static
        ready = ready_to_train(stmt, static, rest_tags, static.divisors) if self.scenario.ready else None
        value = self.resolve(value) if ready is None else Lit(ready)
        truth = self.truth(value)
        rest_gates = leaves and STEP in rest_tags and BACKWARD not in rest_tags
        if truth is None:
            truth = self._decide(stmt, value, body_tags, else_tags, frame, rest)
        elif (
            leaves and isinstance(stmt.body[-1], p.Continue) and isinstance(value, Lit) and not truth and not rest_gates
        ):
            if self._feeds(frame) and any(self.result.roles.get(k) in {"limit", "other", "window"} for k in value.keys):
                self.result.facts["skips"] = True  # micro-batches may be left out by a bound that is not known
        elif raises(stmt.body if truth else stmt.orelse) and (
            (isinstance(value, Lit) and value.keys)
            or (
                not self.loops
                and not raises(stmt.orelse if truth else stmt.body)
                and not (body_tags if truth else else_tags) & {BACKWARD, STEP}  # `sys.exit(main())`
                and not (isinstance(stmt.test, p.Compare) and p.text(stmt.test.left) == "__name__")
            )
        ):
            truth = not truth  # an argument check: the program's path is the other side
        elif (
            isinstance(value, Lit)
            and value.keys
            and ((body_tags ^ else_tags) & GRADIENT or BACKWARD in body_tags & else_tags)
            and not value.born
        ):
            truth = self._soft_choice(stmt, value, truth)
        elif (
            isinstance(value, Lit)
            and value.keys
            and ((not truth and self._starts_loss(stmt, frame)) or self._gives_window(stmt, frame))
        ):
            truth = self._soft_choice(stmt, value, truth)
        elif isinstance(value, Lit) and value.keys and not truth and self._raises_window(stmt, frame):
            text = p.text(stmt.test)
            truth = self.choose(text, truth, data=False, relevant=True, span=stmt.span, asked=text)
        elif isinstance(value, Lit) and value.keys and not self.loops and all(map(names_a_thing, stmt.body)):
            truth = self._soft_choice(stmt, value, truth, relevant=False)
        if isinstance(value, Lit) and value.keys and self.scenario.choices:
            key = setting(stmt.test, value)
            taken = self.scenario.choices.get(key.removeprefix("not "))
            truth = truth if taken is None else taken != key.startswith("not ")
        if self.loops and isinstance(value, Lit) and value.keys:
            missed, passed = (else_tags, body_tags) if truth else (body_tags, else_tags)
            if BACKWARD in missed and not passed & GRADIENT - {SCALE}:
                self.result.facts.setdefault("passed_by", {})[stmt] = value.keys
        if self.loops and isinstance(value, Lit) and not value.keys and self.static.skips_loss(stmt, bool(truth)):
            self.result.facts.setdefault("skipped_losses", set()).update(self.static.names_in(stmt.test))
        moduli = value.moduli if isinstance(value, Lit) else ()
        if isinstance(value, Opaque) and "__moduli__" in value.items:
            moduli = getattr(value.items["__moduli__"], "moduli", ())
        if moduli and leaves and isinstance(stmt.body[-1], p.Break) and self._feeds(frame):
            bounds = self.result.facts.setdefault("break_bounds", set())
            bounds |= {v for label, v in moduli if label.startswith("≥") and 1 < v <= 64 and "len(" not in label}
            if any(re.fullmatch(r"≥(\d+|[A-Z_\d]+)", label) for label, _ in moduli):
                self.result.facts["fixed_bound"] = True  # a cap written in the code, no setting
        beside = self.static.body_tags(self.static.other_sides.get(stmt, ())) if moduli else else_tags
        otherwise = self.static.body_tags(without_remainder(stmt, static)) if moduli else else_tags
        leads = False
        if moduli and not gates(body_tags, otherwise | beside, rest_tags if leaves else None):
            summed = self.static.summing.get(stmt)
            if summed is None:
                summed = self.static.summing[stmt] = sums(self.static, stmt)
            collected = summed or self.static.collects(stmt)
            leads = not collected and BACKWARD in body_tags and steps_first(stmt.body, static)
            if not (leads or collected) and not (STEP in body_tags and self.static.comes_back(stmt.body)):
                moduli = ()
        keys = value.keys if isinstance(value, Lit) else frozenset()
        body = stmt.body if truth else stmt.orelse
        if STEP in tags and moduli and self.loops:
            told = value.items.get("__default__") if isinstance(value, Opaque) else None
            self.event(
                "guard",
                self.place(stmt.span),
                p.text(stmt.test),
                taken=truth,
                moduli=moduli,
                keys=keys,
                steps=STEP in body_tags,
                refused=not truth and isinstance(told, Lit) and bool(told.value),  # by what stands beside the remainder
            )
        if not body:
            leaves = leaves and not isinstance(stmt.body[-1], (p.Break, p.Raise))
            residual = Guard(stmt.span, p.text(stmt.test), moduli, keys, True) if leaves and moduli else None
            if moduli:
                self._raise_flags(stmt, Guard(stmt.span, "", moduli, keys), frame)
            return None, residual
        guard = Guard(self.place(stmt.span), p.text(stmt.test), moduli, keys, not truth)
        self.guards.append(guard)
        if leads and truth:
            self.leading.append(guard)
        try:
            signal = self.run_body(body, frame)
        finally:
            self.guards.pop()
            self.leading = [g for g in self.leading if g is not guard]
        if moduli:
            self._raise_flags(stmt, guard, frame)
        residual = guard if not truth and leaves and moduli and signal is None else None
        return signal, residual

    def _raise_flags(self, stmt: p.If, guard: Guard, frame: Frame) -> None:
        """`if i % n == 0: ready = True`: what the flag gates, the numbers of this condition gate."""
        for target in self.static.flags(stmt):
            flag = self.eval(target, frame)
            if (gated := self.gated(flag, [guard])) is not flag:
                self.bind(target, gated, frame)

    def gated(self, flag: Value, guards: list[Guard]) -> Value:
        """True or False with the numbers of the conditions that have led to it."""
        moduli = tuple(m for guard in guards for m in guard.moduli)
        if not moduli or not isinstance(flag, Lit) or not isinstance(flag.value, int) or flag.value not in {0, 1}:
            return flag
        keys = flag.keys.union(*(guard.keys for guard in guards))
        return Lit(
            flag.value, keys, tuple(dict.fromkeys((*flag.moduli, *moduli)))[-4:], max(flag.born, self.token(), 1)
        )

    def _feeds(self, frame: Frame) -> bool:
        """Whether the innermost loop trains, or gives a training its batches; another's end tells nothing of them."""
        loop = self.loops[-1].node if self.loops else None
        trains = isinstance(loop, (p.For, p.While)) and BACKWARD in self.static.body_tags(loop.body)
        return trains or frame.yields is not None

    def _ask_interval(self, stmt: p.If, interval: Interval, frame: Frame) -> None:
        """Note what the counter of an interval stands at, unless something else keeps the condition from being true."""
        counter = self.resolve(self.eval(interval.counter, frame))
        if isinstance(counter, Lit) and isinstance(counter.value, int):
            name = p.text(interval.counter)
            others = [o for o in interval.others if counter.value > 0 or name not in p.text(o)]  # `updates > 0`
            held = any(self.truth(self.eval(other, frame)) is False for other in others)
            self.event("interval", stmt.span, interval.work, value=counter.value, held=held)

    def _soft_choice(self, stmt: p.If, value: Lit, truth: bool, *, relevant: bool = True) -> bool:
        """A condition decided by a setting's default is still a configuration that can be flipped."""
        asked, text, key = p.text(stmt.test), setting(stmt.test, value), min(value.keys)
        body, orelse = self.static.body_tags(stmt.body), self.static.body_tags(stmt.orelse)
        if (WRAP in body) != (WRAP in orelse):
            return self.choose(text, truth, data=False, relevant=True, span=stmt.span, asked=asked)
        if any(isinstance(m[1], int) for m in value.moduli) or len(value.keys) > 1:
            return truth
        if key in self.scenario.values or key.endswith("@start") or path_terminal(key) in self.static.divisors:
            return truth  # what counters are divided by in this run is not 0 in it
        if self.result.known.get(key) is not None:
            return truth
        return self.choose(text, truth, data=False, relevant=relevant, span=stmt.span, asked=asked)

    def _decide(
        self, stmt: p.If, value: Value, body: frozenset[str], orelse: frozenset[str], frame: Frame, rest: p.Body = ()
    ) -> bool:
        """A condition the run does not know: take the branch that trains."""
        key = value.path if isinstance(value, (Opaque, Tensor)) else p.text(stmt.test)
        if not key or key.startswith("#") or key.startswith("f-string"):
            key = p.text(stmt.test)
        data = self.is_data(value) or OVERFLOW.search(key) or _ASKS_NUMBERS.search(key) is not None
        if self.loops and lacks_batch(stmt, self.loops[-1].node):
            data, key = True, p.text(stmt.test)
        leaves, else_leaves = self.static.branches(stmt)[2], bails(stmt.orelse)
        trains = {BACKWARD, STEP}
        gradient = (body | orelse) & GRADIENT
        role = value.role if isinstance(value, Opaque) else ""
        checks = raises(stmt.body) and not body & trains, raises(stmt.orelse) and not orelse & trains
        asks = isinstance(stmt.test, p.BoolOp) and checks[0] != checks[1] and not self.loops
        if asks and isinstance(value, Opaque) and "__default__" in value.items:
            return checks[1]  # an argument check in which a made-up number takes part
        stops = leaves and isinstance(stmt.body[-1], p.Break) and not body & trains and bool(self.loops)
        if stops and isinstance(self.loops[-1].node, p.For):
            default = False  # `if i > 0 and args.dry_run: break`
        elif isinstance(value, Opaque) and "__default__" in value.items:
            default = bool(getattr(value.items["__default__"], "value", False))
        elif body & GRADIENT == {WRAP} and any(taken and RANKS.search(k) for k, taken in self.scenario.choices.items()):
            default = True  # where there are ranks, there are several
        elif role == "rank":
            default = False if not gradient else bool(body & GRADIENT)
        elif data and leaves and BACKWARD not in body and BACKWARD in self.static.body_tags(rest):
            default = False  # a batch without a usable loss is skipped, with whatever keeps the ranks in step
        elif BACKWARD in body and raises(stmt.body) and self._tries_once(stmt):
            default = False  # `if debug: …; sys.exit()`: the training is elsewhere
        elif STEP in body & orelse and not data and (gated := self._gated(stmt.body)) != self._gated(stmt.orelse):
            default = gated  # the side that accumulates
        elif STEP in body and STEP not in orelse and BACKWARD not in orelse:
            default = True
        elif STEP in orelse and STEP not in body and BACKWARD not in body:
            default = False
        elif BACKWARD in body and BACKWARD not in orelse and not (leaves and not body & trains):
            default = True
        elif (BACKWARD in orelse and BACKWARD not in body) or (raises(stmt.body) and not body & trains):
            default = False
        elif (
            (raises(stmt.orelse) and not orelse & trains)
            or (leaves and not stmt.orelse and isinstance(stmt.body[-1], p.Return) and ends_in_raise(rest))
            or (leaves and isinstance(stmt.body[-1], p.Return) and stmt.orelse and bails(stmt.orelse))
        ):
            default = True
        elif leaves and not body & {BACKWARD, STEP}:
            default = False
        elif (
            body & GRADIENT == {WRAP}
            and not stmt.orelse
            and any(isinstance(q.node, (p.For, p.While)) for q in self.loops)
        ):
            default = False  # a model that is built anew between epochs starts another training
        elif data and ZERO in body and not body & trains and not orelse & GRADIENT and self._clears_outside(stmt):
            default = False  # a window that is given up, because its loss or its gradients are not to be trusted
        elif (else_leaves and not orelse & trains) or ((body & GRADIENT) and not (orelse & GRADIENT)):
            default = True
        elif (orelse & GRADIENT) and not (body & GRADIENT):
            default = False
        elif stmt.orelse and resumes(stmt, self.static):
            default = False  # a training that begins is seen whole
        elif stmt.orelse:
            default = not makes_nothing(stmt.body) or makes_nothing(stmt.orelse)
        else:
            default = not data and (bool(body & GRADIENT) or self._names_window(stmt.body))
        if data and not gradient and not leaves:
            default = bool(stmt.orelse) and default
        default = default or self._starts_loss(stmt, frame) or self._starts_batches(stmt, frame)
        taken_key = key
        whole = not (isinstance(value, Opaque) and "__moduli__" in value.items)  # no part of the condition is known
        relevant = bool(gradient) or (leaves and data and bool(self.loops))
        if leaves and whole and not data and isinstance(value, Opaque) and "__default__" in value.items:
            relevant = relevant or bool(self.static.body_tags(rest) & GRADIENT)  # `if epoch < begin: return`
        asked = p.text(stmt.test) if whole else ""
        taken = self.choose(taken_key, default, data=data, relevant=relevant, span=stmt.span, asked=asked)
        if asks and checks[not taken] and taken_key.removeprefix("not ") not in self.scenario.choices:
            return not taken  # what was taken before, for one part of the check, leads around it
        if not data and not relevant and self.loops and stmt.orelse and self.static.skips_loss(stmt, taken):
            self.result.facts.setdefault("loss_sides", set()).add(taken_key.removeprefix("not "))
        left = (orelse if taken else body) | (self.static.body_tags(rest) if leaves and taken else frozenset())
        if BACKWARD in left and BACKWARD not in (body if taken else orelse):
            self.result.facts.setdefault("past_backward", set()).add(taken_key.removeprefix("not "))
        return taken

    def _clears_outside(self, stmt: p.If) -> bool:
        """True where gradients are cleared in another place too, so that this condition only says when to clear early."""
        inside = set(self.static.walk(stmt))
        return any(terminal(c.func) == "zero_grad" and c not in inside for c in self.static.calls)

    def _tries_once(self, stmt: p.If) -> bool:
        """Whether a branch trains without a loop, and some loop of the program trains beside it."""
        inside = {n for s in stmt.body for n in self.static.walk(s)}
        trains = [n for n in self.static.loops.values() if BACKWARD in self.static.tags(n)]
        return bool(trains) and not any(n in inside for n in trains)

    def _gated(self, body: p.Body) -> bool:
        """True where every step of a block is gated by a remainder."""
        steps = [s for s in body if STEP in self.static.tags(s)]
        return bool(steps) and all(isinstance(s, p.If) and "%" in p.text(s.test) for s in steps)

    def _starts_loss(self, stmt: p.If, frame: Frame) -> bool:
        """True where the body gives a loss that is still the number 0, None or nothing at all its first term: a program that
        goes on to `backward` cannot have left the condition false everywhere."""
        for name in self.static.loss_terms(stmt):
            if frame.find(name) is None and name in self.static.sent_back(frame.function):
                return True
            old = self.resolve(frame.vars.get(name, TRUE))
            if isinstance(old, Lit) and (old.value is None or (old.value == 0 and old.value is not False)):
                return True
        return False

    def _starts_batches(self, stmt: p.If, frame: Frame) -> bool:
        """True where the body gives a list its first element, which training goes through: a program that trains on what
        it picks has not left the condition false everywhere."""
        calls = (n.value for n in stmt.body if isinstance(n, p.ExprStmt) and isinstance(n.value, p.Call))
        lists = (c.func.value for c in calls if isinstance(c.func, p.Attr) and c.func.name == "append")
        for node in lists:
            held = self.resolve(frame.vars.get(node.id, TRUE)) if isinstance(node, p.Name) else TRUE
            if isinstance(held, Seq) and not held.elts and terminal(node) in self._trained():
                return True
        return False

    def _trained(self) -> frozenset[str]:
        """The names in the headers of loops which run backward."""
        return self.static.once("trained", self._find_trained)

    def _find_trained(self) -> frozenset[str]:
        loops = (
            n for n in self.static.everything() if isinstance(n, p.For) and BACKWARD in self.static.body_tags(n.body)
        )
        return frozenset(name for loop in loops for name in self.static.names_in(loop.iter))

    def _gives_window(self, stmt: p.If, frame: Frame) -> bool:
        """True where a function that computes N returns 1 unless a setting says otherwise."""
        last = stmt.body[-1]
        return (
            isinstance(last, p.Return)
            and isinstance(last.value, p.Const)
            and last.value.value == 1
            and isinstance(frame.function, p.FunctionDef)
            and frame.function.name in self.static.guard_names | self.static.window_names
        )

    def _raises_window(self, stmt: p.If, frame: Frame) -> bool:
        """True where an N of 1 becomes a quotient if a batch is too large for a device."""
        for part in stmt.body:
            if isinstance(part, p.Assign) and isinstance(part.value, p.BinOp) and part.value.op in {"//", "/"}:
                name = terminal(part.targets[0])
                held = self.resolve(frame.vars.get(name, TRUE))
                if name in self.static.divisors and isinstance(held, Lit) and held.is_number and held.value == 1:
                    return True
        return False

    def _names_window(self, body: p.Body) -> bool:
        """True where a body gives N its name: `if config.n > 0: accumulates = True; n = config.n`."""
        targets = (terminal(t) for part in body if isinstance(part, p.Assign) for t in part.targets)
        return any(ONE_WINDOW.search(name) and name in self.static.window_names for name in targets)

    def run_match(self, stmt: p.Match, frame: Frame) -> Signal | None:
        """A match statement."""
        subject = self.eval(stmt.subject, frame)
        unknown: list[p.Case] = []
        moduli = moduli_in(subject)
        for case in stmt.cases:
            verdict = matches(self, case.pattern, subject, frame)
            if verdict and case.guard is not None:
                verdict = self.truth(self.eval(case.guard, frame))
            if verdict is False:
                continue
            if verdict is None:
                unknown.append(case)
                continue
            if unknown and not self.static.body_tags(case.body) & GRADIENT:
                break
            return self._run_case(case, stmt, moduli, frame)
        if not unknown:
            return None
        best = max(unknown, key=lambda c: len(self.static.body_tags(c.body) & GRADIENT))
        for case in unknown:
            if not bails(case.body) and (
                case is best or self.static.body_tags(case.body) == self.static.body_tags(best.body)
            ):
                return self._run_case(case, stmt, moduli, frame)
        return self._run_case(best, stmt, moduli, frame)

    def _run_case(
        self, case: p.Case, stmt: p.Match, moduli: tuple[tuple[str, int], ...], frame: Frame
    ) -> Signal | None:
        self.guards.append(Guard(case.span, f"match {p.text(stmt.subject)}", moduli))
        try:
            return self.run_body(case.body, frame)
        finally:
            self.guards.pop()
