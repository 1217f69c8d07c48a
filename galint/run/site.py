"""One call as the semantics see it: receiver, arguments, place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from galint import program as p
from galint.run.frame import Frame
from galint.run.values import Function, Lit, Value
from galint.source import Span


@dataclass(slots=True)
class Site:
    """An evaluated call. `name` is the dotted name of a function or the method's name."""

    name: str
    args: list[Value]
    kwargs: dict[str, Value]
    node: p.Call
    frame: Frame
    receiver: Value | None = None
    star: bool = False
    """`*args` or `**kwargs` of unknown content were passed."""

    @property
    def span(self) -> Span:
        """Where the call stands."""
        return self.node.span

    @property
    def text(self) -> str:
        """The call's spelling."""
        return p.text(self.node)

    def arg(self, position: int, keyword: str = "") -> Value | None:
        """An argument by position or by keyword."""
        if keyword and keyword in self.kwargs:
            return self.kwargs[keyword]
        return self.args[position] if position < len(self.args) else None

    def flag(self, position: int, keyword: str) -> bool | None:
        """A literal true or false argument; None when absent or unknown."""
        value = self.arg(position, keyword)
        return bool(value.value) if isinstance(value, Lit) else None

    def all_args(self) -> list[Value]:
        """Positional and keyword values."""
        return [*self.args, *self.kwargs.values()]


def as_call(node: Any, func: Function | None) -> p.Call:
    """The call that runs a function, made up where something else (a decorator, an iteration) runs it."""
    if isinstance(node, p.Call):
        return node
    return p.Call(node.span, p.Name(node.span, func.name if func else "call"), ())
