"""The policy takes the newest whole gradient at every so many updates of the value network: nothing is accumulated."""

import torch


class Learner:
    def __init__(self, policy, value, delay):
        self.policy, self.value, self.delay = policy, value, delay
        self.policy_optimizer = torch.optim.SGD(policy.parameters(), lr=0.05)
        self.value_optimizer = torch.optim.SGD(value.parameters(), lr=0.05)

    def learn(self, count, states, actions, returns):
        self.value_optimizer.zero_grad()
        (self.value(states, actions) - returns).square().mean().backward()
        self.value_optimizer.step()
        self.policy_optimizer.zero_grad()
        loss = -self.value(states, self.policy(states)).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        if count % self.delay == 0:
            self.policy_optimizer.step()


def train(learner, memory):
    for count in range(1000):
        learner.learn(count, *memory.draw())
