"""The checks of `gpu_check.py` one by one, where there is a CUDA device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from gpu_check import CHECKS  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_on_the_gpu(check: Callable[[], None]) -> None:
    check()
