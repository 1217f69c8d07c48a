import random


class Drawing:
    def __init__(self, kept, batches, size):
        self.kept, self.batches, self.size = kept, batches, size

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            yield random.sample(range(len(self.kept)), self.size)
