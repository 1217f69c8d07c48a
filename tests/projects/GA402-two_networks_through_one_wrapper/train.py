"""Two networks and their optimizers go through a wrapper that galint cannot see: each comes back as itself."""

import torch
from settings import parse_configs
from torch import nn
from torch.utils.data import DataLoader
from wrapping import Booster


def create_optimizer(network, settings):
    name = settings.pop("cls", "SGD")
    if name != "SGD":
        raise ValueError(name)
    return torch.optim.SGD(filter(lambda p: p.requires_grad, network.parameters()), **settings)


def main(samples):
    conf = parse_configs()
    coder, judge = nn.Linear(6, 6), nn.Linear(6, 1)
    optimizer, judge_optimizer = create_optimizer(coder, conf.optim), create_optimizer(judge, conf.optim_judge)
    loader = DataLoader(samples, batch_size=4)
    booster = Booster()
    coder, optimizer, _, loader = booster.boost(model=coder, optimizer=optimizer, criterion=None, dataloader=loader)
    judge, judge_optimizer, _, _ = booster.boost(model=judge, optimizer=judge_optimizer)
    gather = int(conf.get("gather", 1))
    for _ in range(2):
        for number, x in enumerate(loader):
            again = coder(x)
            booster.backward(loss=(again - x).pow(2).mean() / gather, optimizer=optimizer)
            if (number + 1) % gather == 0:  # expect: GA402
                optimizer.step()
                optimizer.zero_grad()
            lost = (judge(x.detach()) - judge(again.detach())).mean()
            booster.backward(loss=lost / gather, optimizer=judge_optimizer)
            if (number + 1) % gather == 0:  # expect: GA402
                judge_optimizer.step()
                judge_optimizer.zero_grad()


if __name__ == "__main__":
    main([torch.randn(6) for _ in range(40)])
