"""What a run asks of the next one: a real N for a default of one, loaders that N divides, another N."""

from __future__ import annotations

from typing import Any

from galint.run.facts import RunResult
from galint.run.scenario import Scenario
from galint.run.summary import moduli_of, multiple, nominal
from galint.run.toward import Toward


class Fitting(Toward):
    """Fits scenarios to what the runs showed."""

    def window_of(self, run: RunResult, scenario: Scenario) -> int:
        """The N of a run: the modulus of its step guards, else the longest window."""
        best = 0
        for value in self._guard_numbers(run).values():
            if 1 < value <= 512:
                best = max(best, value)
        return best or scenario.window

    def _guard_numbers(self, run: RunResult) -> dict[str, int]:
        """Numbers in step guards: what counters are divided by, or compared with where nothing is divided."""
        exact: dict[str, int] = {}
        bounds: dict[str, int] = {}
        for moduli, _ in moduli_of(run):
            for label, value in moduli:
                if label.startswith("≥"):
                    if "len(" not in label:
                        bounds[label[1:]] = value
                else:
                    exact[label] = value
        for event in run.events:
            if event.kind == "accumulate":
                exact["gradient_accumulation_steps"] = event.data["n"]
        return exact or bounds

    def _soft_keys(self, run: RunResult) -> dict[str, int]:
        """Settings with a default that take part in step guards, and their values."""
        out: dict[str, int] = {}
        numbers = self._guard_numbers(run)
        for moduli, keys in moduli_of(run):
            for label, value in moduli:
                name = label.lstrip("≥")
                if name in keys and name in numbers:
                    out[name] = value
        return out

    def _adapt(self, run: RunResult, scenario: Scenario) -> Scenario:
        """Give a default N of 1 a real value, and fit the loader to a literal N."""
        values: dict[str, Any] = {}
        for label, value in self._soft_keys(run).items():
            if value <= 1 or value > 64:
                values[label] = scenario.window
        for key in self._ones(run):
            values.setdefault(key, scenario.window)
        values |= nominal(run, scenario.window)
        changed = scenario.variant(values=values)
        n = 1
        for label, value in self._guard_numbers(run).items():
            number = values.get(label, value)
            if 1 < number <= 512:
                n = max(n, number)
        return changed.variant(length=multiple(n if n > 1 else scenario.window))

    def _ones(self, run: RunResult) -> list[str]:
        """Settings whose default of 1 switches accumulation off (Accelerate's N, an inner loop's length)."""
        out: list[str] = []
        for event in run.events:
            if event.kind == "accumulate" and event.data["n"] == 1:
                out += event.data.get("keys", [])
        out += run.facts.get("odd_windows", [])
        return out

    def _other(self, run: RunResult, scenario: Scenario) -> Scenario:
        """The same with another N, where N is a setting and not a literal."""
        values = {label: 3 for label, value in self._soft_keys(run).items() if value > 1}
        for key in scenario.values:
            values.setdefault(key, 3)
        for key, role in run.roles.items():
            if role == "window":
                values.pop(key, None)
        for key, (_, size) in run.facts.get("quotients", {}).items():
            if key in scenario.values:
                values[key] = 3 * size
        literal = max((v for k, v in self._guard_numbers(run).items() if k.isdigit() and 1 < v <= 512), default=0)
        changed = scenario.variant(window=3, values=values)
        return changed.variant(length=multiple(literal or 3))
