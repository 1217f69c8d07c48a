"""Findings that need two files: what one file's run shows in the files it imports."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from galint.analysis import analyse
from galint.checks.view import View
from galint.cli.app import cli
from galint.config import Config
from galint.run.project import STRIDE, Project, imports, load, located
from galint.source import Span
from galint.syntax import parse

LAUNCH = """\
import argparse

import torch
from torch.nn.parallel import DistributedDataParallel
from engine import train_one_epoch
from nets import Net


def main(args, loader):
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        train_one_epoch(model, loader, optimizer, torch.nn.CrossEntropyLoss(), args.accum)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    main(parser.parse_args(), torch.utils.data.DataLoader(range(100), batch_size=4))
"""

ENGINE = """\
def train_one_epoch(model, loader, optimizer, criterion, accum):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / accum
        loss.backward()
        if (i + 1) % accum == 0 or (i + 1) == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

NETS = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten())

    def forward(self, x):
        return self.body(x)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that wraps and drives, an engine with the loop, a file of models."""
    for name, text in (("main.py", LAUNCH), ("engine.py", ENGINE), ("nets.py", NETS)):
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(*paths: str) -> set[str]:
    """The findings of a run as `file:line code`."""
    result = CliRunner().invoke(cli, ["check", "--output-format", "concise", "--select", "GA5,GA6", *paths])
    assert result.exit_code in {0, 1}, result.output
    lines = [line for line in result.output.splitlines() if ".py:" in line]
    return {f"{':'.join(line.split(':')[:2])} {line.split('GA')[1][:3]}" for line in lines}


def test_a_wrap_in_the_launching_file_reaches_the_loop(project: Path) -> None:
    assert found(".") == {"engine.py:5 601", "engine.py:3 501"}
    assert found("main.py", "engine.py") == {"engine.py:5 601", "engine.py:3 501"}


def test_a_second_run_from_the_cache_shows_the_same(project: Path) -> None:
    assert found(".") == found(".") == {"engine.py:5 601", "engine.py:3 501"}


def test_without_the_launching_file_nothing_is_known_of_the_wrap(project: Path) -> None:
    (project / "main.py").unlink()
    assert found(".") == set()


def test_an_ignore_comment_in_the_file_of_the_loop_holds(project: Path) -> None:
    text = ENGINE.replace("loss.backward()", "loss.backward()  # galint: ignore[GA601]")
    (project / "engine.py").write_text(text)
    assert found(".") == {"engine.py:3 501"}


# --- what an import means ----------------------------------------------------------------------

LOOP = """\
import torch
from torch import nn
{imports}
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(8):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(net(x), x[:, :1])
    {body}
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
DIVIDE = "def divide_loss(loss, accum):\n    return loss / accum\n\n\ndef run_backward(loss, accum=4):\n    (loss / accum).backward()\n"
TRAINER = """\
class Accum:
    every = 4

    def __init__(self, n=4):
        self.n = n

    def backward(self, loss):
        (loss / self.n).backward()


class Meter:
    def __init__(self, n):
        self.n = n

    def update(self, n):
        return n
"""


