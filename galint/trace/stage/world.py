"""The stage: what a slice asks for names, attributes, calls, truth and iteration.

Numbers and undecided conditions come from the abstract run of the same scenario (the job); everything that touches
gradients is real torch; everything else stays unknown. A slice can reach nothing but this object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from galint.trace.stage import actors
from galint.trace.stage.containers import PLAIN
from galint.trace.stage.entering import Entering
from galint.trace.stage.values import (
    OPERATORS,
    Class,
    External,
    Flow,
    Instance,
    Method,
    NoStage,
    Numbered,
    StopStage,
    Unknown,
)

_FLIPPED = {"is": "is not", "is not": "is", "==": "!=", "!=": "=="}
_EXCEPTIONS = {
    "StopIteration": StopIteration,
    "IndexError": IndexError,
    "KeyError": KeyError,
    "StopAsyncIteration": StopAsyncIteration,
    "AttributeError": AttributeError,
}


def spelled(value: Any) -> str:
    """An operand's spelling inside a larger one, as the abstract run composes it."""
    if isinstance(value, Unknown):
        return f"({value.path})" if " " in value.path and not value.path.endswith(")") else value.path
    return repr(value) if isinstance(value, PLAIN) else "?"


def bare(key: str) -> str:
    """A condition's spelling without parentheses and blanks, in which two printers may differ."""
    return key.replace("(", "").replace(")", "").replace(" ", "")


_EQUAL = re.compile(r"(.+)==('[^']*')")


