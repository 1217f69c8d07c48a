"""GA501: BatchNorm statistics come from the micro-batch, not from the large batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.layer_choices import NORM, UNKNOWN, Env, Thing, is_norm, layer_class
from galint.checks.norm_layers import NormLayers
from galint.checks.still_parts import Stillness, evaluated
from galint.checks.view import View
from galint.checks.windows import program_nodes
from galint.ledger import Step
from galint.run.nodes import terminal, walk
from galint.run.project import located
from galint.run.values import Class, External, Function, Lit, Mapping, Module, Partial, Value
from galint.source import Span

CODE = "GA501"
WITNESS = "even"
_TORCHVISION = re.compile(
    r"^(resnet|resnext|wide_resnet|densenet|googlenet|inception|mobilenet|mnasnet|shufflenet|efficientnet|regnet|fcn|deeplabv3|lraspp|r3d|"
    r"mc3|r2plus1d|s3d|vgg\w+_bn$|ResNet|DenseNet|MobileNet|EfficientNet)"
)
_TIMM = re.compile(
    r"^(tf_)?(resnet|resnext|wide_resnet|seresnet|seresnext|se_resne|skresnet|ecaresnet|densenet|efficientnet|mobilenet|mnasnet|mixnet|regnet|"
    r"dpn|xception|inception|res2ne|resnest|hrnet|dla|ghostnet|fbnet|spnasnet|cspresnet|cspdarknet|vgg\w+_bn|rexnet|hardcorenas|gernet|repvgg|nfnet_bn|dm_)"
)
_TREATS = re.compile(
    r"freeze_?bn|freeze_?batch_?norm|frozen_?batch|convert_\w*group_?norm|replace_\w*b(atch_?)?n", re.I
)
_FIRST_WEIGHTS = re.compile(
    r"(^|\.)init\.\w+_$|\.(data|weight|bias)\.(?!requires_grad)\w+_$|^(constant|normal|ones|zeros|uniform)_?(_init)?$|^isinstance$|^hasattr$"
)


def check(view: View) -> Iterator[Finding]:
    """BatchNorm layers in the model that the accumulated gradient trains."""
    step = _accumulated(view)
    if step is None or _handled(view) or _large_enough(view):
        return
    places = _layers(view, _trained(view))
    if not places:
        return
    span, what = min(places)
    related = view.places(step)
    if located(span)[0] is not None and (home := _home(view, step)) is not None:
        # A network of another file is right for other loops: it is this loop that cuts its batches small.
        span, related = home, ((span, f"the first `{what}`"), *related)
    more = len(places) - 1
    n = len(dict.fromkeys(step.window))
    yield Finding(
        CODE,
        span,
        f"`{what}` normalises each micro-batch by its own statistics, not by those of the {n} micro-batches of the large batch"
        + (f" ({more} more layer{'s' if more > 1 else ''} like it)" if more else "")
        + "; SyncBatchNorm joins ranks, not micro-batches: use GroupNorm, or freeze the statistics",
        step=step,
        window=n,
        related=related,
        applied="",
        expected="",
    )


def _home(view: View, step: Step) -> Span | None:
    """The backward where it stands in the linted file, else the micro-batch loop."""
    loss = next((e.span for e in step.applied if e.micro in step.window), None)
    loop = view.loop_of(step.window[-1]) if step.window else None
    return loss if loss is not None and (loop is None or located(loss)[0] is None) else loop


def _accumulated(view: View) -> Step | None:
    for ledger in view.ledgers:
        cadence = view.cadence(ledger)
        engine = getattr(view.run.optimizers.get(ledger.name), "engine", None)
        if engine is not None and not _speaks_of_accumulation(view):
            continue  # DeepSpeed's N is in a configuration that is not seen, and 1 by default
        for step in view.steps(ledger)[1:3] or view.steps(ledger)[:1]:
            if len({e.micro for e in step.applied} & set(view.window(step))) > 1 and (cadence is None or cadence.n > 1):
                return step
    return None


def _speaks_of_accumulation(view: View) -> bool:
    texts = (
        n.value if isinstance(n, p.Const) else terminal(n)
        for n in program_nodes(view)
        if isinstance(n, (p.Const, p.Name, p.Attr))
    )
    return any(isinstance(text, str) and "accum" in text.lower() for text in texts)


def _handled(view: View) -> bool:
    """True where the file freezes, replaces or otherwise treats its BatchNorm layers."""
    if view.static.once("BatchNorm is treated", lambda: _treated(view)):
        return True
    still: set[int] = view.run.facts.get("still", set())  # in `eval()` when a loss came through it
    return not still.isdisjoint(_trained(view))


def _treated(view: View) -> bool:
    for body in view.static.bodies:
        for stmt in body:
            starts: set[p.Node] = set()
            for node in view.static.walk(stmt):
                if isinstance(node, p.If) and _only_set_up(view, node):
                    starts |= set(view.static.walk(node.test))
                elif isinstance(node, p.If) and "BatchNorm" in p.text(node.test) and _puts_in_eval(view, node):
                    return True
                elif isinstance(node, p.Call):
                    name = terminal(node.func)
                    if name == "isinstance" and len(node.args) == 2 and "BatchNorm" in p.text(node.args[1].value):
                        if node not in starts:
                            return True
                    elif _TREATS.search(name):
                        return True
                elif isinstance(node, p.Compare) and "BatchNorm" in p.text(node) and "__name__" in p.text(node):
                    return True
    return False


def _only_set_up(view: View, node: p.If) -> bool:
    """True where a branch gives a layer its first weights or its constants and does nothing else with it."""
    for stmt in node.body:
        for part in view.static.walk(stmt):
            if isinstance(part, p.Call) and not _FIRST_WEIGHTS.search(p.text(part.func)):
                return False
            if isinstance(part, (p.Return, p.Raise, p.Yield, p.FunctionDef)):
                return False
            if isinstance(part, p.Assign) and not all(_is_constant(t, part.value) for t in part.targets):
                return False
    return True


def _puts_in_eval(view: View, node: p.If) -> bool:
    """`if name.find("BatchNorm") != -1: layer.eval()`."""
    return any(evaluated(n) is not None for stmt in node.body for n in view.static.walk(stmt))


def _is_constant(target: p.Expr, value: p.Expr) -> bool:
    return isinstance(target, p.Attr) and target.name in {"eps", "momentum"} and isinstance(value, p.Const)


def _trained(view: View) -> frozenset[int]:
    """What a loss has come through and an optimizer holds: a teacher's layers stay as they are."""
    through = frozenset().union(*(b.modules for b in view.run.backwards)) if view.run.backwards else frozenset()
    owned = frozenset().union(*(o.modules for o in view.run.optimizers.values()))
    ancestors: dict[int, frozenset[int]] = view.run.facts.get("ancestors", {})
    return frozenset(i for i in through if ({i} | ancestors.get(i, frozenset())) & owned) or through


