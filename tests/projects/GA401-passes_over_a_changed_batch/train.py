"""Each batch is passed several times, from a copy of it that changes; the windows are counted in batches."""
# observe: params

from torch.nn.functional import mse_loss


def train(network, optimizer, batches, every):
    for number, batch in enumerate(batches):
        guess = batch["noisy"]
        for _ in range(3):
            guess = network(guess.detach())
            loss = mse_loss(guess, batch["clean"]) / (3 * every)
            loss.backward()
        if number % every == 0:  # expect: GA401 "the first window has 1"
            optimizer.step()
            optimizer.zero_grad()
