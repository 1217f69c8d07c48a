"""A critic's loss passes through the generator, whose gradients are cleared each time and wait for its own loss."""

import torch


def main(generator, critic, dataloader, opt):
    generator_optimizer = torch.optim.Adam(generator.parameters(), 1e-4, betas=(0, 0.9))
    critic_optimizer = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0, 0.9))
    for _ in range(opt.epochs):
        for i, (images, _) in enumerate(dataloader):
            critic_optimizer.zero_grad()
            fake = generator(torch.randn(images.shape[0], opt.latent))
            critic_loss = critic(fake).mean() - critic(images).mean()
            critic_loss.backward()
            critic_optimizer.step()

            generator_optimizer.zero_grad()
            if i % opt.n_critic == 0:
                fake = generator(torch.randn(images.shape[0], opt.latent))
                generator_loss = -critic(fake).mean()
                generator_loss.backward()
                generator_optimizer.step()
