"""The formats for people: full, concise, grouped, pylint, github, and the statistics table."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from reports import TRAIN, context, report, train_finding, wide_finding

from galint.diagnostic import Applicability, Diagnostic, Report
from galint.render import FORMATS, Context, render
from galint.render.excerpt import Mark, excerpt
from galint.render.style import Style, plain, wants_color, width
from galint.render.summary import statistics
from galint.rule import Severity
from galint.source import Span

FULL = """\
error[GA101] zero-grad-in-window: 3 of 4 micro-batch gradients are discarded
  --> pkg/train.py:5:5
  |
4 |     loss = criterion(model(x), y) / 4
5 |     optimizer.zero_grad()
  |     ^^^^^^^^^^^^^^^^^^^^^
6 |     loss.backward()
...
9 |         optimizer.step()
  |         ---------------- the step applies what is left
  |
  ::: pkg/wide.py:1:1
  |
1 |     läss😀 = f(x).backward()  # 日本
  | ---------- the helper
  |
  = applied:     g4/4
  = large batch: (g1 + g2 + g3 + g4)/4
  = holds when `args.fp16` is true
  = assumes `criterion` averages over the micro-batch
  = fix: move `zero_grad` below the step (`--fix` applies it)
  = help: `galint rule GA101` explains this rule

warning[GA601] ddp-without-no-sync: gradients are all-reduced 4 times, <1> & "more", 100%
  --> pkg/wide.py:1:10
  |
1 |     läss😀 = f(x).backward()  # 日本
  |              ^^^^^^^^^^^^^^^
  |
  = help: `galint rule GA601` explains this rule

note[GA403] dropped-tail-window: the last 2 of 10 micro-batches are thrown away
  --> run.ipynb:cell 3:1:1
  |
1 | train(x)
  | ^^^^^
  |
  = help: `galint rule GA403` explains this rule

