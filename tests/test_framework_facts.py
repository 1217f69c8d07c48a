"""What galint says of Lightning and Ignite, held against the real packages."""

from __future__ import annotations

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
