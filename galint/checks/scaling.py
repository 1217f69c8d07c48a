"""How the losses of a window are scaled, as the scaling rules (GA201 to GA205) ask it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from galint import program as p
from galint.checks.learning_rate import Rate, rate
from galint.checks.parts import quotient
from galint.checks.time_steps import over_time
from galint.checks.view import View
from galint.ledger import Coefficient, Entry, OptimizerLedger, Step
from galint.run.names import ONE_WINDOW
from galint.run.nodes import path_terminal, terminal
from galint.source import Span

_CHUNKY = re.compile(r"micro|chunk|accum|split|mini|sub|batch|piece|part|shard|round", re.I)
_DIVIDES = re.compile(r"\b(chunk|split|tensor_split)\(")
_NO_COUNT = frozenset({"batched", "enumerate", "split", "zip"})
"""Calls whose last argument says nothing of how many passes there are: other things, or the size of a part."""
_COUNTS = re.compile(r"range$")
_SIZE = re.compile(r"size|(^|_)bs$", re.I)
_RESCALES = re.compile(r"^_*(re)?(scale|normali[sz]e|div(ide)?|mul(tiply)?)_?(model_)?grad(ient)?s?_*$", re.I)


@dataclass(slots=True)
class Scaling:
    """The scaling of one backward's loss in a full window."""

    step: Step
    ledger: OptimizerLedger
    backward: Entry
    count: int
    """Micro-batches in the window."""
    label: str
    """What spells N."""
    coefficients: tuple[Coefficient, ...]
    """Of the loss's addends."""
    unscaled: bool
    assumptions: tuple[str, ...]
    waits: bool = False
    """No step applies the window: the guard is never true again."""


def scalings(view: View) -> Iterator[Scaling]:
    """For each backward of a steady, full window: is its coefficient free of N?"""
    if view.engine_on:
        return
    for ledger in view.ledgers:
        waits = view.stalled(ledger)
        closure = view.run.facts.get("closure") and waits is None
        if closure or view.run.facts.get("manual_grad") or _rescaled(view):
            continue
        cadence = view.cadence(ledger)
        chosen = [waits] if waits is not None else steady(view, view.steps(ledger))
        whole = [s for s in chosen if cadence is not None and len(dict.fromkeys(s.window)) == cadence.n]
        for step in whole or chosen:
            distinct = list(dict.fromkeys(e.micro for e in step.applied))
            spans = {e.span for e in step.applied}
            lost = any(e.span in spans for e, _ in step.lost)
            window = view.window(step)
            home = view.loop_of(window[-1]) if window else None
            window = [t for t in window if view.loop_of(t) == home]
            if len(window) < 2 or not is_accumulation(
                view, step, cadence is not None or any(g.moduli for g in step.guards)
            ):
                continue
            if len(distinct) < 2 and not lost:
                continue
            alone = len(spans) == 1 or view.lone(ledger)
            if not alone and not (cadence is not None and view.together and _in_each(step, window)):
                continue  # whose losses these are, the code does not show
            found: list[Scaling] = []
            if cadence is None and len({e.seq for e in step.applied}) < len(distinct):
                continue  # one backward over a sequence: its time steps are no micro-batches
            keys = view.n_keys(ledger)
            if len({e.micro for e in step.applied}.intersection(window)) < 2:
                continue  # the others of the window were cleared, or belong to another optimizer
            for entry in step.first_of_each():
                if entry.micro not in window and (cadence is None or entry.span in view.shared(ledger)):
                    continue  # a loss of the whole batch, before or after the micro-batches, or another optimizer's
                shared, passes = _shared(view, step, entry)
                coefficients = tuple(c.substitute(view.known).times(passes) for c in entry.facts.terms)
                found.append(
                    Scaling(
                        step,
                        ledger,
                        entry,
                        len(window),
                        (_parts_label(view, step, len(window)) or _loop_label(view, step))
                        if cadence is None
                        else cadence.label
                        if len(window) == cadence.n
                        else "",
                        coefficients,
                        _unscaled(view, ledger, entry, coefficients, keys - shared, shared, passes, len(window)),
                        _assumptions(view, entry),
                        waits is not None,
                    )
                )
            if alone or all(scaling.unscaled for scaling in found):
                yield from found


def _in_each(step: Step, window: list[int]) -> bool:
    """Whether every backward call of a window ran on each of its micro-batches."""
    ran: dict[Span, set[int]] = {}
    for entry in step.applied:
        ran.setdefault(entry.span, set()).add(entry.micro)
    return all(micros == {*window} for micros in ran.values())


