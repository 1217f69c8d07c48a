"""Which runs a program gets: sides of conditions that accumulate, loops that only one side reaches, first terms of a loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from galint.config import Config
from galint.engine import lint
from galint.source import Source

HEAD = """\
import torch
from torch import nn
from dataclasses import dataclass
from tqdm import trange
"""


def found(text: str) -> list[tuple[str, str]]:
    """(code, the line it stands on) of each finding."""
    source = Source.from_bytes((HEAD + text).encode(), "train.py", Path("train.py"))
    report = lint(source, Config())
    assert report.understood == report.loops > 0, report.not_understood
    lines = (HEAD + text).splitlines()
    return sorted((d.code, lines[d.span.row - 1].strip()) for d in report.diagnostics)


EPOCHS = """
def train(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    {epochs}
    for _ in {over}:
        for step, batch in enumerate(loader):
            loss = model(batch).mean() / args.accum
            loss.backward()
            if (step + 1) % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    train(args, nn.Linear(4, 1), make_loader(args))
"""


@pytest.mark.parametrize(
    ("epochs", "over"),
    [("pass", "range(args.epochs)"), ("epochs = trange(int(args.epochs), desc='epoch')", "epochs")],
)
def test_a_default_of_one_epoch_hides_no_tail(epochs: str, over: str) -> None:
    assert found(EPOCHS.format(epochs=epochs, over=over)) == [("GA402", "if (step + 1) % args.accum == 0:")]


def test_each_call_of_a_training_function_has_its_own_optimizer() -> None:
    text = """
def train(model, loader, args):
    optimizer = build_optimizer(model, args)
    for epoch in range(args.epochs):
        for step, batch in enumerate(loader):
            (model(batch).mean() / args.accum).backward()
            if (step + 1) % args.accum == 0:
                optimizer.step()
                model.zero_grad()
"""
    assert [code for code, _ in found(text)] == ["GA402"]


SIDES = """
class Trainer:
    def __init__(self, opt, net):
        self.net = net
        self.opt = opt
        self.count = 0
        self.every = opt.get("accumulate", 1)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.sam = opt.get("sam", None)
        if self.sam is not None and self.every > 1:
            raise SystemExit("one or the other")

    def closure(self, batch):
        self.count += 1
        loss = self.net(batch).mean() / self.every
        loss.backward()
        return loss

    def update(self, batch):
        {moved}
        self.closure(batch)
        if self.count % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
"""


def test_a_counter_that_moves_twice_a_batch() -> None:
    """With N = 4 the step comes after two batches, whose losses are divided by four: seen in the side that accumulates."""
    assert found(SIDES.format(moved="self.count += 1")) == [("GA401", "if self.count % self.every == 0:")]
    assert found(SIDES.format(moved="pass")) == []


def test_n_that_is_one_unless_a_setting_says_otherwise() -> None:
    text = """
@dataclass
class Settings:
    nominal: int | None = None
    batch: int = 16


class Trainer:
    def __init__(self, net):
        self.config = Settings()
        self.net = nn.parallel.DistributedDataParallel(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @property
    def every(self):
        if self.config.nominal is None:
            return 1
        return max(1, round(self.config.nominal / self.config.batch))

    def epoch(self, loader):
        for step, batch in enumerate(loader):
            (self.net(batch).mean() / self.every).backward()
            if (step + 1) % self.every == 0 or step + 1 == len(loader):
                self.optimizer.step()
                self.optimizer.zero_grad()
"""
    assert ("GA601", "(self.net(batch).mean() / self.every).backward()") in found(text)


TERMS = """
def main(cfg, model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step, batch in enumerate(loader):
        outputs = model(batch)
        loss = 0
        {first}
            {term}
        (loss{share}).backward()
        if (step + 1) % cfg.accum == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize("first", ["if cfg.use_mlm:", "if 'mlm' in batch:", "if len(batch) > 1:"])
@pytest.mark.parametrize("term", ["loss = outputs['mlm'].mean()", "loss += outputs['mlm'].mean()"])
def test_a_loss_has_a_first_term(first: str, term: str) -> None:
    """`0` has no backward, so that the program goes through the branch that gives the loss its first term."""
    undivided = [code for code, _ in found(TERMS.format(first=first, term=term, share=""))]
    assert "GA201" in undivided
    divided = [code for code, _ in found(TERMS.format(first=first, term=term, share=" / cfg.accum"))]
    assert "GA201" not in divided and "GA204" not in divided


def test_what_is_chosen_to_be_none_is_false() -> None:
    text = """
def main(cfg, model, loader):
    extra = cfg.extra
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step, batch in enumerate(loader):
        if extra is None:
            loss = model(batch).mean() / cfg.accum
        else:
            loss = extra(model, batch).mean() / cfg.accum
        loss.backward()
        if extra:
            optimizer.step()
            optimizer.zero_grad()
        elif (step + 1) % cfg.accum == 0 or step + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""
    assert [code for code, _ in found(text) if code in {"GA201", "GA401"}] == []


def test_a_first_draw_from_what_was_filled_out_of_sight_ends_nothing() -> None:
    text = """
def main(cfg, model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step, batch in enumerate(loader):
        seen = {}
        for name in batch["names"]:
            if name not in cfg.skipped:
                remember(seen, name)
        width = next(iter(seen.values())).shape[1]
        loss = model(batch["x"], width).mean()
        loss.backward()
        if (step + 1) % cfg.accum == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
    assert [code for code, _ in found(text)][:1] == ["GA201"]


def test_a_step_that_a_set_up_takes_is_no_window() -> None:
    """One step on empty data makes the optimizer's state before a checkpoint is read into it."""
    text = """
def make_state(model, optimizer):
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    model(torch.zeros(1, 6)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def main(args, loader):
    model = nn.Linear(6, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    make_state(model, optimizer)
    for step, x in enumerate(loader):
        (nn.functional.mse_loss(model(x), x.mean(dim=1, keepdim=True)) / args.accum).backward()
        if {guard}:
            optimizer.step()
            optimizer.zero_grad()
"""
    assert "GA401" not in [code for code, _ in found(text.format(guard="(step + 1) % args.accum == 0"))]
    assert ("GA401", "if step % args.accum == 0:") in found(text.format(guard="step % args.accum == 0"))
