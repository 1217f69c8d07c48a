"""`--fix` on notebooks: the changed cell's source is rewritten, every other byte of the JSON stays."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from galint.cli.app import cli
from galint.fixes.cells import CellDraft, cell_sources, draft
from galint.fixes.textedit import Change, Lines

SETUP = ["%matplotlib inline\n", "import torch\n", "from torch import nn"]
LOOP = [
    "!nvidia-smi\n",
    "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n",
    "for epoch in range(3):\n",
    "    for i in range(4 * 8):\n",
    "        x, y = next(loader)\n",
    "        loss = loss_fn(model(x), y)  # caf\u00e9\n",
    "        loss.backward()\n",
    "        if (i + 1) % 4 == 0:\n",
    "            opt.step()\n",
    "            opt.zero_grad()",
]
FIXED = [line.replace("loss.backward()", "(loss / 4).backward()") for line in LOOP]


def book(loop: list[str] | str = LOOP, setup: list[str] | str = SETUP) -> dict[str, Any]:
    output = {"data": {"text/plain": ["loss.backward()\n"]}, "output_type": "display_data", "metadata": {}}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Run `loss.backward()`"]},
        {"source": setup, "cell_type": "code", "metadata": {"tags": ["b", "a"]}, "outputs": [], "execution_count": 1},
        {"cell_type": "code", "execution_count": 2, "metadata": {}, "outputs": [output], "source": loop},
    ]
    return {"cells": cells, "nbformat": 4, "metadata": {"z": 1.0, "a": 1e3}, "nbformat_minor": 5}


LAYOUTS = {
    "as Jupyter writes it": (lambda b: json.dumps(b, indent=1, ensure_ascii=False) + "\n"),
    "one line, no end": (lambda b: json.dumps(b)),
    "escaped, four deep": (lambda b: json.dumps(b, indent=4) + "\n\n"),
    "tabs and CRLF": (lambda b: (json.dumps(b, indent="\t", ensure_ascii=False) + "\n").replace("\n", "\r\n")),
    "byte order mark": (lambda b: "\ufeff" + json.dumps(b, indent=2, ensure_ascii=False) + "\n"),
    "no spaces": (lambda b: json.dumps(b, separators=(",", ":"))),
}


def run(*args: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["--isolated", "--no-cache", *args], input=given, standalone_mode=False)


def code(result: Result) -> Any:
    if result.exception is not None:
        raise result.exception
    return result.return_value


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("joined", [False, True], ids=["list", "string"])
def test_only_the_changed_source_differs(folder: Path, layout: str, joined: bool) -> None:
    def written(loop: list[str]) -> bytes:
        return LAYOUTS[layout](book("".join(loop) if joined else loop)).encode()

    (folder / "book.ipynb").write_bytes(written(LOOP))
    result = run("--fix", "--show-fixes", "book.ipynb")
    assert code(result) == 0, result.output
    assert (folder / "book.ipynb").read_bytes() == written(FIXED)
    assert "book.ipynb:cell 2:7: GA201 unscaled-loss" in result.stderr
    assert os.listdir(folder) == ["book.ipynb"]
    before = (folder / "book.ipynb").stat().st_mtime_ns
    assert code(run("--fix", "book.ipynb")) == 0
    assert (folder / "book.ipynb").stat().st_mtime_ns == before


def test_unknown_escapes_and_duplicate_keys_stay(folder: Path) -> None:
    text = LAYOUTS["as Jupyter writes it"](book())
    odd = text.replace('"# Run `loss', '"# \\u0052un\\/ `loss').replace('"nbformat":', '"nbformat":  3, "nbformat":')
    odd = odd.replace('"opt = torch', '"\\u006fpt = torch')
    (folder / "book.ipynb").write_text(odd)
    run("--fix", "book.ipynb")
    assert (folder / "book.ipynb").read_text() == odd.replace("  loss.backward()\\n", "  (loss / 4).backward()\\n")


def test_diff_shows_cells_and_writes_nothing(folder: Path) -> None:
    text = LAYOUTS["as Jupyter writes it"](book())
    (folder / "book.ipynb").write_text(text)
    result = run("--diff", "book.ipynb")
    assert code(result) == 1
    assert (folder / "book.ipynb").read_text() == text
    assert result.stdout.startswith("--- book.ipynb:cell 2\n+++ book.ipynb:cell 2\n@@ ")
    assert "-        loss.backward()\n+        (loss / 4).backward()\n" in result.stdout


def test_standard_input_comes_out_fixed(folder: Path) -> None:
    text = LAYOUTS["escaped, four deep"](book()).encode()
    result = run("--fix", "--stdin-filename", "book.ipynb", "-", given=text)
    assert code(result) == 0
    assert result.stdout_bytes == LAYOUTS["escaped, four deep"](book(FIXED)).encode()


def test_a_fix_may_reach_into_several_cells(folder: Path) -> None:
    """The import goes to the imports' cell, the context to the loop's."""
    setup = ["import torch\n", "from torch.nn.parallel import DistributedDataParallel\n", "\n", "%cd ..\n"]
    loop = [
        "%%time\n",
        "model = DistributedDataParallel(model)\n",
        "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        "for i in range(4 * 8):\n",
        "    loss = loss_fn(model(next(loader))) / 4\n",
        "    loss.backward()\n",
        "    if (i + 1) % 4 == 0:\n",
        "        opt.step()\n",
        "        opt.zero_grad()\n",
    ]
    (folder / "book.ipynb").write_text(LAYOUTS["as Jupyter writes it"](book(loop, setup)))
    result = run("--fix", "--show-fixes", "book.ipynb")
    assert code(result) == 0, result.output
    assert "fixed 1 finding" in result.stderr and "cell 2:6: GA601" in result.stderr
    setup.insert(0, "from contextlib import nullcontext\n")
    setup.insert(1, "\n")
    loop[4:6] = [
        "    with nullcontext() if (i + 1) % 4 == 0 else model.no_sync():\n",
        "        loss = loss_fn(model(next(loader))) / 4\n",
        "        loss.backward()\n",
    ]
    assert json.loads((folder / "book.ipynb").read_text()) == book(loop, setup)


def test_lines_behind_the_last_one_stay_in_their_cell(folder: Path) -> None:
    """What is put behind a loop's last line belongs to it, not to the next cell."""
    cells = [line.replace("loss.backward()", "(loss / 4).backward()") for line in LOOP[:-1]]
    cells[-1] = cells[-1].rstrip("\n")
    whole = book(cells)
    whole["cells"].append({"cell_type": "code", "source": ["%time\n", "print(loss)"], "metadata": {}, "outputs": []})
    (folder / "book.ipynb").write_text(json.dumps(whole))
    assert code(run("--fix", "book.ipynb")) == 0
    found = json.loads((folder / "book.ipynb").read_text())["cells"]
    assert found[2]["source"] == [*cells[:-1], cells[-1] + "\n", "            opt.zero_grad()"]
    assert found[3:] == whole["cells"][3:]


