"""Each network has its own loss of the one micro-batch, and none is divided: N of each are summed."""
# observe: params


def train(networks, optimizers, scalers, batches, n):
    for count, batch in enumerate(batches, start=1):
        losses = [networks.teacher(batch).square().mean(), networks.student(batch).square().mean()]
        for scaler, loss in zip(scalers, losses, strict=True):
            scaler.scale(loss).backward()  # expect: GA201 "`n` = 4 micro-batches"
        if count % n == 0:
            for optimizer, scaler in zip(optimizers, scalers, strict=True):
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
