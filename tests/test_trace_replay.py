"""Large-batch replay: what couples samples is found and named, what does not stays below the tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F, nn = torch.nn.functional, torch.nn

from galint.trace import Status, Verdict, watch  # noqa: E402
from galint.trace.batching import NotReplayable, joined  # noqa: E402
from galint.trace.patching import Patches  # noqa: E402
from galint.trace.replay import Replayer  # noqa: E402

Loss = Callable[[Any, Any], Any]


def replayed(model: Any, data: list[Any], loss: Loss, n: int) -> tuple[dict[str, Verdict], Replayer]:
    """One window of the loop, replayed."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    replayer, patches = Replayer(), Patches()
    with watch(model, optimizer) as t:
        t.recorder.before_step = replayer.before_step
        replayer.install(patches, t.recorder)
        try:
            for x, y in data[:n]:
                (loss(model(**x) if isinstance(x, dict) else model(x), y) / n).backward()
            optimizer.step()
        finally:
            patches.undo()
    assert t.recorder.internal is None
    return {v.rule: v for v in replayer.verdicts}, replayer


def images(n: int, size: int) -> list[Any]:
    torch.manual_seed(1)
    return [(torch.randn(size, 3, 8, 8), torch.randint(0, 5, (size,))) for _ in range(n)]


def convolution(norm: Any) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), norm, nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(512, 5)
    )


def test_batchnorm_is_confirmed_and_named() -> None:
    found, _ = replayed(convolution(nn.BatchNorm2d(8)), images(4, 4), F.cross_entropy, 4)
    assert found["GA501"].status is Status.CONFIRMED
    assert "`1 (BatchNorm2d)`" in found["GA501"].reason
    assert found["GA502"].status is Status.REFUTED


def test_smaller_micro_batches_are_further_away() -> None:
    errors = []
    for size in (2, 4, 8, 16):
        _, replayer = replayed(convolution(nn.BatchNorm2d(8)), images(32 // size, size), F.cross_entropy, 32 // size)
        errors.append(replayer.outcome["relative_error"])
    assert errors == sorted(errors, reverse=True) and errors[-1] > 0.01


@pytest.mark.parametrize("norm", ["group", "instance", "frozen", "none"])
def test_what_does_not_look_across_samples_is_refuted(norm: str) -> None:
    layer: Any = {
        "group": nn.GroupNorm(2, 8),
        "instance": nn.InstanceNorm2d(8, affine=True),
        "frozen": nn.BatchNorm2d(8).eval(),
        "none": nn.Identity(),
    }[norm]
    found, replayer = replayed(convolution(layer), images(4, 4), F.cross_entropy, 4)
    assert found["GA501"].status is Status.REFUTED
    assert replayer.outcome["relative_error"] < 1e-6


def test_a_contrastive_loss_is_confirmed_and_a_mean_is_not() -> None:
    def contrastive(z: Any, _: Any) -> Any:
        z = F.normalize(z, dim=1)
        return F.cross_entropy(z @ z.T / 0.1, torch.arange(len(z)))

    found, _ = replayed(convolution(nn.Identity()), images(4, 4), contrastive, 4)
    assert found["GA502"].status is Status.CONFIRMED
    for mean in (F.cross_entropy, lambda z, y: F.mse_loss(z, F.one_hot(y, 5).float()), lambda z, y: z.exp().mean()):
        found, _ = replayed(convolution(nn.Identity()), images(4, 4), mean, 4)
        assert found["GA502"].status is Status.REFUTED


def test_a_replay_leaves_no_trace_in_the_training() -> None:
    def train(with_replay: bool) -> list[Any]:
        model = convolution(nn.BatchNorm2d(8))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        replayer, patches = Replayer(), Patches()
        torch.manual_seed(5)
        with watch(model, optimizer) as t:
            if with_replay:
                t.recorder.before_step = replayer.before_step
                replayer.install(patches, t.recorder)
            for i, (x, y) in enumerate(images(8, 4)):
                (F.cross_entropy(model(x), y) / 4).backward()
                if i % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()
            patches.undo()
        assert not with_replay or replayer.outcome["status"] == "replayed"
        return [*model.parameters(), *model.buffers()]

    assert all(torch.equal(a, b) for a, b in zip(train(True), train(False), strict=True))


class Tokens(nn.Module):
    """Takes keyword arguments and returns its own loss, as Hugging Face's models do."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 16), nn.Linear(16, 20)

    def forward(self, ids: Any, labels: Any, flag: bool = True) -> dict[str, Any]:
        logits = self.head(self.embedding(ids))
        return {"loss": F.cross_entropy(logits.flatten(0, 1), labels.flatten()), "logits": logits}


def token_batches(lengths: list[int]) -> list[Any]:
    torch.manual_seed(0)
    shapes = [(3, n) for n in lengths]
    return [({"ids": torch.randint(0, 20, s), "labels": torch.randint(0, 20, s)}, None) for s in shapes]


def test_a_model_that_returns_its_loss_is_replayed() -> None:
    found, replayer = replayed(Tokens(), token_batches([6, 6, 6, 6]), lambda out, _: out["loss"], 4)
    assert replayer.outcome["status"] == "replayed"
    assert found["GA501"].status is Status.REFUTED


def test_inputs_padded_one_by_one_are_not_replayable_and_never_padded() -> None:
    found, replayer = replayed(Tokens(), token_batches([6, 7, 6, 6]), lambda out, _: out["loss"], 4)
    assert replayer.outcome["status"] == "not replayable"
    assert found["GA501"].status is Status.INCONCLUSIVE
    assert "different shapes" in found["GA501"].reason


def test_joining_refuses_what_it_cannot_join() -> None:
    sizes = [2, 3]
    assert joined([torch.zeros(2, 4), torch.zeros(3, 4)], sizes).shape == (5, 4)
    same = torch.ones(7)
    assert joined([same, same], sizes) is same
    assert joined([{"a": 1, "b": [None]}, {"a": 1, "b": [None]}], sizes) == {"a": 1, "b": [None]}
    for values in (
        [torch.zeros(2, 4), torch.zeros(3, 5)],
        [1, 2],
        [torch.zeros(2), None],
        [[1], [1, 2]],
        [{"a": 1}, {"b": 1}],
        [torch.zeros(7), torch.ones(7)],
    ):
        with pytest.raises(NotReplayable):
            joined(values, sizes)


def test_a_window_of_one_has_nothing_to_replay() -> None:
    found, _ = replayed(convolution(nn.Identity()), images(1, 4), F.cross_entropy, 1)
    assert found["GA501"].status is Status.INCONCLUSIVE