def _shared(view: View, step: Step, entry: Entry) -> tuple[frozenset[str], int]:
    """The setting by which several passes over one micro-batch share its loss, and how many they are; else none and 1.

    `for _ in range(passes): (loss(batch + delta) / passes).backward()` applies the micro-batch's loss once.
    """
    passes = step.passes(entry)
    where = next((b.where for b in view.run.backwards if b.seq == entry.seq), ())
    node = loop_node(view, where[-1][0]) if where and passes > 1 else None
    if not isinstance(node, p.For):
        return frozenset(), 1
    words = set(re.findall(r"\w+", p.text(node.iter)))
    own = {label.lstrip("≥") for guard in step.guards for label, _ in guard.moduli}  # N, by which the step is gated
    found = {
        key
        for key in entry.facts.keys
        if own and key not in own and view.known.get(key) == passes and path_terminal(key) in words
    }
    return (frozenset(found), passes) if len(found) == 1 else (frozenset(), 1)


def _rescaled(view: View) -> bool:
    """True when the program hands its gradients to a function that scales them by a number of its own."""
    return view.static.calls_any(_RESCALES)


def steady(view: View, steps: list[Step]) -> list[Step]:
    """Full windows in the middle of each training loop's run, and the first one if it is alone.

    Loops that train one after the other with one optimizer each have theirs. Where no number gates the steps, a few
    longer windows among short ones are what a pass without a step left to the next one. What is flushed after a loop
    stands for the windows of none that steps itself.
    """
    full: dict[Span | None, list[Step]] = {}
    windows = Counter(view.top_of(s.window[-1]) for s in steps if s.window)
    for step in steps:
        if len(dict.fromkeys(step.window)) > 1:
            full.setdefault(view.top_of(step.window[-1]), []).append(step)
    out: list[Step] = []
    for top, group in full.items():
        if 2 * len(group) >= windows[top] or any(guard.moduli for step in group for guard in step.guards):
            inside = [step for step in group if not view.flushes(step)] or group
            out += inside[1:3] or inside[:1]
    return out


def is_accumulation(view: View, step: Step, guarded: bool) -> bool:
    """A guard with N, an inner loop bounded by a number, or a loop over what is called micro-batches."""
    if guarded:
        return True
    loops = {m.loop for token in step.window if (m := view.micro(token)) is not None}
    for loop in loops:
        node = loop_node(view, loop)
        if isinstance(node, (p.For, p.While)) and over_time(view.static, node):
            continue
        if isinstance(node, p.While):
            return True
        if not isinstance(node, p.For):
            continue
        spelled = p.text(node.iter)
        if re.match(r"(tqdm\.?\w*\()?(range|trange)\(", spelled) or "range(" in spelled or "islice" in spelled:
            return not re.search(r"epoch|episode|rollout|task|step", spelled, re.I) or bool(
                re.search(r"accum|\bacc_|grad|micro|chunk|mini|sub|bs\b|batch", spelled, re.I)
            )
        told = _CHUNKY.search(spelled) or _CHUNKY.search(p.text(node.target))
        if told or _divided(view, node) or view.static.gathers(node):
            return not re.search(r"episode|task|trajector|rollout|epoch", spelled, re.I)
    return False


def _divided(view: View, loop: p.For) -> bool:
    """Whether a loop runs over the parts of a batch that a line before it has divided: `xs = x.chunk(n)`."""
    names = {n.id for n in view.static.walk(loop.iter) if isinstance(n, p.Name)}
    return any(
        isinstance(node, p.Assign)
        and _DIVIDES.search(p.text(node.value))
        and not names.isdisjoint(n.id for t in node.targets for n in view.static.walk(t) if isinstance(n, p.Name))
        for node in view.static.everything()
    )


def loop_node(view: View, span: Span | None) -> p.Node | None:
    """The loop with this header."""
    return None if span is None else view.static.loops.get(span)


def loop_around(view: View, token: int) -> p.Node | None:
    """The innermost loop around a micro-batch."""
    micro = view.micro(token)
    return loop_node(view, micro.loop if micro is not None else None)


