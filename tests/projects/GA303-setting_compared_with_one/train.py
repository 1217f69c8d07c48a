"""N is compared with 1 before a guard takes it modulo: both sides train; what was held is computed in an inner loop."""
# observe: params

import torch


def train(model, loader, opt, cfg):
    held = []
    for i, x in enumerate(loader):
        if cfg.accum_freq == 1:
            opt.zero_grad()
            model(x).mean().backward()
        else:
            held.append(x)
            if (i + 1) % cfg.accum_freq > 0:
                continue
            opt.zero_grad()
            for part in held:
                loss = model(part).square().mean() / cfg.accum_freq
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)  # expect: GA303
        opt.step()
        held = []
