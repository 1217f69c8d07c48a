"""A container of optimizers that step by key, and a loop of so many windows; the loss is never divided."""
# observe: params


def train(data, net, optimizers, settings):
    for i in range(1, settings.updates * settings.accumulation + 1):
        loss = net(next(data)).square().mean()
        if i % settings.accumulation == 0:
            loss.backward()  # expect: GA201
            for key in optimizers:
                optimizers[key].step()
            for optimizer in optimizers.values():
                optimizer.zero_grad()
        else:
            loss.backward()  # expect: GA201
