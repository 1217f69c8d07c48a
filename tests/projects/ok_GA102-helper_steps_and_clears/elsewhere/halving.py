class Halving:
    def __init__(self, active):
        self.active = active

    def backward(self, loss):
        loss.backward()

    def step(self, net, optimizer, scheduler=None):
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
