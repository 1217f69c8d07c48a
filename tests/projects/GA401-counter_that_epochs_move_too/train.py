"""The counter of updates moves inside an epoch and once more at its end; it tells where a resumed training goes on."""
# observe: params

from torch.nn.functional import mse_loss


def train(network, optimizer, batches, options):
    updates = 1
    for epoch in range(1, options.epochs + 1):
        optimizer.zero_grad()
        for number, (inputs, targets) in enumerate(batches, start=1):
            if options.resume:
                if number % options.every == 0:
                    updates += 1
                if updates < options.reached:
                    continue
            loss = mse_loss(network(inputs), targets) / options.every
            loss.backward()
            if (number + 1) % options.every == 0 or number == len(batches):  # expect: GA401 "3, 4, 1"
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
        print(epoch, updates)
        updates += 1
