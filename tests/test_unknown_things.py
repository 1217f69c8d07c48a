"""What a run on paper makes of things it cannot know: settings by their role, loops over them, objects of other files."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from paper import UNKNOWN, python, run, variables

from galint.run.calls import Calls
from galint.run.names import RANKS
from galint.run.scenario import Scenario
from galint.run.values import Module, Opaque, Seq, Tensor, Value

SETUP = """\
import torch
from torch import nn
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 4)
"""
ODD = Scenario(window=3, length=7, epochs=2)
"""Numbers that cannot be mistaken for one another: N = 3, a loader of 7 batches, 2 epochs."""


def known(text: str, name: str = "out", scenario: Scenario = ODD) -> Any:
    """A variable's value after a run."""
    return variables(text, scenario)[name]


def ran(text: str, scenario: Scenario = ODD) -> Calls:
    return run(SETUP + text, scenario)[0]


def value(text: str, name: str = "out") -> tuple[Calls, Value]:
    m, frame = run(SETUP + text, ODD)
    return m, frame.vars[name]


def kinds(m: Calls) -> list[str]:
    return [e.kind for e in m.result.events if e.kind in {"backward", "step", "zero_grad"}]


def shares(m: Calls) -> list[Fraction]:
    return [b.facts.terms[0].value for b in m.result.backwards]


# --- how often a loop runs ---------------------------------------------------------------------

STEP = "net(x).mean().backward()\n"


@pytest.mark.parametrize(
    ("header", "times"),
    [
        ("for i in range(n):", 7),
        ("for i in range(0, n):", 7),
        ("for i in range(5, n):", 2),
        ("for i in range(9, n):", 7),
        ("for batch in loader:", 7),
        ("for i, batch in enumerate(loader):", 7),
        ("for i, batch in enumerate(loader, start=1):", 7),
        ("for batch, extra in zip(loader, others):", 7),
        ("for batch in tqdm(loader):", 7),
        ("for batch in list(loader):", 7),
        ("for batch in reversed(loader):", 7),
        ("for batch in islice(loader, 5):", 5),
        ("for batch in islice(loader, 1, 5):", 4),
        ("for batch in islice(loader, 2, None):", 5),
        ("for batch in islice(loader, 0):", 0),
        ("for i in range(0, n, size):", 7),
        ("for i in range(0, n, 16):", 7),
        ("for i in range(0, 70, size):", 7),
        ("for i in range(0, 20, 4):", 5),
        ("for i in range(n, 0, -1):", 7),
        ("for _ in repeat(None, n):", 7),
        ("for _ in repeat(None, 4):", 4),
        ("for batch in map(prepare, loader):", 7),
        ("for batch in chain(loader, loader):", 14),
        ("for i in range(0):", 7),
        ("for batch in []:", 7),
        ("for part in {}:", 7),
        ("for a in 'abcdef':", 3),
    ],
)
def test_a_training_loop_runs_as_often_as_its_iterable_is_long(header: str, times: int) -> None:
    """An unknown length is the scenario's; a training loop over nothing known is not what the program does."""
    text = (
        "from itertools import chain, islice, repeat\nfrom tqdm import tqdm\n"
        f"{header}\n    net(x).mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    assert len(ran(text).result.backwards) == times


@pytest.mark.parametrize(
    ("header", "times"),
    [
        ("for k in range(n):", 3),
        ("for k in range(2):", 2),
        ("for part in x.chunk(n):", 3),
        ("for part in torch.chunk(x, 5):", 5),
        ("for part in torch.tensor_split(x, sections=2):", 2),
        ("for k in range(0, n, 1):", 3),
    ],
)
def test_an_inner_loop_runs_n_times(header: str, times: int) -> None:
    """Three windows stand for all that the outer loop runs."""
    text = f"for batch in loader:\n    {header}\n        net(x).mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
    assert kinds(ran(text)) == ([*["backward"] * times, "step", "zero_grad"]) * 3


def test_a_list_that_a_loop_cut_short_has_built_is_longer_than_it_looks() -> None:
    text = (
        "kept = []\nfor batch in loader:\n    kept.append(batch)\n"
        "for batch in kept:\n    net(batch).mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
        "out = len(kept)\n"
    )
    m, found = value(text)
    assert len(m.result.backwards) == 7
    assert python(found) in (7, UNKNOWN)


def test_an_object_with_an_unknown_iterator_is_a_loader() -> None:
    text = (
        "class Data:\n    def __iter__(self):\n        return iter(self.source())\n"
        "for batch in Data():\n    net(batch).mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    assert kinds(ran(text)) == ["backward", "step", "zero_grad"] * 7


def test_an_object_with_a_generator_over_nothing_known_is_a_loader() -> None:
    text = (
        "class Data:\n    def __iter__(self):\n        for item in ():\n            yield item\n"
        "for batch in Data():\n    net(batch).mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    assert kinds(ran(text)) == ["backward", "step", "zero_grad"] * 7


def test_each_layer_of_a_model_is_one_element() -> None:
    text = "layers = 0\nfor layer in nn.Sequential(net, net):\n    layers += 1\nout = layers\n"
    assert known(SETUP + text) == 1


def test_a_model_output_may_be_iterated() -> None:
    text = "for part in net(x):\n    part.mean().backward()\noptimizer.step()\n"
    assert set(kinds(ran(text))) == {"backward", "step"}


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("it = iter(loader)\nn = 0\nwhile True:\n    try:\n        batch = next(it)\n    except StopIteration:\n        break\n    n += 1\n    net(batch).mean().backward()\nout = n", 7),
        ("it = iter(loader)\nn = 0\nwhile (batch := next(it, None)) is not None:\n    n += 1\n    net(batch).mean().backward()\nout = n", 7),
        ("def feed():\n    for i in range(4):\n        yield i, 'x'\nit = iter(feed())\na = next(it)\nout = a[1]", "x"),
        ("def feed():\n    yield {'kind': 'b'}\nit = feed()\na = next(it)\nout = a['kind']", "b"),
        ("from itertools import cycle\nit = iter(cycle(loader))\nn = 0\nfor i in range(9):\n    batch = next(it)\n    n += 1\n    net(batch).mean().backward()\nout = n", 9),
        ("from itertools import cycle\nn = 0\nfor i, batch in enumerate(cycle(loader)):\n    net(batch).mean().backward()\n    n += 1\n    if i == 10:\n        break\nout = n", 11),
        ("from itertools import cycle\nn = 0\nfor a, b in zip(cycle(others), loader):\n    net(b).mean().backward()\n    optimizer.step()\n    n += 1\nout = n", 7),
    ],
)  # fmt: skip
def test_iterating_by_hand_ends_where_the_data_ends(text: str, out: object) -> None:
    assert known(SETUP + text + "\n") == out


# --- numbers by their role ---------------------------------------------------------------------

GUARDED = (
    "for i, batch in enumerate(loader):\n    (net(batch).mean() / n).backward()\n"
    "    if {guard}:\n        optimizer.step()\n        optimizer.zero_grad()\n"
)


@pytest.mark.parametrize(
    ("guard", "steps"),
    [
        ("(i + 1) % n == 0", [2, 5]),
        ("i % n == n - 1", [2, 5]),
        ("not (i + 1) % n", [2, 5]),
        ("(i + 1) % n == 0 or i + 1 == len(loader)", [2, 5, 6]),
        ("(i + 1) % n == 0 and flag", [2, 5]),
        ("flag and (i + 1) % n == 0 and other", [2, 5]),
        ("(i + 1) % cfg.train.accum == 0", [2, 5]),
        ("(i + 1) % cfg['accum'] == 0", [2, 5]),
        ("(i + 1) % getattr(cfg, 'accum', 1) == 0", [2, 5]),
        ("(i + 1) % cfg.get('accum', 1) == 0", [2, 5]),
        ("(i + 1) % max(1, n) == 0", [2, 5]),
        ("(i + 1) % int(n) == 0", [2, 5]),
        ("(i + 1) % (n or 1) == 0", [2, 5]),
        ("(i + 1) in (n, 2 * n)", None),
    ],
)
def test_an_unknown_n_is_the_scenarios_window(guard: str, steps: Sequence[int] | None) -> None:
    m = ran(GUARDED.format(guard=guard))
    [ledger] = [k for k in m.result.ledgers.values() if k.name == "optimizer"] or [None]
    found = [s.applied[-1].micro for s in ledger.steps] if ledger is not None else []
    first = m.result.backwards[0].micro
    seen = [micro - first for micro in found]
    if steps is None:
        assert set(seen) <= set(range(7))
    else:
        assert seen == list(steps)


def test_a_counter_of_samples_fills_n_micro_batches() -> None:
    text = (
        "seen = 0\nfor batch in loader:\n    net(batch).mean().backward()\n    seen += batch.size(0)\n"
        "    if seen >= 96:\n        optimizer.step()\n        optimizer.zero_grad()\n        seen = 0\n"
    )
    assert kinds(ran(text)) == [*["backward"] * 3, "step", "zero_grad"] * 2 + ["backward"]


def test_a_counter_of_another_object_starts_at_the_scenarios_number() -> None:
    text = (
        "def fit(state):\n    for batch in loader:\n        (net(batch).mean() / n).backward()\n        state.count += 1\n"
        "        if state.count % n == 0:\n            optimizer.step()\n            optimizer.zero_grad()\nfit(state)\n"
    )
    assert kinds(ran(text, Scenario(window=3, length=4))) == [*["backward"] * 3, "step", "zero_grad", "backward"]
    late = Scenario(window=3, length=4, start=1)
    assert kinds(ran(text, late)) == [*["backward"] * 2, "step", "zero_grad", *["backward"] * 2]


def test_a_counter_that_runs_down_from_n() -> None:
    text = (
        "left = args.every\nfor batch in loader:\n    (net(batch).mean() / args.every).backward()\n    left -= 1\n"
        "    if left == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n        left = args.every\n"
    )
    assert kinds(ran(text, Scenario(window=3, length=4))) == [*["backward"] * 3, "step", "zero_grad", "backward"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("out = 'many' if world_size > 1 else 'one'", "many"),
        ("n = args.accum if args.accum > 0 else 1\nout = 3", 3),
    ],
)
def test_ranks_and_world_sizes_are_those_of_the_first_of_two(text: str, number: object) -> None:
    assert known(text + "\n") == number


