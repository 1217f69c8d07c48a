"""What frameworks' calls mean, where no formula shows it: boundaries, contexts, scaler objects, unknown arguments."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from paper import machine, python, run

from galint.run.calls import Calls
from galint.run.frame import RunOver
from galint.run.values import Context, Module, Seq

SETUP = """\
import torch
from torch import nn
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 4)
"""


def known(text: str, name: str = "out") -> Any:
    """A variable's value after a run of the set-up and `text`."""
    _, frame = run(SETUP + text)
    return python(frame.vars[name])


def ran(text: str) -> Calls:
    return run(SETUP + text)[0]


def shares(m: Calls) -> list[Fraction]:
    return [b.facts.terms[0].value for b in m.result.backwards]


def kinds(m: Calls) -> list[str]:
    return [e.kind for e in m.result.events if e.kind in {"backward", "step", "zero_grad", "clip", "unscale"}]


# --- DeepSpeed ---------------------------------------------------------------------------------

ENGINE = "import deepspeed\nengine, optimizer, _, _ = deepspeed.initialize(model=net, optimizer=optimizer)\n"
BOUNDARY = "engine.is_gradient_accumulation_boundary()"


def test_deepspeed_counts_a_boundary_in_steps() -> None:
    """The engine's own rule: (micro_steps + 1) % N == 0, and `step` is what advances micro_steps."""
    loop = (
        f"before, between, after = [], [], []\nfor i in range(8):\n    before.append({BOUNDARY})\n"
        f"    engine.backward(net(x).mean())\n    between.append({BOUNDARY})\n    engine.step()\n    after.append({BOUNDARY})\n"
        "out = before, between, after\n"
    )
    before, between, after = known(ENGINE + loop)
    assert before == between == [i in {3, 7} for i in range(8)]
    assert after == [i in {2, 6} for i in range(8)]


def test_deepspeed_steps_and_clears_at_its_boundary_only() -> None:
    m = ran(ENGINE + "for i in range(8):\n    engine.backward(engine(x).mean())\n    engine.step()\n")
    assert kinds(m) == (["backward"] * 4 + ["step", "zero_grad"]) * 2
    assert shares(m) == [Fraction(1, 4)] * 8


def test_deepspeed_engine_from_elsewhere_has_an_optimizer_of_its_own() -> None:
    text = (
        "import deepspeed\nclass T:\n    def fit(self, model_engine):\n        for i in range(4):\n"
        "            loss = model_engine(x)\n            model_engine.backward(loss)\n            model_engine.step()\n"
    )
    m = ran(text + "(engine, *_) = deepspeed.initialize(None, net)\nT().fit(engine)\n")
    assert kinds(m) == ["backward"] * 4 + ["step", "zero_grad"]


def test_deepspeed_engine_clears_nothing_on_request() -> None:
    m = ran(
        ENGINE
        + "for i in range(4):\n    engine.backward(engine(x).mean())\n    engine.zero_grad()\n    engine.step()\n"
    )
    assert kinds(m) == ["backward"] * 4 + ["step", "zero_grad"]
    [ledger] = [k for k in m.result.ledgers.values() if k.steps]
    assert len(ledger.steps[0].applied) == 4


def test_deepspeed_takes_its_arguments_by_name_or_place() -> None:
    made = "import deepspeed\nengine, *rest = deepspeed.initialize(args, net, optimizer)\n"
    text = "for i in range(4):\n    engine.backward(loss=engine.forward(x).mean())\n    engine.step()\noptimizer.zero_grad()\n"
    m = ran(made + text)
    assert kinds(m)[:6] == ["backward"] * 4 + ["step", "zero_grad"]
    assert shares(m) == [Fraction(1, 4)] * 4


def test_deepspeed_takes_the_loss_out_of_a_tuple() -> None:
    m = ran(
        ENGINE
        + "for i in range(1):\n    engine.backward((engine(x).mean() / 2, 'log'))\n    engine.backward(unknown)\n"
    )
    assert shares(m) == [Fraction(1, 8), Fraction(1, 4)]


