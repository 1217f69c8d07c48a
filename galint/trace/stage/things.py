"""What real torch things can be asked on the stage: modules, optimizers, scalers, schedulers, Accelerate's."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from galint.trace.stage import actors
from galint.trace.stage.values import Flow, Method, Unknown

if TYPE_CHECKING:
    from galint.trace.stage.world import World

_STAYS = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "train",
        "eval",
        "requires_grad_",
        "apply",
        "compile",
        "gradient_checkpointing_enable",
        "enable_input_require_grads",
        "convert_sync_batchnorm",
        "share_memory",
    ]
)
_QUIET = frozenset(
    [
        "state_dict",
        "load_state_dict",
        "save_pretrained",
        "register_forward_hook",
        "register_buffer",
        "register_comm_hook",
    ]
)


class Fabric:
    """Lightning's Fabric on one device in full precision: it prepares nothing and divides nothing."""


def member(world: World, holder: Any, name: str) -> Any:
    """An attribute of a real thing; None when it is not one of these."""
    if isinstance(holder, nn.Module):
        return _module(world, holder, name)
    if isinstance(holder, torch.amp.GradScaler):
        return _scaler(world, holder, name)
    if isinstance(holder, torch.optim.lr_scheduler.LRScheduler):
        return Method(lambda *_, **__: holder.step()) if name == "step" else _unknown(world, name)
    if _is_optimizer(holder):
        return _optimizer(world, holder, name)
    if type(holder).__name__ == "Accelerator":
        return _accelerator(world, holder, name)
    if isinstance(holder, Fabric):
        return _fabric(world, name)
    if type(holder).__name__ == "AcceleratedScheduler":
        return Method(lambda *_, **__: holder.step()) if name == "step" else _unknown(world, name)
    if isinstance(holder, contextlib.ExitStack):
        return _stack(holder, name)
    if isinstance(holder, torch.utils.data.DataLoader):
        return _unknown(world, f"loader.{name}")
    return None


def _is_optimizer(value: Any) -> bool:
    return isinstance(value, torch.optim.Optimizer) or type(value).__name__ == "AcceleratedOptimizer"


def _unknown(world: World, name: str) -> Unknown:
    return Unknown(world, name)


def _module(world: World, holder: nn.Module, name: str) -> Any:
    if name in _STAYS:
        return Method(lambda *_, **__: holder)
    if name in {"parameters", "trainable_parameters"}:
        return Method(lambda *_, **__: list(holder.parameters()))
    if name == "named_parameters":
        return Method(lambda *_, **__: list(holder.named_parameters()))
    if name == "zero_grad":
        return Method(lambda *_, **__: holder.zero_grad())
    if name in {"modules", "children"}:
        return Method(lambda *_: [holder])
    if name in {"no_sync", "no_backward_sync"}:
        if isinstance(holder, nn.parallel.DistributedDataParallel):
            return Method(lambda *_: holder.no_sync())
        return Method(lambda *_: contextlib.nullcontext())
    if name == "module":
        return actors.bare(holder)
    if name == "training":
        return True
    if name == "require_backward_grad_sync":
        return getattr(holder, name, True)
    if name == "set_requires_gradient_sync":
        return Method(lambda on=True, **_: world.set_attr(holder, "require_backward_grad_sync", bool(on)))
    if name in {"clip_grad_norm_"}:
        return Method(lambda limit=1.0, *_, **__: _clip(holder.parameters(), limit))
    if name == "update_parameters" and isinstance(holder, torch.optim.swa_utils.AveragedModel):
        return Method(lambda model: holder.update_parameters(actors.bare(model)))
    made = _unknown(world, f"model.{name}")
    made.modules = [holder]
    if name in {"forward", "__call__"}:
        return Method(lambda *a, **k: world.forward(actors.bare(holder), world.flows_in((a, k))))
    return made


def _clip(parameters: Any, limit: Any) -> Any:
    return torch.nn.utils.clip_grad_norm_(list(parameters), float(limit) if isinstance(limit, int | float) else 1.0)


def _optimizer(world: World, holder: Any, name: str) -> Any:
    if name == "zero_grad":
        return Method(lambda *_, **__: holder.zero_grad())
    if name == "step":

        def step(closure: Any = None, **_: Any) -> Any:
            world.turn += 1
            if closure is None or isinstance(closure, Unknown | int | float):
                return holder.step()

            def evaluated() -> Any:
                result = world.call(closure, "closure()")
                return result.loss if isinstance(result, Flow) else result

            return holder.step(evaluated)

        return Method(step)
    if name == "backward":  # apex's FP16_Optimizer and its like
        return Method(lambda loss=None, *_, **__: world.backward(loss))
    if name == "param_groups":
        return [{"params": list(group["params"]), "lr": group["lr"]} for group in holder.param_groups]
    if name == "optimizer":
        return holder
    if name == "step_was_skipped":
        return False
    return _unknown(world, f"optimizer.{name}")


def _scaler(world: World, holder: torch.amp.GradScaler, name: str) -> Any:
    if name == "scale":

        def scale(loss: Any) -> Any:
            if isinstance(loss, list | tuple):
                return [scale(v) for v in loss]
            flow = world.loss_of(loss) if not isinstance(loss, int | float) else loss
            return flow.become(holder.scale(flow.loss)) if isinstance(flow, Flow) else flow

        return Method(scale)
    if name in {"unscale_", "step"}:
        act = getattr(holder, name)

        def on(target: Any = None, *_: Any, **__: Any) -> Any:
            target = world.real(target)
            if not _is_optimizer(target):
                target = world.main_optimizer()
            world.turn += name == "step"
            return act(target)

        return Method(on)
    if name == "update":
        return Method(lambda *_, **__: holder.update())
    if name == "is_enabled":
        return Method(lambda: holder.is_enabled())
    if name == "get_scale":
        return Method(lambda: Unknown(world, "scaler.get_scale()", data=True))
    return _unknown(world, f"scaler.{name}")


