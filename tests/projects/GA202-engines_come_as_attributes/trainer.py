"""The same, with the engines' own division written out by hand as well."""
# the engines are deepspeed.initialize(...) of another file
import deepspeed  # noqa: F401


class Trainer:
    def __init__(self, engines, args):
        self.engines = engines
        self.actor_model = engines.actor
        self.critic_model = engines.critic
        self.args = args

    def train_pair(self, batch, advantages, returns):
        actor_loss = -(self.actor_model(batch) * advantages).mean()
        self.actor_model.backward(actor_loss / self.args.gradient_accumulation_steps)  # expect: GA202
        self.actor_model.step()
        critic_loss = (self.critic_model(batch) - returns).square().mean()
        self.critic_model.backward(critic_loss)
        self.critic_model.step()
        return actor_loss, critic_loss