# --- Fabric ------------------------------------------------------------------------------------

FABRIC = "from lightning import Fabric\nfabric = Fabric()\n"


def test_fabric_sets_up_what_it_is_given() -> None:
    _, frame = run(
        SETUP + FABRIC + "one = fabric.setup(net)\ntwo = fabric.setup(net, optimizer)\nnone = fabric.setup(*parts)\n"
    )
    assert isinstance(frame.vars["one"], Module)
    assert frame.vars["one"].wrap == "fabric"
    two = frame.vars["two"]
    assert isinstance(two, Seq) and two.kind == "tuple" and len(two.elts) == 2
    assert not isinstance(frame.vars["none"], Seq | Module)


def test_a_wrapped_module_stays_what_it_is() -> None:
    _, frame = run(
        SETUP
        + FABRIC
        + "from torch.nn.parallel import DistributedDataParallel\nout = fabric.setup(DistributedDataParallel(net))\n"
    )
    module = frame.vars["out"]
    assert isinstance(module, Module) and module.wrap == "ddp"


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        ("", "no_sync"),
        (", enabled=True", "no_sync"),
        (", False", "null"),
        (", enabled=1 > 2", "null"),
        (", enabled=flag", "no_sync"),
    ],
)
def test_fabric_holds_synchronisation_back_where_it_is_enabled(argument: str, kind: str) -> None:
    _, frame = run(SETUP + FABRIC + f"net = fabric.setup(net)\nout = fabric.no_backward_sync(net{argument})\n")
    context = frame.vars["out"]
    assert isinstance(context, Context) and context.kind == kind


def test_fabric_backward_takes_the_loss_out_of_a_dict_and_ignores_nothing() -> None:
    m = ran(
        FABRIC
        + "for i in range(1):\n    fabric.backward({'loss': net(x).mean() / 2})\n    fabric.backward(unknown)\n    fabric.backward()\n"
    )
    assert shares(m) == [Fraction(1, 2), Fraction(1)]


# --- scaler objects ----------------------------------------------------------------------------

TIMM = "from timm.utils import NativeScaler\nloss_scaler = NativeScaler()\n"


@pytest.mark.parametrize(
    ("arguments", "events"),
    [
        ("optimizer", ["backward", "step"]),
        ("optimizer, update_grad=False", ["backward"]),
        ("optimizer, need_update=False", ["backward"]),
        ("optimizer, update_grad=True", ["backward", "step"]),
        ("optimizer, clip_grad=1.0", ["backward", "clip", "step"]),
        ("optimizer, clip_grad=None", ["backward", "step"]),
        ("optimizer, max_norm=1.0, update_grad=True", ["backward", "clip", "step"]),
        ("optimizer, clip_grad=1.0, need_update=False", ["backward"]),
        ("optimizer=optimizer", ["backward", "step"]),
    ],
)
def test_a_scaler_object_does_what_its_arguments_say(arguments: str, events: list[str]) -> None:
    assert kinds(ran(TIMM + f"loss_scaler(net(x).mean(), {arguments})\n")) == events


def test_a_scaler_object_without_optimizer_means_nothing() -> None:
    assert kinds(ran(TIMM + "loss_scaler(net(x).mean())\nloss_scaler(net(x).mean(), 3)\n")) == []


def test_a_scaler_object_takes_a_loss_that_is_not_known() -> None:
    assert shares(ran(TIMM + "loss_scaler(found, optimizer)\nloss_scaler(optimizer=optimizer)\n")) == [1, 1]


def test_the_guard_of_a_scaler_object_is_gone_after_its_call() -> None:
    m = ran(
        TIMM
        + "for i in range(4):\n    loss_scaler(net(x).mean(), optimizer, update_grad=(i + 1) % 2 == 0)\noptimizer.step()\n"
    )
    steps = next(iter(m.result.ledgers.values())).steps
    assert [[g.moduli for g in s.guards] for s in steps] == [[(("2", 2),)], [(("2", 2),)], []]


# --- contexts ----------------------------------------------------------------------------------

