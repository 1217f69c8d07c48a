"""Fixes keep what they do not mean to change: comments, quotes, line ends, encodings, untouched lines."""

from __future__ import annotations

import difflib
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from galint.config import Config
from galint.engine import lint
from galint.fixes import allowed, attach, fix_source
from galint.fixes.catalogue import REWRITES
from galint.fixes.ignoring import with_ignores
from galint.fixes.textedit import Change, Lines, apply_changes, changes_of, overlaps
from galint.source import Source
from tests.marks import fixtures, golden
from tests.test_fixes import without_marks

BAD = [p for p in fixtures() if golden(p)]
CORRECT = [p for p in fixtures() if p.name.startswith("ok_")]
EVERYTHING = allowed(True)

LOOP = """import torch

def train(model, loader, loss_fn, opt, N):
    for i, (x, y) in enumerate(loader):
        # the mean over the micro-batch
        loss = loss_fn(model(x), y)  # café
        loss.backward()   # accumulate
        if (i + 1) % N == 0 or i + 1 == len(loader):
            opt.step(); opt.zero_grad()
"""


def _fixed(text: str, name: str = "train.py") -> str:
    return fix_source(Source(name, text), Config(), None, EVERYTHING).text


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_line_ends_stay(newline: str) -> None:
    script = next(p for p in BAD if p.name == "zero_at_top_of_micro_batch.py")
    plain = without_marks(script.read_text(encoding="utf-8"))
    fixed = _fixed(plain.replace("\n", newline))
    assert fixed == _fixed(plain).replace("\n", newline)
    assert fixed != plain.replace("\n", newline)


def test_a_new_line_ends_as_the_line_above_it() -> None:
    script = next(p for p in BAD if p.name == "zero_at_top_of_micro_batch.py")
    plain = without_marks(script.read_text(encoding="utf-8"))
    head = plain.count("\n", 0, plain.index("    optimizer.step()")) - 1
    mixed = plain.replace("\n", "\r\n", head)
    assert _fixed(mixed).replace("\r\n", "\n") == _fixed(plain)
    rows = [line for line in _fixed(mixed).splitlines(keepends=True) if "zero_grad" in line]
    assert rows and all(not row.endswith("\r\n") for row in rows)


@pytest.mark.parametrize(
    ("head", "encoding", "bom"),
    [("", "utf-8", False), ("", "utf-8", True), ("# -*- coding: latin-1 -*-\n", "iso8859-1", False)],
)
def test_encoding_and_byte_order_mark_stay(head: str, encoding: str, bom: bool) -> None:
    data = (b"\xef\xbb\xbf" if bom else b"") + (head + LOOP).encode(encoding)
    source = Source.from_bytes(data, "train.py")
    fixed = fix_source(source, Config(), None, allowed(True, frozenset({"GA201"})))
    assert fixed.applied
    assert source.encode(fixed.text) != data
    assert source.encode(fixed.text).startswith(data[: data.index(b"        loss.backward")])
    assert "caf\u00e9".encode(encoding) in source.encode(fixed.text)


def test_comments_on_the_line_stay() -> None:
    fixed = fix_source(Source("train.py", LOOP), Config(), None, allowed(False, frozenset({"GA201"})))
    assert fixed.text == LOOP.replace("        loss.backward() ", "        (loss / N).backward() ")


def test_last_line_without_its_end_stays_so() -> None:
    text = """import torch
def train(model, batches, criterion, optimizer):
    for micro in range(1000):
        optimizer.zero_grad()
        (criterion(model(next(batches))) / 4).backward()
        if (micro + 1) % 4 == 0: optimizer.step()"""
    fixed = _fixed(text)
    assert not fixed.endswith("\n")
    assert "optimizer.step(); optimizer.zero_grad()" in fixed


