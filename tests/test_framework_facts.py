"""What galint says of Lightning, Ignite, mmengine and Hugging Face's Trainer, held against the real packages."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")


@pytest.mark.filterwarnings("ignore")
def test_lightning_manual_backward_divides_by_nothing_and_toggling_spares_the_others() -> None:
    lightning = pytest.importorskip("lightning")
    seen: list[tuple[Any, Any]] = []

    class Pair(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False
            self.first, self.second = torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 1, bias=False)

        def configure_optimizers(self) -> list[Any]:
            return [torch.optim.SGD(m.parameters(), lr=0.1) for m in (self.first, self.second)]

        def training_step(self, x: Any, index: int) -> None:
            one, _ = self.optimizers()
            self.toggle_optimizer(one)
            self.manual_backward(self.second(self.first(x)).sum())
            seen.append((self.first.weight.grad, self.second.weight.grad))
            self.untoggle_optimizer(one)
            wanted = torch.autograd.grad(self.second(self.first(x)).sum(), self.first.weight)[0]
            assert torch.allclose(self.first.weight.grad, wanted)

    trainer = lightning.Trainer(
        max_steps=1, max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Pair(), torch.utils.data.DataLoader(torch.randn(4, 2), batch_size=4))
    ((mine, other),) = seen
    assert mine is not None and other is None


def test_ignite_counts_iterations_from_one_over_all_epochs() -> None:
    engine = pytest.importorskip("ignite.engine")
    counts: list[tuple[int, int]] = []
    trainer = engine.Engine(lambda e, batch: counts.append((e.state.epoch, e.state.iteration)))
    trainer.run([0, 1, 2], max_epochs=2)
    assert counts == [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6)]


PROJECTS = Path(__file__).parent / "projects"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("project", "name", "times"),
    [
        ("GA201-hf_trainer_forgets_to_divide", "FocalTrainer", 4),
        ("GA201-hf_trainer_forgets_to_divide", "PlainTrainer", 4),
        ("ok_GA201-hf_trainer_divides", "ByHand", 1),
        ("ok_GA201-hf_trainer_divides", "ByItems", 1),
        ("ok_GA201-hf_trainer_divides", "Watching", 1),
    ],
)
def test_the_trainer_steps_after_n_calls_and_its_accelerator_divides_by_nothing(
    project: str, name: str, times: int, tmp_path: Path
) -> None:
    scope = runpy.run_path(str(PROJECTS / project / "trainer.py"))
    _one_window_of_four(scope[name], torch.nn.Linear(4, 3).double(), times, tmp_path)


class _TakesLossKeywords(torch.nn.Linear):  # type: ignore[misc]
    def forward(self, x: Any, **loss_keywords: Any) -> Any:
        return super().forward(x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("said", "times"), [(None, 4), (False, 1)])
def test_a_loss_without_item_count_is_divided_only_where_the_trainer_is_told(
    said: bool | None, times: int, tmp_path: Path
) -> None:
    scope = runpy.run_path(str(PROJECTS / "GA201-hf_trainer_forgets_to_divide" / "trainer.py"))
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers.Trainer, "loss_is_scaled_for_ga"):
        pytest.skip("this transformers has no such attribute")

    class Told(transformers.Trainer):  # type: ignore[misc,name-defined]
        compute_loss = scope["FocalTrainer"].compute_loss
        loss_is_scaled_for_ga = said

    _one_window_of_four(Told, _TakesLossKeywords(4, 3).double(), times, tmp_path)


def _one_window_of_four(trainer_class: Any, model: Any, times: int, folder: Path) -> None:
    """One step over four micro-batches of two samples applies `times` the gradient of the eight samples' mean."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    rows = [{"x": torch.randn(4).double(), "labels": torch.tensor(k % 3)} for k in range(8)]
    start, twin = [q.detach().clone() for q in model.parameters()], copy.deepcopy(model)
    arguments = transformers.TrainingArguments(
        str(folder), per_device_train_batch_size=2, gradient_accumulation_steps=4, max_steps=1, use_cpu=True,
        report_to=[], save_strategy="no", max_grad_norm=0, remove_unused_columns=False, disable_tqdm=True,
        lr_scheduler_type="constant",
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    trainer = trainer_class(model, arguments, train_dataset=rows, optimizers=(optimizer, None))
    assert trainer.accelerator.gradient_accumulation_steps == 1
    trainer.train()
    scores, labels = twin(torch.stack([r["x"] for r in rows])), torch.stack([r["labels"] for r in rows])
    torch.nn.functional.cross_entropy(scores, labels).backward()
    for before, q, large in zip(start, model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(before - q, times * large.grad, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_lightning_divides_by_n_and_steps_after_the_epochs_last_micro_batch() -> None:
    lightning = pytest.importorskip("lightning")
    applied: list[float] = []

    class Net(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

        def training_step(self, x: Any, index: int) -> Any:
            return (self.weight * x).mean()

        def on_before_optimizer_step(self, optimizer: Any) -> None:
            applied.append(float(self.weight.grad))

    lightning.Trainer(
        max_epochs=1, accumulate_grad_batches=4, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    ).fit(Net(), torch.utils.data.DataLoader(torch.tensor([1.0, 2, 3, 4, 5, 6]), batch_size=1))  # fmt: skip
    assert applied == [(1 + 2 + 3 + 4) / 4, (5 + 6) / 4]


def test_ignite_runs_handlers_by_the_count_over_all_epochs() -> None:
    engine = pytest.importorskip("ignite.engine")
    log: list[object] = []
    trainer = engine.Engine(lambda engine, batch: log.append(engine.state.iteration))

    @trainer.on(engine.Events.EPOCH_COMPLETED)
    @trainer.on(engine.Events.ITERATION_COMPLETED(every=4))
    def update() -> None:  # one without a parameter is not given the engine
        log.append("update")

    trainer.add_event_handler(engine.Events.EPOCH_COMPLETED(every=2), lambda engine, more: log.append(more), "second")
    trainer.run(range(5), max_epochs=2)
    assert log == [1, 2, 3, 4, "update", 5, "update", 6, 7, 8, "update", 9, 10, "update", "second"]


def test_ignites_supervised_trainer_divides_by_n_and_counts_over_epochs() -> None:
    engine = pytest.importorskip("ignite.engine")
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    applied: list[float] = []
    optimizer.register_step_pre_hook(lambda *_: applied.append(float(model.weight.grad)))
    trainer = engine.create_supervised_trainer(
        model, optimizer, lambda made, _: made.mean(), gradient_accumulation_steps=4
    )
    trainer.run([(torch.tensor([[float(k)]]), torch.zeros(1, 1)) for k in range(1, 7)], max_epochs=2)
    assert applied == [(1 + 2 + 3 + 4) / 4, (5 + 6 + 1 + 2) / 4, (3 + 4 + 5 + 6) / 4]


def test_mmengines_wrapper_divides_in_update_params_and_not_in_backward() -> None:
    optim = pytest.importorskip("mmengine.optim")
    model = torch.nn.Linear(1, 1, bias=False)
    applied: list[float] = []

    def wrapped() -> Any:
        model.weight.grad = None
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        optimizer.register_step_pre_hook(lambda *_: applied.append(float(model.weight.grad)))
        return optim.OptimWrapper(optimizer, accumulative_counts=4)

    whole, parts = wrapped(), wrapped()
    for k in range(1, 6):
        whole.update_params(model(torch.tensor([[float(k)]])).mean())
    assert applied == [(1 + 2 + 3 + 4) / 4] and whole.inner_count == 5 and not whole.should_update()
    applied.clear()
    model.weight.grad = None
    for k in range(1, 5):
        assert parts.should_sync() == (k == 4)
        parts.backward(model(torch.tensor([[float(k)]])).mean())
    assert parts.should_update()
    parts.step()
    assert applied == [1 + 2 + 3 + 4]