Found 1 error, 1 warning, 1 note in 12 files (3 training loops, 1 not understood: see `galint explain`). `--fix` repairs 1.
"""


def test_full_shows_the_source_the_formulas_and_the_related_places() -> None:
    assert render(report(), "full", context()) == FULL


def test_colour_changes_nothing_but_colour() -> None:
    colored = render(report(), "full", context(color=True))
    assert colored != FULL and re.sub(r"\x1b\[[\d;]*m", "", colored) == FULL


def test_without_the_source_every_place_is_still_named() -> None:
    text = render(Report([train_finding()], 1), "full", Context())
    assert (
        "pkg/train.py:5:5" in text
        and "pkg/train.py:9:9 the step applies" in text
        and "pkg/wide.py:1:1 the helper" in text
    )


def test_concise_is_one_line_a_finding() -> None:
    assert render(report(), "concise", context()).splitlines()[:3] == [
        "pkg/train.py:5:5: GA101 [*] 3 of 4 micro-batch gradients are discarded (when `args.fp16` is true)",
        'pkg/wide.py:1:10: GA601 gradients are all-reduced 4 times, <1> & "more", 100%',
        "run.ipynb:cell 3:1:1: GA403 the last 2 of 10 micro-batches are thrown away",
    ]


@pytest.mark.parametrize(
    ("safe", "unsafe", "said"),
    [
        (0, 0, " `galint --diff` shows what can be repaired."), (1, 0, " `--fix` repairs 1."),
        (2, 1, " `--fix` repairs 2, `--unsafe-fixes` 1 more."), (0, 1, " `--fix --unsafe-fixes` repairs 1."),
    ],
)  # fmt: skip
def test_the_summary_says_what_can_be_repaired(safe: int, unsafe: int, said: str) -> None:
    one = train_finding()
    assert one.fix is not None
    other = replace(one, fix=replace(one.fix, applicability=Applicability.UNSAFE))
    found = [one] * safe + [other] * unsafe or [replace(one, fix=None)]
    text = render(Report(found, 1), "concise", replace(context(), fixes_tried=bool(safe + unsafe)))
    assert text.endswith(f"in 1 file.{said}\n")
    never = Report([wide_finding(), replace(one, fix=None)], 1)
    assert render(never, "concise", context()).endswith("in 1 file.\n")


def test_grouped_puts_findings_under_their_file() -> None:
    again = replace(train_finding(), span=Span(12, 4, 12, 5))
    text = render(Report([train_finding(), again, wide_finding()], 2), "grouped", context())
    assert text.startswith(
        "pkg/train.py:\n"
        "  5:5  GA101 [*] 3 of 4 micro-batch gradients are discarded\n"
        "  12:5 GA101 [*] 3 of 4 micro-batch gradients are discarded\n"
        "\npkg/wide.py:\n  1:10 GA601 "
    )


def test_pylint_lines_are_what_build_servers_parse() -> None:
    pattern = re.compile(r"^(?P<path>[^:]+):(?P<row>\d+): \[(?P<code>\w+)\] (?P<text>.+)$")
    matches = [pattern.match(line) for line in render(report(), "pylint", context()).splitlines()]
    assert [m and (m["path"], m["row"], m["code"]) for m in matches] == [
        ("pkg/train.py", "5", "GA101"), ("pkg/wide.py", "1", "GA601"), ("run.ipynb", "1", "GA403"),
    ]  # fmt: skip


def read_workflow_command(line: str) -> tuple[str, dict[str, str], str]:
    """What a runner reads from `::level key=value,…::text`."""
    match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
    assert match is not None
    unescape = [("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")]
    properties = dict(pair.split("=", 1) for pair in match[2].split(","))
    text = match[3]
    for code, char in unescape:
        properties = {key: value.replace(code, char) for key, value in properties.items()}
        text = text.replace(code, char) if code not in ("%3A", "%2C") else text
    return match[1], properties, text


def test_github_commands_carry_place_level_and_formulas() -> None:
    commands = [read_workflow_command(line) for line in render(report(), "github", context()).splitlines()]
    assert [level for level, _, _ in commands] == ["error", "warning", "notice"]
    level, properties, text = commands[0]
    assert properties == {
        "title": "galint (GA101)", "file": "pkg/train.py", "line": "5", "col": "5", "endLine": "5", "endColumn": "25",
    }  # fmt: skip
    assert text.endswith("applied: g4/4\nlarge batch: (g1 + g2 + g3 + g4)/4")
    assert commands[1][2].endswith("100%")
    assert commands[2][1]["line"] == "1" and "cell 3" in commands[2][2]


def test_statistics_count_the_most_frequent_first() -> None:
    many = Report([train_finding(), wide_finding(), wide_finding()], 2)
    assert statistics(many, Style(False)) == (
        "2  GA601  warning  ddp-without-no-sync\n1  GA101  error    zero-grad-in-window\n"
    )


def test_a_clean_report_says_so() -> None:
    assert render(Report(files=3), "full", context()) == "No findings in 3 files.\n"
    assert (
        render(Report(files=1, loops=1, understood=1), "concise", context())
        == "No findings in 1 file (1 training loop).\n"
    )
    assert render(Report(files=3), "full", replace(context(), quiet=True)) == ""


@pytest.mark.parametrize("output_format", FORMATS)
def test_no_format_fails_on_an_empty_report_or_strange_places(output_format: str) -> None:
    render(Report(), output_format, context())
    odd = Diagnostic(
        "GA000", "syntax-error", Severity.ERROR, "m\x1b[31m\n2", "o\x1b\n,:%<dd>.py", Span(99, 500, 120, 0)
    )
    text = render(Report([odd], 1), output_format, Context(lines=lambda filename, cell: ["x"]))
    assert text and "\x1b" not in text


# --- excerpts ----------------------------------------------------------------------------------


def marks(*spans: Span) -> list[Mark]:
    return [Mark(span, "", True) for span in spans]


def test_a_gap_of_one_line_is_shown_and_a_longer_one_is_dotted() -> None:
    lines = [f"line{n}" for n in range(1, 30)]
    primary = Mark(Span(5, 0, 5, 4), "", True)
    near = excerpt(lines, [primary, Mark(Span(8, 0, 8, 4), "near", False)], Severity.ERROR, Style(False))
    assert [line for line in near if "line" in line] == [
        "4 | line4",
        "5 | line5",
        "6 | line6",
        "7 | line7",
        "8 | line8",
    ]
    far = excerpt(lines, [primary, Mark(Span(20, 0, 20, 4), "far", False)], Severity.ERROR, Style(False))
    assert "..." in far and "   | ---- far" in far


def test_a_span_of_several_lines_is_underlined_on_its_first() -> None:
    text = excerpt(TRAIN.splitlines(), marks(Span(3, 0, 9, 24)), Severity.ERROR, Style(False))
    assert "  | " + "^" * len("for i, (x, y) in enumerate(loader):") in text


def test_an_endless_line_is_cut_around_the_mark() -> None:
    line = "a" * 500_000 + "loss.backward()" + "b" * 500_000
    text = excerpt([line], marks(Span(1, 500_000, 1, 500_015)), Severity.ERROR, Style(False))
    source, under = text[1], text[2]
    assert len(source) < 200 and source.startswith("1 | …") and source.endswith("…")
    assert source[under.index("^") : under.rindex("^") + 1] == "loss.backward()"


def test_a_place_behind_the_end_of_the_file_gives_no_excerpt() -> None:
    assert excerpt(["x"], marks(Span(7, 0, 7, 1)), Severity.ERROR, Style(False)) == []


def test_control_characters_never_reach_the_terminal() -> None:
    assert plain("a\x1b[31m\tb\x07\u202ec") == "a\ufffd[31m    b\ufffd\ufffdc"
    assert width("日a\u0301") == 3


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_follows_the_environment(environment: dict[str, str], terminal: bool, expected: bool) -> None:
    assert wants_color(environment, terminal) is expected
