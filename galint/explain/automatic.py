"""Loops that a framework runs for the user: no line of the file steps, and the documented behaviour is told instead.

Sources: Lightning, "Trainer" (`accumulate_grad_batches`); transformers, "Trainer" (`gradient_accumulation_steps`,
`compute_loss`); Ignite, `ignite.engine.create_supervised_trainer`; mmengine, "OptimWrapper" (`accumulative_counts`); mmcv 1,
`GradientCumulativeOptimizerHook`; Catalyst, `OptimizerCallback` and `BackwardCallback`. What is said of those that
install is held against them in `tests/test_framework_facts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from galint import program as p
from galint.explain.model import LoopView
from galint.run.nodes import terminal, walk
from galint.source import Span

_LIGHTNING = {"lightning", "pytorch_lightning"}
_HUGGING_FACE = {"transformers", "trl", "sentence_transformers"}
_WORDS = {
    "Lightning": (
        "its Trainer divides the loss by N, runs backward, and steps and clears after every N-th micro-batch and after "
        "an epoch's last"
    ),
    "Hugging Face": (
        "its Trainer divides the loss by N where it is not divided by `num_items_in_batch`, runs backward, and steps "
        "and clears after every N-th micro-batch and after an epoch's last"
    ),
    "Ignite": "it divides the loss by N, runs backward, and steps after every N-th iteration, counted over all epochs",
    "mmengine": (
        "its OptimWrapper divides the loss by N, runs backward without synchronisation inside the window, and steps and "
        "clears after every N-th micro-batch and after the run's last"
    ),
    "Catalyst": (
        "its OptimizerCallback steps and clears after every N-th micro-batch; nothing divides the loss by N, so a mean loss "
        "has to be divided by the criterion or the batch's metrics"
    ),
    "mmcv": "its hook divides the loss by N, runs backward, and steps and clears after every N-th iteration",
}
_IGNORES_ITEMS = (
    "this loss is not divided by `num_items_in_batch`, so set `loss_is_scaled_for_ga = False`: without it a model that takes "
    "loss keywords has its loss divided by nothing"
)
_SETTINGS = {
    "Lightning": "accumulate_grad_batches",
    "Hugging Face": "gradient_accumulation_steps",
    "Ignite": "gradient_accumulation_steps",
    "mmengine": "accumulative_counts",
    "mmcv": "cumulative_iters",
    "Catalyst": "accumulation_steps",
}


@dataclass(frozen=True, slots=True)
class _Found:
    """A framework's loop: the node that stands for it, the function or class around it, and a word of warning."""

    framework: str
    node: p.Stmt | p.Expr
    inside: str = ""
    warning: str = ""


def automatic(program: p.Program, filename: str, lines: Sequence[str]) -> list[LoopView]:
    """The loops of a file that its frameworks run, in order of their rows; those that the file writes itself are not here."""
    nodes = list(walk(*program.body))
    names = _imported(nodes)
    out = []
    for found in _found(nodes, names):
        span = found.node.span
        end = max(n.span.end_row for n in walk(found.node))
        said = f"{found.framework}'s automatic loop, {_number(nodes, _SETTINGS[found.framework])}: {_WORDS[found.framework]}"
        text = lines[span.row - 1].strip() if span.row <= len(lines) else ""
        warning = (found.warning,) if found.warning else ()
        out.append(
            LoopView(
                filename, span, end, text, found.inside, True, reason=said, framework=found.framework, warnings=warning
            )
        )
    return sorted(out, key=lambda view: view.span)


def _found(nodes: Sequence[p.Node], names: dict[str, str]) -> Iterator[_Found]:
    classes = {n.name: n for n in nodes if isinstance(n, p.ClassDef)}
    seen: set[str] = set()
    for cls in classes.values():
        framework = _family(cls, classes, names)
        if framework:
            seen.add(framework)
            yield from _of_class(cls, framework)
    for node in nodes:
        if isinstance(node, p.Call):
            framework = _of_call(node, _dotted(node.func, names), classes)
            if framework and framework not in seen:
                yield _Found(framework, node)


def _of_class(cls: p.ClassDef, framework: str) -> Iterator[_Found]:
    """A module's `training_step` under automatic optimization; a Trainer's `compute_loss` under its own `training_step`."""
    methods = {m.name: m for m in cls.body if isinstance(m, p.FunctionDef)}
    step = methods.get("training_step")
    if framework == "Lightning" and step is not None and not _manual(cls):
        yield _Found(framework, step, cls.name)
    loss = methods.get("compute_loss")
    if framework == "Hugging Face" and loss is not None and (step is None or not _runs_backward(step)):
        counted = any(q.name == "num_items_in_batch" for q in loss.params)
        read = any(isinstance(n, p.Name) and n.id == "num_items_in_batch" for n in walk(*loss.body))
        delegated = any(isinstance(n, p.Call) and terminal(n.func) == "super" for n in walk(*loss.body))
        told = any("loss_is_scaled_for_ga" in p.text(n) for n in walk(*cls.body) if isinstance(n, (p.Name, p.Attr)))
        quiet = not counted or read or delegated or told
        yield _Found(framework, loss, cls.name, "" if quiet else _IGNORES_ITEMS)


