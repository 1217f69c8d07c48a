"""The data of a trace: events, micro-batches, windows and verdicts, and their JSON lines.

Nothing here knows torch, so a trace can be read, judged and rendered where it is not installed.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from galint.errors import GalintError

FORMAT_VERSION = 1

INTERRUPTED = "interrupted"
"""Why a script was ended that the user stopped with Ctrl-C."""

ENDED = "the script ended before a step"
"""Why a trace's last window has no numbers when micro-batches were left over."""


class TraceError(GalintError):
    """A trace file cannot be read, or a script could not be traced."""


class Status(StrEnum):
    """What the numbers say about one rule.

    confirmed: a measured number shows the fault. refuted: the numbers show its absence.
    consistent: what was seen fits the fault but no number proves it. inconclusive: it cannot be told.
    """

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    CONSISTENT = "consistent"
    INCONCLUSIVE = "inconclusive"


@dataclass(slots=True)
class Event:
    """One call that matters to gradients, at the user's own line. `seq` counts up within a rank."""

    seq: int
    kind: str
    file: str
    line: int
    function: str
    rank: int = 0
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Micro:
    """One micro-batch's backward as one optimizer saw it.

    `factor` is what the loss was multiplied with before backward, relative to its own mean (None when
    neither the graph nor a loss function tells). `scale` is the loss scale. `items` is what the loss
    averages over (samples or tokens). `reduction` is mean, sum or unknown. `cleared` says where a
    `zero_grad` removed it before the step. `synced` says whether its backward communicated.
    """

    file: str
    line: int
    seq: int
    loss: str = "unknown"
    batch_size: int | None = None
    items: float | None = None
    reduction: str = "unknown"
    factor: float | None = None
    scale: float = 1.0
    norm: float | None = None
    batch: int = 0
    """Backwards of several losses of one batch have the same number: together they are one micro-batch."""
    cleared: tuple[str, int] | None = None
    elsewhere: bool = False
    """Its gradient was applied by another optimizer, so losing it here is no loss (GANs)."""
    after_epoch: bool = False
    """A training data loader was exhausted between the previous micro-batch and this one."""
    allreduces: int = 0
    bytes: int = 0
    synced: bool | None = None
    divisions: list[float] = field(default_factory=list)
    """The numbers that make up `factor`, one by one."""
    terms: list[float] = field(default_factory=list)
    """Factors of the terms of a summed loss, when they are told apart."""


@dataclass(slots=True)
class Window:
    """Everything between two steps of one optimizer.

    `w` are the recovered weights: applied = sum of w_i times g_i plus `carry` times what was left by the
    previous step, where g_i is the gradient of micro-batch i's own mean loss. `ratio`, `cosine` and
    `relative_error` compare the applied gradient with the equal-weight reference; `items_error`
    with the reference weighted by items. `residual` is the part the weights do not explain.
    """

    index: int
    optimizer: str
    file: str
    line: int
    seq: int = 0
    rank: int = 0
    micros: list[Micro] = field(default_factory=list)
    w: list[float] = field(default_factory=list)
    carry: float | None = None
    ratio: float | None = None
    cosine: float | None = None
    relative_error: float | None = None
    items_error: float | None = None
    residual: float | None = None
    predicted: list[float] = field(default_factory=list)
    """Coefficients of the raw gradients by the ledger of events: what the calls say should be applied."""
    clips: list[dict[str, Any]] = field(default_factory=list)
    unscales: list[dict[str, Any]] = field(default_factory=list)
    scaler_updates: list[dict[str, Any]] = field(default_factory=list)
    scheduler_steps: list[dict[str, Any]] = field(default_factory=list)
    side_effects: list[dict[str, Any]] = field(default_factory=list)
    no_sync_lines: list[dict[str, Any]] = field(default_factory=list)
    loader: bool = False
    """Whether a data loader was seen, so that ends of epochs are known."""
    skipped: bool = False
    idle: bool = False
    """No backward reached the step, and `.grad` held nothing else."""
    tail: bool = False
    dropped: int = 0
    """Micro-batches of a partial window that an end of epoch threw away before this one began."""
    dropped_at: tuple[str, int] | None = None
    allreduces: int = 0
    bytes: int = 0
    buckets: int | None = None
    """Collectives of one synchronised backward: the minimum a window needs (None without DDP)."""
    update_norm: float | None = None
    """How far the step moved the sampled parameters; first windows and doubtful ones only, as `parameter_norm`."""
    parameter_norm: float | None = None
    unsupported: str | None = None

    @property
    def n(self) -> int:
        """Micro-batches that belong to this window (those applied by another optimizer do not count)."""
        return len({micro.batch for micro in self.micros if not micro.elsewhere})

    @property
    def nw(self) -> list[float]:
        """N times w for each micro-batch: all ones for the large batch."""
        return [self.n * w for w, micro in zip(self.w, self.micros, strict=False) if not micro.elsewhere]

    @property
    def measured(self) -> bool:
        """Whether weights could be recovered."""
        return bool(self.w) and not self.skipped and self.unsupported is None