def _parts_label(view: View, step: Step, count: int) -> str:
    """`batch_size // part_size`, where that is how many passes the loop has."""
    sizes = quotient(loop_around(view, step.window[-1]) if step.window else None)
    if sizes is None:
        return ""
    total, part = (view.known.get(p.text(size)) for size in sizes)
    label = f"{p.text(sizes[0])} // {p.text(sizes[1])}"
    whole = total is None or part is None or total == count * part
    return label if whole and len(label) < 70 else ""


def _loop_label(view: View, step: Step) -> str:
    node = loop_around(view, step.window[-1]) if step.window else None
    call = node.iter if isinstance(node, p.For) else None
    if isinstance(call, p.Call) and call.args and isinstance(call.args[0].value, p.Call):
        call = call.args[0].value if _COUNTS.search(terminal(call.args[0].value.func)) else call  # `tqdm(range(n))`
    if not isinstance(call, p.Call) or terminal(call.func) in _NO_COUNT:
        return ""
    plain = [a for a in call.args if not a.keyword]
    if _COUNTS.search(terminal(call.func)) and len(plain) > 1 and (len(plain) > 2 or p.text(plain[0].value) != "0"):
        return ""  # the size of a part, or where the numbers end and not how many they are
    if plain:
        label = p.text(plain[-1].value)
        name = path_terminal(label)
        part = _SIZE.search(name) and not ONE_WINDOW.search(name)  # `iter_size` is N
        return label if len(label) < 40 and not part else ""
    return ""


def _unscaled(
    view: View,
    ledger: OptimizerLedger,
    entry: Entry,
    coefficients: tuple[Coefficient, ...],
    keys: frozenset[str],
    shared: frozenset[str],
    passes: int,
    n: int,
) -> bool:
    """True when an addend stands whole, and no factor of any other can be 1/N, seen or unseen."""
    facts = entry.facts
    own = view.coefficient(entry).times(passes)
    kept = tuple(k - shared for k in facts.term_keys or (facts.keys,) * len(coefficients))
    terms = list(zip(coefficients, kept, strict=False))
    lighter = [
        (c, k)
        for c, k in terms
        if (c.symbols or abs(c.value) < 1 or any(map(_is_setting, k))) and not (keys and _weighed(view, c, k, keys, n))
    ]
    if any(ONE_WINDOW.search(path_terminal(key)) for c, k in lighter for key in (*k, *(s for s, _ in c.symbols))):
        return False  # a term is divided by what counts micro-batches elsewhere: that is GA204's question
    if lighter and (_only_weights(terms, n) or (keys and _sum_of_weighted(view, terms, keys))):
        lighter = []
    if facts.summed or len(lighter) == len(terms):
        return False
    weights = {key for c, k in lighter for key in (*k, *(s for s, _ in c.symbols))}
    if lighter and (not keys or any(names_n(view, key, keys) for key in weights)):
        return False  # one of the factors may be 1/N: that is GA204's question
    first = coefficients[0]
    if own not in coefficients and (own.value, own.symbols) != (first.value, first.symbols):
        return False  # rescaled after the window
    if any("batch" in key and _ROUNDED.search(key) and not _TOTAL.search(key) for key in keys):
        return False  # N = round(nominal batch / batch size): such loops scale by samples somewhere
    if facts.keys & {"accelerate", "deepspeed", "mmengine"}:
        return False
    if any(_is_setting(key) and not _is_weight(view, key, keys) for key in facts.keys.difference(shared, *kept)):
        return False  # a setting takes part in the factor, and its default may hide N
    if "?" in facts.hidden or any(names_n(view, key, keys) for key in (facts.hidden | facts.keys) - shared):
        return False
    if str(n) in facts.hidden and not any(view.known.get(key) == n for key in keys):
        return False  # N is a written number, and so is the loss's divisor
    if any(_SUM.search(comment) for comment in view.program.comments.values()):
        return False  # the program says so
    if any(_sums(c.key, c.taken) for c in view.run.choices.values()):
        return False
    scaled = rate(view, keys)
    if scaled is not Rate.FREE:
        return scaled is Rate.GROWS
    optimizer = view.run.optimizers.get(ledger.name)
    made: frozenset[str] = getattr(optimizer, "made_keys", frozenset())
    made_text = getattr(optimizer, "made_text", "")
    if any(names_n(view, key, keys) for key in made):
        return False
    return not any(key and re.search(rf"\b{re.escape(key.rpartition('.')[2])}\b", made_text) for key in keys)


_WEIGHT = re.compile(
    r"(^|_)(weights?|wt|w|coeff?s?|lambdas?|lamb?d?|lmbda|multiplier|penalty|alpha|beta|gamma|omega)\d*(_|$)", re.I
)
_NO_WEIGHT = re.compile(r"accum|inv|div|norm|num|count|len|size|batch|steps?(_|$)", re.I)