def _of_call(node: p.Call, dotted: str, classes: dict[str, p.ClassDef]) -> str:
    """The framework whose loop a call sets up; empty for other calls."""
    root, last = dotted.partition(".")[0], dotted.rpartition(".")[2]
    keywords = {arg.keyword for arg in node.args}
    if root in _LIGHTNING and last in {"Trainer", "LightningCLI"}:
        return "Lightning"
    if root in _HUGGING_FACE and last.endswith("Trainer") and last not in classes:
        return "Hugging Face"
    if root == "ignite" and last in {"create_supervised_trainer", "supervised_training_step"}:
        return "Ignite"
    if root == "catalyst" and last == "OptimizerCallback":
        return "Catalyst"
    if "accumulative_counts" in keywords and any("OptimWrapper" in p.text(arg.value) for arg in node.args):
        return "mmengine"  # in a configuration: `optim_wrapper = dict(type="OptimWrapper", accumulative_counts=N, …)`
    return "mmcv" if "cumulative_iters" in keywords and last == "dict" else ""


def _family(cls: p.ClassDef, classes: dict[str, p.ClassDef], names: dict[str, str], depth: int = 0) -> str:
    """Which framework a class of the file belongs to, through its bases in the file."""
    for base in cls.bases:
        dotted = _dotted(base.value, names)
        root, last = dotted.partition(".")[0], dotted.rpartition(".")[2]
        if last == "LightningModule" and root in _LIGHTNING:
            return "Lightning"
        if last.endswith("Trainer") and root in _HUGGING_FACE:
            return "Hugging Face"
        above = classes.get(last)
        if above is not None and above is not cls and depth < 8:
            found = _family(above, classes, names, depth + 1)
            if found:
                return found
    return ""


def _manual(cls: p.ClassDef) -> bool:
    """Whether a LightningModule optimizes by hand: `automatic_optimization` set to False, in whichever way."""
    for node in walk(*cls.body):
        if isinstance(node, p.Assign) and any(terminal(t) == "automatic_optimization" for t in node.targets):
            return p.text(node.value) == "False"
        if isinstance(node, p.FunctionDef) and node.name == "automatic_optimization":
            return any(isinstance(n, p.Return) and n.value and p.text(n.value) == "False" for n in walk(*node.body))
    return False


def _runs_backward(step: p.FunctionDef) -> bool:
    return any(isinstance(n, p.Call) and terminal(n.func) == "backward" for n in walk(*step.body))


def _number(nodes: Sequence[p.Node], setting: str) -> str:
    """N as the file sets it, or which setting it is."""
    given: dict[str, Span] = {}
    for node in nodes:
        if isinstance(node, p.Arg) and node.keyword == setting:
            given.setdefault(p.text(node.value), node.span)
    if len(given) == 1:
        spelled, span = next(iter(given.items()))
        return f"N = {spelled} (`{setting}`, line {span.row})"
    fields = [n for n in nodes if isinstance(n, p.AnnAssign) and terminal(n.target) == setting and n.value is not None]
    if not given and len(fields) == 1:
        default = _default(fields[0].value)
        return f"N = {default} by default (`{setting}`, line {fields[0].span.row})" if default else f"N is `{setting}`"
    return f"N is `{setting}`" + (" (1 where nothing sets it)" if not given else "")


def _default(value: p.Expr | None) -> str:
    """The default in a dataclass's field: `16`, or `field(default=16, …)`."""
    if isinstance(value, p.Call):
        value = next((arg.value for arg in value.args if arg.keyword == "default"), None)
    return p.text(value) if isinstance(value, p.Const) else ""


def _imported(nodes: Sequence[p.Node]) -> dict[str, str]:
    """Local name → dotted name of what a file imports."""
    out: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, p.Import):
            for name, alias in node.names:
                out[alias or name.partition(".")[0]] = name if alias else name.partition(".")[0]
        elif isinstance(node, p.ImportFrom) and not node.level:
            out |= {alias or name: f"{node.module}.{name}" for name, alias in node.names}
    return out


def _dotted(node: p.Expr, names: dict[str, str]) -> str:
    """`L.Trainer` → `lightning.Trainer`; a name of no import stays as it is."""
    if isinstance(node, p.Name):
        return names.get(node.id, node.id)
    if isinstance(node, p.Attr):
        return f"{_dotted(node.value, names)}.{node.name}"
    return ""
