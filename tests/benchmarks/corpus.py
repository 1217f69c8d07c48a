"""How galint does on a labelled list of public files: understood loops, precision and recall per rule.

usage: python tests/benchmarks/corpus.py LABELS MANIFEST [--codes GA101,GA201] [--show found|wrong|missed|lost]

LABELS is a JSON-lines file (id, labels [{rule, line}], clean, confidence); MANIFEST maps ids to files
(id, file). The files themselves are not part of the project. A finding counts as right when a label of its code
stands within SLACK lines or when the label names the loop that holds it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from galint.config import Config
from galint.config.selectors import Selection
from galint.driver import lint_bytes

CODES = {
    "R1": ("GA101",),
    "R2": ("GA201", "GA203", "GA204"),
    "R3": ("GA301", "GA302"),
    "R4": ("GA401",),
    "R4t": ("GA402", "GA403"),
    "R5": ("GA501",),
    "R6": ("GA601", "GA602"),
    "X:clip-per-micro": ("GA303",),
    "X:clip_per_micro": ("GA303",),
    "X:clip_without_unscale": ("GA302",),
    "X:double-scaling": ("GA202",),
    "X:double_scaling": ("GA202",),
    "X:sync-flag-after-forward": ("GA603",),
    "X:ddp-bypassed": ("GA603",),
    "X:no_sync-never-released": ("GA603",),
    "X:no_sync-phase-mismatch": ("GA603",),
    "X:continue-skips-boundary": ("GA104",),
    "X:sched_per_micro": ("GA404",),
    "X:scaler_update_per_micro": ("GA304",),
    "X:accumulate_list_arg": ("GA701",),
    "X:double_accumulate": ("GA701",),
}
SIX = {"GA101", "GA201", "GA301", "GA401", "GA501", "GA601"}


@dataclass
class Tally:
    """Counts of one run over the list."""

    right: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    loops: int = 0
    understood: int = 0
    lost: list[str] = field(default_factory=list)
    slow: list[tuple[float, str]] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)


def judge(
    rows: list[dict[str, Any]],
    files: dict[str, dict[str, Any]],
    config: Config,
    only: set[str],
    slack: int,
    whole: bool,
) -> Tally:
    """Lint every listed file and compare."""
    tally = Tally()
    for row in rows:
        entry = files.get(row["id"])
        if entry is None:
            continue
        path, root = Path(entry["file"]), None
        if whole and entry.get("checkout") and entry.get("path_in_checkout"):
            root = Path(entry["checkout"])
            path = (
                root / entry["path_in_checkout"]
                if not str(entry["path_in_checkout"]).startswith("/")
                else Path(entry["path_in_checkout"])
            )
        start = time.perf_counter()
        report = lint_bytes(path.read_bytes(), str(path), config, path, root)
        tally.slow.append((time.perf_counter() - start, row["id"]))
        tally.crashed += [f"{row['id']} {line}" for line in report.internal_errors]
        tally.loops += report.loops
        tally.understood += report.understood
        tally.lost += [f"{row['id']} {n.span.row} {n.reason}" for n in report.not_understood]
        labels = [
            (label["rule"], CODES[label["rule"]], label["line"]) for label in row["labels"] if label["rule"] in CODES
        ]
        hits: set[int] = set()
        findings = [d for d in report.diagnostics if d.code in only]
        for diagnostic in findings:
            match = None
            for index, (_, codes, line) in enumerate(labels):
                if diagnostic.code in codes and (
                    abs(diagnostic.span.row - line) <= slack
                    or any(abs(r.span.row - line) <= 2 for r in diagnostic.related)
                ):
                    match = index
                    break
            if match is None:
                match = next((k for k, (_, codes, _) in enumerate(labels) if diagnostic.code in codes), None)
            where = f"{row['id']}:{diagnostic.span.row} {diagnostic.code} {diagnostic.message[:110]}"
            if match is not None:
                hits.add(match)
                tally.right[diagnostic.code] += 1
            else:
                others = ",".join(label["rule"] for label in row["labels"])
                tally.wrong.append(f"{where} | {diagnostic.configuration or ''} | labels: {others} {row['confidence']}")
        for index, (rule, codes, line) in enumerate(labels):
            if not set(codes) & only:
                continue
            mark = (rule, row["confidence"])
            if index in hits or any(d.code in codes for d in findings):
                tally.found[mark] += 1
            else:
                why = row["labels"][index]["why"] if index < len(row["labels"]) else ""
                tally.missed[mark].append(f"{row['id']}:{line} {why[:100]}")
    return tally


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", type=Path)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--codes", default=",".join(sorted({c for group in CODES.values() for c in group})))
    parser.add_argument("--slack", type=int, default=8)
    parser.add_argument("--whole", action="store_true", help="lint the file inside its repository")
    parser.add_argument("--id", help="only these rows, comma-separated")
    parser.add_argument("--show", default="wrong,missed,lost")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.labels.read_text().splitlines() if line.strip()]
    if args.id:
        rows = [r for r in rows if r["id"] in args.id.split(",")]
    files = {m["id"]: m for m in map(json.loads, args.manifest.read_text().splitlines())}
    config = Config(selection=(Selection(select=("ALL",)),)) if "select" in Selection.__dataclass_fields__ else Config()
    tally = judge(rows, files, config, set(args.codes.split(",")), args.slack, args.whole)
    shown = args.show.split(",")
    if "wrong" in shown:
        print("\n".join(f"WRONG  {line}" for line in sorted(tally.wrong, key=lambda w: w.split()[1])))
    if "missed" in shown:
        for (rule, confidence), lines in sorted(tally.missed.items()):
            print("\n".join(f"MISSED {rule} {confidence} {line}" for line in lines))
    if "lost" in shown:
        print("\n".join(f"LOST   {line}" for line in tally.lost))
    print("\n".join(f"CRASH  {line}" for line in tally.crashed))
    wrong: Counter[str] = Counter(w.split()[1] for w in tally.wrong)
    print(f"{'code':8}{'right':>7}{'wrong':>7}{'precision':>11}")
    for code in sorted(set(tally.right) | set(wrong)):
        total = tally.right[code] + wrong[code]
        print(f"{code:8}{tally.right[code]:>7}{wrong[code]:>7}{tally.right[code] / total:>11.2f}")
    six_right, six_wrong = sum(tally.right[c] for c in SIX), sum(wrong[c] for c in SIX)
    print(f"six rules: {six_right} right, {six_wrong} wrong, precision {six_right / max(six_right + six_wrong, 1):.2f}")
    for mark in sorted(set(tally.found) | set(tally.missed)):
        found, missed = tally.found[mark], len(tally.missed.get(mark, []))
        print(f"{mark[0]:22}{mark[1]:8} found {found} of {found + missed}")
    print(
        f"loops {tally.loops} understood {tally.understood} ({tally.understood / max(tally.loops, 1):.2f}); slowest {sorted(tally.slow)[-3:]}"
    )


if __name__ == "__main__":
    main()
