"""The loop program: what is below a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from galint import program as p
from galint.syntax import parse

FIXTURES = Path(__file__).parent.parent / "fixtures"
FORMS = """
match point:
    case Point(0, y=1) | [1, *_] | {"a": 2, **_more} if rest:
        pass
async def f(a: int = 1, *args, b=2, **kwargs) -> str:
    assert a, "message"
    x: int = (y := lambda q: q)(*args, k=[i for j in b if j for i in j], **{"c": 1, **kwargs})
    del x[1:2, ...]
    try:
        raise E from None
    except E as e:
        return f"{x!r:{a}} {not y}"
    else:
        yield (await x) if a < b <= 3 else -1
    finally:
        yield {1, 2}
    with a as b, c:
        while True:
            a.b += 1
            global g
"""


def held(value: object) -> Iterator[p.Node]:
    """The nodes in a field, also in tuples of tuples."""
    if isinstance(value, p.Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from held(item)


@pytest.mark.parametrize("text", [FORMS, *(path.read_text() for path in sorted(FIXTURES.rglob("*.py"))[::12])])
def test_children_are_all_nodes_in_the_fields(text: str) -> None:
    stack: list[p.Node] = [*parse(text).body]
    seen = 0
    while stack:
        node = stack.pop()
        below = [n for f in fields(node) for n in held(getattr(node, f.name))]  # type: ignore[arg-type]
        assert list(map(id, node.children())) == list(map(id, below)), type(node)
        stack += below
        seen += 1
    assert seen > 50
