"""Structural pattern matching on abstract values: True, False, or None when unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.run.frame import Frame
from galint.run.values import Lit, Mapping, Opaque, Seq, Value

if TYPE_CHECKING:
    from galint.run.evaluate import Evaluate


def matches(m: Evaluate, pattern: p.Pattern, value: Value, frame: Frame) -> bool | None:
    """Whether `value` matches; names in the pattern are bound as far as matching went."""
    value = m.resolve(value)
    if isinstance(pattern, p.MatchAs):
        verdict = True if pattern.pattern is None else matches(m, pattern.pattern, value, frame)
        if verdict is not False and pattern.name:
            frame.vars[pattern.name] = value
        return verdict
    if isinstance(pattern, p.MatchValue):
        wanted = m.eval(pattern.value, frame)
        if isinstance(wanted, Lit) and isinstance(value, Lit):
            if isinstance(pattern.value, p.Const) and isinstance(wanted.value, bool | None):
                return wanted.value is value.value
            return bool(wanted.value == value.value)
        if isinstance(wanted, Lit) and isinstance(value, Opaque) and not value.data and wanted.is_number:
            known = m.demand(value, "counter")
            return None if known is None else bool(known.value == wanted.value)
        return None
    if isinstance(pattern, p.MatchOr):
        verdicts = [matches(m, q, value, frame) for q in pattern.patterns]
        return True if True in verdicts else None if None in verdicts else False
    if isinstance(pattern, p.MatchSequence):
        return _sequence(m, pattern, value, frame)
    if isinstance(pattern, p.MatchMapping):
        return _mapping(m, pattern, value, frame)
    if isinstance(pattern, p.MatchClass):
        for inner in (*pattern.patterns, *(q for _, q in pattern.keywords)):
            matches(m, inner, Opaque("#"), frame)
        return None
    return None


def _mapping(m: Evaluate, pattern: p.MatchMapping, value: Value, frame: Frame) -> bool | None:
    if not isinstance(value, Mapping):
        return False if isinstance(value, (Seq, Lit)) else None
    out: bool | None = True
    rest = dict(value.items)
    for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
        wanted = m.eval(key, frame)
        if not isinstance(wanted, Lit) or wanted.value not in rest:
            return False
        verdict = matches(m, inner, rest.pop(wanted.value), frame)
        if verdict is False:
            return False
        out = None if verdict is None else out
    if pattern.rest:
        frame.vars[pattern.rest] = Mapping(rest)
    return out


def _sequence(m: Evaluate, pattern: p.MatchSequence, value: Value, frame: Frame) -> bool | None:
    if not isinstance(value, Seq):
        return None if isinstance(value, Opaque) else False
    star = next((i for i, q in enumerate(pattern.patterns) if isinstance(q, p.MatchStar)), None)
    if star is None and len(value.elts) != len(pattern.patterns):
        return False
    if star is not None and len(value.elts) < len(pattern.patterns) - 1:
        return False
    out: bool | None = True
    before = pattern.patterns if star is None else pattern.patterns[:star]
    for inner, item in zip(before, value.elts, strict=False):
        verdict = matches(m, inner, item, frame)
        if verdict is False:
            return False
        out = None if verdict is None else out
    if star is not None:
        after = pattern.patterns[star + 1 :]
        end = len(value.elts) - len(after)
        held = pattern.patterns[star]
        if isinstance(held, p.MatchStar) and held.name:
            frame.vars[held.name] = Seq(value.elts[star:end])
        for inner, item in zip(after, value.elts[end:], strict=False):
            verdict = matches(m, inner, item, frame)
            if verdict is False:
                return False
            out = None if verdict is None else out
    return out
