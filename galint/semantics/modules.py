"""`torch.nn` modules: construction, parameters, the forward, training mode."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from galint import program as p
from galint.run.kinds import LOSS_NAME
from galint.run.nodes import path_terminal, terminal
from galint.run.site import Site
from galint.run.values import NONE, Instance, Lit, Module, Opaque, Seq, Tensor, Value
from galint.run.words import Words
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _forward(m: Calls, s: Site) -> Value | None:
    """Calling a module: the output descends from its parameters; DDP reads its flag here."""
    module = s.receiver
    if not isinstance(module, (Module, Instance)):
        return None
    values = s.all_args()
    born = max((m.born_of(v) for v in values), default=0)
    tensors = [t for v in values for t in m.tensors_in(v)]
    if isinstance(module, Module) and not tensors and _is_a_factory(m, module, values):
        return m.make_module(f"{module.path}(…)")
    out = m.tensor(f"{module.path}(…)", born)
    if not _frozen(m, module):
        out.modules |= module.modules
    for tensor in tensors:
        if tensor.grad:
            out.modules |= tensor.modules
            out.synced = {**tensor.synced, **out.synced}
            out.bypassed |= tensor.bypassed
        out.hidden |= tensor.hidden
    core: Value | None = module  # what the wrappers hold
    while isinstance(core, Module) and core.cls is None and core.inner is not None:
        core = core.inner
    cls = core.cls if isinstance(core, Module) else None
    out.summed = cls is not None and _sums(m, cls)
    out.hidden |= m._settings([v for v in values if not (isinstance(v, Opaque) and v.data)])
    if isinstance(core, Module) and cls is not None:
        out.hidden |= _divisors(m, core, cls) if any(t.grad for t in tensors) else _loss_divisors(m, core, cls)
    if isinstance(module, Module) and out.grad:
        _note_sync(m, module, out)
        m.event("forward", s.span, module.path, ident=module.ident)
        m.outputs |= dict.fromkeys(module.modules, out)
    return out


_SETTINGS = Words(r"(^|[._])(cfg|config|conf|hparams|opts?|args|settings)($|_)", re.I)


def _is_a_factory(m: Calls, module: Module, values: list[Value]) -> bool:
    """Whether a thing called like a network is the class of one: called outside loops, with settings and no data."""
    unseen = module.cls is None and module.made is None and not module.wrap
    settings = any(type(v) is Opaque and _SETTINGS.search(v.path) for v in values)
    return unseen and settings and not m.loops and not any(m.is_data(v) for v in values)


def _frozen(m: Calls, module: Module | Instance) -> bool:
    """Whether the parameters are switched off now, so that a gradient only passes through."""
    core: Value | None = module
    while isinstance(core, Module) and core.inner is not None:
        core = core.inner
    return core.ident in m.frozen if isinstance(core, Module) else bool(module.modules) and module.modules <= m.frozen


def _requires_grad(m: Calls, s: Site) -> Value | None:
    """`module.requires_grad_(flag)`, and the same of a parameter."""
    receiver = s.receiver
    if isinstance(receiver, (Module, Instance)) or (isinstance(receiver, Opaque) and receiver.role == "param"):
        flag = s.arg(0, "requires_grad")
        m.freeze(receiver.modules, True if flag is None else m.truth(flag))
        return receiver
    return None


def _divisors(m: Calls, module: Module, cls: p.ClassDef) -> frozenset[str]:
    """What a project's own loss module may divide by: names in its divisions, settings it was made with."""
    known: dict[int, frozenset[str]] = m.result.facts.setdefault("divisors", {})
    if id(cls) not in known:
        found = [n.right for n in m.static.walk(cls) if isinstance(n, p.BinOp) and n.op in {"/", "*"}]
        known[id(cls)] = frozenset(map(p.text, found))
    return _with_settings(known[id(cls)], module)


def _with_settings(divisors: frozenset[str], module: Module) -> frozenset[str]:
    """`self.n` may be any setting that the module was made with."""
    given = module.items.get("__settings__")
    return divisors | given.keys if divisors and isinstance(given, Lit) else divisors