def applied(root: Path, files: dict[str, str], main: str = "main.py") -> list[str]:
    """The gradients that the steps of a project's main file apply, as formulas."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    analysis = analyse(parse((root / main).read_text()), Config(), root, root / main)
    assert analysis is not None
    out: list[str] = []
    for entry in analysis.exploration.entries:
        view = View(entry.base, analysis.static, analysis.program)
        out += [view.applied(step) for ledger in view.ledgers for step in view.steps(ledger)]
    return out


QUARTERS = ["(g1 + g2 + g3 + g4)/4"] * 2


@pytest.mark.parametrize(
    ("imports", "body", "others"),
    [
        ("from steps import divide_loss", "divide_loss(loss, 4).backward()", {"steps.py": DIVIDE}),
        ("import steps", "steps.divide_loss(loss, 4).backward()", {"steps.py": DIVIDE}),
        ("import steps as s", "s.run_backward(loss)", {"steps.py": DIVIDE}),
        ("from steps import run_backward as go", "go(loss, accum=4)", {"steps.py": DIVIDE}),
        ("from steps import *", "run_backward(loss)", {"steps.py": DIVIDE}),
        ("from tools.steps import divide_loss", "divide_loss(loss, 4).backward()", {"tools/steps.py": DIVIDE}),
        ("from tools import steps", "steps.run_backward(loss)", {"tools/__init__.py": "", "tools/steps.py": DIVIDE}),
        ("from tools import run_backward", "run_backward(loss)", {"tools/__init__.py": "from .steps import run_backward  # accum\n", "tools/steps.py": DIVIDE}),
        ("from lib.steps import run_backward", "run_backward(loss)", {"src/lib/steps.py": DIVIDE}),
        ("from parts import Accum", "Accum().backward(loss)", {"parts.py": TRAINER}),
        ("from parts import Accum", "Accum(4).backward(loss)", {"parts.py": TRAINER}),
        ("from parts import Accum", "(loss / Accum.every).backward()", {"parts.py": TRAINER}),
        ("from parts import Accum, Meter", "meter = Meter(3); meter.update(loss.item()); Accum().backward(loss)", {"parts.py": TRAINER}),
        ("import settings", "(loss / settings.accum).backward()", {"settings.py": "accum = 4\n"}),
        ("from a import run_backward", "run_backward(loss)", {"a.py": "from b import *\naccum = 1\n", "b.py": "import a\n" + DIVIDE}),
    ],
)  # fmt: skip
def test_an_import_of_the_project_is_followed(tmp_path: Path, imports: str, body: str, others: dict[str, str]) -> None:
    assert applied(tmp_path, {"main.py": LOOP.format(imports=imports, body=body), **others}) == QUARTERS


def test_an_import_inside_a_function_and_a_relative_one_are_followed(tmp_path: Path) -> None:
    main = "def go(loss):\n    from .parts import divide_loss\n    from ..deep import scale\n    scale(divide_loss(loss, 2)).backward()\n"
    files = {
        "pkg/sub/main.py": main + LOOP.format(imports="", body="go(loss)"),
        "pkg/sub/parts.py": DIVIDE,
        "pkg/deep.py": "def scale(loss, accum=2):\n    return loss / accum\n",
    }
    assert applied(tmp_path, files, "pkg/sub/main.py") == QUARTERS


def test_what_a_followed_file_does_for_itself_does_not_run(tmp_path: Path) -> None:
    own = (
        DIVIDE + "model.backward()\nfor i in range(3):\n    accum = 9\n"
        "if __name__ == '__main__':\n    accum = 7\nif accum > 2:\n    raise ValueError(accum)\naccum = 4\n"
    )
    main = LOOP.format(imports="from steps import accum, divide_loss", body="divide_loss(loss, accum).backward()")
    assert applied(tmp_path, {"main.py": main, "steps.py": "accum = 5\n" + own}) == QUARTERS


def test_private_names_do_not_come_with_a_star(tmp_path: Path) -> None:
    main = LOOP.format(imports="_n = 4\nfrom settings import *", body="(loss / _n).backward()")
    assert applied(tmp_path, {"main.py": main, "settings.py": "_n = 2\naccum = 3\n"}) == QUARTERS


# --- which file an import means ----------------------------------------------------------------


def linked(root: Path, *files: str) -> Project:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("accum = 1\n")
    return Project(root, root / "app" / "main.py", parse)


def test_the_nearest_file_of_a_name_is_meant(tmp_path: Path) -> None:
    project = linked(
        tmp_path, "app/main.py", "app/near.py", "near.py", "far.py", "src/lib.py", "pkg/__init__.py", "pkg/x.py"
    )
    main = project.main
    assert project.resolve("near", 0, main) == tmp_path / "app/near.py"
    assert project.resolve("far", 0, main) == tmp_path / "far.py"
    assert project.resolve("lib", 0, main) == tmp_path / "src/lib.py"
    assert project.resolve("pkg", 0, main) == tmp_path / "pkg/__init__.py"
    assert project.resolve("pkg.x", 0, main) == tmp_path / "pkg/x.py"
    assert project.resolve("pkg.y", 0, main) is None
    assert project.resolve("", 0, main) is None
    assert tmp_path / "pkg/y.py" in project.touched, "a file that appears later changes the meaning"


def test_dots_count_folders_upwards(tmp_path: Path) -> None:
    project = linked(tmp_path, "app/main.py", "app/__init__.py", "app/near.py", "near.py", "sub/deep.py")
    main = project.main
    assert project.resolve("near", 1, main) == tmp_path / "app/near.py"
    assert project.resolve("near", 2, main) == tmp_path / "near.py"
    assert project.resolve("", 1, main) == tmp_path / "app/__init__.py"
    assert project.resolve("sub.deep", 2, main) == tmp_path / "sub/deep.py"
    assert project.targets("", 1, ("near", "gone"), main) == [tmp_path / "app/__init__.py", tmp_path / "app/near.py"]


def test_frameworks_are_documented_and_not_followed(tmp_path: Path) -> None:
    project = linked(tmp_path, "app/main.py", "torch/optim.py", "accelerate.py")
    assert project.resolve("torch.optim", 0, project.main) is None
    assert project.resolve("accelerate", 0, project.main) is None
    assert project.resolve("accelerate", 2, project.main) == tmp_path / "accelerate.py"


def test_nothing_outside_the_root_is_meant(tmp_path: Path) -> None:
    root = tmp_path / "root"
    project = linked(root, "app/main.py")
    (tmp_path / "secret.py").write_text("accum = 1\n")
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    (root / "ring.py").symlink_to(root / "ring.py")
    (root / "own.py").symlink_to(root / "app" / "main.py")
    assert project.resolve("secret", 0, project.main) is None
    assert project.resolve("secret", 3, project.main) is None
    assert project.resolve("link", 0, project.main) is None
    assert project.resolve("ring", 0, project.main) is None
    assert project.resolve("own", 0, project.main) == root / "own.py"


def test_what_cannot_be_followed_is_said(tmp_path: Path) -> None:
    project = linked(tmp_path, "app/main.py", "fine.py", "locked.py")
    (tmp_path / "broken.py").write_text("accum = (\n")
    (tmp_path / "bytes.py").write_bytes(b"accum = '\xff'\n")
    (tmp_path / "large.py").write_text("accum = 1\n" + "#" * 600_000)
    (tmp_path / "other.py").write_text("nothing = 1\n")
    project.collect(parse("import fine, broken, bytes, large, other, gone\n"))
    assert [unit.path for unit in project.order] == [tmp_path / "fine.py"]
    reasons = {Path(path).name: reason for path, reason in project.missing.items()}
    assert reasons.pop("broken.py").startswith("is not valid Python: ")
    assert reasons == {"bytes.py": "cannot be read", "large.py": "the file is too large to follow"}
    assert load(tmp_path / "gone.py", parse) == "cannot be read: No such file or directory"


def test_a_project_follows_a_bounded_number_of_files(tmp_path: Path) -> None:
    project = linked(tmp_path, "app/main.py", *(f"m{k:02}.py" for k in range(30)))
    project.collect(parse("import " + ", ".join(f"m{k:02}" for k in range(30)) + "\n"))
    assert len(project.units) == 24
    assert list(project.missing.values()) == ["too many files are imported"] * 6


def test_a_place_in_a_followed_file_names_that_file(tmp_path: Path) -> None:
    project = linked(tmp_path, "app/main.py", "fine.py")
    project.collect(parse("import fine\n"))
    [unit] = project.order
    span = unit.program.body[0].span
    assert span.row == unit.index * STRIDE + 1 == span.end_row
    assert located(span) == (tmp_path / "fine.py", Span(1, span.column, 1, span.end_column))
    assert located(Span(3, 0, 4, 1)) == (None, Span(3, 0, 4, 1))


def test_imports_are_found_wherever_they_stand() -> None:
    text = (
        "import a.b, c as d\nfrom .m import x as y, z\nfrom n import *\ndef f():\n    if q:\n        import deep\n"
        "    try:\n        from t import u\n    except E:\n        import v\n    match w:\n        case 1:\n            import k\n"
    )
    assert imports(parse(text)) == [
        ("a.b", 0, ()), ("c", 0, ()), ("deep", 0, ()), ("k", 0, ()), ("m", 1, ("x", "z")), ("n", 0, ()), ("t", 0, ("u",)), ("v", 0, ()),
    ]  # fmt: skip
