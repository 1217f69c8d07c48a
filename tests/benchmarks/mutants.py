"""Breaks a module in many small ways and counts how many breakages its tests and the fixtures' marks notice.

usage: python tests/benchmarks/mutants.py [galint/ledger.py galint/run/machine.py ...] [--judge tests,marks]
           [--seconds 480] [--seed 0] [--show]

Each mutant is one changed comparison, operator, constant, condition or `return`. It lives in a forked process that
first runs the tests of its module (`TESTS`), then lints fixtures, until a test fails or a mark is not met, an exception
or a timeout (noticed), or all agree (survived). The unbroken module is judged first and has to survive.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import signal
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip

TESTS: dict[str, list[str]] = {
    "galint/ledger.py": ["test_ledger.py"],
    "galint/run/machine.py": ["test_machine.py"],
    "galint/run/project.py": ["test_project.py"],
    "galint/semantics/accelerate.py": ["test_semantics.py"],
    "galint/semantics/contexts.py": ["test_semantics.py"],
    "galint/semantics/deepspeed.py": ["test_semantics.py"],
    "galint/semantics/fabric.py": ["test_semantics.py"],
    "galint/semantics/helpers.py": ["test_semantics.py"],
}
"""What tests a module first of all; every module of the run is tested by `GENERAL` too."""
GENERAL = ["test_paper.py", "test_runs.py"]


def mutate(node: ast.AST) -> str:
    """Change a node in place and say how; "" where nothing fits."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARE:
            node.ops = [COMPARE[type(op)]()]
            return f"{type(op).__name__} → {type(node.ops[0]).__name__}"
        case ast.BinOp(op=op) if type(op) in BINARY and not isinstance(
            node.left, ast.Name | ast.Constant | ast.Subscript | ast.Attribute
        ):
            node.op = BINARY[type(op)]()
            return f"{type(op).__name__} → {type(node.op).__name__}"
        case ast.AugAssign(op=op) if type(op) in BINARY:
            node.op = BINARY[type(op)]()
            return f"{type(op).__name__}= → {type(node.op).__name__}="
        case ast.BoolOp(op=op):
            node.op = ast.And() if isinstance(op, ast.Or) else ast.Or()
            return "and ↔ or"
        case ast.Constant(value=bool(value)):
            node.value = not value
            return f"{value} → {not value}"
        case ast.Constant(value=int(value)):
            node.value = value + 1
            return f"{value} → {value + 1}"
        case ast.If(test=test):
            node.test = ast.UnaryOp(ast.Not(), test)
            return "if not"
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            node.value = ast.Constant(None)
            return "return None"
        case ast.Continue():
            return ""
    return ""


def places(tree: ast.Module) -> Iterator[int]:
    """The numbers of the nodes that can be mutated."""
    for number, node in enumerate(ast.walk(tree)):
        if mutate(copy.deepcopy(node)):
            yield number


def load(path: Path, number: int | None) -> str:
    """Put the module into `sys.modules`, mutated at one node; returns what was changed."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    tree = ast.parse(path.read_text("utf-8"))
    what = ""
    if number is not None:
        node = next(n for k, n in enumerate(ast.walk(tree)) if k == number)
        what = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)} {mutate(node)}"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), module.__dict__)
    parent, _, last = name.rpartition(".")
    __import__(parent)
    setattr(sys.modules[parent], last, module)
    return what


def tested(path: Path) -> bool:
    """True when every test of a module passes."""
    import pytest

    names = [*TESTS.get(str(path.relative_to(ROOT)), []), *GENERAL]
    options = ["-x", "-q", "-c", os.devnull, "--rootdir", str(ROOT), "-p", "no:cacheprovider", "--no-header"]
    return pytest.main([*options, *(str(ROOT / "tests" / name) for name in names)]) == 0


def marked(texts: list[tuple[str, str]]) -> bool:
    """True when every text gets exactly its marks."""
    from marks import differences, expects

    from galint.config import Config
    from galint.engine import lint
    from galint.source import Source

    for name, text in texts:
        report = lint(Source(name, text), Config())
        if report.internal_errors or differences(
            expects(text), [(d.span.row, d.code, d.message) for d in report.diagnostics]
        ):
            return False
        if report.not_understood and "not-ours" not in name:
            return False
    return True


def survives(
    path: Path, number: int | None, texts: list[tuple[str, str]], judges: list[str], limit: int
) -> tuple[bool, str]:
    """Whether a mutant goes unnoticed by all judges, and what it changed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        signal.alarm(limit)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        code = 1
        try:
            os.write(write, load(path, number).encode())
            verdicts = {"tests": lambda: tested(path), "marks": lambda: marked(texts)}
            code = 0 if all(verdicts[judge]() for judge in judges) else 1
        except BaseException:
            code = 1
        finally:
            os._exit(code)
    os.close(write)
    _, status = os.waitpid(pid, 0)
    what = os.read(read, 1000).decode()
    os.close(read)
    return status == 0, what


def main() -> None:
    """Print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=["galint/ledger.py", "galint/run/machine.py"])
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--judge", default="tests,marks")
    parser.add_argument("--limit", type=int, default=120, help="seconds for one mutant")
    args = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # galint's own plugin would import what is to be mutated
    import hypothesis  # noqa: F401  # shared by the forked processes, as are these
    import pytest  # noqa: F401

    import galint.syntax  # noqa: F401  # knows nothing of the run

    judges = args.judge.split(",")

    rng = random.Random(args.seed)
    from marks import fixtures

    texts = [(f"{path.parent.name}/{path.name}", path.read_text("utf-8")) for path in fixtures()]
    rng.shuffle(texts)
    todo = [
        (ROOT / name, number) for name in args.modules for number in places(ast.parse((ROOT / name).read_text("utf-8")))
    ]
    print(f"{len(todo)} mutants")
    for name in args.modules:
        if not survives(ROOT / name, None, texts, judges, 10 * args.limit)[0]:
            raise SystemExit(f"{name}: the unbroken module does not survive")
    rng.shuffle(todo)
    began, score, total = time.monotonic(), Counter[str](), Counter[str]()
    for path, number in todo:
        if time.monotonic() - began > args.seconds:
            break
        alive, what = survives(path, number, texts, judges, args.limit)
        total[path.name] += 1
        score[path.name] += not alive
        if alive and args.show:
            print(f"survived: {what}", flush=True)
    for name in total:
        print(f"{name}: {score[name]} of {total[name]} noticed ({100 * score[name] / total[name]:.0f}%)")


if __name__ == "__main__":
    main()
