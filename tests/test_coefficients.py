"""Torch judges the ledger: what a script leaves in `.grad` is the ledger's sum of coefficients times the loss's own gradient."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from paper import run

torch = pytest.importorskip("torch")

SETUP = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(6, 3), torch.randn(6, 1)
loss = nn.functional.mse_loss(net(x), y)
"""

WAYS = [
    "loss.backward()",
    "(loss / 4).backward()",
    "(loss * 2).backward()",
    "(2 * loss).backward()",
    "(loss * 0.5 / 2).backward()",
    "(-loss).backward()",
    "(+loss).backward()",
    "loss /= 4; loss.backward()",
    "loss *= 3; loss.backward()",
    "loss.div(4).backward()",
    "loss.divide(4).backward()",
    "loss.true_divide(4).backward()",
    "loss.mul(3).backward()",
    "loss.multiply(3).backward()",
    "loss.div_(4); loss.backward()",
    "loss.mul_(0.25); loss.backward()",
    "torch.div(loss, 4).backward()",
    "torch.mul(loss, 3).backward()",
    "torch.true_divide(loss, 4).backward()",
    "loss.neg().backward()",
    "torch.neg(loss).backward()",
    "loss.backward(torch.tensor(0.25))",
    "loss.backward(gradient=torch.tensor(3.0))",
    "loss.backward(torch.ones_like(loss) / 4)",
    "loss.backward(gradient=torch.full_like(loss, 0.5))",
    "loss.backward(torch.ones(()))",
    "loss.backward(None)",
    "torch.autograd.backward(loss)",
    "torch.autograd.backward([loss / 2, loss / 4])",
    "torch.autograd.backward((loss, loss), (torch.tensor(0.5), torch.tensor(0.25)))",
    "torch.autograd.backward(loss, torch.tensor(0.5))",
    "torch.autograd.backward(tensors=[loss / 2], grad_tensors=[torch.tensor(0.5)])",
    "torch.stack([loss, loss]).mean().backward()",
    "torch.mean(loss).backward()",
    "loss.mean().backward()",
    "loss.sum().backward()",
    "loss.float().backward()",
    "loss.clone().backward()",
    "loss.squeeze().backward()",
    "loss.to('cpu').backward()",
    "loss.double().backward()",
    "losses = []; losses.append(loss / 4); losses[-1].backward()",
    "out = {'loss': loss}; (out['loss'] / 2).backward()",
    "out = (loss / 4, 'log'); out[0].backward()",
    "(loss / len([1, 2, 3])).backward()",
    "(loss / float('4')).backward()",
    "(loss / max(1, 4)).backward()",
    "(loss * (1 / 4)).backward()",
    "(loss / 2 ** 2).backward()",
    "scale = lambda value: value / 4; scale(loss).backward()",
    "loss.backward(retain_graph=True); (loss / 2).backward()",
    "loss.backward(retain_graph=True); net.zero_grad(); (loss / 2).backward()",
    "loss.backward(retain_graph=True); optimizer.zero_grad(set_to_none=True); (loss / 2).backward()",
    "optimizer.zero_grad(); loss.backward()",
    "log = loss.detach() / 4; log2 = loss.item() / 4; loss.backward()",
    "loss.backward(); loss = loss / 4",
    "loss.backward()\nfor p in net.parameters():\n    p.grad /= 4",
    "loss.backward()\nfor p in net.parameters():\n    p.grad *= 2",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.mul_(0.25)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.div_(4)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.data.div_(4)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.data /= 2",
    "loss.backward()\nfor p in net.parameters():\n    p.grad = p.grad / 4",
    "loss.backward()\nfor p in net.parameters():\n    p.grad = 0.5 * p.grad * 4",
    "loss.backward()\nfor p in net.parameters():\n    p.grad = p.grad.div(4)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad = p.grad.clone()",
    "loss.backward()\nfor p in net.parameters():\n    halved = p.grad / 2",
    "loss.backward()\nfor group in optimizer.param_groups:\n    for p in group['params']:\n        p.grad = p.grad / 4",
    "loss.backward()\nfor p in optimizer.param_groups[0]['params']:\n    p.grad /= 4",
    "loss.backward()\ntorch._foreach_div_([p.grad for p in net.parameters()], 4)",
    "loss.backward()\ntorch._foreach_mul_([p.grad for p in net.parameters()], 0.5)",
    "loss.backward()\nfor name, p in net.named_parameters():\n    p.grad.mul_(2)",
    "loss.backward()\nfor p in net.parameters():\n    if p.grad is not None:\n        p.grad.mul_(2)",
    "loss.backward()\nfor group in optimizer.param_groups:\n    for p in group['params']:\n        p.grad.mul_(0.5)",
    "loss.backward(retain_graph=True)\nfor p in net.parameters():\n    p.grad = None\nloss.backward()",
    "loss.backward(retain_graph=True)\nfor p in net.parameters():\n    p.grad.zero_()\n(loss / 4).backward()",
    "loss.backward(retain_graph=True)\nfor p in net.parameters():\n    p.grad.data.zero_()\n(loss / 4).backward()",
    "loss.backward(retain_graph=True)\nfor p in net.parameters():\n    p.grad.detach_()\n    p.grad.zero_()\n(loss / 4).backward()",
    "def halve(value, by=2):\n    value = value / by\n    return value\nhalve(halve(loss)).backward()",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.copy_(p.grad / 4)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.data = p.grad.data / 4",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.data.copy_(p.grad.data * 0.5)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.detach().mul_(0.5)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.divide_(4)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.multiply_(0.5)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad.true_divide_(4)",
    "loss.backward()\nfor p in net.parameters():\n    torch.mul(p.grad, 0.5, out=p.grad)",
    "loss.backward()\nfor p in net.parameters():\n    p.grad = torch.div(p.grad, 4)",
    "loss.backward()\nfor p in net.parameters():\n    g = p.grad\n    g.mul_(0.5)",
    "loss.backward()\nfor name, p in net.named_parameters():\n    if p.requires_grad and p.grad is not None:\n        p.grad = p.grad / 4",
    "loss.backward()\nfor p in filter(lambda p: p.requires_grad, net.parameters()):\n    p.grad.div_(4)",
    "loss.backward()\n[p.grad.div_(4) for p in net.parameters()]",
    "loss.divide_(4); loss.backward()",
    "loss.multiply_(0.5); loss.backward()",
    "criterion = nn.MSELoss()\n(criterion(net(x), y) / 4).backward()",
    "criterion = nn.MSELoss(reduction='mean')\ncriterion(net(x), y).backward()",
    "nn.functional.mse_loss(net(x), y, reduction='none').mean().backward()",
    "(net(x) - y).pow(2).mean().div(4).backward()",
    "if loss.requires_grad:\n    (loss / 2).backward()",
    "(loss / 4 if x is not None else loss).backward()",
    "for _ in range(3):\n    loss.backward(retain_graph=True)",
    "with torch.enable_grad():\n    nn.functional.mse_loss(net(x), y).div(4).backward()",
    "a, b = torch.stack([loss / 2, loss / 2]).chunk(2)\na.sum().backward()",
    "loss = loss * torch.tensor(0.25)\nloss.backward()",
    "loss = loss * torch.tensor([0.25])\nloss.backward()",
    "scaler = torch.amp.GradScaler('cpu', enabled=False)\nscaler.scale(loss / 4).backward()",
]  # fmt: skip


