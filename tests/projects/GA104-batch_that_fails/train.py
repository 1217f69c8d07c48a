"""A micro-batch that is too large for the memory is left out, and the step with it."""
# observe: params

from torch import nn
from torch.nn.functional import mse_loss


class Tight(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 2)

    def forward(self, x):
        if len(x) > 8:
            raise RuntimeError("CUDA out of memory")
        return self.inner(x)


def train(net, optimizer, batches, every):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(batches):
        try:
            loss = mse_loss(net(x), y) / every
            loss.backward()
        except RuntimeError as failure:
            if "out of memory" in str(failure):
                print("left out", i)
                continue  # expect: GA104
            else:
                raise
        if (i + 1) % every == 0:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()
