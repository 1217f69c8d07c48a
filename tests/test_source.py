"""Decoding as Python does it, the line index, and the three ways to count columns."""

from __future__ import annotations

import codecs
import io
import os
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from galint.errors import SourceError
from galint.source import (
    Source,
    byte_column,
    column_from_bytes,
    column_from_utf16,
    read_bytes,
    split_lines,
    utf16_column,
)


def test_utf8_is_the_default() -> None:
    source = Source.from_bytes("x = 'é'\n".encode(), "a.py")
    assert (source.text, source.encoding, source.bom) == ("x = 'é'\n", "utf-8", False)


def test_a_byte_order_mark_is_taken_off_and_put_back() -> None:
    data = codecs.BOM_UTF8 + b"x = 1\n"
    source = Source.from_bytes(data, "a.py")
    assert source.text == "x = 1\n"
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    "head",
    [b"# -*- coding: latin-1 -*-\n", b"#!/usr/bin/python\n# vim: set fileencoding=iso-8859-1 :\n", b"\n#coding=l1\n"],
)
def test_a_coding_line_decides(head: bytes) -> None:
    data = head + b"x = '\xe9'\n"
    source = Source.from_bytes(data, "a.py")
    assert source.text.endswith("x = 'é'\n")
    assert source.encode(source.text) == data
    assert tokenize.detect_encoding(io.BytesIO(data).readline)[0] in ("iso-8859-1", "l1")


def test_a_coding_line_after_code_or_in_line_three_means_nothing() -> None:
    for head in (b"x = 1\n# coding: latin-1\n", b"\n\n# coding: latin-1\n"):
        with pytest.raises(SourceError, match="line 3|line 4"):
            Source.from_bytes(head + b"'\xe9'\n", "a.py")


@pytest.mark.parametrize("name", ["future_fstrings", "future-annotations", "Future_Annotations"])
def test_the_encodings_of_backports_are_utf_8(name: str) -> None:
    text = f"# -*- coding: {name} -*-\nx = 'é'\n"
    assert Source.from_bytes(text.encode(), "a.py").text == text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x\n'\xe9'\n", "a.py: line 2 is not valid utf-8"),
        (b"# coding: klingon\n", "a.py: declares the unknown encoding `klingon`"),
        (b"# coding: hex\nx\n", "a.py: declares `hex`, which is not a text encoding"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "byte order mark"),
        (b"x = 1\0\n", "a.py: contains NUL bytes"),
    ],
)
def test_what_python_would_refuse_is_one_clear_line(data: bytes, message: str) -> None:
    with pytest.raises(SourceError, match="^a.py: ") as caught:
        Source.from_bytes(data, "a.py")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lines_end_where_python_ends_them() -> None:
    assert split_lines("a\r\nb\rc\nd\fe\x0bf\u2028g") == ["a", "b", "c", "d\fe\x0bf\u2028g"]


@given(st.text(alphabet="ab\r\n\f é😀", max_size=30))
def test_offset_finds_each_place_of_each_line(text: str) -> None:
    source = Source("a.py", text)
    for row, line in enumerate(source.lines, 1):
        for column in range(len(line) + 1):
            start = source.offset(row, column)
            assert text[start : start + len(line) - column] == line[column:]
    assert source.offset(len(source.lines) + 5, 0) == len(text)


@given(st.text(min_size=0, max_size=20), st.data())
def test_columns_survive_the_way_to_utf16_and_bytes_and_back(line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(0, len(line)))
    assert column_from_utf16(line, utf16_column(line, column)) == column
    assert column_from_bytes(line, byte_column(line, column)) == column


def test_a_place_inside_a_character_is_its_start() -> None:
    assert utf16_column("😀x", 1) == 2
    assert column_from_utf16("😀x", 1) == 0
    assert byte_column("éx", 1) == 2
    assert column_from_bytes("éx", 1) == 0


def test_folders_fifos_and_missing_files_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for name, words in (("pipe.py", "is not a regular file"), (".", "is a directory"), ("no.py", "does not exist")):
        with pytest.raises(SourceError, match=words):
            read_bytes(tmp_path / name, name)
