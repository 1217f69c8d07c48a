"""What frameworks' calls mean, where no formula shows it: boundaries, contexts, scaler objects, unknown arguments."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from paper import python, run

from galint.run.calls import Calls
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
