"""Runs a training script under torch hooks and compares each applied gradient with the large batch's.

Method. Before every backward the graph is walked from the loss through scalar multiplications and divisions
to the undivided loss; `torch.autograd.grad` gives this micro-batch's own gradient g_i and the factor that the
script applied. At every optimizer step the gradient that is really there is compared with the mean of the g_i
of all micro-batches since that optimizer's previous step (of the parameters it owns), after the same clipping
that the script asked for. A micro-batch that no step follows counts as unapplied. Losses reduced by a sum
have no scale of their own: for windows made of them only, the reference is the best multiple of the sum.

Where the model has a normalisation layer the window is replayed: the inputs of its micro-batches are
concatenated, go once through the model, and the gradient of that single batch is the reference.

Everything runs in float64 (`.float()` included), adaptive optimizers are replaced by SGD with momentum 0.9
(Adam hides a constant factor), dropout is off. DDP runs on gloo with world size 1 and its all-reduces are
counted in its communication hook. A comment `# losses: 2` in a script groups that many
consecutive backwards of one batch into one micro-batch.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import socket
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from marks import note
from observation import Gradients, Micro, Observation, Step, relative
from outliving import groups_outlive_models
from torch import Tensor, nn
from torch.nn.modules import module as module_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook
from zoo import Momentum, zoo

_NORMS = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm)


class _Recorder:
    """Holds the hooks' state during one run."""

    def __init__(self, script: str, losses: int) -> None:
        self.script = script
        self.losses = losses
        self.seen = Observation()
        self.optimizers: list[torch.optim.Optimizer] = []
        self.pending: dict[int, list[Micro]] = {}
        self.scalers: list[torch.amp.GradScaler] = []
        self.ddp = False
        self.clips: list[tuple[set[Tensor], Callable[[Gradients], None]]] = []
        self.depth = 0
        self.muted = False
        self.forwards: list[tuple[nn.Module, tuple[Tensor, ...], Tensor]] = []
        self.allreduces = 0
        self.backwards = 0

    def line(self) -> int:
        """Row of the innermost frame that belongs to the script."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.script:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return 0

    def parameters(self) -> list[Tensor]:
        """Every parameter of every optimizer, each once."""
        return list({p: None for o in self.optimizers for g in o.param_groups for p in g["params"]})

    # --- forward -------------------------------------------------------------------------------

    def enter(self, module: nn.Module, args: Any) -> None:
        if not self.muted:
            self.depth += 1

    def leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if self.muted:
            return
        self.depth -= 1
        plain = isinstance(output, Tensor) and args and all(isinstance(a, Tensor) for a in args)
        plain = plain and output.dim() > 0 and output.requires_grad
        if self.depth == 0 and plain and next(module.parameters(), None) is not None:
            inner = module.module if isinstance(module, DistributedDataParallel) else module
            self.forwards.append((inner, tuple(a.detach() for a in args), output))

    # --- backward ------------------------------------------------------------------------------

    def backward(self, real: Callable[..., None], tensors: Any, grad_tensors: Any, **options: Any) -> None:
        """Measure the micro-batch, then run the real backward."""
        losses = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        weights = [grad_tensors] if isinstance(grad_tensors, Tensor) else list(grad_tensors or [None] * len(losses))
        if not self.seen.start:
            self.seen.start = [p.detach().clone() for p in self.parameters()]
        micro = self.measure(losses, weights)
        before = self.allreduces
        real(losses, weights, **options)
        micro.synchronised = self.allreduces > before

    def measure(self, losses: list[Tensor], weights: list[Tensor | None]) -> Micro:
        """This micro-batch's own gradient, appended to the window of every optimizer that it reaches."""
        parameters = [p for p in self.parameters() if p.requires_grad]
        outputs = [output for _, _, output in self.forwards]
        micro = Micro(self.line(), 0.0, {}, True, [])
        slopes: list[Tensor | None] = [None] * len(outputs)
        for loss, weight in zip(losses, weights, strict=True):
            factor, scale, summed = self.factor(loss)
            micro.factor = factor * (1.0 if weight is None else float(weight))
            micro.summed &= summed
            root = torch.full_like(loss, 1.0 / (factor * scale))
            found = torch.autograd.grad(loss, [*parameters, *outputs], root, retain_graph=True, allow_unused=True)
            own = {p: g for p, g in zip(parameters, found, strict=False) if g is not None}
            _add(micro.own, own)
            reached = found[len(parameters) :]
            slopes = [old if new is None else new for new, old in zip(reached, slopes, strict=True)]
        forwards = zip(self.forwards, slopes, strict=True)
        micro.forwards = [(m, a, s) for (m, a, _), s in forwards if s is not None]
        self.forwards.clear()
        self.seen.factors.append((micro.line, micro.factor))
        self.backwards += 1
        joins = (self.backwards - 1) % self.losses > 0
        for optimizer in self.optimizers:
            window = self.pending[id(optimizer)]
            if _owned(optimizer).isdisjoint(micro.own):
                continue
            if joins and window:
                _add(window[-1].own, micro.own)
            else:
                window.append(micro)
        return micro

    def factor(self, loss: Tensor) -> tuple[float, float, bool]:
        """What stands between the root and the undivided loss: the factor, the loss scale, and if it is a sum."""
        scales = {float(s._scale) for s in self.scalers if getattr(s, "_scale", None) is not None}
        node: Any = loss.grad_fn
        factor = scale = 1.0
        while node is not None and node.name() in ("MulBackward0", "DivBackward0"):
            ahead = [n for n, _ in node.next_functions if n is not None]
            left_is_constant = node.next_functions[0][0] is None
            if len(ahead) != 1 or (left_is_constant and node.name() == "DivBackward0"):
                break
            value = float(node._saved_self if left_is_constant else node._saved_other)
            if value in scales:
                scale *= value
            else:
                factor *= value if node.name() == "MulBackward0" else 1.0 / value
            node = ahead[0]
        name = node.name() if node is not None else ""
        return factor, scale, name.startswith("SumBackward") or getattr(node, "_saved_reduction", 1) == 2

    # --- step ----------------------------------------------------------------------------------

    def clip(self, real: Callable[..., Any], parameters: Any, *args: Any, **options: Any) -> Any:
        """Clip for real, and remember to clip the reference in the same way."""
        clipped = [parameters] if isinstance(parameters, Tensor) else list(parameters)

        def repeat(wanted: Gradients) -> None:
            kept = [(p, p.grad) for p in clipped if p in wanted]
            for p, _ in kept:
                p.grad = wanted[p].clone()
            real([p for p, _ in kept], *args, **options)
            for p, grad in kept:
                assert p.grad is not None
                wanted[p], p.grad = p.grad, grad

        self.clips.append((set(clipped), repeat))
        return real(clipped, *args, **options)

    def step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """Compare what is about to be applied with the large batch."""
        micros = self.pending[id(optimizer)]
        owned = _owned(optimizer)
        applied = {p: torch.zeros_like(p) if p.grad is None else p.grad.detach().clone() for p in owned}
        clips = [repeat for parameters, repeat in self.clips if parameters & owned]
        self.clips = [c for c in self.clips if not c[0] & owned]
        weights = [] if clips else _weights(applied, micros)
        wanted = {p: torch.zeros_like(p) for p in owned}
        for micro in micros:
            share = 1.0 / len(micros)
            _add(wanted, {p: g * share for p, g in micro.own.items() if p in owned})
        if micros and all(m.summed for m in micros):
            multiple = _dot(applied, wanted) / max(_dot(wanted, wanted), 1e-300)
            wanted = {p: g * multiple for p, g in wanted.items()}
        replayed = self.replay(micros, owned)
        error = 0.0
        for reference in filter(None, (wanted, replayed)):
            for repeat in clips:
                repeat(reference)
            error = max(error, relative([applied[p] for p in reference], list(reference.values())))
        extra = sum(m.synchronised for m in micros[:-1])
        late = bool(micros) and self.ddp and not micros[-1].synchronised
        line = self.line()
        self.seen.steps.append(Step(line, len(micros), error, weights, replayed is not None, extra, late))
        micros.clear()

    def replay(self, micros: list[Micro], owned: set[Tensor]) -> Gradients | None:
        """The gradient of the window's inputs run as one batch; None where that cannot be done."""
        if not micros or any(len(m.forwards) != 1 for m in micros) or any(m.summed for m in micros):
            return None
        modules = {m.forwards[0][0] for m in micros}
        model = modules.pop()
        if modules or not any(isinstance(m, _NORMS) for m in model.modules()):
            return None
        buffers = {name: b.clone() for name, b in model.state_dict().items()}
        self.muted = True
        inputs = [torch.cat(parts) for parts in zip(*(m.forwards[0][1] for m in micros), strict=True)]
        slope = torch.cat([m.forwards[0][2] for m in micros]) / len(micros)
        parameters = [p for p in model.parameters() if p in owned and p.requires_grad]
        found = torch.autograd.grad(model(*inputs), parameters, slope, allow_unused=True)
        model.load_state_dict(buffers)
        self.muted = False
        return {p: g for p, g in zip(parameters, found, strict=True) if g is not None}

    # --- construction --------------------------------------------------------------------------

    def optimizer(self, real: Callable[..., None], optimizer: torch.optim.Optimizer, *args: Any, **kw: Any) -> None:
        """Note a new optimizer."""
        real(optimizer, *args, **kw)
        self.optimizers.append(optimizer)
        self.pending[id(optimizer)] = []

    def scaler(self, real: Callable[..., None], scaler: Any, *args: Any, **kw: Any) -> None:
        """Note a new GradScaler."""
        real(scaler, *args, **kw)
        self.scalers.append(scaler)

    def wrap(self, real: Callable[..., None], wrapper: DistributedDataParallel, *args: Any, **kw: Any) -> None:
        """Count the all-reduces of a new DDP module through its communication hook."""
        real(wrapper, *args, **kw)
        self.ddp = True

        def count(state: Any, bucket: Any) -> Any:
            # With one rank the mean over ranks is the bucket itself. A real all-reduce would leave a Python
            # callback to gloo's thread, which deadlocks now and then when the process group is destroyed.
            self.allreduces += 1
            done: torch.futures.Future[Tensor] = torch.futures.Future()
            done.set_result(bucket.buffer())
            return done

        # DDP compares the annotations themselves, and ours are strings.
        count.__annotations__ = {
            "bucket": torch._C._distributed_c10d.GradBucket,
            "return": torch.futures.Future[Tensor],
        }
        wrapper.register_comm_hook(None, count)

    def close(self) -> Observation:
        """The run's result."""
        self.seen.unapplied = sum(map(len, self.pending.values()))
        self.seen.final = [p.detach().clone() for p in self.parameters()]
        return self.seen


