"""Lints many broken and odd variants of the fixtures and counts crashes and slow inputs.

usage: python tests/benchmarks/fuzz.py [--inputs 100000] [--seed 0] [--seconds 5] [--tree FOLDER ...]

A child process does the linting, so that a crash of the interpreter is seen too; the parent keeps the input that
caused it in ./fuzz-failures. With --tree every .py and .ipynb below the folders is linted as it is, pre-filter off.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_PATIENCE = 20
"""Seconds on the clock per second of processor time: other work may leave a run a small share of the machine."""
HEAD = b"import torch  # loss.backward() optimizer.step()\n"
ODD = [
    b"\0", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\f", b"\t", b"\xff", b"\xe2\x80\xa8", b"\\\n", b"'''", b'"""', b"# coding: latin-1\n",
    b"print 'x'\n", b"exec x\n", b"lambda", b"yield", b"await ", b"async ", b"else:", b"elif x:", b"finally:\n", b"try:\n", b"global loss\n",
    b"del optimizer\n", b"not ", b"-", b"**", b"((((", b"))))", b"[", b"]", b"{", b"}", b":", b",", b";", b"=", b":=", b"match x:\n", b"case _:",
    b"0", b"1e999", b"-1", b"10**30", b"None", b"*", b"%", b"%0", b"/0", b" for x in y", b" if x else y", b"while True:", b"break\n", b"continue\n",
    b"return\n", b"import *\n", b"from . import x\n", b"class A(A):\n", b"def f(f=f):\n", b"@f\n", b"f'{", b"}'", b"\x1a", b"loss", b"self",
]  # fmt: skip


def seeds() -> list[bytes]:
    """The fixtures and the pages' code, as bytes."""
    texts = [path.read_bytes() for path in sorted((ROOT / "fixtures").rglob("*.py"))]
    for page in sorted((ROOT / "rules").glob("*.md")):
        texts += [block.split(b"```")[0] for block in page.read_bytes().split(b"```python")[1:]]
    return texts


def prefix(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """The text up to a random byte."""
    return text[: rng.randrange(len(text) + 1)]


def fewer_lines(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Random lines left out."""
    share = rng.choice((0.02, 0.1, 0.4))
    return b"".join(line for line in text.splitlines(True) if rng.random() > share)


def shuffled(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """A few lines moved, doubled or indented differently."""
    lines = text.splitlines(True)
    for _i in range(rng.randrange(1, 6)):
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                lines[a], lines[b] = lines[b], lines[a]
            case 1:
                lines.insert(b, lines[a])
            case 2:
                lines[a] = b"    " + lines[a]
            case _:
                lines[a] = lines[a][4:] if lines[a].startswith(b"    ") else lines[a]
    return b"".join(lines)


def odd_bytes(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Odd tokens put anywhere."""
    for _i in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(ODD) + text[at + rng.choice((0, 0, 1, 5)) :]
    return text


def spliced(rng: random.Random, text: bytes, others: list[bytes]) -> bytes:
    """Lines of two texts, one after the other."""
    mine, theirs = text.splitlines(True), rng.choice(others).splitlines(True)
    return b"".join(mine[: rng.randrange(len(mine) + 1)] + theirs[rng.randrange(len(theirs)) :])


def renamed(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """One word replaced by another word of the text, everywhere or once."""
    words = sorted(set(re.findall(rb"[A-Za-z_]\w*", text))) or [b"x"]
    return text.replace(rng.choice(words), rng.choice(words + ODD), rng.choice((-1, 1)))


def noise(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Random bytes, or random odd tokens."""
    if rng.random() < 0.5:
        return rng.randbytes(rng.randrange(200))
    return b" ".join(rng.choice(ODD) for _i in range(rng.randrange(40)))


KINDS: tuple[Callable[[random.Random, bytes, list[bytes]], bytes], ...] = (
    prefix, prefix, fewer_lines, fewer_lines, shuffled, odd_bytes, odd_bytes, spliced, renamed, noise, noise,
)  # fmt: skip


def words_only(text: bytes) -> bytes:
    """`text` behind a comment that makes the pre-filter let it through."""
    return text if text.startswith((b"\xef\xbb\xbf", b"# coding")) else HEAD + text


def inputs(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Named inputs; the same seed gives the same ones."""
    rng = random.Random(seed)
    texts = [text for text in seeds() if 0 < len(text) < 6_000]
    for number in range(count):
        kind = rng.choice(KINDS)
        yield f"{kind.__name__}-{number}", words_only(kind(rng, rng.choice(texts), texts))


def tree(folders: list[Path]) -> Iterator[tuple[str, bytes]]:
    """Every script and notebook below the folders."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".py", ".ipynb"} and path.is_file():
                yield str(path), path.read_bytes()


def _serve(pipe: Connection) -> None:
    from galint import discovery, driver
    from galint.config import Config
    from galint.errors import SourceError

    driver.may_matter = lambda data: True
    del discovery
    while True:
        name, data = pipe.recv()
        began = time.process_time()
        try:
            filename = name if name.endswith((".py", ".ipynb")) else "train.py"
            errors = driver.lint_bytes(data, filename, Config(), Path(filename), None).internal_errors
        except SourceError:
            errors = []
        except Exception as error:
            errors = [f"{type(error).__name__}: {error}"]
        pipe.send((errors, time.process_time() - began))


class Child:
    """A process that lints one input after the other."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        self.spent = 0.0
        """Processor seconds of the last input, which do not depend on what else the machine does."""
        theirs.close()
        self.lint("warm.py", HEAD, 60)

    def lint(self, name: str, data: bytes, limit: float) -> str:
        """ "" or what went wrong."""
        try:
            self.pipe.send((name, data))
            if not self.pipe.poll(_PATIENCE * limit):
                self.process.kill()
                return f"still running after {_PATIENCE * limit} s"
            errors, self.spent = self.pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.join()
            return f"the process ended with {self.process.exitcode}"
        slow = f"took {self.spent:.1f} s of processor time" if self.spent > limit else ""
        return errors[0] if errors else slow


def main() -> int:
    """Print the counts; 1 when something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--tree", type=Path, nargs="*")
    args = parser.parse_args()
    source = tree(args.tree) if args.tree else inputs(args.inputs, args.seed)
    keep = Path("fuzz-failures")
    child, failed, slowest, began, count = Child(), 0, (0.0, ""), time.monotonic(), 0
    for count, (name, data) in enumerate(source, 1):
        problem = child.lint(name, data, args.seconds)
        slowest = max(slowest, (child.spent, name))
        if problem:
            failed += 1
            keep.mkdir(exist_ok=True)
            (keep / f"{args.seed}-{name.replace('/', '_')[-120:]}").write_bytes(data)
            print(f"{name}: {problem}", flush=True)
            if not child.process.is_alive() or problem.startswith("still"):
                child = Child()
                child.lint("warm.py", HEAD, 60)
        if count % 5000 == 0:
            print(f"# {count} inputs, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(
        f"{count} inputs, {failed} failed, slowest {slowest[0]:.2f} s ({slowest[1]}), {time.monotonic() - began:.0f} s"
    )
    child.process.kill()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