def _large_enough(view: View) -> bool:
    sizes = [s for s in view.run.facts.get("batch_sizes", ()) if isinstance(s, int)]
    target = view.run.facts.get("target_micro_batch")
    return bool(sizes) and target is not None and min(sizes) >= target


def _layers(view: View, trained: frozenset[int]) -> set[tuple[Span, str]]:
    ancestors: dict[int, frozenset[int]] = view.run.facts.get("ancestors", {})
    wanted = set(trained)
    for ident, up in ancestors.items():
        if up & trained:
            wanted.add(ident)
    still = Stillness(view.static)
    found: set[tuple[Span, str]] = set()
    code = NormLayers(view.static, still)
    kept = {m.ident for m in view.run.modules.values() if isinstance(m, Module) and still.holds(m)}
    for ident in sorted(wanted):
        module = view.run.modules.get(ident)
        if not isinstance(module, Module) or kept & (ancestors.get(ident, frozenset()) | {ident}):
            continue
        made = module.items.get("__made__")
        name = made.value.rpartition(".")[2] if isinstance(made, Lit) else ""
        if NORM.match(name) and module.made is not None:
            found.add((module.made, f"nn.{name}"))
        elif module.made is not None and isinstance(made, Lit) and _zoo(made.value, name, module):
            found.add((module.made, _zoo_name(name, module)))
        if module.cls is not None:
            code.read_class(module.cls, _given(module))
    return found | code.found


def _given(module: Module) -> Env:
    """What a network of a class of the project was made with."""
    given = module.items.get("__given__")
    if not isinstance(given, Mapping) or module.made is None:
        return {}
    return {str(name): _thing(value, module.made) for name, value in given.items.items()}


def _thing(value: Value, made: Span) -> Thing:
    if isinstance(value, Lit):
        return Thing(value.value, constant=True)
    if isinstance(value, External):
        name = value.name.rpartition(".")[2]
        return layer_class(name, f"nn.{name}", made)
    if isinstance(value, Partial):
        return _thing(value.func, made)
    if isinstance(value, Class):
        return layer_class(value.node.name, value.node.name, made)
    if isinstance(value, Function):
        norm = next((n.func for n in walk(value.node) if isinstance(n, p.Call) and is_norm(n.func)), None)
        return Thing(norm=norm is not None, name=value.name, text=p.text(norm) if norm else "", span=made)
    return UNKNOWN


def _zoo_name(name: str, module: Module) -> str:
    zoo = module.items.get("__zoo__")
    return f"{zoo.value}" if isinstance(zoo, Lit) else name


def _zoo(full: str, name: str, module: Module) -> bool:
    norm = module.items.get("__norm__")
    if norm is not None and module.made is not None and not _thing(norm, module.made).norm:
        return False  # made with other layers
    if full.startswith("torchvision."):
        return bool(_TORCHVISION.match(name))
    zoo = module.items.get("__zoo__")
    if name == "create_model" and isinstance(zoo, Lit) and isinstance(zoo.value, str):
        return bool(_TIMM.match(zoo.value.split("/")[-1]))
    return full.startswith("timm.") and bool(_TIMM.match(name))
