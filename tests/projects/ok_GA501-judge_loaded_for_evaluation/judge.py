from torch import nn


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, picture):
        return self.layers(picture)


def build():
    judge = Judge()
    return judge.eval()


def load():
    return build().to("cpu")