DDP = "from contextlib import ExitStack, contextmanager, nullcontext\nfrom torch.nn.parallel import DistributedDataParallel\nmodel = DistributedDataParallel(net)\n"


def synced(text: str) -> list[bool]:
    """For each backward of a wrapped model: whether synchronisation was on at its forward."""
    m = ran(DDP + text)
    return [all(flag for _, flag in b.facts.synced) for b in m.result.backwards]


STEP = "model(x).mean().backward()\n"


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (STEP, [True]),
        (f"with model.no_sync():\n    {STEP}{STEP}", [False, True]),
        (f"with ExitStack() as stack:\n    stack.enter_context(model.no_sync())\n    {STEP}{STEP}", [False, True]),
        (
            f"with ExitStack() as stack:\n    stack.enter_context(model.no_sync())\n    stack.close()\n    {STEP}",
            [True],
        ),
        (f"stack = ExitStack()\nstack.enter_context(model.no_sync())\n{STEP}stack.close()\n{STEP}", [False, True]),
        (
            f"with ExitStack() as stack:\n    stack.enter_context(model.no_sync())\n    kept = stack.pop_all()\n{STEP}kept.close()\n{STEP}",
            [False, True],
        ),
        (f"c = model.no_sync()\nc.__enter__()\n{STEP}c.__exit__(None, None, None)\n{STEP}", [False, True]),
        (
            f"@contextmanager\ndef quiet():\n    with model.no_sync():\n        yield\nwith quiet():\n    {STEP}{STEP}",
            [False, True],
        ),
        (f"@contextmanager\ndef loud():\n    yield 1\nwith loud():\n    {STEP}", [True]),
        (f"with nullcontext():\n    {STEP}", [True]),
        (f"with ExitStack() as stack:\n    stack.enter_context(model.no_sync)\n    {STEP}{STEP}", [False, True]),
        (f"with ExitStack() as stack:\n    stack.enter_context(open('f'))\n    {STEP}", [True]),
        (f"with (model.no_sync() if True else nullcontext()):\n    {STEP}", [False]),
    ],
)
def test_synchronisation_is_off_just_where_a_context_is_open(text: str, flags: list[bool]) -> None:
    assert synced(text) == flags


def test_a_stack_gives_what_its_context_gives() -> None:
    text = (
        "from contextlib import ExitStack, contextmanager, nullcontext\n@contextmanager\ndef plus(n):\n    yield n + 1\n"
        "with ExitStack() as stack:\n    out = stack.enter_context(plus(3)), stack.enter_context(nullcontext(7))\n"
        "c = nullcontext(5)\nmine = c.__enter__()\n"
    )
    assert known(text) == (4, 7)
    assert known(text, "mine") == 5


@pytest.mark.parametrize(
    ("context", "grad"),
    [
        ("torch.no_grad()", False),
        ("torch.inference_mode()", False),
        ("torch.set_grad_enabled(False)", False),
        ("torch.set_grad_enabled(mode=False)", False),
        ("torch.set_grad_enabled(True)", True),
        ("torch.enable_grad()", True),
        ("torch.autocast('cpu')", True),
    ],
)
def test_gradients_are_made_unless_a_context_forbids_it(context: str, grad: bool) -> None:
    assert known(f"with {context}:\n    out = net(x).mean().requires_grad\n") is grad


def test_gradients_are_made_again_after_the_context() -> None:
    assert known("with torch.no_grad():\n    pass\nout = net(x).mean().requires_grad\n") is True


# --- Accelerate --------------------------------------------------------------------------------

ACCELERATE = "from accelerate import Accelerator\nfrom accelerate.utils import GradientAccumulationPlugin\n"


@pytest.mark.parametrize(
    ("made", "share"),
    [
        ("Accelerator()", 1),
        ("Accelerator(gradient_accumulation_steps=2)", Fraction(1, 2)),
        ("Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=8))", Fraction(1, 8)),
        (
            "Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(8, sync_with_dataloader=False))",
            Fraction(1, 8),
        ),
        ("Accelerator(**options)", Fraction(1, 4)),
        ("Accelerator(gradient_accumulation_steps=args.n)", Fraction(1, 4)),
    ],
)
def test_accelerate_divides_by_the_number_that_its_constructor_got(made: str, share: Fraction) -> None:
    text = f"accelerator = {made}\nnet, optimizer = accelerator.prepare(net, optimizer)\n"
    assert shares(ran(ACCELERATE + text + "accelerator.backward(net(x).mean())\n")) == [share]


