"""The real things of a stage: the tiny model, torch's optimizers, GradScaler, DDP, schedulers and data loaders."""

from __future__ import annotations

import re
import warnings
from typing import Any

import torch
from torch import nn

from galint.trace.stage.values import Class, NoStage

FEATURES, HIDDEN, CLASSES, BATCH = 6, 8, 3, 4
LEARNING_RATE = 0.01


def tiny(seed: int, norm: bool) -> nn.Sequential:
    """A small network; with BatchNorm where the finding is about it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = [nn.Linear(FEATURES, HIDDEN)]
        if norm:
            layers.append(nn.BatchNorm1d(HIDDEN))
        return nn.Sequential(*layers, nn.Tanh(), nn.Linear(HIDDEN, CLASSES))


class Batches(torch.utils.data.Dataset[torch.Tensor]):
    """A data set of as many batches as the loop's loader is long."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        if not 0 <= index < self.length:
            raise IndexError(index)
        return torch.tensor([index])


def loader(length: int) -> torch.utils.data.DataLoader[torch.Tensor]:
    """A real DataLoader of so many batches."""
    return torch.utils.data.DataLoader(Batches(length), batch_size=1)


def parameters_in(value: Any, depth: int = 0) -> list[nn.Parameter]:
    """The real parameters in an argument: a list, a generator, parameter groups."""
    if isinstance(value, nn.Parameter):
        return [value]
    if isinstance(value, nn.Module):
        return list(value.parameters())
    if depth > 4 or isinstance(value, str | bytes):
        return []
    if isinstance(value, dict):
        return [q for v in value.values() for q in parameters_in(v, depth + 1)]
    if isinstance(value, list | tuple):
        return [q for v in value for q in parameters_in(v, depth + 1)]
    if hasattr(value, "__next__") and not isinstance(value, torch.Tensor):
        return [q for v in value for q in parameters_in(v, depth + 1)]
    return []


def optimizer(name: str, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer of torch by that name, SGD with momentum where it has none."""
    unique = list(dict.fromkeys(parameters))
    cls: Any = getattr(torch.optim, name, None)
    if name == "LBFGS":
        raise NoStage("LBFGS evaluates the loss several times in one step")
    if (
        not isinstance(cls, type)
        or not issubclass(cls, torch.optim.Optimizer)
        or name in {"SparseAdam", "Optimizer", "Muon"}
    ):
        cls = torch.optim.SGD
    if cls is torch.optim.SGD:
        return torch.optim.SGD(unique, lr=LEARNING_RATE, momentum=0.9)
    made: torch.optim.Optimizer = cls(unique, lr=LEARNING_RATE)
    return made


def scheduler(owner: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    """A schedule that keeps the rate: only its steps are of interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.optim.lr_scheduler.LambdaLR(owner, lambda _: 1.0)


def scaler(device: torch.device, enabled: bool) -> torch.amp.GradScaler:
    """torch's own scaler, on the CPU too."""
    return torch.amp.GradScaler(device.type, enabled=enabled)


def wrapped(module: nn.Module, device: torch.device) -> nn.Module:
    """The module in a real DistributedDataParallel."""
    if isinstance(module, nn.parallel.DistributedDataParallel):
        return module
    if not torch.distributed.is_initialized():
        raise NoStage("there is no process group for DistributedDataParallel")
    ids = [device.index or 0] if device.type == "cuda" and torch.distributed.get_backend() == "nccl" else None
    return nn.parallel.DistributedDataParallel(module, device_ids=ids)


def bare(module: nn.Module) -> nn.Module:
    """The module inside wrappers."""
    while isinstance(module, nn.parallel.DistributedDataParallel):
        module = module.module
    return module


_FAMILY = re.compile(r"(SGD|AdamW|Adam|RMSprop|Adagrad|Adadelta|Adamax|NAdam|RAdam|ASGD|Rprop|LBFGS|Adafactor)$")


def family(name: str) -> str:
    """torch's optimizer that a library's class is a variant of: `bnb.optim.AdamW` → AdamW; SGD when unknown."""
    found = _FAMILY.search(name)
    return found[1] if found else "SGD"


def is_optimizer(name: str) -> bool:
    """Whether a dotted name is an optimizer's class."""
    last = name.rsplit(".", 1)[-1]
    if ".lr_scheduler" in name or name.endswith("swa_utils.AveragedModel"):
        return False
    return bool(_FAMILY.search(last)) or bool(re.search(r"(^|\.)optim(izers?)?\.[A-Z]\w*$", name))


def is_scheduler(name: str) -> bool:
    """Whether a dotted name makes a learning-rate schedule."""
    last = name.rsplit(".", 1)[-1]
    return ".lr_scheduler." in name or bool(re.fullmatch(r"get_\w*schedule\w*|\w*(LR|Scheduler)", last))


def steps_itself(cls: Class) -> bool:
    """A subclass of an optimizer that writes to the parameters itself: torch's own does what matters of it.

    One whose methods call a step decides when: its text is run.
    """
    if cls.trains or not any(name == "Optimizer" or is_optimizer(name) for name in cls.foreign):
        return False
    texts = [c for f, _ in cls.methods.values() for c in f.__code__.co_consts if isinstance(c, str)]
    return not any(".step(" in text for text in texts)
