"""One optimizer's ledger of one run, told window by window and micro-batch by micro-batch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from galint.checks.view import View
from galint.explain.model import Fate, Happening, Kind, MicroRow, Verdict, Weight, WindowView
from galint.ledger import Coefficient, Entry, OptimizerLedger, Step, formula, unsigned
from galint.run.project import located
from galint.source import Span

Scaler = Literal["scaled", "unscaled", "mixed"]
_SHORT = 6
"""Terms of a formula that are always written out."""
_EVENTS: dict[str, Kind] = {
    "forward": "forward",
    "no_sync": "no_sync",
    "sync_flag": "sync_flag",
    "rescale": "rescale",
    "scheduler": "scheduler",
}
_MARKS: dict[str, Kind] = {"clear": "clear", "unscale": "unscale", "clip": "clip", "update": "update"}


@dataclass(slots=True)
class _Item:
    """A happening with its place in the run."""

    seq: int
    micro: int
    seen: Happening
    entries: list[Entry] = field(default_factory=list)
    step: Step | None = None


@dataclass(slots=True)
class _Draft:
    """A window while its happenings are being dealt out."""

    step: Step | None
    tokens: list[int]
    rows: dict[int, list[_Item]]
    opening: list[_Item] = field(default_factory=list)
    closing: list[_Item] = field(default_factory=list)


def windows(view: View, ledger: OptimizerLedger, loop: Span) -> list[WindowView]:
    """Every window with a micro-batch of `loop`, in order, numbered from 1; the last one may have no step.

    A lone backward outside any loop stands for its loop.
    """
    end = _end(view, ledger)
    items = sorted((i for i in _items(view, ledger) if i.seq < end), key=lambda item: item.seq)
    drafts = _deal(items, ledger, view.left(ledger))
    if view.run.truncated and drafts and drafts[-1].step is None and len(drafts) > 1:
        drafts.pop()  # the run was cut short inside it: no step was seen because none was waited for
    after = _Simulation(view, ledger).replay(items)
    scaled = any(b.scaled for b in view.run.backwards)
    out = [_window(view, d, after, scaled) for d in drafts if _touches(view, d, loop)]
    return [replace(w, numbers=(k,)) for k, w in enumerate(out, 1)]


def _end(view: View, ledger: OptimizerLedger) -> int:
    """Where a second call constructs the optimizer anew: what follows is the new one's affair."""
    twins = [other for other in view.run.ledgers.values() if other.name == f"{ledger.name}'" and other.steps]
    firsts = {step.window[0] for other in twins for step in other.steps[:1] if step.window}
    events = [e.seq for e in view.run.events if e.micro in firsts]
    last = ledger.steps[-1].seq if ledger.steps else 0
    return min((seq for seq in events if seq > last), default=1 << 60)


def merged(all_windows: Iterable[WindowView]) -> list[WindowView]:
    """Windows that look alike told once, with all their numbers, in the order of the first of each kind."""
    out: dict[WindowView, WindowView] = {}
    for window in all_windows:
        kind = shape(window)
        known = out.get(kind)
        out[kind] = window if known is None else replace(known, numbers=known.numbers + window.numbers)
    return list(out.values())


def shape(window: WindowView) -> WindowView:
    """The window without its numbers: equal for windows that look alike.

    What happens before the first window (the clear that stands before the loop) does not tell it apart.
    """
    first, *rest = window.rows or (None,)
    if first is not None:
        kept = tuple(h for h in first.happenings if h.kind != "clear" or first.number > 1)
        rows = (replace(first, happenings=kept), *(r for r in rest if r is not None))
        window = replace(window, rows=rows)
    return replace(window, numbers=(), opening=())


# --- the run's events, of one optimizer ----------------------------------------------------------


def _happening(kind: Kind, span: Span, detail: str) -> Happening:
    """Something at its place: in the explained file, or named with the file that was followed there."""
    path, own = located(span)
    return Happening(kind, own, detail, "" if path is None else os.path.relpath(path))


