"""Python's plain functions: numbers, questions of types and attributes, and calls that make or start other calls."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from galint import program as p
from galint.run.elements import length_of
from galint.run.frame import UserRaise
from galint.run.nodes import global_name
from galint.run.site import Site
from galint.run.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Class,
    Context,
    External,
    Function,
    Instance,
    Lit,
    Mapping,
    Module,
    Opaque,
    Optimizer,
    Partial,
    Seq,
    Tensor,
    Value,
)
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


_TYPES = frozenset({"int", "float", "str", "bool", "bytes", "list", "tuple", "dict", "set"})


def _len(m: Calls, s: Site) -> Value | None:
    return length_of(m, s.args[0]) if s.args else None


def _number(kind: str) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        if not s.args:
            return Lit(0)
        value = m.resolve(s.args[0])
        if isinstance(value, Lit):
            if value.is_number:
                number = value.value
                if kind == "int":
                    number = int(number)
                elif kind == "round":
                    number = round(number) if len(s.args) == 1 else number
                elif kind == "abs":
                    number = abs(number)
                elif kind == "float":
                    number = Fraction(number)
                elif kind == "ceil":
                    number = math.ceil(number)
                elif kind == "floor":
                    number = math.floor(number)
                return Lit(number, value.keys, value.moduli, value.born, value.text)
            if isinstance(value.value, str):
                try:
                    return Lit(int(value.value) if kind == "int" else Fraction(value.value), value.keys)
                except ValueError:
                    return None
        if isinstance(value, Tensor):
            return Opaque(f"{kind}({value.path})", data=True, born=value.born)
        if isinstance(value, Opaque):
            return value
        return None

    return meaning


def _bool(m: Calls, s: Site) -> Value | None:
    if not s.args:
        return FALSE
    truth = m.truth(s.args[0])
    if truth is None:
        return s.args[0]
    value = s.args[0]
    return Lit(truth, value.keys, value.moduli) if isinstance(value, Lit) else Lit(truth)


def _extreme(kind: str) -> Meaning:
    """`max(1, N)` and `min(N, x)` keep the identity of an unknown N."""

    def meaning(m: Calls, s: Site) -> Value | None:
        values = [m.resolve(a) for a in s.args]
        if len(values) == 1 and isinstance(values[0], Seq):
            values = [m.resolve(v) for v in values[0].elts]
        numbers = [v for v in values if isinstance(v, Lit) and v.is_number]
        unknown = [v for v in values if not (isinstance(v, Lit) and v.is_number)]
        if values and not unknown:
            pick = (max if kind == "max" else min)(numbers, key=lambda v: v.value)
            keys = frozenset().union(*(v.keys for v in numbers))
            moduli = tuple(q for v in numbers for q in v.moduli)
            return Lit(pick.value, keys, moduli[-4:], pick.born, pick.text)
        plain = [v for v in unknown if isinstance(v, Opaque) and not v.data]
        if len(unknown) == 1 and len(plain) == 1 and kind == "max" and all(v.value in {0, 1} for v in numbers):
            return plain[0]
        return None

    return meaning


def _sum(m: Calls, s: Site) -> Value | None:
    """The sum of known elements; an empty list stays unknown, for unknown code may have filled it."""
    value = s.args[0] if s.args else None
    if isinstance(value, Seq) and value.path and len(value.elts) == 1 and not isinstance(value.elts[0], Tensor):
        one = value.elts[0]  # of an unknown number
        return Opaque(s.text, data=m.is_data(one), born=m.born_of(one), modules=m.modules_in(one))
    if isinstance(value, Seq) and value.elts:
        start = s.arg(1, "start")
        total, *rest = value.elts if start is None else [start, *value.elts]
        for item in rest:
            total = m.binary("+", total, item, s.node)
        return total
    return value if isinstance(value, Tensor) else None


def _all_any(stop: bool) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        value = s.args[0] if s.args else None
        if not isinstance(value, Seq):
            return None
        truths = [m.truth(v) for v in value.elts]
        if stop in truths:
            return Lit(stop)
        if None in truths:
            return Opaque(s.text, data=any(m.is_data(v) for v in value.elts))
        return Lit(not stop)

    return meaning


def _isinstance(m: Calls, s: Site) -> Value | None:
    if len(s.args) < 2:
        return None
    value, kind = s.args
    names = _alternatives(kind)
    labels = {k.name.split(".")[-1] for k in names if isinstance(k, External)}
    classes = [k for k in names if isinstance(k, Class)]
    if isinstance(value, Instance) and classes:
        return TRUE if any(_inherits(value.cls, c) for c in classes) else Opaque(s.text)
    if isinstance(value, Module) and labels & {
        "DistributedDataParallel",
        "DDP",
        "DataParallel",
        "FullyShardedDataParallel",
    }:
        if value.wrap and "__guessed__" not in value.items:
            wrapped = {"ddp": {"DistributedDataParallel", "DDP"}, "dp": {"DataParallel"}}.get(
                value.wrap, {"FullyShardedDataParallel"}
            )
            return TRUE if labels & wrapped else FALSE
        return Opaque(s.text)
    named = len(labels) == len(names)
    if isinstance(value, (Seq, Mapping)):
        if value_kind(value) in labels:
            return TRUE
        return FALSE if named and labels <= _TYPES else Opaque(s.text)
    if isinstance(value, Lit) and value.value is not None and named and labels <= _TYPES:
        mine = {"float"} if isinstance(value.value, Fraction) else {t.__name__ for t in type(value.value).__mro__}
        return TRUE if mine & labels else FALSE
    if isinstance(value, Tensor) and "Tensor" in labels:
        return TRUE
    if isinstance(value, Context) and labels & {"AbstractContextManager", "ContextManager"}:
        return TRUE
    return Opaque(s.text, data=False)


def _alternatives(kind: Value) -> list[Value]:
    """The classes of `isinstance(x, (A, B))` and `isinstance(x, A | B)`."""
    if isinstance(kind, Seq):
        return [k for inner in kind.elts for k in _alternatives(inner)]
    return [kind]


def value_kind(value: Value) -> str:
    """The Python type name of a container value."""
    return value.kind if isinstance(value, Seq) else "dict"


def _inherits(cls: Class, wanted: Class) -> bool:
    return cls is wanted or any(isinstance(b, Class) and _inherits(b, wanted) for b in cls.bases)


def _getattr(m: Calls, s: Site) -> Value | None:
    if len(s.args) < 2 or not isinstance(s.args[1], Lit) or not isinstance(s.args[1].value, str):
        return None
    name = s.args[1].value
    value = s.args[0]
    if global_name(s.node):
        return s.frame.globals.vars.get(name)
    if isinstance(value, External):
        return External(f"{value.name}.{name}")
    if isinstance(value, (Opaque, Class)):
        got = m.get_attr(value, name, s.node)
        if (
            len(s.args) > 2
            and isinstance(s.args[2], Lit)
            and isinstance(got, Opaque)
            and type(got) is Opaque
            and s.args[2].is_number
        ):
            default = s.args[2]
            if (
                got.path not in m.result.known
                and not isinstance(default.value, bool)
                and not got.kind
                and not got.attrs
            ):
                return m.soft(Lit(default.value, frozenset({got.path}), text=got.path))
        return got
    return None


def _setattr(m: Calls, s: Site) -> Value | None:
    if len(s.args) == 3 and isinstance(s.args[1], Lit) and isinstance(s.args[0], Opaque):
        s.args[0].attrs[str(s.args[1].value)] = s.args[2]
        return NONE
    return None


def _hasattr(m: Calls, s: Site) -> Value | None:
    if len(s.args) == 2 and isinstance(s.args[1], Lit):
        value, name = s.args[0], str(s.args[1].value)
        if isinstance(value, Instance) and (name in value.attrs or m.class_member(value.cls, name) is not None):
            return TRUE
        if isinstance(value, Module) and name == "module":
            return TRUE if value.wrap else Opaque(s.text)
        if isinstance(value, Module) and name == "no_sync":
            return TRUE if value.wrap in {"ddp", "fsdp"} else Opaque(s.text)
        if isinstance(value, Optimizer) and name in {"zero_grad", "step", "param_groups"}:
            return TRUE
    return Opaque(s.text)


def _callable(m: Calls, s: Site) -> Value | None:
    value = s.args[0] if s.args else NONE
    if isinstance(value, Bound) and value.name == "no_sync" and isinstance(value.receiver, Module):
        return TRUE if value.receiver.wrap in {"ddp", "fsdp"} else Opaque(s.text)
    if isinstance(value, Lit):
        return FALSE
    return TRUE if isinstance(value, (Function, Bound, Class, Partial, Module)) else Opaque(s.text)


def _print(m: Calls, s: Site) -> Value | None:
    return NONE


def _partial(m: Calls, s: Site) -> Value | None:
    return Partial(s.args[0], s.args[1:], dict(s.kwargs)) if s.args else None


def _null(m: Calls, s: Site) -> Value | None:
    return Context("null", None, s.span, {"as": s.args[0]} if s.args else {})


def _exit(m: Calls, s: Site) -> Value | None:
    loop = m.loops[-1].node if m.loops else None
    if isinstance(loop, (p.For, p.While)) and any(isinstance(i, p.ExprStmt) and i.value is s.node for i in loop.body):
        return NONE  # left from debugging: nothing goes round the loop until it is taken out again
    raise UserRaise("SystemExit")


def _spawn(m: Calls, s: Site) -> Value | None:
    """`mp.spawn(worker, args=(…), nprocs=n)`: one worker's run, as rank 0."""
    worker = s.arg(0, "fn")
    if not isinstance(worker, Function):
        return None
    given = s.arg(1, "args")
    rest = list(given.elts) if isinstance(given, Seq) else []
    return m.call_value(worker, [Lit(0), *rest], {}, s.node, s.frame)