def _loss_divisors(m: Calls, module: Module, cls: p.ClassDef) -> frozenset[str]:
    """What a network that computes its own loss divides it by before it gives it back."""
    known: dict[int, frozenset[str]] = m.result.facts.setdefault("loss_divisors", {})
    if id(cls) not in known:
        scaled = [n.value for n in m.static.walk(cls) if isinstance(n, p.Return)]
        scaled += [
            n.value for n in m.static.walk(cls) if isinstance(n, p.Assign) and LOSS_NAME.search(terminal(n.targets[0]))
        ]
        known[id(cls)] = frozenset(p.text(v.right) for v in scaled if isinstance(v, p.BinOp) and v.op in {"/", "*"})
        changed = [n for n in m.static.walk(cls) if isinstance(n, p.AugAssign) and LOSS_NAME.search(terminal(n.target))]
        known[id(cls)] |= {p.text(n.value) for n in changed if n.op in {"/", "*"}}
    return _with_settings(known[id(cls)], module)


def _sums(m: Calls, cls: p.ClassDef) -> bool:
    """Whether a model's or a criterion's own code builds a loss that is a sum over the samples."""
    known: dict[int, bool] = m.result.facts.setdefault("sums", {})
    if id(cls) not in known:
        known[id(cls)] = any(_sum_reduction(n) or _returns_sum(n) for n in m.static.walk(cls))
    return known[id(cls)]


def _sum_reduction(node: p.Node) -> bool:
    return (
        isinstance(node, p.Arg)
        and node.keyword == "reduction"
        and isinstance(node.value, p.Const)
        and node.value.value == "sum"
    )


def _returns_sum(node: p.Node) -> bool:
    """`return losses.sum()` or `return torch.sum(losses)`: over everything, not along one dimension."""
    if not isinstance(node, p.Return) or not isinstance(node.value, p.Call) or terminal(node.value.func) != "sum":
        return False
    func = node.value.func
    whole = 1 if isinstance(func, p.Attr) and p.text(func.value) == "torch" else 0
    return isinstance(func, p.Attr) and len(node.value.args) == whole


def _note_sync(m: Calls, module: Module, out: Tensor) -> None:
    wrappers = [
        w
        for w in m.result.modules.values()
        if isinstance(w, Module) and w.wrap in {"ddp", "fsdp", "fsdp2", "apex-ddp", "fabric"}
    ]
    for wrapper in wrappers:
        if wrapper is module:
            out.synced[wrapper.ident] = m.syncs(wrapper)
        elif wrapper.inner is module:  # `ddp.module.loss(ddp(x), y)` went through a wrapper before
            through = any(w.inner is module and w.ident in out.synced for w in wrappers)
            out.bypassed |= frozenset() if through else {wrapper.ident}
        elif _inside(wrapper, module):
            out.synced.setdefault(wrapper.ident, m.syncs(wrapper))


def _inside(wrapper: Module, outer: Module) -> bool:
    """True when `outer` holds `wrapper` as a part."""
    return wrapper.ident in outer.modules and wrapper is not outer


def _parameters(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, (Module, Instance, Opaque)) and not s.receiver.data:
        return Opaque(f"{s.receiver.path}.{s.name}()", "params", modules=s.receiver.modules)
    return None


def _train(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Module):
        flag = s.flag(0, "mode")
        s.receiver.training = s.name == "train" and flag is not False
        m.event("mode", s.span, s.receiver.path, training=s.receiver.training)
        return s.receiver
    return None


def _same_module(m: Calls, s: Site) -> Value | None:
    return s.receiver


def _zero_grad(m: Calls, s: Site) -> Value | None:
    """`Module.zero_grad()` clears every parameter of the module."""
    if isinstance(s.receiver, (Module, Instance)):
        m.clear(None, s.receiver.modules, s.span, s.text)
        return NONE
    return None


def _make(m: Calls, s: Site) -> Value | None:
    """A torch.nn layer or container: a module made of the modules it was given."""
    module = m.make_module(f"#{m.tick()}")
    module.made = s.span
    parts: list[Value] = []
    for value in s.all_args():
        parts += value.elts if isinstance(value, Seq) else [value]
    for part in parts:
        if isinstance(part, Module):
            m.ancestors[part.ident] = m.ancestors[part.ident] | {module.ident}
            module.modules |= part.modules
    module.items["__made__"] = Lit(s.name)
    return module


def _same_thing(m: Calls, s: Site) -> Value | None:
    """torch.compile, convert_sync_batchnorm and the like give the module back."""
    value = s.arg(0, "model") or s.arg(0, "module")
    if isinstance(value, Module):
        if s.name.endswith("convert_sync_batchnorm"):
            m.event("sync_batchnorm", s.span, value.path)
        return value
    return value