def left_on_paper(text: str) -> Fraction:
    """The sum of the coefficients that the optimizer's gradient holds after a run on paper."""
    m, frame = run(SETUP + text + "\n")
    ledger = m.ledger(frame.vars["optimizer"])  # type: ignore[arg-type]
    assert not any(e.coefficient.symbols or e.scaled for e in ledger.pending)
    return sum((e.coefficient.value for e in ledger.pending), Fraction(0))


def left_by_torch(text: str) -> float:
    """What torch leaves in `.grad`, as a multiple of the loss's own gradient."""
    names: dict[str, Any] = {}
    exec(SETUP, names)
    own = torch.autograd.grad(names["loss"], list(names["net"].parameters()))
    exec(SETUP + text + "\n", names := {})
    left = [p.grad for p in names["net"].parameters()]
    [factor] = {round(float((g / o).mean()), 4) for g, o in zip(left, own, strict=True)}
    return factor


@pytest.mark.parametrize("text", WAYS)
def test_the_ledger_holds_what_torch_leaves(text: str) -> None:
    assert float(left_on_paper(text)) == pytest.approx(left_by_torch(text), abs=1e-4)


@pytest.mark.parametrize(
    ("text", "addends"),
    [
        ("(loss + loss / 4).backward()", ["1", "1/4"]),
        ("(loss - loss / 4).backward()", ["1", "-1/4"]),
        ("loss += loss / 2; loss.backward()", ["1", "1/2"]),
        ("sum([loss / 2, loss / 4]).backward()", ["1/2", "1/4"]),
        ("sum([loss / 2], loss).backward()", ["1", "1/2"]),
        ("torch.stack([loss / 2, loss]).sum().backward()", ["1/2", "1"]),
        ("((loss + loss / 4) / 2).backward()", ["1/2", "1/8"]),
    ],
)
def test_addends_of_one_loss_are_kept_apart(text: str, addends: list[str]) -> None:
    """Each may be a loss of its own, and one of them divided, another not, is a finding."""
    m, _ = run(SETUP + text + "\n")
    [backward] = m.result.backwards
    assert [str(c) for c in backward.facts.terms] == addends
