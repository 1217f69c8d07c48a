"""A finding with everything a rewrite asks: its run, its step, N as the code spells it, what is visible where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from galint import program as p
from galint.analysis import Analysis
from galint.checks.finding import Finding
from galint.checks.parts import quotient
from galint.checks.view import View
from galint.diagnostic import Applicability, Diagnostic
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.outline import Outline
from galint.fixes.textedit import Change, Lines
from galint.ledger import Guard, Step
from galint.run.nodes import terminal, walk
from galint.source import Span

ATOMS = (p.Name, p.Attr, p.Const, p.Call, p.Subscript)
CONDITION = (p.Compare, p.BoolOp, p.BinOp, p.Unary, p.Call)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rewrite before it is proved. `prove` False is only for what is shown and never applied."""

    message: str
    changes: tuple[Change, ...]
    applicability: Applicability = Applicability.SAFE


@dataclass(slots=True)
class Document:
    """One file as the rewrites see it."""

    lines: Lines
    outline: Outline
    analysis: Analysis


class Situation:
    """One finding of a document."""

    def __init__(self, document: Document, diagnostic: Diagnostic, finding: Finding, view: View) -> None:
        self.document = document
        self.lines, self.outline = document.lines, document.outline
        self.diagnostic, self.finding, self.view = diagnostic, finding, view

    def editor(self) -> Editor:
        """A fresh collector of changes."""
        return Editor(self.lines, self.outline)

    def done(self, editor: Editor, message: str, applicability: Applicability = Applicability.SAFE) -> Candidate:
        """The editor's changes as a candidate."""
        return Candidate(message, tuple(sorted(set(editor.changes))), applicability)

    def text(self, node: p.Node) -> str:
        """A node's own text."""
        return self.lines.slice(node.span)

    # --- places ----------------------------------------------------------------------------

    @property
    def span(self) -> Span:
        """Where the finding is reported."""
        return self.diagnostic.span

    @cached_property
    def place(self) -> p.Stmt:
        """The statement of the finding. Raises Unfixable where the file has none there."""
        stmt = self.outline.statement(self.span)
        if stmt is None:
            raise Unfixable
        return stmt

    @cached_property
    def step(self) -> Step | None:
        """The step that the finding speaks of; for one without a step, a full window's."""
        if self.finding.step is not None:
            return self.finding.step
        steps = [step for ledger in self.view.ledgers for step in self.view.steps(ledger)]
        return max(steps, key=lambda step: len(set(step.window)), default=None)

    @cached_property
    def step_statement(self) -> p.Stmt | None:
        """The statement that makes the optimizer step."""
        return self.outline.statement(self.step.span) if self.step is not None else None

    @property
    def stepping(self) -> p.Stmt:
        """The same statement for a rewrite that needs one. Raises Unfixable where there is none."""
        if self.step_statement is None:
            raise Unfixable
        return self.step_statement

    @cached_property
    def backward_spans(self) -> list[Span]:
        """The window's backward calls, each once."""
        if self.step is None:
            return []
        entries = [*self.step.applied, *(e for e, _ in self.step.lost)]
        return list(dict.fromkeys(e.span for e in sorted(entries, key=lambda e: e.seq)))

    @cached_property
    def loop(self) -> p.For | p.While | None:
        """The loop over the window's micro-batches."""
        if self.step is None or not self.step.window:
            return None
        span = self.view.loop_of(self.step.window[-1])
        return next((n for n in self.outline.nodes(span) if isinstance(n, (p.For, p.While))), None) if span else None

    def lift(self, node: p.Node, body: p.Body) -> p.Stmt | None:
        """The statement of `body` that holds a node or calls, at most four calls deep, the function that does."""
        direct = self.outline.in_body(node, body)
        if direct is not None:
            return direct
        names: set[str] = set()
        function = self.outline.function(node)
        work = [function.name] if function is not None else []
        for _ in range(4):
            names.update(work)
            work = [
                f.name
                for name in work
                for n in self.outline.everything()
                if isinstance(n, p.Call) and terminal(n.func) == name and (f := self.outline.function(n)) is not None
            ]
        for stmt in body:
            if isinstance(stmt, (p.FunctionDef, p.ClassDef)):
                continue
            if any(isinstance(n, p.Call) and terminal(n.func) in names for n in self.outline.walk(stmt)):
                return stmt
        return None

    def conditions(self, stmt: p.Stmt, target: p.Stmt) -> list[str]:
        """The tests under which a statement runs and a target does not; those that count micro-batches are left out.

        Raises Unfixable where a test spans rows or does not mean the same at the target.
        """
        around = {id(n) for n in self.outline.above(target)}
        known = {p.text(n.test) for n in self.outline.above(target) if isinstance(n, p.If)}
        out: list[str] = []
        inner: p.Node = stmt
        for node in self.outline.above(stmt):
            if id(node) in around:
                break
            if isinstance(node, p.If) and not self._counts(node.test):
                text = self.text(node.test)
                if "\n" in text or not self.visible(node.test, target):
                    raise Unfixable
                plain = isinstance(node.test, ATOMS)
                negative = any(inner is b for b in node.orelse)
                if negative or p.text(node.test) not in known:
                    out.append(f"not {text}" if negative and plain else f"not ({text})" if negative else text)
            inner = node
        return out[::-1]

    def _counts(self, test: p.Expr) -> bool:
        """Whether a test counts micro-batches: by a remainder, by N, by what the guard asks or the loop counts."""
        told = [*self.guard_tests, *([self.number] if self.number is not None else [])]
        loop = self.loop
        if (
            isinstance(loop, p.For)
            and isinstance(loop.iter, p.Call)
            and terminal(loop.iter.func) in {"range", "trange"}
        ):
            told.append(loop.target)
        counts = {p.text(n) for t in told for n in self.outline.walk(t) if isinstance(n, (p.Name, p.Attr))}
        return any(
            (isinstance(n, p.BinOp) and n.op == "%") or (isinstance(n, (p.Name, p.Attr)) and p.text(n) in counts)
            for n in self.outline.walk(test)
        )

    # --- N ---------------------------------------------------------------------------------

    @cached_property
    def guard(self) -> Guard | None:
        """The condition with N in it that lets the step run."""
        if self.step is None:
            return None
        return next((g for g in reversed(self.step.guards) if g.moduli), None)

    @cached_property
    def guard_tests(self) -> list[p.Expr]:
        """Expressions that decide on the step, as written: the test, then what a flag in it was set to."""
        span = self.guard.span if self.guard is not None else None
        if span is None and self.diagnostic.code.startswith("GA4"):
            span = self.span
        return list(self.tests_at(span)) if span is not None else []

    def tests_at(self, span: Span) -> Iterator[p.Expr]:
        """The conditions at a guard's place."""
        node = next((n for n in self.outline.nodes(span) if isinstance(n, (p.If, p.While, p.IfExp))), None)
        if node is not None:
            yield from self.expanded(node.test)
            return
        stmt = self.outline.statement(span)
        if isinstance(stmt, (p.If, p.While)):
            yield from self.expanded(stmt.test)
        elif stmt is not None:
            for item in self.outline.walk(stmt):
                if isinstance(item, p.Call):
                    for arg in item.args:
                        tests = list(self.expanded(arg.value))
                        if any(moduli(t) for t in tests):
                            yield from tests

    def expanded(self, test: p.Expr) -> Iterator[p.Expr]:
        """A test and the values of the flags in it."""
        yield test
        for node in self.outline.walk(test):
            if isinstance(node, (p.Name, p.Attr)):
                value = self.flag_value(node)
                if value is not None:
                    yield value.value
                elif isinstance(node, p.Name):
                    yield from self.passed(node)

    def passed(self, name: p.Name) -> Iterator[p.Expr]:
        """The conditions that callers in this file pass for a parameter."""
        function = self.outline.function(name)
        places = [q.name for q in function.params] if function is not None else []
        if function is None or name.id not in places:
            return
        index = places.index(name.id) - (self.outline.owner_class(function) is not None)
        for node in self.outline.everything():
            if isinstance(node, p.Call) and terminal(node.func) == function.name:
                for k, arg in enumerate(node.args):
                    if arg.keyword == name.id or (not arg.keyword and not arg.star and k == index):
                        flag = self.flag_value(arg.value) if isinstance(arg.value, p.Name) else None
                        value = flag.value if flag is not None else arg.value
                        if moduli(value):
                            yield value

    def flag_value(self, flag: p.Expr) -> p.Assign | None:
        """The last assignment above that gives a flag its condition."""
        wanted = p.text(flag)
        function = self.outline.function(flag)
        best: p.Assign | None = None
        for stmt in self.outline.seats:
            if isinstance(stmt, p.Assign) and p.text(stmt.targets[0]) == wanted and isinstance(stmt.value, CONDITION):
                here = self.outline.function(stmt) is function or isinstance(flag, p.Attr)
                if here and moduli(stmt.value) and (best is None or best.span.row < stmt.span.row <= flag.span.row):
                    best = stmt
        return best

    @cached_property
    def number(self) -> p.Expr | None:
        """N as an expression of the text: what the guard divides by, or the inner loop's length."""
        wanted = {label.lstrip("≥") for label, _ in self.guard.moduli} if self.guard is not None else set()
        names = {w.replace("'", "").replace("]", "").split(".")[-1].split("[")[-1] for w in wanted}
        found = [n for t in self.guard_tests for n in moduli(t)]
        for expr in found:
            if p.text(expr) in wanted or terminal(expr) in names:
                return expr
        if found:
            return found[0]
        if self.view.run.facts.get(
            "driven"
        ):  # the guard is the framework's: N is the setting it is told, where spelled
            here = self.outline.function(self.place)
            said = [n for n in self.outline.everything() if isinstance(n, p.Attr) and p.text(n) in wanted]
            return next((n for n in said if self.outline.function(n) is here), None)
        loop = self.loop
        around = list(self.outline.above(self.step_statement)) if self.step_statement is not None else []
        if loop in around:
            # The loop runs over many windows: N is in what lets the step run, even where backward stands under it too.
            tests = [n.test for n in around[: around.index(loop)] if isinstance(n, p.If)]
            return next((m for test in tests for m in moduli(test)), self.accumulate_number())
        if isinstance(loop, p.For) and isinstance(loop.iter, p.Call):
            for node in self.outline.walk(loop.iter):
                if isinstance(node, p.Call) and terminal(node.func) in {"range", "trange", "islice"} and node.args:
                    if len(node.args) == 3 and terminal(node.func) != "islice":
                        return None  # the last is the size of a part: see `quotient`
                    return node.args[-1].value
        return self.accumulate_number()

    def accumulate_number(self) -> p.Expr | None:
        """N as the Accelerator was told."""
        for node in self.outline.everything():
            if isinstance(node, p.Call) and terminal(node.func) == "Accelerator":
                for arg in node.args:
                    if arg.keyword == "gradient_accumulation_steps":
                        return arg.value
        return None

    def divisor(self, at: p.Node) -> str | None:
        """N as text that can stand behind a division sign at `at`; None where N is not visible."""
        number = self.number
        if number is None and (parts := quotient(self.loop)) is not None:
            total, part = parts
            seen = self.visible(total, at) and self.visible(part, at)
            return f"({self.text(total)} // {self.text(part)})" if seen else None
        if number is None or not self.visible(number, at):
            return None
        text = self.text(number)
        step = self.step_statement
        around = [n.test for n in self.outline.above(step) if isinstance(n, p.If)] if step is not None else []
        if any(_may_be_nothing(t, p.text(number)) for t in (*self.guard_tests, *around)):
            return f"({text} or 1)"
        return text if isinstance(number, ATOMS) else f"({text})"

    # --- names -----------------------------------------------------------------------------

    def visible(self, expr: p.Expr, at: p.Node) -> bool:
        """Whether every name of an expression means the same thing at another place."""
        home, there = self.outline.function(expr), self.outline.function(at)
        if home is there:
            return True
        for node in self.outline.walk(expr):
            if isinstance(node, p.Name) and not self._same(node.id, home, there):
                return False
        return True

    def _same(self, name: str, home: p.FunctionDef | None, there: p.FunctionDef | None) -> bool:
        if name in {"self", "cls"}:
            one, other = self.outline.owner_class(home), self.outline.owner_class(there)
            return one is not None and one is other
        chain: list[p.FunctionDef | None] = [there]
        while chain[-1] is not None:
            chain.append(self.outline.function(chain[-1]))
        if home in chain:
            inner = chain[: chain.index(home)]
            return not any(f is not None and name in self.locals(f) for f in inner)
        return not any(f is not None and name in self.locals(f) for f in (*chain, home))

    def locals(self, function: p.FunctionDef) -> set[str]:
        """Names that a function binds itself."""
        out = {q.name for q in function.params}
        for stmt in function.body:
            for node in self.outline.walk(stmt):
                match node:
                    case p.Assign(targets=targets):
                        out |= {n.id for t in targets for n in self.outline.walk(t) if isinstance(n, p.Name)}
                    case p.AnnAssign(target=p.Name(id=name)) | p.NamedExpr(target=p.Name(id=name)):
                        out.add(name)
                    case p.For(target=target) | p.WithItem(target=target) if target is not None:
                        out |= {n.id for n in self.outline.walk(target) if isinstance(n, p.Name)}
        return out

    def known(self, name: str, at: p.Node) -> bool:
        """Whether a name is bound in the function of `at`, around it, or in the module."""
        function = self.outline.function(at)
        while function is not None:
            if name in self.locals(function):
                return True
            function = self.outline.function(function)
        for stmt, seat in self.outline.seats.items():
            match stmt:
                case p.Import(names=names) | p.ImportFrom(names=names):
                    if any((alias or original.partition(".")[0]) == name for original, alias in names):
                        return True
                case p.FunctionDef(name=own) | p.ClassDef(name=own) if seat.holder is None and own == name:
                    return True
                case p.Assign(targets=targets) if self.outline.function(stmt) is None:
                    if any(isinstance(n, p.Name) and n.id == name for t in targets for n in self.outline.walk(t)):
                        return True
        return False


def moduli(test: p.Expr) -> list[p.Expr]:
    """The expressions in a condition that can be N, the likeliest first."""
    found: list[p.Expr] = []
    compared: list[p.Expr] = []

    def visit(node: p.Node) -> None:
        if isinstance(node, p.BinOp) and node.op == "%":
            found.append(node.right)
        if isinstance(node, p.Compare):
            sides = (node.left, *node.comparators)
            if not any(isinstance(n, p.BinOp) and n.op == "%" for s in sides for n in walk(s)):
                compared.extend(s for s in reversed(sides) if isinstance(s, (p.Name, p.Attr, p.Subscript, p.Const)))
        for child in node.children():
            visit(child)

    visit(test)
    return found or [c for c in compared if not isinstance(c, p.Const) or (isinstance(c.value, int) and c.value > 1)]


def _may_be_nothing(test: p.Expr, number: str) -> bool:
    """Whether a guard allows N to be None or 0 (`not N or i % N == 0`)."""
    for node in walk(test):
        if isinstance(node, p.Unary) and node.op == "not" and p.text(node.operand) == number:
            return True
        if isinstance(node, p.Compare) and p.text(node.left) == number and node.ops == ("is",):
            return True
    return False
