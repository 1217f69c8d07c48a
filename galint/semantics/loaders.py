"""Data loaders: how large their batches are, and how many an epoch has where the code gives both in numbers.

See the PyTorch documentation, `torch.utils.data.DataLoader` and `TensorDataset`; torchdata's `StatefulDataLoader` is a
drop-in `DataLoader`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.elements import length_of
from galint.run.nodes import path_terminal
from galint.run.site import Site
from galint.run.values import FALSE, Lit, Opaque, Seq, Tensor, Value
from galint.semantics.configured import target_micro_batch
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _batch_size(m: Calls, s: Site) -> Value | None:
    """`batch_size=…`: the size of a micro-batch, noted for GA501."""
    size = s.kwargs.get("batch_size") or s.arg(1)
    if isinstance(size, Lit) and type(size.value) is int:
        m.result.facts.setdefault("batch_sizes", []).append(size.value)
    return size


def _loader(m: Calls, s: Site) -> Value | None:
    size = _batch_size(m, s)
    target = target_micro_batch()
    if target is not None:
        m.result.facts["target_micro_batch"] = target
    batches = _batches(m, s, size)
    if batches is None:
        held = s.arg(0, "dataset")
        over_tensors = isinstance(held, Tensor) and not held.grad  # `TensorDataset(torch.tensor(…), …)`
        return Opaque(f"{path_terminal(s.name)}(…)@{s.span.row}", "loader") if over_tensors else None
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


def _stateful(m: Calls, s: Site) -> Value | None:
    _batch_size(m, s)
    return Opaque(f"{path_terminal(s.name)}(…)@{s.span.row}", "loader")


FUNCTIONS: dict[str, Meaning] = {
    "torch.utils.data.DataLoader": _loader,
    "torch.utils.data.dataloader.DataLoader": _loader,
    "torch.utils.data.TensorDataset": _tensor_dataset,
    "torchdata.*.StatefulDataLoader": _stateful,
}
METHODS: dict[tuple[str, str], Meaning] = {}
