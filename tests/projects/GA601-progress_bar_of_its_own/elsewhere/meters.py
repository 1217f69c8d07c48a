class TQDM:
    def __init__(self, inner, total):
        self.inner, self.total = inner, total

    def __iter__(self):
        return iter(self.inner)