@pytest.mark.parametrize(
    ("default", "window"),
    [("accumulation_steps=1", 3), ("accumulation_steps=5", 5), ("micro_batch_size=1", 2), ("local_rank=1", 1)],
)
def test_a_default_that_switches_accumulation_off_is_read_as_on(default: str, window: int) -> None:
    name = default.partition("=")[0]
    assert known(f"def f({default}):\n    return {name} + 0\nout = f()\n") == window


@pytest.mark.parametrize(("flag", "number"), [("--local_rank", 0), ("--n_gpu", 2), ("--world-size", 2), ("--seed", 1)])
def test_a_flag_for_one_process_is_read_as_rank_0_of_two(flag: str, number: int) -> None:
    name = flag.removeprefix("--").replace("-", "_")
    text = f"import argparse\np = argparse.ArgumentParser()\np.add_argument('{flag}', type=int, default=1)\nargs = p.parse_args()\n"
    assert known(f"{text}out = args.{name} + 0\n") == number


def test_a_default_that_is_a_size_means_what_it_says() -> None:
    assert known("def f(batch=1):\n    return batch\nout = f(), f(9)\n") == (1, 9)


# --- things of other files ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("a, *b = [1]\nout = a, b", (1, [])),
        ("config['lr'] = 2\nout = config['lr']", 2),
        ("config.steps = 5\nout = config.steps", 5),
        ("d = {'a': 1, 'b': 2}\ndel d['a']\nout = d", {"b": 2}),
        ("a = [1, 2]\na[5:6] = []\na[7] = 3\nout = a", [1, 2]),
        ("class A:\n    n = 1\nA.n = 4\nout = A.n, A().n", (4, 4)),
        ("class A:\n    @property\n    def n(self):\n        return self.held\n    @n.setter\n    def n(self, value):\n        self.held = value * 2\na = A()\na.n = 4\nout = a.held", 8),
        ("a = [1]\na += [2, 3]\nout = a", [1, 2, 3]),
        ("(a, b), c = (1, 2), 3\nout = a, b, c", (1, 2, 3)),
        ("[a, b] = 1, 2\nout = a + b", 3),
        ("n: int = 2\nn += 1\nout = n", 3),
        ("namespace = argparse_like()\nout = namespace.x is namespace.x", True),
        ("out = {'a': {'b': 4}}['a']['b']", 4),
        ("d = {'a': 1}\nout = d[key] if False else 5", 5),
        ("f = lambda *xs, **kw: (len(xs), kw['a'])\nout = f(1, 2, a=3)", (2, 3)),
        ("def f(a, b=1):\n    return a, b\npairs = {'b': 2}\nout = f(*(1,), **pairs)", (1, 2)),
        ("class A:\n    def __call__(self):\n        return 7\nout = A()()", 7),
        ("class A:\n    x = 3\n    @staticmethod\n    def f(n):\n        return n\n    @classmethod\n    def g(cls):\n        return cls.x\nout = A.f(2), A.g(), A().g()", (2, 3, 3)),
        ("class A:\n    def f(self):\n        return 1\nclass B(A):\n    def f(self):\n        return super().f() + 1\nclass C(B):\n    def f(self):\n        return super().f() + 1\nout = C().f()", 3),
        ("class A:\n    def f(self):\n        return 1\na = A()\na.f = lambda: 5\nout = a.f()", 5),
        ("def f(n):\n    return 1 if n <= 1 else n * f(n - 1)\nout = f(2)", 2),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    a: int\n    b: int = 2\np = P(1)\nout = p.a, p.b", (1, 2)),
        ("from dataclasses import dataclass\n@dataclass\nclass A:\n    n: int = 1\n    def __post_init__(self):\n        self.twice = 2 * self.n\n@dataclass\nclass B(A):\n    m: int = 5\nb = B(3)\nout = b.n, b.m, b.twice", (3, 5, 6)),
        ("class A:\n    pass\nout = A(n=4).n", 4),
        ("ok = 3\ndel ok\nout = 1", 1),
        ("out = 'x' not in {'x': 1}, 2 in {1: 0, 2: 0}", (False, True)),
        ("out = isinstance('a', str) and not isinstance(b'a', str)", True),
        ("match [1, {'k': 2}]:\n    case [a, {'k': b}]:\n        out = a, b", (1, 2)),
        ("exit_code = None\ntry:\n    exit(1)\nexcept SystemExit:\n    exit_code = 1\nout = exit_code", 1),
    ],
)  # fmt: skip
def test_what_the_run_knows_it_computes(text: str, out: object) -> None:
    assert known(text + "\n") == out


