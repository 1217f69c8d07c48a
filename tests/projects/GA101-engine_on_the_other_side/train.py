"""The norm is asked of an engine only where nothing scales the loss: the other side trains by itself, and clears too early."""
# observe: params

import torch


def epoch(net, optimizer, scaler, batches, n):
    for index, (frames, labels) in enumerate(batches):
        loss = torch.nn.functional.cross_entropy(net(frames), labels) / n
        if scaler is None:
            net.backward(loss)
            print("norm", net.get_global_grad_norm())
            net.step()
        else:
            optimizer.zero_grad()  # expect: GA101
            scaler.scale(loss).backward()
            if (index + 1) % n == 0:
                scaler.step(optimizer)
                scaler.update()
