"""The passes are numbered from a setting on, and the loop is left at their end."""
# observe: params

from torch.nn.functional import mse_loss


def train(options, network, optimizer, stream):
    passes = range(options.plan.passes)
    for turn in passes:
        number = turn + options.plan.begin
        if number > options.plan.passes:
            print("all done")
            break
        x, y = next(stream)
        loss = mse_loss(network(x), y)
        loss.backward()  # expect: GA201
        if number % options.gather == options.gather - 1:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()
    optimizer.zero_grad()
