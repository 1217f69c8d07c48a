"""The command line with a stand-in engine: every flag, exit codes, streams, and files that cannot be linted."""

from __future__ import annotations

import importlib
import io
import json
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from galint.cli import main
from galint.config import Config
from galint.diagnostic import Diagnostic, NotUnderstood, Report
from galint.registry import RULES
from galint.source import Source, Span

HEAD = "import torch; x.backward(); x.step()\n"
"""Lets a file pass the byte pre-filter."""


@dataclass
class Result:
    """What one call gave."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


def fake_lint(source: Source, config: Config, root: Path | None = None) -> Report:
    """Reports rule CODE on each line `# bad: CODE`; crashes, or does not understand, on demand."""
    report = Report(files=1)
    selected = config.codes_for(source.path)
    for row, line in enumerate(source.lines, 1):
        if "# crash" in line:
            raise KeyError("lost\nkey")
        if "# odd" in line:
            report.loops += 1
            report.not_understood.append(NotUnderstood(source.filename, Span(row, 0, row, 1), "it is odd"))
        if "# bad: " in line:
            rule = next(rule for rule in RULES if rule.code == line.split("# bad: ")[1][:5])
            report.loops += 1
            report.understood += 1
            if rule.code in selected:
                span = Span(row, 0, row, len(line))
                report.diagnostics.append(
                    Diagnostic(rule.code, rule.name, rule.severity, "it is bad", source.filename, span)
                )
    return report


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls `galint ARGS` in an empty folder with the stand-in engine; `stdin=` is what it reads."""
    engine = types.ModuleType("galint.engine")
    engine.__dict__.update(vars(importlib.import_module("galint.engine")))
    engine.lint = fake_lint  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "galint.engine", engine)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def call(*args: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as stop:
            main(args)
        captured = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Result(stop.value.code, captured.out, captured.err)

    return call


def write(name: str, *lines: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return path


# --- paths and exit codes ----------------------------------------------------------------------


def test_no_arguments_check_the_current_folder(run: Run) -> None:
    write("pkg/a.py", "x  # bad: GA101")
    for args in ((), (".",), ("check",), ("check", "pkg")):
        result = run(*args)
        assert (result.code, result.err) == (1, "") and "pkg/a.py:2:1" in result.out and "x  # bad: GA101" in result.out


def test_a_clean_tree_exits_with_0(run: Run) -> None:
    write("a.py")
    assert run() == Result(0, "No findings in 1 file.\n", "")


def test_notes_are_shown_but_do_not_fail(run: Run) -> None:
    write("a.py", "x  # bad: GA403")
    result = run("a.py")
    assert result.code == 0 and "note[GA403]" in result.out
    assert run("a.py", "--fail-on", "note").code == 1
    write("a.py", "x  # bad: GA601")
    assert (run("a.py").code, run("a.py", "--fail-on", "error").code) == (1, 0)


def test_exit_zero_forgives_findings_but_not_problems(run: Run) -> None:
    write("a.py", "x  # bad: GA101")
    assert run("--exit-zero").code == 0
    Path("b.py").write_bytes(HEAD.encode() + b"'\xff'")
    assert run("--exit-zero").code == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nope.py",), "galint: nope.py: no such file or folder"),
        (("--select", "GA1O1"), "galint: `--select`: unknown rule `GA1O1`; did you mean `GA101`?"),
        (("--ignore", "zero-grad"), "unknown rule `zero-grad`; did you mean `zero-grad-in-window`?"),
        (("--selct", "ALL"), "galint: No such option '--selct'"),
        (("--output-format", "jsn"), "galint: Invalid value for '--output-format'"),
        (("--fail-on", "never"), "galint: Invalid value for '--fail-on'"),
        (("--jobs", "0"), "galint: Invalid value for '--jobs'"),
        (("--config", "no.toml"), "galint: --config: no.toml: no such file"),
        (("--config", "fail_on=error"), "galint: --config: unknown setting `fail_on`; did you mean `fail-on`?"),
        (("-", "a.py"), "galint: `-` stands alone"),
        ((".", "--stdin-filename", "a.py"), "galint: --stdin-filename needs `-`"),
        (("--baseline", "none.json"), "none.json: cannot be read"),
        (("rule",), "galint: name one rule, or give --all"),
        (("rule", "GA1O1"), "galint: unknown rule `GA1O1`; did you mean `GA101`?"),
        (("explain", "nope.py"), "galint: nope.py: no such file"),
        (("clean", "nope"), "galint: nope: no such folder"),
        (("-o", "no/folder/x"), "cannot be written"),
    ],
)
def test_a_mistake_in_the_call_is_one_line_and_exit_2(run: Run, args: tuple[str, ...], message: str) -> None:
    result = run(*args)
    assert result.code == 2 and result.out == ""
    assert message in result.err and result.err.count("\n") == 1


