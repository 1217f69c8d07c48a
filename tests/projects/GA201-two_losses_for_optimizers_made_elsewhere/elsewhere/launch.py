import torch
from rounds import rounds
from torch import nn


class Agent:
    epochs, part, gather = 2, 4, 4

    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 1), nn.Linear(3, 1)
        self.acting = torch.optim.SGD(self.actor.parameters(), lr=0.05, momentum=0.9)
        self.judging = torch.optim.SGD(self.critic.parameters(), lr=0.05, momentum=0.9)

    def evaluate(self, data):
        return self.actor(data).sigmoid(), self.critic(data), data.sum(dim=1, keepdim=True)


torch.manual_seed(0)
rounds(Agent(), torch.randn(32, 3))
