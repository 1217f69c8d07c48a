"""Projects of several files, some of which galint cannot see, are linted both ways and run by torch.

A folder of `tests/projects/` is a project: each of its marks is reported on its line, and nothing else is. What lies
in its `elsewhere/` is installed in another place as far as galint is concerned; torch sees it, and a project that can
be run has a script `elsewhere/launch.py`, or is run by its own `train.py`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from marks import differences, expects, note

from galint.cli.app import cli

PROJECTS = sorted(p for p in (Path(__file__).parent / "projects").iterdir() if p.is_dir())
NOT_RUN = ("accelerate", "deepspeed", "ignite", "lightning", "mmengine", "transformers")
"""Frameworks under which the loops cannot be observed."""
NOT_RUN_PROJECTS = {
    "ok_GA101-loop_over_the_optimizers": "two networks",
    "ok_GA101-sharpness_aware_in_two_halves": "passes at moved weights, cleared on purpose",
    "ok_GA101-attack_restores_the_gradients": "hostile passes at moved weights belong to the window",
    "ok_GA101-gan_alternates": "two networks of several ranks",
    "ok_GA101-critic_passes_the_generator": "the cleared gradients of the other network are taken for a window's",
    "ok_GA401-gan_frozen_in_turn": "two networks",
    "ok_GA401-other_network_learns_at_the_boundary": "the cleared gradients of the other network are taken for a window's",
    "ok_GA401-two_networks_updated_by_one_helper": "two networks",
    "ok_GA401-optimizers_of_parts_of_a_network": "two parts of a network",
    "ok_GA601-regularised_gan": "two networks of several ranks",
    "GA107-critic_gathers_several_batches": "two networks of several ranks",
    "GA201-other_network_every_so_often": "two networks",
    "GA101-turns_clear_each_others_window": "two networks",
    "GA101-cleared_in_each_part_of_two_networks": "two networks",
    "ok_GA304-gan_cut_by_indices": "two networks of several ranks",
    "ok_GA201-losses_of_several_networks": "two networks",
    "GA201-losses_of_several_networks": "two networks",
    "ok_GA101-optimizers_take_turns": "two networks",
    "ok_GA101-delayed_policy_update": "two networks",
    "GA101-divided_and_cleared_beside_another": "two networks",
    "GA402-exit_left_from_debugging": "the program ends after one micro-batch",
    "ok_GA107-cut_at_places_from_the_network": "two networks",
    "GA402-two_networks_through_one_wrapper": "two networks",
    "ok_GA601-apex_switches_its_all_reduce": "apex is not installed",
    "GA501-student_beside_a_still_teacher": "two networks: the large batch's pass is not made anew through both",
    "ok_GA602-fsdp_reads_the_flag_at_the_backward": "FSDP needs an accelerator",
    "ok_GA601-putting_off_is_an_option": "FSDP needs an accelerator",
    "GA603-fsdp2_flag_turned_round": "FSDP2 needs several processes",
    "ok_GA304-generator_split_under_one_scaler": "the cleared gradients of the other network are taken for a window's",
    "ok_GA101-gan_with_optimizers_in_a_dict": "the cleared gradients of the other network are taken for a window's",
    "ok_GA103-parts_summed_before_backward": "a mean over the parts of a batch is seen as a division of its loss",
    "ok_GA401-optimizer_made_anew_after_its_step": "an optimizer's micro-batches are counted by themselves",
    "GA601-joined_options_choose_the_way": "processes on several GPUs",
    "ok_GA201-rate_divided_by_n": "the gradient is N times the large batch's, and the learning rate an Nth",
    "ok_GA201-rate_divided_by_another_name": "the gradient is N times the large batch's, and the learning rate an Nth",
    "GA201-sum_over_its_own_count": "a sum has no scale of its own, as far as the observer sees",
    "ok_GA201-nominal_batch_rounded": "the loss is a sum, and its function is out of sight",
    "ok_GA303-length_bounded_by_hand": "a bound that is written by hand is seen as a factor of the losses",
    "ok_GA303-first_step_left_out": "the dropped window is counted with the next one",
    "ok_GA401-last_pass_left_out": "the last pass's gradient is applied by no step",
    "ok_GA201-weights_hold_n": "a division is seen at the loss, not at its weights",
    "ok_GA201-parts_of_a_record_divided": "a division is seen at the loss, not at the terms that it is the sum of",
    "ok_GA201-chunks_of_a_cached_gradient": "a chunk's product with a gradient is no loss, as far as the observer sees",
    "ok_GA201-cached_gradient_of_a_tower": "a chunk's product with a gradient is no loss, as far as the observer sees",
    "ok_GA201-steps_of_a_sequence": "the steps of a sequence are seen as micro-batches",
    "ok_GA201-one_term_divided_by_another_name": "one of its terms lacks the factor",
    "ok_GA204-half_of_two": "a division is seen at the loss, not at the terms that it is the sum of",
    "ok_GA302-losses_divided_in_a_dict": "a division is seen at the loss, not at the terms that it is the sum of",
}
"""What the observer cannot judge, and why."""


def visible(project: Path) -> list[Path]:
    return sorted(p for p in project.rglob("*.py") if "elsewhere" not in p.parts)


def runnable(project: Path) -> bool:
    texts = [p.read_text(encoding="utf-8") for p in visible(project)]
    return project.name not in NOT_RUN_PROJECTS and not any(
        f"import {w}" in t or f"from {w}" in t for w in NOT_RUN for t in texts
    )


@pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)
def test_project_gets_exactly_its_marks(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(project, tmp_path, ignore=shutil.ignore_patterns("elsewhere", "__pycache__"), dirs_exist_ok=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["check", "--isolated", "--output-format", "concise", "."])
    assert result.exit_code in {0, 1}, result.output
    assert "not understood" not in result.output
    found: dict[str, list[tuple[int, str, str]]] = {}
    for line in result.output.splitlines():
        if ".py:" in line:
            path, row, _, text = line.split(":", 3)
            code, message = text.strip().split(" ", 1)
            found.setdefault(path, []).append((int(row), code, message))
    problems = []
    for file in visible(project):
        name = file.relative_to(project).as_posix()
        problems += [f"{name}: {d}" for d in differences(expects(file.read_text("utf-8")), found.pop(name, []))]
    assert not problems and not found, "\n".join(problems)


@pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)
def test_name_and_marks_of_a_project_agree(project: Path) -> None:
    texts = [p.read_text(encoding="utf-8") for p in visible(project)]
    codes = {mark.code for text in texts for mark in expects(text)}
    calm = project.name.startswith("ok_")
    assert bool(codes) != calm
    assert calm or project.name[:5] in codes
    assert calm or not runnable(project) or any(note(text, "observe") for text in texts)


@pytest.fixture
def own_imports() -> Iterator[None]:
    """What a project imports is forgotten: another one has files of the same names."""
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        told = getattr(sys.modules[name], "__dict__", {})
        places = f"{told.get('__file__')} {told.get('__path__')}"  # a folder without `__init__` has no file
        if str(Path(__file__).parent / "projects") in places:
            del sys.modules[name]


@pytest.mark.parametrize("project", [p for p in PROJECTS if runnable(p)], ids=lambda p: p.name)
def test_torch_agrees_with_the_marks(project: Path, tmp_path: Path, own_imports: None) -> None:
    pytest.importorskip("torch")
    from observe import observe
    from test_fixtures_torch import _agrees, _shows

    script = project / "elsewhere" / "launch.py"
    sys.path[:0] = [str(project), str(project / "elsewhere")]
    seen = observe(script if script.exists() else project / "train.py", tmp_path)
    observable = next(filter(None, (note(p.read_text(encoding="utf-8"), "observe") for p in visible(project))), None)
    if observable:
        _shows(seen, observable)
    else:
        _agrees(seen)


def test_the_projects_are_found() -> None:
    assert sum(p.name.startswith("ok_") for p in PROJECTS) >= 10
    assert sum(runnable(p) for p in PROJECTS) >= 25