def test_magics_are_never_rewritten() -> None:
    made = draft(json.dumps(book(["%cd ..\n", "x = 1\n", "y = !ls"])).encode(), "book.ipynb")
    assert isinstance(made, CellDraft)
    text = made.book.source.text
    start = text.index("x = 1")
    assert made.takes([Change(start, start + 5, "x = 2")])
    assert not made.takes([Change(start - 1, start + 5, "; x = 2")])
    assert not made.takes([Change(text.rindex("pass"), text.rindex("pass") + 4, "z")])
    assert made.takes([Change(text.rindex("pass"), text.rindex("pass"), "z = 3\n")])
    made.make([Change(text.rindex("pass"), text.rindex("pass"), "z = 3\n"), Change(start, start + 5, "x = 2")])
    assert cell_sources(made.data)[1] == "%cd ..\nx = 2\nz = 3\ny = !ls"
    assert [number for number, _, _ in made.differences()] == [2]


def test_a_cell_with_its_own_line_ends_keeps_them(folder: Path) -> None:
    loop = "".join(LOOP).replace("\n", "\r\n")
    (folder / "book.ipynb").write_text(json.dumps(book(loop)))
    run("--fix", "book.ipynb")
    wanted = "".join(FIXED).replace("\n", "\r\n")
    assert json.loads((folder / "book.ipynb").read_text())["cells"][2]["source"] == wanted


