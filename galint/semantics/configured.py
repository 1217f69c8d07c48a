"""The project's own names from `[tool.galint]`: optimizers, scalers, loss helpers, the micro-batch that is large enough.

They hold for one analysis (`with configured(config):`); without it nothing is configured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from galint.config import Config
from galint.run.site import Site
from galint.run.values import Value
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


def target_micro_batch() -> int | None:
    """The samples from which the project calls a micro-batch large enough, where it says so."""
    return _TARGET.get()


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
