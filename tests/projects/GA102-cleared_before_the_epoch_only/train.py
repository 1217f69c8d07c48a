"""A clear at the head of each epoch takes nothing away between the steps of an epoch."""
# observe: params


def fit(net, optimizer, loss_of, batches, options):
    for _ in range(options.epochs):
        optimizer.zero_grad()
        for index, (inputs, targets) in enumerate(batches):
            loss = loss_of(net(inputs), targets) / options.accumulation
            loss.backward()
            if (index + 1) % options.accumulation == 0 or index + 1 == len(batches):
                optimizer.step()  # expect: GA102 "applies 4 gradients of earlier windows"