def test_a_second_look_at_an_unknown_thing_sees_the_same_thing() -> None:
    m, found = value("out = [a.b is a.b, a['k'] is a['k'], a.get('k') is a.get('k'), (a.b).c is a.b.c]\n")
    assert python(found) == [True] * 4
    assert not m.result.backwards


def test_what_an_unknown_call_returns_under_the_same_name_is_the_same_thing() -> None:
    text = "same = net\nnet, optimizer, extra = tools.wrap(net, optimizer, flag)\nout = net is same\n"
    m, found = value(text)
    assert python(found) is True
    _, extra = value(text, "extra")
    assert type(extra) is Opaque
    m = ran("same = net\nnet = tools.wrap(net)\n" + STEP + "optimizer.step()\n")
    assert kinds(m) == ["backward", "step"]


def test_an_unpacked_unknown_gives_things_by_their_names() -> None:
    m, frame = run("model, criterion, n = build()\nfirst = build()\na, b = first\nc, d = first\nsame = a is c\n")
    assert isinstance(frame.vars["model"], Module)
    assert python(frame.vars["same"]) is True
    assert not m.result.backwards


def test_an_unpacked_output_gives_losses() -> None:
    m = ran("loss, logits = net(x)\nloss.backward()\nfor a, b in loader:\n    pass\nmodel(a).mean().backward()\n")
    assert shares(m) == [1, 1]


def test_attributes_of_modules() -> None:
    text = (
        "class Net(nn.Module):\n    scale = 3\n    def __init__(self, body):\n        super().__init__()\n        self.body = body\n"
        "    def forward(self, x):\n        return self.body(x)\n    def twice(self, n):\n        return 2 * n\n"
        "model = Net(net)\nmodel.eval()\nout = model.scale, model.twice(4), model.training, model.train().training\n"
    )
    assert known(SETUP + text) == (3, 8, False, True)
    _, config = value("out = net.config\n")
    assert type(config) is Opaque
    m, inner = value("out = net.encoder.layer\n")
    assert isinstance(inner, Module)
    _, held = value("out = net.optimizer\n")
    assert held.kind == "optimizer"  # type: ignore[attr-defined]
    _, unwrapped = value("wrapped = nn.DataParallel(net)\nout = wrapped.module is net, hasattr(wrapped, 'module')\n")
    assert python(unwrapped) == (True, True)
    m = ran("(net.module(x)).mean().backward()\noptimizer.step()\n")
    [step] = [s for ledger in m.result.ledgers.values() for s in ledger.steps]
    assert len(step.applied) == 1


def test_a_deep_copy_is_another_module() -> None:
    text = "import copy\nshadow = copy.deepcopy(net)\nshadow(x).mean().backward()\noptimizer.step()\nn = copy.deepcopy(4)\n"
    m = ran(text)
    [step] = [s for ledger in m.result.ledgers.values() for s in ledger.steps]
    assert not any(e.sure for e in step.applied)
    assert known(SETUP + text, "n") == 4


@pytest.mark.parametrize(
    "made",
    [
        "torch.compile(net)",
        "torch.jit.script(net)",
        "nn.SyncBatchNorm.convert_sync_batchnorm(net)",
        "net.to('cuda').train().requires_grad_(True)",
        "nn.Sequential(net, nn.ReLU())",
        "nn.ModuleList([net])[0]",
    ],
)
def test_what_gives_a_module_back_reaches_its_parameters(made: str) -> None:
    m = ran(f"model = {made}\nmodel(x).mean().backward()\noptimizer.step()\n")
    [step] = [s for ledger in m.result.ledgers.values() for s in ledger.steps]
    assert len(step.applied) == 1


