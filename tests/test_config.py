"""Configuration: where it is found, how layers merge, what a mistake says, and the shipped schema."""

from __future__ import annotations

import dataclasses
import json
import pickle
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galint.config import ALL_CODES, SETTINGS, Config, Overrides, Resolver, Selection, expand, json_schema, resolve
from galint.config.selectors import known_selectors
from galint.config.settings import parse
from galint.errors import ConfigError, UnknownRule
from galint.registry import RULES
from galint.rule import Severity


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def load(folder: Path, **overrides: Any) -> Config:
    return Resolver(Overrides(**overrides), folder).for_folder(folder)


# --- selectors ---------------------------------------------------------------------------------


def test_a_selector_is_a_code_a_prefix_a_name_or_all() -> None:
    assert expand("GA101") == {"GA101"}
    assert expand("zero-grad-in-window") == {"GA101"}
    assert expand("GA1") == {rule.code for rule in RULES if rule.code.startswith("GA1")}
    assert expand("ALL") == expand("GA") == ALL_CODES


@pytest.mark.parametrize(("wrong", "right"), [("GA1O1", "GA101"), ("zero-grad-in-windw", "zero-grad-in-window")])
def test_an_unknown_selector_gets_the_nearest_one(wrong: str, right: str) -> None:
    with pytest.raises(UnknownRule) as caught:
        expand(wrong)
    assert caught.value.suggestion == right


def test_the_more_specific_selector_wins_whatever_the_order() -> None:
    one = resolve([Selection(select=("GA101",), ignore=("GA1",))])
    assert one == {"GA101", "GA000"}
    other = resolve([Selection(select=("GA1",), ignore=("zero-grad-in-window",))])
    assert "GA101" not in other and "GA102" in other
    assert "GA101" not in resolve([Selection(select=("GA101",), ignore=("GA101",))])


def test_a_later_select_starts_anew_and_extend_select_adds() -> None:
    base = Selection(select=("GA1", "GA2"), ignore=("GA102",))
    assert resolve([base, Selection(select=("GA102",))]) == {"GA102", "GA000"}
    assert resolve([base, Selection(extend_select=("GA601",))]) == {"GA101", "GA201", "GA203", "GA601", "GA000"} | {
        rule.code for rule in RULES if rule.code[:3] in ("GA1", "GA2") and rule.code != "GA102"
    }


def test_syntax_errors_stay_unless_ignored_by_their_own_code() -> None:
    assert "GA000" in resolve([Selection(select=("GA101",))])
    assert "GA000" in resolve([Selection(ignore=("GA0",))])
    assert "GA000" not in resolve([Selection(ignore=("GA000",))])


# --- files -------------------------------------------------------------------------------------


def test_the_nearest_file_wins_and_galint_toml_comes_before_pyproject(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool.galint]\nfail-on = 'error'\n")
    write(tmp_path / "sub/pyproject.toml", "[project]\nname = 'galint-user'\n")
    write(tmp_path / "sub/deep/galint.toml", "fail-on = 'note'\n")
    write(tmp_path / "sub/deep/pyproject.toml", "[tool.galint]\nfail-on = 'error'\n")
    resolver = Resolver(Overrides(), tmp_path)
    assert resolver.for_folder(tmp_path / "sub").fail_on is Severity.ERROR
    assert resolver.for_folder(tmp_path / "sub/deep").fail_on is Severity.NOTE
    assert resolver.for_file(tmp_path / "sub/deep/x.py").source == tmp_path / "sub/deep/galint.toml"


def test_isolated_ignores_all_files_but_not_the_flags(tmp_path: Path) -> None:
    write(tmp_path / "galint.toml", "fail-on = 'error'\nignore = ['GA1']\n")
    config = load(tmp_path, isolated=True, inline=("target-micro-batch=8",))
    assert config.fail_on is Severity.WARNING and config.target_micro_batch == 8 and "GA101" in config.codes


