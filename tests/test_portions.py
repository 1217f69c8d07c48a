"""Texts that are too large for one piece: what a portion holds, and that no finding is lost or made at its edges."""

from __future__ import annotations

import sys

import pytest

from galint import Config, Report, Source, lint
from galint.fixes.attach import attach
from galint.syntax import MANY_BACKWARDS, portions

HEAD = "import torch\nfrom torch import nn\n"
SETUP = "model = nn.Linear(4, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
LOOP = """for i, (x, y) in enumerate(loader):
    loss = nn.functional.mse_loss(model(x), y){scale}
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
FUNCTION = """def train_{k}(model, loader, optimizer):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y){scale}
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


def linted(text: str) -> Report:
    return lint(Source("train.py", text), Config())


def spans(report: Report, code: str) -> list[tuple[int, int]]:
    return [(d.span.row, d.span.column) for d in report.diagnostics if d.code == code]


def kept(text: str) -> list[list[str]]:
    """The lines of each portion that are not blank."""
    return [[line for line in portion.text.splitlines() if line] for portion in portions(text)]


def test_a_portion_holds_what_its_loop_names_and_what_that_names() -> None:
    text = HEAD + "n = 4\nrate = n * 2\nother = 5\nmodel, lr = make(rate), 1\n\n" + LOOP.format(scale="")
    (portion,) = portions(text)
    lines = portion.text.splitlines()
    assert "other = 5" not in lines
    assert [lines[2], lines[3], lines[5]] == ["n = 4", "rate = n * 2", "model, lr = make(rate), 1"]
    assert lines[7] == "for i, (x, y) in enumerate(loader):"  # the row that it has in the text


@pytest.mark.parametrize(
    "statement",
    [
        "loader.limit(3)",
        "loader[0] = 1",
        "if big:\n    loader = None",
        "setup(loader)",
        "loader: list = []",
        "loader += x",
    ],
)
def test_what_may_change_a_thing_stays(statement: str) -> None:
    (portion,) = kept(HEAD + statement + "\n" + LOOP.format(scale=""))
    assert statement.splitlines()[0] in portion


@pytest.mark.parametrize("statement", ["x1 = 1", "print('hello')", "def helper():\n    return loader", "log(x1)"])
def test_what_binds_no_name_of_the_loop_goes(statement: str) -> None:
    (portion,) = kept(HEAD + statement + "\n" + LOOP.format(scale=""))
    assert statement.splitlines()[0] not in portion


def test_one_statement_is_never_cut() -> None:
    text = (
        HEAD
        + 'table = """\nx = 1\n"""\n'
        + "@wrap(\n1,\n)\n@wrap\ndef train():\n    if a:\n        loss.backward()\n# a comment\n    optimizer.step()\n"
        + "if a:\n    loss.backward()\nelif b:\n    pass\nelse:\n    pass\n"
        + "try:\n    loss.backward()\nexcept ValueError:\n    pass\nfinally:\n    pass\n"
        + "total = (\nloss.backward(),\n)\nlong = loss.backward() + \\\nother\n"
    )
    held = [line for portion in kept(text) for line in portion]
    for line in text.splitlines():
        assert line in held or line in {'table = """', "x = 1", '"""'}, line
    for portion in portions(text):
        compile(portion.text, "portion", "exec")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_stay_with_every_line_ending(end: str) -> None:
    text = (HEAD + "a = 1\n\nb = [\n1,\n]\n" + LOOP.format(scale="")).replace("\n", end)
    (portion,) = portions(text)
    assert portion.text.split(end)[7:] == text.split(end)[7:]
    assert portion.text.split(end)[2:7] == [""] * 5


def test_a_text_without_training_has_no_portions() -> None:
    assert portions("") == portions("x = 1\n") == portions("# a comment\n\n") == []


def test_a_function_stands_with_those_it_calls_and_not_alone_again() -> None:
    helper = "def helper(loss):\n    loss.backward()\n"
    first = "def first(loss):\n    helper(loss)\n    optimizer.step()\n"
    (portion,) = kept(HEAD + helper + first)
    assert {"def helper(loss):", "def first(loss):"} <= set(portion)


def test_functions_that_call_each_other_stand_together() -> None:
    text = HEAD + "def a(x):\n    x.backward()\n    b(x)\ndef b(x):\n    x.backward()\n    a(x)\n"
    assert len(kept(text)) == 1


def test_the_loop_that_a_definition_does_not_run_is_not_its_own() -> None:
    text = HEAD + SETUP + LOOP.format(scale="") + FUNCTION.format(k=1, scale="")
    loop, function = kept(text)
    assert "for i, (x, y) in enumerate(loader):" in loop and "def train_1(model, loader, optimizer):" not in loop
    assert "def train_1(model, loader, optimizer):" in function
    assert "for i, (x, y) in enumerate(loader):" not in function


def test_each_of_many_functions_keeps_its_verdict() -> None:
    """Every third function divides by 4; the others are what GA201 is about."""
    count = MANY_BACKWARDS + 20
    text = HEAD + "".join(FUNCTION.format(k=k, scale=" / 4" if k % 3 == 0 else "") for k in range(count))
    report = linted(text)
    wanted = [(3 + 7 * k + 3, 8) for k in range(count) if k % 3]
    assert spans(report, "GA201") == wanted
    assert report.loops == report.understood == count and report.not_understood == []


def test_each_of_many_loops_keeps_its_verdict() -> None:
    """The loops share an optimizer, and the stretches they are taken in overlap; none is counted or reported twice."""
    count = MANY_BACKWARDS + 20
    text = HEAD + SETUP + "".join(LOOP.format(scale=" / 4" if k % 3 == 0 else "") for k in range(count))
    report = linted(text)
    assert spans(report, "GA201") == [(5 + 6 * k + 2, 4) for k in range(count) if k % 3]
    assert report.loops == report.understood == count
    # Behind every loop but the last more training follows: only there the rest is thrown away.
    assert [row for row, _ in spans(report, "GA403")] == [5 + 6 * (count - 1) + 3]


def test_ignore_comments_hold_and_are_not_called_unused() -> None:
    count = MANY_BACKWARDS + 5
    text = HEAD + "".join(FUNCTION.format(k=k, scale="") for k in range(count))
    text = text.replace("loss.backward()", "loss.backward()  # galint: ignore[GA201]", 1)
    report = linted(text)
    assert len(spans(report, "GA201")) == count - 1 and spans(report, "GA001") == []


def test_no_fix_is_tried_on_so_many_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["galint.fixes.attach"], "examine", lambda *_: pytest.fail("the whole was examined"))
    source = Source("train.py", HEAD + "".join(FUNCTION.format(k=k, scale="") for k in range(MANY_BACKWARDS + 1)))
    report = Report(diagnostics=lint(Source("train.py", HEAD + FUNCTION.format(k=0, scale="")), Config()).diagnostics)
    assert attach(report, source, Config()).diagnostics == report.diagnostics != []


def test_what_cannot_be_cut_is_taken_whole_or_refused() -> None:
    methods = "".join(f"    def train_{k}(self, loss):\n        loss.backward()\n" for k in range(MANY_BACKWARDS + 5))
    report = linted(HEAD + "class Trainer:\n" + methods)
    assert report.internal_errors == [] and report.diagnostics == []
    broken = HEAD + LOOP.format(scale="") * (MANY_BACKWARDS + 5) + "def (:\n"
    assert [d.code for d in linted(broken).diagnostics] == ["GA000"]