def _items(view: View, ledger: OptimizerLedger) -> Iterator[_Item]:
    for event in view.run.events:
        kind = _EVENTS.get(event.kind)
        if kind is not None:
            yield _Item(event.seq, event.micro, _happening(kind, event.span, _event_detail(event.kind, event)))
    steps = ledger.steps
    for mark in [m for s in steps for m in s.marks] + ledger.marks:
        kind = _MARKS.get(mark.kind)
        if kind is None:
            continue
        held = "" if mark.kind == "update" and not mark.pending else _held(mark.pending)
        if mark.kind == "clip" and mark.pending:
            held += ", scaled" if mark.scaled else ""
        if mark.kind == "clear" and mark.pending:
            held = f"discards {held}"
        elif mark.kind == "clear":
            held = ""
        yield _Item(mark.seq, mark.micro, _happening(kind, mark.span, held))
    by_seq: dict[int, list[Entry]] = {}
    for entry in _entries(ledger):
        known = by_seq.setdefault(entry.seq, [])
        if all(k.micro != entry.micro for k in known):
            known.append(entry)
    for seq, entries in by_seq.items():
        span = entries[0].span
        yield _Item(seq, entries[-1].micro, _happening("backward", span, ""), entries)
    tokens = {e.span: [] for e in view.run.events if e.kind == "step"}  # type: dict[Span, list[tuple[int, int]]]
    for event in view.run.events:
        if event.kind == "step":
            tokens[event.span].append((event.seq, event.micro))
    for step in steps:
        near = min(tokens.get(step.span, ()), key=lambda pair: abs(pair[0] - step.seq), default=(0, 0))
        detail = "by the scaler, which unscales" if step.unscaled_here and not _unscaled(step) else ""
        seen = _happening("step", step.span, detail)
        yield _Item(step.seq, near[1], seen, step=step)


def _event_detail(kind: str, event: object) -> str:
    if kind == "rescale":
        return f"gradients × {getattr(event, 'text', '')}"
    if kind == "sync_flag":
        return "on" if getattr(event, "data", {}).get("on") else "off"
    return ""


def _unscaled(step: Step) -> bool:
    return any(mark.kind == "unscale" for mark in step.marks)


def _held(count: int) -> str:
    return f"{count} micro-batch{'' if count == 1 else 'es'}"


def _entries(ledger: OptimizerLedger) -> Iterator[Entry]:
    for step in ledger.steps:
        yield from step.applied
        yield from (entry for entry, _ in step.lost)
    yield from (entry for entry in ledger.pending if not entry.applied)
    yield from (entry for entry, _ in ledger.lost)


def _deal(items: list[_Item], ledger: OptimizerLedger, left: list[int]) -> list[_Draft]:
    """Give each happening to its micro-batch, or to what happens before or after an inner loop."""
    drafts: list[_Draft] = []
    ends: list[tuple[Step | None, list[int]]] = [(s, list(dict.fromkeys(s.window))) for s in ledger.steps]
    known = {item.micro for item in items}
    ends.append((None, [token for token in left if token in known]))
    start, closer = -1, -1
    for step, tokens in ends:
        end = step.seq if step is not None else 1 << 60
        mine = [i for i in items if start < i.seq <= end]
        draft = _Draft(step, tokens, {t: [] for t in tokens})
        begun = False
        stepping = next((i.micro for i in reversed(mine) if step is not None and i.step is step), -1)
        for item in mine:
            begun = begun or bool(item.entries)
            home = _home(draft, item)
            if home is not None:
                home.append(item)
            elif drafts and item.micro == closer and not begun and item.step is None:
                _after(drafts[-1], item)
            elif item.seen.kind in ("forward", "no_sync"):
                continue  # of an evaluation loop: no backward belongs to it
            elif begun or item.step is not None:
                draft.rows.get(stepping, draft.closing).append(item)
            else:
                draft.opening.append(item)
        closer = stepping if step is not None else closer
        start = end
        if tokens or (step is not None and step.carried):
            drafts.append(draft)
    return drafts


