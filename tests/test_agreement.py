"""What answers about a number say of the next question about it."""

from __future__ import annotations

import pytest

from galint.run.agreement import implied


@pytest.mark.parametrize(
    ("key", "answers", "expected"),
    [
        ("ranks == 1", [("ranks > 1", True)], False),
        ("ranks != 1", [("ranks > 1", True)], True),
        ("ranks > 1", [("ranks == 1", True)], False),
        ("ranks >= 2", [("ranks > 1", False)], False),
        ("ranks < 4", [("ranks <= 2", True)], True),
        ("ranks == 1", [("ranks > 1", False)], None),  # none, or one
        ("ranks == 1", [("ranks > 1", False), ("ranks > 0", True)], True),
        ("ranks > 4", [("ranks > 1", True)], None),
        ("ranks == 1", [("gpus > 1", True)], None),
        ("ranks", [("ranks > 1", True)], None),
        ("mode == 'sum'", [("mode == 'mean'", True)], None),
        ("n == 1", [("n > 1", True), ("n < 1", True)], None),  # nothing agrees with both
    ],
)
def test_a_number_answers_alike(key: str, answers: list[tuple[str, bool]], expected: bool | None) -> None:
    assert implied(key, answers) is expected