def test_extend_builds_on_another_file_with_its_own_folder(tmp_path: Path) -> None:
    write(tmp_path / "base/shared.toml", "ignore = ['GA501']\nfail-on = 'error'\nextend-exclude = ['old/*.py']\n")
    write(tmp_path / "galint.toml", "extend = 'base/shared.toml'\nfail-on = 'note'\nextend-exclude = ['new']\n")
    config = load(tmp_path)
    assert "GA501" not in config.codes and config.fail_on is Severity.NOTE
    assert config.excludes(tmp_path / "base/old/x.py") and not config.excludes(tmp_path / "old/x.py")
    assert config.excludes(tmp_path / "any/where/new")


def test_extend_in_a_circle_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.toml", "extend = 'galint.toml'\n")
    write(tmp_path / "galint.toml", "extend = 'a.toml'\n")
    with pytest.raises(ConfigError, match="`extend` leads back to"):
        load(tmp_path)


def test_config_names_a_file_and_single_settings(tmp_path: Path) -> None:
    file = write(tmp_path / "ci.toml", "fail-on = 'error'\n")
    write(tmp_path / "galint.toml", "ignore = ['GA101']\n")
    config = load(tmp_path, file=file, inline=('severity.GA403="warning"', "fail-on=note"))
    assert config.fail_on is Severity.NOTE and "GA101" in config.codes
    rule = next(rule for rule in RULES if rule.code == "GA403")
    assert config.severity_of(rule) is Severity.WARNING


def test_flags_come_last(tmp_path: Path) -> None:
    write(tmp_path / "galint.toml", "select = ['GA1']\nextend-exclude = ['one']\n")
    config = load(tmp_path, flags={"extend-select": ["GA601"], "extend-exclude": ["two"], "ignore": ["GA102"]})
    assert "GA601" in config.codes and "GA101" in config.codes and "GA102" not in config.codes
    assert config.excludes(tmp_path / "one") and config.excludes(tmp_path / "two")


def test_per_file_ignores_and_their_negation(tmp_path: Path) -> None:
    text = "[per-file-ignores]\n'legacy/**' = ['GA2']\n'*_demo.py' = ['unscaled-loss']\n'!train.py' = ['GA601']\n"
    write(tmp_path / "galint.toml", text)
    config = load(tmp_path)
    assert "GA201" not in config.codes_for(tmp_path / "legacy/a/b.py")
    assert "GA201" not in config.codes_for(tmp_path / "x_demo.py")
    assert "GA203" in config.codes_for(tmp_path / "x_demo.py")
    assert "GA601" in config.codes_for(tmp_path / "train.py")
    assert "GA601" not in config.codes_for(tmp_path / "other.py")
    assert config.codes_for(None) == config.codes


def test_the_longest_selector_decides_a_severity() -> None:
    layers = (("GA401", Severity.NOTE), ("GA4", Severity.WARNING), ("ALL", Severity.ERROR))
    config = Config(severity=layers)
    found = {rule.code: config.severity_of(rule) for rule in RULES}
    assert (found["GA401"], found["GA402"], found["GA101"]) == (Severity.NOTE, Severity.WARNING, Severity.ERROR)


# --- mistakes ----------------------------------------------------------------------------------

