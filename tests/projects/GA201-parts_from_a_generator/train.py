"""A generator cuts each batch into its micro-batches; how many is a number that only it counts to."""
# observe: params

from torch.nn.functional import mse_loss


def parts_of(batch, count):
    for k in range(count):
        yield {name: column.chunk(count)[k] for name, column in batch.items()}


def train(network, optimizer, batches, count):
    for batch in batches:
        optimizer.zero_grad()
        for part in parts_of(batch, count):
            loss = mse_loss(network(part["x"]), part["y"])
            loss.backward()  # expect: GA201 "`count` = 4"
        optimizer.step()
