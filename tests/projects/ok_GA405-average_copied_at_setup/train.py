"""A step and an update of the average for each batch; one more update at set-up copies the weights."""

import accelerate
import state as states


def train(config, loader, build):
    accelerator = accelerate.Accelerator()
    state = states.make_state(config, build)
    net, net_ema, optimizer, loader = accelerator.prepare(state.net, state.net_ema, state.optimizer, loader)

    def train_step(batch):
        optimizer.zero_grad()
        loss = net(batch)
        accelerator.backward(loss.mean())
        optimizer.step()
        state.ema_update(config.get("ema_rate", 0.9999))
        state.step += 1

    stream = iter(loader)
    while state.step < config.n_steps:
        train_step(next(stream))


def main(config, loader, build):
    train(config, loader, build)