def test_version_and_help(run: Run) -> None:
    assert run("--version").out.startswith("galint 0.")
    assert run("-V").code == 0
    for args in (("--help",), ("check", "-h"), ("rule", "--help"), ("explain", "--help"), ("clean", "--help")):
        result = run(*args)
        assert result.code == 0 and "Usage: galint" in result.out


# --- standard input ----------------------------------------------------------------------------


def test_standard_input_is_linted_under_the_given_name(run: Run) -> None:
    Path("galint.toml").write_text("per-file-ignores = {'old/*' = ['GA101']}\n")
    text = (HEAD + "x  # bad: GA101\n").encode()
    result = run("-", "--stdin-filename", "new/train.py", stdin=text)
    assert result.code == 1 and "new/train.py:2:1" in result.out and "2 | x  # bad: GA101" in result.out
    assert run("-", "--stdin-filename", "old/train.py", stdin=text).code == 0
    assert run("-", stdin=text).out.splitlines()[1] == "  --> stdin.py:2:1"
    assert run("-", stdin=b"x = 1\n").code == 0


def test_standard_input_that_does_not_decode_is_a_problem(run: Run) -> None:
    result = run("-", stdin=HEAD.encode() + b"'\xff'\n")
    assert (result.code, result.err) == (2, "galint: stdin.py: line 2 is not valid utf-8\n")


def test_force_exclude_holds_for_standard_input(run: Run) -> None:
    text = (HEAD + "x  # bad: GA101\n").encode()
    args = ("-", "--stdin-filename", "gen/a.py", "--extend-exclude", "gen")
    assert run(*args, stdin=text).code == 1
    assert run(*args, "--force-exclude", stdin=text).code == 0


# --- selection and configuration ---------------------------------------------------------------


def test_select_ignore_and_extend_select(run: Run) -> None:
    write("a.py", "x  # bad: GA101", "y  # bad: GA201", "z  # bad: GA601")

    def codes(*args: str) -> list[str]:
        return [d["code"] for d in json.loads(run("--output-format", "json", *args).out)["diagnostics"]]

    assert codes() == codes("--select", "ALL") == ["GA101", "GA201", "GA601"]
    assert (
        codes("--select", "GA1,ddp-without-no-sync")
        == codes("--select", "GA1", "--select", "GA601")
        == ["GA101", "GA601"]
    )
    assert codes("--ignore", "GA2") == ["GA101", "GA601"]
    Path("galint.toml").write_text("select = ['GA1']\n")
    assert codes("--extend-select", "unscaled-loss") == ["GA101", "GA201"]
    assert codes("--isolated") == ["GA101", "GA201", "GA601"]
    assert codes("--config", 'select=["GA6"]') == ["GA601"]
    Path("ci.toml").write_text("select = ['GA2']\n")
    assert codes("--config", "ci.toml") == ["GA201"]
    assert run("--config", "ci.toml", "--isolated").code == 2


def test_severity_and_fail_on_come_from_the_configuration(run: Run) -> None:
    write("a.py", "x  # bad: GA403")
    Path("pyproject.toml").write_text("[tool.galint]\nseverity = {GA403 = 'error'}\n")
    result = run()
    assert result.code == 1 and "error[GA403]" in result.out
    Path("pyproject.toml").write_text("[tool.galint]\nfail-on = 'note'\n")
    assert run().code == 1
    assert run("--fail-on", "error").code == 0


def test_a_broken_configuration_stops_the_run(run: Run) -> None:
    write("a.py", "x  # bad: GA101")
    Path("galint.toml").write_text("slect = []\n")
    assert run() == Result(2, "", "galint: galint.toml: unknown setting `slect`; did you mean `select`?\n")


def test_excludes_and_gitignore_flags(run: Run) -> None:
    for name in ("a.py", "gen/b.py", "build/c.py", "ignored.py"):
        write(name, "x")
    Path(".git").mkdir()
    Path(".gitignore").write_text("ignored.py\n")

    def files(*args: str) -> list[str]:
        return run("--show-files", *args).out.splitlines()

    assert files() == ["a.py", "gen/b.py"]
    assert files("--exclude", "gen,a.py") == ["build/c.py"]
    assert files("--extend-exclude", "gen") == ["a.py"]
    assert files("--no-respect-gitignore") == ["a.py", "ignored.py", "gen/b.py"]
    assert files("build/c.py", "--force-exclude") == []
    Path("galint.toml").write_text("force-exclude = true\nrespect-gitignore = false\n")
    assert files("build/c.py", "--no-force-exclude") == ["build/c.py"]
    assert files("--respect-gitignore") == ["a.py", "gen/b.py"]


