"""Saving and evaluating every so many updates: the counter that such a condition asks, and what else it asks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from galint import program as p
from galint.run.nodes import terminal, walk

_WORK = re.compile(
    r"(^|_)(save|checkpoint|ckpt|evaluate|eval|validate|validation|valid|predict|generate|do_eval|run_eval|sample)(_|$)",
    re.I,
)
_NO_WORK = re.compile(r"^eval$|path|name|dir|log|print|join|format|step|metric|loss|eval_mode|is_|should", re.I)
_RANK = re.compile(r"rank|main_process|master|first_worker|is_main|primary|save_on|do_eval|world", re.I)


@dataclass(frozen=True, slots=True)
class Interval:
    """`if counter % every == 0 and …: save()`."""

    counter: p.Expr
    others: tuple[p.Expr, ...]
    """What else must be true, calls left out that ask which rank this is."""
    work: str
    """What is done, as the code calls it."""


def interval_of(stmt: p.If) -> Interval | None:
    """The interval that a condition asks for; None where it is none, or what it guards is neither saved nor evaluated."""
    either = stmt.test.values if isinstance(stmt.test, p.BoolOp) and stmt.test.op == "or" else (stmt.test,)
    parts = next((found for found in map(_conjuncts, either) if any(map(_counter, found))), [])
    asked = [c for part in parts if (c := _counter(part)) is not None]
    if len(asked) != 1:
        return None
    others = [part for part in parts if _counter(part) is None]
    if any(isinstance(n, p.Call) for part in others for n in walk(part) if not _RANK.search(p.text(part))):
        return None
    work = next((p.text(n.func) for n in walk(*stmt.body) if isinstance(n, p.Call) and _works(n)), "")
    if not work or isinstance(stmt.body[-1], (p.Break, p.Return, p.Continue, p.Raise)):
        return None
    named = {terminal(n) for n in walk(stmt.test) if isinstance(n, (p.Name, p.Attr))}
    given = {
        terminal(t)
        for n in walk(*stmt.body)
        if isinstance(n, (p.Assign, p.AugAssign))
        for t in (n.targets if isinstance(n, p.Assign) else (n.target,))
        if isinstance(t, (p.Name, p.Attr))
    }
    if named & given:
        return None  # what is asked changes there: the next micro-batch finds it otherwise
    return Interval(asked[0], tuple(o for o in others if not _RANK.search(p.text(o))), work)


def number_asked(test: p.Expr) -> bool:
    """`isinstance(every, int)`: an interval is a number or a word such as "epoch", and only a number is counted by."""
    return (
        isinstance(test, p.Call)
        and terminal(test.func) == "isinstance"
        and len(test.args) == 2
        and terminal(test.args[1].value) == "int"
    )


def _conjuncts(test: p.Expr) -> list[p.Expr]:
    if isinstance(test, p.BoolOp) and test.op == "and":
        return [c for part in test.values for c in _conjuncts(part)]
    return [test]


def _counter(part: p.Expr) -> p.Expr | None:
    """`counter` in `counter % every == 0`, also where it is one more than a name."""
    if isinstance(part, p.Compare) and part.ops == ("==",) and isinstance(part.comparators[0], p.Const):
        asked = part.left if part.comparators[0].value == 0 else None
    elif isinstance(part, p.Unary) and part.op == "not":
        asked = part.operand
    else:
        return None
    if not isinstance(asked, p.BinOp) or asked.op != "%":
        return None
    plain = asked.left.left if isinstance(asked.left, p.BinOp) and asked.left.op == "+" else asked.left
    return asked.left if isinstance(plain, (p.Name, p.Attr)) else None


def _works(call: p.Call) -> bool:
    name = terminal(call.func)
    return _WORK.search(name) is not None and _NO_WORK.search(name) is None
