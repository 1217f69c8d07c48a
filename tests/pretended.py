"""A CUDA device in name only: its tensors are computed on the CPU, and refuse to meet tensors that are not on it.

Where there is no GPU, this finds the code that would mix devices or wait for one. It knows nothing of streams, of time
and of memory: `gpu_check.py` on a real device does. As FakeTensor does, it stands on a meta tensor (PyTorch, "Extending
PyTorch", tensor wrapper subclasses), so what torch's own C++ groups by device sees `meta`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

CUDA = torch.device("cuda", 0)
_aten: Any = torch.ops.aten
_MOVES = {_aten.copy_.default, _aten._to_copy.default}
_INDEXES = {_aten.index.Tensor, _aten.index_put_.default, _aten._index_put_impl_.default}
"""Positions may lie on the CPU."""
_READ = {_aten._local_scalar_dense.default, _aten.is_nonzero.default, _aten.equal.default, _aten.nonzero.default}
"""What the host waits for."""


class Pretended(torch.Tensor):
    """A tensor that says it is on CUDA; `numbers` is what they are on the CPU."""

    numbers: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, real: torch.Tensor) -> Pretended:
        with _disable_current_modes():
            meta = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device="meta")
            out: Pretended = torch.Tensor._make_subclass(cls, meta, False)
        out.numbers = real
        return out

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA

    is_cuda, is_cpu, is_meta = True, False, False  # type: ignore[assignment]

    def numpy(self, **_: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def __repr__(self, **_: Any) -> str:
        return f"Pretended({self.numbers})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            out: Any = Pretended(self.numbers.clone()).requires_grad_(self.requires_grad)
            out._is_param = isinstance(self, torch.nn.Parameter)
            memo[id(self)] = out
        return memo[id(self)]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _perform(func, args, kwargs or {})


class Device(TorchDispatchMode):
    """Makes new tensors where `device` says; `waiting` forbids what the host waits for."""

    waiting = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _perform(func, args, kwargs or {})


def _perform(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    here = [t for t in tensors if isinstance(t, Pretended)]
    if func in _READ and not tensors:  # a number that torch wrapped
        return args[0]
    if here and func not in _MOVES | _INDEXES and any(t.dim() and not isinstance(t, Pretended) for t in tensors):
        raise RuntimeError(f"Expected all tensors to be on the same device, but found cuda:0 and cpu ({func})")
    to = kwargs.get("device")
    lands = bool(here) if to is None else torch.device(to).type == "cuda"
    if func is _aten.copy_.default or func in _INDEXES:
        lands = isinstance(args[0], Pretended)
    if not here and not lands:
        return func(*args, **kwargs)
    if not Device.waiting and (func in _READ or (func in _MOVES and not lands)):
        raise RuntimeError(f"the host waits for the device ({func})")
    if to is not None and lands:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    kwargs = {k: v for k, v in kwargs.items() if k != "pin_memory"}
    own = {id(t.numbers): t for t in here}
    args, kwargs = tree_map(lambda v: v.numbers if isinstance(v, Pretended) else v, (args, kwargs))

    def given(value: Any) -> Any:
        if not lands or not isinstance(value, torch.Tensor):
            return value
        return own.get(id(value)) if id(value) in own else Pretended(value)

    return tree_map(given, func(*args, **kwargs))


def _allow(mode: str) -> None:
    Device.waiting = mode != "error"


_CUDA: dict[str, Callable[..., Any]] = {
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "_lazy_init": lambda: None,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "get_device_name": lambda *_: "pretended",
    "synchronize": lambda *_: None,
    "empty_cache": lambda: None,
    "memory_allocated": lambda *_: 0,
    "max_memory_allocated": lambda *_: 0,
    "reset_peak_memory_stats": lambda *_: None,
    "get_rng_state": lambda *_: torch.get_rng_state(),
    "set_rng_state": lambda state, *_: torch.set_rng_state(state),
    "manual_seed_all": lambda _: None,
    "is_bf16_supported": lambda *_, **__: True,
    "set_sync_debug_mode": _allow,
}


@contextlib.contextmanager
def pretended() -> Iterator[None]:
    """A block in which `cuda` is a device."""
    to, move = torch.Tensor.to, torch.nn.Module.to
    torch_cuda = {name: getattr(torch.cuda, name) for name in _CUDA}
    overwrites = torch.__future__.get_overwrite_module_params_on_conversion()

    def numbered(value: Any) -> Any:
        return CUDA if isinstance(value, str | torch.device) and torch.device(value).type == "cuda" else value

    def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        return to(self, *map(numbered, args), **{k: numbered(v) for k, v in kwargs.items()})

    def module_moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = [torch.device(v) for v in (*args, *kwargs.values()) if isinstance(v, str | torch.device)]
        held = [*self.parameters(), *self.buffers()]
        stays = wanted and all(isinstance(t, Pretended) == (wanted[0].type == "cuda") for t in held)
        return self if stays else move(self, *args, **kwargs)  # an optimizer holds what is there already

    for name, fake in _CUDA.items():
        setattr(torch.cuda, name, fake)
    torch.Tensor.to, torch.nn.Module.to = moved, module_moved  # type: ignore[assignment, method-assign]
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with Device():
            yield
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(overwrites)
        torch.Tensor.to, torch.nn.Module.to = to, move  # type: ignore[method-assign]
        for name, real in torch_cuda.items():
            setattr(torch.cuda, name, real)
        Device.waiting = True
