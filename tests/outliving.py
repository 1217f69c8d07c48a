"""A process group that outlives the models over it: without that, the end of a script may wait for itself.

`ProcessGroupGloo`'s destructor joins its threads. Where a DDP reducer holds the last reference, as it does once
`destroy_process_group` has run, that happens with the interpreter's lock held, which such a thread may be waiting for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist


@contextlib.contextmanager
def groups_outlive_models() -> Iterator[None]:
    """Keep every backend that the block destroys until the block is left; Python lets go of it without the lock."""
    if not dist.is_available():
        yield
        return
    kept: list[Any] = []
    destroy = dist.destroy_process_group

    def destroying(*args: Any, **kwargs: Any) -> None:
        if dist.is_initialized():
            kept.append(dist.group.WORLD._get_backend(torch.device("cpu")))  # type: ignore[union-attr]
        destroy(*args, **kwargs)

    dist.destroy_process_group = destroying
    try:
        yield
    finally:
        dist.destroy_process_group = destroy
        kept.clear()