MISTAKES = [
    ("fail_on = 'error'", "unknown setting `fail_on`; did you mean `fail-on`?"),
    ("fail-on = 'eror'", "`fail-on` has the unknown severity `eror`; did you mean `error`?"),
    ("fail-on = 3", "`fail-on` must be one of error, warning, note, not an integer"),
    ("select = 'GA101'", "`select` must be a list of strings, not a string"),
    ("select = ['GA1O1']", "`select`: unknown rule `GA1O1`; did you mean `GA101`?"),
    ("ignore = [1]", "`ignore` must be a list of strings, but holds an integer"),
    ("exclude = ['']", "`exclude` holds an empty string"),
    ("respect-gitignore = 'yes'", "`respect-gitignore` must be true or false, not a string"),
    ("target-micro-batch = 0", "`target-micro-batch` must be an integer of at least 1, not 0"),
    ("target-micro-batch = true", "`target-micro-batch` must be an integer of at least 1, not a boolean"),
    (
        "severity = {GA101 = 'loud'}",
        "`severity.GA101` has the unknown severity `loud`; it is one of note, warning, error",
    ),
    (
        "tool.galint.select = ['GA1']",
        "unknown setting `tool`: the keys of `[tool.galint]` stand at the top of galint.toml, without that header",
    ),
    ("line-length = 80", "unknown setting `line-length`; `galint --show-settings` lists the known ones"),
    ("select = ['GA9']", "`select`: unknown rule `GA9`; did you mean `GA7`?"),
    ("extend = 'no.toml'", "galint.toml: `extend`: "),
    ("severity = {step-cadance = 'note'}", "`severity`: unknown rule `step-cadance`; did you mean `step-cadence`?"),
    ("per-file-ignores = ['x']", "`per-file-ignores` must be a table, not a list"),
    ("baseline = ''", "`baseline` must be a path, not empty"),
    ("select = [", "is not valid TOML"),
    ("extend = 'missing.toml'", "missing.toml: cannot be read (No such file or directory)"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_one_line_that_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "galint.toml", text + "\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert message in str(caught.value) and ".toml" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["fail-on", "=x", "a b=1"])
def test_an_inline_setting_that_is_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="^--config: "):
        load(tmp_path, inline=(text,))


# --- the schema --------------------------------------------------------------------------------


def shipped() -> dict[str, Any]:
    document = json.loads((files("galint") / "config" / "schema.json").read_text("utf-8"))
    assert isinstance(document, dict)
    return document


def test_the_shipped_schema_is_the_parsers() -> None:
    assert shipped() == json_schema(), "run tests/regenerate.py"
    jsonschema.Draft202012Validator.check_schema(shipped())


def test_each_setting_is_a_field_of_config() -> None:
    names = {field.name for field in dataclasses.fields(Config)}
    apart = {"extend", "select", "extend-select", "ignore"}
    assert {setting.key.replace("-", "_") for setting in SETTINGS if setting.key not in apart} <= names


_SCALARS = st.one_of(st.booleans(), st.integers(-2, 3), st.sampled_from(["", "error", "x", "GA101"]))
_SELECTORS = st.sampled_from([*known_selectors(), "GA9", "nope", ""])
_VALUES = st.one_of(
    _SCALARS,
    st.lists(st.one_of(_SELECTORS, _SCALARS), max_size=3),
    st.dictionaries(
        _SELECTORS, st.one_of(st.sampled_from(["note", "loud"]), st.lists(_SELECTORS, max_size=2)), max_size=2
    ),
)
_KEYS = st.sampled_from([setting.key for setting in SETTINGS] + ["unknown"])


@given(st.dictionaries(_KEYS, _VALUES, max_size=3))
def test_schema_and_parser_accept_the_same_tables(table: dict[str, Any]) -> None:
    try:
        parse(table, Path("/project"))
        accepted = True
    except ConfigError:
        accepted = False
    assert jsonschema.Draft202012Validator(json_schema()).is_valid(table) == accepted, table


# --- the object --------------------------------------------------------------------------------


def test_config_travels_to_worker_processes() -> None:
    config = Config(selection=(Selection(select=("GA1",)),), per_file_ignores=(("*.py", ("GA101",)),))
    assert config.codes
    again = pickle.loads(pickle.dumps(config))
    assert again == config and again.codes == config.codes


def test_the_fingerprint_follows_what_can_change_a_finding() -> None:
    base = Config().fingerprint()
    assert Config(fail_on=Severity.ERROR).fingerprint() == base
    assert Config(scalers=("MyScaler",)).fingerprint() != base
    assert Config(target_micro_batch=4).fingerprint() != base
