"""The server's parts on their own: positions, edits, stale results, ignore comments, settings, labels."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pygls")

from lsprotocol import types

from galint.config import Config
from galint.diagnostic import Diagnostic, Edit, Related
from galint.engine import lint
from galint.errors import ConfigError
from galint.rule import Severity
from galint.server import confirm, convert
from galint.server import settings as room
from galint.server.actions import ignoring, safe_edits
from galint.server.documents import Page, changed, from_column, path_of, to_column, to_range
from galint.server.hints import notes, pretty
from galint.server.study import add_fixes, carried, study
from galint.source import Source, Span
from galint.syntax import parse
from tests.marks import FIXTURES

BAD = (FIXTURES / "GA101-zero-grad-in-window" / "zero_dedented_below_guard.py").read_text("utf-8")
UTF8, UTF16, UTF32 = types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf16, types.PositionEncodingKind.Utf32


def page(text: str) -> Page:
    return Page("file:///train.py", "train.py", None, (("file:///train.py", text, 1),))


# --- positions and edits -----------------------------------------------------------------------------


@pytest.mark.parametrize(("encoding", "units"), [(UTF8, 9), (UTF16, 6), (UTF32, 5)])
def test_columns_in_each_encoding(encoding: types.PositionEncodingKind, units: int) -> None:
    line = "aé🙂b€c"
    assert from_column(line, 5, encoding) == {UTF8: 11, UTF16: 6, UTF32: 5}[encoding]
    assert to_column(line, from_column(line, 3, encoding), encoding) == 3
    assert to_column(line, 99, encoding) == len(line)


@given(
    text=st.text("aé🙂\n\r\f ", max_size=30), column=st.integers(0, 30), encoding=st.sampled_from([UTF8, UTF16, UTF32])
)
@settings(max_examples=200)
def test_columns_go_there_and_back(text: str, column: int, encoding: types.PositionEncodingKind) -> None:
    column = min(column, len(text))
    assert to_column(text, from_column(text, column, encoding), encoding) == column


def partial(start: tuple[int, int], end: tuple[int, int], text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), text)


@pytest.mark.parametrize(
    ("text", "change", "wanted"),
    [
        ("ab\ncd\n", partial((0, 1), (1, 1), "X"), "aXd\n"),
        ("ab\r\ncd", partial((1, 2), (1, 2), "!"), "ab\r\ncd!"),
        ("ab", partial((0, 0), (9, 9), "z"), "z"),
        ("ab", partial((7, 0), (7, 0), "\nz"), "ab\nz"),
        ("🙂b", partial((0, 2), (0, 3), "c"), "🙂c"),
        ("a\fb\nc", partial((1, 0), (1, 1), "d"), "a\fb\nd"),
        ("ab", partial((0, 2), (0, 1), "x"), "abx"),
        ("old", types.TextDocumentContentChangeWholeDocument("new"), "new"),
    ],
)
def test_changes(text: str, change: types.TextDocumentContentChangeEvent, wanted: str) -> None:
    assert changed(text, change, UTF16) == wanted


def test_ranges_are_clamped() -> None:
    found = to_range(Span(9, 3, 12, 4), ["ab", "cde"], UTF16)
    assert found == types.Range(types.Position(1, 3), types.Position(1, 3))


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///a/b%20c.py", "b c.py"),
        ("vscode-notebook-cell:///a/n.ipynb#W0", "n.ipynb"),
        ("untitled:Untitled-1", None),
    ],
)
def test_path_of_a_uri(uri: str, name: str | None) -> None:
    found = path_of(uri)
    assert (found.name if found else None) == name


def test_a_notebook_is_one_text_and_its_places_are_cells() -> None:
    parts = (("c1", "import torch\n%matplotlib inline", 1), ("c2", "x = 1\ny = 2", 4))
    book = Page("nb", "n.ipynb", None, parts, is_notebook=True)
    assert book.source.lines[:4] == ["import torch", "pass", "x = 1", "y = 2"]
    assert book.locate(Span(4, 0, 4, 5)) == ("c2", Span(2, 0, 2, 5))
    assert (book.row_of("c2", 2), book.row_of("gone", 1)) == (4, None)
    assert (book.version("c2"), book.version("gone")) == (4, None)


# --- studies of older texts --------------------------------------------------------------------------


def test_what_was_understood_moves_with_the_text() -> None:
    last = study(page(BAD), Config(), None, parse)
    (found,) = last.report.diagnostics
    below = carried(last, page("# one\n# two\n" + BAD))
    (moved,) = below.report.diagnostics
    assert (moved.code, moved.span.row) == ("GA101", found.span.row + 2)
    assert [r.span.row for r in moved.related] == [r.span.row + 2 for r in found.related]
    assert [v.span.row for v in below.views] == [v.span.row + 2 for v in last.views]
    assert [n.span.row for n in notes(below)] == [n.span.row + 2 for n in notes(last)]
    assert moved.fix is None


def test_what_stands_in_a_changed_line_is_left_out() -> None:
    last = study(page(BAD), Config(), None, parse)
    broken = carried(last, page(BAD.replace("        optimizer.zero_grad()  #", "        optimizer.zero_grad((  #")))
    assert broken.report.diagnostics == [] and broken.views == []
    elsewhere = carried(last, page(BAD + "def f(:\n"))
    assert [d.code for d in elsewhere.report.diagnostics] == ["GA101"] and elsewhere.views == last.views


def test_irrelevant_text_is_not_even_parsed() -> None:
    def fail(text: str) -> object:
        raise AssertionError("parsed")

    assert study(page("x = 1\n"), Config(), None, fail).report.diagnostics == []  # type: ignore[arg-type]


# --- actions -----------------------------------------------------------------------------------------

IGNORES = {
    "plain": BAD,
    "carriage returns": BAD.replace("\n", "\r\n"),
    "trailing blanks": BAD.replace("  # expect: GA101", "   "),
    "other pragma": BAD.replace("# expect: GA101", "# galint: ignore[GA403]"),
    "call over rows": BAD.replace(
        "optimizer.zero_grad()  #", "optimizer.zero_grad(\n            set_to_none=True,\n        )  #"
    ),
    "backslash": BAD.replace("        optimizer.zero_grad()  #", "        optimizer. \\\n            zero_grad()  #"),
    "no newline at the end": BAD.rstrip("\n"),
}


@pytest.mark.parametrize("name", IGNORES)
def test_ignoring_silences_the_finding_and_nothing_else(name: str) -> None:
    text = IGNORES[name]
    before = lint(Source("train.py", text), Config()).diagnostics
    (finding,) = [d for d in before if d.code == "GA101"]
    edit = ignoring(finding, page(text))
    source = Source("", text)
    start, end = (
        source.offset(edit.span.row, edit.span.column),
        source.offset(edit.span.end_row, edit.span.end_column),
    )
    after = lint(Source("train.py", text[:start] + edit.content + text[end:]), Config()).diagnostics
    assert [d.code for d in after] == [d.code for d in before if d.code != "GA101"]


def test_safe_edits_do_not_touch_one_another() -> None:
    found = study(page(BAD), Config(), None, parse)
    add_fixes(found)
    doubled = [*found.report.diagnostics, *found.report.diagnostics]
    (d,) = found.report.diagnostics
    assert d.fix is not None
    assert safe_edits(doubled, found.page) == sorted(d.fix.edits, key=lambda e: e.span)


# --- labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "label"),
    [("(g1 + g2 + g3 + g4)/4", "(g₁+g₂+g₃+g₄)/4"), ("g12/4 + 2·g3", "g₁₂/4+2·g₃"), ("0", "0")],
)
def test_pretty(formula: str, label: str) -> None:
    assert pretty(formula) == label


def test_a_scaled_share_says_so() -> None:
    text = (
        "scaler = torch.amp.GradScaler()\nfor i, x in enumerate(loader):\n    loss = model(x).mean() / 4\n"
        "    scaler.scale(loss).backward()\n    if (i + 1) % 4 == 0:\n        scaler.step(opt)\n        scaler.update()\n"
        "        opt.zero_grad()\n"
    )
    head = "import torch\nopt = torch.optim.SGD(model.parameters())\n"
    share, step = notes(study(page(head + text), Config(), None, parse))
    assert share.label == "×1/4 · loss scale"
    assert share.detail == "each backward adds its micro-batch's gradient times 1/4, times the loss scale"
    assert step.label == "⟵ (g₁+g₂+g₃+g₄)/4"


@pytest.mark.parametrize("factor", ["0.5 * ", "-"])
def test_a_loss_with_a_factor_of_its_own_accuses_nobody(factor: str) -> None:
    text = (
        "import torch\nopt = torch.optim.SGD(model.parameters())\nfor x in loader:\n    opt.zero_grad()\n"
        f"    loss = {factor}model(x).mean()\n    loss.backward()\n    opt.step()\n"
    )
    assert notes(study(page(text), Config(), None, parse)) == []


def test_a_loop_without_accumulation_has_no_notes() -> None:
    text = "import torch\nfor x in loader:\n    opt.zero_grad()\n    model(x).mean().backward()\n    opt.step()\n"
    assert notes(study(page("opt = torch.optim.SGD(model.parameters())\n" + text), Config(), None, parse)) == []


# --- settings ----------------------------------------------------------------------------------------


def test_settings_in_every_spelling() -> None:
    for value in (
        {"extendSelect": ["GA4"], "debounce": 20, "inlayHints": False},
        {"settings": {"extend-select": ["GA4"], "debounce": 20, "inlay_hints": False}},
        {"galint": {"extend_select": ["GA4"], "debounce": 20, "inlay-hints": False}},
    ):
        found = room.read(value)
        assert found.overrides.flags == {"extend-select": ["GA4"]}
        assert (found.debounce, found.inlay_hints) == (0.02, False)
    assert room.read(None) == room.Settings()


@pytest.mark.parametrize(
    "value", [[], {"inlayHints": 1}, {"debounce": -1}, {"debounce": True}, {"selct": ["GA1"]}, {"select": ["GA9999"]}]
)
def test_mistakes_in_settings_are_said(value: object) -> None:
    with pytest.raises(ConfigError):
        room.read(value)


def test_configuration_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    configs = room.Configs(room.Settings())
    assert "GA101" in configs.of(tmp_path).codes
    file = tmp_path / "galint.toml"
    file.write_text('ignore = ["GA101"]\n')
    assert "GA101" not in configs.of(tmp_path).codes
    file.write_text('ignore = ["GA401"]\n')
    os.utime(file, ns=(1, 1))
    assert "GA101" in configs.of(tmp_path).codes


@pytest.mark.parametrize("named", [False, True])
def test_a_file_that_another_extends_is_read_again_too(tmp_path: Path, named: bool) -> None:
    (tmp_path / "galint.toml").write_text('extend = "team/rules.toml"\n')
    (tmp_path / "team").mkdir()
    team, other = tmp_path / "team/rules.toml", tmp_path / "other"
    team.write_text('ignore = ["GA101"]\n')
    other.mkdir()
    configs = room.Configs(room.read({"configuration": str(tmp_path / "galint.toml")} if named else {}))
    assert "GA101" not in configs.of(tmp_path).codes and "GA101" not in configs.of(other).codes
    team.write_text('ignore = ["GA401"]\n')
    os.utime(team, ns=(1, 1))
    assert "GA101" in configs.of(tmp_path).codes and "GA101" in configs.of(other).codes


def test_findings_keep_their_severity_in_the_protocol() -> None:
    from galint.server.convert import diagnostic

    last = study(page(BAD), Config(), None, parse)
    (d,) = last.report.diagnostics
    for severity, number in ((Severity.ERROR, 1), (Severity.WARNING, 2), (Severity.NOTE, 3)):
        one = Diagnostic(d.code, d.name, severity, "m", d.filename, d.span)
        assert diagnostic(one, last, UTF16).severity == number


# --- diagnostics and edits of the protocol -----------------------------------------------------------


def test_a_message_says_all_that_is_known() -> None:
    (found,) = study(page(BAD), Config(), None, parse).report.diagnostics
    full = replace(
        found,
        message="it is bad",
        applied="g4",
        expected="g1 + g4",
        configuration="with `amp` on",
        assumptions=("a mean",),
    )
    assert convert.message(full, "measured 3").split("\n") == [
        "it is bad", "applied: g4", "large batch: g1 + g4", "holds with `amp` on", "assumes a mean", "measured 3",
    ]  # fmt: skip
    bare = replace(full, applied=None, configuration=None, assumptions=())
    assert convert.message(bare) == "it is bad"


def test_a_related_place_may_be_in_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("é = 1\n")
    last = study(page(BAD), Config(), None, parse)
    (found,) = last.report.diagnostics
    span = Span(1, 0, 1, 1)
    there = replace(
        found,
        related=(
            Related(span, "there", str(other)),
            Related(Span(3, 2, 3, 9), "gone", str(tmp_path / "gone.py")),
            Related(span, "here", "train.py"),
        ),
    )
    places = convert.diagnostic(there, last, UTF8).related_information or []
    assert [(q.message, q.location.uri) for q in places] == [
        ("there", other.as_uri()), ("gone", (tmp_path / "gone.py").as_uri()), ("here", "file:///train.py"),
    ]  # fmt: skip
    assert [q.location.range.end.character for q in places] == [
        2,
        9,
        1,
    ]  # é is two bytes; columns of a lost file are its own


@pytest.mark.parametrize("versioned", [True, False])
def test_edits_name_the_version_that_they_are_of(versioned: bool) -> None:
    book = Page("nb", "n.ipynb", None, (("c1", "import torch", 1), ("c2", "x = 1\ny = 2", 4)), is_notebook=True)
    made = convert.workspace_edit([Edit(Span(2, 0, 2, 1), "z"), Edit(Span(3, 0, 3, 1), "w")], book, UTF16, versioned)
    wanted = [
        types.TextEdit(types.Range(types.Position(row, 0), types.Position(row, 1)), text)
        for row, text in ((0, "z"), (1, "w"))
    ]
    if versioned:
        [change] = made.document_changes or []
        assert isinstance(change, types.TextDocumentEdit)
        assert (change.text_document.uri, change.text_document.version, change.edits) == ("c2", 4, wanted)
    else:
        assert made.changes == {"c2": wanted}


# --- confirming --------------------------------------------------------------------------------------


def interpreter(folder: Path, body: str) -> str:
    """A program that stands in for a Python with galint: it prints what `galint confirm` would."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return str(path)