@pytest.mark.parametrize(
    "made",
    [
        "torchvision.models.resnet50(weights=None)",
        "timm.create_model('resnet50', pretrained=True)",
        "AutoModel.from_pretrained('bert')",
        "monai.networks.nets.UNet(3)",
    ],
)
def test_a_model_of_a_zoo_is_a_module(made: str) -> None:
    _, found = value(f"import timm, torchvision, monai\nfrom transformers import AutoModel\nout = {made}\n")
    assert isinstance(found, Module)


@pytest.mark.parametrize(
    "made",
    [
        "torchvision.transforms.Resize(4)",
        "AutoTokenizer.from_pretrained('bert')",
        "monai.losses.DiceLoss()",
        "torchvision.datasets.CIFAR10('.')",
    ],
)
def test_other_things_of_a_zoo_are_no_modules(made: str) -> None:
    _, found = value(f"import torchvision, monai\nfrom transformers import AutoTokenizer\nout = {made}\n")
    assert not isinstance(found, Module)


def test_functional_call_runs_the_module() -> None:
    m = ran(
        "torch.func.functional_call(net, weights, (x,)).mean().backward()\noptimizer.step()\ntorch.func.functional_call(f, w, x)\n"
    )
    [step] = [s for ledger in m.result.ledgers.values() for s in ledger.steps]
    assert len(step.applied) == 1


@pytest.mark.parametrize(
    ("text", "summed"),
    [
        ("return losses.sum()", True),
        ("return torch.sum(losses)", True),
        ("return losses.sum(1)", False),
        ("return losses.mean()", False),
        ("return nn.functional.mse_loss(losses, x, reduction='sum')", True),
    ],
)
def test_a_criterion_of_the_project_is_a_sum_where_its_code_shows_it(text: str, summed: bool) -> None:
    source = f"class Loss(nn.Module):\n    def forward(self, losses):\n        {text}\nLoss()(net(x)).backward()\n"
    assert [b.facts.summed for b in ran(source).result.backwards] == [summed]


def test_a_criterion_that_divides_may_divide_by_what_it_was_made_with() -> None:
    source = (
        "class Loss(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n"
        "    def forward(self, out):\n        return out.mean() / self.n\nLoss(args.accum)(net(x)).backward()\n"
    )
    [fact] = ran(source).result.backwards
    assert "args.accum" in fact.facts.hidden and "self.n" in fact.facts.hidden


# --- calls that nobody can see into ------------------------------------------------------------


def test_a_helper_that_runs_the_model_it_is_given() -> None:
    m = ran("for batch in loader:\n    loss = compute(net, batch)\n    (loss / 4).backward()\n    optimizer.step()\n")
    assert shares(m) == [Fraction(1, 4)] * 7
    assert all(len(s.applied) >= 1 for k in m.result.ledgers.values() for s in k.steps)


def test_a_method_of_the_model_that_takes_a_batch_is_a_forward() -> None:
    m = ran("for batch in loader:\n    net.training_step(batch).backward()\n    optimizer.step()\n")
    assert shares(m) == [1] * 7


def test_a_call_keeps_a_scaled_loss_scaled_and_notes_its_settings() -> None:
    m = ran("loss = reduce_loss(net(x).mean() / 4, args.n)\nloss.backward()\n")
    [fact] = m.result.backwards
    assert fact.facts.terms[0].value == Fraction(1, 4) and "args.n" in fact.facts.hidden


def test_a_call_that_gets_the_optimizer_and_a_loss_escapes() -> None:
    m = ran("trainer.advance(optimizer, net(x).mean())\n")
    assert "advance" in str([e for e in m.result.events if e.kind == "escape"] or m.result.escapes)


@pytest.mark.parametrize(
    "call", ["xm.optimizer_step(optimizer)", "tools.take_step(optimizer)", "trainer.optimize(optimizer)"]
)
def test_a_function_that_steps_an_optimizer_steps(call: str) -> None:
    assert kinds(ran(f"net(x).mean().backward()\n{call}\n")) == ["backward", "step"]


def test_a_function_that_makes_an_optimizer_from_parameters() -> None:
    m = ran(
        "opt = build_optimizer(net.parameters())\nopt.zero_grad()\nnet(x).mean().backward()\nopt.step()\nsched = make_scheduler(opt)\n"
    )
    assert kinds(m) == ["zero_grad", "backward", "step"]


@pytest.mark.parametrize(
    "call",
    ["net.weight.grad.add_(1)", "net.weight.grad.data.lerp_(other, 0.5)"],
)
def test_a_gradient_changed_in_place_by_another_method_is_noted(call: str) -> None:
    assert ran(f"net(x).mean().backward()\n{call}\noptimizer.step()\n").result.facts.get("manual_grad")


def test_harmless_calls_on_a_gradient_are_not_noted() -> None:
    m = ran(
        "net(x).mean().backward()\nnet.weight.grad.nan_to_num_()\nnet.weight.grad.clamp_(-1, 1)\noptimizer.step()\n"
    )
    assert not m.result.facts.get("manual_grad")


def test_a_hook_left_to_subclasses_is_unknown() -> None:
    text = (
        "class Base:\n    def loss(self, batch):\n        raise NotImplementedError\n    def name(self):\n        ...\n"
        "    def get(self):\n        return None\n    def done(self):\n        pass\nb = Base()\n"
        "out = b.loss(1), b.name(), b.get(), b.done()\n"
    )
    assert known(text) == (UNKNOWN, UNKNOWN, UNKNOWN, None)


def test_an_attribute_that_is_none_here_is_set_elsewhere() -> None:
    text = (
        "class T:\n    def __init__(self):\n        self.optimizer = None\n    def fit(self):\n"
        "        for batch in loader:\n            net(batch).mean().backward()\n            self.optimizer.step()\n            self.optimizer.zero_grad()\n"
        "T().fit()\n"
    )
    assert kinds(ran(text)) == ["backward", "step", "zero_grad"] * 7


def test_a_loss_that_is_a_number_here_is_of_unknown_size() -> None:
    m = ran(
        "loss = 0\nif flag_a:\n    loss = loss + net(x).mean()\nloss.backward()\n", Scenario(choices={"flag_a": False})
    )
    assert len(m.result.backwards) == 1


