"""One scaler for both networks; the generator's batch is split, and what reaches the discriminator then is cleared."""

import torch
from torch import nn
from torch.nn.functional import softplus


def train(generator, discriminator, pictures, settings):
    opt_g = torch.optim.SGD(generator.parameters(), lr=0.01)
    opt_d = torch.optim.SGD(discriminator.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu")
    for picture in pictures:
        with torch.no_grad():
            drawn = []
            for split in range(settings["splits"]):
                drawn.append(generator(torch.randn(2, settings["latent"])))
            drawn = torch.cat(drawn)
        loss = softplus(discriminator(drawn)).mean() + softplus(-discriminator(picture)).mean()
        opt_d.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt_d)
        nn.utils.clip_grad_norm_(discriminator.parameters(), 1e3)
        scaler.step(opt_d)

        opt_g.zero_grad()
        for split in range(settings["splits"]):
            drawn = generator(torch.randn(2, settings["latent"]))
            loss = softplus(-discriminator(drawn)).mean() / settings["splits"]
            scaler.scale(loss).backward()
        scaler.unscale_(opt_g)
        nn.utils.clip_grad_norm_(generator.parameters(), 1e3)
        scaler.step(opt_g)
        scaler.update()
