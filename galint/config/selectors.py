"""Rule selectors: codes, prefixes, names and ALL, and how select and ignore layers combine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from galint.errors import UnknownRule
from galint.registry import RULES
from galint.rule import Rule

ALL_CODES: frozenset[str] = frozenset(rule.code for rule in RULES)
_BY_NAME = {rule.name: rule.code for rule in RULES}
SYNTAX_ERROR = "GA000"


@lru_cache(maxsize=1)
def known_selectors() -> tuple[str, ...]:
    """Everything that a selector may say: ALL, each prefix of a code from `GA` on, codes, names."""
    prefixes = {code[:length] for code in ALL_CODES for length in range(2, len(code) + 1)}
    return ("ALL", *sorted(prefixes), *_BY_NAME)


def expand(selector: str) -> frozenset[str]:
    """The codes that one selector means. Raises UnknownRule with the nearest valid one."""
    if selector == "ALL":
        return ALL_CODES
    if selector in _BY_NAME:
        return frozenset({_BY_NAME[selector]})
    if selector.startswith("GA"):
        codes = frozenset(code for code in ALL_CODES if code.startswith(selector))
        if codes:
            return codes
    raise UnknownRule(selector, known_selectors())


def find_rule(text: str) -> Rule:
    """The one rule with this code or name. Raises UnknownRule with the nearest valid one."""
    for rule in RULES:
        if text in (rule.code, rule.name):
            return rule
    raise UnknownRule(text, [*(rule.code for rule in RULES), *_BY_NAME])


@dataclass(frozen=True, slots=True)
class Selection:
    """One layer's wish: a configuration file, a file it extends, or the command line."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def resolve(layers: Iterable[Selection]) -> frozenset[str]:
    """The codes that run. A later layer's `select` starts anew; within a layer the more specific
    selector wins, and at the same length `ignore` wins over `select`.

    A syntax error is reported unless GA000 (or its name) is ignored itself.
    """
    codes = set(ALL_CODES)
    mute = False
    for layer in layers:
        if layer.select is not None:
            codes.clear()
            mute = False
        steps = [(_specificity(s), 0, s) for s in (*(layer.select or ()), *layer.extend_select)]
        steps += [(_specificity(s), 1, s) for s in layer.ignore]
        for _, ignored, selector in sorted(steps):
            if ignored:
                codes -= expand(selector)
                mute |= expand(selector) == {SYNTAX_ERROR}
            else:
                codes |= expand(selector)
    return frozenset(codes if mute else codes | {SYNTAX_ERROR})


def _specificity(selector: str) -> int:
    if selector == "ALL":
        return 0
    return 5 if selector in _BY_NAME else len(selector)
