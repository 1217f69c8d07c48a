"""Images for the study: made up in the shape of CIFAR-10, or CIFAR-10 itself from a folder.

CIFAR-10 is read in both of its published forms (Krizhevsky 2009): `cifar-10-batches-py` (pickles, through an
unpickler that builds arrays and nothing else) and `cifar-10-batches-bin`.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from galint.errors import ConfigError

CLASSES, SHAPE = 10, (3, 32, 32)
PIXELS = 3 * 32 * 32
FEWEST = 80
"""Training images that the study needs: a batch of 64 and one micro-batch that is left over."""
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


@dataclass(slots=True)
class Images:
    """Training and test images (float32, normalised) with labels."""

    name: str
    train: torch.Tensor
    train_labels: torch.Tensor
    test: torch.Tensor
    test_labels: torch.Tensor


def synthetic(train: int, test: int, seed: int) -> Images:
    """A smooth pattern a class, shifted, mirrored and covered with noise: learnable, and not at once."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(CLASSES, 3, 6, 6, generator=generator)
    patterns = torch.nn.functional.interpolate(coarse, size=(36, 36), mode="bicubic", align_corners=False)
    count = train + test
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    offsets = torch.randint(0, 5, (count, 2), generator=generator)
    mirrored = torch.rand(count, generator=generator) < 0.5
    images = torch.empty(count, *SHAPE)
    for i in range(count):
        row, column = int(offsets[i, 0]), int(offsets[i, 1])
        image = patterns[labels[i], :, row : row + 32, column : column + 32]
        images[i] = image.flip(-1) if mirrored[i] else image
    images = images + 0.5 * torch.randn(images.shape, generator=generator)
    return Images("synthetic", images[:train], labels[:train], images[train:], labels[train:])


class _Arrays(pickle.Unpickler):
    """Builds numpy arrays and plain containers: a data file must not run code."""

    _ALLOWED = frozenset(
        {
            ("numpy", "dtype"),
            ("numpy", "ndarray"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        """Only what an array is made of."""
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of an array")
        return super().find_class(module, name)


def cifar10(folder: Path) -> Images:
    """CIFAR-10 from a folder that is, or holds, one of its two forms. Raises ConfigError."""
    for base in (folder, folder / "cifar-10-batches-py", folder / "cifar-10-batches-bin"):
        if (base / "test_batch").is_file():
            read, names, test = _pickled, [f"data_batch_{i}" for i in range(1, 6)], "test_batch"
        elif (base / "test_batch.bin").is_file():
            read, names, test = _binary, [f"data_batch_{i}.bin" for i in range(1, 6)], "test_batch.bin"
        else:
            continue
        present = [base / name for name in names if (base / name).is_file()]
        if not present:
            raise ConfigError(f"{base}: no data_batch_1 … data_batch_5")
        parts = [read(path) for path in present]
        test_images, test_labels = read(base / test)
        images, labels = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        if len(images) < FEWEST:
            raise ConfigError(f"{base}: {len(images)} training images, fewer than the {FEWEST} that the study needs")
        return Images(
            "CIFAR-10", _tensor(images), torch.from_numpy(labels), _tensor(test_images), torch.from_numpy(test_labels)
        )
    raise ConfigError(f"{folder}: neither cifar-10-batches-py nor cifar-10-batches-bin is there")


def _pickled(path: Path) -> tuple[Any, Any]:
    try:
        body = _Arrays(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        pixels, labels = np.asarray(body[b"data"]), np.asarray(body[b"labels"])
    except Exception as error:  # a broken pickle fails in any way, out of memory included
        raise _no_batch(path, str(error) or type(error).__name__) from error
    if pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise _no_batch(path, f"its data are {pixels.dtype} of shape {pixels.shape}, not rows of bytes")
    return _checked(path, pixels, labels)


def _binary(path: Path) -> tuple[Any, Any]:
    try:
        raw = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    except OSError as error:
        raise _no_batch(path, str(error.strerror)) from error
    if raw.size % (1 + PIXELS):
        raise _no_batch(path, f"its size is no multiple of {1 + PIXELS} bytes")
    rows = raw.reshape(-1, 1 + PIXELS)
    return _checked(path, rows[:, 1:], rows[:, 0])


def _checked(path: Path, pixels: Any, labels: Any) -> tuple[Any, Any]:
    """Images and labels of a batch whose numbers are what CIFAR-10's are."""
    if not len(pixels):
        raise _no_batch(path, "it holds no image")
    if pixels.shape[1] != PIXELS:
        raise _no_batch(path, f"an image has {pixels.shape[1]} bytes, not {PIXELS}")
    if labels.shape != (len(pixels),) or labels.dtype.kind not in "iu":
        raise _no_batch(path, f"{len(pixels)} images, and labels of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= CLASSES:
        raise _no_batch(path, f"labels go from {labels.min()} to {labels.max()}, not from 0 to {CLASSES - 1}")
    return pixels.reshape(-1, *SHAPE), labels.astype(np.int64)


def _no_batch(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path}: not a CIFAR-10 batch ({why})")


def _tensor(images: Any) -> torch.Tensor:
    scaled = torch.from_numpy(np.ascontiguousarray(images)).float() / 255
    return (scaled - torch.tensor(MEAN)[:, None, None]) / torch.tensor(DEVIATION)[:, None, None]
