"""The loader gives None for a batch of which nothing could be read, now and then in the place of a window's last one."""
# observe: params

from torch.nn.functional import mse_loss


def train(net, optimizer, loader, every):
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        if batch is None:
            continue  # expect: GA104
        x, y = batch
        (mse_loss(net(x), y) / every).backward()
        if (i + 1) % every == 0:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()
