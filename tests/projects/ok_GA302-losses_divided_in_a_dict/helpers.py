from torch import nn


def extract_loss(report, divisor):
    losses = report.losses
    for key, value in losses.items():
        report.losses[key] = value.mean() / divisor
    return sum(item.mean() for item in losses.values())


def clip_gradients(model, max_norm, scale=1.0):
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm * scale)
