"""What kind of thing a name suggests: by the methods called on it first, by its spelling last."""

from __future__ import annotations

import re

from galint.run.words import Words

LOSS_NAME = Words(r"loss|cost|objective|(^|_)(elbo|nll|ce|kld?)(_|$)", re.I)
_OPTIMIZER = re.compile(r"(^|_)(opt|optim|optimizer)(s?$|_|\d)|optimizer", re.I)
_NOT_OPTIMIZER = re.compile(
    r"optimizer?s?_?(step|config|cfg|name|type|class|cls|args|kwargs|params|groups?|state|lr|wrapper_cfg|idx|index|dict)"
    r"|optim\w*_in_(bwd|backward)|^_?(use|enable|has|is|offload)_\w*opt"
    r"|(^|_)opts?$(?<!opt)|num_|n_opt|optimized|optimize_|^opts$|hyper",
    re.I,
)
_SCALER = re.compile(r"(^|_)scaler$|grad_?scaler|^amp_scaler|loss_scaler$", re.I)
_ACCELERATOR = re.compile(r"(self\.)?_?accelerator")
_SCHEDULER = re.compile(r"sched", re.I)
_NOT_SCHEDULER = re.compile(r"type|name|args|cfg|config|step|kwargs", re.I)
_MODULE = re.compile(
    r"^(_?model|_?net|network|.*_model|.*_net|model_.*|net[A-Z_].*|generator|discriminator|critic|encoder|decoder|"
    r"actor|policy|backbone|student|teacher|unet|vae|transformer|gpt|bert|[GD]|net[GD]|ddp_model|unwrapped_model)$"
)
_NOT_MODULE = re.compile(
    r"(cfg|config|name|path|dir|args|type|dim|size|id|kwargs|dict|state|file|params?|parameters|groups?"
    r"|_(init|cls|class|factory|builder|creator|provider))$"
    r"|^(make|build|create|get|load|new|setup)_",
    re.I,
)
_LOADER = re.compile(r"(loader|(^|_)dl|data_?iter|batches|dataset)s?\d*$", re.I)
_NUMBER_OF = re.compile(r"(^|_)(n|nb|num|max|total|count|len|idx|per|min|every|accum\w*|grad_acc\w*|virtual)_", re.I)
_CRITERION = re.compile(r"criterion|loss_?(fn|func|function|fct|module|layer)|objective|(^|_)crit$", re.I)


def kind_by_use(name: str, uses: set[str], called_with: set[str]) -> str:
    """Kind of a thing called `name` whose methods `uses` are called (`called_with`: with arguments)."""
    if name in {"self", "cls", "torch", "nn", "dist", "np", "os"}:
        return ""
    clears = "zero_grad" in uses and not _MODULE.match(name)  # DeepSpeed's engine goes by the network's name
    if "backward" in called_with and "step" in uses and not clears and not _OPTIMIZER.search(name):
        return "scaler" if "step" in called_with else "engine"  # `helper.step(optimizer)`: the engine has its own
    if "unscale_" in uses or {"scale", "step", "update"} <= uses or _SCALER.search(name):
        return "scaler"
    if _SCHEDULER.search(name) and not {"zero_grad", "step"} <= uses and not _NOT_SCHEDULER.search(name):
        return "scheduler"
    if _ACCELERATOR.fullmatch(name):
        return "accelerator"
    if name in {"fabric", "_fabric"}:
        return "fabric"
    if ("zero_grad" in uses and "step" in uses) or (_OPTIMIZER.search(name) and not _NOT_OPTIMIZER.search(name)):
        return "optimizer"
    if (
        uses
        & {
            "parameters",
            "named_parameters",
            "no_sync",
            "load_state_dict",
            "train",
            "eval",
            "state_dict",
            "modules",
        }
        and not _NOT_MODULE.search(name)
        and not re.search(r"trainer|ema|sampler|loader", name, re.I)
    ):
        return "module"
    if _CRITERION.search(name):
        return "criterion"
    if _MODULE.match(name) and not _NOT_MODULE.search(name):
        return "module"
    if _LOADER.search(name) and not _NUMBER_OF.search(name):
        return "loader"
    return ""
