"""Rewrites what is made from the code: the shipped configuration schema, the README's rule table and its diagnostic.

`python tests/regenerate.py` after a new rule, setting or message; tests fail while something is stale.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from galint.config import json_schema
from galint.registry import RULES

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "galint/config/schema.json"
README = ROOT / "README.md"
SHOWN = "fixtures/GA101-zero-grad-in-window/zero_dedented_below_guard.py"
"""The fixture whose finding the README shows."""


def schema() -> str:
    """The text of the shipped schema."""
    return json.dumps(json_schema(), indent=2) + "\n"


def readme(text: str) -> str:
    """The README with today's rule table and diagnostic."""
    rows = "".join(f"| {rule.code} | {rule.name} | {rule.summary} | {rule.severity} |\n" for rule in RULES)
    text = re.sub(r"(\| --- \| --- \| --- \| --- \|\n)(?:\| GA.*\n)*", lambda match: match[1] + rows, text)
    done = subprocess.run(
        [sys.executable, "-m", "galint", SHOWN, "--isolated", "--no-cache", "--quiet"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    shown = done.stdout.strip() + "\n"
    return re.sub(r"(```text\n).*?(```)", lambda match: match[1] + shown + match[2], text, count=1, flags=re.DOTALL)


if __name__ == "__main__":
    SCHEMA.write_text(schema(), encoding="utf-8")
    README.write_text(readme(README.read_text("utf-8")), encoding="utf-8")
