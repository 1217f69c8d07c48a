"""Stand-ins under which scripts are observed: SGD for adaptive optimizers, small nets for model zoos."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Momentum(torch.optim.SGD):
    """SGD with momentum 0.9 under an adaptive optimizer's constructor."""

    def __init__(self, params: Any, lr: float = 1e-3, **ignored: object) -> None:
        super().__init__(params, lr=lr, momentum=0.9)


class _TinyNet(nn.Module):
    """Stands for a network of a model zoo: convolution, BatchNorm, classifier."""

    def __init__(self, classes: int, norm_layer: Callable[[int], nn.Module] | None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = (norm_layer or nn.BatchNorm2d)(8)
        self.fc = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(torch.relu(self.bn1(self.conv1(x))).mean((2, 3)))
        return logits


def zoo() -> dict[str, types.ModuleType]:
    """Small stand-ins for torchvision and timm, so that fixtures that name their models run without them."""
    vision, models, timm = (types.ModuleType(n) for n in ("torchvision", "torchvision.models", "timm"))

    def build(*args: object, num_classes: int = 10, norm_layer: Any = None, **options: object) -> _TinyNet:
        return _TinyNet(num_classes, norm_layer)

    for name in ("resnet18", "resnet34", "resnet50", "mobilenet_v2"):
        setattr(models, name, build)
    vision.models = models  # type: ignore[attr-defined]
    timm.create_model = build  # type: ignore[attr-defined]
    return {"torchvision": vision, "torchvision.models": models, "timm": timm}