def test_an_accelerator_from_elsewhere_that_accumulates_has_an_unknown_number() -> None:
    text = "def fit(accelerator):\n    with accelerator.accumulate(net):\n        accelerator.backward(net(x).mean())\nfit(accelerator)\n"
    assert shares(ran(text)) == [Fraction(1, 4)]


def test_an_accelerator_from_elsewhere_that_does_not_accumulate_divides_by_nothing() -> None:
    assert shares(ran("accelerator.backward(net(x).mean())\n")) == [1]


def test_accelerate_takes_the_loss_out_of_a_dict_or_unseen() -> None:
    text = (
        "accelerator = Accelerator()\naccelerator.backward({'loss': net(x).mean() / 2})\naccelerator.backward(found)\n"
    )
    assert shares(ran(ACCELERATE + text)) == [Fraction(1, 2), 1]


def test_accelerate_steps_and_clears_at_the_end_of_its_window_only() -> None:
    text = (
        "accelerator = Accelerator(gradient_accumulation_steps=2)\nnet, optimizer = accelerator.prepare(net, optimizer)\n"
        "synced = []\nfor i in range(4):\n    with accelerator.accumulate(net):\n        accelerator.backward(net(x).mean())\n"
        "        synced.append(bool(accelerator.sync_gradients))\n        optimizer.step()\n        optimizer.zero_grad()\n"
    )
    m = ran(ACCELERATE + text)
    assert kinds(m) == ["backward", "backward", "step", "zero_grad"] * 2
    assert known(ACCELERATE + text, "synced") == [False, True, False, True]


def test_accelerate_holds_back_unwraps_and_casts() -> None:
    text = (
        "accelerator = Accelerator()\nnet = accelerator.prepare(net)\nsame = accelerator.unwrap_model(net) is net\n"
        "with accelerator.autocast():\n    pass\nquiet = accelerator.no_sync(net)\n"
    )
    _, frame = run(SETUP + ACCELERATE + text)
    assert python(frame.vars["same"]) is True
    quiet = frame.vars["quiet"]
    assert isinstance(quiet, Context) and quiet.kind == "no_sync"


# --- mixed precision ---------------------------------------------------------------------------


def scales(text: str) -> list[tuple[str, list[bool]]]:
    """For each step: what it applies was still multiplied by the loss scale?"""
    m = ran(text)
    steps = [s for ledger in m.result.ledgers.values() for s in ledger.steps]
    return [(s.optimizer, [e.scaled for e in s.applied]) for s in steps]


@pytest.mark.parametrize(
    ("made", "scaled"),
    [
        ("torch.amp.GradScaler('cuda')", True),
        ("torch.cuda.amp.GradScaler(enabled=True)", True),
        ("torch.cuda.amp.GradScaler(enabled=False)", False),
        ("torch.amp.GradScaler('cuda', enabled=flag)", True),
    ],
)
def test_a_loss_is_scaled_unless_the_scaler_is_off(made: str, scaled: bool) -> None:
    text = f"scaler = {made}\nscaler.scale(net(x).mean()).backward()\noptimizer.step()\n"
    assert scales(text) == [("optimizer", [scaled])]
    assert known(f"scaler = {made}\nout = scaler.is_enabled()\n") is scaled


def test_a_scaler_step_unscales() -> None:
    text = "scaler = torch.amp.GradScaler('cuda')\nscaler.scale(net(x).mean()).backward()\nscaler.step(optimizer)\nscaler.update()\n"
    assert scales(text) == [("optimizer", [False])]
    step = next(iter(ran(text).result.ledgers.values())).steps[0]
    assert step.unscaled_here


