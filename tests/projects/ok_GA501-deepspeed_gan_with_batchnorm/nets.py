from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 4), nn.BatchNorm2d(8), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 4))

    def forward(self, x):
        return self.body(x).sigmoid().flatten()


class Painter(nn.Module):
    def __init__(self, nz):
        super().__init__()
        self.body = nn.Sequential(nn.ConvTranspose2d(nz, 8, 4), nn.BatchNorm2d(8), nn.ConvTranspose2d(8, 3, 4))

    def forward(self, x):
        return self.body(x).tanh()
