"""`junit`: JUnit XML, a test suite a file and a failed test a finding."""

from __future__ import annotations

import re
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from galint.diagnostic import Diagnostic, Report
from galint.render import Context
from galint.render.full import where

# What XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, context: Context) -> str:
    """An XML document; without findings it holds one test that passed."""
    total = len(report.diagnostics)
    out = ['<?xml version="1.0" encoding="UTF-8"?>']
    out.append(f'<testsuites name="galint" tests="{max(total, 1)}" failures="{total}" errors="0">')
    for filename, group in groupby(report.diagnostics, key=lambda d: d.filename):
        found = list(group)
        name = _attribute(filename)
        out.append(f'  <testsuite name={name} tests="{len(found)}" failures="{len(found)}" errors="0" skipped="0">')
        for d in found:
            out += _case(d)
        out.append("  </testsuite>")
    if not total:
        out.append('  <testsuite name="galint" tests="1" failures="0" errors="0" skipped="0">')
        out.append('    <testcase name="no findings" classname="galint"/>')
        out.append("  </testsuite>")
    out.append("</testsuites>")
    return "\n".join(out) + "\n"


def _case(d: Diagnostic) -> list[str]:
    place = where(d.filename, d.cell, d.span.row, d.span.column)
    text = [f"{place}: {d.severity}: {d.message}"]
    if d.applied is not None:
        text.append(f"applied: {d.applied}")
    if d.expected is not None:
        text.append(f"large batch: {d.expected}")
    if d.configuration:
        text.append(d.configuration)
    module = d.filename.rpartition(".")[0] or d.filename
    row, column = d.span.row, d.span.column + 1
    return [
        f"    <testcase name={_attribute(f'{d.code} {d.name}')} classname={_attribute(module)} "
        f'file={_attribute(d.filename)} line="{row}" column="{column}">',
        f"      <failure message={_attribute(d.message)} type={_attribute(str(d.severity))}>"
        f"{escape(_clean(chr(10).join(text)))}</failure>",
        "    </testcase>",
    ]


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))
