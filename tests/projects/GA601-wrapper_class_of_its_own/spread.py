"""A wrapper that hands on what it does not have."""

from torch.nn.parallel import DistributedDataParallel


class Spread(DistributedDataParallel):
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)