def _is_weight(view: View, key: str, keys: frozenset[str]) -> bool:
    """Whether a setting is, by its name, what a loss is weighed with and not N."""
    return _WEIGHT.search(path_terminal(key)) is not None and not names_n(view, key, keys)


def _weighed(view: View, coefficient: Coefficient, kept: frozenset[str], keys: frozenset[str], n: int) -> bool:
    """Whether an addend's factor is made of weights alone; one whose number is seen must not be 1/N."""
    factors = {key for key in (*kept, *(s for s, _ in coefficient.symbols)) if _is_setting(key)}
    if "" in kept and abs(coefficient.value) == Fraction(1, n):
        return False
    return bool(factors) and all(_is_weight(view, key, keys) for key in factors)


def _sum_of_weighted(view: View, terms: list[tuple[Coefficient, frozenset[str]]], keys: frozenset[str]) -> bool:
    """Whether each addend is multiplied by a setting of its own: what they are weighed with, for 1/N would be one for all."""
    own: list[str] = []
    for coefficient, kept in terms:
        if len(coefficient.symbols) != 1 or coefficient.symbols[0][1] != 1:
            return False
        key = coefficient.symbols[0][0]
        if any(map(_is_setting, kept - {key})) or "(" in key or "/" in key or _NO_WEIGHT.search(key):
            return False
        if names_n(view, key, keys):
            return False
        own.append(key)
    return len(own) > 1 and len(set(own)) == len(own)


def _only_weights(terms: list[tuple[Coefficient, frozenset[str]]], n: int) -> bool:
    """Whether the addends are weighed with written numbers that differ, none of which is 1/N: `0.5 * a + 0.1 * b`.

    One half alone is the share of one of two: `0.5 * a + 0.5 * b`.
    """
    if any(c.symbols or any(map(_is_setting, keys)) for c, keys in terms):
        return False
    values = {abs(c.value) for c, _ in terms}
    return (len(values) > 1 or values == {Fraction(1, 2)}) and Fraction(1, n) not in values


def _is_setting(key: str) -> bool:
    return bool(key) and not key.replace("/", "").replace(".", "").isdigit()


_ROUNDED = re.compile(r"(?<!/)/(?!/)|\bround\b")
"""A quotient that need not be a whole number; `total // micro` is one, and says that N micro-batches make the total."""

_TOTAL = re.compile(r"^(?!.*\bround\b)[^/]*(total|target|global|effective|desired|full)", re.I)
"""A quotient of what several micro-batches make together, by its name."""

_SUM = re.compile(r"reduction\s*(==?|is|:)\s*[\"']?sum", re.I)
_REDUCTION = re.compile(r"reduc\w*\s*(==|!=)\s*[\"'](\w+)[\"']", re.I)


def _sums(condition: str, taken: bool) -> bool:
    """True where the run took a setting for the criterion's reduction to be a sum: `reduction == "mean"` is false."""
    asked = _REDUCTION.search(condition)
    if asked is None or " and " in condition or " or " in condition:
        return False
    word, same = asked[2].lower(), taken == (asked[1] == "==")
    return same if word == "sum" else not same and word in {"mean", "avg", "average", "batchmean"}


def names_n(view: View, key: str, keys: frozenset[str]) -> bool:
    """True when a spelling is N's, holds it, or could hold it."""
    if key in keys:
        return True
    words = set(re.findall(r"[A-Za-z_]\w*", key))
    return any(
        set(re.findall(r"[A-Za-z_]\w*", k)) and words >= {re.findall(r"[A-Za-z_]\w*", k)[-1]}
        for k in keys
        if re.findall(r"[A-Za-z_]\w*", k)
    )


def _assumptions(view: View, entry: Entry) -> tuple[str, ...]:
    if not entry.facts.terms or entry.facts.summed:
        return ()
    told: tuple[str, ...] = ("the loss averages over the samples of its micro-batch",)
    if any(b.span == entry.span and b.name == "accelerator" for b in view.run.backwards):
        driven = view.run.facts.get("driven")
        told += ("the Trainer runs without DeepSpeed, whose engine divides",) if driven else (_LAUNCHED,)
    return told


_LAUNCHED = "`accelerate launch` is given no `--gradient_accumulation_steps`, by which its `backward` would divide"
