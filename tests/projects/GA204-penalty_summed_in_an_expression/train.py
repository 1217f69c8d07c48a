"""A penalty of the weights is summed in one expression and added to the loss after its division; one without effect too."""
# observe: params

from torch.nn.functional import mse_loss


def train(network, optimizer, batches, every, strength):
    for number in range(len(batches) // every * every):
        inputs, targets = batches[number]
        loss = mse_loss(network(inputs), targets) / every
        loss = loss + strength * sum(p.pow(2).sum() for p in network.parameters())
        loss.backward()  # expect: GA204
        if (number + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def keep_alive(network, optimizer, batches, every):
    for number in range(len(batches) // every * every):
        inputs, targets = batches[number]
        loss = mse_loss(network(inputs), targets) / every
        loss = loss + sum(p.sum() * 0.0 for p in network.parameters())
        loss.backward()
        if (number + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
