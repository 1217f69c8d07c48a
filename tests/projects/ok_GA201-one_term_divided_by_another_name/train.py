"""A batch is cut by the size of its parts; one term of the loss is divided by a number of parts, which is given elsewhere:
whether the sum of the losses lacks a factor cannot be told."""

import torch


def update(policy, reference, optimizer, batch, options):
    for part in batch.split(options.micro_size):
        chosen, kept = policy(part), reference(part)
        gain = -(chosen * part.sign()).mean() / options.gradient_accumulation_steps
        loss = gain + options.beta * (chosen - kept).square().mean()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def main(policy, reference, rounds, options):
    optimizer = torch.optim.AdamW(policy.parameters(), lr=options.rate)
    for batch in rounds:
        update(policy, reference, optimizer, batch, options)
