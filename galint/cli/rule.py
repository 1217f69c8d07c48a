"""`galint rule`: the page of one rule, or of all."""

from __future__ import annotations

import json
from typing import Any

import click

from galint.cli.output import write
from galint.config.selectors import find_rule
from galint.errors import ConfigError
from galint.pages import page, url
from galint.registry import RULES
from galint.rule import Rule


@click.command("rule", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("rule", required=False)
@click.option("--all", "all_rules", is_flag=True, help="Show all rules.")
@click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", help="How to show them (default: text)."
)
def command(rule: str | None, all_rules: bool, output_format: str) -> int:
    """Show the page of RULE (a code such as GA101, or a name)."""
    if (rule is None) == (not all_rules):
        raise ConfigError("name one rule, or give --all" if rule is None else "give a rule or --all, not both")
    rules = RULES if rule is None else (find_rule(rule),)
    if output_format == "json":
        objects = [_object(item) for item in rules]
        write(json.dumps(objects if all_rules else objects[0], indent=2, ensure_ascii=False) + "\n", None)
    else:
        write("\n".join(page(item) for item in rules), None)
    return 0


def _object(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": str(rule.severity),
        "fix": str(rule.fixability),
        "summary": rule.summary,
        "explanation": page(rule),
        "url": url(rule.code, rule.name),
    }
