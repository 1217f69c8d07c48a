"""How many batches there are is asked beside the limit of batches, which then ends the loop: a limit is no counter."""
# observe: params

from torch.nn.functional import mse_loss


def train(network, optimizer, batches, options):
    if options.most < len(batches):
        print(f"stops after {options.most} of {len(batches)} batches")
    for number, (inputs, targets) in enumerate(batches):
        loss = mse_loss(network(inputs), targets)
        loss.backward()  # expect: GA201
        if (number + 1) % options.every == 0 or number + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
        if number + 1 >= options.most:
            break