def measured(folder: Path, body: str, timeout: float = 20.0) -> list[dict[str, object]]:
    return asyncio.run(confirm.measure(folder / "train.py", interpreter(folder, body), timeout))


def test_verdicts_are_read_from_the_command(tmp_path: Path) -> None:
    body = "import json, sys\nprint(json.dumps({'verdicts': [{'rule': 'GA101', 'args': sys.argv[1:]}, 'odd']}))"
    [verdict] = measured(tmp_path, body)
    assert verdict["args"] == [
        "-m", "galint", "confirm", "--output-format", "json", "--timeout", "20.0", "--", str(tmp_path / "train.py"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import sys\nsys.exit('first\\nno torch here')", "no torch here"),
        ("import sys\nsys.exit(3)", "`galint confirm` exited with 3"),
        ("print('[1]')", "`galint confirm` exited with 0"),
        ("print('{}')", "`galint confirm` exited with 0"),
        ("print('{\"verdicts\": 3}')", "`galint confirm` exited with 0"),
    ],
)
def test_a_command_that_says_nothing_is_one_line(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(confirm.NotConfirmed, match=said):
        measured(tmp_path, body)


def test_loops_that_do_not_end_are_stopped(tmp_path: Path) -> None:
    with pytest.raises(confirm.NotConfirmed, match="did not finish in -29.5 seconds"):
        measured(tmp_path, "import time\ntime.sleep(60)", timeout=-29.5)  # 30 seconds are added


def test_another_interpreter_has_to_be_there(tmp_path: Path) -> None:
    assert confirm.can_run(interpreter(tmp_path, "")) and not confirm.can_run(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ({"status": "confirmed", "measured": "4 g", "reference": "g"}, "confirmed by running: 4 g; g"),
        ({"status": "refuted", "measured": "g"}, "not confirmed by running: g"),
        ({"status": "consistent", "reason": "as replayed"}, "agrees with the run: as replayed"),
        ({"status": "inconclusive", "reason": "x"}, None),
    ],
)
def test_a_verdict_joins_its_finding(verdict: dict[str, str], said: str | None) -> None:
    last = study(page(BAD), Config(), None, parse)
    (found,) = last.report.diagnostics
    exact = {**verdict, "rule": found.code, "finding": {"code": found.code, "line": found.span.row}}
    elsewhere = {"status": "confirmed", "rule": "GA999", "finding": {"code": "GA999", "line": found.span.row}}
    assert confirm.joined(last, [elsewhere, exact]) == ({0: said} if said else {})
    assert confirm.joined(last, [{**verdict, "rule": found.code}]) == ({0: said} if said else {})
    assert confirm.joined(last, [elsewhere]) == {}
