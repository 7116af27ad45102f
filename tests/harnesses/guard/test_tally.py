"""Tallies: the rows are counted by distinct report, and bad rows are named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.region import GuardError
from harnesses.guard.tally import Tally

ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.29, 0.5, 0.7, 1.0]), st.integers(0, 1)), min_size=1, max_size=30
)


@given(ROWS)
def test_every_row_is_counted_once_at_its_report(rows):
    p, y = zip(*rows)
    tally = Tally.of(p, y)
    found = {float(v): (int(n), int(k)) for v, n, k in zip(tally.report, tally.count, tally.allowed)}
    assert found == {v: (p.count(v), sum(label for report, label in rows if report == v)) for v in set(p)}
    assert list(tally.report) == sorted(set(p))
    assert (tally.size, tally.total_allowed) == (len(rows), sum(y))


@given(ROWS)
def test_the_items_acted_on_are_those_that_reach_the_threshold_as_decimals(rows):
    p, y = zip(*rows)
    acted = Tally.of(p, y).at_least("7/10")
    assert acted.size == sum(value in (0.7, 1.0) for value in p)


@pytest.mark.parametrize(
    "p, y, message",
    [
        ([0.5, 1.5], [1, 1], "report 2 is 1.5"),
        ([0.5, float("nan")], [1, 1], "report 2 is nan"),
        ([0.5, 0.5, 0.5], [1, 0, 2], "label 3 is 2"),
        ([0.5], [1, 0], "1 reports with 2 labels"),
        ([], [], "no items"),
        ([[0.5]], [1], "shape"),
        (["high"], [1], "not all numbers"),
    ],
)
def test_a_bad_row_is_named(p, y, message):
    with pytest.raises(GuardError, match=message):
        Tally.of(p, y)


def test_labels_may_be_truth_values():
    assert Tally.of([0.5, 0.5], np.array([True, False])).total_allowed == 1