def test_a_project_dataset_and_optimizer_are_what_they_inherit() -> None:
    text = (
        "from torch.utils.data import DataLoader, Dataset\nclass Mine(torch.optim.SGD):\n    pass\n"
        "class Own(torch.optim.Optimizer):\n    def step(self):\n        pass\n"
        "class Feed(DataLoader):\n    pass\nclass Rows(Dataset):\n    pass\n"
        "opt = Mine(net.parameters(), lr=0.1)\nown = Own(net.parameters())\nfeed = Feed(Rows())\n"
        "for batch in feed:\n    net(batch).mean().backward()\n    opt.step()\n    own.step()\n"
    )
    assert kinds(ran(text)) == ["backward", "step", "step"] * 7


def test_a_bound_method_of_a_bound_method_is_unknown() -> None:
    assert known("out = thing.step.name\n") is UNKNOWN


def test_slices() -> None:
    assert known("a = [1, 2, 3]\nout = a[1:], a[:n], a[0]\n") == ([2, 3], [1, 2, 3], 1)
    m, found = value("out = [net(x)[1:], net(x)[0]]\n")
    assert isinstance(found, Seq) and all(isinstance(v, Tensor) for v in found.elts)
    m, found = value(
        "for batch in loader:\n    out = batch[:4], batch['x'], batch[0:2]\n    net(batch).mean().backward()\n"
    )
    assert isinstance(found, Seq) and all(m.is_data(v) for v in found.elts)


def test_a_prediction_kept_in_a_batch_is_found_again() -> None:
    m = ran(
        "for batch in loader:\n    batch['out'] = net(batch['x'])\n    (batch['out'].mean() / 2).backward()\n    optimizer.step()\n"
    )
    assert shares(m) == [Fraction(1, 2)] * 7


# --- builtins and containers -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("out = [i for i in range(flag_n, other)] and 1", 1),
        ("def f(epochs=1):\n    n = 0\n    for e in range(epochs):\n        n += 1\n        for b in loader:\n            net(b).mean().backward()\n            optimizer.step()\n    return n\nout = f()", 2),
        ("out = int(x.item()) is None, float(args.n) is None", (UNKNOWN, UNKNOWN)),
        ("out = int('12') + float('0.5'), int() + 1, round(7 / 2, 1)", (Fraction(25, 2), 1, Fraction(7, 2))),
        ("out = int('many')", UNKNOWN),
        ("out = abs(-2), float(3), round(2.6), bool(), bool(4)", (2, 3, 3, False, True)),
        ("out = max(1, n) is n, max(0, 1, n) is n", (True, True)),
        ("out = max(2, n)", UNKNOWN),
        ("out = all([n, 0]), any([n, 1]), any([n, 0])", (False, True, UNKNOWN)),
        ("out = all(n)", UNKNOWN),
        ("out = isinstance(net, nn.Module)", UNKNOWN),
        ("out = isinstance(nn.DataParallel(net), nn.DataParallel), isinstance(nn.DataParallel(net), torch.nn.parallel.DistributedDataParallel)", (True, False)),
        ("out = isinstance(net, nn.DataParallel)", UNKNOWN),
        ("out = isinstance(x, torch.Tensor), isinstance(net(x), torch.Tensor), isinstance(net(x), dict)", (UNKNOWN, True, UNKNOWN)),
        ("out = getattr(torch, 'optim').SGD is torch.optim.SGD", True),
        ("out = getattr(args, 'accum', 4) + 0", 4),
        ("out = getattr(args, 'name', None)", UNKNOWN),
        ("out = getattr(3, name)", UNKNOWN),
        ("setattr(args, 'n', 6)\nout = args.n", 6),
        ("out = setattr(3, 'n', 6)", UNKNOWN),
        ("out = hasattr(optimizer, 'step'), hasattr(nn.DataParallel(net), 'module'), hasattr(net, 'module')", (True, True, UNKNOWN)),
        ("from torch.nn.parallel import DistributedDataParallel as DDP\nout = hasattr(DDP(net), 'no_sync'), hasattr(nn.DataParallel(net), 'no_sync')", (True, UNKNOWN)),
        ("class A:\n    n = 1\n    def f(self): ...\nout = hasattr(A(), 'n'), hasattr(A(), 'f'), hasattr(A(), 'm')", (True, True, UNKNOWN)),
        ("out = list(zip([1, 2], [3, 4])), list({'a': 1}), tuple(range(2)), list()", ([(1, 3), (2, 4)], ["a"], (0, 1), [])),
        ("out = list(enumerate([5]))", UNKNOWN),
        ("out = len(list(loader)) is None", UNKNOWN),
        ("import torch.multiprocessing as mp\ndone = []\ndef work(rank, n):\n    done.append((rank, n))\nmp.spawn(work, args=(5,), nprocs=2)\nout = done", [(0, 5)]),
        ("import torch.multiprocessing as mp\nout = mp.spawn(job, nprocs=2)", UNKNOWN),
        ("from types import SimpleNamespace\nout = SimpleNamespace(n=2).n, SimpleNamespace(**{'m': 3}).m", (2, 3)),
        ("import argparse\np = argparse.ArgumentParser()\np.add_argument()\np.add_argument('--b', action='store_true', default=1)\np.add_argument('--c', default=None)\np.add_argument('--d', default=7)\na = p.parse_args()\nout = a.d, a.b, a.c", (7, UNKNOWN, UNKNOWN)),
        ("import argparse\np = argparse.ArgumentParser()\nadd = p.add_argument\nadd('--d', default=7)\nout = p.parse_args().d", 7),
        ("a = [1]\na.extend(more)\na.append()\nout = a", [1]),
        ("a = [1, 2, 3]\nout = a.pop(9), a", (UNKNOWN, [1, 2, 3])),
        ("out = [].pop()", UNKNOWN),
        ("d = {'a': 1}\nd.update(more, b=2)\nd.update({'c': 3})\nout = d", {"a": 1, "b": 2, "c": 3}),
        ("out = {'a': 1}.get('b'), {'a': 1}.get('b', 'x'), {'a': 1}.get('b', 2) + 0", (UNKNOWN, "x", 2)),
        ("out = cfg.get('n', 6) + 0, cfg.get('n', 6) + 1", (6, 7)),
        ("cfg['k'] = 'v'\nout = cfg.get('k'), cfg.get('z') is cfg.get('z')", ("v", True)),
        ("out = cfg.get(name)", UNKNOWN),
        ("d = {}\nout = d.setdefault('a', 1), d.setdefault('a', 2)", (1, 1)),
        ("a = ['b', 1]\na.sort()\nb = [2, 1]\nb.sort(key=len)\nc = [n, 1]\nc.sort()\nout = a, b, c", (["b", 1], [2, 1], [UNKNOWN, 1])),
        ("out = sorted(loader)", UNKNOWN),
        ("import copy\nout = copy.copy({'a': 1}), copy.copy(5)", ({"a": 1}, 5)),
        ("it = iter([1, 2])\nout = it.__next__(), it.next()", (1, 2)),
        ("it = iter([1])\nn = 0\ntry:\n    it.next()\n    it.next()\nexcept StopIteration:\n    n = 9\nout = n", 9),
        ("out = divmod(7)", UNKNOWN),
        ("from itertools import islice\nout = [a for a in islice([1, 2, 3], 0, 2)], [a for a in islice([1, 2, 3], 1, None)]", ([1, 2], [2, 3])),
        ("out = len(range(3)), len({1: 2}), len('abc'), len(enumerate([1, 2]))", (3, 1, 3, 2)),
        ("class A:\n    def __iter__(self):\n        return iter([4, 5])\nit = iter(A())\nout = next(it), next(it)", (4, 5)),
        ("out = next(iter(lambda: 3, 4)) is None", UNKNOWN),
        ("from contextlib import nullcontext, suppress\nwith nullcontext(3) as a, suppress(KeyError):\n    out = a", 3),
        ("from easydict import EasyDict\nout = EasyDict({'a': 1})['a']", 1),
        ("out = vars(args) is args", True),
        ("from tqdm import tqdm\nbar = tqdm(range(2))\nn = 0\nfor i in bar:\n    n += 1\n    bar.set_postfix(loss=n)\n    bar.update()\nout = n", 2),
        ("from collections import defaultdict\nd = defaultdict(list)\nd['a'] = 1\nout = d", {"a": 1}),
    ],
)  # fmt: skip
def test_builtins_and_containers(text: str, out: object) -> None:
    found = known(SETUP + text + "\n")
    if isinstance(out, tuple | list) and UNKNOWN in out:
        assert [a if b is not UNKNOWN else type(a) for a, b in zip(found, out, strict=True)] == [
            b if b is not UNKNOWN else type(UNKNOWN) for b in out
        ]
    elif out is UNKNOWN:
        assert type(found) is type(UNKNOWN), found
    else:
        assert found == out and type(found) is type(out)


