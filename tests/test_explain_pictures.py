"""What the pictures of `galint explain` show of unusual windows: SVG, HTML and text say the same of each."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html import unescape
from pathlib import Path

import pytest
from test_explain import PLAIN, texts, views

from galint.config import Config
from galint.engine import explain
from galint.render import explain_html, explain_svg, explain_text
from galint.source import Source

SUMMED = PLAIN.replace(" / 4", "")
NO_SYNC = """\
import torch
from contextlib import nullcontext
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i, x in enumerate(loader):
    with nullcontext() if (i + 1) % 4 == 0 else model.no_sync():
        loss = model(x).mean() / 4
        loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
"""
AROUND = """\
import torch
model = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for update in range(9):
    opt.zero_grad()
    for x in next(batches).chunk(4):
        (model(x).mean() / 4).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
"""
NESTED = "def f(loader):\n    for x in loader:\n        weird(x).backward()\n        magic(opt, x)\n"

SHOWN: dict[str, tuple[str, set[str], set[str], set[str]]] = {
    # text of the file, words in the picture, words in the page beside it, words in the text
    "not understood": (NESTED + PLAIN, {"not understood"}, {"not understood"}, {"not understood"}),
    "no step": (
        PLAIN.replace("for i, x in enumerate(loader)", "k = 0\nfor x in loader").replace(
            "(i + 1) % 4 == 0:", "(k + 1) % 4 == 0:\n        k += 1"
        ),
        {"no optimizer step ever runs"},
        {"no optimizer step ever runs"},
        {"no optimizer step ever runs"},
    ),
    "a window of 32": (PLAIN.replace("4", "32"), {"… 29", "alike"}, {"… 29"}, {"(29 more like this)"}),
    "synchronisation": (NO_SYNC, {"ranks", "no sync", "all-reduce"}, {"no sync", "all-reduce"}, set()),
    "never cleared": (PLAIN.replace("        opt.zero_grad()\n", ""), {"4 stale"}, {"4 stale"}, set()),
    "8 summed": (
        SUMMED.replace("4", "8"),
        {"8 times too large, not to scale"},
        {"8 times too large, not to scale"},
        {"large batch: (g1 + g2 + … + g8)/8"},
    ),
    "2 summed": (SUMMED.replace("4", "2"), {"2 times too large"}, {"2 times too large"}, set()),
    "around the window": (
        AROUND,
        {"before all", "5 clear", "after all", "8 clip", "9 step"},
        {"before all", "after all"},
        {"before: 5 clear", "after:  8 clip (4 micro-batches) · 9 step"},
    ),
    "a long loop": (PLAIN.replace("    loss =", "    print(i)\n" * 40 + "    loss ="), {"⋮"}, {"⋮"}, set()),
}


@pytest.mark.parametrize(("text", "drawn", "written", "told"), SHOWN.values(), ids=SHOWN.keys())
def test_unusual_windows(text: str, drawn: set[str], written: set[str], told: set[str]) -> None:
    found, lines = views(text), text.splitlines()
    svg = "\n".join(texts(explain_svg.render(found, lines)))
    page = unescape(re.sub(r"<[^>]*>", " ", explain_html.render(found, lines).replace("</text>", "\n")))
    said = explain_text.render(found)
    assert [words for words in drawn if words not in svg] == []
    assert [words for words in written if words not in page] == []
    assert [words for words in told if words not in said] == []


def test_thin_blocks_carry_no_words() -> None:
    """Of 16 micro-batches each block is too low for a name in it, and the picture still stands for each."""
    text = PLAIN.replace("4", "16")
    svg = explain_svg.render(views(text), text.splitlines())
    words = [node.get("class") for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert not {"onblock", "onmean"} & set(words)
    kinds = [rect.get("class") for rect in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")]
    assert kinds.count("mean") == 16


def test_a_loop_of_another_file_has_no_lines_beside_it(tmp_path: Path) -> None:
    """The explained file's rows would stand beside the other file's loop."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "engine.py").write_text(
        "def train(model, loader, optimizer):\n    for i, x in enumerate(loader):\n        (model(x) / 4).backward()\n"
        "        if (i + 1) % 4 == 0:\n            optimizer.step()\n            optimizer.zero_grad()\n"
    )
    main = "import torch\nfrom engine import train\nnet = torch.nn.Linear(2, 1)\ntrain(net, batches, torch.optim.SGD(net.parameters()))\n"
    (tmp_path / "main.py").write_text(main)
    found = explain(Source.read(tmp_path / "main.py"), Config(), tmp_path)
    drawn = texts(explain_svg.render(found, main.splitlines()))
    assert "engine.py:5 step" in drawn
    assert not [line for line in drawn if "import train" in line]
    assert '<pre class="lines"></pre>' in explain_html.render(found, main.splitlines())


def test_helpers_of_another_file_are_no_lines_of_this_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "helper.py").write_text(
        "\n\n\ndef apply(optimizer):\n    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    main = PLAIN.replace("        opt.step()\n        opt.zero_grad()\n", "        apply(opt)\n")
    main = main.replace("import torch\n", "import torch\nfrom helper import apply\n")
    (tmp_path / "main.py").write_text(main)
    found = explain(Source.read(tmp_path / "main.py"), Config(), tmp_path)
    page = explain_html.render(found, main.splitlines())
    marked = re.findall(r'<span class="on (\w+)[^"]*"><b>(\d+)</b>', page)
    assert ("step", "5") not in marked and {("backward", "8"), ("step", "10")} <= set(marked)