def _owned(optimizer: torch.optim.Optimizer) -> set[Tensor]:
    return {p for group in optimizer.param_groups for p in group["params"]}


def _add(total: Gradients, more: Gradients) -> None:
    for p, g in more.items():
        total[p] = total[p] + g if p in total else g


def _dot(a: Gradients, b: Gradients) -> float:
    return sum(float((a[p] * b[p]).sum()) for p in b)


def _weights(applied: Gradients, micros: Sequence[Micro]) -> list[float]:
    """The w of applied = w_1·g_1 + … + w_k·g_k, by least squares."""
    if not micros:
        return []
    columns = [torch.cat([m.own.get(p, torch.zeros_like(p)).flatten() for p in applied]) for m in micros]
    target = torch.cat([g.flatten() for g in applied.values()])
    solved: list[float] = torch.linalg.lstsq(torch.stack(columns, 1), target[:, None]).solution[:, 0].tolist()
    return solved


def _put_module(name: str, module: types.ModuleType | None) -> None:
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module


@contextlib.contextmanager
def _hooked(recorder: _Recorder) -> Iterator[None]:
    """Install every hook and float64, and take everything away again."""
    real_backward = torch.autograd.backward
    real_float = Tensor.float
    real_norm, real_value = nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_
    optimizer, scaler, wrapper = torch.optim.Optimizer, torch.amp.GradScaler, DistributedDataParallel
    real_inits = optimizer.__init__, scaler.__init__, wrapper.__init__

    def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **options: Any) -> None:
        names = ("retain_graph", "create_graph")
        recorder.backward(real_backward, tensors, grad_tensors, **dict(zip(names, args, strict=False)), **options)

    def no_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        return input

    def in_script_double(tensor: Tensor) -> Tensor:
        # torch itself needs the real one: GradScaler keeps its inverse scale in float32.
        inside = sys._getframe(1).f_code.co_filename == recorder.script
        return tensor.double() if inside else real_float(tensor)

    with contextlib.ExitStack() as stack:
        for target, name, new in (
            (torch.autograd, "backward", backward),
            (nn.functional, "dropout", no_dropout),
            (Tensor, "float", in_script_double),
            (optimizer, "__init__", lambda self, *a, **k: recorder.optimizer(real_inits[0], self, *a, **k)),
            (scaler, "__init__", lambda self, *a, **k: recorder.scaler(real_inits[1], self, *a, **k)),
            (wrapper, "__init__", lambda self, *a, **k: recorder.wrap(real_inits[2], self, *a, **k)),
            *((torch.optim, name, Momentum) for name in ("Adam", "AdamW", "RMSprop")),
            *(
                (place, name, lambda *a, _real=real, **k: recorder.clip(_real, *a, **k))
                for place in (nn.utils, nn.utils.clip_grad)
                for name, real in (("clip_grad_norm_", real_norm), ("clip_grad_value_", real_value))
            ),
        ):
            stack.enter_context(mock.patch.object(target, name, new))
        for name, stand_in in zoo().items():
            # Not mock.patch.dict: it would also forget what torch imports lazily meanwhile.
            stack.callback(_put_module, name, sys.modules.get(name))
            _put_module(name, stand_in)
        for handle in (
            register_optimizer_step_pre_hook(recorder.step),
            module_hooks.register_module_forward_pre_hook(recorder.enter),
            module_hooks.register_module_forward_hook(recorder.leave, always_call=True),
        ):
            stack.callback(handle.remove)
        dtype = torch.get_default_dtype()
        stack.callback(torch.set_default_dtype, dtype)
        torch.set_default_dtype(torch.float64)
        yield


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("localhost", 0))
        return int(server.getsockname()[1])


def _forget_accelerate() -> None:
    """Accelerate keeps its state for the whole process."""
    accelerate = sys.modules.get("accelerate")
    if accelerate is not None:
        accelerate.state.AcceleratorState._reset_state(True)
        accelerate.state.GradientState._reset_state()


def observe(script: Path, folder: Path) -> Observation:
    """Run `script` as a program in `folder` (where it may save files) and tell what its steps applied.

    An exception of the script is kept in `raised`; anything the harness itself does wrong is raised.
    """
    recorder = _Recorder(str(script), int(note(script.read_text(encoding="utf-8"), "losses") or 1))
    world = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}
    world["MASTER_PORT"] = str(_free_port())
    torch.manual_seed(0)
    _forget_accelerate()
    with (
        groups_outlive_models(),
        mock.patch.dict(os.environ, world),
        mock.patch.object(sys, "argv", [str(script)]),
        contextlib.chdir(folder),
        _hooked(recorder),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # torch itself warns of a scheduler that is ahead of its optimizer
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        except Exception as error:
            recorder.seen.raised = error
        finally:
            if dist.is_available() and dist.is_initialized():
                dist.destroy_process_group()
    return recorder.close()
