"""`sarif`: SARIF 2.1.0, as code scanning services read it."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from galint.diagnostic import Diagnostic, Fix, Report
from galint.pages import page
from galint.registry import RULES
from galint.render import Context
from galint.render.fingerprint import fingerprints
from galint.rule import Rule
from galint.source import Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(report: Report, context: Context) -> str:
    """One SARIF log with one run; columns count Unicode code points."""
    prints = fingerprints(report.diagnostics, context)
    problems = [{"level": "error", "message": {"text": problem}} for problem in report.internal_errors]
    run = {
        "tool": {
            "driver": {
                "name": "galint",
                "version": context.version,
                "semanticVersion": context.version,
                "rules": [_rule(rule) for rule in RULES],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The folder that galint ran in."}}},
        "invocations": [{"executionSuccessful": not problems, "toolExecutionNotifications": problems}],
        "results": [_result(d, mark) for d, mark in zip(report.diagnostics, prints, strict=True)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    markdown = page(rule)
    return {
        "id": rule.code,
        "name": _pascal(rule.name),
        "shortDescription": {"text": f"{rule.summary[:1].upper()}{rule.summary[1:]}."},
        "fullDescription": {"text": _first_paragraph(markdown) or rule.summary},
        "help": {"text": markdown, "markdown": markdown},
        "defaultConfiguration": {"level": str(rule.severity)},
        "properties": {
            "tags": ["gradient-accumulation", rule.name],
            "precision": "high",
            "problem.severity": "recommendation" if rule.severity == "note" else str(rule.severity),
            "fix": str(rule.fixability),
        },
    }


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def _first_paragraph(markdown: str) -> str:
    """The first paragraph below the title and section headings."""
    for block in re.split(r"\n\s*\n", markdown):
        if block.strip() and not block.lstrip().startswith("#"):
            return " ".join(block.split())
    return ""


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.row,
        "startColumn": span.column + 1,
        "endLine": span.end_row,
        "endColumn": span.end_column + 1,
    }


def artifact(filename: str) -> dict[str, str]:
    """The location of a file: relative to the source root, or an absolute file URI."""
    path = quote(filename.encode("utf-8", "surrogateescape"), safe="/")
    return {"uri": f"file://{path}"} if filename.startswith("/") else {"uri": path, "uriBaseId": "%SRCROOT%"}


def _location(filename: str, span: Span, cell: int | None) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": artifact(filename), "region": _region(span)},
    }
    if cell is not None:
        location["logicalLocations"] = [{"name": f"cell {cell}", "kind": "module"}]
    return location


def _result(d: Diagnostic, fingerprint: str) -> dict[str, Any]:
    index = next((i for i, rule in enumerate(RULES) if rule.code == d.code), -1)
    carried = {
        "applied": d.applied,
        "expected": d.expected,
        "assumptions": list(d.assumptions),
        "configuration": d.configuration,
        "cell": d.cell,
    }
    result: dict[str, Any] = {
        "ruleId": d.code,
        "ruleIndex": index,
        "level": str(d.severity),
        "message": {"text": _message(d)},
        "locations": [_location(d.filename, d.span, d.cell)],
        "partialFingerprints": {"galint/v1": fingerprint},
        "properties": {key: value for key, value in carried.items() if value not in (None, [])},
    }
    if d.related:
        result["relatedLocations"] = [
            {
                "id": number,
                **_location(related.filename or d.filename, related.span, related.cell or d.cell),
                "message": {"text": related.message},
            }
            for number, related in enumerate(d.related, 1)
        ]
    if d.fix is not None:
        result["fixes"] = [_fix(d.fix, d.filename)]
    return result


def _message(d: Diagnostic) -> str:
    """The message with the two formulas below it: many viewers show nothing else."""
    out = d.message
    if d.configuration:
        out += f" ({d.configuration})"
    if d.applied is not None and d.expected is not None:
        out += f"\napplied: {d.applied}\nlarge batch: {d.expected}"
    return out


def _fix(fix: Fix, filename: str) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.content}} for edit in fix.edits
    ]
    return {
        "description": {"text": fix.message},
        "artifactChanges": [{"artifactLocation": artifact(filename), "replacements": replacements}],
        "properties": {"applicability": str(fix.applicability)},
    }
