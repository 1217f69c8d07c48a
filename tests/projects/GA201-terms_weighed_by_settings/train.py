"""Each term of a loss is multiplied by what weighs it, or their mean is taken: none of these factors is 1/N."""
# observe: params

from torch.nn.functional import l1_loss, mse_loss


def weights_of_its_own(network, optimizer, batches, options):
    for number, (inputs, targets) in enumerate(batches, start=1):
        out = network(inputs)
        loss = options.w1 * mse_loss(out, targets) + options.w2 * l1_loss(out, targets)
        loss.backward()  # expect: GA201
        if number % options.parts == 0 or number == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def two_shares(network, teacher, optimizer, batches, parts, alpha=0.5):
    for number, (inputs, targets) in enumerate(batches, start=1):
        out = network(inputs)
        loss = alpha * mse_loss(out, targets) + (1 - alpha) * l1_loss(out, teacher(inputs).detach())
        loss.backward()  # expect: GA201
        if number % parts == 0 or number == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def mean_of_three(network, optimizer, batches, parts):
    for number, (inputs, targets) in enumerate(batches, start=1):
        out = network(inputs)
        loss = (mse_loss(out, targets) + l1_loss(out, targets) + out.square().mean()) / 3
        loss.backward()  # expect: GA201
        if number % parts == 0 or number == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def halves(network, optimizer, batches):
    for number, (inputs, targets) in enumerate(batches, start=1):
        out = network(inputs)
        loss = 0.5 * mse_loss(out, targets) + 0.5 * l1_loss(out, targets)
        loss.backward()  # expect: GA201
        if number % 4 == 0 or number == len(batches):
            optimizer.step()
            optimizer.zero_grad()
