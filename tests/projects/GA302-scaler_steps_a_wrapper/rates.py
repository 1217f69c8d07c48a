"""An optimizer whose learning rate rises and falls."""


class Rising:
    def __init__(self, inner, width):
        self.inner = inner
        self.width = width
        self.count = 0

    @property
    def param_groups(self):
        return self.inner.param_groups

    def step(self):
        self.count += 1
        for group in self.inner.param_groups:
            group["lr"] = 0.1 * self.width**-0.5 * min(self.count**-0.5, self.count / 64)
        self.inner.step()

    def zero_grad(self):
        self.inner.zero_grad()
