"""Findings that need two files: what one file's run shows in the files it imports."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from galint.cli.app import cli

LAUNCH = """\
import argparse

import torch
from torch.nn.parallel import DistributedDataParallel
from engine import train_one_epoch
from nets import Net


def main(args, loader):
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        train_one_epoch(model, loader, optimizer, torch.nn.CrossEntropyLoss(), args.accum)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    main(parser.parse_args(), torch.utils.data.DataLoader(range(100), batch_size=4))
"""

ENGINE = """\
def train_one_epoch(model, loader, optimizer, criterion, accum):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / accum
        loss.backward()
        if (i + 1) % accum == 0 or (i + 1) == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

NETS = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten())

    def forward(self, x):
        return self.body(x)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that wraps and drives, an engine with the loop, a file of models."""
    for name, text in (("main.py", LAUNCH), ("engine.py", ENGINE), ("nets.py", NETS)):
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(*paths: str) -> set[str]:
    """The findings of a run as `file:line code`."""
    result = CliRunner().invoke(cli, ["check", "--output-format", "concise", "--select", "GA5,GA6", *paths])
    assert result.exit_code in {0, 1}, result.output
    lines = [line for line in result.output.splitlines() if ".py:" in line]
    return {f"{':'.join(line.split(':')[:2])} {line.split('GA')[1][:3]}" for line in lines}


def test_a_wrap_in_the_launching_file_reaches_the_loop(project: Path) -> None:
    assert found(".") == {"engine.py:5 601", "nets.py:7 501"}
    assert found("main.py", "engine.py") == {"engine.py:5 601"}


def test_a_second_run_from_the_cache_shows_the_same(project: Path) -> None:
    assert found(".") == found(".") == {"engine.py:5 601", "nets.py:7 501"}


def test_without_the_launching_file_nothing_is_known_of_the_wrap(project: Path) -> None:
    (project / "main.py").unlink()
    assert found(".") == set()


def test_an_ignore_comment_in_the_file_of_the_loop_holds(project: Path) -> None:
    text = ENGINE.replace("loss.backward()", "loss.backward()  # galint: ignore[GA601]")
    (project / "engine.py").write_text(text)
    assert found(".") == {"nets.py:7 501"}