def _deepcopy(m: Calls, s: Site) -> Value | None:
    value = s.arg(0)
    if isinstance(value, Module):
        return m.make_module(f"copy of {value.path}")
    return value


def _apex_initialize(m: Calls, s: Site) -> Value | None:
    """`amp.initialize(model, optimizer)` gives both back."""
    values = [v for v in (s.arg(0, "models"), s.arg(1, "optimizers")) if v is not None]
    return values[0] if len(values) == 1 else Seq(values, "tuple")


def _named_model(m: Calls, s: Site) -> Value | None:
    """A model of a zoo: `torchvision.models.resnet50(…)`, `timm.create_model(…)`, `X.from_pretrained(…)`."""
    module = m.make_module(f"#{m.tick()}")
    module.made = s.span
    module.items["__made__"] = Lit(s.name)
    first = s.arg(0, "model_name")
    if isinstance(first, Lit) and isinstance(first.value, str):
        module.items["__zoo__"] = first
    norm = s.kwargs.get("norm_layer")
    if norm is not None and not (isinstance(norm, Lit) and norm.value is None):
        module.items["__norm__"] = norm
    return module


def _functional_call(m: Calls, s: Site) -> Value | None:
    module = s.arg(0)
    if isinstance(module, Module):
        return _forward(m, Site("forward", s.args[1:], s.kwargs, s.node, s.frame, module))
    return None


_NO_NETWORKS = frozenset(
    [
        "apps",
        "engines",
        "explain",
        "handlers",
        "inferers",
        "loader",
        "metrics",
        "optim",
        "optimizers",
        "sampler",
        "scheduler",
        "utils",
        "visualize",
    ]
)
"""Rooms of the zoos whose classes are loaders, meters and runners."""


def guess(name: str) -> Meaning | None:
    """Layers of torch.nn and models of the zoos."""
    root, _, rest = name.partition(".")
    last = path_terminal(name)
    if (
        root == "torch"
        and f".{rest}".startswith(".nn.")
        and last[:1].isupper()
        and "functional" not in rest
        and "init" not in rest
    ):
        return _make
    if (
        rest.partition(".")[0] not in _NO_NETWORKS
        and root
        in {
            "torchvision",
            "timm",
            "segmentation_models_pytorch",
            "smp",
            "torch_geometric",
            "monai",
            "efficientnet_pytorch",
        }
        and (
            "models" in rest
            or "create_model" in rest
            or ".nets" in rest
            or (last[:1].isupper() and root != "torchvision")
        )
    ):
        return (
            _named_model
            if "transforms" not in rest and "data" not in rest and "Loss" not in last and "loss" not in rest
            else None
        )
    if last == "from_pretrained" and any(
        w in name for w in ("Model", "Bert", "GPT", "LM", "T5", "For", "UNet", "Vae", "CLIP", "Roberta")
    ):
        return (
            None if any(w in name for w in ("Token", "Config", "Processor", "Scheduler", "Feature")) else _named_model
        )
    return None


FUNCTIONS: dict[str, Meaning] = {
    "torch.compile": _same_thing,
    "torch.jit.script": _same_thing,
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm": _same_thing,
    "torch.nn.modules.batchnorm.SyncBatchNorm.convert_sync_batchnorm": _same_thing,
    "*.convert_sync_batchnorm": _same_thing,
    "*.convert_syncbn_model": _same_thing,
    "copy.deepcopy": _deepcopy,
    "apex.amp.initialize": _apex_initialize,
    "*.initialize_amp": _apex_initialize,
    "torch.func.functional_call": _functional_call,
    "torch.nn.utils.stateless.functional_call": _functional_call,
}

METHODS: dict[tuple[str, str], Meaning] = {
    ("module", "forward"): _forward,
    ("module", "()"): _forward,
    ("module", "parameters"): _parameters,
    ("module", "named_parameters"): _parameters,
    ("opaque", "parameters"): _parameters,
    ("opaque", "named_parameters"): _parameters,
    ("instance", "parameters"): _parameters,
    ("module", "train"): _train,
    ("module", "eval"): _train,
    ("module", "zero_grad"): _zero_grad,
    ("module", "requires_grad_"): _requires_grad,
    ("param", "requires_grad_"): _requires_grad,
    **{
        ("module", name): _same_module
        for name in [
            "to",
            "cuda",
            "cpu",
            "half",
            "float",
            "double",
            "bfloat16",
            "apply",
            "compile",
            "type",
        ]
    },
}
