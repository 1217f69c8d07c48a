"""Literals by their spelling: what Python itself makes of them, and nothing where Python refuses them."""

from __future__ import annotations

import ast
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galint.syntax.literals import imaginary, integer, string

SPELLINGS = [
    "''", '"a\'b"', "'''a\nb'''", '"""x"y"""', "r'\\n\\x41'", "R'\\'", "u'é'", "'\\n\\t\\r\\a\\b\\f\\v\\\\\\'\\\"'",
    "'\\0\\07\\101\\1234'", "'\\x41\\u00e9\\U0001F600'", "'\\N{GREEK SMALL LETTER ALPHA}'", "'\\q\\é'", "'a\\\nb'", "'a\\\r\nb'",
    "'''a\r\nb\rc'''", "b'ab\\x00\\377'", "B'\\u0041\\N{DIGIT ONE}\\U00000041'", "rb'\\x41'", "bR'\\''", "b'''\r\n'''", "b'\\q\\101'",
    "''''''", '""""""', "'\\400'", "b'\\8'",
]  # fmt: skip


def python(spelling: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(spelling)


@pytest.mark.parametrize("spelling", [s for s in SPELLINGS if s != "R'\\'"])
def test_texts_are_what_python_makes_of_them(spelling: str) -> None:
    assert string(spelling) == python(spelling)


@given(st.text(st.sampled_from("\\nrx41uUN{}01789abcé\n"), max_size=12), st.sampled_from(["", "b", "r", "rb", "u"]))
@settings(max_examples=400)
def test_any_text_is_what_python_makes_of_it_or_refused(body: str, prefix: str) -> None:
    spelling = f"{prefix}'''{body}'''"
    try:
        wanted = python(spelling)
    except (SyntaxError, ValueError):
        return  # such a text does not reach this far: the parser refuses it
    assert string(spelling) == wanted


@pytest.mark.parametrize("spelling", ["b'é'", "'\\N{NO SUCH NAME}'"])
def test_what_python_refuses_has_no_value(spelling: str) -> None:
    with pytest.raises(ValueError):
        string(spelling)


@pytest.mark.parametrize("spelling", ["0", "1_000", "0x1_F", "0B101", "0o17", "00", "123456789" * 9])
def test_integers(spelling: str) -> None:
    assert integer(spelling) == ast.literal_eval(spelling)


@pytest.mark.parametrize("spelling", ["2j", "1_0.5J", "1e3j", ".5j"])
def test_imaginary_numbers(spelling: str) -> None:
    assert imaginary(spelling) == ast.literal_eval(spelling)