# --- losses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torch.zeros_like(loss).add(loss).backward()", [1]),
        ("(torch.full_like(loss, 3) * loss).backward()", [3]),
        ("(torch.ones(()) * loss / 2).backward()", [Fraction(1, 2)]),
        ("(torch.full((), 0.5) * loss).backward()", [Fraction(1, 2)]),
        ("(torch.tensor([4.0]) * loss).backward()", [4]),
        ("(torch.as_tensor(0.25) * loss).backward()", [Fraction(1, 4)]),
        ("(loss * torch.tensor(0.5) / 2).backward()", [Fraction(1, 4)]),
        ("(loss / torch.tensor(4.0)).backward()", [1]),
        ("torch.negative(loss / 2).backward()", [Fraction(-1, 2)]),
        ("loss.mul(other=3).backward()", [3]),
        ("found.data_loss.mul(3).backward()", [1]),
        ("torch.cat([loss / 2, loss / 2]).sum().backward()", [Fraction(1, 2)]),
        ("torch.sum(torch.stack([loss / 3])).backward()", [Fraction(1, 3)]),
        ("sum([loss / 2]).backward()", [Fraction(1, 2)]),
        ("loss.clone().squeeze().to('cpu').float().backward()", [1]),
        ("(loss.detach() / loss.detach() * 0 + loss).backward()", [1]),
        ("torch.autograd.backward(found / 2, torch.tensor(3.0))", [Fraction(3, 2)]),
        ("loss.backward(torch.zeros(()))", [1]),
        ("loss.backward(retain_graph=True)", [1]),
    ],
)
def test_a_constant_tensor_scales_by_its_number(text: str, found: list[Fraction]) -> None:
    m = ran(f"loss = nn.functional.mse_loss(net(x), x)\n{text}\n")
    assert [b.facts.terms[0].value for b in m.result.backwards if b.facts.terms] == found


def applied(text: str) -> list[Fraction]:
    """The coefficients that the last step applies."""
    m = ran(f"optimizer.zero_grad()\nloss = nn.functional.mse_loss(net(x), x)\n{text}\noptimizer.step()\n")
    [ledger] = [k for k in m.result.ledgers.values() if k.steps]
    return [e.coefficient.value for e in ledger.steps[-1].applied]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("for p in net.parameters():\n    p.grad.div_(4)", [Fraction(1, 4)]),
        ("for p in net.parameters():\n    p.grad /= 4", [Fraction(1, 4)]),
        ("for p in net.parameters():\n    p.grad *= 3", [3]),
        ("for p in net.parameters():\n    p.grad.data.mul_(2)", [2]),
        ("for p in net.parameters():\n    p.grad = p.grad / 4", [Fraction(1, 4)]),
        ("for p in net.parameters():\n    p.grad.copy_(p.grad / 4)", [Fraction(1, 4)]),
        ("for p in net.parameters():\n    p.grad.data = p.grad.data / 2", [Fraction(1, 2)]),
        ("for p in net.parameters():\n    torch.div(p.grad, 4, out=p.grad)", [Fraction(1, 4)]),
        ("for name, p in net.named_parameters():\n    p.grad.div_(4)", [Fraction(1, 4)]),
        ("grads = [p.grad for p in net.parameters()]\ntorch._foreach_div_(grads, 4)", [Fraction(1, 4)]),
        ("grads = [p.grad for p in net.parameters()]\ntorch._foreach_mul_(grads, 3)", [3]),
        ("for group in optimizer.param_groups:\n    for p in group['params']:\n        p.grad.div_(4)", [Fraction(1, 4)]),
        ("for p in optimizer.param_groups[0]['params']:\n    p.grad.div_(2)", [Fraction(1, 2)]),
        ("for p in net.parameters():\n    p.grad = None", []),
        ("for p in net.parameters():\n    p.grad.zero_()", []),
        ("for p in net.parameters():\n    if p.grad is not None:\n        p.grad.detach_()\n        p.grad.zero_()", []),
        ("for p in net.parameters():\n    if p.requires_grad:\n        p.grad.data.zero_()", []),
    ],
)  # fmt: skip
def test_a_gradient_changed_by_hand_is_applied_as_it_is(text: str, left: list[Fraction]) -> None:
    torch = pytest.importorskip("torch")
    assert applied(f"loss.backward()\n{text}") == left
    names: dict[str, Any] = {}
    exec(f"import torch\nfrom torch import nn\ntorch.manual_seed(0)\nnet = nn.Linear(4, 4)\nx = torch.randn(8, 4)\n"
         f"optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nnn.functional.mse_loss(net(x), x).backward()\n"
         f"before = net.weight.grad.clone()\n{text}\nafter = net.weight.grad", names)  # fmt: skip
    after = names["after"] if names["after"] is not None else torch.zeros(4, 4)
    torch.testing.assert_close(after, names["before"] * float(sum(left)))


