"""The editor of the fixes by itself: what deleting, moving, wrapping and inserting leave of a text, written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from galint import program as p
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.naming import fresh, nullcontext
from galint.fixes.outline import Outline
from galint.fixes.textedit import Lines, apply_changes
from galint.syntax import parse


def edit(text: str, change: Callable[[Editor, dict[str, p.Stmt]], object]) -> str:
    """The text after a change; statements are handed over by their first word (the first of a kind wins)."""
    outline = Outline(parse(text))
    editor = Editor(Lines(text), outline)
    named: dict[str, p.Stmt] = {}
    for stmt in outline.seats:
        named.setdefault(editor.source(stmt).split("(")[0].split()[0].rstrip(":"), stmt)
    change(editor, named)
    return apply_changes(text, editor.changes)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a()\ngone()\nb()\n", "a()\nb()\n"),
        ("a()\n# it is gone now\ngone()\nb()\n", "a()\nb()\n"),
        ("a()\n# about others\ngone()\nb()\n", "a()\n# about others\nb()\n"),
        ("a(); gone(); b()\n", "a(); b()\n"),
        ("a(); gone()\n", "a()\n"),
        ("gone(); b()\n", "b()\n"),
        ("if x:\n    gone()\nb()\n", "b()\n"),
        ("with x:\n    gone()\nb()\n", "b()\n"),
        ("if x:\n    if y:\n        gone()\nb()\n", "b()\n"),
        ("if x:\n    a()\nelse:\n    gone()\nb()\n", "if x:\n    a()\nb()\n"),
        ("if x:\n    a()\nelse:\n    # why\n    gone()\nb()\n", "if x:\n    a()\nb()\n"),
        ("if x:\n    a()\nelif y:\n    gone()\nb()\n", "if x:\n    a()\nelif y:\n    pass\nb()\n"),
        ("for k in x:\n    gone()\nb()\n", "for k in x:\n    pass\nb()\n"),
        ("if x:\n    gone()\nelse:\n    a()\n", "if x:\n    pass\nelse:\n    a()\n"),
        ("a()\n\ngone()\n\nb()\n", "a()\n\nb()\n"),
        ("if x:\n    gone()\n\n    b()\n", "if x:\n    b()\n"),
        ("a()\ngone(\n    1,\n)\nb()\n", "a()\nb()\n"),
        ("a()\ngone()  # and why\nb()\n", "a()\nb()\n"),
    ],
)
def test_a_deleted_statement_takes_along_what_is_only_about_it(text: str, left: str) -> None:
    assert edit(text, lambda e, at: e.delete(at["gone"])) == left


def test_several_statements_go_together() -> None:
    text = "if x:\n    a()\n    gone()\n    b()\n"
    assert edit(text, lambda e, at: e.delete_all([at["a"], at["gone"]])) == "if x:\n    b()\n"
    assert edit("if x:\n    a()\n    gone()\nb()\n", lambda e, at: e.delete_all([at["a"], at["gone"]])) == "b()\n"


@pytest.mark.parametrize(
    "text",
    ["if x: gone()\nelse: a()\n", "for k in x: gone()\n", "a(); gone(\n    1); b()\n"],
)
def test_what_shares_its_rows_is_not_deleted(text: str) -> None:
    with pytest.raises(Unfixable):
        edit(text, lambda e, at: e.delete(at["gone"]))


def test_a_body_on_the_row_of_its_header_goes_with_it() -> None:
    assert edit("a()\nif x: gone()\nb()\n", lambda e, at: e.delete(at["gone"])) == "a()\nb()\n"


def test_two_of_three_in_one_row_are_not_deleted() -> None:
    with pytest.raises(Unfixable):
        edit("a(); gone(); b()\n", lambda e, at: e.delete_all([at["a"], at["gone"]]))
    with pytest.raises(Unfixable):
        edit("for k in x:\n    a(); gone()\n", lambda e, at: e.delete_all([at["a"], at["gone"]]))


def test_lines_are_taken_without_their_indentation() -> None:
    taken: list[list[str]] = []
    edit(
        "if x:\n    # taken here\n    taken(\n        1,\n    )\n    a(); b()\n",
        lambda e, at: taken.extend([e.take(at["taken"]), e.take(at["b"])]),
    )
    assert taken == [["# taken here", "taken(", "    1,", ")"], ["b()"]]


@pytest.mark.parametrize("text", ["taken('''\nx\n''')\n", "taken(\n    1); a()\n"])
def test_what_holds_a_long_string_or_half_a_row_is_not_taken(text: str) -> None:
    with pytest.raises(Unfixable):
        edit(text, lambda e, at: e.take(at["taken"]))


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("if x:\n    here()\n", "if x:\n    new()\n    here()\n", "if x:\n    here()\n    new()\n"),
        ("# here it is\nhere()\n", "new()\n# here it is\nhere()\n", "# here it is\nhere()\nnew()\n"),
        ("here()", "new()\nhere()", "here()\nnew()"),
        ("a()\r\nhere()\r\n", "a()\r\nnew()\r\nhere()\r\n", "a()\r\nhere()\r\nnew()\r\n"),
    ],
)
def test_new_lines_stand_as_deep_as_their_neighbour(text: str, before: str, after: str) -> None:
    assert edit(text, lambda e, at: e.insert_before(at["here"], ["new()"])) == before
    assert edit(text, lambda e, at: e.insert_after(at["here"], ["new()"])) == after


def test_one_line_fits_behind_a_row_that_is_shared() -> None:
    assert edit("a(); here()\n", lambda e, at: e.insert_after(at["here"], ["new()"])) == "a(); here(); new()\n"
    for text in (["one()", "two()"], ["if x:"]):
        with pytest.raises(Unfixable):
            edit("a(); here()\n", lambda e, at, text=text: e.insert_after(at["here"], text))  # type: ignore[misc]
    with pytest.raises(Unfixable):
        edit("a(); here()\n", lambda e, at: e.insert_before(at["here"], ["new()"]))


def test_lines_go_under_their_conditions() -> None:
    seen: list[list[str]] = []
    edit(
        "if x:\n  a()\n",
        lambda e, at: seen.extend(
            [e.under([], ["b()"]), e.under(["p or q"], ["b()", ""]), e.under(["p or q", "r"], ["b()"])]
        ),
    )
    assert seen == [["b()"], ["if p or q:", "  b()", ""], ["if (p or q) and r:", "  b()"]]


def test_a_file_without_blocks_is_indented_by_four() -> None:
    assert edit("a()\nb()\n", lambda e, at: e.wrap(at["a"], at["b"], "with c:")) == "with c:\n    a()\n    b()\n"


def test_wrapping_keeps_long_strings_as_they_are() -> None:
    text = "if x:\n  # a of mine\n  a('''\nlong''')\n\n  b()\n"
    wanted = "if x:\n  with c:\n    # a of mine\n    a('''\nlong''')\n\n    b()\n"
    assert edit(
        text.replace("a of mine", "call long"), lambda e, at: e.wrap(at["a"], at["b"], "with c:")
    ) == wanted.replace("a of mine", "call long")
    with pytest.raises(Unfixable):
        edit("a(); b()\n", lambda e, at: e.wrap(at["a"], at["b"], "with c:"))


# --- names and imports -------------------------------------------------------------------------


def test_a_new_name_is_none_that_the_file_uses() -> None:
    outline = Outline(parse("sync = 1\n\n\ndef f(hold):\n    return hold_2\n"))
    assert fresh(outline, "other") == "other"
    assert fresh(outline, "sync", "hold") == "hold_3"


LINE = "from contextlib import nullcontext\n"


@pytest.mark.parametrize(
    ("text", "name", "after"),
    [
        ("from contextlib import nullcontext\n", "nullcontext", None),
        ("from contextlib import nullcontext as null\n", "null", None),
        ("import contextlib\n", "contextlib.nullcontext", None),
        ("import contextlib as c\n", "c.nullcontext", None),
        ("import os\nimport torch\n", "nullcontext", f"import os\n{LINE}import torch\n"),
        ("import torch\n", "nullcontext", f"{LINE}\nimport torch\n"),
        ("import os\nfrom abc import ABC\nfrom typing import Any\n", "nullcontext", f"import os\nfrom abc import ABC\n{LINE}from typing import Any\n"),
        ("from typing import Any\n", "nullcontext", f"{LINE}from typing import Any\n"),
        ("from __future__ import annotations\n\nimport os\n", "nullcontext", f"from __future__ import annotations\n\nimport os\n{LINE}"),
        ("from __future__ import annotations\nx = 1\n", "nullcontext", f"from __future__ import annotations\n\n{LINE}x = 1\n"),
        ("x = 1\n", "nullcontext", f"{LINE}\nx = 1\n"),
        ("# a licence\nx = 1\n", "nullcontext", f"# a licence\n{LINE}\nx = 1\n"),
        ('"""A file."""\nx = 1\n', "nullcontext", f'"""A file."""\n{LINE}\nx = 1\n'),
    ],
)  # fmt: skip
def test_an_import_stands_where_its_like_stand(text: str, name: str, after: str | None) -> None:
    said: list[str] = []
    assert edit(text, lambda e, at: said.append(nullcontext(e))) == (after or text)
    assert said == [name]
