"""No text, no file and no folder makes galint crash, hang or lose what it says of other files."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import hypothesmith
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marks import fixtures

from galint import driver
from galint.config import Config
from galint.diagnostic import Report
from galint.engine import explain
from galint.errors import SourceError
from galint.source import Source

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))
import fuzz

HEAD = "import torch\n"
LOOP = """
for i, batch in enumerate(loader):
    loss = model(batch)
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
"""
TEXTS = [text for text in fuzz.seeds() if 0 < len(text) < 4_000]
LIMIT = 10.0
"""Processor seconds; the goal is 5 on an idle machine, and other work on the same core makes them dearer."""


@pytest.fixture(autouse=True)
def no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything reaches the parser."""
    monkeypatch.setattr(driver, "may_matter", lambda data: True)


def lint(data: bytes, name: str = "train.py") -> Report:
    """The report of some bytes; it must come in time and without an internal error."""
    start = time.process_time()
    try:
        report = driver.lint_bytes(data, name, Config(), Path(name), None)
    except SourceError:
        report = Report()
    assert not report.internal_errors
    assert time.process_time() - start < LIMIT
    return report


# --- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", fuzz.KINDS[1:], ids=lambda kind: kind.__name__)
def test_broken_fixtures(kind: object) -> None:
    assert callable(kind)
    rng = random.Random(20)
    for _ in range(12):
        lint(fuzz.words_only(kind(rng, rng.choice(TEXTS), TEXTS)))


def test_every_prefix_of_a_script() -> None:
    text = min(TEXTS, key=len)
    for end in range(len(text)):
        lint(text[:end])


@pytest.mark.slow
@pytest.mark.parametrize("script", random.Random(7).sample(fixtures(), 12), ids=lambda p: p.name)
def test_every_prefix_by_lines(script: Path) -> None:
    lines = script.read_bytes().splitlines(True)
    for end in range(0, len(lines), 3):
        lint(b"".join(lines[:end]))


@given(hypothesmith.from_grammar())
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_programs_of_the_grammar(text: str) -> None:
    lint((HEAD + text + LOOP).encode("utf-8", "surrogatepass"))


@given(hypothesmith.from_node(auto_target=False))
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_programs_of_the_tree(text: str) -> None:
    lint((HEAD + text + LOOP).encode("utf-8", "surrogatepass"))


@given(st.binary(max_size=300))
@settings(max_examples=60)
def test_random_bytes(data: bytes) -> None:
    lint(data)
    lint(fuzz.HEAD + data)
    lint(data, "train.ipynb")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["cells", "cell_type", "source", "nbformat", "metadata", "outputs", "kernelspec", "language"]), x
)))  # fmt: skip
@settings(max_examples=60)
def test_anything_that_is_json_is_a_notebook(value: object) -> None:
    lint(json.dumps(value).encode(), "train.ipynb")


# --- depth and size ----------------------------------------------------------------------------

