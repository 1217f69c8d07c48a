"""`python standin.py ARGS` is `galint ARGS` with an engine that sleeps, dies or finds on demand."""

from __future__ import annotations

import os
import signal
import sys
import time

from galint import engine
from galint.config import Config
from galint.diagnostic import Diagnostic, Report
from galint.registry import RULES
from galint.source import Source, Span


def lint(source: Source, config: Config, root: object = None) -> Report:
    """One GA101 a file; `# standin: sleep` creates the file $STANDIN_SLEEPS and waits a minute, `# standin: die` kills the process."""
    if "# standin: sleep" in source.text:
        if told := os.environ.get("STANDIN_SLEEPS"):
            open(told, "w").close()
        time.sleep(60)
    if "# standin: die" in source.text:
        os.kill(os.getpid(), signal.SIGKILL)
    rule = next(rule for rule in RULES if rule.code == "GA101")
    found = Diagnostic(rule.code, rule.name, rule.severity, "it is bad", source.filename, Span(1, 0, 1, 5))
    return Report([found], 1, 1, 1, followed=[])


if __name__ == "__main__":
    engine.lint = lint
    from galint.cli import main

    main(sys.argv[1:])
