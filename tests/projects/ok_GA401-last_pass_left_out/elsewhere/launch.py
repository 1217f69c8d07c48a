from types import SimpleNamespace

import torch
from fit import fit, fit_in_stages
from torch import nn

torch.manual_seed(0)


class Scene(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Linear(6, 2)

    def prepare(self, options):
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)

    def lower_rate(self, number):
        self.optimizer.param_groups[0]["lr"] = 0.05 / number

    def grow(self): ...

    def save(self, number): ...


class Views:
    def pick(self):
        return SimpleNamespace(eye=torch.randn(4, 6), picture=torch.randn(4, 2))


scene = Scene()
options = SimpleNamespace(passes=8, grow_until=4)
fit(options, scene, Views(), lambda view, scene: scene.places(view.eye), [4])