@dataclass(slots=True)
class Verdict:
    """What was measured about one rule, at the file and line that decides it.

    `finding` is filled in when a static finding was joined to it. `lines` are all places of the windows
    concerned, so that a finding at any of them can be joined. `measured` and `reference` are short texts.
    """

    rule: str
    status: Status
    filename: str
    line: int
    measured: str = ""
    reference: str = ""
    reason: str = ""
    optimizer: str = ""
    windows: list[int] = field(default_factory=list)
    lines: list[tuple[str, int]] = field(default_factory=list)
    finding: dict[str, Any] | None = None


@dataclass(slots=True)
class Header:
    """Where a trace comes from."""

    argv: list[str] = field(default_factory=list)
    torch: str = ""
    rank: int = 0
    world_size: int = 1
    device: str = "cpu"
    version: int = FORMAT_VERSION


@dataclass(slots=True)
class Trace:
    """A whole trace. `end` says how it ended: finished, stopped (enough windows) or the exception."""

    header: Header = field(default_factory=Header)
    events: list[Event] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the script ended by an exception or was killed."""
        return self.end.get("how", "killed") not in ("finished", "stopped")


Record = Header | Event | Window | Verdict
_T = TypeVar("_T")
_KINDS: dict[str, type[Any]] = {"trace": Header, "event": Event, "window": Window, "verdict": Verdict}


def _plain(value: Any) -> Any:
    """JSON has no NaN or infinity: they become text, so that every reader can read the line."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Micro):
        return _fields(value)
    return str(value)


def _fields(record: Any) -> dict[str, Any]:
    return {name: _plain(getattr(record, name)) for name in record.__slots__}


def to_json(record: Record) -> dict[str, Any]:
    """A record as a JSON object with its `type`."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(record, cls))
    return {"type": kind, **_fields(record)}


def to_line(record: Record) -> str:
    """One line of a trace file, without the line end."""
    return json.dumps(to_json(record), ensure_ascii=False, allow_nan=False)


def _floats(value: Any) -> Any:
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    if isinstance(value, list):
        return [_floats(v) for v in value]
    return value


def _build(cls: type[_T], body: dict[str, Any]) -> _T:
    names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**{k: _floats(v) for k, v in body.items() if k in names})


def _pair(value: Any) -> tuple[str, int] | None:
    return None if value is None else (str(value[0]), int(value[1]))


def from_json(body: dict[str, Any]) -> Record | dict[str, Any]:
    """The record of a JSON object; an object of another type (the end line) is returned as it is.

    Raises TraceError when a field is missing.
    """
    cls = _KINDS.get(str(body.get("type")))
    if cls is None:
        return body
    try:
        if cls is Window:
            window = _build(Window, body)
            window.micros = [_build(Micro, m) for m in body.get("micros", ())]
            for micro in window.micros:
                micro.cleared = _pair(micro.cleared)
            window.dropped_at = _pair(window.dropped_at)
            return window
        record: Record = _build(cls, body)
    except TypeError as error:
        raise TraceError(f"not a galint trace line: {error}") from error
    if isinstance(record, Verdict):
        record.status = Status(record.status)
        record.lines = [(str(f), int(n)) for f, n in record.lines]
    return record


def read_lines(lines: Iterable[str]) -> Iterator[Record | dict[str, Any]]:
    """Records of a trace's lines. A torn last line (the script was killed) is left out."""
    for text in lines:
        try:
            body = json.loads(text)
        except ValueError:
            return
        if isinstance(body, dict):
            yield from_json(body)


def add(trace: Trace, record: Record | dict[str, Any]) -> None:
    """Put one record where it belongs in a trace."""
    match record:
        case Header():
            trace.header = record
        case Event():
            trace.events.append(record)
        case Window():
            trace.windows.append(record)
        case Verdict():
            trace.verdicts.append(record)
        case {"type": "end"}:
            trace.end = record


def read(path: Path) -> Trace:
    """A trace from its file. Raises TraceError when it cannot be read."""
    trace = Trace()
    try:
        with path.open(encoding="utf-8") as stream:
            for record in read_lines(stream):
                add(trace, record)
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"cannot read the trace `{path}`: {error}") from error
    return trace
