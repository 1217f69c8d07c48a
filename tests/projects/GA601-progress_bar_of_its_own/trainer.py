"""The loader is handed to a progress bar of the project's own: one from out of sight, one that derives from tqdm."""
# observe: allreduces

from meters import TQDM
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm as plain_bar


class Bar(plain_bar):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{"disable": True, **kwargs})


class Trainer:
    def __init__(self, settings, network, loader, optimizer, criterion):
        self.network = DistributedDataParallel(network)
        self.each = max(round(settings.nominal / settings.batch), 1)
        self.loader = loader
        self.optimizer = optimizer
        self.criterion = criterion
        self.length = len(loader)

    def far(self, epochs):
        last = -1
        self.optimizer.zero_grad()
        for epoch in range(epochs):
            for i, (pictures, boxes) in TQDM(enumerate(self.loader), total=self.length):
                now = i + self.length * epoch
                (self.criterion(self.network(pictures), boxes) / self.each).backward()  # expect: GA601
                if now - last >= self.each:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    last = now

    def near(self, epochs):
        last = -1
        self.optimizer.zero_grad()
        for epoch in range(epochs):
            for i, (pictures, boxes) in Bar(enumerate(self.loader), total=self.length):
                now = i + self.length * epoch
                (self.criterion(self.network(pictures), boxes) / self.each).backward()  # expect: GA601
                if now - last >= self.each:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    last = now
