class Keeper:
    def __init__(self, options, network, optimizer):
        self.updates = 0

    def moved(self): ...
