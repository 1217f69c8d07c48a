import random


class MetaLoader:
    def __init__(self, loaders, accum_steps=1):
        self.loaders = loaders
        self.iters = {name: iter(loader) for name, loader in loaders.items()}
        self.pool = list(loaders)
        self.accum_steps = accum_steps
        self.step = 0

    def __iter__(self):
        task = self.pool[0]
        while True:
            if self.step % self.accum_steps == 0:
                task = random.choice(self.pool)
            self.step += 1
            try:
                batch = next(self.iters[task])
            except StopIteration:
                self.iters[task] = iter(self.loaders[task])
                batch = next(self.iters[task])
            yield task, batch


class Prefetch:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        stream = iter(self.loader)
        self.preload(stream)
        batch = self.next(stream)
        while batch is not None:
            yield batch
            batch = self.next(stream)

    def preload(self, stream):
        try:
            self.batch = next(stream)
        except StopIteration:
            self.batch = None

    def next(self, stream):
        batch = self.batch
        self.preload(stream)
        return batch
