"""What a slice must be able to cut out and run: each shape of the text is decided by itself, not by a replay."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")

from galint.config import Config
from galint.discovery import Target
from galint.trace.concluding import Outcome
from galint.trace.confirmation import confirm
from galint.trace.confirming import Limits
from galint.trace.model import Status

HEAD = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--accum", type=int, default=4)
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()
"""

SHAPES = {
    "an_optimizer_that_runs_backward": (
        "GA101",
        """
        def train(model, optimizer, loader):
            for i, x in enumerate(loader):
                optimizer.zero_grad()
                loss = model(x).mean() / args.accum
                optimizer.backward(loss)
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_guard_against_losses_that_are_not_finite": (
        "GA101",
        """
        def train(model, optimizer, loader):
            for i, x in enumerate(loader):
                loss = model(x).mean() / args.accum
                if not loss.isfinite():
                    continue
                if torch.isnan(loss).any():
                    continue
                optimizer.zero_grad()
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_counter_over_a_range_that_is_not_known": (
        "GA101",
        """
        def train(model, optimizer, plan, tasks):
            for step in range(plan.longest()):
                for task in tasks:
                    optimizer.zero_grad()
                    loss = model(task.batch()).mean() / args.accum
                    loss.backward()
                if (step + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "data_cut_up_by_a_while_loop": (
        "GA101",
        """
        def train(model, optimizer, text, width):
            start, samples = 0, []
            while start < len(text) - width:
                samples.append(text[start : start + width])
                start += width
            for i in range(len(samples) // 8):
                optimizer.zero_grad()
                loss = model(samples[i]).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_launcher": (
        "GA101",
        """
        def worker(rank, options):
            model = nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for i, x in enumerate(options.loader()):
                optimizer.zero_grad()
                loss = model(x).mean() / options.accum
                loss.backward()
                if (i + 1) % options.accum == 0:
                    optimizer.step()

        if __name__ == "__main__":
            torch.multiprocessing.spawn(worker, args=(args,), nprocs=2)
        """,
    ),
    "fabric": (
        "GA101",
        """
        from lightning.fabric import Fabric

        def train(net, optim, data):
            fabric = Fabric(devices=1)
            model, optimizer = fabric.setup(net, optim)
            for i, x in enumerate(data):
                optimizer.zero_grad()
                loss = model(x).mean() / args.accum
                fabric.backward(loss)
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_wrapper_that_the_default_leaves_out": (
        "GA601",
        """
        def train(model, optimizer, loader):
            if args.local_rank != -1:
                model = nn.parallel.DistributedDataParallel(model, device_ids=[args.local_rank])
            for i, x in enumerate(loader):
                loss = model(x).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        """,
    ),
    "a_state_carried_from_step_to_step": (
        "GA101",
        """
        def train(model, optimizer, loader):
            memory = None
            for i, x in enumerate(loader):
                optimizer.zero_grad()
                loss, memory = model(x, memory)
                loss = loss / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_loss_divided_in_its_own_place": (
        "GA101",
        """
        def train(task, optimizer, loader, config):
            for i, x in enumerate(loader):
                optimizer.zero_grad()
                result = task.train_step(x)
                result.loss /= config.trainer.accum_steps
                result.loss.backward()
                if (i + 1) % config.trainer.accum_steps == 0:
                    optimizer.step()
        """,
    ),
    "a_loss_that_may_be_a_list": (
        "GA101",
        """
        def total(loss):
            if isinstance(loss, (list, tuple)):
                return sum(total(part) for part in loss)
            return loss.mean()

        def train(model, optimizer, loader):
            for i, x in enumerate(loader):
                optimizer.zero_grad()
                loss = total(model(x)) / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_window_from_a_default_of_the_entry": (
        "GA101",
        """
        class Runner:
            def __init__(self, model, optimizer):
                self.model, self.optimizer = model, optimizer

            def epoch(self, loader, accumulate: int = 1):
                for i, x in enumerate(loader):
                    self.optimizer.zero_grad()
                    loss = self.model(x).mean() / accumulate
                    loss.backward()
                    if (i + 1) % accumulate == 0:
                        self.optimizer.step()
        """,
    ),
    "an_optimizer_of_the_file": (
        "GA101",
        """
        class Descent(torch.optim.Optimizer):
            def __init__(self, params, lr=0.1, amsgrad=False):
                super().__init__(params, {"lr": lr, "amsgrad": amsgrad})

            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is None:
                            continue
                        state = self.state[p]
                        if len(state) == 0:
                            state["step"] = 0
                        state["step"] += 1
                        p.data.add_(p.grad.data, alpha=-group["lr"])

        class Warm:
            def __init__(self, optimizer, warmup):
                self.optimizer, self.warmup, self.count = optimizer, warmup, 0

            def step(self):
                self.count += 1
                for group in self.optimizer.param_groups:
                    group["lr"] = min(1.0, self.count / self.warmup)
                self.optimizer.step()

            def zero_grad(self):
                self.optimizer.zero_grad()

        def train(model, loader):
            optimizer = Warm(Descent(model.parameters()), 100)
            for i, x in enumerate(loader):
                optimizer.zero_grad()
                loss = model(x).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_context_manager_of_the_file": (
        "GA101",
        """
        from contextlib import contextmanager

        @contextmanager
        def cleared(optimizer):
            optimizer.zero_grad()
            yield optimizer

        def train(model, optimizer, loader):
            for i, x in enumerate(loader):
                with cleared(optimizer):
                    loss = model(x).mean() / args.accum
                    loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "n_worked_out_of_unknown_numbers": (
        "GA101",
        """
        def train(model, optimizer, loader, config):
            replicas = config.local_world_size
            accum_steps = max(1, config.batch_of_a_step // replicas)
            held = 0
            for x in loader:
                optimizer.zero_grad()
                loss = model(x).mean() / accum_steps
                loss.backward()
                held += 1
                if held >= accum_steps:
                    optimizer.step()
                    held = 0
        """,
    ),
    "data_made_by_something_called_like_a_model": (
        "GA101",
        """
        def main(config):
            model, optimizer = config.model, config.optimizer
            data, tensors = config.reader._process_texts_for_model(config.samples)
            loader = DataLoader(tensors, batch_size=8)
            for epoch in range(2):
                for i, x in enumerate(loader):
                    optimizer.zero_grad()
                    loss = model(x).mean() / args.accum
                    loss.backward()
                    if (i + 1) % args.accum == 0:
                        optimizer.step()

        main(args)
        """,
    ),
    "batches_drawn_by_hand": (
        "GA101",
        """
        def train(model, optimizer, data, steps):
            batches = iter(DataLoader(data, batch_size=8))
            for step in range(steps):
                for micro in range(args.accum):
                    optimizer.zero_grad()
                    loss = model(next(batches)).mean() / args.accum
                    loss.backward()
                optimizer.step()
        """,
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Outcome]]:
    """All shapes confirmed in one process."""
    folder = tmp_path_factory.mktemp("shapes")
    targets = []
    for name, (_, body) in SHAPES.items():
        path = folder / f"{name}.py"
        path.write_text(HEAD + textwrap.dedent(body), encoding="utf-8")
        targets.append(Target(path, str(path), Config(), folder))
    found = confirm(targets, Limits("cpu", 120.0))
    assert not found.problems
    out: dict[str, list[Outcome]] = {}
    for outcome in found.outcomes:
        out.setdefault(Path(outcome.finding.filename).stem, []).append(outcome)
    return out


@pytest.mark.parametrize("name", SHAPES)
def test_the_text_itself_is_run(name: str, outcomes: dict[str, list[Outcome]]) -> None:
    code = SHAPES[name][0]
    chosen = [o for o in outcomes.get(name, []) if o.finding.code == code]
    assert chosen, [(o.finding.code, o.finding.message) for o in outcomes.get(name, [])]
    for out in chosen:
        told = (out.status, out.reason, out.measured, out.notes)
        assert (out.how, out.status) == ("slice", Status.CONFIRMED), told
        assert out.shown is not None
        if code == "GA101":
            *lost, last = out.shown.nw
            assert lost == pytest.approx([0] * len(lost), abs=1e-4), told
            assert len(lost) >= 3 and last > 0.99, told