@pytest.mark.parametrize(
    "text",
    [
        "loss.backward()\nfor p in net.parameters():\n    kept = p.grad.clone()",
        "loss.backward()\nkept = [p.grad.detach() for p in net.parameters()]",
        "loss.backward()\nfor p in net.parameters():\n    p.grad = kept[p]",
        "loss.backward()\nfor p in net.parameters():\n    p.grad.copy_(total)",
    ],
)
def test_a_gradient_kept_or_replaced_by_hand_is_noted(text: str) -> None:
    m = ran(f"loss = net(x).mean()\n{text}\n")
    assert m.base.copied or any(k.copied for k in m.result.ledgers.values())


def test_a_loss_changed_in_place_after_its_backward_is_too_late() -> None:
    m = ran("loss = net(x).mean()\nloss.backward()\nloss.div_(4)\n")
    assert shares(m) == [1] and [e.kind for e in m.result.events if e.kind == "late_scale"] == ["late_scale"]


@pytest.mark.parametrize(
    ("call", "summed"),
    [
        ("nn.functional.cross_entropy(a, b, reduction='sum')", True),
        ("nn.functional.cross_entropy(a, b)", False),
        ("nn.CrossEntropyLoss(reduction='none').cuda()(net(x), y).mean()", False),
        ("nn.CrossEntropyLoss(size_average=False)(net(x), y)", True),
        ("nn.CrossEntropyLoss(reduce=False)(net(x), y).mean()", False),
        ("FocalLoss(gamma=2)(net(x), y)", False),
        ("FocalLoss(reduction='sum')(net(x), y)", True),
        ("nn.functional.mse_loss(net(x), x) * x.size(0)", True),
    ],
)
def test_a_reduction_is_read_where_it_is_said(call: str, summed: bool) -> None:
    m = ran(f"from losses import FocalLoss\n({call}).backward()\n")
    assert [b.facts.summed for b in m.result.backwards] == [summed]


def test_a_criterion_of_another_file_may_divide_by_its_settings() -> None:
    m = ran("from losses import FocalLoss\ncriterion = FocalLoss(scale=args.scale)\ncriterion(net(x), y).backward()\n")
    assert "args.scale" in m.result.backwards[0].facts.hidden


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("(torch.tensor(args.w) * loss).backward()", ["1·args.w"]),
        ("loss.backward(torch.full_like(loss, args.w))", ["1·args.w"]),
        ("(torch.tensor(loss) + loss).backward()", ["1"]),
        ("torch.sum(input=loss).backward()", ["1"]),
        ("torch.mean(input=loss / 2).backward()", ["1/2"]),
        ("torch.chunk(loss / 2, 1)[0].backward()", ["1/2"]),
        ("net.backward(found / args.n)", ["1/args.n"]),
        ("(found * args.w / 2).backward()", ["1/2·args.w"]),
        ("engine.backward({'loss': found})", ["1"]),
    ],
)
def test_a_setting_in_a_loss_stays_a_symbol(text: str, shown: list[str]) -> None:
    m = ran(f"import deepspeed\nloss = nn.functional.mse_loss(net(x), x)\n{text}\n", Scenario(window=1))
    assert [str(t) for b in m.result.backwards for t in b.facts.terms] == shown


def test_parts_of_an_array_are_as_many_as_it_is_split_into() -> None:
    assert known("import numpy as np\nout = len(np.array_split(data, 5)), len(data.chunk(n)) is None\n")[0] == 5


# --- Lightning by hand -------------------------------------------------------------------------

LIGHTNING = """\
import lightning as L
class T(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Linear(4, 1)
        self.head = nn.Linear(4, 1)
    def training_step(self, batch, i):
        {body}
    def configure_optimizers(self):
        return {made}
t = T()
for i, batch in enumerate(loader):
    t.training_step(batch, i)
"""
ONE_SGD = "torch.optim.SGD(self.net.parameters(), lr=0.1)"
TWO_SGD = f"{ONE_SGD}, torch.optim.SGD(self.head.parameters(), lr=0.1)"


def lightning(body: str, made: str = ONE_SGD) -> Calls:
    return ran(LIGHTNING.format(body=body.replace("\n", "\n        "), made=made))


@pytest.mark.parametrize(
    "made",
    [
        ONE_SGD,
        f"[{ONE_SGD}]",
        f"[{ONE_SGD}], []",
        f"{{'optimizer': {ONE_SGD}, 'lr_scheduler': None}}",
        f"[{{'optimizer': {ONE_SGD}}}]",
    ],
)
def test_lightning_gives_the_optimizer_that_was_configured(made: str) -> None:
    m = lightning(
        "opt = self.optimizers()\nself.manual_backward(self.net(batch).mean() / 2)\nopt.step()\nopt.zero_grad()", made
    )
    assert kinds(m) == ["backward", "step", "zero_grad"] * 7
    assert shares(m) == [Fraction(1, 2)] * 7


