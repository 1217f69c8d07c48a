"""The ledger by itself: every formula and fraction here was worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from galint.ledger import (
    ONE,
    Coefficient,
    Entry,
    Guard,
    LossFacts,
    Mark,
    OptimizerLedger,
    Step,
    formula,
    mean_formula,
    unsigned,
)
from galint.source import Span

HERE = Span(3, 4, 3, 20)
HALF = Coefficient(Fraction(1, 2))
QUARTER = Coefficient(Fraction(1, 4))


def entry(micro: int, coefficient: Coefficient = ONE, *, scaled: bool = False, seq: int = 0) -> Entry:
    return Entry(micro, coefficient, scaled, HERE, seq)


def mark(kind: str, pending: int = 0) -> Mark:
    return Mark(kind, HERE, 0, 0, pending)


def step(ledger: OptimizerLedger) -> Step:
    return ledger.step(Step(ledger.name, HERE, 0, [], [], [], [], []))


# --- coefficients ------------------------------------------------------------------------------


def test_a_coefficient_is_one_unless_said_otherwise() -> None:
    assert Coefficient() == ONE == Coefficient(Fraction(1), ())
    assert str(ONE) == "1"


def test_known_numbers_multiply_exactly() -> None:
    third = ONE.times(Fraction(1, 3))
    assert third.value == Fraction(1, 3)
    assert third.times(3) == ONE
    assert third.times(Fraction(3, 2)).value == Fraction(1, 2)


def test_multiplying_by_a_number_keeps_the_unknown_factors() -> None:
    weighted = ONE.times_symbol("w", 1).times(Fraction(1, 4))
    assert weighted == Coefficient(Fraction(1, 4), (("w", 1),))


def test_powers_of_a_symbol_add_up_and_cancel() -> None:
    w = ONE.times_symbol("w", 1)
    assert w.symbols == (("w", 1),)
    assert w.times_symbol("w", 2).symbols == (("w", 3),)
    assert w.times_symbol("w", -1) == ONE
    assert w.times_symbol("w", -3).symbols == (("w", -2),)


def test_symbols_are_sorted_so_that_equal_products_compare_equal() -> None:
    assert ONE.times_symbol("b", 1).times_symbol("a", -1) == ONE.times_symbol("a", -1).times_symbol("b", 1)
    assert ONE.times_symbol("b", 1).times_symbol("a", -1).symbols == (("a", -1), ("b", 1))


def test_the_product_of_two_coefficients() -> None:
    one = Coefficient(Fraction(2, 3), (("w", 1), ("z", 1)))
    other = Coefficient(Fraction(3, 8), (("n", -2), ("w", -1)))
    assert one.combine(other) == Coefficient(Fraction(1, 4), (("n", -2), ("z", 1)))


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(2), Fraction(-1), Fraction(1, 3), Fraction(0)])
def test_a_product_with_a_bare_number_keeps_that_number(factor: Fraction) -> None:
    quarter = Coefficient(Fraction(1, 4), (("n", -1),))
    assert quarter.combine(Coefficient(factor)) == Coefficient(factor / 4, (("n", -1),))


def test_a_symbol_that_became_known_turns_into_its_number() -> None:
    share = Coefficient(Fraction(3), (("n", -2), ("w", 1)))
    assert share.substitute({"n": Fraction(2)}) == Coefficient(Fraction(3, 4), (("w", 1),))
    assert share.substitute({"n": Fraction(2), "w": Fraction(1, 3)}) == Coefficient(Fraction(1, 4))
    assert share.substitute({}) == share
    assert HALF.substitute({"n": Fraction(2)}) is HALF


def test_zero_is_no_number_to_divide_by() -> None:
    share = Coefficient(Fraction(1), (("n", -1),))
    assert share.substitute({"n": Fraction(0)}) == share


@pytest.mark.parametrize(
    ("coefficient", "text"),
    [
        (QUARTER, "1/4"),
        (Coefficient(Fraction(3)), "3"),
        (Coefficient(Fraction(1), (("w", 1),)), "1·w"),
        (Coefficient(Fraction(1, 2), (("n", -1), ("w", 2))), "1/2·w^2/n"),
        (Coefficient(Fraction(1), (("n", -3),)), "1/n^3"),
    ],
)
def test_spelling_of_a_coefficient(coefficient: Coefficient, text: str) -> None:
    assert str(coefficient) == text


FRACTIONS = st.fractions(min_value=-50, max_value=50, max_denominator=30)
COEFFICIENTS = st.builds(
    lambda value, powers: Coefficient(value, tuple(sorted((k, v) for k, v in powers.items() if v))),
    FRACTIONS,
    st.dictionaries(st.sampled_from("abc"), st.integers(-3, 3), max_size=3),
)
NUMBERS = st.fixed_dictionaries(dict.fromkeys("abc", FRACTIONS.filter(bool)))


@given(COEFFICIENTS, COEFFICIENTS, NUMBERS)
def test_a_product_means_the_product_of_what_its_factors_mean(
    one: Coefficient, other: Coefficient, known: dict[str, Fraction]
) -> None:
    product = one.combine(other).substitute(known)
    assert not product.symbols
    assert product.value == one.substitute(known).value * other.substitute(known).value
    assert one.combine(other) == other.combine(one)


# --- a window ----------------------------------------------------------------------------------


def test_a_step_applies_what_was_accumulated() -> None:
    ledger = OptimizerLedger("opt")
    ledger.backward(entry(1, QUARTER))
    ledger.backward(entry(2, HALF))
    done = step(ledger)
    assert [(e.micro, e.coefficient) for e in done.applied] == [(1, QUARTER), (2, HALF)]
    assert done.carried == done.lost == done.marks == []
    assert (done.window, done.optimizer, done.micros()) == ([1, 2], "opt", [1, 2])
    assert ledger.steps == [done]


def test_several_backwards_of_one_micro_batch_are_one_place_in_the_window() -> None:
    ledger = OptimizerLedger("opt")
    for micro in (1, 1, 2):
        ledger.backward(entry(micro, HALF))
    assert ledger.window == [1, 2]
    assert ledger.held() == 2
    done = step(ledger)
    assert len(done.applied) == 3
    assert done.micros() == [1, 2]


def test_a_micro_batch_that_returns_later_stands_twice_in_the_window() -> None:
    ledger = OptimizerLedger("opt")
    for micro in (1, 2, 1):
        ledger.backward(entry(micro))
    assert ledger.window == [1, 2, 1]
    assert step(ledger).micros() == [1, 2]


def test_what_nothing_clears_is_carried_into_the_next_step() -> None:
    ledger = OptimizerLedger("opt")
    ledger.backward(entry(1))
    first = step(ledger)
    ledger.backward(entry(2))
    assert [e.micro for e in ledger.fresh()] == [2]
    assert ledger.held() == 1
    second = step(ledger)
    assert [e.micro for e in second.carried] == [1]
    assert [e.micro for e in second.applied] == [2]
    assert second.window == [2]
    assert [e.applied for e in first.applied] == [False]
    assert [e.applied for e in second.carried] == [True]
    third = step(ledger)
    assert [e.micro for e in third.carried] == [1, 2]
    assert third.applied == third.window == []


def test_clearing_after_a_step_loses_nothing() -> None:
    ledger = OptimizerLedger("opt")
    ledger.backward(entry(1))
    step(ledger)
    ledger.clear(mark("clear"))
    assert ledger.pending == ledger.lost == []
    ledger.backward(entry(2))
    done = step(ledger)
    assert done.carried == done.lost == []
    assert [m.kind for m in done.marks] == ["clear"]


def test_clearing_inside_the_window_loses_what_was_not_applied() -> None:
    ledger = OptimizerLedger("opt")
    ledger.backward(entry(1))
    ledger.backward(entry(2))
    wipe = mark("clear", 2)
    ledger.clear(wipe)
    ledger.backward(entry(3))
    done = step(ledger)
    assert [(e.micro, m) for e, m in done.lost] == [(1, wipe), (2, wipe)]
    assert [e.micro for e in done.applied] == [3]
    assert done.window == [1, 2, 3]
    assert done.marks == [wipe]
    assert ledger.lost == ledger.window == ledger.marks == []


def test_losses_of_two_clears_are_both_kept() -> None:
    ledger = OptimizerLedger("opt")
    for micro in (1, 2):
        ledger.backward(entry(micro))
        ledger.clear(mark("clear", 1))
    assert [e.micro for e, _ in step(ledger).lost] == [1, 2]


def test_a_copy_read_by_other_code_is_no_loss_until_the_next_step() -> None:
    ledger = OptimizerLedger("opt")
    ledger.copied = True
    ledger.backward(entry(1))
    ledger.clear(mark("clear", 1))
    assert step(ledger).lost == []
    assert ledger.copied is False
    ledger.backward(entry(2))
    ledger.clear(mark("clear", 1))
    assert [e.micro for e, _ in step(ledger).lost] == [2]


def test_rescaling_multiplies_each_accumulated_gradient() -> None:
    ledger = OptimizerLedger("opt")
    ledger.backward(entry(1, HALF))
    ledger.backward(entry(2))
    ledger.rescale(Coefficient(Fraction(1, 2), (("w", 1),)))
    ledger.backward(entry(3))
    assert [str(e.coefficient) for e in ledger.pending] == ["1/4·w", "1/2·w", "1"]


def test_unscaling_divides_out_the_scale_of_what_is_there_and_no_more() -> None:
    ledger = OptimizerLedger("opt")
    ledger.backward(entry(1, scaled=True))
    ledger.unscale(mark("unscale", 1))
    ledger.backward(entry(2, scaled=True))
    done = step(ledger)
    assert [e.scaled for e in done.applied] == [False, True]
    assert [m.kind for m in done.marks] == ["unscale"]


def test_a_step_is_a_snapshot() -> None:
    ledger = OptimizerLedger("opt")
    ledger.backward(entry(1, HALF, scaled=True))
    done = step(ledger)
    ledger.rescale(QUARTER)
    ledger.unscale(mark("unscale"))
    assert [(e.coefficient, e.scaled) for e in done.applied] == [(HALF, True)]


def test_a_clone_goes_on_by_itself() -> None:
    ledger = OptimizerLedger("opt")
    ledger.backward(entry(1, HALF))
    ledger.clear(mark("clear", 1))
    ledger.backward(entry(2, QUARTER))
    ledger.copied = True
    twin = ledger.clone("other")
    assert (twin.name, twin.copied, twin.steps) == ("other", True, [])
    assert twin.window == [1, 2]
    assert [e.micro for e, _ in twin.lost] == [1]
    assert [m.kind for m in twin.marks] == ["clear"]
    twin.rescale(QUARTER)
    twin.backward(entry(3))
    twin.clear(mark("clear", 2))
    assert [(e.micro, e.coefficient) for e in ledger.pending] == [(2, QUARTER)]
    assert ledger.window == [1, 2]
    assert len(ledger.lost) == len(ledger.marks) == 1


def test_a_fresh_ledger_is_empty() -> None:
    ledger = OptimizerLedger("opt")
    assert ledger.copied is False
    done = step(ledger)
    assert done.micros() == done.applied == done.window == []


def test_defaults_say_nothing_more_than_a_mean_loss() -> None:
    facts = LossFacts()
    assert facts.terms == (ONE,)
    assert not facts.summed
    assert not facts.hidden and not facts.synced and not facts.bypassed and not facts.keys
    assert facts.scale_span is None
    plain = entry(1)
    assert plain.sure is True and plain.applied is False
    assert mark("clip").scaled is False
    assert not Guard(HERE, "i % n").negated
    made = Step("opt", HERE, 0, [], [], [], [], [])
    assert not (made.truncated or made.unscaled_here or made.skipped or made.guards or made.position)


# --- formulas ----------------------------------------------------------------------------------


def weights(*values: Coefficient | Fraction | int) -> dict[int, Coefficient]:
    return {k: v if isinstance(v, Coefficient) else Coefficient(Fraction(v)) for k, v in enumerate(values, start=1)}


W = Coefficient(Fraction(1), (("w", 1),))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (weights(), "0"),
        (weights(1), "g1"),
        (weights(1, 1), "g1 + g2"),
        (weights(Fraction(1, 4)), "g1/4"),
        (weights(QUARTER, QUARTER), "(g1 + g2)/4"),
        (weights(Fraction(3, 4), Fraction(3, 4)), "3·(g1 + g2)/4"),
        (weights(2), "2·g1"),
        (weights(-1), "-g1"),
        (weights(-1, -1), "-(g1 + g2)"),
        (weights(-2), "-2·g1"),
        (weights(Fraction(-1, 2)), "-g1/2"),
        (weights(1, Fraction(1, 2)), "g1 + g2/2"),
        (weights(2, Fraction(1, 2), 1), "2·g1 + g2/2 + g3"),
        (weights(W, W), "w·(g1 + g2)"),
        (weights(W), "w·g1"),
        (weights(Coefficient(Fraction(2, 3), (("n", -1), ("w", 1)))), "2·w·g1/3/n"),
        (weights(Coefficient(Fraction(1), (("n", -2), ("w", 3)))), "w^3·g1/n^2"),
        (weights(*[1] * 6), "g1 + g2 + g3 + g4 + g5 + g6"),
        (weights(*[1] * 7), "g1 + g2 + … + g7"),
        (weights(*[Fraction(1, 8)] * 8), "(g1 + g2 + … + g8)/8"),
        ({2: QUARTER, 3: QUARTER}, "(g2 + g3)/4"),
    ],
)
def test_a_gradient_as_a_person_would_write_it(given: dict[int, Coefficient], text: str) -> None:
    assert formula(given) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (1, "g1"), (2, "(g1 + g2)/2"), (3, "(g1 + g2 + g3)/3"), (9, "(g1 + g2 + … + g9)/9")]
)
def test_the_large_batch_is_the_mean_of_the_micro_batches(count: int, text: str) -> None:
    assert mean_formula(count) == text


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (Coefficient(Fraction(1), (("w", 1),)), "w·g1"),
        (Coefficient(Fraction(1, 4), (("w", 2),)), "w^2·g1/4"),
        (Coefficient(Fraction(3), (("n", -1), ("w", 1))), "3·w·g1/n"),
        (Coefficient(Fraction(-1), (("n", -2),)), "-g1/n^2"),
    ],
)
def test_unknown_factors_stand_before_a_gradient_and_divisors_behind(weight: Coefficient, text: str) -> None:
    assert formula({1: weight}) == text


def test_a_sign_that_all_weights_share_is_left_out() -> None:
    assert unsigned(weights(Fraction(-1, 4), Fraction(-1, 2))) == weights(QUARTER, Fraction(1, 2))
    assert unsigned(weights(-1, 1)) == weights(-1, 1)
    assert unsigned({}) == {}
