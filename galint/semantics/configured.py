"""The project's own names from `[tool.galint]`: optimizers, scalers, loss helpers, the micro-batch that is large enough.

They hold for one analysis (`with configured(config):`); without it nothing is configured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from galint.config import Config
from galint.run.elements import length_of
from galint.run.site import Site
from galint.run.values import FALSE, Lit, Opaque, Seq, Value
from galint.semantics import amp, optim
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls

_NAMES: ContextVar[Mapping[str, Meaning]] = ContextVar("galint_names", default={})  # noqa: B039
_TARGET: ContextVar[int | None] = ContextVar("galint_target_micro_batch", default=None)


@contextmanager
def configured(config: Config) -> Iterator[None]:
    """Let the configuration's names mean what it says, inside the block."""
    names: dict[str, Meaning] = {}
    for kind, meaning in (
        (config.optimizers, optim.make),
        (config.scalers, amp.make),
        (config.loss_helpers, _mean_loss),
    ):
        names.update(dict.fromkeys(kind, meaning))
    tokens = _NAMES.set(names), _TARGET.set(config.target_micro_batch)
    try:
        yield
    finally:
        _NAMES.reset(tokens[0])
        _TARGET.reset(tokens[1])


def meaning_of(name: str) -> Meaning | None:
    """What the configuration says of a dotted name, by the whole name or by its last part."""
    names = _NAMES.get()
    return names.get(name.lstrip(".")) or names.get(name.rpartition(".")[2]) if names else None


def _mean_loss(m: Calls, s: Site) -> Value | None:
    """A helper that returns a mean loss: no setting given to it scales it."""
    tensors = [t for v in s.all_args() for t in m.tensors_in(v)]
    born = max((m.born_of(v) for v in s.all_args()), default=0)
    out = m.mix(tensors, "loss") if tensors else m.tensor("loss", born)
    out.hidden, out.summed, out.reduced = frozenset(), False, True
    return out


def _loader(m: Calls, s: Site) -> Value | None:
    """`DataLoader(batch_size=…)`: the size of a micro-batch, for GA501."""
    size = s.kwargs.get("batch_size") or (s.args[1] if len(s.args) > 1 else None)
    if isinstance(size, Lit) and isinstance(size.value, int) and not isinstance(size.value, bool):
        m.result.facts.setdefault("batch_sizes", []).append(size.value)
    target = _TARGET.get()
    if target is not None:
        m.result.facts["target_micro_batch"] = target
    batches = _batches(m, s, size)
    if batches is None:
        return None
    made = m.unknown_call(s, s.name)
    if type(made) is Opaque:
        made.items["__batches__"] = Lit(batches)
    return made


def _batches(m: Calls, s: Site, size: Value | None) -> int | None:
    """How many batches an epoch has, where the code gives the samples and the batch size as numbers."""
    held = s.arg(0, "dataset")
    if set(s.kwargs) & {"sampler", "batch_sampler"} or held is None:
        return None
    samples = length_of(m, held) if isinstance(held, Seq) or getattr(held, "length", None) is not None else None
    for number in (samples, size):
        if not (isinstance(number, Lit) and type(number.value) is int and number.value > 0 and not number.keys):
            return None
    assert isinstance(samples, Lit) and isinstance(size, Lit)
    full, rest = divmod(int(samples.value), int(size.value))
    return full + bool(rest and m.truth(s.kwargs.get("drop_last", FALSE)) is not True)


def _tensor_dataset(m: Calls, s: Site) -> Value | None:
    """`TensorDataset(x, y)` has as many samples as `x` has rows."""
    rows = getattr(s.args[0], "length", None) if s.args and type(s.args[0]) is Opaque else None
    if not isinstance(rows, Lit):
        return None
    made = m.unknown_call(s, s.name)
    if type(made) is Opaque:
        made.length = rows
    return made


FUNCTIONS: dict[str, Meaning] = {
    "torch.utils.data.DataLoader": _loader,
    "torch.utils.data.dataloader.DataLoader": _loader,
    "torch.utils.data.TensorDataset": _tensor_dataset,
}