class World(Entering):
    """One stage. `job` holds the scenario: numbers, choices, loop lengths, kinds of names."""

    def __init__(self, job: dict[str, Any], device: torch.device, rank: int = 0) -> None:
        super().__init__(job, device, rank)
        self.choices: dict[str, bool] = {bare(k): v for k, v in job["choices"].items()}
        self.forced: dict[str, bool] = {bare(k): v for k, v in job["forced"].items()}
        self.places: dict[tuple[int, int], bool] = {(r, c): v for r, c, v in job["places"]}
        self.lengths: dict[tuple[int, int], int] = {(r, c): n for r, c, n in job["lengths"]}
        self.equal = {m[1]: m[2] for k, v in self.choices.items() if v and (m := _EQUAL.fullmatch(k))}
        """What the abstract run took settings to be equal to."""
        self.visited: set[tuple[int, int]] = set()
        """Loops that have begun once."""
        self.asked = 0
        self.rounds: dict[tuple[int, int], int] = {}
        self.undecided: dict[str, bool] = {}
        """Conditions that neither the slice nor the abstract run decided, and what was taken."""
        self.guessed: dict[str, bool] = {}
        """Those of them on which a backward, a step or a clearing hangs."""

    # --- exceptions ----------------------------------------------------------------------------

    def raised(self, name: str) -> None:
        """A `raise` of the skeleton: iteration protocols need theirs, any other ends the slice."""
        kind = _EXCEPTIONS.get(name)
        if kind is not None:
            raise kind
        raise StopStage

    def exception(self, name: str) -> type[BaseException]:
        """The exception class that a handler of the skeleton catches."""
        return _EXCEPTIONS[name]

    # --- names and settings --------------------------------------------------------------------

    def setting(self, name: str, value: Any) -> Any:
        """A default or a constant, or what the scenario gives the setting instead."""
        key = name.rsplit(".", 1)[-1]
        for spelling in (name, key):
            if spelling in self.values:
                return self.values[spelling]
        if value is None or (isinstance(value, str) and not value):
            return Unknown(self, name, self.kind(name), name) if value is None and self.kind(name) else value
        if isinstance(value, int) and not isinstance(value, bool) and value == 1 and key in self.settings:
            return self.settings[key]
        return value

    def given(self, name: str, value: Any) -> Any:
        """A parameter's default: a setting, unless the abstract run made a choice about it."""
        if value is None and not self.kind(name):
            numbers = (self.number(name), self.number(f"self.{name}"), self.settings.get(name))
            return next((n for n in numbers if n is not None), None)
        plain = isinstance(value, int | float | str) and not isinstance(value, bool)
        return Unknown(self, name, self.kind(name), name) if plain and self.open(name) else self.setting(name, value)

    def open(self, path: str) -> bool:
        """Whether the abstract run made a choice about a setting: the finding may need another than the default."""
        spelling = re.compile(rf"(?<![\w.])(?:self\.)?{re.escape(path)}(?![\w.\[(])")
        return any(spelling.search(key) for key in self.job["choices"])

    def born(self, value: Any) -> Any:
        """What backward will start from becomes a real loss where it is bound, so that its forward runs there."""
        fresh = self.ticks > 0 or (
            isinstance(value, Unknown) and (value.data or value.modules)
        )  # no `loss = build_loss()`
        if isinstance(value, Unknown) and value.kind in {"", "criterion"} and fresh:
            return self.loss_of(value)
        return value

    # --- operators -----------------------------------------------------------------------------

    def operate(self, op: str, left: Any, right: Any, text: str) -> Any:
        """A binary operator: numbers and losses for real, unknown things by the abstract run's number."""
        if isinstance(left, Flow):
            return left.operate(op, right, text)
        if isinstance(right, Flow):
            return right.operate(op, left, text, True)
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            path = f"{spelled(left)} {op} {spelled(right)}"
            number = self.number(text) if self.number(path) is None else self.number(path)
            if number is not None:
                return number
            out = Unknown(
                self,
                path if len(path) < 200 else text,
                data=any(isinstance(v, Unknown) and v.data for v in (left, right)),
            )
            out.modules = [*getattr(left, "modules", []), *getattr(right, "modules", [])]
            if op in {"*", "/"}:
                if isinstance(left, Unknown) and isinstance(right, int | float):
                    out.scaling = (left, op, right, False)
                elif isinstance(right, Unknown) and isinstance(left, int | float):
                    out.scaling = (right, op, left, True)
            if out.modules and op in {"+", "-", "*", "/"}:
                a, b = (self.loss_of(v) if isinstance(v, Unknown) and v.modules else v for v in (left, right))
                return self.operate(op, a, b, text)
            return out
        if text in self.known:
            return self.known[text]  # an operand is a guess of the stage: the abstract run could not tell it
        try:
            return OPERATORS[op](left, right)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError, MemoryError):
            return Unknown(self, text)

    def augment(self, op: str, left: Any, right: Any, text: str) -> Any:
        """`left op= right`: in place for lists and gradients."""
        if isinstance(left, torch.Tensor) and isinstance(right, int | float) and op in {"*", "/"}:
            with torch.no_grad():
                return left.mul_(right) if op == "*" else left.div_(right)
        if isinstance(left, list) and op == "+":
            left.extend(self.spread(right))
            return left
        return self.operate(op, left, right, text)

    def unary(self, op: str, value: Any) -> Any:
        """`-x`, `+x`, `~x`."""
        if isinstance(value, Flow):
            return value.become(-value.loss) if op == "-" else value
        if isinstance(value, bool | int | float):
            return -value if op == "-" else +value if op == "+" else ~int(value)
        return value

    def compare(self, op: str, left: Any, right: Any, text: str) -> Any:
        """A comparison; unknown when one side is."""
        if op in {"is", "is not"} and right is None and isinstance(left, Unknown | Flow | Instance | torch.nn.Module):
            if isinstance(left, Unknown):
                known = self.chosen(text) if not left.kind else self.choices.get(bare(text))
                if known is None and not left.kind:
                    return Unknown(self, text)
                if known is not None:
                    return bool(known)
            return op == "is not"
        if op in {"is", "is not"}:
            if isinstance(left, Unknown) or isinstance(right, Unknown):
                return Unknown(self, text)
            return (left is right) == (op == "is")
        if isinstance(left, Unknown | Flow) or isinstance(right, Unknown | Flow):
            known = self.chosen(f"{spelled(left)} {op} {spelled(right)}")
            if known is not None:
                return known
            return Unknown(self, text, data=isinstance(left, Flow) or (isinstance(left, Unknown) and left.data))
        try:
            if op in {"in", "not in"}:
                return bool(left in right) == (op == "in")
            return bool(OPERATORS[op](left, right))
        except (TypeError, ValueError, RuntimeError):
            return Unknown(self, text)

    # --- truth ---------------------------------------------------------------------------------

    def truth(self, value: Any, text: str, place: tuple[int, int], default: bool | None, weighs: bool = False) -> bool:
        """Whether a test holds."""
        if isinstance(value, Unknown):
            if value.kind in {"optimizer", "module", "scaler", "scheduler"} and bare(text) not in self.choices:
                return True
            taken = self.decide(value, text, place, default)
            if weighs and text in self.undecided:
                self.guessed[text] = taken
            return taken
        if isinstance(value, Flow | Instance | torch.nn.Module | External | Class):
            return True
        if isinstance(value, torch.Tensor):
            return value.numel() == 1 and bool(value)
        if bare(text) in self.forced:
            return self.forced[bare(text)]
        return bool(value)

    def again(self, value: Any, text: str, place: tuple[int, int], role: str) -> bool:
        """Whether a `while` goes on: where that is unknown, as often as in the abstract run."""
        if not isinstance(value, Unknown) or self.chosen(text) is not None:
            return self.truth(value, text, place, True)
        most = self.lengths.get(place, self.job["length"] if role == "length" else 1)
        count = self.rounds.get(place, 0)
        self.rounds[place] = count + 1 if count < most else 0
        return count < most

    def decide(self, value: Unknown, text: str, place: tuple[int, int] | None, default: bool | None) -> bool:
        """What the abstract run decided about a condition."""
        for key in dict.fromkeys((text, value.path)):
            known = self.chosen(key)
            if known is not None:
                return self._once(key, known)
        if place is not None and place in self.places:
            known = self.places[place]
            return self._once(self.job["rare"], known) if list(place) in self.job["rare_places"] else known
        number = self.number(value.path)
        if number is not None:
            return bool(number)
        if value.fact is not None:
            return value.fact
        taken = bool(default)
        self.undecided[text] = taken
        return taken

    def _once(self, key: str, known: bool) -> bool:
        """The condition that the scenario turns over on one occasion."""
        rare, occasion = self.job["rare"], self.job["rare_at"]
        plain = key.removeprefix("not ").strip()
        if rare is None or bare(plain) != bare(rare):
            return known
        count = self.asked
        self.asked += 1
        usual: bool | None = self.job["usual"]
        if usual is not None:
            known = bool(usual) == (key == plain)
        return known is not (count == occasion)

    def chosen(self, key: str) -> bool | None:
        """The abstract run's answer to a condition spelled like this, or like its negation."""
        negated = False
        while key.startswith("not "):
            key, negated = key[4:].strip(), not negated
        known = self._answer(bare(key))
        if known is None:
            for op, flipped in _FLIPPED.items():
                other = key.replace(f" {op} ", f" {flipped} ", 1)
                if other != key and f" {op} " in key and (known := self._answer(bare(other))) is not None:
                    known = not known
                    break
        return None if known is None else known != negated

    def _answer(self, key: str) -> bool | None:
        """A choice of the abstract run, or what follows from one: who is equal to one text is to no other."""
        known = self.choices.get(key)
        if known is None and (same := _EQUAL.fullmatch(key)) and self.equal.get(same[1], same[2]) != same[2]:
            return False
        return known

    # --- iteration -----------------------------------------------------------------------------

    def iterate(self, value: Any, place: tuple[int, int], role: str, shape: Any) -> Iterator[Any]:
        """The elements of what a loop runs over."""
        source = self.real(value) if not (isinstance(value, Unknown) and value.kind in {"loader", ""}) else value
        if isinstance(source, range) and not len(source) and role != "comp":
            source = range(source.start, source.start + self.lengths.get(place, 0))
        if isinstance(source, range) and role == "epochs" and len(source) == 1:
            # One epoch is a setting: what leaks from one to the next shows from the second on.
            source = range(source.start, source.start + max(1, self.lengths.get(place, 1)))
        if isinstance(source, Unknown):
            source = self.elements(source, role, self.lengths.get(place))
        elif isinstance(source, Instance):
            source = self.of_instance(source, role, place)
        elif isinstance(source, torch.nn.Module | torch.Tensor | External | Method | Class | int | float | None):
            source = [Unknown(self, "element", data=True)] * (self.lengths.get(place, 1) if role == "length" else 1)
        if role == "length":
            self._fill(source, place)
        for element in source:
            yield self.unpack(self.batch(element), shape)

    def _fill(self, source: Any, place: tuple[int, int]) -> None:
        """Put into an empty list, over which the loop trains, as much as the abstract run found in it.

        Settings that nobody knows here decide what the list of a run's tasks or losses holds.
        """
        listed = source.source if isinstance(source, Numbered) else source
        first = place not in self.visited
        self.visited.add(place)
        if first and isinstance(listed, list) and not listed and (count := self.lengths.get(place, 0)):
            listed += [Unknown(self, f"element[{k}]") for k in range(count)]
            self.guessed["the list that the loop runs over"] = True

    def of_instance(self, value: Instance, role: str, place: tuple[int, int]) -> Any:
        """The elements of an object of the file."""
        if value.cls is not None and value.cls.find("__iter__") is not None:
            made = self.call(self.attr(value, "__iter__"), "iter")
            if hasattr(made, "__next__"):
                return made
        return self.elements(Unknown(self, value.path, "loader"), role, self.lengths.get(place))

    def elements(self, value: Unknown, role: str, count: int | None = None) -> Any:
        """The elements of an unknown thing: a real DataLoader for training data."""
        if value.source is not None:
            return self.iterable(value.source)
        length = self.number(f"len({value.path})")
        if role == "source" and value.kind == "range" and not count:
            self.undecided[f"the length of {value.path}"] = True
            return range(self.job["window"])
        if role in {"idle", "comp", "source"} and value.kind != "loader":
            return range(1) if value.kind == "range" else [Unknown(self, f"{value.path}[0]", data=value.data)]
        if role == "epochs" and value.kind == "range":
            return range(count or length or self.job["epochs"])  # a counter is a number, whatever bounds it
        if role == "epochs" and value.kind != "loader":
            return [Unknown(self, f"{value.path}[{k}]") for k in range(count or length or self.job["epochs"])]
        total = int(length or count or self.job["length"])
        if value.kind == "range":
            return range(total)
        if value.data:
            return [
                Unknown(self, f"{value.path}[{k}]", data=True)
                for k in range(int(count or length or self.job["window"]))
            ]
        if value.loader is None:
            value.loader = actors.loader(total)
        return value.loader

    def iterable(self, value: Any) -> Any:
        """Something that Python can iterate."""
        return self.elements(value, "length") if isinstance(value, Unknown) else value

    def batch(self, element: Any) -> Any:
        """What a data loader gives is unknown data."""
        if isinstance(element, list) and len(element) == 1 and isinstance(element[0], torch.Tensor):
            return Unknown(self, "batch", data=True)
        if (
            isinstance(element, torch.Tensor)
            and not isinstance(element, torch.nn.Parameter)
            and element.dtype is torch.int64
        ):
            return Unknown(self, "batch", data=True)
        if isinstance(element, tuple):
            return tuple(self.batch(e) for e in element)
        return element


__all__ = ["NoStage", "StopStage", "World"]
