"""Notebooks: code cells as one text, magics made harmless, findings carried back to their cells."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from galint import engine, notebook
from galint.config import Config
from galint.diagnostic import Applicability, Diagnostic, Edit, Fix, NotUnderstood, Related, Report
from galint.errors import ParseError, SourceError
from galint.fixes.textedit import apply_changes, changes_of
from galint.rule import Severity
from galint.source import Source, Span


def book(*cells: str | list[str], language: str = "python", **extra: object) -> bytes:
    listed = [{"cell_type": "markdown", "source": ["# title"]}]
    listed += [{"cell_type": "code", "source": cell, "outputs": []} for cell in cells]
    metadata = {"language_info": {"name": language}}
    return json.dumps({"cells": listed, "metadata": metadata, "nbformat": 4, **extra}).encode()


def load(*cells: str | list[str]) -> notebook.Notebook:
    loaded = notebook.load(book(*cells), "a.ipynb")
    assert loaded is not None
    return loaded


def test_code_cells_become_one_text_with_known_rows() -> None:
    loaded = load(["import torch\n", "x = 1"], "y = 2\n", "z = 3")
    assert loaded.source.text == "import torch\nx = 1\ny = 2\n\nz = 3\n"
    assert [(cell.number, cell.first_row) for cell in loaded.cells] == [(1, 1), (2, 3), (3, 5)]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("!pip install torch \\\n  numpy\nx = 1", "pass\n\nx = 1"),
        ("if a:\n    !ls\n    x = 1", "if a:\n    pass\n    x = 1"),
        ("files = !ls\nx = 1", "pass\nx = 1"),
        ("t = %time f()", "pass"),
        ("torch.nn?", "pass"),
        ("?torch", "pass"),
        ("%%time\nx = 1", "\nx = 1"),
        ("\n%%capture out\nx = 1", "\n\nx = 1"),
        ("%%bash\nls -l\n", "\n\n"),
        ("%%html\n<b>", "\n"),
        ("x = (1\n  % 2)", "x = (1\n  % 2)"),
        ('s = """\n%d\n!x"""\n', 's = """\n%d\n!x"""\n'),
        ("s = 'it\\'s [' # (\n%cd x", "s = 'it\\'s [' # (\npass"),
        ("x != y", "x != y"),
        ('cd "drive/My Drive/x"', "pass"),
        ("pip install -q torch", "pass"),
        ("  ls *.py\n", "pass\n"),
        ("cd ..", "pass"),
        ("rm -rf out/", "pass"),
        ("env N=4", "pass"),
        ("time step(model)", "pass"),
        ("cd = 3", "cd = 3"),
        ("time += 3", "time += 3"),
        ("time -= 3", "time -= 3"),
        ("ls, cd = 3, 4", "ls, cd = 3, 4"),
        ("run in known", "run in known"),
        ("history", "history"),
        ("load(x)", "load(x)"),
        ("other = 1\nrun (x)", "other = 1\nrun (x)"),
    ],
)
def test_magics_become_harmless_and_rows_stay(cell: str, text: str) -> None:
    out = load(cell).source.text
    assert out == text + "\n"
    ast.parse(out)


def test_a_command_needs_its_mark_in_a_cell_of_several_lines() -> None:
    assert load("x = 1\ncd out").source.text == "x = 1\ncd out\n"
    assert load("cd out\nx = 1").source.text == "cd out\nx = 1\n"


def test_other_languages_are_left_alone() -> None:
    assert notebook.load(book("x <- 1", language="R"), "a.ipynb") is None
    assert notebook.load(json.dumps({"cells": []}).encode(), "a.ipynb") is None


def test_an_old_notebook_with_worksheets_is_read() -> None:
    cells = [{"cell_type": "code", "input": ["x = 1"], "language": "python"}]
    loaded = notebook.load(json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}).encode(), "a.ipynb")
    assert loaded is not None and loaded.source.text == "x = 1\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "no object at its top"),
        (b"{}", "it has no cells"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_no_notebook_is_one_clear_line(data: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        notebook.load(data, "a.ipynb")


def test_findings_go_back_to_their_cells() -> None:
    loaded = load("a = 1\nb = 2", "c = 3\nd = 4")
    fix = Fix("f", Applicability.SAFE, (Edit(Span(4, 0, 4, 1), "x"),))
    here = Related(Span(3, 0, 3, 1), "in the same cell")
    there = Related(Span(1, 0, 1, 1), "in another cell")
    finding = Diagnostic("GA101", "n", Severity.ERROR, "m", "a.ipynb", Span(4, 2, 4, 3), related=(here, there), fix=fix)
    missed = NotUnderstood("a.ipynb", Span(3, 0, 3, 5), "why")
    report = loaded.relocate(Report([finding], not_understood=[missed]))
    (d,) = report.diagnostics
    assert (d.cell, d.span) == (2, Span(2, 2, 2, 3))
    assert d.related == (
        Related(Span(1, 0, 1, 1), "in the same cell"),
        Related(Span(1, 0, 1, 1), "in another cell", cell=1),
    )
    assert d.fix is not None and d.fix.edits == (Edit(Span(2, 0, 2, 1), "x"),)
    (loop,) = report.not_understood
    assert (loop.cell, loop.span) == (2, Span(1, 0, 1, 5))


def test_a_fix_that_reaches_into_another_cell_is_not_offered() -> None:
    loaded = load("a = 1", "b = 2")
    fix = Fix("f", Applicability.SAFE, (Edit(Span(1, 0, 1, 1), "x"), Edit(Span(2, 0, 2, 1), "y")))
    finding = Diagnostic("GA101", "n", Severity.ERROR, "m", "a.ipynb", Span(2, 0, 2, 1), fix=fix)
    assert loaded.relocate(Report([finding])).diagnostics[0].fix is None


@given(st.lists(st.text(alphabet="ab\n%! '\"()\\", max_size=12), min_size=1, max_size=4), st.data())
def test_each_row_of_each_cell_is_found_again(cells: list[str], data: st.DataObject) -> None:
    loaded = load(*cells)
    cell = data.draw(st.sampled_from(loaded.cells))
    row = data.draw(st.integers(1, len(cell.lines)))
    place = cell.first_row + row - 1
    assert loaded.locate(Span(place, 0, place, 0)) == (cell.number, Span(row, 0, row, 0))
    assert loaded.source.text.count("\n") == sum(len(c.lines) for c in loaded.cells)


@pytest.mark.parametrize(
    ("edit", "cell", "after"),
    [
        (Edit(Span(3, 0, 3, 0), "  new\n"), 1, "a\n  b\n  new"),
        (Edit(Span(5, 0, 5, 0), "new\n"), 2, "c\nd\nnew"),
        (Edit(Span(2, 0, 3, 0), "  new\n"), 1, "a\n  new"),
        (Edit(Span(2, 0, 3, 0), ""), 1, "a"),
        (Edit(Span(4, 0, 5, 0), ""), 2, "c"),
        (Edit(Span(3, 0, 3, 1), "C"), 2, "C\nd"),
        (Edit(Span(2, 0, 2, 0), "new\n"), 1, "a\nnew\n  b"),
    ],
)
def test_an_edit_at_the_end_of_a_cell_stays_in_it(edit: Edit, cell: int, after: str) -> None:
    texts = ["a\n  b", "c\nd"]
    cells = [{"cell_type": "code", "source": text} for text in texts]
    loaded = notebook.load(json.dumps({"cells": cells}).encode(), "x.ipynb")
    assert loaded is not None
    number, inner = loaded.locate_edit(edit)
    source = Source("", texts[number - 1])
    assert number == cell
    assert apply_changes(source.text, changes_of([inner], source)) == after


SET_UP = "import torch\nmodel = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\nN = 4"
LOOP = "for i, x in enumerate(loader):\n    model(x).mean().backward()\n    if (i + 1) % N == 0:\n        opt.step()\n        opt.zero_grad()"


@pytest.mark.parametrize(
    ("cell", "words", "row"),
    [
        ("x = 1\ntokens = <YOUR CODE>", "invalid syntax", 2),
        ("if True:\nprint(1)", "'if' statement on line 1", 2),
        ("drive.mount()\n    x = 1", "unexpected", 1),
        ("s = '''never closed\n(", "triple-quoted", 1),
    ],
)
def test_a_cell_that_is_no_python_does_not_hide_the_others(cell: str, words: str, row: int) -> None:
    loaded = load(SET_UP, cell, LOOP)
    report = loaded.relocate(engine.lint(loaded.source, Config()))
    found = [(d.code, d.cell, d.span.row) for d in report.diagnostics]
    assert ("GA000", 2, row) in found
    assert ("GA201", 3, 2) in found
    assert words in next(d.message for d in report.diagnostics if d.code == "GA000")
    assert report.loops == report.understood == 1
    assert [view.span.row for view in engine.explain(loaded.source, Config())] == [loaded.cells[2].first_row]


def test_what_is_no_python_at_all_stays_an_error() -> None:
    loaded = load("a b", "c d")
    assert [d.code for d in engine.lint(loaded.source, Config()).diagnostics] == ["GA000"]
    with pytest.raises(ParseError):
        engine.explain(loaded.source, Config())
    script = Source("a.py", loaded.source.text + LOOP)
    assert [d.code for d in engine.lint(script, Config()).diagnostics] == ["GA000"]


def test_a_cell_in_python_2_is_read_beside_one_that_is_none() -> None:
    loaded = load(SET_UP, "tokens = <YOUR CODE>", LOOP + "\nprint 'done'")
    assert {d.code for d in engine.lint(loaded.source, Config()).diagnostics} >= {"GA000", "GA201"}
