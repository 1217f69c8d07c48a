"""A helper of another package scales the loss, and steps the optimizer that it is given."""

import torch


def one_pass(held, sound, helper):
    told = {}
    with helper.autocast():
        made = held.voice(sound)
        told["rough"] = (made - sound).abs().mean()
        told["fine"] = (made - sound).square().mean()
        told["all"] = 0.5 * told["rough"] + told["fine"]
    held.optimizer.zero_grad()
    helper.backward(told["all"])
    helper.scaler.unscale_(held.optimizer)
    told["norm"] = torch.nn.utils.clip_grad_norm_(held.voice.parameters(), 10.0)
    helper.step(held.optimizer)
    held.rates.step()
    helper.update()
    return told
