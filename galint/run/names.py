"""Names that the abstract run knows by heart: builtins, methods, settings whose default switches a feature off."""

from __future__ import annotations

import re

from galint.run.words import Words

RANK_NAME = re.compile(r"rank$", re.I)
ONE_RANK = Words(r"(^|_)(local_rank|rank|world_?size|n_?gpus?|num_gpus|nproc\w*|num_processes|gpus)$", re.I)
MICRO_SIZE = re.compile(r"micro_?(batch)?_?(size)?$|micro_?bs$", re.I)
ONE_WINDOW = Words(r"accum|micro_?batch|(^|_)iter_size|update_freq|subdivision|grad_acc|batch_chunk|num_chunks", re.I)
OVERFLOW = Words(r"overflow|found_?inf", re.I)
"""What says that gradients are no numbers: no counter, and no setting."""
CONFIG = Words(r"(^|\.)(args|cfg|config|conf|opts?|hparams|hp|params|flags|FLAGS|settings|_args|_config)$")
SETTINGS = Words(
    r"^(\w+[._])?(\w*config\w*(\([^#]*\))?|args|cfg|conf|hparams|settings)(\[[^\]]*\])*$"
    r"|^(yaml|json|tomli?|tomllib|OmegaConf)\.(\w+_)?loads?\([^#]*\)(\[[^\]]*\])*$"
)
"""What holds settings, or a file of them that was read, by its items."""
BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "dict",
        "divmod",
        "enumerate",
        "filter",
        "float",
        "frozenset",
        "getattr",
        "hasattr",
        "id",
        "int",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "list",
        "map",
        "max",
        "min",
        "next",
        "object",
        "open",
        "print",
        "property",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "setattr",
        "slice",
        "sorted",
        "staticmethod",
        "classmethod",
        "str",
        "sum",
        "super",
        "tuple",
        "type",
        "vars",
        "zip",
        "callable",
        "hash",
        "format",
        "input",
        "eval",
        "exec",
        "exit",
        "quit",
        "Exception",
        "ValueError",
        "RuntimeError",
        "StopIteration",
        "KeyError",
        "TypeError",
        "NotImplementedError",
        "AssertionError",
        "KeyboardInterrupt",
        "globals",
        "locals",
        "bytes",
        "iter",
    ]
)
MODULE_METHODS = frozenset(
    [
        "parameters",
        "named_parameters",
        "buffers",
        "modules",
        "named_modules",
        "children",
        "state_dict",
        "load_state_dict",
        "train",
        "eval",
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "zero_grad",
        "no_sync",
        "requires_grad_",
        "apply",
        "register_buffer",
        "forward",
        "__call__",
        "named_children",
        "set_requires_gradient_sync",
        "disable_allreduce",
        "enable_allreduce",
        "gradient_checkpointing_enable",
        "save_pretrained",
        "backward",
        "step",
        "join",
    ]
)
GRADIENT_METHODS = frozenset(
    [
        "backward",
        "step",
        "zero_grad",
        "no_sync",
        "accumulate",
        "no_backward_sync",
        "unscale_",
        "scale",
        "update",
        "clip_grad_norm_",
        "parameters",
        "named_parameters",
        "manual_backward",
        "item",
        "append",
    ]
)
FRAMEWORKS = frozenset(
    [
        "torch",
        "accelerate",
        "lightning",
        "pytorch_lightning",
        "lightning_fabric",
        "deepspeed",
        "transformers",
        "apex",
        "timm",
        "torchvision",
        "trl",
        "diffusers",
        "peft",
        "ignite",
        "mmengine",
        "fairscale",
        "colossalai",
        "tqdm",
        "numpy",
    ]
)
"""Packages whose names mean what galint says of them, even where a project holds a namesake."""
TPU = re.compile(r"(^|[._])(tpu|xla)(_|$|\()", re.I)
"""What asks for an XLA device."""
SWITCHES = re.compile(r"(?<!a)sync(?!_?b(n|atch))\w*\(", re.I)
"""A context whose name says that it switches the synchronisation of gradients."""
RANKS = re.compile(
    r"world_?size|device_count|n_?gpus?\b|num_gpus|num_replicas|num_processes|nproc|num_devices"
    r"|\b(hvd|horovod(\.torch)?)\.(local_)?size\b",
    re.I,
)
"""What names a number of processes."""
