"""Loops of many kinds, each really run: what correct ones weigh, and what is told of those that cannot be weighed."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional
nn = torch.nn

from galint.trace import NotTheLargeBatch, Status, Watch, sampling, watch  # noqa: E402
from galint.trace.pytest_plugin import galint_watch  # noqa: E402, F401  (the entry point gives it to other projects)

N = 4


def net(wide: int = 32) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, wide), nn.Tanh(), nn.Linear(wide, 5))


def batches(count: int = 12, size: int = 8) -> list[tuple[Any, Any]]:
    torch.manual_seed(1)
    return [(torch.randn(size, 20), torch.randint(0, 5, (size,))) for _ in range(count)]


def loader(count: int, size: int = 8) -> Any:
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(count * size, 20), torch.randint(0, 5, (count * size,)))
    return torch.utils.data.DataLoader(data, batch_size=size)


def confirmed(t: Watch) -> set[str]:
    assert t.recorder.internal is None
    return {v.rule for v in t.verdicts if v.status is Status.CONFIRMED}


def statuses(t: Watch) -> dict[str, Status]:
    assert t.recorder.internal is None
    return {v.rule: v.status for v in t.verdicts}


@pytest.mark.parametrize("make", ["SGD", "AdamW", "RMSprop", "Adagrad", "NAdam"])
def test_the_update_rule_does_not_matter(make: str) -> None:
    model = net()
    optimizer = getattr(torch.optim, make)(model.parameters(), lr=1e-3)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            F.cross_entropy(model(x), y).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert confirmed(t) == {"GA201"}


def test_gradients_divided_by_hand_after_accumulation() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            F.cross_entropy(model(x), y).backward()
            if (i + 1) % N == 0:
                for p in model.parameters():
                    p.grad /= N
                optimizer.step()
                model.zero_grad()
    t.assert_large_batch(windows=3)


@pytest.mark.parametrize("spelling", ["method", "function", "times", "mean_stack", "gradient"])
def test_each_spelling_of_the_scaling_is_read(spelling: str) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            loss = criterion(model(x), y)
            if spelling == "method":
                loss.div(N).backward()
            elif spelling == "function":
                torch.autograd.backward([torch.div(loss, N)])
            elif spelling == "times":
                (0.25 * loss.float().squeeze()).backward()
            elif spelling == "mean_stack":
                (sum([loss]) / N).backward()
            else:
                loss.backward(gradient=torch.tensor(1 / N))
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    t.assert_large_batch(windows=3)
    assert t.windows[0].micros[0].factor == pytest.approx(1 / N)
    assert statuses(t)["GA201"] is Status.REFUTED


def test_a_constant_weight_of_the_loss_is_not_scaling() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            (0.5 * F.cross_entropy(model(x), y) / N).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    t.assert_large_batch(windows=3)


def test_a_sum_loss_needs_no_division() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            F.cross_entropy(model(x), y, reduction="sum").backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert confirmed(t) == set()
    t.assert_large_batch()


def test_a_custom_autograd_loss_is_inconclusive_about_scaling() -> None:
    class Strange(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.square().mean()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, _) in enumerate(batches()):
            Strange.apply(model(x)).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert statuses(t)["GA201"] is Status.INCONCLUSIVE
    assert statuses(t)["GA101"] is Status.REFUTED


def test_a_mean_of_token_means_and_a_token_mean_are_told_apart() -> None:
    def run(by_tokens: bool) -> Watch:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(2)
        data = [(torch.randn(8, 20), torch.randint(0, 5, (8,))) for _ in range(12)]
        for k, (_, y) in enumerate(data):
            y[: k % 4 + 1] = -100
        with watch(model, optimizer) as t:
            for start in range(0, 12, N):
                window = data[start : start + N]
                count = sum(int((y != -100).sum()) for _, y in window)
                for x, y in window:
                    if by_tokens:
                        (F.cross_entropy(model(x), y, reduction="sum") / count).backward()
                    else:
                        (F.cross_entropy(model(x), y) / N).backward()
                optimizer.step()
                optimizer.zero_grad()
        return t

    ragged, exact = run(False), run(True)
    assert confirmed(ragged) == {"GA206"}
    assert ragged.windows[0].relative_error is not None and ragged.windows[0].relative_error < 1e-6
    assert ragged.windows[0].items_error is not None and ragged.windows[0].items_error > 0.02
    assert statuses(exact)["GA206"] is Status.REFUTED
    assert exact.windows[0].items_error is not None and exact.windows[0].items_error < 1e-6
    assert exact.windows[0].relative_error is not None and exact.windows[0].relative_error > 0.02
    exact.assert_large_batch()


def test_a_gan_has_a_ledger_for_each_optimizer() -> None:
    torch.manual_seed(0)
    generator, critic = nn.Linear(6, 20), nn.Sequential(nn.Linear(20, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    g_step, d_step = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    criterion = nn.BCEWithLogitsLoss()
    real, fake = torch.ones(8, 1), torch.zeros(8, 1)
    with watch(optimizer=[g_step, d_step]) as t:
        for x, _ in batches(6):
            critic.zero_grad()
            criterion(critic(x), real).backward()
            made = generator(torch.randn(8, 6))
            criterion(critic(made.detach()), fake).backward()
            d_step.step()
            generator.zero_grad()
            criterion(critic(made), real).backward()
            g_step.step()
    assert confirmed(t) == set()
    t.assert_large_batch(windows=12)
    assert {w.n for w in t.windows} == {1}


def test_two_losses_of_one_batch_are_one_micro_batch() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(loader(12)):
            (F.cross_entropy(model(x), y) / N).backward()
            (0.1 * model(x).square().mean() / N).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert [w.n for w in t.windows] == [4, 4, 4]
    t.assert_large_batch(windows=3)


def test_a_closure_is_measured_after_it_ran() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = batches()
    with watch(model, optimizer) as t:
        for start in range(0, 12, N):

            def closure(start: int = start) -> Any:
                optimizer.zero_grad()
                for x, y in data[start : start + N]:
                    loss = F.cross_entropy(model(x), y) / N
                    loss.backward()
                return loss

            optimizer.step(closure)
    t.assert_large_batch(windows=3)


def test_lbfgs_is_reported_as_unsupported() -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x, y = batches(1)[0]
    with watch(model, optimizer) as t:

        def closure() -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
    assert any("LBFGS" in v.reason and v.status is Status.INCONCLUSIVE for v in t.verdicts)
    with pytest.raises(NotTheLargeBatch, match="LBFGS"):
        t.assert_large_batch()


def test_an_optimizer_inside_backward_is_reported_as_unsupported() -> None:
    model = net()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def apply(p: Any) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    handles = [p.register_post_accumulate_grad_hook(apply) for p in model.parameters()]
    with watch(model) as t:
        for x, y in batches(2):
            F.cross_entropy(model(x), y).backward()
    for handle in handles:
        handle.remove()
    assert t.windows and not any(w.measured for w in t.windows)
    assert all(v.status is Status.INCONCLUSIVE for v in t.verdicts if v.rule == "GA105")
    assert any("inside backward" in v.reason for v in t.verdicts)


def test_a_skipped_step_closes_its_window_without_a_verdict() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, backoff_factor=0.5)
    data = batches(8)
    data[1][0][0, 0] = float("inf")
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(data):
            scaler.scale(F.cross_entropy(model(x), y) / N).backward()
            if (i + 1) % N == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    assert [w.skipped for w in t.windows] == [True, False]
    assert t.windows[1].micros[0].scale == 512
    assert confirmed(t) == set()


def test_a_scaler_used_rightly_weighs_one() -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            scaler.scale(F.cross_entropy(model(x), y) / N).backward()
            if (i + 1) % N == 0:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    t.assert_large_batch(windows=3)
    found = statuses(t)
    assert all(found[rule] is Status.REFUTED for rule in ("GA301", "GA302", "GA303", "GA304"))
    assert t.windows[0].micros[0].scale == 65536


def test_a_disabled_scaler_changes_nothing() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            scaler.scale(F.cross_entropy(model(x), y) / N).backward()
            if (i + 1) % N == 0:
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    t.assert_large_batch(windows=3)
    assert not any(w.skipped for w in t.windows)


def test_clipping_scaled_gradients_is_told_with_the_scale() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            scaler.scale(F.cross_entropy(model(x), y) / N).backward()
            if (i + 1) % N == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    assert confirmed(t) == {"GA302"}
    assert "65536 times" in next(v.measured for v in t.verdicts if v.rule == "GA302")


def test_clipping_every_micro_batch_is_measured() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            (F.cross_entropy(model(x), y) / N).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.02)
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert "GA303" in confirmed(t)


def test_clips_between_micro_batches_leave_a_missing_division_in_sight() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            F.cross_entropy(model(x), y).backward()
            norm = float(nn.utils.clip_grad_norm_(model.parameters(), 1e9))
            nn.utils.clip_grad_norm_(model.parameters(), 0.9 * norm)
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    # Each clip takes a tenth of what has been summed; the last, before the step, is seen apart.
    assert t.windows[0].nw == pytest.approx([4 * 0.9**k for k in (3, 2, 1, 0)], rel=1e-2)
    assert {"GA201", "GA303"} <= confirmed(t)


def test_clipping_by_value_is_seen_before_it_happens() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            (F.cross_entropy(model(x), y) / N).backward()
            if (i + 1) % N == 0:
                nn.utils.clip_grad_value_(model.parameters(), 1e-4)
                optimizer.step()
                optimizer.zero_grad()
    t.assert_large_batch(windows=3)


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_a_scheduler_on_micro_batches_is_counted() -> None:
    def run(inside: bool) -> Watch:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
        with watch(model, optimizer) as t:
            for i, (x, y) in enumerate(batches()):
                (F.cross_entropy(model(x), y) / N).backward()
                if (i + 1) % N == 0:
                    optimizer.step()
                    optimizer.zero_grad()
                if inside or (i + 1) % N == 0:
                    scheduler.step()
        return t

    assert statuses(run(True))["GA404"] is Status.CONSISTENT  # its horizon may be counted in micro-batches
    good = run(False)
    assert statuses(good)["GA404"] is Status.REFUTED


def test_a_moving_average_on_micro_batches_is_counted() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = torch.optim.swa_utils.AveragedModel(model)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            (F.cross_entropy(model(x), y) / N).backward()
            average.update_parameters(model)
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert confirmed(t) == {"GA405"}


def test_a_dropped_tail_informs() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for _ in range(2):
            optimizer.zero_grad()
            for i, (x, y) in enumerate(loader(10)):
                (F.cross_entropy(model(x), y) / N).backward()
                if (i + 1) % N == 0:
                    optimizer.step()
                    optimizer.zero_grad()
    assert [w.n for w in t.windows if w.n] == [4, 4, 4, 4]
    assert confirmed(t) == {"GA403"}
    t.assert_large_batch(windows=4)


def test_a_tail_window_weighted_by_its_length_is_refuted() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = loader(10)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(data):
            length = 2 if i >= 8 else N
            (F.cross_entropy(model(x), y) / length).backward()
            if (i + 1) % N == 0 or i + 1 == len(data):
                optimizer.step()
                optimizer.zero_grad()
    assert [w.tail for w in t.windows] == [False, False, True]
    assert statuses(t)["GA205"] is Status.REFUTED


def test_windows_of_the_wrong_length_are_told_against_the_division() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches(15)):
            (F.cross_entropy(model(x), y) / N).backward()
            if i % (N + 1) == N:
                optimizer.step()
                optimizer.zero_grad()
    assert [w.n for w in t.windows] == [5, 5, 5]
    assert confirmed(t) == {"GA401"}


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_weighs_one(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            out = checkpoint(model, x.requires_grad_(), use_reentrant=reentrant)
            (F.cross_entropy(out, y) / N).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert [w.n for w in t.windows] == [4, 4, 4]
    t.assert_large_batch(windows=3)


@pytest.mark.filterwarnings("ignore")
def test_torch_compile_weighs_one() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="aot_eager")
    criterion = torch.compile(nn.CrossEntropyLoss(), backend="aot_eager")
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            (criterion(compiled(x), y) / N).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert confirmed(t) == set()
    t.assert_large_batch(windows=3)


@pytest.mark.parametrize("how", ["autocast", "parameters"])
def test_bfloat16_weighs_one_within_its_precision(how: str) -> None:
    model = net()
    if how == "parameters":
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    context: Any = torch.autocast("cpu", torch.bfloat16) if how == "autocast" else nullcontext()
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches()):
            with context:
                loss = F.cross_entropy(model(x.to(next(model.parameters()).dtype)), y) / N
            loss.backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert confirmed(t) == set()
    t.assert_large_batch(windows=3)


def test_everything_is_put_back() -> None:
    before = (torch.autograd.backward, nn.Module.zero_grad, F.cross_entropy, torch.optim.Optimizer.zero_grad)
    steps = torch.optim.lr_scheduler.LRScheduler.step
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer):
        assert torch.autograd.backward is not before[0]
    assert (torch.autograd.backward, nn.Module.zero_grad, F.cross_entropy, torch.optim.Optimizer.zero_grad) == before
    assert torch.optim.lr_scheduler.LRScheduler.step is steps
    assert all(not p._backward_hooks for p in model.parameters())


def test_watching_changes_no_bit_of_the_training() -> None:
    def train(watched: bool) -> list[Any]:
        model = net()
        optimizer = torch.optim.AdamW(model.parameters())
        with watch(model, optimizer) if watched else nullcontext():
            for i, (x, y) in enumerate(batches()):
                (F.cross_entropy(model(x), y) / N).backward()
                if (i + 1) % N == 0:
                    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                    optimizer.step()
                    optimizer.zero_grad()
        return [copy.deepcopy(p.data) for p in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(train(True), train(False), strict=True))


def test_only_one_watch_is_active() -> None:
    with watch(net()), pytest.raises(RuntimeError, match="another"), watch(net()):
        pass


def test_the_fixture_watches_until_the_test_ends(galint_watch: Any) -> None:  # noqa: F811
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    t = galint_watch(model, optimizer)
    for i, (x, y) in enumerate(batches()):
        (F.cross_entropy(model(x), y) / N).backward()
        if (i + 1) % N == 0:
            optimizer.step()
            optimizer.zero_grad()
    t.assert_large_batch(windows=3)


def test_the_fixture_may_be_left_before_the_test_ends(galint_watch: Any) -> None:  # noqa: F811
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    backward = torch.autograd.backward
    with galint_watch(model, optimizer) as t:
        assert torch.autograd.backward is not backward
        for x, y in batches()[:N]:
            (F.cross_entropy(model(x), y) / N).backward()
        optimizer.step()
    assert torch.autograd.backward is backward
    optimizer.step()  # unseen
    assert len(t.windows) == 1
    t.assert_large_batch()


def test_a_gradient_that_cannot_be_read_is_no_verdict_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> torch.Tensor:
        raise NotImplementedError("no such layout")

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        monkeypatch.setattr(sampling, "_view", fail)
        for x, y in batches()[:N]:
            (F.cross_entropy(model(x), y) / N).backward()
        assert all(p.grad is not None for p in model.parameters())
        monkeypatch.undo()
        optimizer.step()
    (window,) = t.windows
    assert window.unsupported == "a gradient cannot be sampled: NotImplementedError: no such layout"
    assert not t.confirmed


@pytest.mark.parametrize("width", [512, 8])
def test_small_parameters_are_left_out_only_beside_large_ones(width: int) -> None:
    model = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, 4))
    sampler = sampling.Sampler(torch.optim.SGD(model.parameters(), lr=0.1))
    sampled = {id(p) for p, *_ in sampler.slots}
    everything = list(model.parameters())
    # 512: one element in 65 is read, so that a bias of 512 would give half a block. 8: all are read.
    kept = [p for p in everything if p.dim() == 2] if width == 512 else everything
    assert sampled == {id(p) for p in kept}
    assert sampler.size == sum(sampler.counts)
    sampler.remove()


@pytest.fixture
def process_group() -> Iterator[None]:
    dist = torch.distributed
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("needs gloo")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def ddp_run(how: str) -> Watch:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 600), nn.Tanh(), nn.Linear(600, 600), nn.Tanh(), nn.Linear(600, 5))
    wrapped = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    with watch(wrapped, optimizer) as t:
        for i, (x, y) in enumerate(batches(16)):
            last = (i + 1) % N == 0
            quiet = wrapped.no_sync() if how != "plain" and not last else nullcontext()
            if how == "backward only":
                loss = F.cross_entropy(wrapped(x), y) / N
                with quiet:
                    loss.backward()
            elif how == "never":
                with wrapped.no_sync():
                    (F.cross_entropy(wrapped(x), y) / N).backward()
            else:
                with quiet:
                    (F.cross_entropy(wrapped(x), y) / N).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return t


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize(
    ("how", "rules"),
    [("plain", {"GA601"}), ("right", set()), ("backward only", {"GA601", "GA602"}), ("never", set())],
)
def test_all_reduces_are_counted_without_the_comm_hook(how: str, rules: set[str]) -> None:
    t = ddp_run(how)
    assert confirmed(t) == rules
    final = t.windows[-1]
    buckets = max((m.allreduces for m in final.micros), default=0)
    if how == "never":
        assert final.allreduces == 0
        assert statuses(t)["GA603"] is Status.CONSISTENT
        return
    assert buckets >= 2
    assert final.allreduces == buckets * (1 if how == "right" else N)
    parameters = sum(
        p.numel() * 4 for p in nn.Sequential(nn.Linear(20, 600), nn.Linear(600, 600), nn.Linear(600, 5)).parameters()
    )
    assert final.bytes == parameters * (1 if how == "right" else N)
    t.assert_large_batch(allow=rules)
    assert os.environ.get("RANK") is None


def test_a_trace_of_events_alone_puts_no_hook_on_the_parameters() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for sampling_too in (True, False):
        with watch(model, optimizer, sampling=sampling_too):
            model(torch.randn(3, 4)).mean().backward()
            assert all(bool(p._backward_hooks) is sampling_too for p in model.parameters())
            optimizer.step()
        assert not any(p._backward_hooks for p in model.parameters())


def test_steps_without_any_backward_apply_nothing() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for _ in range(2):
            optimizer.step()
    assert [(v.rule, v.status) for v in t.verdicts] == [("GA103", Status.CONFIRMED)]
    with pytest.raises(AssertionError, match="0 windows were measured"):
        t.assert_large_batch()


def test_gradients_written_by_hand_are_no_idle_steps() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer) as t:
        for _ in range(2):
            for parameter in model.parameters():
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
    assert not any(v.status is Status.CONFIRMED for v in t.verdicts)


def test_an_optimizer_whose_turn_has_not_come_is_not_accused() -> None:
    model, other = nn.Linear(4, 2), nn.Linear(4, 2)
    first, second = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other))
    with watch(model, first) as t:
        for _ in range(2):
            model(torch.randn(3, 4)).mean().backward()
            first.step()
            second.step()
            first.zero_grad()
    assert not any(v.rule == "GA103" for v in t.verdicts)
