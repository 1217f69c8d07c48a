class Manager:
    def backward(self, loss):
        loss.backward()

    def step(self, optimizer):
        optimizer.step()
        optimizer.zero_grad()
