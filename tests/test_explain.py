"""`galint explain`: the windows as data, and what the text, JSON, SVG and HTML say of them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galint.cli import main
from galint.config import Config
from galint.engine import explain, study
from galint.errors import ParseError
from galint.explain import LoopView, WindowView, at_line, listed
from galint.render import explain_html, explain_json, explain_svg, explain_text
from galint.render.explain_text import title
from galint.source import Source
from tests.marks import FIXTURES, fixtures

PLAIN = """\
import torch
model = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data, batch_size=32)
for i, x in enumerate(loader):
    loss = model(x).mean() / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
"""


def views(text: str, line: int | None = None) -> list[LoopView]:
    return explain(Source("train.py", text), Config(), None, line)


def only(text: str) -> LoopView:
    (view,) = views(text)
    return view


def first(view: LoopView) -> WindowView:
    return view.ledgers[0].windows[0]


def fixture(name: str) -> Source:
    (path,) = FIXTURES.rglob(name)
    return Source(path.name, path.read_text("utf-8"))


def of(name: str) -> LoopView:
    (view,) = explain(fixture(name), Config())
    return view


# --- the data ----------------------------------------------------------------------------------------


def test_a_correct_window() -> None:
    view = only(PLAIN)
    (ledger,) = view.ledgers
    assert (view.span.row, view.end_row, view.function) == (5, 10, "")
    assert (ledger.optimizer, ledger.n, ledger.guard_text) == ("opt", 4, "(i + 1) % 4 == 0")
    (window,) = ledger.windows
    assert (window.first, window.last) == (1, 2)
    assert window.verdict == "same"
    assert window.applied == window.expected == "(g1 + g2 + g3 + g4)/4"
    assert [row.share for row in window.rows] == ["1/4"] * 4
    assert [row.held for row in window.rows] == [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]
    assert [row.holds for row in window.rows][1] == "(g1 + g2)/4"
    assert {row.fate for row in window.rows} == {"applied"}
    assert all(row.scaler is None and row.synced is None for row in window.rows)
    assert [h.kind for h in window.rows[-1].happenings] == ["forward", "backward", "step", "clear"]


def test_a_partial_last_window_is_a_variant() -> None:
    (ledger,) = only(PLAIN).ledgers
    (variant,) = ledger.variants
    assert "which N does not divide" in variant.label
    (left,) = variant.windows
    assert left.step is None and left.notes == ("no step follows: 2 micro-batches never applied",)
    epochs = PLAIN.replace("for ", "for epoch in range(2):\n    for ").replace("\n    ", "\n        ")
    epochs = epochs.replace("        for", "    for", 1)
    leaked, left = only(epochs).ledgers[0].variants[0].windows
    assert len(leaked.rows) == 6 and leaked.verdict == "different"


HALF = """\
import torch
def train(model, loader, criterion, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = 0.5 * criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""
GAN = """\
import torch
def train(gen, disc, loader):
    opt_d = torch.optim.SGD(disc.parameters())
    opt_g = torch.optim.SGD(gen.parameters())
    for real in loader:
        opt_d.zero_grad()
        d_loss = disc(gen(real).detach()).mean() - disc(real).mean()
        d_loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss = -disc(gen(real)).mean()
        g_loss.backward()
        opt_g.step()
"""


def test_a_factor_of_the_loss_itself_is_no_difference() -> None:
    (window,) = only(HALF).ledgers[0].windows
    assert (window.applied, window.expected, window.verdict) == ("g1/2", "g1/2", "same")


def test_what_no_rule_calls_wrong_is_not_called_different() -> None:
    view = only(GAN)
    assert {w.verdict for _, w in listed(view) if w.step is not None} <= {"same", "unknown"}
    assert str(view.batch) == "micro-batch × 1"
    # The function is run twice, with optimizers of its own each time: they are told once, and end with their call.
    assert [ledger.optimizer for ledger in view.ledgers] == ["opt_d", "opt_g"]
    assert all(len(w.rows) <= 2 for _, w in listed(view))


def test_powers_of_a_factor_are_kept() -> None:
    text = "T = args.t\n" + PLAIN.replace(".mean() / 4", ".mean() * T * T / args.s / args.s")
    window = first(only(text))
    assert window.applied == "args.t^2·(g1 + g2 + g3 + g4)/args.s^2"
    assert window.rows[0].share == "args.t^2/args.s^2"


def test_windows_that_look_alike_are_told_once_with_their_numbers() -> None:
    stepped = PLAIN.replace("(i + 1) % 4 == 0", "(i + 1) % 4 == 0 or i + 1 == len(loader)")
    assert stepped != PLAIN
    body = stepped.replace("for ", "for epoch in range(2):\n    for ").replace("\n    ", "\n        ")
    (ledger,) = only(body.replace("        for", "    for", 1)).ledgers
    (tail,) = ledger.variants[0].windows
    assert (tail.numbers, len(tail.rows), tail.applied) == ((3, 6), 2, "(g1 + g2)/4")
    assert [title(replace(tail, numbers=n)) for n in ((2,), (3, 6), (1, 2, 4, 5, 6), (1, 2, 3))] == [
        "window 2", "windows 3 and 6", "windows 1, 2 and 4 to 6", "windows 1 to 3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("batch", "size", "said"),
    [("32", 32, "32 × 4 = 128"), ("BATCH", 16, "16 × 4 = 64"), ("args.batch", None, "args.batch × 4")],
)
def test_effective_batch(batch: str, size: int | None, said: str) -> None:
    batch_of = only("BATCH = 16\n" + PLAIN.replace("batch_size=32", f"batch_size={batch}")).batch
    assert batch_of is not None
    assert (batch_of.micro_size, batch_of.ranks, str(batch_of)) == (size, False, said)


def test_effective_batch_counts_ranks() -> None:
    text = PLAIN.replace("opt =", "model = torch.nn.parallel.DistributedDataParallel(model)\nopt =")
    view = only(text)
    assert str(view.batch) == "32 × 4 × ranks = 128 × ranks"
    assert all(row.synced for row in first(view).rows)


@pytest.mark.parametrize("given", ["batch_size=None", "batch_sampler=batches"])
def test_batches_made_by_the_data_have_no_size(given: str) -> None:
    other = "other = torch.utils.data.DataLoader(data, batch_size=8)\n"
    for before in ("", other):
        batch = only(PLAIN.replace("batch_size=32", given).replace("loader =", f"{before}loader =", 1)).batch
        assert batch is not None and (batch.micro, batch.micro_size) == ("", None)
        assert str(batch) == "micro-batch × 4"


def test_unknown_micro_batch_is_not_guessed() -> None:
    batch = only(PLAIN.replace("torch.utils.data.DataLoader(data, batch_size=32)", "get_loader()")).batch
    assert batch is not None and batch.micro_size is None and str(batch) == "micro-batch × 4"


def test_discarded_micro_batches_say_what_discarded_them() -> None:
    window = first(of("zero_dedented_below_guard.py"))
    assert [row.fate for row in window.rows] == ["discarded"] * 3 + ["applied"]
    assert {row.lost_at.row for row in window.rows if row.lost_at} == {44}
    assert [row.held for row in window.rows] == [(), (), (), (4,)]
    assert [h.span.row for h in window.opening] == [35]
    assert [(w.number, w.value) for w in window.weights] == [(4, Fraction(1, 4))]


def test_mixed_loss_scale_is_in_the_formula() -> None:
    window = first(of("unscale_at_first_micro_batch.py"))
    assert [row.scaler for row in window.rows] == ["unscaled", "mixed", "mixed", "mixed"]
    assert window.applied == "g1/4 + scale·g2/4 + scale·g3/4 + scale·g4/4"
    assert window.verdict == "different"
    assert [w.scaled for w in window.weights] == [False, True, True, True]


def test_gradients_rescaled_after_the_window() -> None:
    window = first(of("rescaled_after_window.py"))
    assert [row.share for row in window.rows] == ["1"] * 4
    assert window.rows[2].holds == "g1 + g2 + g3"
    assert window.rows[3].holds == window.applied == "(g1 + g2 + g3 + g4)/4"
    assert [h.kind for h in window.rows[3].happenings][2:] == ["rescale", "step", "clear"]


def test_inner_loop_puts_the_step_behind_the_micro_batches() -> None:
    window = first(of("nested_micro_steps.py"))
    assert [h.kind for h in window.closing] == ["step", "clear"]
    assert all(h.kind in ("forward", "backward") for row in window.rows for h in row.happenings)


def test_a_configuration_that_differs_is_a_variant() -> None:
    text = PLAIN.replace("/ 4\n", "\n    if args.average:\n        loss = loss / 4\n")
    (ledger,) = only(text).ledgers
    other = next(v for v in ledger.variants if "args.average" in v.label)
    assert {first_of.applied for first_of in (ledger.windows[0], other.windows[0])} == {
        "(g1 + g2 + g3 + g4)/4",
        "g1 + g2 + g3 + g4",
    }


def test_a_loop_that_is_not_understood_says_why() -> None:
    found = views("def f(loader):\n    for x in loader:\n        weird(x).backward()\n        magic(opt, x)\n" + PLAIN)
    view = next(v for v in found if v.span.row == 2)
    assert not view.understood and view.function == "f"
    assert view.reason and not view.ledgers
    assert f"not understood: {view.reason}" in explain_text.render([view])


def test_a_loop_that_never_steps_says_so() -> None:
    (view,) = explain(fixture("counter_moves_only_on_step.py"), Config())
    assert view.understood and "no optimizer step ever runs" in explain_text.render([view])


def test_line_selects_the_innermost_loop_or_where_it_acts() -> None:
    text = PLAIN + "\n\n" + PLAIN.replace("opt", "opt2")
    both = views(text)
    assert [v.span.row for v in both] == [5, 17]
    assert [v.span.row for v in views(text, 9)] == [5]
    assert [v.span.row for v in views(text, 21)] == [17]
    assert views(text, 1) == []
    nested = explain(fixture("nested_micro_steps.py"), Config())
    step = first(nested[0]).step
    assert step is not None and step.row > nested[0].end_row
    assert at_line(nested, step.row) == nested


def test_two_loops_keep_their_own_windows() -> None:
    """One optimizer, two loops: a window is told where its micro-batches ran."""
    one, two = views(PLAIN + PLAIN[PLAIN.index("for ") :].replace("/ 4", "/ 2").replace("% 4", "% 2"))
    assert first(one).applied == "(g1 + g2 + g3 + g4)/4"
    assert first(two).applied == "(g1 + g2)/2"
    assert len(one.ledgers[0].windows) == len(two.ledgers[0].windows) == 1


def test_invalid_python_raises() -> None:
    with pytest.raises(ParseError):
        views("def f(:\n")


def test_study_gives_what_lint_and_explain_give() -> None:
    source = fixture("zero_dedented_below_guard.py")
    report, loops = study(source, Config())
    assert [d.code for d in report.diagnostics] == ["GA101"]
    assert loops == explain(source, Config())
    assert study(Source("bad.py", "x = ("), Config())[1] == []


@pytest.mark.parametrize("path", fixtures(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_verdicts_agree_with_the_rules(path: Path) -> None:
    """A fixture with a finding about the applied gradient has a window that is not the large batch's."""
    source = Source(path.name, path.read_text("utf-8"))
    report, loops = study(source, Config())
    assert (len(loops), sum(v.understood for v in loops)) == (report.loops, report.understood)
    wrong = {d.code for d in report.diagnostics} & {"GA101", "GA102", "GA201", "GA203", "GA402", "GA403"}
    verdicts = {w.verdict for v in loops for _, w in listed(v)}
    if wrong:
        assert "different" in verdicts


# --- renderers ---------------------------------------------------------------------------------------


def test_text() -> None:
    text = explain_text.render(views(PLAIN))
    assert text.splitlines()[0] == "train.py:5: for i, x in enumerate(loader):"
    assert "`opt` steps when `(i + 1) % 4 == 0` (line 8), N = 4" in text
    assert re.search(r"^    g4 +1/4 +\(g1 \+ g2 \+ g3 \+ g4\)/4 +7 backward · 9 step · 10 clear$", text, re.M)
    assert "    applied:     (g1 + g2 + g3 + g4)/4\n    large batch: (g1 + g2 + g3 + g4)/4   (the same)" in text
    assert "effective batch: 32 × 4 = 128" in text
    assert "\x1b" not in text
    assert "\x1b[" in explain_text.render(views(PLAIN), color=True)


def test_text_without_loops() -> None:
    assert explain_text.render([]).startswith("No training loop")


def test_long_windows_are_folded() -> None:
    text = explain_text.render(views(PLAIN.replace("4", "32")))
    assert "(29 more like this)" in text
    assert max(map(len, text.splitlines())) < 160


def test_json_counts_from_one() -> None:
    data = json.loads(explain_json.render(views(PLAIN)))
    assert data["version"] == 1
    (loop,) = data["loops"]
    assert loop["place"]["location"] == {"row": 5, "column": 1}
    (optimizer,) = loop["optimizers"]
    window = optimizer["windows"][0]
    assert (window["applied"], window["large_batch"], window["verdict"]) == (
        "(g1 + g2 + g3 + g4)/4", "(g1 + g2 + g3 + g4)/4", "same",
    )  # fmt: skip
    assert window["micro_batches"][3]["events"][2]["kind"] == "step"
    assert window["step"]["location"] == {"row": 9, "column": 9}
    assert loop["effective_batch"]["samples_per_rank"] == 128
    assert optimizer["variants"][0]["windows"][0]["micro_batches"][0]["fate"] == "pending"


NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter(f"{NAMESPACE}text")]


@pytest.mark.parametrize(
    "name",
    [
        "zero_dedented_below_guard.py",
        "unscale_at_first_micro_batch.py",
        "nested_micro_steps.py",
        "no_division_at_all.py",
    ],
)
def test_svg_is_well_formed_and_draws_inside_its_size(name: str) -> None:
    source = fixture(name)
    svg = explain_svg.render(explain(source, Config()), source.lines)
    root = ET.fromstring(svg)
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    assert 0 < width < 2500 and 0 < height < 4000
    for rect in root.iter(f"{NAMESPACE}rect"):
        assert float(rect.attrib.get("x", 0)) >= -1
        assert float(rect.attrib["height"]) > 0 and float(rect.attrib["width"]) > 0
    assert "prefers-color-scheme:dark" in svg


def test_svg_draws_the_fault_beside_the_large_batch() -> None:
    source = fixture("zero_dedented_below_guard.py")
    said = texts(explain_svg.render(explain(source, Config()), source.lines))
    assert said.count("44 clear") == 4
    assert {"≠ not the same", "the large batch", "g4 × 1/4", "42 step", "backward adds"} <= set(said)
    assert any(line.strip() == "loss.backward()" for line in said)


def test_svg_draws_the_applied_gradient_to_scale() -> None:
    source = fixture("no_division_at_all.py")
    svg = explain_svg.render(explain(source, Config()), source.lines)
    assert any("times too large" in text for text in texts(svg))
    tall = [float(r.attrib["height"]) for r in ET.fromstring(svg).iter(f"{NAMESPACE}rect") if r.get("class") == "grad"]
    mean = [float(r.attrib["height"]) for r in ET.fromstring(svg).iter(f"{NAMESPACE}rect") if r.get("class") == "mean"]
    assert max(tall) > 2 * max(mean)


class Tags(HTMLParser):
    """Checks that what is opened is closed, and collects attributes."""

    VOID = {"meta", "br", "rect", "path"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "onclick", "onload")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_whole_and_needs_nothing_else() -> None:
    source = fixture("zero_dedented_below_guard.py")
    page = explain_html.render(explain(source, Config()), source.lines)
    tags = Tags()
    tags.feed(page)
    assert tags.open == [] and tags.links == []
    assert "<script" not in page and "prefers-color-scheme:dark" in page
    assert "optimizer.zero_grad()  # expect: GA101" in tags.text
    assert "≠ not the same" in tags.text


def test_pictures_escape_the_file() -> None:
    nasty = PLAIN.replace("    loss = model", "    tag = '<script>alert(1)</script>&'\n    loss = model")
    found = views(nasty)
    lines = nasty.splitlines()
    for page in (explain_svg.render(found, lines), explain_html.render(found, lines)):
        assert "<script" not in page
    ET.fromstring(explain_svg.render(found, lines))


@pytest.mark.parametrize("draw", [explain_svg.render, explain_html.render])
def test_pictures_without_loops(draw: object) -> None:
    assert callable(draw)
    assert "No training loop" in draw([], [])


@given(n=st.integers(1, 40), times=st.sampled_from(["/ {n}", "* 1", "/ (2 * {n})"]), where=st.sampled_from([4, 8]))
@settings(max_examples=15, deadline=None)
def test_every_window_adds_up(n: int, times: str, where: int) -> None:
    """The weights, the formula and the verdict say the same thing, whatever N and the scaling are."""
    text = PLAIN.replace("/ 4", times.format(n=n)).replace("% 4", f"% {n}")
    if where == 4:
        text = text.replace("        opt.zero_grad()\n", "")
        text = text.replace("    loss =", f"    if i % {n} == 0:\n        opt.zero_grad()\n    loss =")
    for _, window in listed(only(text)):
        if window.step is None:
            continue
        total = sum((w.value or Fraction(0) for w in window.weights), Fraction(0))
        same = total == 1 and len({w.value for w in window.weights}) == 1 and len(window.weights) == len(window.rows)
        alone = n == 1 and len(window.weights) == 1  # nothing accumulates: a factor is the loss's own
        assert (window.verdict == "same") == (same or alone)
        assert len([r for r in window.rows if r.fate == "applied"]) == len(window.weights)


# --- the command -------------------------------------------------------------------------------------


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["explain", *args])
    captured = capsys.readouterr()
    assert isinstance(stop.value.code, int)
    return stop.value.code, captured.out, captured.err


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("train.py")
    path.write_text(PLAIN)
    return path


def test_command_formats(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    starts = {"text": "train.py:5:", "json": "{", "svg": "<svg", "html": "<!doctype html>"}
    for name, start in starts.items():
        code, out, err = call(capsys, "train.py", "--output-format", name)
        assert (code, err) == (0, "") and out.startswith(start)
        assert call(capsys, "train.py:9", "--output-format", name, "-o", f"out.{name}") == (0, "", "")
        assert Path(f"out.{name}").read_text("utf-8") == out


def test_command_at_a_line_without_a_loop(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "train.py:2")
    assert (code, out) == (2, "")
    assert err == "galint: train.py: no training loop at 2; there are loops at 5\n"


def test_command_on_invalid_python(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text("x = 1\ndef f(:\n")
    code, _, err = call(capsys, "train.py")
    assert code == 2 and err.startswith("galint: train.py:2: ")


def test_command_in_a_notebook(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, loop = PLAIN.split("for ", 1)
    cells = [{"cell_type": "code", "source": text} for text in (head, "%matplotlib inline\nfor " + loop)]
    Path("train.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}))
    code, out, _ = call(capsys, "train.ipynb")
    assert code == 0 and out.startswith("train.ipynb:cell 2:2: for i, x")
    assert "cell 2:6 step" in out
    assert call(capsys, "train.ipynb:2")[1] == call(capsys, "train.ipynb:2:4")[1] == out
    assert call(capsys, "train.ipynb:1")[0] == 2
    place = json.loads(call(capsys, "train.ipynb", "--output-format", "json")[1])["loops"][0]["place"]
    assert place["cell"] == 2 and place["location"] == {"row": 2, "column": 1}


def test_long_formulas_and_repetitions_do_not_widen_the_table() -> None:
    weight = "settings().section.subsection.weights['the_name_of_a_weight']"
    text = PLAIN.replace("/ 4\n", f"/ 4 * {weight}\n    for _ in range(9):\n        sched.step()\n")
    text = text.replace("loader =", "sched = torch.optim.lr_scheduler.StepLR(opt, 1)\nloader =", 1)
    said = explain_text.render(views(text))
    assert max(map(len, said.splitlines())) < 200
    assert said.count("9 scheduler step 3 times · 10 backward") >= 4


def _explained(folder: Path, name: str = "main.py", **files: str) -> list[LoopView]:
    (folder / "pyproject.toml").write_text("[project]\n")
    for stem, text in files.items():
        (folder / f"{stem}.py").write_text(text)
    return explain(Source.read(folder / name), Config(), folder)


def test_a_launching_file_shows_the_loop_that_it_runs(tmp_path: Path) -> None:
    engine = (
        "def train(model, loader, optimizer, n):\n"
        "    for i, x in enumerate(loader):\n"
        "        (model(x) / n).backward()\n"
        "        if (i + 1) % n == 0:\n"
        "            optimizer.step()\n"
        "            optimizer.zero_grad()\n"
    )
    main = (
        "import torch\n"
        "from engine import train\n"
        "net = torch.nn.Linear(2, 1)\n"
        "train(net, torch.utils.data.DataLoader(data), torch.optim.SGD(net.parameters()), 4)\n"
    )
    (view,) = _explained(tmp_path, main=main, engine=engine)
    assert view.file.endswith("engine.py") and view.filename == view.file
    assert (view.span.row, view.end_row, view.function) == (2, 6, "train")
    assert view.text == "for i, x in enumerate(loader):"
    assert view.ledgers[0].guard is not None and view.ledgers[0].guard.row == 4
    text = explain_text.render([view])
    assert "engine.py:5 step" in text and "(line 4), N = 4" in text


@pytest.mark.parametrize(
    ("text", "framework", "row", "said"),
    [
        (
            "import lightning as L\nclass Net(L.LightningModule):\n    def training_step(self, x, i):\n        return self.net(x)\n"
            "L.Trainer(accumulate_grad_batches=4)\n",
            "Lightning", 3, "N = 4 (`accumulate_grad_batches`, line 5)",
        ),
        (
            "from dataclasses import field\nfrom transformers import Seq2SeqTrainer, TrainingArguments\n"
            "class Mine(TrainingArguments):\n    gradient_accumulation_steps: int = field(default=16)\n"
            "Seq2SeqTrainer(args=Mine()).train()\n",
            "Hugging Face", 5, "N = 16 by default (`gradient_accumulation_steps`, line 4)",
        ),
        ("from pytorch_lightning import Trainer\nTrainer().fit(net)\n", "Lightning", 2, "1 where nothing sets it"),
        (
            "from transformers import Trainer\nclass Mine(Trainer):\n    def compute_loss(self, model, inputs):\n        return 0\n",
            "Hugging Face", 3, "`num_items_in_batch`",
        ),
        (
            "from ignite.engine import create_supervised_trainer as make\nmake(net, opt, f, gradient_accumulation_steps=n)\n",
            "Ignite", 2, "N = n",
        ),
        ("optim_wrapper = dict(type='OptimWrapper', optimizer=o, accumulative_counts=2)\n", "mmengine", 1, "N = 2"),
        (
            "from catalyst import dl\ndl.OptimizerCallback(metric_key='loss', accumulation_steps=4)\n",
            "Catalyst", 2, "nothing divides the loss by N",
        ),
        ("hook = dict(type='GradientCumulativeOptimizerHook', cumulative_iters=8)\n", "mmcv", 1, "N = 8"),
    ],
)  # fmt: skip
def test_a_frameworks_automatic_loop_is_named(tmp_path: Path, text: str, framework: str, row: int, said: str) -> None:
    (view,) = _explained(tmp_path, main=text)
    assert (view.framework, view.span.row, view.understood) == (framework, row, True)
    assert view.reason.startswith(f"{framework}'s automatic loop") and said in view.reason
    assert view.framework in explain_text.render([view]) and "not understood" not in explain_text.render([view])


@pytest.mark.parametrize(
    "text",
    [
        "import lightning as L\nclass Net(L.LightningModule):\n    automatic_optimization = False\n"
        "    def training_step(self, x, i):\n        return self.net(x)\nL.Trainer().fit(Net())\n",
        "import lightning as L\nclass Net(L.LightningModule):\n    @property\n    def automatic_optimization(self):\n"
        "        return False\n    def training_step(self, x, i):\n        return self.net(x)\n",
        "class Trainer:\n    def fit(self):\n        pass\nTrainer().fit()\n",
        "from keras import Model\nModel().fit(x, batch_size=4)\n",
    ],
)
def test_what_no_framework_runs_is_not_named(tmp_path: Path, text: str) -> None:
    assert _explained(tmp_path, main=text) == []


def test_a_compute_loss_that_ignores_the_item_count_is_warned_of(tmp_path: Path) -> None:
    head = "from transformers import Trainer\nclass Mine(Trainer):\n"
    loss = "    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):\n        return "
    for extra, body, warned in (
        ("", "criterion(model(inputs))\n", True),
        ("", "criterion(model(inputs)).sum() / num_items_in_batch\n", False),
        ("", "super().compute_loss(model, inputs)\n", False),
        ("    loss_is_scaled_for_ga = False\n", "criterion(model(inputs))\n", False),
    ):
        (view,) = _explained(tmp_path, main=head + extra + loss + body)
        assert bool(view.warnings) == warned


def test_a_loader_may_be_given_its_batch_size_by_place() -> None:
    assert str(only(PLAIN.replace("batch_size=32", "32")).batch) == "32 × 4 = 128"
    assert str(only(PLAIN.replace("data, batch_size=32", "data")).batch) != "32 × 4 = 128"


def test_a_framework_is_known_through_two_classes(tmp_path: Path) -> None:
    text = (
        "import lightning as L\nclass Base(L.LightningModule):\n    pass\nclass Middle(Base):\n    pass\n"
        "class Net(Middle):\n    def training_step(self, x, i):\n        return self.net(x)\nL.Trainer(accumulate_grad_batches=4)\n"
    )
    (view,) = _explained(tmp_path, main=text)
    assert view.framework == "Lightning" and view.span.row == 7


@pytest.mark.parametrize(
    ("head", "said"),
    [("while (batch := next(batches, None)) is not None:", "while"), ("for x in batches:", "for x in batches:")],
)
def test_a_launched_loop_is_headed_by_its_first_line(tmp_path: Path, head: str, said: str) -> None:
    engine = (
        f"def train(model, batches, optimizer):\n    i = 0\n    {head}\n        (model(batch).mean() / 4).backward()\n        i += 1\n"
        "        if i % 4 == 0:\n            optimizer.step()\n            optimizer.zero_grad()\n"
    )
    main = "import torch\nfrom engine import train\nnet = torch.nn.Linear(2, 1)\ntrain(net, iter(data), torch.optim.SGD(net.parameters()))\n"
    (view,) = _explained(tmp_path, main=main, engine=engine)
    assert view.text.startswith(said) and view.span.row == 3 and view.ledgers[0].n == 4


def test_a_scaled_step_and_its_update_are_told_in_order() -> None:
    text = (
        PLAIN.replace("    loss.backward()", "    scaler.scale(loss).backward()")
        .replace("opt.step()", "scaler.step(opt)\n        scaler.update()")
        .replace("loader =", "scaler = torch.amp.GradScaler('cuda')\nloader =", 1)
    )
    window = first(only(text))
    assert [h.kind for h in window.rows[-1].happenings] == ["forward", "backward", "step", "update", "clear"]
    assert window.verdict == "same" and not window.notes  # `scaler.step` has taken the loss scale away


def test_a_weight_that_is_asked_whether_it_is_above_zero_keeps_its_name() -> None:
    text = PLAIN.replace(".mean() / 4", ".mean() * args.a / 4\n    if args.a > 0.0:\n        print(args.a)")
    assert first(only(text)).applied == "args.a·(g1 + g2 + g3 + g4)/4"