def _home(draft: _Draft, item: _Item) -> list[_Item] | None:
    """The row that a happening belongs to, or what happens behind the micro-batches; None when it is neither.

    Iterations are numbered as they start, so one of a loop inside a micro-batch has the next higher number.
    """
    token = item.micro
    if token not in draft.rows:
        if item.seen.kind in ("forward", "no_sync"):
            return None
        token = max((t for t in draft.tokens if t < token), default=-1)
        if token < 0:
            return None
    later = any(other > token and any(i.entries for i in row) for other, row in draft.rows.items())
    return draft.closing if later and not item.entries else draft.rows[token]


def _touches(view: View, draft: _Draft, loop: Span) -> bool:
    if not draft.tokens:
        return draft.step is not None
    # What is left over at the end counts for the loop that left it; a step's window for each of its loops.
    tokens = draft.tokens if draft.step is not None else draft.tokens[-1:]
    spans = {e.span for t in tokens for i in draft.rows[t] for e in i.entries}
    return loop in spans or any(m.loop == loop for t in tokens if (m := view.micro(t)) is not None)


def _after(draft: _Draft, item: _Item) -> None:
    """What follows a step in the same iteration belongs to the window that the step closed."""
    if item.micro in draft.rows:
        draft.rows[item.micro].append(item)
    elif item.seen.kind not in ("forward", "no_sync"):
        draft.closing.append(item)


# --- what the gradient holds after each happening --------------------------------------------------


@dataclass(slots=True)
class _After:
    """The accumulated gradient after a happening."""

    held: dict[int, Coefficient]
    scaler: Scaler | None


class _Simulation:
    """Replays a ledger's happenings, to say what the gradient holds at each."""

    def __init__(self, view: View, ledger: OptimizerLedger) -> None:
        self.view = view
        self.scaled_at = {b.seq: b.scaled for b in view.run.backwards}
        self.rescaled = any(e.kind == "rescale" for e in view.run.events)

    def replay(self, items: list[_Item]) -> dict[int, _After]:
        """seq → state after that happening."""
        held: dict[int, Coefficient] = {}
        scaled: dict[int, bool] = {}
        out: dict[int, _After] = {}
        spent = False
        for item in items:
            kind = item.seen.kind
            if item.entries:
                if spent:
                    held, scaled, spent = {}, {}, False
                for entry in item.entries:
                    held[entry.micro] = self.share(entry)
                    scaled[entry.micro] = scaled.get(entry.micro, False) or self.scaled_at.get(entry.seq, entry.scaled)
            elif kind == "clear":
                held, scaled = {}, {}
            elif kind == "unscale":
                scaled = dict.fromkeys(scaled, False)
            out[item.seq] = _After(dict(held), _state(scaled))
            if item.step is not None:
                spent = True
        return out

    def share(self, entry: Entry) -> Coefficient:
        """An entry's coefficient as it was at backward."""
        if self.rescaled and len(entry.facts.terms) == 1:
            return entry.facts.terms[0].substitute(self.view.known)
        return self.view.coefficient(entry)


def _state(scaled: dict[int, bool]) -> Scaler | None:
    if not scaled:
        return None
    return "scaled" if all(scaled.values()) else "mixed" if any(scaled.values()) else "unscaled"


