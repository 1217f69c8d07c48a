"""The judge hears the real sound at the places where the speaker's begin: no gradient goes through a place."""

import cutting
import torch
from torch.nn.functional import l1_loss


def fit(speaker, judge, loader, options):
    opt_s = torch.optim.SGD(speaker.parameters(), lr=1e-3)
    opt_j = torch.optim.SGD(judge.parameters(), lr=1e-3)
    for step, (text, wave) in enumerate(loader):
        spoken, starts = speaker(text)
        real = cutting.slice_waves(wave, starts * options.hop, options.size)
        loss_s = (l1_loss(spoken, real) + ((judge(spoken) - 1) ** 2).mean()) / options.every
        loss_s.backward()
        if (step + 1) % options.every == 0:
            opt_s.step()
            opt_s.zero_grad()
        opt_j.zero_grad()
        loss_j = ((judge(real) - 1) ** 2).mean() + (judge(spoken.detach()) ** 2).mean()
        loss_j.backward()
        opt_j.step()
