"""Keep a traced script from overwriting its checkpoints.

A traced run stops early, so what it would save is worth nothing and must not replace what is worth
something. Two layers, in the traced process only:

1. `torch.save`, `safetensors.torch.save_file` and `numpy.save*` to a path write into a temporary
   folder instead; `torch.load` of a path written that way reads it back from there.
2. An audit hook refuses to open for writing, rename over or remove any checkpoint that existed when
   the trace began (by its suffix) outside temporary folders.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from galint.trace.patching import Patches

SUFFIXES = [
    ".bin",
    ".ckpt",
    ".distcp",
    ".h5",
    ".index.json",
    ".joblib",
    ".msgpack",
    ".npy",
    ".npz",
    ".onnx",
    ".orbax",
    ".pdparams",
    ".pickle",
    ".pkl",
    ".pt",
    ".pth",
    ".safetensors",
    ".tar",
]
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND


class KeptCheckpoint(PermissionError):
    """The script tried to change a checkpoint that existed before the trace."""


class Keeper:
    """Redirects saves into `folder` and protects files. `redirected` lists what the script wanted to save.

    The folder is the tracing process's, which removes it when the script has ended.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.redirected: list[str] = []
        self._where: dict[str, str] = {}
        self._began = time.time()
        self._temporary = os.path.realpath(tempfile.gettempdir()) + os.sep
        self._active = True

    def install(self, patches: Patches) -> None:
        """Redirect the saving functions and add the audit hook (which lives as long as the process)."""
        patches.replace(torch, "save", lambda f: self._saving(f, 1, "f"))
        patches.replace(torch, "load", self._loading)
        modules = sys.modules
        try:
            import safetensors.torch as safe
        except ImportError:
            pass
        else:
            patches.replace(safe, "save_file", lambda f: self._saving(f, 1, "filename"))
            patches.replace(safe, "save_model", lambda f: self._saving(f, 1, "filename"))
            patches.replace(safe, "load_file", self._loading)
        if "numpy" in modules:
            for name in ("save", "savez", "savez_compressed"):
                patches.replace(modules["numpy"], name, lambda f: self._saving(f, 0, "file"))
        sys.addaudithook(self._audit)

    def stop(self) -> None:
        """Protect nothing any more (an audit hook cannot be taken away)."""
        self._active = False

    def _target(self, path: str) -> str:
        real = os.path.realpath(path)
        if real not in self._where:
            self.redirected.append(path)
            self._where[real] = str(self.folder / f"{len(self._where)}-{os.path.basename(real)}")
        return self._where[real]

    def _saving(self, original: Callable[..., Any], position: int, keyword: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def save(*args: Any, **kwargs: Any) -> Any:
            where = kwargs.get(keyword, args[position] if len(args) > position else None)
            if not isinstance(where, str | os.PathLike) or not self._active:
                return original(*args, **kwargs)
            target = self._target(os.fspath(where))
            if keyword in kwargs:
                return original(*args, **{**kwargs, keyword: target})
            return original(*args[:position], target, *args[position + 1 :], **kwargs)

        return save

    def _loading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(f: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(f, str | os.PathLike):
                f = self._where.get(os.path.realpath(os.fspath(f)), f)
            return original(f, *args, **kwargs)

        return load

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._active or event not in ("open", "os.rename", "os.remove"):
            return
        if event == "open":
            path, mode, flags = args
            writes = any(c in mode for c in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITING)
            if writes:
                self._protect(path)
        else:
            for path in args[:2] if event == "os.rename" else args[:1]:
                self._protect(path)

    def _protect(self, path: Any) -> None:
        if not isinstance(path, str | os.PathLike):
            return
        text = os.fspath(path)
        if not isinstance(text, str) or not text.lower().endswith(tuple(SUFFIXES)):
            return
        real = os.path.realpath(text)
        if real.startswith(self._temporary) and not os.environ.get("GALINT_KEEP_TEMPORARY"):
            return
        try:
            old = os.stat(real).st_mtime < self._began
        except OSError:
            return
        if old:
            raise KeptCheckpoint(f"galint trace keeps `{text}`: it existed before the trace")
