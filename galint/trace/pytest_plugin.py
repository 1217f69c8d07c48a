"""The pytest fixture `galint_watch`: trace a loop in a test, and fail it unless it is the large batch.

Torch is imported when a test asks for the fixture, so the plugin costs other test-suites nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from galint.trace.watching import Watch


@pytest.fixture
def galint_watch() -> Iterator[Callable[..., Watch]]:
    """A function `galint_watch(model, optimizer)`: tracing starts with the call and ends with the test, or its `with`.

    The returned watch has `assert_large_batch()`, `windows` and `verdicts`.
    """
    from galint.trace.watching import watch

    with ExitStack() as stack:

        def start(*args: Any, **kwargs: Any) -> Watch:
            return stack.enter_context(watch(*args, **kwargs))

        yield start
