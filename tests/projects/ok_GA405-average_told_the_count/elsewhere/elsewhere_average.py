class Average:
    def __init__(self, network, every):
        self.every = every

    def update(self, iteration):
        self.due = (iteration + 1) % self.every == 0
