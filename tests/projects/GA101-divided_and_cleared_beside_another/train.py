"""The critic steps on every batch; the generator's losses are divided by N for a window that is cleared in each pass."""
# observe: params

import torch


def train(generator, critic, batches, n):
    of_generator = torch.optim.SGD(generator.parameters(), lr=0.05)
    of_critic = torch.optim.SGD(critic.parameters(), lr=0.05)
    for count, batch in enumerate(batches, start=1):
        of_critic.zero_grad()
        (critic(generator(batch).detach()).mean() - critic(batch).mean()).backward()
        of_critic.step()
        of_generator.zero_grad()  # expect: GA101
        loss = -critic(generator(batch)).mean() / n
        loss.backward()
        if count % n == 0:
            of_generator.step()