def test_an_old_notebook_is_written_in_its_form(folder: Path) -> None:
    cells = [{"cell_type": "code", "input": ["import torch\n"], "language": "python"}]
    cells += [{"cell_type": "code", "input": LOOP, "language": "python"}]
    old = {"metadata": {}, "nbformat": 3, "worksheets": [{"cells": cells, "metadata": {}}]}
    (folder / "old.ipynb").write_text(json.dumps(old, indent=1))
    assert code(run("--fix", "old.ipynb")) == 0
    cells[1]["input"] = FIXED
    assert (folder / "old.ipynb").read_text() == json.dumps(old, indent=1)


def test_ignores_are_written_into_cells(folder: Path) -> None:
    (folder / "book.ipynb").write_text(LAYOUTS["as Jupyter writes it"](book()))
    result = run("--add-ignore", "book.ipynb")
    assert code(result) == 0
    assert "silenced 1 finding" in result.stderr
    loop = [line.replace("backward()", "backward()  # galint: ignore[GA201]") for line in LOOP]
    assert (folder / "book.ipynb").read_text() == LAYOUTS["as Jupyter writes it"](book(loop))
    assert code(run("book.ipynb")) == 0


def test_mode_link_and_read_only_as_for_scripts(folder: Path) -> None:
    target = folder / "book.ipynb"
    target.write_text(json.dumps(book()))
    target.chmod(0o640)
    (folder / "link.ipynb").symlink_to(target)
    assert code(run("--fix", "link.ipynb")) == 0
    assert (folder / "link.ipynb").is_symlink() and stat.S_IMODE(target.stat().st_mode) == 0o640
    assert json.loads(target.read_text()) == book(FIXED)
    target.write_text(json.dumps(book()))
    target.chmod(0o444)
    result = run("--fix", "book.ipynb")
    assert code(result) == 2 and "read-only" in result.stderr
    assert json.loads(target.read_text()) == book()


lines = st.lists(st.text('ab\n\u00e9"\\ ', max_size=6), min_size=1, max_size=4)


@given(
    st.lists(lines, min_size=1, max_size=4),
    st.sampled_from(sorted(LAYOUTS)),
    st.booleans(),
    st.data(),
)
def test_changing_one_cell_leaves_the_bytes_of_all_others(
    sources: list[list[str]], layout: str, joined: bool, drawn: st.DataObject
) -> None:
    """Whatever the cells say: the notebook is what writing it with the other source would have given."""

    def written(texts: list[list[str]]) -> bytes:
        whole = book("".join(texts[0]) if joined else texts[0])
        for text in texts[1:]:
            whole["cells"].append({"metadata": {}, "source": text, "cell_type": "code", "outputs": []})
        return LAYOUTS[layout](whole).encode()

    def split(text: str) -> list[str]:
        return [line for line in re.split(r"(?<=\n)", text) if line]

    texts = [split("".join(parts)) or ["x"] for parts in sources]
    made = draft(written(texts), "book.ipynb")
    assert made is not None
    index = drawn.draw(st.integers(0, len(texts) - 1))
    cell = made.book.cells[index + 1]
    row = drawn.draw(st.integers(0, len(cell.lines) - 1))
    lines = Lines(made.book.source.text)
    place = lines.offset(cell.first_row + row, 0)
    changes = [Change(place, place, "y")]
    whole = "".join(texts[index]).split("\n")
    if not made.takes(changes):
        return  # in a text of another cell, say
    made.make(changes)
    whole[row] = f"y{whole[row]}"
    texts[index] = split("\n".join(whole))
    now = written(texts)
    assert json.loads(made.data.decode("utf-8-sig")) == json.loads(now.decode("utf-8-sig"))
    assert made.data == now
