"""The engine where things go wrong or depend on settings: broken checks, deep code, configurations, counts of loops."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from galint import diagnosing, engine
from galint.config import Config
from galint.diagnostic import Report
from galint.errors import SourceError
from galint.source import Source

HEAD = """\
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
LOOP = """\
def train(loader, n, args):
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(net(x), y)
        {scale}
        loss.backward()
        if (i + 1) % n == 0:
            opt.step()
            {clear}
"""


def linted(text: str) -> Report:
    return engine.lint(Source("train.py", text), Config())


def found(text: str) -> list[tuple[str, str | None]]:
    return [(d.code, d.configuration) for d in linted(text).diagnostics]


def test_a_broken_check_hides_nothing_that_the_others_find(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        code, witness = "GA999", "even"

        def run(self, view: object) -> None:
            raise KeyError("inside")

    monkeypatch.setattr(diagnosing, "CHECKS", (Broken(), *diagnosing.CHECKS))
    report = linted(HEAD + LOOP.format(scale="pass", clear="opt.zero_grad()"))
    assert [d.code for d in report.diagnostics if d.severity != "note"] == ["GA201"]
    [line] = report.internal_errors
    assert line.startswith("GA999: KeyError: 'inside' at test_engine.py:")


@pytest.mark.parametrize("text", ["x = " + "-" * 3000 + "1\n", "x = " + "(" * 3000 + "1" + ")" * 3000 + "\n"])
def test_code_that_nests_too_deeply_is_said_to_be(text: str) -> None:
    report = linted(HEAD + text + LOOP.format(scale="pass", clear="opt.zero_grad()"))
    assert report.understood == 0
    assert not report.internal_errors
    assert report.not_understood or [d.code for d in report.diagnostics] == ["GA000"]


@pytest.mark.parametrize(
    ("scale", "clear", "wanted"),
    [
        ("loss = loss / n", "opt.zero_grad()", []),
        ("pass", "opt.zero_grad()", [("GA201", None)]),
        ("if args.mean:\n            loss = loss / n", "opt.zero_grad()", [("GA201", "when `args.mean` is false")]),
        (
            "if not args.total:\n            loss = loss / n",
            "opt.zero_grad()",
            [("GA201", "when `args.total` is true")],
        ),
        (
            "loss = loss / n\n        if args.clear:\n            opt.zero_grad()",
            "opt.zero_grad()",
            [("GA101", "when `args.clear` is true")],
        ),
    ],
)
def test_a_finding_says_which_configuration_it_needs(
    scale: str, clear: str, wanted: list[tuple[str, str | None]]
) -> None:
    report = linted(HEAD + LOOP.format(scale=scale, clear=clear))
    assert [(d.code, d.configuration) for d in report.diagnostics if d.severity != "note"] == wanted


WINDOW = """\
for i in range(12):
    x, y = torch.randn(6, 4), torch.randn(6, 1)
    loss = nn.functional.mse_loss(net(x), y)
    {during}
    if (i + 1) % 4 == 0:
        {after}
        opt.step()
        opt.zero_grad()
"""
BACK = "loss.backward()"


@pytest.mark.parametrize(
    ("before", "during", "after"),
    [
        ("", BACK, "net.weight.grad.div_(4)\n        net.bias.grad.div_(4)"),
        ("", BACK, "for layer in net.children():\n            for p in layer.parameters():\n                p.grad.div_(4)"),
        ("", BACK, "for p in net.parameters():\n            p.grad.copy_(averaged(p))"),
        ("", "loss.register_hook(lambda g: g / 4)\n    loss.backward()", "pass"),
        ("for p in net.parameters():\n    p.register_hook(lambda g: g / 4)\n", BACK, "pass"),
        ("", "loss = torch.dot(loss.reshape(1), torch.tensor([1 / 4]))\n    loss.backward()", "pass"),
    ],
)  # fmt: skip
def test_a_gradient_that_may_be_scaled_out_of_sight_is_no_finding(before: str, during: str, after: str) -> None:
    assert found(HEAD + before + WINDOW.format(during=during, after=after)) == []


@pytest.mark.parametrize(
    ("during", "after"),
    [
        (BACK, "pass"),
        (BACK, "for p in net.parameters():\n            print(p.grad.norm(), p.grad.data.abs().max().item())"),
        (BACK, "for p in net.parameters():\n            p.grad.clamp_(-1, 1)"),
        (BACK, "print(net.weight.grad.norm())"),
        (BACK, "net.weight.grad.clamp_(-1, 1)"),
        (BACK, "total = sum(p.grad.detach().pow(2).sum() for p in net.parameters())"),
        (BACK, "half = [p.grad / 4 for p in net.parameters()]"),
        ("loss = torch.dot(loss.reshape(1), torch.ones(1))\n    loss.backward()", "pass"),
    ],
)
def test_a_gradient_that_is_only_looked_at_stays_a_finding(during: str, after: str) -> None:
    assert [code for code, _ in found(HEAD + WINDOW.format(during=during, after=after))] == ["GA201"]


@pytest.mark.parametrize(
    ("text", "loops", "understood"),
    [
        (LOOP.format(scale="loss /= n", clear="opt.zero_grad()"), 1, 1),
        ("def probe(x):\n    net(x).mean().backward()\n    net.zero_grad()\n", 0, 0),
        (LOOP.format(scale="loss /= n", clear="opt.zero_grad()") + "net(torch.ones(1, 4)).sum().backward()\nopt.zero_grad()\n", 1, 1),
        ("opt.zero_grad()\nnet(torch.ones(1, 4)).sum().backward()\nopt.step()\n", 1, 1),
        ("for x in load():\n    net(x).sum().backward()\nother(opt, net(x))\nopt.step()\n", 1, 1),
        ("def train(loader):\n    for x in loader:\n        net(x).sum().backward()\n        mystery(opt, net(x))\n", 0, 0),
        ("def step():\n    opt.step()\ndef train(loader):\n    for x in loader:\n        net(x).sum().backward()\n", 1, 0),
    ],
)  # fmt: skip
def test_a_loop_counts_when_a_step_belongs_to_its_backward(text: str, loops: int, understood: int) -> None:
    report = linted(HEAD + text)
    assert (report.loops, report.understood) == (loops, understood)
    assert len(report.not_understood) == loops - understood


def test_a_loop_that_is_not_understood_has_a_reason() -> None:
    text = "def train(loader, flag):\n    raise ValueError\n    for x in loader:\n        net(x).sum().backward()\n        opt.step()\n"
    [missed] = linted(HEAD + text).not_understood
    assert missed.reason == "the run does not reach it"


def test_a_file_of_the_project_that_vanishes_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = (
        "def train(net, opt, loader, n):\n    for i, x in enumerate(loader):\n        net(x).mean().backward()\n"
        "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n"
    )
    (tmp_path / "steps.py").write_text(loop)
    (tmp_path / "main.py").write_text(HEAD + "from steps import train\ntrain(net, opt, load(), 4)\nnet.zero_grad()\n")
    source = Source.read(tmp_path / "main.py")
    assert [d.code for d in engine.lint(source, Config(), tmp_path).elsewhere] == ["GA201"]

    def gone(path: Path) -> Source:
        raise SourceError(str(path), "is gone")

    monkeypatch.setattr(Source, "read", gone)
    assert engine.lint(source, Config(), tmp_path).elsewhere == []


def test_the_end_of_a_window_is_told_once_where_a_launcher_sees_it_in_a_helper(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "helper.py").write_text(
        "import torch\n\nclass Scaler:\n    def __init__(self):\n        self._scaler = torch.amp.GradScaler()\n\n"
        "    def __call__(self, loss, optimizer, update_grad=True):\n        self._scaler.scale(loss).backward()\n        if update_grad:\n"
        "            self._scaler.step(optimizer)\n            self._scaler.update()\n"
    )
    (tmp_path / "loop.py").write_text(
        "import torch\n\ndef train_one_epoch(model, loader, optimizer, loss_scaler, args):\n    optimizer.zero_grad()\n"
        "    for i, x in enumerate(loader):\n        loss = model(x).mean() / args.accum\n"
        "        due = (i + 1) % args.accum == 0\n        loss_scaler(loss, optimizer, update_grad=due)\n"
        "        if due:\n            optimizer.zero_grad()\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch\nfrom helper import Scaler\nfrom loop import train_one_epoch\n\ndef main(args, model, loader):\n"
        "    model = torch.nn.parallel.DistributedDataParallel(model)\n"
        "    optimizer = torch.optim.SGD(model.parameters())\n    loss_scaler = Scaler()\n"
        "    for epoch in range(args.epochs):\n        train_one_epoch(model, loader, optimizer, loss_scaler, args)\n"
    )
    command = [sys.executable, "-m", "galint", "check", "--no-cache", "--select", "GA403", "--output-format", "concise"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout.splitlines()
    assert [line.partition(":")[0] for line in told if "GA403" in line] == ["loop.py"]
