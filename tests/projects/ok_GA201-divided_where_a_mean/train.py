"""The loss is divided only where its reduction is a mean; a sum needs no 1/N."""


def train(net, loss_fn, optimizer, batches, settings):
    for x, y in batches:
        optimizer.zero_grad()
        for k in range(settings.PARTS):
            part = slice(k * settings.SIZE, (k + 1) * settings.SIZE)
            loss = loss_fn(net(x[part]), y[part])
            if settings.LOSS_REDUCTION == "mean":
                loss /= settings.PARTS
            loss.backward()
        optimizer.step()