def test_show_settings_is_toml_that_the_parser_reads_back(run: Run) -> None:
    import tomllib

    from galint.config.settings import parse

    text = 'severity = {GA403 = "error"}\noptimizers = ["my \\"own\\".Adam\\n"]\nbaseline = "b.json"\n'
    Path("galint.toml").write_text(text)
    out = run("--show-settings", "--select", "GA1").out
    table = tomllib.loads(out)
    assert table["severity"] == {"GA403": "error"} and table["optimizers"] == ['my "own".Adam\n']
    assert parse(table, Path.cwd())
    assert "# rules that run: GA000, GA101, GA102" in out and "galint.toml" in out


# --- output ------------------------------------------------------------------------------------


def test_output_file_is_written_whole(run: Run) -> None:
    write("a.py", "x  # bad: GA101")
    result = run("--output-format", "json", "--output-file", "out.json")
    assert (result.code, result.out) == (1, "")
    assert len(json.loads(Path("out.json").read_text())["diagnostics"]) == 1
    assert sorted(os.listdir()) == ["a.py", "out.json"]


def test_statistics(run: Run) -> None:
    write("a.py", "x  # bad: GA101", "y  # bad: GA601", "z  # bad: GA601")
    result = run("--statistics")
    assert result.code == 1
    assert result.out == "2  GA601  warning  ddp-without-no-sync\n1  GA101  error    zero-grad-in-window\n"
    counted = json.loads(run("--statistics", "--output-format", "json").out)
    assert counted[0] == {"code": "GA601", "name": "ddp-without-no-sync", "severity": "warning", "count": 2}


def test_quiet_and_verbose(run: Run) -> None:
    write("a.py", "x  # bad: GA101", "y  # odd")
    assert "Found" not in run("-q").out and "error[GA101]" in run("--quiet").out
    result = run("--verbose")
    assert result.err == "galint: 1 file read, 2 loops, 1 understood\ngalint: a.py:3:1: not understood: it is odd\n"
    assert "1 not understood" in run("-v").out