def test_a_scaler_scales_each_of_several_losses_and_unseen_ones() -> None:
    text = (
        "scaler = torch.amp.GradScaler('cuda')\na, b = scaler.scale([net(x).mean(), net(x).mean() / 2])\na.backward()\nb.backward()\n"
        "scaler.scale(found).backward()\n"
    )
    m = ran(text)
    assert [(b.scaled, b.facts.terms[0].value) for b in m.result.backwards] == [
        (True, 1),
        (True, Fraction(1, 2)),
        (True, 1),
    ]


def test_unscaling_speaks_of_each_optimizer_that_is_named() -> None:
    text = (
        "scaler = torch.amp.GradScaler('cuda')\nother = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "scaler.scale(net(x).mean()).backward()\nscaler.unscale_([optimizer, other])\nscaler.unscale_(nothing)\n"
    )
    m = ran(text)
    assert kinds(m) == ["backward", "unscale", "unscale"]
    off = text.replace("GradScaler('cuda')", "GradScaler('cuda', enabled=False)")
    assert kinds(ran(off)) == ["backward"]


def test_apex_scales_inside_its_context_and_unscales_when_it_is_left() -> None:
    text = (
        "from apex import amp\nnet, optimizer = amp.initialize(net, optimizer, opt_level='O1')\n"
        "with amp.scale_loss(net(x).mean() / 4, optimizer) as scaled_loss:\n    scaled_loss.backward()\n"
        "with amp.scale_loss(found, optimizer) as scaled_loss:\n    scaled_loss.backward()\noptimizer.step()\nonly = amp.initialize(net)\n"
    )
    assert shares(ran(text)) == [Fraction(1, 4), 1]
    assert scales(text) == [("optimizer", [False, False])]
    _, frame = run(SETUP + text)
    assert isinstance(frame.vars["only"], Module)


# --- clipping, wrappers, optimizers ------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
        "torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)",
        "net.clip_grad_norm_(1.0)",
        "optimizer.clip_grad_norm(1.0)",
        "fabric.clip_gradients(net, optimizer, max_norm=1.0)",
        "accelerator.clip_grad_norm_(net.parameters(), 1.0)",
    ],
)
def test_a_clip_sees_what_is_held(call: str) -> None:
    m = ran(f"optimizer.zero_grad()\nnet(x).mean().backward()\n{call}\noptimizer.step()\n")
    [step] = [s for ledger in m.result.ledgers.values() for s in ledger.steps]
    assert [(k.kind, k.pending) for k in step.marks] == [("clear", 0), ("clip", 1)]


def test_accelerate_and_fabric_unscale_before_they_clip() -> None:
    text = (
        "from lightning import Fabric\nfabric = Fabric()\nscaler = torch.amp.GradScaler('cuda')\noptimizer.zero_grad()\n"
        "scaler.scale(net(x).mean()).backward()\nfabric.clip_gradients(net, optimizer, max_norm=1.0)\noptimizer.step()\n"
    )
    assert scales(text) == [("optimizer", [False])]


def test_fsdp2_reads_a_flag_of_the_module() -> None:
    text = (
        "from torch.distributed.fsdp import fully_shard\nmodel = fully_shard(net)\nmodel.set_requires_gradient_sync(False)\n"
        "model(x).mean().backward()\nmodel.set_requires_gradient_sync(True)\nmodel(x).mean().backward()\n"
    )
    m = ran(text)
    assert [[flag for _, flag in b.facts.synced] for b in m.result.backwards] == [[False], [True]]
    assert [e.text for e in m.result.events if e.kind == "wrap"] == ["fsdp2"]


def test_a_wrapper_inside_a_model_synchronises_with_it() -> None:
    text = (
        "class Whole(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n        self.inner = inner\n"
        "    def forward(self, x):\n        return self.inner(x)\n"
        "whole = Whole(DistributedDataParallel(net))\nwith model.join():\n    whole(x).mean().backward()\n"
    )
    m = ran(DDP + text)
    assert len(m.result.backwards[0].facts.synced) >= 1


