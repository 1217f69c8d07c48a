"""A VAE-GAN that trains the generator on even steps and the discriminator on odd ones, with one scaler."""
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def fit(vae, disc, loader, epochs, rank):
    vae = DDP(vae, device_ids=[rank])
    disc = DDP(disc, device_ids=[rank])
    gen_opt = torch.optim.AdamW(vae.module.parameters(), 1e-5)
    disc_opt = torch.optim.AdamW(disc.module.discriminator.parameters(), 1e-5)
    scaler = torch.cuda.amp.GradScaler()
    step = 0
    for epoch in range(epochs):
        for batch_idx, batch in enumerate(loader):
            x = batch["video"].to(rank)
            if step % 2 == 1 and step >= disc.module.start:
                train_g, train_d = False, True
            else:
                train_g, train_d = True, False
            out = vae(x)
            if train_g:
                loss_g, log = disc(x, out[0], out[1], optimizer_idx=0)
                gen_opt.zero_grad()
                scaler.scale(loss_g).backward()
                scaler.step(gen_opt)
                scaler.update()
            if train_d:
                loss_d, log = disc(x, out[0], out[1], optimizer_idx=1)
                disc_opt.zero_grad()
                scaler.scale(loss_d).backward()
                scaler.unscale_(disc_opt)
                torch.nn.utils.clip_grad_norm_(disc.module.discriminator.parameters(), 1.0)
                scaler.step(disc_opt)
                scaler.update()
            step += 1
