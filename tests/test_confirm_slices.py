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
    "an_optimizer_from_a_call_that_a_models_output_went_into": (
        "GA101",
        """
        def main(config, tools):
            ranker = tools.get_ranker(config)
            model = ranker.model
            data, tensors = ranker.process_for_model(config.samples)
            optimizer, scheduler = ranker.get_optimizer_and_scheduler(config, tensors)
            for i, x in enumerate(DataLoader(tensors)):
                optimizer.zero_grad()
                loss = model(x).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
                    scheduler.step()
        """,
    ),
    "an_optimizer_that_no_known_branch_gives": (
        "GA101",
        """
        def parse(made):
            optimizer, schedule = None, None
            if isinstance(made, torch.optim.Optimizer):
                optimizer = made
            elif isinstance(made, dict):
                optimizer = made["optimizer"]
            return optimizer, schedule

        def fit(model, loader):
            optimizer, schedule = parse(model.configure_optimizers())
            for i, x in enumerate(loader):
                optimizer.zero_grad()
                loss = model(x).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_name_declared_global_after_its_import": (
        "GA101",
        """
        def train(model, optimizer, loader):
            from apex import amp
            global amp
            model, optimizer = amp.initialize(model, optimizer)
            for i, x in enumerate(loader):
                optimizer.zero_grad()
                loss = model(x).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_way_of_wrapping_that_excludes_the_other": (
        "GA601",
        """
        parser.add_argument("--wrapping", type=str, default="ddp", choices=["fsdp", "ddp"])
        args = parser.parse_args()

        def main(model, loader, tools):
            if args.wrapping == "fsdp":
                model = tools.shard(model)
            elif args.wrapping == "ddp":
                model = torch.nn.parallel.DistributedDataParallel(model)
            else:
                raise ValueError(args.wrapping)
            optimizer = torch.optim.AdamW(model.parameters())
            for i, x in enumerate(loader):
                loss = model(x).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        """,
    ),
    "a_default_longer_than_the_data": (
        "GA101",
        """
        parser.add_argument("--gradient_accumulation_steps", type=int, default=64)

        def train(model, optimizer, loader, opts):
            for i, x in enumerate(loader):
                optimizer.zero_grad()
                loss = model(x).mean() / opts.gradient_accumulation_steps
                loss.backward()
                if (i + 1) % opts.gradient_accumulation_steps == 0:
                    optimizer.step()

        def main(model, optimizer, loader, tools):
            train(model, optimizer, loader, tools.parse_with_config(parser))
        """,
    ),
    "micro_batches_that_a_generator_cuts": (
        "GA101",
        """
        def pieces(size, batch):
            for start in range(0, len(batch), size):
                yield batch[start : start + size]

        def train(model, optimizer, loader, config):
            for batch in loader:
                for x in pieces(config.micro, batch):
                    optimizer.zero_grad()
                    (model(x).mean() * len(x) / len(batch)).backward()
                optimizer.step()
        """,
    ),
    "a_loader_that_reads_ahead": (
        "GA101",
        """
        class Ahead:
            def __init__(self, loader):
                self.loader = loader

            def __iter__(self):
                source = iter(self.loader)
                batch = self.following(source)
                while batch is not None:
                    yield batch
                    batch = self.following(source)

            def following(self, source):
                try:
                    return next(source)
                except StopIteration:
                    return None

        def train(model, optimizer, data):
            for i, x in enumerate(Ahead(DataLoader(data))):
                optimizer.zero_grad()
                loss = model(x).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "a_helper_that_calls_itself_on_the_parts_of_a_batch": (
        "GA101",
        """
        def move(x, device):
            if isinstance(x, dict):
                return {k: move(v, device) for k, v in x.items()}
            elif isinstance(x, list):
                return [move(v, device) for v in x]
            else:
                return x.to(device)

        def train(model, optimizer, loader, device):
            for i, batch in enumerate(loader):
                x = move(batch, device)
                optimizer.zero_grad()
                loss = model(x).mean() / args.accum
                loss.backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
        """,
    ),
    "losses_over_the_filtered_parts_of_a_batch": (
        "GA101",
        """
        def train(model, optimizer, loader, losses):
            for i, batch in enumerate(loader):
                targets = {k: v.float() for k, v in batch.items() if k != "image"}
                outputs = model(batch["image"])
                total = 0.0
                for name, target in targets.items():
                    total += losses[name](outputs[name], target)
                optimizer.zero_grad()
                (total / args.accum).backward()
                if (i + 1) % args.accum == 0:
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


def _one(tmp_path: Path, code: str, files: dict[str, str]) -> Outcome:
    """The outcome of the only finding of a code in the first of some files."""
    for name, body in files.items():
        (tmp_path / name).write_text(textwrap.dedent(body), encoding="utf-8")
    path = tmp_path / next(iter(files))
    found = confirm([Target(path, str(path), Config(), tmp_path)], Limits("cpu", 60.0), codes=frozenset({code}))
    assert len(found.outcomes) == 1, found
    return found.outcomes[0]


def test_a_list_that_settings_fill_is_filled_and_called_a_guess(tmp_path: Path) -> None:
    out = _one(
        tmp_path,
        "GA101",
        {
            "train.py": """
                def train(model, optimizer, loader, args):
                    tasks = []
                    if args.first_weight > 0:
                        tasks += ["first"]
                    if args.second_weight > 0:
                        tasks += ["second"]
                    for x in loader:
                        for i, task in enumerate(tasks):
                            optimizer.zero_grad()
                            (model(x, task).mean() / len(tasks)).backward()
                        optimizer.step()
            """
        },
    )
    assert out.how == "slice", (out.reason, out.notes)
    assert out.status is not Status.REFUTED


def test_calls_in_a_helper_of_another_file_speak_of_the_line_that_calls_it(tmp_path: Path) -> None:
    out = _one(
        tmp_path,
        "GA601",
        {
            "train.py": """
                import torch
                from torch.nn.parallel import DistributedDataParallel
                from helpers import Trainer

                def train(model, loader):
                    model = DistributedDataParallel(model)
                    trainer = Trainer(model, torch.optim.SGD(model.parameters(), 0.1))
                    for i, x in enumerate(loader):
                        trainer.backward(model(x).mean() / 4)
                        if (i + 1) % 4 == 0:
                            trainer.step()
            """,
            "helpers.py": """
                class Trainer:
                    def __init__(self, model, optimizer):
                        self.model, self.optimizer = model, optimizer

                    def backward(self, loss):
                        loss.backward()

                    def step(self):
                        self.optimizer.step()
                        self.optimizer.zero_grad()
            """,
        },
    )
    assert (out.how, out.status) == ("slice", Status.CONFIRMED), (out.reason, out.notes)
    assert out.shown is not None and out.shown.allreduces == 4


def test_a_setting_of_a_dictionary_keeps_its_number_under_another_name(tmp_path: Path) -> None:
    out = _one(
        tmp_path,
        "GA401",
        {
            "train.py": """
                import config

                class Trainer:
                    def __init__(self, model, optimizer, loader):
                        self.settings = config.completed(config.settings)
                        self.model, self.optimizer, self.loader = model, optimizer, loader

                    def train(self):
                        for step, x in enumerate(self.loader):
                            loss = self.model(x).mean() / self.settings["accumulate"]
                            loss.backward()
                            if step % self.settings["accumulate"] == 0:
                                self.optimizer.step()
                                self.optimizer.zero_grad()
            """
        },
    )
    assert (out.how, out.status) == ("slice", Status.CONFIRMED), (out.reason, out.notes)
    assert out.windows[0].n == 1 and out.windows[1].n > 1