def test_an_optimizer_in_an_optimizer_is_the_same_one() -> None:
    text = "from lookahead import Lookahead\nouter = Lookahead(optimizer, k=5)\nouter.zero_grad()\nnet(x).mean().backward()\nouter.step()\n"
    m = ran(text)
    assert [len(k.steps) for k in m.result.ledgers.values()] == [1]


def test_a_group_added_later_is_the_optimizers_too() -> None:
    text = (
        "head = nn.Linear(1, 1)\noptimizer.zero_grad()\nhead(x).mean().backward()\noptimizer.add_param_group({'params': head.parameters()})\n"
        "head(x).mean().backward()\noptimizer.step()\n"
    )
    [step] = [s for ledger in ran(text).result.ledgers.values() for s in ledger.steps]
    assert len(step.applied) == 1


def test_a_clearing_function_of_another_file_clears() -> None:
    m = ran(
        "import tools\nnet(x).mean().backward()\ntools.zero_grads(net)\nnet(x).mean().backward()\ntools.clear_grads(optimizer)\n"
    )
    assert kinds(m) == ["backward", "zero_grad", "backward", "zero_grad"]


def test_a_closure_runs_before_its_step() -> None:
    text = "def closure():\n    optimizer.zero_grad()\n    loss = net(x).mean() / 2\n    loss.backward()\n    return loss\noptimizer.step(closure)\n"
    assert kinds(ran(text)) == ["zero_grad", "backward", "step"]


@pytest.mark.parametrize(
    ("made", "horizon"),
    [
        ("torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)", {"total"}),
        ("torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=total)", {"total"}),
        ("transformers.get_linear_schedule_with_warmup(optimizer, 10, total)", {"total"}),
        ("transformers.get_scheduler('linear', optimizer, 10, total)", {"total"}),
        ("transformers.get_constant_schedule_with_warmup(optimizer, 10)", None),
        ("torch.optim.lr_scheduler.StepLR(optimizer, 10)", None),
    ],
)
def test_a_scheduler_knows_how_many_updates_it_was_made_for(made: str, horizon: set[str] | None) -> None:
    _, frame = run(SETUP + f"import transformers\nout = {made}\n")
    held = frame.vars["out"].items.get("__horizon__")  # type: ignore[attr-defined]
    assert (set(held.keys) if held is not None else None) == horizon


# --- tensors and models ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("loss = found / 4\nloss.backward()", [Fraction(1, 4)]),
        ("loss = 2 * found / 4\nloss.backward()", [Fraction(1, 2)]),
        ("(found / 4).backward(gradient=torch.tensor(0.5))", [Fraction(1, 8)]),
        ("torch.autograd.backward(found)", [Fraction(1)]),
        ("net.backward(net(x).mean() / 2)", [Fraction(1, 2)]),
        ("net.backward(loss=net(x).mean() / 2)", [Fraction(1, 2)]),
        ("net.backward(found)", [Fraction(1)]),
        ("helper.backward(net(x).mean() / 2)", [Fraction(1, 2)]),
        ("[net(x).mean()].backward()", []),
        ("torch.autograd.backward()", []),
    ],
)
def test_a_backward_starts_from_the_loss_that_it_is_given(text: str, found: list[Fraction]) -> None:
    assert shares(ran(text + "\n")) == found


def test_an_unknown_weight_is_a_symbol() -> None:
    m = ran("loss = net(x).mean()\nloss.backward(gradient=weight)\n(loss * w / 2).backward()\n")
    assert [str(b.facts.terms[0]) for b in m.result.backwards] == ["1·weight", "1/2·w"]


def test_a_tensor_without_ancestry_reaches_no_module() -> None:
    text = "loss = net(x).mean()\nkept = loss.detach()\nloss.detach_()\nout = kept.requires_grad, loss.requires_grad\n"
    assert known(text) == (False, False)


def test_numbers_of_the_data_are_data() -> None:
    m, frame = run(
        SETUP + "y = net(x)\nout = [y.size(0), y.numel(), y.item(), y.tolist(), batch.size(0), batch.item()]\n"
    )
    values = frame.vars["out"]
    assert isinstance(values, Seq) and all(m.is_data(v) for v in values.elts)