@pytest.mark.parametrize("script", BAD, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_untouched_lines_stay_byte_for_byte(script: Path) -> None:
    """Only lines that an edit spans differ."""
    text = script.read_text(encoding="utf-8")
    source = Source("train.py", text)
    for diagnostic in attach(lint(source, Config()), source, Config()).diagnostics:
        if diagnostic.fix is None:
            continue
        changes = changes_of(diagnostic.fix.edits, source)
        touched: set[int] = set()
        lines = Lines(text)
        for change in changes:
            first, last = lines.place(change.start)[0], lines.place(max(change.end - 1, change.start))[0]
            touched.update(range(first, last + 1))
        new = apply_changes(text, changes)
        matcher = difflib.SequenceMatcher(None, text.split("\n"), new.split("\n"), autojunk=False)
        for tag, start, stop, _, _ in matcher.get_opcodes():
            if tag in ("replace", "delete"):
                assert set(range(start + 1, stop + 1)) <= touched | {row + 1 for row in touched}


@pytest.mark.parametrize("script", CORRECT, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_correct_fixture_never_changes(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    source = Source("train.py", text)
    clean = not [d for d in lint(source, Config()).diagnostics if d.code in REWRITES]
    if clean:
        assert _fixed(text) == text


@st.composite
def correct_loops(draw: st.DrawFn) -> str:
    """A right training loop in one of many spellings."""
    index = draw(st.sampled_from(["i", "step", "batch_idx"]))
    number = draw(st.sampled_from(["4", "args.accum", "ACCUM"]))
    quote = draw(st.sampled_from(["'", '"']))
    indent = draw(st.sampled_from(["    ", "  ", "\t"]))
    start = draw(st.sampled_from([0, 1]))
    count = index if start else f"({index} + 1)"
    words = draw(st.text(string.ascii_letters + " é→", max_size=20))
    scale = draw(st.sampled_from([f"loss / {number}", f"loss * (1 / {number})"]))
    clear_first = draw(st.booleans())
    body = [f"loss = criterion(model(x), y)  # {words}", f"({scale}).backward()"]
    step = ["optimizer.step()", f"print({quote}{words}{quote}, {index})"]
    if clear_first:
        body.insert(0, f"if {count} % {number} == 1: optimizer.zero_grad()")
    else:
        step.insert(1, "optimizer.zero_grad()")
    size = f"range({start}, {number} * 6 + {start})"
    lines = ["import torch", "ACCUM = 8", "def train(args, model, criterion, batches, x, y):"]
    lines += [f"{indent}optimizer = torch.optim.SGD(model.parameters(), lr=.1)", f"{indent}for {index} in {size}:"]
    lines += [indent * 2 + line for line in body]
    lines += [f"{indent * 2}if {count} % {number} == 0:", *(indent * 3 + line for line in step)]
    return "\n".join(lines) + "\n"


@given(correct_loops())
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_fix_never_changes_a_correct_loop(text: str) -> None:
    assert _fixed(text) == text


@given(st.text("ab\n\r ", max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=4))
def test_edits_change_their_spans_and_nothing_else(text: str, places: list[tuple[int, int]]) -> None:
    changes: list[Change] = []
    for start, length in places:
        change = Change(min(start, len(text)), min(start + length, len(text)), "X")
        if not overlaps([change], changes):
            changes.append(change)
    kept = "".join(c for k, c in enumerate(text) if not any(x.start <= k < x.end for x in changes))
    new = apply_changes(text, changes)
    assert new.replace("X", "") == kept
    assert new.count("X") == len(changes)


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_changes("abcdef", [Change(0, 3, "x"), Change(2, 4, "y")])


def test_ignores_are_written_at_the_end_of_the_logical_line_and_merged() -> None:
    text = LOOP.replace("loss.backward()   # accumulate", "loss.backward(\n        )  # galint: ignore[GA102]")
    found = lint(Source("train.py", text), Config()).diagnostics
    wanted = [d for d in found if d.code >= "GA1"]
    assert wanted
    new, count = with_ignores(text, wanted)
    assert count == len(wanted)
    assert "        )  # galint: ignore[GA102, GA201]\n" in new
    assert not [d for d in lint(Source("train.py", new), Config()).diagnostics if d.code >= "GA1"]