def test_colour_is_forced_and_forbidden(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", "x  # bad: GA101")
    assert "\x1b" not in run().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run().out
    assert "\x1b" not in run("--output-format", "github").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run().out


@pytest.mark.parametrize(
    "name", ["concise", "grouped", "json-lines", "sarif", "gitlab", "junit", "pylint", "rdjson", "lsp"]
)
def test_every_format_is_offered(run: Run, name: str) -> None:
    write("a.py", "x  # bad: GA101")
    result = run("--output-format", name)
    assert result.code == 1 and "GA101" in result.out


# --- baselines ---------------------------------------------------------------------------------


def test_a_baseline_hides_what_it_knows(run: Run) -> None:
    write("a.py", "x  # bad: GA101")
    result = run("--write-baseline", "known.json")
    assert result.code == 0 and "wrote 1 finding to known.json" in result.err
    write("a.py", "", "", "x  # bad: GA101", "new  # bad: GA201")
    result = run("--baseline", "known.json")
    assert result.code == 1 and "error[GA201]" in result.out and "error[GA101]" not in result.out
    write("a.py", "fine")
    result = run("--config", "baseline=known.json")
    assert result.code == 0 and "known.json: the entry GA101 in a.py is fixed and can be removed" in result.err


# --- problems ----------------------------------------------------------------------------------


def test_what_cannot_be_read_is_one_line_each_and_the_rest_stands(run: Run) -> None:
    write("good.py", "x  # bad: GA101")
    Path("latin.py").write_bytes(HEAD.encode() + b"x = '\xe9'\n")
    Path("nul.py").write_bytes(HEAD.encode() + b"\0")
    Path("book.ipynb").write_bytes(b"{ torch x.backward() x.step()")
    os.mkfifo("pipe.py")
    result = run()
    assert result.code == 2 and "good.py:2:1" in result.out
    lines = result.err.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == ["book.ipynb", "latin.py", "nul.py", "pipe.py"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_crash_in_one_file_is_one_line_and_the_rest_stands(run: Run, jobs: str) -> None:
    write("a.py", "x  # crash")
    write("b.py", "x  # bad: GA101")
    write("c.py", "x  # bad: GA101")
    result = run("--jobs", jobs)
    assert result.code == 2 and "b.py:2:1" in result.out and "c.py:2:1" in result.out
    assert result.err.startswith("galint: a.py: GA999 internal error: KeyError: 'lost\\nkey' at test_cli.py:")
    assert result.err.endswith("please report this line with the file\n") and result.err.count("\n") == 1


def test_file_names_that_are_not_utf8_are_shown_and_stay_valid_json(run: Run) -> None:
    name = os.fsdecode(b"b\xffd.py")
    Path(name).write_text(HEAD + "x  # bad: GA101\n")
    assert run().code == 1
    out = run("--output-format", "json").out
    assert json.loads(out)["diagnostics"][0]["filename"] == name


def test_notebooks_are_linted_cell_by_cell(run: Run) -> None:
    cells = [["import torch\n", "%time x"], ["x.backward(); x.step()\n", "x  # bad: GA101"]]
    listed = [{"cell_type": "code", "source": cell} for cell in cells]
    Path("nb.ipynb").write_text(json.dumps({"cells": listed, "metadata": {}}))
    result = run()
    assert result.code == 1 and "nb.ipynb:cell 2:2:1" in result.out and "2 | x  # bad: GA101" in result.out
    text = json.loads(run("--output-format", "json").out)["diagnostics"][0]
    assert (text["cell"], text["location"]) == (2, {"row": 2, "column": 1})


def test_files_without_training_code_are_counted_but_not_parsed(run: Run) -> None:
    Path("a.py").write_text("x  # crash\n")
    assert run() == Result(0, "No findings in 1 file.\n", "")


# --- the other commands ------------------------------------------------------------------------


def test_rule_shows_a_page_by_code_or_name(run: Run) -> None:
    by_code, by_name = run("rule", "GA101"), run("rule", "zero-grad-in-window")
    assert by_code == by_name and by_code.out.startswith("# zero-grad-in-window (GA101)\n")
    everything = run("rule", "--all").out
    assert all(f"# {rule.name} ({rule.code})" in everything for rule in RULES)


def test_rule_speaks_json(run: Run) -> None:
    one = json.loads(run("rule", "GA101", "--output-format", "json").out)
    assert one["name"] == "zero-grad-in-window" and one["explanation"].startswith("# zero-grad-in-window")
    every = json.loads(run("rule", "--all", "--output-format", "json").out)
    assert [item["code"] for item in every] == [rule.code for rule in RULES]


def test_clean_removes_only_a_real_cache(run: Run) -> None:
    from galint.cache import Cache

    assert run("clean") == Result(0, "", "")
    cache = Path(".galint_cache")
    cache.mkdir()
    (cache / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# by another tool\n")
    assert run("clean").code == 2 and cache.exists()
    (cache / "CACHEDIR.TAG").unlink()
    Cache(cache).put("00" * 32, Report(followed=[]))
    assert run("clean").code == 0 and not cache.exists()
    Cache(Path("elsewhere")).put("00" * 32, Report(followed=[]))
    assert run("clean", "--cache-dir", "elsewhere").code == 0 and not Path("elsewhere").exists()


# --- completeness ------------------------------------------------------------------------------


def test_every_command_in_help_exists() -> None:
    import click

    from galint.cli.app import COMMANDS, cli

    found = [cli.get_command(click.Context(cli), name) for name in COMMANDS]
    assert [command.name for command in found if command is not None] == list(COMMANDS)


def test_every_flag_in_help_is_used_by_a_test() -> None:
    import click

    from galint.cli.app import COMMANDS, cli

    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                options = [*parameter.opts, *parameter.secondary_opts]
                for option in options:
                    assert f'"{option}"' in texts, f"galint {name} {option} has no test"


def test_watch_checks_again_when_a_file_changes(tmp_path: Path) -> None:
    text = (
        "import torch\nfor i, x in enumerate(loader):\n    loss = model(x) / 4\n    loss.backward()\n"
        "    if (i + 1) % 4 == 0:\n        opt.step()\n        opt.zero_grad()\n"
    )
    (tmp_path / "a.py").write_text(text)
    with subprocess.Popen(
        [sys.executable, "-m", "galint", "--watch", "--output-format", "concise", "--select", "GA201"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            assert "watching" in process.stderr.readline()
            (tmp_path / "a.py").write_text(text.replace(" / 4", ""))
            assert "watching" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()  # what has not ended by now never would
    assert out.count("a.py") == 1 and "GA201" in out
    assert process.returncode == 130 and "Traceback" not in err


def test_watch_needs_files(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "galint", "--watch", "-"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "--watch" in done.stderr