def _distance(m: Calls, s: Site) -> Value | None:
    """`divmod(a, b)`."""
    if len(s.args) == 2:
        nodes = [a.value for a in s.node.args]
        return Seq([m.binary(op, s.args[0], s.args[1], s.node, nodes[1]) for op in ("//", "%")], "tuple")
    return None


FUNCTIONS: dict[str, Meaning] = {
    "builtins.len": _len,
    "builtins.int": _number("int"),
    "builtins.float": _number("float"),
    "builtins.abs": _number("abs"),
    "builtins.round": _number("round"),
    "builtins.bool": _bool,
    "builtins.max": _extreme("max"),
    "builtins.min": _extreme("min"),
    "builtins.sum": _sum,
    "builtins.all": _all_any(False),
    "builtins.any": _all_any(True),
    "builtins.isinstance": _isinstance,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.hasattr": _hasattr,
    "builtins.callable": _callable,
    "builtins.print": _print,
    "builtins.divmod": _distance,
    "builtins.exit": _exit,
    "builtins.quit": _exit,
    "sys.exit": _exit,
    "os._exit": _exit,
    "math.ceil": _number("ceil"),
    "math.floor": _number("floor"),
    "torch.multiprocessing.spawn": _spawn,
    "torch.multiprocessing.start_processes": _spawn,
    "torch_xla.distributed.xla_multiprocessing.spawn": _spawn,
    "functools.partial": _partial,
    "contextlib.nullcontext": _null,
    "contextlib.suppress": _null,
    "builtins.Exception": lambda m, s: Opaque("Exception"),
}
