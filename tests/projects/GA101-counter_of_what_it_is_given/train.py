"""A hook is given the runner, which counts its batches elsewhere."""
# observe: params


class Gathering:
    def __init__(self, every):
        self.every = every

    def after_batch(self, runner):
        runner.optimizer.zero_grad()  # expect: GA101
        loss = runner.told["loss"] / self.every
        loss.backward()
        if (runner.seen + 1) % self.every == 0:
            runner.optimizer.step()