def _window(view: View, draft: _Draft, after: dict[int, _After], scaler: bool) -> WindowView:
    step = draft.step
    place = {token: number for number, token in enumerate(draft.tokens, 1)}
    applied = {e.micro for e in step.applied} if step is not None else set()
    lost = {e.micro: mark.span for e, mark in step.lost} if step is not None else {}
    rows = []
    for token in draft.tokens:
        items = draft.rows[token]
        entries = [e for i in items for e in i.entries]
        until = [i for i in items if step is None or i.seq <= step.seq]
        at_step = [i for i in until if i.step is step and step is not None]
        last = at_step or until
        state = after[last[-1].seq] if last else _After({}, None)
        if token == draft.tokens[-1] and step is not None and any(i.step is step for i in items):
            holds = _applied(view, step)
        else:
            holds = grouped({place[t]: c for t, c in sorted(state.held.items()) if t in place})
        fate: Fate = "applied" if token in applied else "discarded" if token in lost else "pending"
        synced = {flag for e in entries for _, flag in e.facts.synced}
        rows.append(
            MicroRow(
                place[token],
                _share(view, entries),
                state.scaler if scaler else None,
                (True in synced) if synced else None,
                holds,
                tuple(sorted(place[t] for t in state.held if t in place)),
                fate,
                tuple(i.seen for i in items),
                lost.get(token) if fate == "discarded" else None,
                any(b.scaled for b in view.run.backwards if b.seq in {e.seq for e in entries}),
            )
        )
    return WindowView(
        (),
        tuple(rows),
        step.span if step is not None else None,
        _applied(view, step) if step is not None else "0",
        view.expected(step) if step is not None else "",
        _verdict(view, step, len(draft.tokens)),
        tuple(_weights(view, step, place)) if step is not None else (),
        len({e.micro for e in step.carried}) if step is not None else 0,
        tuple(i.seen for i in draft.opening),
        tuple(i.seen for i in draft.closing),
        tuple(_notes(step, draft)),
    )


def _applied(view: View, step: Step) -> str:
    """The applied gradient; what is still multiplied by the loss scale says so."""
    if not any(e.scaled for e in step.applied) and step.carried:
        return view.applied(step)
    order = {token: number for number, token in enumerate(dict.fromkeys(step.window), 1)}
    weights = {order[e.micro]: (view.coefficient(e), e.scaled) for e in step.applied if e.micro in order}
    return grouped(unsigned({k: c.times_symbol("scale", int(on)) for k, (c, on) in sorted(weights.items())}))


def grouped(weights: dict[int, Coefficient]) -> str:
    """A formula in which neighbours of the same coefficient stand together when there are many."""
    if len(weights) <= _SHORT:
        return formula(weights)
    groups: list[dict[int, Coefficient]] = []
    for number, weight in weights.items():
        if groups and number - 1 in groups[-1] and groups[-1][number - 1] == weight:
            groups[-1][number] = weight
        else:
            groups.append({number: weight})
    return " + ".join(map(formula, groups))


def _weights(view: View, step: Step, place: dict[int, int]) -> Iterator[Weight]:
    scaled = {place[e.micro] for e in step.applied if e.scaled and e.micro in place}
    for number, coefficient in view.weights(step).items():
        yield Weight(number, None if coefficient.symbols else coefficient.value, number in scaled)


def _share(view: View, entries: list[Entry]) -> str:
    shares = [str(c.substitute(view.known)) for e in entries for c in (e.facts.terms or (e.coefficient,))]
    return " and ".join(dict.fromkeys(s.removeprefix("1·") for s in shares))


def _verdict(view: View, step: Step | None, count: int) -> Verdict:
    if step is None:
        return "different"
    if step.carried or any(e.scaled for e in step.applied):
        return "different"
    weights = list(view.weights(step).values())
    if any(w.symbols for w in weights) or any(e.facts.summed or "?" in e.facts.hidden for e in step.applied):
        return "unknown"
    wanted = Fraction(1, max(count, 1))
    return "same" if len(weights) == count and all(w.value == wanted for w in weights) else "different"


def _notes(step: Step | None, draft: _Draft) -> Iterator[str]:
    if step is None:
        yield f"no step follows: {_held(len(draft.tokens))} never applied"
        return
    if any(e.scaled for e in step.applied):
        yield "the gradient is still multiplied by the loss scale"
    if any(e.facts.summed for e in step.applied):
        yield "the loss is a sum over its samples, so 1/N is no mean"
    if step.skipped:
        yield "the step may be skipped"
