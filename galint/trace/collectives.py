"""Count what a backward communicates: collectives and bytes of the DDP wrappers in this process."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any


class Collectives:
    """The DDP wrappers seen so far. `counts` before a backward and `since` after it tell what it communicated."""

    def __init__(self) -> None:
        self.wrappers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.any = False
        """Whether a wrapper was ever seen: asked on each backward, also where there is no DDP at all."""

    def add(self, wrapper: Any) -> None:
        """Watch this DistributedDataParallel module from now on."""
        self.wrappers.add(wrapper)
        self.any = True

    def counts(self) -> dict[int, int]:
        """Each wrapper's sequence number of collectives, by identity; {} where none can be told."""
        counts: dict[int, int] = {}
        for wrapper in list(self.wrappers):
            with suppress(Exception):  # a process group without sequence numbers: counts stay unknown
                counts[id(wrapper)] = int(wrapper.process_group._get_sequence_number_for_group())
        return counts

    def since(self, before: dict[int, int]) -> tuple[int, int, bool | None]:
        """Collectives and bytes since `before`, summed over the wrappers, and whether there were any (None: unknown)."""
        if not before:
            return 0, 0, None
        after = self.counts()
        reduces, size = 0, 0
        for wrapper in list(self.wrappers):
            seen = after.get(id(wrapper), 0) - before.get(id(wrapper), 0)
            if seen <= 0:
                continue
            # Rebuilding buckets after the first iteration adds collectives of its own: the reducer's own
            # count of buckets is what every synchronised backward costs.
            with suppress(Exception):
                data = wrapper._get_ddp_logging_data()
                sizes = str(data.get("rebuilt_bucket_sizes") or data.get("bucket_sizes") or "").split(",")
                seen = min(seen, len([s for s in sizes if s.strip()])) or seen
            reduces += seen
            size += sum(p.numel() * p.element_size() for p in wrapper.parameters() if p.requires_grad)
        return reduces, size, reduces > 0
