"""Ignore comments: which findings each one silences, and which comments are reported as unused."""

from __future__ import annotations

import pytest

from galint.diagnostic import Diagnostic
from galint.registry import RULES
from galint.rule import Severity
from galint.source import Source, Span
from galint.suppress import apply, parse, scan


def finding(code: str, row: int) -> Diagnostic:
    rule = next(rule for rule in RULES if rule.code == code)
    return Diagnostic(code, rule.name, Severity.ERROR, "m", "a.py", Span(row, 0, row, 1))


def left(text: str, *findings: tuple[str, int]) -> list[tuple[str, int]]:
    """(code, row) of what is reported after the comments of `text` had their say."""
    return [(d.code, d.span.row) for d in apply([finding(*f) for f in findings], text, filename="a.py")]


@pytest.mark.parametrize(
    "comment",
    [
        "# galint: ignore[GA201]",
        "#galint:ignore[GA201]",
        "# galint: ignore[unscaled-loss]",
        "# galint: ignore[GA101, GA201]",
        "# type: ignore  # galint: ignore[GA201]",
        "# galint: ignore[GA201]  # type: ignore",
        "# galint: ignore[GA201] -- the criterion divides",
        "# noqa: GA201",
        "# NOQA:E501,GA201",
        "# noqa: E501 GA201",
        "# galint: ignore[GA2]",
    ],
)
def test_a_comment_on_the_line_silences_the_rules_it_names(comment: str) -> None:
    assert ("GA201", 1) not in left(f"loss.backward()  {comment}\n", ("GA201", 1))
    assert ("GA601", 1) in left(f"loss.backward()  {comment}\n", ("GA601", 1))
    assert ("GA201", 2) in left(f"loss.backward()  {comment}\nloss.backward()\n", ("GA201", 2))


@pytest.mark.parametrize(
    "comment", ["# galint: ignore", "# noqa", "# noqa: E501", "# ignore[GA201]", "# galint: ignore[]"]
)
def test_a_comment_that_names_no_rule_silences_nothing(comment: str) -> None:
    assert ("GA201", 1) in left(f"loss.backward()  {comment}\n", ("GA201", 1))


def test_a_comment_anywhere_on_a_long_statement_covers_all_of_it() -> None:
    text = "loss.backward(\n    gradient=g,  # galint: ignore[GA201]\n)\nf()\n"
    assert left(text, ("GA201", 1), ("GA201", 3), ("GA201", 4)) == [("GA201", 4)]


def test_a_comment_on_a_header_does_not_cover_the_body() -> None:
    text = "for x in y:  # galint: ignore[GA201]\n    x.backward()\n"
    assert ("GA201", 2) in left(text, ("GA201", 2))


def test_an_own_line_covers_the_whole_next_statement() -> None:
    text = "# galint: ignore[GA201] -- why\n\n# more\n"
    text += "for x in y:\n    if x:\n        x.backward()\n    z()\nx.backward()\n"
    assert left(text, ("GA201", 4), ("GA201", 6), ("GA201", 7), ("GA201", 8)) == [("GA201", 8)]


def test_an_own_line_covers_a_decorated_function() -> None:
    text = "# galint: ignore[GA201]\n@a\n@b(\n  1)\ndef f():\n    x.backward()\n\ndef g():\n    x.backward()\n"
    assert left(text, ("GA201", 6), ("GA201", 9)) == [("GA201", 9)]


def test_an_own_line_inside_an_if_does_not_reach_the_else() -> None:
    text = "# galint: ignore[GA201]\nif a:\n    x.backward()\nelse:\n    x.backward()\n"
    assert left(text, ("GA201", 3), ("GA201", 5)) == [("GA201", 5)]


def test_a_file_comment_covers_every_line_before_and_after() -> None:
    text = "x\n# galint: ignore-file[GA2] -- generated\ny\n"
    assert left(text, ("GA201", 1), ("GA203", 3), ("GA101", 3)) == [("GA101", 3)]


def test_a_block_ends_at_enable_for_the_rules_that_it_names() -> None:
    text = "a\n# galint: disable[GA201, GA4]\nb\n# galint: enable[GA401]\nc\n# galint: enable[GA201, GA4]\nd\n"
    findings = [(code, row) for row in (1, 3, 5, 7) for code in ("GA201", "GA401", "GA402")]
    assert left(text, *findings) == [
        ("GA201", 1), ("GA401", 1), ("GA402", 1), ("GA401", 5), ("GA201", 7), ("GA401", 7), ("GA402", 7),
    ]  # fmt: skip


