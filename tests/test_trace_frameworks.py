"""Real runs of Accelerate, Lightning and Transformers under `galint.trace`, where they are installed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from galint.trace.judge import judge  # noqa: E402
from galint.trace.model import Status, Trace, read  # noqa: E402
from galint.trace.running import Request, run  # noqa: E402

pytestmark = pytest.mark.slow


def traced(folder: Path, text: str, *args: str, windows: int = 6, replay: bool = False) -> Trace:
    """Run the script in its own process (frameworks leave much behind) and return its trace with verdicts."""
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    request = Request([str(path), *args], windows=windows, replay=replay, timeout=200, script_to_stderr=True)
    here = Path.cwd()
    os.chdir(folder)
    try:
        result = run(request, lambda _: None)
    finally:
        os.chdir(here)
    assert not result.trace.failed, result.trace.end
    assert result.trace.end.get("internal") is None
    result.trace.verdicts = result.verdicts
    return result.trace


def confirmed(trace: Trace) -> set[str]:
    return {v.rule for v in trace.verdicts if v.status is Status.CONFIRMED}


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("ACCELERATE_DISABLE_RICH", "1")


ACCELERATE = """
    import sys
    import torch
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
    model = torch.nn.Linear(20, 5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = DataLoader(TensorDataset(torch.randn(80, 20), torch.randint(0, 5, (80,))), batch_size=8)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    model, optimizer, data, scheduler = accelerator.prepare(model, optimizer, data, scheduler)
    for epoch in range(2):
        for x, y in data:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                if "twice" in sys.argv:
                    loss = loss / 4
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
"""


def test_accelerate_weighs_one_with_a_tail_of_two(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    trace = traced(tmp_path, ACCELERATE)
    assert [w.n for w in trace.windows] == [4, 4, 2, 4, 4, 2]
    assert [w.tail for w in trace.windows] == [False, False, True] * 2
    for window in trace.windows:
        assert window.nw == pytest.approx([0.5, 0.5] if window.tail else [1] * 4, abs=1e-4)
    assert confirmed(trace) == {"GA205"}  # Accelerate divides the tail by N too: a note
    assert {v.rule: v.status for v in trace.verdicts}["GA404"] is Status.REFUTED


def test_accelerate_divided_by_hand_as_well(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    trace = traced(tmp_path, ACCELERATE, "twice", windows=2)
    assert confirmed(trace) == {"GA202"}
    assert trace.windows[0].nw == pytest.approx([0.25] * 4, abs=1e-4)
    verdict = next(v for v in trace.verdicts if v.rule == "GA202")
    assert "accelerator.backward" in Path(verdict.filename).read_text().splitlines()[verdict.line - 1]


LIGHTNING = """
    import logging, sys, warnings
    import torch
    import {package} as L
    from torch.utils.data import DataLoader, TensorDataset

    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Net(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(20, 5)
            self.automatic_optimization = "manual" not in sys.argv

        def training_step(self, batch, index):
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.layer(x), y)
            if self.automatic_optimization:
                return loss
            optimizer = self.optimizers()
            self.manual_backward(loss)
            if (index + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    torch.manual_seed(0)
    data = DataLoader(TensorDataset(torch.randn(96, 20), torch.randint(0, 5, (96,))), batch_size=8)
    options = {{}} if "manual" in sys.argv else dict(accumulate_grad_batches=4, gradient_clip_val=0.1)
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=2, enable_progress_bar=False, logger=False, enable_checkpointing=False,
        enable_model_summary=False, **options,
    )
    trainer.fit(Net(), data)
"""


@pytest.mark.parametrize("package", ["lightning"])
def test_lightning_weighs_one_although_the_last_backward_is_inside_step(tmp_path: Path, package: str) -> None:
    pytest.importorskip(package)
    trace = traced(tmp_path, LIGHTNING.format(package=package))
    assert [w.n for w in trace.windows] == [4] * 6
    for window in trace.windows:
        assert window.nw == pytest.approx([1] * 4, abs=1e-4)
    assert confirmed(trace) == set()


def test_lightning_with_manual_optimization_and_no_scaling(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    trace = traced(tmp_path, LIGHTNING.format(package="lightning"), "manual", windows=3)
    assert confirmed(trace) == {"GA201"}
    verdict = next(v for v in trace.verdicts if v.rule == "GA201")
    assert "manual_backward" in Path(verdict.filename).read_text().splitlines()[verdict.line - 1]


TRANSFORMERS = """
    import random, sys
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    random.seed(0)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )

    def item():
        n, ids = random.randint(4, 24), [random.randrange(50) for _ in range(24)]
        return {"input_ids": ids, "labels": [t if k < n else -100 for k, t in enumerate(ids)]}

    def collate(items):
        return {k: torch.tensor([x[k] for x in items]) for k in items[0]}

    data = [item() for _ in range(64)]
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=4, max_steps=3, report_to=[],
        use_cpu=True, save_strategy="steps", save_steps=1, disable_tqdm=True, gradient_checkpointing="gc" in sys.argv,
        bf16="bf16" in sys.argv,
    )
    Trainer(GPT2LMHeadModel(config), arguments, train_dataset=data, data_collator=collate).train()
"""


@pytest.mark.parametrize("how", ["plain", "gc", "bf16"])
def test_transformers_agrees_with_the_reference_by_tokens(tmp_path: Path, how: str) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    trace = traced(tmp_path, TRANSFORMERS, how)
    assert [w.n for w in trace.windows] == [4, 4, 4]
    for window in trace.windows:
        assert window.items_error is not None and window.items_error < (1e-3 if how == "bf16" else 1e-6)
        assert window.relative_error is not None and window.relative_error > 0.03
    assert confirmed(trace) == set()
    assert {v.rule: v.status for v in trace.verdicts}["GA206"] is Status.REFUTED
    assert not list((tmp_path / "out").rglob("*.safetensors"))


def test_the_trace_of_a_framework_can_be_judged_again_from_its_file(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    (tmp_path / "train.py").write_text(textwrap.dedent(ACCELERATE))
    output = tmp_path / "trace.jsonl"
    result = run(Request([str(tmp_path / "train.py")], windows=2, output=output, script_to_stderr=True), lambda _: None)
    assert [(v.rule, v.status) for v in judge(read(output))] == [(v.rule, v.status) for v in result.verdicts]


def test_torchrun_traces_every_rank(tmp_path: Path) -> None:
    """Under the real launcher, through `python -m galint trace` once the command line has it."""
    pytest.importorskip("torch.distributed.run")
    if not torch.distributed.is_available():
        pytest.skip("needs torch.distributed")
    from galint.cli.app import COMMANDS

    if "trace" not in COMMANDS:
        pytest.skip("the command line does not register `trace` yet")
    from test_trace_cli import RANKS

    (tmp_path / "train.py").write_text(RANKS)
    port = random.Random(os.getpid()).randrange(20000, 40000)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    command += ["-m", "galint", "trace", "--no-lint", "--output", "t.jsonl", "--", "train.py", "right"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(read(tmp_path / "t.jsonl").windows) == 3
