"""The loop program: a small typed tree of what the abstract run needs, each node with its span.

It is Python's own grammar with the formatting taken away; `galint.syntax` lowers ast or libcst to it and
nothing above this module knows either. Nodes compare by identity. `text(expr)` gives the canonical
spelling of an expression, which is what configuration keys and messages use.
"""

from galint.program.expressions import (
    Arg,
    Attr,
    Await,
    BinOp,
    BoolOp,
    Call,
    Comp,
    Compare,
    CompFor,
    Const,
    Dict,
    Expr,
    FString,
    IfExp,
    Lambda,
    Name,
    NamedExpr,
    Node,
    NumberOrText,
    Param,
    Sequence,
    Slice,
    Starred,
    Subscript,
    Unary,
    Yield,
    YieldFrom,
    condition,
)
from galint.program.patterns import (
    MatchAs,
    MatchClass,
    MatchMapping,
    MatchOr,
    MatchSequence,
    MatchStar,
    MatchValue,
    Pattern,
)
from galint.program.spelling import text
from galint.program.statements import (
    AnnAssign,
    Assert,
    Assign,
    AugAssign,
    Body,
    Break,
    Case,
    ClassDef,
    Continue,
    Delete,
    ExprStmt,
    For,
    FunctionDef,
    Handler,
    If,
    Import,
    ImportFrom,
    Match,
    Pass,
    Program,
    Raise,
    Return,
    Scope,
    Stmt,
    Try,
    While,
    With,
    WithItem,
    alone,
)

__all__ = [
    "AnnAssign", "Arg", "Assert", "Assign", "Attr", "AugAssign", "Await", "BinOp", "Body", "BoolOp", "Break", "Call",
    "Case", "ClassDef", "Comp", "CompFor", "Compare", "Const", "Continue", "Delete", "Dict", "Expr", "ExprStmt",
    "FString", "For", "FunctionDef", "Handler", "If", "IfExp", "Import", "ImportFrom", "Lambda", "Match", "MatchAs",
    "MatchClass", "MatchMapping", "MatchOr", "MatchSequence", "MatchStar", "MatchValue", "Name", "NamedExpr", "Node",
    "NumberOrText", "Param", "Pass", "Pattern", "Program", "Raise", "Return", "Scope", "Sequence", "Slice", "Starred",
    "Stmt", "Subscript", "Try", "Unary", "While", "With", "WithItem", "Yield", "YieldFrom", "alone",
    "condition", "text",
]  # fmt: skip
