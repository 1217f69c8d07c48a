from types import SimpleNamespace

import train
from torch import nn

settings = SimpleNamespace(use_ema=True, every=4, decay=0.9)
train.by_the_setting(settings, nn.Linear(8, 1), train.data())
train.by_the_average(settings, nn.Linear(8, 1), train.data())
