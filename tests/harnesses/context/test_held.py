"""The context of a plan is that of its beginning."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Count, Event, Full, Held, Last, Sizes, Summary, branches, fold
from pomdp.model import ModelError

PAIRS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=9)


def history(pairs: list[tuple[str, str]]) -> list[Event]:
    return [Sizes().event(*pair) for pair in pairs]


@given(PAIRS, st.integers(1, 4), st.integers(0, 3))
def test_within_a_plan_the_context_is_that_of_its_beginning(
    pairs: list[tuple[str, str]], k: int, window: int
) -> None:
    *shown, place = fold(Held(k, Last(window)), history(pairs)).messages
    begun = len(pairs) - len(pairs) % k
    assert tuple(shown) == fold(Last(window), history(pairs[:begun])).messages
    assert (place.role, place.text) == ("note", f"plan+{len(pairs) % k}")


@given(PAIRS, st.integers(1, 4))
def test_a_named_observation_ends_a_plan(pairs: list[tuple[str, str]], k: int) -> None:
    begun = since = 0
    for i, (_, observation) in enumerate(pairs, 1):
        since += 1
        if since == k or observation == "y":
            begun, since = i, 0
    *shown, place = fold(Held(k, Full(9), ("y",)), history(pairs)).messages
    assert tuple(shown) == fold(Full(9), history(pairs[:begun])).messages and place.text == f"plan+{since}"


def test_all_pairs_of_a_plan_reach_a_map_that_errs() -> None:
    """The count of two pairs, each missed with probability 1/10, is a product law."""
    phi = Held(2, Summary(Count(), Fraction(1, 10)))
    first, second = history([("a", "x"), ("b", "x")])
    ((memory, sure),) = branches(phi, phi.start(), first)
    law: dict[str, Fraction] = {}
    for reached, p in branches(phi, memory, second):
        text = phi.show(reached).text
        law[text] = law.get(text, Fraction(0)) + p
    assert sure == 1 and sorted(law.values()) == [Fraction(1, 100), Fraction(18, 100), Fraction(81, 100)]


def test_a_plan_of_no_steps_is_refused() -> None:
    with pytest.raises(ModelError, match="held needs a number of steps from 1, such as held:3:last:2; got 0"):
        Held(0, Last(1))
