"""Two DeepSpeed engines come in as attributes of another object; each divides, steps and clears by itself."""

import deepspeed


class Engines:
    def __init__(self, actor, critic, config):
        self.actor, *_ = deepspeed.initialize(model=actor, config=config)
        self.critic, *_ = deepspeed.initialize(model=critic, config=config)


class Trainer:
    def __init__(self, engines, args):
        self.engines = engines
        self.actor_model = engines.actor
        self.critic_model = engines.critic
        self.args = args

    def train_pair(self, batch, advantages, returns):
        actor_loss = -(self.actor_model(batch) * advantages).mean()
        self.actor_model.backward(actor_loss)
        if not self.args.together:
            self.actor_model.step()
        critic_loss = (self.critic_model(batch) - returns).square().mean()
        self.critic_model.backward(critic_loss)
        if self.args.together:
            self.actor_model.step()
        self.critic_model.step()
        return actor_loss, critic_loss