HUGE = {
    "attributes": "x = a" + ".b" * 20_000,
    "calls": "x = a" + "()" * 20_000,
    "items": "x = a" + "[0]" * 20_000,
    "minuses": "x = " + "-" * 50_000 + "1",
    "nots": "x = " + "not " * 50_000 + "1",
    "sums": "x = " + "1 + " * 50_000 + "1",
    "powers": "x = " + "2 ** " * 50_000 + "1",
    "ands": "x = " + "a and " * 50_000 + "b",
    "choices": "x = " + "a if b else " * 20_000 + "1",
    "lambdas": "x = " + "lambda: " * 20_000 + "1",
    "lambdas with commas": "x = " + "lambda a, b: " * 5_000 + "1",
    "brackets": "x = " + "(" * 5_000 + "1" + ")" * 5_000,
    "brackets behind texts that hold some": "x = " + "(')', " * 5_000 + "1" + ")" * 5_000,
    "elifs": "if a: pass\n" + "elif b: pass\n" * 20_000,
    "fields": "x = f'{" + "-" * 50_000 + "a}'",
    "clauses": "x = [a " + "for a in b " * 5_000 + "]",
    "a list that the loop uses": "loader = [" + "f(1), " * 100_000 + "] + g()",
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
def test_too_deep_or_too_large_is_said(text: str) -> None:
    report = lint((HEAD + text + LOOP).encode())
    assert not report.diagnostics
    assert [loop.reason for loop in report.not_understood] and report.loops == 1


LARGE = {
    "comparisons": "x = " + "a < " * 50_000 + "1",
    "patterns": "match x:\n    case " + "{1: " * 30 + "1" + "}" * 30 + ": pass",
    "alternatives": "match x:\n    case " + "1 | " * 20_000 + "1: pass",
    "strings": "x = " + "'a' " * 50_000,
    "dots": "from " + "." * 50_000 + " import a",
    "a text of a megabyte": "x = '" + "a" * 1_000_000 + "'",
    "a comment of a megabyte": "#" + "a" * 1_000_000,
    "300 attributes": "x = a" + ".b" * 300,
    "900 sums": "x = " + "1 + " * 900 + "1",
    "1,000 elifs": "if a: pass\n" + "elif b: pass\n" * 1_000,
    "1,000 elifs that step": "if a: pass\n" + "elif b:\n    raise ValueError\n" * 1_000,
    "190 brackets": "x = " + "[" * 190 + "1" + "]" * 190,
    "90 functions in functions": "".join("    " * k + f"def f{k}():\n" for k in range(90)) + "    " * 90 + "pass",
    "2,000 functions that call each other": "".join(f"def f{k}():\n    f{k + 1}()\n" for k in range(2_000)),
    "500 functions of one name": "def f():\n    f()\n" * 500,
    "form feeds": "\f\n\f  \nx = 1\n\f",
    "brackets in a text": "x = '" + "(" * 100_000 + "'",
    "a dictionary of 3,000": "x = {" + "'a': 1, " * 3_000 + "}",
    "a line": "x = [" + "1, " * 1_000_000 + "]",
    "a list that the loop uses": "loader = [" + "(1, 'a'),\n" * 40_000 + "]",
    "210,000 lines": "x = 1\n" * 210_000,
    "210,000 empty lines": "\n" * 210_000,
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_large_but_sane_files_keep_their_findings(text: str) -> None:
    assert "GA201" in {d.code for d in lint((HEAD + text + "\n" + LOOP).encode()).diagnostics}


GROWING = {
    "numbers": "n = 2\nwhile True:\n    n = n * n\n    loss = model(x) / n",
    "unknown numbers": "n = x\nwhile True:\n    n = n * n\n    loss = model(x) / n",
    "texts": "s = 'ab'\nwhile True:\n    s = s + s",
    "repeated lists": "s = [1]\nwhile True:\n    s = s * 64",
    "lists": "s = [1]\nwhile True:\n    s += s\n    s.extend(s)\n    s = s + s",
    "nested lists": "s = []\nwhile True:\n    s = [s, s]\n    f(s)",
    "losses": "while True:\n    loss = loss + loss * other",
    "formats": "s = '%99999999999d' % 1\nwhile True:\n    s = f'{s}{s}{1:99999999}'",
    "powers": "n = 10**10**10 << 10**10\nwhile True:\n    n **= n",
    "calls": "def f(n):\n    f(n - 1)\n    f(n - 2)\nwhile True:\n    f(10**9)",
    "generators": "def g():\n    yield from g()\nwhile True:\n    list(g())",
    "ranges": "while True:\n    x = [a for a in range(10**9) for b in range(10**9)]\n    y = sum(range(10**12))",
}


@pytest.mark.parametrize("text", GROWING.values(), ids=GROWING.keys())
def test_what_grows_without_end_is_cut(text: str) -> None:
    lint((HEAD + text + "\n    loss.backward()\n    opt.step()\n").encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda t: "\ufeff" + t, lambda t: t.replace("\n", "\r\n"), lambda t: t.replace("\n", "\r"),
        lambda t: t.replace("    ", "\t"), lambda t: t.replace("\n", "\n\f\n"), lambda t: t.rstrip("\n"),
        lambda t: "# coding: utf-8\n" + t, lambda t: t + "\n# \u00e9\U0001f600",
    ],
    ids=["mark", "crlf", "cr", "tabs", "form feeds", "no last newline", "coding", "wide characters"],
)  # fmt: skip
def test_the_same_code_in_another_dress_gets_the_same_findings(change: object) -> None:
    assert callable(change)
    codes = [d.code for d in lint((HEAD + LOOP).encode()).diagnostics]
    assert codes == [d.code for d in lint(change(HEAD + LOOP).encode()).diagnostics]


@pytest.mark.parametrize(
    "text", ["print 'x'\n", "print\nprint 'x' % 1,\n", "exec code\n", "def f():\n    raise E, 'x'\n", "try:\n    f()\nexcept E, e:\n    print e\n",
             "print >>out, a, b; x = a <> 10L\n", "def move(x, async=False):\n    return x.cuda(async=async).async\n"]
)  # fmt: skip
def test_an_older_python_is_a_syntax_error_of_one_line_and_its_loops_are_read(text: str) -> None:
    report = lint((HEAD + LOOP + text).encode())
    known = lint((HEAD + LOOP).encode())
    wrong = [d for d in report.diagnostics if d.code == "GA000"]
    assert len(wrong) == 1 and "\n" not in wrong[0].message
    assert [d for d in report.diagnostics if d.code != "GA000"] == known.diagnostics != []
    assert (report.loops, report.understood) == (known.loops, known.understood)


def test_python_2_is_explained() -> None:
    text = HEAD + LOOP + "print 'done'\n"
    (loop,) = explain(Source.from_bytes(text.encode(), "train.py", None), Config())
    (same,) = explain(Source.from_bytes((HEAD + LOOP).encode(), "train.py", None), Config())
    assert loop == same


@pytest.mark.parametrize("text", ["print 'x' 'y\n", "loss.backward() step\n", "x = `a`\n", "print (x), 'y' if\n"])
def test_what_is_no_python_at_all_is_a_syntax_error_alone(text: str) -> None:
    assert [d.code for d in lint((HEAD + LOOP + text).encode()).diagnostics] == ["GA000"]


def test_bytes_that_do_not_decode_are_said_and_latin_1_is_read() -> None:
    with pytest.raises(SourceError):
        driver.lint_bytes((HEAD + LOOP).encode() + b"# \xff\n", "a.py", Config(), None, None)
    report = driver.lint_bytes(b"# coding: latin-1\n# \xff\n" + (HEAD + LOOP).encode(), "a.py", Config(), None, None)
    assert "GA201" in {d.code for d in report.diagnostics}


def test_null_bytes_are_no_source() -> None:
    with pytest.raises(SourceError, match="NUL"):
        driver.lint_bytes((HEAD + LOOP).encode() + b"\0", "a.py", Config(), None, None)


# --- files and folders -------------------------------------------------------------------------


def galint(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "galint", "--no-cache", "--output-format", "concise", *args],
        cwd=folder, capture_output=True, check=False, timeout=60, text=True, errors="surrogateescape",
    )  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with one file that has a finding."""
    (tmp_path / "good.py").write_text(HEAD + LOOP)
    return tmp_path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_does_not_hang(tree: Path) -> None:
    os.mkfifo(tree / "pipe.py")
    done = galint(tree)
    assert done.returncode == 2 and "good.py" in done.stdout and "pipe.py: is not a regular file" in done.stderr
    assert galint(tree, "pipe.py").returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
def test_links_that_loop_dangle_or_leave_the_tree(tree: Path) -> None:
    (tree / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "self.py").symlink_to("self.py")
    (tree / "gone.py").symlink_to("nowhere.py")
    done = galint(tree)
    assert done.stdout.count("GA201") == 1


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions that hold")
def test_unreadable_files_and_folders_are_said(tree: Path) -> None:
    (tree / "closed.py").write_text(HEAD + LOOP)
    (tree / "closed.py").chmod(0)
    (tree / "shut").mkdir(mode=0)
    done = galint(tree)
    assert done.returncode == 2 and done.stdout.count("GA201") == 1
    assert "closed.py" in done.stderr and "shut" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs names that are no Unicode")
def test_names_that_are_no_unicode(tree: Path) -> None:
    name = os.fsencode(tree) + b"/\xff\xfe.py"
    with open(name, "w") as file:
        file.write(HEAD + LOOP)
    for form in ("concise", "full", "json", "sarif", "junit", "github", "gitlab"):
        done = galint(tree, "--output-format", form)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr


def test_a_file_that_vanishes_is_one_problem(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from galint.config.loading import Resolver

    (tree / "gone.py").write_text(HEAD + LOOP)
    read = driver.read_bytes

    def vanishing(path: Path, name: str) -> bytes:
        if path.name == "gone.py":
            path.unlink(missing_ok=True)
        return read(path, name)

    monkeypatch.setattr(driver, "read_bytes", vanishing)
    outcome = driver.run([str(tree)], Resolver(), jobs=1)
    assert len(outcome.problems) == 1 and "gone.py" in outcome.problems[0]
    assert "GA201" in {d.code for d in outcome.report.diagnostics}


def test_an_error_inside_one_check_is_one_line_and_the_rest_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    from galint import diagnosing

    def broken(view: object) -> list[object]:
        raise ZeroDivisionError("made up")

    checks = tuple(c._replace(run=broken) if c.code == "GA403" else c for c in diagnosing.CHECKS)
    monkeypatch.setattr(diagnosing, "CHECKS", checks)
    report = driver.lint_bytes((HEAD + LOOP).encode(), "a.py", Config(), None, None)
    assert "GA201" in {d.code for d in report.diagnostics}
    assert any("GA403" in line and "made up" in line and "\n" not in line for line in report.internal_errors)


def test_installed_packages_are_linted_file_by_file(tmp_path: Path) -> None:
    from galint.engine import lint as whole
    from galint.source import Source

    for name, followed in (("site-packages", False), ("project", True)):
        folder = tmp_path / name / "pack"
        folder.mkdir(parents=True)
        (folder / "helper.py").write_text("def scaled(loss):\n    return loss / 4\n")
        text = HEAD + "from pack.helper import scaled\n" + LOOP.replace("model(batch)", "scaled(model(batch))")
        (folder / "train.py").write_text(text)
        path = folder / "train.py"
        report = whole(Source("train.py", text, path), Config(), tmp_path / name)
        assert bool(report.followed) is followed
