"""The networks of the study: a ResNet-18 for 32x32 images and a small net, with a choice of normalisation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

NORMS: dict[str, Callable[[int], nn.Module]] = {
    "batchnorm": nn.BatchNorm2d,
    "groupnorm": lambda channels: nn.GroupNorm(min(8, channels // 4), channels),
    "none": lambda channels: nn.Identity(),
}


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al. 2015, arXiv:1512.03385). Without normalisation the branch starts at zero.

    The zero start (a scale as in SkipInit, De and Smith 2020, arXiv:2002.10444) keeps an unnormalised net of this depth trainable.
    """

    def __init__(self, inside: int, outside: int, stride: int, norm: str) -> None:
        super().__init__()
        make = NORMS[norm]
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = make(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = make(outside)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), make(outside))
        self.scale = nn.Parameter(torch.zeros(1)) if norm == "none" else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Residual branch plus shortcut."""
        branch = self.second_norm(self.second(torch.relu(self.first_norm(self.first(x)))))
        if self.scale is not None:
            branch = branch * self.scale
        return torch.relu(branch + self.shortcut(x))


def resnet18(norm: str, classes: int = 10) -> nn.Module:
    """ResNet-18 with the stem for 32x32 images: a 3x3 convolution and no pooling."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), NORMS[norm](64), nn.ReLU()]
    inside = 64
    for outside, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inside, outside, stride, norm), Block(outside, outside, 1, norm)]
        inside = outside
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes)]
    return _started(nn.Sequential(*layers), norm)


def small(norm: str, classes: int = 10) -> nn.Module:
    """Two residual blocks on 16 and 32 channels: a second of CPU time where ResNet-18 needs a minute."""
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False),
        NORMS[norm](16),
        nn.ReLU(),
        Block(16, 16, 1, norm),
        Block(16, 32, 2, norm),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, classes),
    )
    return _started(net, norm)


def _started(net: nn.Module, norm: str) -> nn.Module:
    """Without normalisation torch's default start shrinks the signal at each convolution; He's keeps its size.

    Source: He et al. 2015, arXiv:1502.01852, equation 10.
    """
    if norm == "none":
        for module in net.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    return net
