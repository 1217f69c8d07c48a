"""Lightning's manual optimization on paper: which optimizers a module has, and whose gradients a backward makes."""

from __future__ import annotations

import pytest

from galint.analysis import analyse
from galint.config import Config
from galint.run.facts import RunResult
from galint.syntax import parse

MODULE = """
import torch
import lightning as L
class Pair(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.gen = torch.nn.Linear(2, 2)
        self.dis = torch.nn.Linear(2, 2)
    def configure_optimizers(self):
        a = torch.optim.SGD(self.gen.parameters(), lr=0.1)
        b = torch.optim.SGD(self.dis.parameters(), lr=0.1)
        return {made}
    def training_step(self, batch, batch_idx):
        {work}
"""
BOTH = "self.manual_backward(self.dis(self.gen(batch)).mean())\n"


def trained(made: str, work: str) -> RunResult:
    """The plain run of the training step, called once a micro-batch."""
    text = MODULE.replace("{made}", made).replace("{work}", work.replace("\n", "\n        "))
    analysis = analyse(parse(text), Config())
    assert analysis is not None
    (entry,) = analysis.exploration.entries
    return entry.base


def applied(run: RunResult) -> list[bool]:
    """For each optimizer whether its second step had a gradient to apply; before the first it may not exist yet."""
    return [bool(ledger.steps[1].applied) for ledger in run.ledgers.values() if ledger.steps]


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("[a, b]", 2),
        ("(a, b)", 2),
        ("[a, b], []", 2),
        ("[{'optimizer': a}, {'optimizer': b}]", 2),
        ("{'optimizer': a, 'lr_scheduler': None}, {'optimizer': b}", 2),
    ],
)
def test_several_optimizers_come_in_any_form_that_lightning_takes(made: str, count: int) -> None:
    run = trained(made, f"{BOTH}for one in self.optimizers():\n    one.step()\n    one.zero_grad()")
    assert applied(run) == [True] * count


@pytest.mark.parametrize("made", ["a", "[a]", "{'optimizer': a}", "[a], [torch.optim.lr_scheduler.StepLR(a, 1)]"])
def test_a_single_optimizer_comes_alone(made: str) -> None:
    run = trained(made, f"opt = self.optimizers()\n{BOTH}opt.step()\nself.optimizers().zero_grad()")
    (ledger,) = [ledger for ledger in run.ledgers.values() if ledger.steps]
    assert [len(step.applied) for step in ledger.steps[:3]] == [1, 1, 1]  # the second question meant the same one


@pytest.mark.parametrize(("toggled", "wanted"), [("g", [True, False]), ("d", [False, True])])
def test_a_toggled_optimizer_alone_gets_the_gradient(toggled: str, wanted: list[bool]) -> None:
    work = f"g, d = self.optimizers()\nself.toggle_optimizer({toggled})\n{BOTH}self.untoggle_optimizer({toggled})\ng.step()\nd.step()"
    assert applied(trained("a, b", work)) == wanted


def test_without_a_toggle_and_after_it_both_get_it() -> None:
    assert applied(trained("a, b", f"g, d = self.optimizers()\n{BOTH}g.step()\nd.step()")) == [True, True]
    work = f"g, d = self.optimizers()\nself.toggle_optimizer(g)\nself.untoggle_optimizer(g)\n{BOTH}g.step()\nd.step()"
    assert applied(trained("a, b", work)) == [True, True]


def test_clipping_is_noted_for_its_optimizer_alone() -> None:
    work = f"g, d = self.optimizers()\n{BOTH}self.clip_gradients(g, gradient_clip_val=1.0)\ng.step()\nd.step()"
    run = trained("a, b", work)
    marks = [[mark.kind for mark in ledger.steps[1].marks] for ledger in run.ledgers.values() if ledger.steps]
    assert marks == [["clip"], []]


def test_a_backward_of_nothing_is_none() -> None:
    run = trained(
        "a",
        f"opt = self.optimizers()\nself.manual_backward()\n{BOTH}opt.step()\nsched = self.lr_schedulers()\nsched.step()",
    )
    assert len({b.span for b in run.backwards}) == 1
