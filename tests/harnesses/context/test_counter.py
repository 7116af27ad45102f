"""The step counter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Counter, Last, Null, Sizes, fold
from pomdp.model import ModelError


@given(st.integers(0, 9), st.integers(0, 3), st.sampled_from([None, 1, 2, 5]))
def test_the_note_counts_the_pairs_and_stays_at_the_limit(length: int, k: int, limit: int | None) -> None:
    history = [Sizes().event("a", "x")] * length
    first, *rest = fold(Counter(Last(k), limit), history).messages
    if limit is not None and length >= limit:
        assert first.text == f"n>={limit}"
    else:
        assert first.text == f"n={length}"
    assert first.role == "note"
    assert tuple(rest) == fold(Last(k), history).messages


def test_without_a_limit_no_context_recurs() -> None:
    event = Sizes().event("a", "x")
    contexts = [fold(Counter(Null()), [event] * length) for length in range(6)]
    assert len(set(contexts)) == len({context.text for context in contexts}) == 6


def test_a_limit_that_counts_nothing_is_refused() -> None:
    with pytest.raises(ModelError, match="counter needs a limit from 1, such as counter:5:last:2; got 0"):
        Counter(Null(), 0)
