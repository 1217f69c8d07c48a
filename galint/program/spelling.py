"""The canonical spelling of an expression, which is what configuration keys and messages use."""

from __future__ import annotations

from galint.program.expressions import (
    Arg,
    Attr,
    Await,
    BinOp,
    BoolOp,
    Call,
    Comp,
    Compare,
    Const,
    Dict,
    Expr,
    FString,
    IfExp,
    Lambda,
    Name,
    NamedExpr,
    Sequence,
    Slice,
    Starred,
    Subscript,
    Unary,
    Yield,
    YieldFrom,
)


def text(node: Expr | None) -> str:
    """The canonical spelling of `node` (single spaces, double quotes dropped to repr)."""
    if node is None:
        return ""
    if node.spelling is None:
        node.spelling = _spelled(node)
    return node.spelling


def _spelled(node: Expr) -> str:
    match node:
        case Name(id=name):
            return name
        case Const(ellipsis=True):
            return "..."
        case Const(value=value):
            return repr(value)
        case Attr(value=value, name=name):
            return f"{_atom(value)}.{name}"
        case Subscript(value=value, index=Sequence(kind="tuple", elts=elts)) if any(isinstance(e, Slice) for e in elts):
            return f"{_atom(value)}[{', '.join(map(text, elts))}]"
        case Subscript(value=value, index=index):
            return f"{_atom(value)}[{text(index)}]"
        case Slice(lower=lower, upper=upper, step=step):
            return f"{text(lower)}:{text(upper)}" + (f":{text(step)}" if step else "")
        case Call(func=func, args=args):
            return f"{_atom(func)}({', '.join(map(_arg, args))})"
        case BinOp(op=op, left=left, right=right):
            return f"{_atom(left)} {op} {_atom(right)}"
        case Unary(op="not", operand=operand):
            return f"not {_atom(operand)}"
        case Unary(op=op, operand=operand):
            return f"{op}{_atom(operand)}"
        case BoolOp(op=op, values=values):
            return f" {op} ".join(map(_atom, values))
        case Compare(left=left, ops=ops, comparators=comparators):
            rest = "".join(f" {o} {_atom(c)}" for o, c in zip(ops, comparators, strict=True))
            return _atom(left) + rest
        case IfExp(test=test, body=body, orelse=orelse):
            return f"{_atom(body)} if {_atom(test)} else {_atom(orelse)}"
        case Sequence(kind="tuple", elts=elts):
            return f"({', '.join(map(text, elts))}{',' if len(elts) == 1 else ''})"
        case Sequence(kind="list", elts=elts):
            return f"[{', '.join(map(text, elts))}]"
        case Sequence(elts=elts):
            return f"{{{', '.join(map(text, elts))}}}"
        case Dict(keys=keys, values=values):
            pairs = (f"{text(k)}: {text(v)}" if k else f"**{text(v)}" for k, v in zip(keys, values, strict=True))
            return f"{{{', '.join(pairs)}}}"
        case Comp(elt=elt, generators=generators):
            return f"({text(elt)}{''.join(f' for {text(g.target)} in {text(g.iter)}' for g in generators)})"
        case Lambda(body=body):
            return f"lambda: {text(body)}"
        case Starred(value=value):
            return f"*{_atom(value)}"
        case NamedExpr(target=target, value=value):
            return f"({target.id} := {text(value)})"
        case FString():
            return "f'...'"
        case Await(value=value):
            return f"await {_atom(value)}"
        case Yield(value=value):
            return f"(yield {text(value)})" if value is not None else "(yield)"
        case YieldFrom(value=value):
            return f"(yield from {text(value)})"
        case _:
            return "?"


def _arg(arg: Arg) -> str:
    prefix = f"{arg.keyword}=" if arg.keyword else arg.star
    return prefix + text(arg.value)


def _atom(node: Expr) -> str:
    if isinstance(node, (BinOp, BoolOp, Compare, IfExp, Lambda, Unary, Starred, Await)):
        return f"({text(node)})"
    return text(node)
