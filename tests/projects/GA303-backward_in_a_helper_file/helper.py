import torch


def propagate(loss, model, steps, max_norm):
    if steps > 1:
        loss = loss / steps
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    return loss