def test_lightning_gives_a_list_of_several_optimizers() -> None:
    m = lightning(
        "one, two = self.optimizers()\nself.toggle_optimizer(one)\nself.manual_backward(self.net(batch).mean())\n"
        "self.clip_gradients(one, gradient_clip_val=1.0)\none.step()\none.zero_grad()\nself.untoggle_optimizer(one)\n"
        "self.manual_backward(loss={'loss': self.head(batch).mean()})\ntwo.step()\ntwo.zero_grad()\nself.lr_schedulers().step()",
        TWO_SGD,
    )
    assert kinds(m) == ["backward", "step", "zero_grad", "backward", "step", "zero_grad"] * 7
    assert all(len(step.applied) == 1 for ledger in m.result.ledgers.values() for step in ledger.steps)


def test_lightning_without_configured_optimizers_has_one_of_its_own() -> None:
    m = lightning("opt = self.optimizers()\nself.manual_backward(self.net(batch).mean())\nopt.step()", "build(self)")
    assert kinds(m) == ["backward", "step"] * 7


# --- branches ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "taken"),
    [
        ("if flag:\n    net(x).mean().backward()\nelse:\n    print()", ["backward"]),
        ("if flag:\n    print()\nelse:\n    net(x).mean().backward()", ["backward"]),
        ("if flag:\n    print()\nelse:\n    optimizer.step()", ["step"]),
        ("if flag:\n    optimizer.step()\nelse:\n    print()", ["step"]),
        ("if flag:\n    raise ValueError\noptimizer.step()", ["step"]),
        ("if flag:\n    optimizer.zero_grad()\nelse:\n    print()", ["zero_grad"]),
        ("if flag:\n    print()\nelse:\n    optimizer.zero_grad()", ["zero_grad"]),
        ("if flag:\n    optimizer.step()\nelse:\n    raise ValueError", ["step"]),
        ("if flag:\n    print(1)\nelse:\n    raise ValueError\noptimizer.step()", ["step"]),
        ("match kind:\n    case 'a':\n        optimizer.step()\n    case 'b':\n        raise ValueError", ["step"]),
        ("match kind:\n    case Kind(n=n):\n        optimizer.step()\n    case _:\n        print()", ["step"]),
        ("match kind:\n    case {'a': a}:\n        optimizer.zero_grad()\n    case [a, *b]:\n        optimizer.step()", ["zero_grad"]),
        ("if not isinstance(n, int):\n    raise TypeError\noptimizer.step()", ["step"]),
        ("if rank in [-1, 0]:\n    print()\noptimizer.step()", ["step"]),
        ("if net is None:\n    raise ValueError\noptimizer.step()", ["step"]),
        ("if optimizer == None:\n    print()\nelse:\n    optimizer.step()", ["step"]),
        ("if torch.optim.SGD is torch.optim.SGD:\n    optimizer.step()", ["step"]),
        ("if net.weight.grad is not None:\n    optimizer.step()", ["step"]),
        ("try:\n    optimizer.step()\nexcept RuntimeError:\n    optimizer.zero_grad()\nfinally:\n    print()", ["step"]),
        ("try:\n    raise RuntimeError('x')\nexcept (ValueError, RuntimeError) as error:\n    optimizer.zero_grad()", ["zero_grad"]),
        ("for p in net.parameters():\n    if p.requires_grad:\n        p.grad = None", ["zero_grad"]),
        ("with open('f') as f:\n    optimizer.step()", ["step"]),
        ("while True:\n    optimizer.step()\n    break", ["step"]),
        ("def inner():\n    return optimizer\ninner().step()", ["step"]),
        ("[o.step() for o in [optimizer]]", ["step"]),
        ("(lambda: optimizer.step())()", ["step"]),
        ("getattr(optimizer, 'step')()", ["step"]),
        ("step = optimizer.step\nstep()", ["step"]),
        ("from functools import partial\npartial(optimizer.zero_grad, set_to_none=True)()", ["zero_grad"]),
        ("torch.optim.Optimizer.step(optimizer)", ["step"]),
    ],
)  # fmt: skip
def test_a_condition_that_is_not_known_takes_the_side_that_trains(body: str, taken: list[str]) -> None:
    assert kinds(ran(body + "\n")) == taken


@pytest.mark.parametrize(
    ("choice", "taken"), [({}, ["step"]), ({"flag": True}, ["step"]), ({"flag": False}, ["zero_grad"])]
)
def test_a_scenario_decides_a_condition(choice: dict[str, bool], taken: list[str]) -> None:
    text = "if flag:\n    optimizer.step()\nelse:\n    optimizer.zero_grad()\n"
    assert kinds(ran(text, Scenario(choices=choice))) == taken
    turned = "if not flag:\n    optimizer.zero_grad()\nelse:\n    optimizer.step()\n"
    assert kinds(ran(turned, Scenario(choices=choice))) == taken


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("out = n == n, n is None, n is not None, not n", (UNKNOWN,) * 4),
        ("out = net is None, net is not None, [] is None, optimizer != None", (False, True, False, True)),
        ("out = torch.float16 is torch.float16, torch.float16 is not torch.float16, torch.float16 == torch.float32", (True, False, UNKNOWN)),
        ("out = 1 in n, n in [1, 2], n not in 'abc'", (UNKNOWN,) * 3),
        ("out = 'a' < 1", UNKNOWN),
        ("out = (n or 4), (n and 4), (0 or n), (1 and n), (n or True), (n and 0)", (*(UNKNOWN,) * 4, True, False)),
        ("out = bool(net), bool(optimizer), bool(lambda: 0)", (True, True, True)),
        ("out = not net, not [], not {}", (False, True, UNKNOWN)),
        ("a = n\nout = a is n, a is not n", (True, False)),
    ],
)  # fmt: skip
def test_comparisons_with_unknown_things(text: str, out: object) -> None:
    found = known(SETUP + text + "\n")
    pairs = zip(found, out, strict=True) if isinstance(out, tuple) else [(found, out)]
    for seen, wanted in pairs:
        assert type(seen) is type(wanted) and (wanted is UNKNOWN or seen == wanted)


@pytest.mark.parametrize(
    ("asked", "ranks"),
    [
        ("hvd.size", True),
        ("horovod.torch.size", True),
        ("hvd.local_size", True),
        ("batch.size", False),
        ("size", False),
    ],
)
def test_horovod_tells_how_many_processes_there_are(asked: str, ranks: bool) -> None:
    assert (RANKS.search(asked) is not None) is ranks
