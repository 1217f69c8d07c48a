"""The function of one pass is given to a logger, which gives back another one of its name."""
# observe: params

from reporting import Reporter
from torch.nn.functional import mse_loss


def one_pass(held, number, x, y):
    loss = mse_loss(held.network(x), y) / held.gather
    loss.backward()
    if number % held.gather == 0:  # expect: GA401 "1 micro-batch"
        held.optimizer.step()
        held.optimizer.zero_grad()
    return loss


def train(held, loader):
    global one_pass
    report = Reporter()
    one_pass = report.log("train")(report.counted("passes", len(loader))(one_pass))
    held.optimizer.zero_grad()
    for number, (x, y) in enumerate(loader):
        one_pass(held, number, x, y)
