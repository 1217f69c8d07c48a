"""What the values of a comparison are called, and what they stand for."""

from __future__ import annotations

from galint.run.values import External, Lit, Opaque, Seq, Tensor, Value


def covers_all(parts: list[Value]) -> bool:
    """True for `a or not a`, which `(a and known) or not a` comes to."""
    paths = {v.path for v in parts if isinstance(v, Opaque)}
    return any(f"not {path}" in paths for path in paths)


def asks_version(value: Value) -> int:
    """1 for PyTorch's version, which programs compare with older ones; 0 for anything else."""
    name = value.name if isinstance(value, External) else value.path if isinstance(value, Opaque) else ""
    return int("torch.__version__" in name)


def spelled(value: Value) -> str:
    """A value's canonical spelling: two conditions that are spelled alike are one."""
    if isinstance(value, Lit):
        if value.text:
            return value.text
        return str(value.value) if value.is_number else repr(value.value)
    if isinstance(value, (Opaque, Tensor)):
        return f"({value.path})" if " " in value.path else value.path
    if isinstance(value, External):
        return value.name
    if isinstance(value, Seq):
        return f"[{', '.join(map(spelled, value.elts[:6]))}]"
    return "#"


def counts_samples(value: Opaque) -> bool:
    """Whether a value is made of lengths and sizes alone."""
    stack: list[Value] = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Tensor):
            return False
        if isinstance(top, Opaque):
            if top.deferred is not None:
                stack += top.deferred[1:]
            elif not (
                top.path.startswith("len(") or ".size(" in top.path or ".shape" in top.path or "numel" in top.path
            ):
                return False
    return True


def rounded(value: Opaque) -> tuple[Value, Value] | None:
    """What `total // n * n` rounds down, and to multiples of what; None for anything else."""
    if value.deferred is None or value.deferred[0] != "*":
        return None
    _, left, right = value.deferred
    for quotient, unit in ((left, right), (right, left)):
        inner = quotient.deferred if isinstance(quotient, Opaque) else None
        if inner is not None and inner[0] == "//" and _same(inner[2], unit):
            return inner[1], unit
    return None


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, Lit) and isinstance(other, Lit):
        return bool(one.value == other.value)
    return isinstance(one, Opaque) and isinstance(other, Opaque) and one.path == other.path
