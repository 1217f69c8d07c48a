"""The formats for programs, each read back by an independent reader or checked against a schema."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from junitparser import JUnitXml
from reports import TRAIN, WIDE, context, report, train_finding

from galint.diagnostic import Report
from galint.registry import RULES
from galint.render import FORMATS, Context, render
from galint.render.fingerprint import fingerprints

PLACE = {
    "type": "object",
    "required": ["row", "column"],
    "additionalProperties": False,
    "properties": {"row": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}},
}
TEXT_OR_NULL = {"type": ["string", "null"]}
DIAGNOSTIC = {
    "type": "object",
    "required": [
        "code", "name", "severity", "message", "filename", "location", "end_location", "applied", "expected",
        "assumptions", "configuration", "related", "fix", "url",
    ],
    "additionalProperties": False,
    "properties": {
        "code": {"pattern": "^GA\\d{3}$"},
        "name": {"pattern": "^[a-z0-9-]+$"},
        "severity": {"enum": ["error", "warning", "note"]},
        "message": {"type": "string"},
        "filename": {"type": "string"},
        "cell": {"type": "integer", "minimum": 1},
        "location": PLACE,
        "end_location": PLACE,
        "applied": TEXT_OR_NULL,
        "expected": TEXT_OR_NULL,
        "configuration": TEXT_OR_NULL,
        "assumptions": {"type": "array", "items": {"type": "string"}},
        "related": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "filename", "location", "end_location"],
                "properties": {"location": PLACE, "end_location": PLACE},
            },
        },
        "fix": {
            "type": ["object", "null"],
            "required": ["message", "applicability", "edits"],
            "additionalProperties": False,
            "properties": {
                "message": {"type": "string"},
                "applicability": {"enum": ["safe", "unsafe", "display"]},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["content", "location", "end_location"],
                        "additionalProperties": False,
                        "properties": {"content": {"type": "string"}, "location": PLACE, "end_location": PLACE},
                    },
                },
            },
        },
        "url": {"type": "string"},
    },
}  # fmt: skip
REPORT = {
    "type": "object",
    "required": ["version", "diagnostics", "summary"],
    "additionalProperties": False,
    "properties": {
        "version": {"const": 1},
        "diagnostics": {"type": "array", "items": DIAGNOSTIC},
        "summary": {
            "type": "object",
            "required": ["files", "loops", "understood", "not_understood"],
            "additionalProperties": False,
            "properties": {
                **{name: {"type": "integer", "minimum": 0} for name in ("files", "loops", "understood")},
                "not_understood": {
                    "type": "array",
                    "items": {"type": "object", "required": ["filename", "location", "reason"]},
                },
            },
        },
    },
}


def rendered(output_format: str, given: Report | None = None) -> Any:
    return json.loads(render(given or report(), output_format, context()))


def slice_of(text: str, start: tuple[int, int], end: tuple[int, int]) -> str:
    """What lies between two 1-based (row, column) places of one line."""
    assert start[0] == end[0]
    return text.splitlines()[start[0] - 1][start[1] - 1 : end[1] - 1]


# --- json --------------------------------------------------------------------------------------


def test_json_has_the_promised_shape() -> None:
    out = rendered("json")
    jsonschema.Draft202012Validator(REPORT).validate(out)
    assert out["summary"] == {
        "files": 12, "loops": 3, "understood": 2,
        "not_understood": [
            {
                "filename": "pkg/wide.py", "location": {"row": 7, "column": 1},
                "reason": "the optimizer goes into `train_one`",
            }
        ],
    }  # fmt: skip
    first, second, third = out["diagnostics"]
    assert (first["location"], first["end_location"]) == ({"row": 5, "column": 5}, {"row": 5, "column": 26})
    assert [r["filename"] for r in first["related"]] == ["pkg/train.py", "pkg/wide.py"]
    assert first["url"] == "rules/GA101-zero-grad-in-window.md"
    assert second["fix"] is None and "cell" not in second and third["cell"] == 3


def test_json_columns_count_code_points() -> None:
    second = rendered("json")["diagnostics"][1]
    start, end = second["location"], second["end_location"]
    assert slice_of(WIDE, (start["row"], start["column"]), (end["row"], end["column"])) == "f(x).backward()"


def test_json_lines_are_one_diagnostic_each() -> None:
    out = [json.loads(line) for line in render(report(), "json-lines", context()).splitlines()]
    assert out == rendered("json")["diagnostics"]


# --- sarif -------------------------------------------------------------------------------------


def test_sarif_is_read_by_an_independent_model() -> None:
    from sarif_pydantic import Sarif

    log = Sarif.model_validate_json(render(report(), "sarif", context()))
    assert log.version == "2.1.0"
    (run,) = log.runs
    assert run.tool.driver.name == "galint" and run.tool.driver.version == "1.2.3"
    assert [result.rule_id for result in run.results or []] == ["GA101", "GA601", "GA403"]


def test_sarif_rules_carry_help_and_properties() -> None:
    (run,) = rendered("sarif")["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.code for rule in RULES]
    for rule in rules:
        assert rule["help"]["text"] and rule["help"]["markdown"] and rule["shortDescription"]["text"].endswith(".")
        assert rule["properties"]["tags"] and rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_results_carry_places_fixes_and_fingerprints() -> None:
    (run,) = rendered("sarif")["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    first, second, third = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "pkg/train.py", "uriBaseId": "%SRCROOT%"}
    region = place["region"]
    start, end = (region["startLine"], region["startColumn"]), (region["endLine"], region["endColumn"])
    assert slice_of(TRAIN, start, end) == "optimizer.zero_grad()"
    (change,) = first["fixes"][0]["artifactChanges"]
    assert [r["insertedContent"]["text"] for r in change["replacements"]] == ["", "\n"]
    assert first["properties"]["applied"] == "g4/4" and first["properties"]["configuration"]
    assert "large batch: (g1 + g2 + g3 + g4)/4" in first["message"]["text"]
    assert len(first["relatedLocations"]) == 2
    assert "fixes" not in second
    assert third["locations"][0]["logicalLocations"] == [{"name": "cell 3", "kind": "module"}]
    assert len({r["partialFingerprints"]["galint/v1"] for r in run["results"]}) == 3


def test_sarif_uris_are_escaped_and_absolute_paths_are_file_uris() -> None:
    odd = [replace(train_finding(), filename=name) for name in ("a b#é.py", "/x/y z.py", "\udcff.py")]
    blank = Context(version="1")
    (run,) = json.loads(render(Report(odd), "sarif", blank))["runs"]
    uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]]
    assert uris == ["a%20b%23%C3%A9.py", "file:///x/y%20z.py", "%FF.py"]


def test_an_internal_error_is_said_in_sarif() -> None:
    broken = Report(internal_errors=["a.py: GA999 internal error: KeyError: 'x'"])
    (run,) = json.loads(render(broken, "sarif", context()))["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "GA999" in invocation["toolExecutionNotifications"][0]["message"]["text"]


# --- fingerprints ------------------------------------------------------------------------------


def test_fingerprints_survive_moved_lines_and_differ_for_equal_ones() -> None:
    finding = train_finding()
    moved = replace(finding, span=finding.span._replace(row=7, end_row=7))
    later = ["", "", *TRAIN.splitlines()]
    (before,) = fingerprints([finding], context())
    (after,) = fingerprints([moved], context(lines=lambda filename, cell: later))
    assert before == after
    first, second = fingerprints([finding, finding], context())
    assert first == before and second != first


# --- gitlab, junit, rdjson, lsp ----------------------------------------------------------------

GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string"},
            "check_name": {"type": "string"},
            "fingerprint": {"type": "string"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "required": ["path", "positions"],
                "properties": {"positions": {"required": ["begin"], "properties": {"begin": {"required": ["line"]}}}},
            },
        },
    },
}


def test_gitlab_objects_have_what_code_quality_reads() -> None:
    out = rendered("gitlab")
    jsonschema.Draft202012Validator(GITLAB).validate(out)
    assert [item["severity"] for item in out] == ["major", "minor", "info"]
    assert out[0]["location"] == {
        "path": "pkg/train.py", "positions": {"begin": {"line": 5, "column": 5}, "end": {"line": 5, "column": 26}},
    }  # fmt: skip
    assert len({item["fingerprint"] for item in out}) == 3


def test_junit_is_read_by_an_independent_parser() -> None:
    text = render(report(), "junit", context())
    suites = list(JUnitXml.fromstring(text.encode()))
    assert [(suite.name, suite.tests, suite.failures) for suite in suites] == [
        ("pkg/train.py", 1, 1), ("pkg/wide.py", 1, 1), ("run.ipynb", 1, 1),
    ]  # fmt: skip
    (case,) = list(suites[1])
    assert case.name == "GA601 ddp-without-no-sync"
    assert case.result[0].message == 'gradients are all-reduced 4 times, <1> & "more", 100%'


def test_junit_without_findings_holds_one_test_that_passed() -> None:
    (suite,) = list(JUnitXml.fromstring(render(Report(), "junit", context()).encode()))
    assert (suite.tests, suite.failures) == (1, 0)


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\ufffe", "\ud800", "]]>", '"'])
def test_junit_stays_well_formed(char: str) -> None:
    odd = replace(train_finding(), message=f"a{char}b", filename=f"a{char}.py")
    root = ElementTree.fromstring(render(Report([odd]), "junit", Context()).encode())
    assert root.tag == "testsuites"


def test_rdjson_columns_count_utf8_bytes() -> None:
    out = rendered("rdjson")
    assert out["source"]["name"] == "galint"
    assert [d["severity"] for d in out["diagnostics"]] == ["ERROR", "WARNING", "INFO"]
    first, second, _ = out["diagnostics"]
    span = second["location"]["range"]
    line = WIDE.encode().splitlines()[span["start"]["line"] - 1]
    assert line[span["start"]["column"] - 1 : span["end"]["column"] - 1] == b"f(x).backward()"
    assert [s["text"] for s in first["suggestions"]] == ["", "\n"]
    assert first["relatedLocations"][1]["location"]["path"] == "pkg/wide.py"


def test_lsp_objects_are_one_a_file_with_utf16_positions() -> None:
    out = [json.loads(line) for line in render(report(), "lsp", context()).splitlines()]
    assert [item["uri"].rpartition("/")[2] for item in out] == ["train.py", "wide.py", "run.ipynb"]
    (second,) = out[1]["diagnostics"]
    span = second["range"]
    units = WIDE.splitlines()[span["start"]["line"]].encode("utf-16-le")
    assert units[span["start"]["character"] * 2 : span["end"]["character"] * 2].decode("utf-16-le") == "f(x).backward()"
    (first,) = out[0]["diagnostics"]
    assert (first["severity"], first["code"], first["source"]) == (1, "GA101", "galint")
    assert first["data"]["fix"]["title"] == "move `zero_grad` below the step"
    assert first["relatedInformation"][1]["location"]["uri"].endswith("pkg/wide.py")
    assert first["codeDescription"]["href"].startswith("file://")


# --- all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_is_the_same_twice_and_ends_with_a_newline(output_format: str) -> None:
    text = render(report(), output_format, context())
    assert text == render(report(), output_format, context()) and text.endswith("\n")