def _accelerator(world: World, holder: Any, name: str) -> Any:
    if name == "prepare":

        def prepare(*things: Any, **_: Any) -> Any:
            made = [_prepared(world, holder, t) for t in things]
            return made[0] if len(made) == 1 else tuple(made)

        return Method(prepare)
    if name in {"prepare_model", "prepare_optimizer", "prepare_data_loader", "prepare_scheduler"}:
        return Method(lambda thing, *_, **__: _prepared(world, holder, thing))
    if name == "accumulate":
        return Method(
            lambda *models: holder.accumulate(*[m for m in map(world.real, models) if isinstance(m, nn.Module)])
        )
    if name == "no_sync":
        return Method(lambda model=None, *_: holder.no_sync(world.main()))
    if name == "backward":

        def backward(loss: Any, *_: Any, **__: Any) -> None:
            flow = world.loss_of(loss)
            if not world.optimizers:
                world.introduce()
            world.assumed |= flow.assumed
            world.hidden = world.hidden or not flow.visible
            holder.backward(flow.loss, retain_graph=True)

        return Method(backward)
    if name in {"clip_grad_norm_", "clip_grad_value_"}:
        clip = getattr(holder, name)
        return Method(
            lambda params=None, limit=1.0, *_, **__: clip(
                _parameters(world, params), float(limit) if isinstance(limit, int | float) else 1.0
            )
        )
    if name in {
        "sync_gradients",
        "is_main_process",
        "is_local_main_process",
        "gradient_accumulation_steps",
        "num_processes",
    }:
        return getattr(holder, name)
    if name in {"unwrap_model", "print", "wait_for_everyone"}:
        return Method(lambda model=None, *_, **__: model)
    if name in {"autocast", "join_uneven_inputs"}:
        return Method(lambda *_, **__: contextlib.nullcontext())
    return _unknown(world, f"accelerator.{name}")


def _fabric(world: World, name: str) -> Any:
    if name in {"setup", "setup_dataloaders", "setup_module", "setup_optimizers"}:

        def setup(*things: Any, **_: Any) -> Any:
            made = [
                world.wrap(r) if isinstance(r := world.real(t), nn.Module) and world.job["ddp"] else t for t in things
            ]
            return made[0] if len(made) == 1 else tuple(made)

        return Method(setup)
    if name == "backward":
        return Method(lambda loss, *_, **__: world.backward(loss))
    if name == "no_backward_sync":

        def quiet(module: Any = None, enabled: Any = True, **_: Any) -> Any:
            module = world.real(module)
            on = world.truth(enabled, "enabled", (0, 0), True)
            wrapped = isinstance(module, nn.parallel.DistributedDataParallel)
            return module.no_sync() if wrapped and on else contextlib.nullcontext()

        return Method(quiet)
    if name == "clip_gradients":

        def clip(module: Any = None, *_: Any, **options: Any) -> Any:
            return _clip(_parameters(world, module), options.get("max_norm", options.get("clip_val")))

        return Method(clip)
    if name in {"autocast", "init_module"}:
        return Method(lambda *_, **__: contextlib.nullcontext())
    if name in {"is_global_zero", "world_size", "global_rank", "local_rank"}:
        return {"is_global_zero": True, "world_size": 1}.get(name, 0)
    return _unknown(world, f"fabric.{name}")


def _prepared(world: World, holder: Any, thing: Any) -> Any:
    real = world.real(thing)
    if isinstance(thing, Unknown) and real is thing:
        if thing.kind != "loader":
            return thing
        if thing.loader is None:
            thing.loader = actors.loader(int(world.number(f"len({thing.path})") or world.job["length"]))
        thing.loader = holder.prepare(thing.loader)
        return thing
    if _is_optimizer(real) or isinstance(real, nn.Module | torch.optim.lr_scheduler.LRScheduler):
        return holder.prepare(real)
    return thing


def _parameters(world: World, value: Any) -> list[nn.Parameter]:
    return actors.parameters_in(world.real(value)) or list(world.main().parameters())


def _stack(holder: contextlib.ExitStack, name: str) -> Any:
    if name == "enter_context":
        return Method(lambda context: holder.enter_context(context) if hasattr(context, "__enter__") else context)
    return Method(lambda *_, **__: None)


def stepped_by(world: World, helper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """timm's and MAE's `loss_scaler(loss, optimizer, …, update_grad=…)`: scale, backward, and step when told to.

    False when the call is not of that shape.
    """
    optimizer = next((a for a in map(world.real, args) if _is_optimizer(a)), None)
    flows = world.flows_in(args[:1])
    if optimizer is None or not flows:
        return False
    scaler = helper if isinstance(helper, torch.amp.GradScaler) else helper.actor
    if not isinstance(scaler, torch.amp.GradScaler):
        scaler = helper.actor = actors.scaler(world.device, True)
    world.backward(flows[0].become(scaler.scale(flows[0].loss)))
    update = next((kwargs[k] for k in ("update_grad", "need_update") if k in kwargs), True)
    if world.truth(update, "update_grad", (0, 0), True):
        limit = kwargs.get("clip_grad")
        scaler.unscale_(optimizer)
        if isinstance(limit, int | float):
            _clip(world.main().parameters(), limit)
        scaler.step(optimizer)
        scaler.update()
        world.turn += 1
    return True
