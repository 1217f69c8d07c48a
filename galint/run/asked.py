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
