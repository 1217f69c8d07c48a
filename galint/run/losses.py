"""Which conditions give a loss its terms, and which names backward is called of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from galint import program as p
from galint.run.kinds import LOSS_NAME
from galint.run.nodes import terminal
from galint.run.reach import EFFECT, Reach


class Losses(Reach):
    """What a program's text says of its losses."""

    def __init__(self, bodies: Iterable[p.Body]) -> None:
        super().__init__(bodies)
        self._terms: dict[p.If, tuple[str, ...]] = {}
        self._sides: dict[p.If, tuple[bool, bool]] = {}
        self._sent: dict[p.Node | None, frozenset[str]] = {}

    def loss_terms(self, node: p.If) -> tuple[str, ...]:
        """The losses that the only side of an `if` gives something that is called for."""
        known = self._terms.get(node)
        if known is None:
            known = self._terms[node] = () if node.orelse else tuple(self._given_losses(node))
        return known

    def sent_back(self, function: p.Node | None) -> frozenset[str]:
        """The names that `backward` is called of in a function, or (None) in the module's own statements."""
        known = self._sent.get(function)
        if known is None:
            tops = (function,) if function is not None else [s for body in self.bodies for s in body]
            calls = (n.func for top in tops for n in self.walk(top) if isinstance(n, p.Call))
            roots = (f.value for f in calls if isinstance(f, p.Attr) and f.name == "backward")
            known = frozenset(n.id for root in roots for n in self.walk(root) if isinstance(n, p.Name))
            self._sent[function] = known
        return known

    def skips_loss(self, node: p.If, taken: bool) -> bool:
        """Whether the side that is not taken computes a loss, or averages the weights, and the other one does not."""
        known = self._sides.get(node)
        if known is None:
            known = self._sides[node] = self._computes_loss(node.body), self._computes_loss(node.orelse)
        inside, outside = known if taken else known[::-1]
        return outside and not inside

    def _computes_loss(self, body: p.Body) -> bool:
        return EFFECT in self.body_tags(body) or any(
            isinstance(n, (p.Assign, p.AugAssign))
            and LOSS_NAME.search(terminal(n.targets[0] if isinstance(n, p.Assign) else n.target))
            and any(isinstance(part, p.Call) for part in self.walk(n.value))
            for stmt in body
            for n in self.walk(stmt)
        )

    def _given_losses(self, node: p.If) -> Iterator[str]:
        made: set[str] = set()
        for part in (n for stmt in node.body for n in self.walk(stmt)):
            if isinstance(part, (p.Assign, p.AugAssign)):
                target = part.targets[0] if isinstance(part, p.Assign) else part.target
                if isinstance(target, p.Name) and LOSS_NAME.search(target.id):
                    within = self.walk(part.value)
                    if any(isinstance(n, p.Call) or (isinstance(n, p.Name) and n.id in made) for n in within):
                        made.add(target.id)
                        yield target.id
