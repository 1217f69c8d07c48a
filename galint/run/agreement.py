"""What answers about a number say of another question about it: who has more than one rank has not just one."""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMPARED = re.compile(r"(?P<what>.+) (?P<op>==|!=|<=|>=|<|>) (?P<number>-?\d+)")


def implied(key: str, answers: Iterable[tuple[str, bool]]) -> bool | None:
    """Whether `ranks == 1` holds, given answers such as `ranks > 1` is true; None where they leave it open."""
    asked = _COMPARED.fullmatch(key) if key[-1:].isdigit() else None
    if asked is None:
        return None
    told = [(other, taken) for k, taken in answers if k[-1:].isdigit() and (other := _COMPARED.fullmatch(k))]
    told = [(other, taken) for other, taken in told if other["what"] == asked["what"]]
    if not told:
        return None
    numbers = {int(m["number"]) for m in (asked, *(other for other, _ in told))}
    near = {n + step for n in numbers for step in (-1, 0, 1)}
    left = [n for n in near if all(_holds(n, other) == taken for other, taken in told)]
    verdicts = {_holds(n, asked) for n in left}
    return verdicts.pop() if len(verdicts) == 1 else None


def _holds(n: int, test: re.Match[str]) -> bool:
    number = int(test["number"])
    match test["op"]:
        case "==":
            return n == number
        case "!=":
            return n != number
        case "<":
            return n < number
        case "<=":
            return n <= number
        case ">":
            return n > number
    return n >= number
