"""Each network has its own loss of the one micro-batch, divided by N: a loop over losses is over no micro-batches."""


def train(networks, optimizers, scalers, batches, n):
    for count, batch in enumerate(batches, start=1):
        losses = [networks.teacher(batch).square().mean().div(n), networks.student(batch).square().mean().div(n)]
        for scaler, loss in zip(scalers, losses, strict=True):
            scaler.scale(loss).backward()
        if count % n == 0:
            for optimizer, scaler in zip(optimizers, scalers, strict=True):
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()


def train_by_helper(networks, optimizers, batches, measure, n):
    for count, batch in enumerate(batches, start=1):
        for loss in measure(networks, batch, share=1 / n):
            loss.backward()
        if count % n == 0:
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
