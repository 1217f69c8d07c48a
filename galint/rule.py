"""What a rule is: its stable code, its name, how grave it is and whether it can be fixed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How grave a finding is; ordered by `rank`."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for a note, 1 for a warning, 2 for an error."""
        return (Severity.NOTE, Severity.WARNING, Severity.ERROR).index(self)


class Fixability(StrEnum):
    """Whether a rule offers fixes at all (each fix says on its own how safe it is)."""

    ALWAYS = "always"
    SOMETIMES = "sometimes"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Rule:
    """Metadata of a rule; its prose lives in `rules/{code}-{name}.md`.

    `name` states the fault and reads well after "allow". `summary` is one line, lower case, without
    a final stop.
    """

    code: str
    name: str
    severity: Severity
    fixability: Fixability
    summary: str

    @property
    def page(self) -> str:
        """File name of the rule's page in `rules/`."""
        return f"{self.code}-{self.name}.md"