def test_a_block_without_enable_goes_to_the_end() -> None:
    assert left("# galint: disable[GA201]\na\n\n\nb\n", ("GA201", 5)) == []


def test_text_in_strings_is_no_comment() -> None:
    assert left("x = '# galint: ignore[GA201]'\n", ("GA201", 1)) == [("GA201", 1)]


def test_the_reason_is_kept() -> None:
    text = "x()  # galint: ignore[GA201] -- the criterion divides by N\n"
    (directive,) = parse(text, scan(text))
    assert directive.reason == "the criterion divides by N"


# --- GA001 -------------------------------------------------------------------------------------


def unused(text: str, *findings: tuple[str, int], selected: set[str] | None = None) -> list[Diagnostic]:
    kept = apply([finding(*f) for f in findings], text, filename="a.py", selected=selected)
    return [d for d in kept if d.code == "GA001"]


def fixed(text: str, *findings: tuple[str, int]) -> str:
    """`text` after the fix of its only GA001."""
    (diagnostic,) = unused(text, *findings)
    assert diagnostic.fix is not None
    (edit,) = diagnostic.fix.edits
    source, span = Source("a.py", text), edit.span
    start, end = source.offset(span.row, span.column), source.offset(span.end_row, span.end_column)
    return text[:start] + edit.content + text[end:]


def test_an_unused_comment_is_a_note_at_the_comment() -> None:
    (diagnostic,) = unused("x()  # galint: ignore[GA201]\n")
    assert diagnostic.severity is Severity.NOTE and diagnostic.span == Span(1, 5, 1, 28)
    assert diagnostic.message == "no finding of GA201 is silenced by this comment"


def test_a_used_comment_is_not_reported() -> None:
    assert unused("x()  # galint: ignore[GA201]\n", ("GA201", 1)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x()  # galint: ignore[GA101]\n", "x()\n"),
        ("x()  # galint: ignore[GA101]  # type: ignore\n", "x()  # type: ignore\n"),
        ("x()  # type: ignore  # galint: ignore[GA101]\n", "x()  # type: ignore\n"),
        ("x()  # noqa: GA101\n", "x()\n"),
        ("    # galint: ignore[GA101] -- why\nx()\n", "x()\n"),
        ("x()  # galint: ignore[GA101, GA201] -- why\n", "x()  # galint: ignore[GA201] -- why\n"),
        ("x()  # noqa: E501, GA101\n", "x()  # noqa: E501\n"),
        ("x()  # noqa: GA101, GA201\n", "x()  # noqa: GA201\n"),
    ],
)
def test_the_fix_takes_out_what_is_unused_and_nothing_else(before: str, after: str) -> None:
    used = [("GA201", 1)] if "GA201" in before else []
    assert fixed(before, *used) == after
    assert unused(after, *used) == []


def test_unknown_rules_and_missing_rules_are_said() -> None:
    (unknown,) = unused("x()  # galint: ignore[GA2O1]\n")
    assert unknown.message == "an ignore comment names an unknown rule `GA2O1`; did you mean `GA201`?"
    (missing,) = unused("x()  # galint: ignore\n")
    assert "names no rule" in missing.message
    (open_end,) = unused("x()\n# galint: enable[GA201]\n")
    assert "ends no block" in open_end.message


def test_a_misspelt_comment_is_said_and_a_sentence_is_none() -> None:
    (slip,) = unused("x()  # galint: ingore[GA201]\n")
    assert slip.message == "`ingore` silences nothing; did you mean `ignore`?" and slip.fix is None
    (slip,) = unused("x()  # galint: ignore_file\n")
    assert "did you mean `ignore-file`?" in slip.message
    (other,) = unused("x()  # galint: skip[GA201]\n")
    assert other.message == "`skip` silences nothing; it is one of ignore-file, ignore, disable, enable"
    assert left("x()  # galint: ingore[GA201]\n", ("GA201", 1)) == [("GA201", 1), ("GA001", 1)]
    assert unused("x()  # galint: ignored because the criterion sums\n# galint: see issue 3\n") == []


def test_a_comment_about_a_rule_that_did_not_run_is_not_unused() -> None:
    assert unused("x()  # galint: ignore[GA201]\n", selected={"GA101", "GA001"}) == []
    assert unused("x()  # galint: ignore[GA201]\n", selected={"GA201"}) == []


def test_unused_comments_can_be_silenced_themselves() -> None:
    assert unused("# galint: ignore-file[GA001]\nx()  # galint: ignore[GA201]\n") == []


def test_text_that_cannot_be_tokenized_still_works() -> None:
    text = "x()  # galint: ignore[GA201]\ny = '''\n"
    assert left(text, ("GA201", 1)) == []
