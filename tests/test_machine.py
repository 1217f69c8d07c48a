"""The machine's bookkeeping by itself: budget, identities, places, what values are made of, exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from galint.run.frame import LoopFrame, RunOver
from galint.run.machine import FOREIGN, NOWHERE, Machine, arithmetic
from galint.run.scenario import Scenario
from galint.run.static import Static
from galint.run.values import Context, Lit, Mapping, Opaque, Seq, Tensor, Term, Value
from galint.source import Span

HERE = Span(5, 0, 5, 9)
LOOP = Span(2, 0, 2, 9)
FAR = Span(FOREIGN + 7, 0, FOREIGN + 7, 9)


def machine(fuel: int = 100) -> Machine:
    return Machine(Static([()]), Scenario(), fuel)


def loop(span: Span = LOOP, token: int = 0, serial: int = 1, iteration: int = 0) -> LoopFrame:
    return LoopFrame(None, span, serial, iteration, token)  # type: ignore[arg-type]


def tensor(*micros: int, modules: frozenset[int] = frozenset()) -> Tensor:
    return Tensor("t", tuple(Term(m) for m in micros), modules=modules)


def nested(value: Value, depth: int, *, inside: type = Seq) -> Value:
    """A value inside `depth` containers."""
    for _ in range(depth):
        value = Seq([value]) if inside is Seq else Mapping({"k": value})
    return value


# --- budget and identities ---------------------------------------------------------------------


def test_the_budget_can_be_spent_to_nothing_but_not_beyond() -> None:
    m = machine(fuel=3)
    m.burn()
    m.burn(2)
    assert m.fuel == 0
    with pytest.raises(RunOver) as over:
        m.burn()
    assert over.value.reason == "the loop exceeds the step budget"


def test_a_new_machine_has_a_budget_and_limits() -> None:
    m = Machine(Static([()]), Scenario())
    assert (m.fuel, m.max_backwards, m.max_steps) == (60_000, 400, 60)
    assert (m.tick(), m.tick(), m.new_token(), m.new_token()) == (1, 2, 1, 2)
    assert (m.steps_taken, m.finite_iterators) == (0, 0)


def test_an_event_stands_in_order_at_its_iteration_and_file() -> None:
    m = machine()
    m.file = "engine.py"
    outside = m.event("clip", HERE, "text", norm=1)
    m.loops.append(loop(token=9))
    inside = m.event("step", LOOP)
    assert [e.seq for e in m.result.events] == [1, 2]
    assert (outside.kind, outside.span, outside.text, outside.data, outside.micro) == (
        "clip",
        HERE,
        "text",
        {"norm": 1},
        0,
    )
    assert (inside.micro, inside.file, inside.text) == (9, "engine.py", "")


def test_the_innermost_iteration_is_the_micro_batch() -> None:
    m = machine()
    assert m.token() == 0
    m.loops += [loop(token=4), loop(token=6)]
    assert m.token() == 6


def test_where_names_the_running_loops_from_outside_in() -> None:
    m = machine()
    assert m.where() == ()
    m.loops += [loop(LOOP, serial=3, iteration=2), loop(HERE, serial=8, iteration=5)]
    assert m.where() == ((LOOP, 3, 2), (HERE, 8, 5))


def test_an_escape_is_kept_with_its_reason() -> None:
    m = machine()
    m.escape(HERE, "it goes away")
    assert m.result.escapes == [(HERE, "it goes away")]
    assert NOWHERE.row == 1


# --- ancestry ----------------------------------------------------------------------------------


def test_a_module_is_related_to_itself_its_parents_and_its_children() -> None:
    m = machine()
    root = m.new_ident()
    child = m.new_ident(m.ancestors[root])
    grandchild = m.new_ident(m.ancestors[child])
    other = m.new_ident()
    assert m.ancestors[grandchild] == {root, child, grandchild}
    assert m.ancestors[other] == {other}

    def related(one: int, two: int) -> bool:
        return m.related(frozenset({one}), frozenset({two}))

    assert related(root, root)
    assert related(root, grandchild) and related(grandchild, root)
    assert related(child, grandchild) and related(root, child)
    assert not related(other, grandchild) and not related(root, other)
    assert m.related(frozenset({other, grandchild}), frozenset({root}))
    assert m.related(frozenset({root}), frozenset({other, grandchild}))
    assert not m.related(frozenset(), frozenset({root}))
    assert not m.related(frozenset({99}), frozenset({98}))


# --- places ------------------------------------------------------------------------------------


def test_an_event_of_the_linted_file_stands_where_it_is() -> None:
    m = machine()
    m.loops.append(loop())
    m.call_spans.append(LOOP)
    assert m.place(HERE) == HERE


def test_an_event_of_a_followed_file_stands_at_the_call_that_leads_there() -> None:
    m = machine()
    m.call_spans += [LOOP, HERE, FAR]
    assert m.place(FAR) == FAR, "no loop of the linted file runs"
    m.loops.append(loop())
    assert m.place(FAR) == HERE
    edge = Span(FOREIGN, 0, FOREIGN, 9)
    assert m.place(edge) == HERE
    m.call_spans[:] = [FAR]
    assert m.place(FAR) == FAR, "nothing of the linted file calls it"
    m.call_spans[:] = [HERE]
    m.loops.append(loop(edge))
    assert m.place(FAR) == FAR, "the innermost loop is in the followed file"


# --- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "odd"), [(0, True), (1, True), (2, False), (64, False), (65, True), (1000, True)])
def test_a_setting_that_is_no_real_window_is_noted(number: int, odd: bool) -> None:
    m = machine()
    m.odd_window(Lit(number, frozenset({"n"}), text="n"))
    assert m.result.facts.get("odd_windows", []) == (["n"] if odd else [])
    assert m.max_backwards == 400


@pytest.mark.parametrize(("number", "most"), [(64, 400), (65, 400), (66, 400), (67, 402), (512, 3072), (600, 3072)])
def test_a_long_literal_window_may_run_to_its_end(number: int, most: int) -> None:
    m = machine()
    m.odd_window(Lit(number))
    assert m.max_backwards == most
    assert "odd_windows" not in m.result.facts


def test_odd_windows_are_collected() -> None:
    m = machine()
    m.odd_window(Lit(1, frozenset({"a"}), text="a"))
    m.odd_window(Lit(Fraction(1), frozenset({"b"}), text="b"))
    m.odd_window(Lit(1, frozenset({"c"})))
    m.odd_window(Lit(1, text="d"))
    assert m.result.facts["odd_windows"] == ["a", "b"]


# --- what a value is made of -------------------------------------------------------------------

ONE, TWO = frozenset({1}), frozenset({2})


def test_modules_are_found_in_containers_up_to_a_depth() -> None:
    m = machine()
    held = Opaque("o", modules=TWO)
    assert m.modules_in(tensor(1, modules=ONE)) == ONE
    assert m.modules_in(held) == TWO
    assert m.modules_in(Seq([tensor(1, modules=ONE), Mapping({"a": held})])) == ONE | TWO
    assert m.modules_in(Seq([])) == m.modules_in(Mapping({})) == m.modules_in(Lit(3)) == frozenset()
    for inside in (Seq, Mapping):
        assert m.modules_in(nested(held, 4, inside=inside)) == TWO
        assert m.modules_in(nested(held, 5, inside=inside)) == frozenset()


def test_tensors_are_found_in_containers_in_order() -> None:
    m = machine()
    a, b = tensor(1), tensor(2)
    assert m.tensors_in(Seq([a, Mapping({"k": b}), Lit(3), Opaque("o")])) == [a, b]
    assert m.tensors_in(Lit(3)) == []
    for inside in (Seq, Mapping):
        assert m.tensors_in(nested(a, 4, inside=inside)) == [a]
        assert m.tensors_in(nested(a, 5, inside=inside)) == []


def test_a_value_is_born_with_the_latest_of_its_parts() -> None:
    m = machine()
    assert m.born_of(tensor(2, 7, 3)) == 7
    assert m.born_of(Lit(1, born=4)) == 4
    assert m.born_of(Opaque("o", born=5)) == 5
    assert m.born_of(Seq([Lit(1, born=2), Opaque("o", born=6)])) == 6
    assert m.born_of(Mapping({"a": Lit(1, born=3), "b": Lit(1)})) == 3
    assert m.born_of(Seq([])) == m.born_of(Mapping({})) == 0
    assert m.born_of(Context("null", None, HERE)) == 0
    for inside in (Seq, Mapping):
        assert m.born_of(nested(Lit(1, born=2), 4, inside=inside)) == 2
        assert m.born_of(nested(Lit(1, born=2), 5, inside=inside)) == 0


def test_data_is_what_comes_from_the_batch() -> None:
    m = machine()
    assert m.is_data(tensor(1))
    assert m.is_data(Opaque("x", data=True))
    assert not m.is_data(Opaque("x"))
    assert not m.is_data(Lit(1))
    assert m.is_data(Seq([Lit(1), tensor(1)]))
    assert not m.is_data(Seq([Lit(1)]))
    assert m.is_data(nested(tensor(1), 4))
    assert not m.is_data(nested(tensor(1), 5))


def test_a_fresh_tensor_belongs_to_the_running_iteration() -> None:
    m = machine()
    m.loops.append(loop(token=3))
    here = m.tensor("loss", 0, ONE)
    assert [(t.micro, t.coefficient.value) for t in here.terms] == [(3, 1)]
    assert (here.path, here.modules, here.grad) == ("loss", ONE, True)
    assert [t.micro for t in m.tensor("loss", 8).terms] == [8]


def test_a_tensor_made_without_gradients_has_none() -> None:
    m = machine()
    m.contexts.append(Context("no_sync", None, HERE))
    assert not m.no_grad() and m.tensor("x", 1).grad
    m.contexts.append(Context("no_grad", None, HERE))
    assert m.no_grad() and not m.tensor("x", 1).grad


# --- arithmetic --------------------------------------------------------------------------------

INTEGERS = st.integers(-1000, 1000)


@given(INTEGERS, INTEGERS, st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^"]))
def test_whole_numbers_compute_as_in_python(a: int, b: int, op: str) -> None:
    if op in {"//", "%"} and b == 0:
        assert arithmetic(op, a, b) is None
    else:
        wanted = eval(f"a {op} b", {"a": a, "b": b})
        assert arithmetic(op, a, b) == wanted
        assert type(arithmetic(op, a, b)) is int


@given(INTEGERS, st.integers(0, 63))
def test_shifts_compute_as_in_python(a: int, b: int) -> None:
    assert arithmetic("<<", a, b) == a << b
    assert arithmetic(">>", a, b) == a >> b


@given(INTEGERS, INTEGERS.filter(bool))
def test_a_quotient_is_exact(a: int, b: int) -> None:
    assert arithmetic("/", a, b) == Fraction(a, b)


@given(st.integers(-9, 9).filter(bool), st.integers(-9, 9))
def test_a_power_of_a_whole_number_is_exact(a: int, b: int) -> None:
    assert arithmetic("**", a, b) == Fraction(a) ** b


@pytest.mark.parametrize(
    ("op", "a", "b", "wanted"),
    [
        ("/", 1, 0, None),
        ("**", 0, -1, None),
        ("**", 2, 64, 2**64),
        ("**", 2, 65, None),
        ("**", 2, -64, Fraction(1, 2**64)),
        ("**", 2, -65, None),
        ("**", 10**6, 2, 10**12),
        ("**", 10**6 + 1, 2, None),
        ("**", -(10**6), 2, 10**12),
        ("**", -(10**6) - 1, 2, None),
        ("**", 4, Fraction(1, 2), 2),
        ("**", Fraction(1, 2), 3, Fraction(1, 8)),
        ("<<", 1, 63, 2**63),
        ("<<", 1, 64, None),
        ("<<", 1, -1, None),
        (">>", 8, 2, 2),
        (">>", 8, 0, 8),
        (">>", 8, -1, None),
        ("<<", 3, 0, 3),
        ("&", Fraction(1, 2), 1, None),
        ("&", 1, Fraction(1, 2), None),
        ("@", 2, 3, None),
        ("+", "a", "b", "ab"),
        ("+", b"a", b"b", b"ab"),
        ("+", "a", 1, None),
        ("*", "a", 3, None),
        ("*", 3, "a", None),
        ("%", "a%d", 3, None),
        ("-", "a", "b", None),
        ("+", "a" * 10_000, "b", "a" * 10_000 + "b"),
        ("+", "a" * 10_001, "b", None),
        ("+", "b", "a" * 10_001, None),
        ("+", b"a" * 10_001, b"b", None),
        ("+", 2**2048 - 1, 1, 2**2048),
        ("+", 2**2048, 1, None),
        ("+", 1, 2**2048, None),
        ("+", Fraction(1, 2**2047), 0, Fraction(1, 2**2047)),
        ("+", Fraction(1, 2**2048), 0, None),
        ("+", Fraction(-(2**2048), 3), 0, None),
        ("-", True, True, 0),
    ],
)
def test_what_is_undefined_or_too_large_is_unknown(op: str, a: Any, b: Any, wanted: Any) -> None:
    got = arithmetic(op, a, b)
    assert got == wanted and (got is None) == (wanted is None)