@pytest.mark.parametrize(
    ("text", "summed"),
    [
        ("nn.functional.mse_loss(net(x), x)", False),
        ("nn.functional.mse_loss(net(x), x, reduction='sum')", True),
        ("nn.functional.mse_loss(net(x), x, size_average=False)", True),
        ("nn.functional.mse_loss(net(x), x, reduction='none').sum()", True),
        ("nn.functional.mse_loss(net(x), x, reduction='none').mean()", False),
        ("nn.MSELoss(reduction='sum')(net(x), x)", True),
        ("nn.MSELoss()(net(x), x)", False),
        ("torch.sum(nn.functional.mse_loss(net(x), x))", False),
        ("(net(x) - x).sum()", True),
        ("torch.mean(net(x))", False),
    ],
)
def test_a_loss_is_a_sum_where_the_code_shows_it(text: str, summed: bool) -> None:
    m = ran(f"loss = {text}\nloss.backward()\n")
    assert [b.facts.summed for b in m.result.backwards] == [summed]


# --- who is reached, and when a run ends -------------------------------------------------------------


def test_no_sync_of_one_wrapper_leaves_another_synchronised() -> None:
    text = (
        DDP + "other = DistributedDataParallel(nn.Linear(4, 1))\nwith model.no_sync():\n"
        "    (model(x).mean() + other(x).mean()).backward()\nwith other.no_sync():\n    (model(x).mean() + other(x).mean()).backward()\n"
    )
    m = ran(text)
    path = {ident: getattr(module, "path", "") for ident, module in m.result.modules.items()}
    flags = [{path[int(ident)]: flag for ident, flag in b.facts.synced} for b in m.result.backwards]
    assert [list(found.values()) for found in flags] == [[False, True], [True, False]]


SECOND = "second = torch.optim.SGD(net.parameters(), lr=0.1)\n"
ONCE = "net(x).mean().backward()\n"


@pytest.mark.parametrize(
    ("text", "applied"),
    [
        (SECOND + ONCE + "optimizer.zero_grad()\n" + ONCE, 1),  # the same parameters, cleared by the other one
        (SECOND + ONCE + ONCE, 2),
        (ONCE + SECOND + ONCE, 1),  # what was there before it was made may have gone with its parameters
    ],
)
def test_an_optimizer_that_comes_into_play_late(text: str, applied: int) -> None:
    m = ran(text + "second.step()\n")
    (ledger,) = [k for k in m.result.ledgers.values() if k.steps]
    assert [len(step.applied) for step in ledger.steps] == [applied]


def test_a_toggled_optimizer_alone_gets_the_gradients() -> None:
    """Lightning's `toggle_optimizer` switches the gradients of all other parameters off."""
    text = (
        "import lightning as L\nclass Gan(L.LightningModule):\n    def __init__(self):\n        super().__init__()\n"
        "        self.automatic_optimization = False\n        self.gen, self.disc = nn.Linear(4, 4), nn.Linear(4, 1)\n"
        "    def configure_optimizers(self):\n        return torch.optim.SGD(self.gen.parameters()), torch.optim.SGD(self.disc.parameters())\n"
        "    def training_step(self, batch, index):\n        first, second = self.optimizers()\n        first.zero_grad()\n        second.zero_grad()\n"
        "        self.toggle_optimizer(first)\n        self.manual_backward(self.disc(self.gen(batch)).mean())\n"
        "        self.untoggle_optimizer(first)\n        self.manual_backward(self.disc(self.gen(batch)).mean())\n"
        "module = Gan()\nmodule.training_step(x, 0)\n"
    )
    m = ran(text)
    alone, both = [b.optimizers for b in m.result.backwards]
    assert len(both) == 2 and alone == both[:1]


def test_a_run_ends_with_the_last_backward_that_it_may_see() -> None:
    m, frame, program = machine(SETUP + "while True:\n    net(x).mean().backward()\n")
    m.max_backwards = 3
    with pytest.raises(RunOver):
        m.run_body(program.body, frame)
    assert len(m.result.backwards) == 3 and m.result.truncated
