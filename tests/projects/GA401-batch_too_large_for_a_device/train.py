"""N is 1 unless the batch is too large for a device: then the first window has one micro-batch."""
# observe: params

import torch

LARGEST = 16


def fit(settings, net, data, device="cpu"):
    size = int(settings["size"])
    pieces = 1
    if size > LARGEST and device != "tpu":
        pieces = size // LARGEST
        size = LARGEST
    batches = torch.utils.data.DataLoader(data, batch_size=size)
    optimizer = torch.optim.SGD(net.parameters(), lr=settings["rate"])
    for index, (inputs, targets) in enumerate(batches):
        loss = torch.nn.functional.mse_loss(net(inputs), targets) / pieces
        loss.backward()
        if index % pieces == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()


def main(net, data, size=None):
    settings = {"rate": 0.1, "size": 16}
    if size:
        settings["size"] = size
    fit(settings, net, data)
