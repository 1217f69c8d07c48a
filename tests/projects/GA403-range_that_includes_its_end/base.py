"""Where a training begins and ends is handed in."""


class Between:
    def __init__(self, ends, network, optimizer, gather, batches):
        self.first, self.total = ends[0], ends[1]
        self.network, self.optimizer, self.gather, self.batches = network, optimizer, gather, batches
