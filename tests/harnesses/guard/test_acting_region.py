"""T2 on data: errors and bounds among the items acted on."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harnesses.guard.acting_region import ActingRegion, unlike_ends
from harnesses.guard.binomial import clopper_pearson, upper_end
from harnesses.guard.region import GuardError
from harnesses.guard.reliability import ece, equal_width
from harnesses.guard.smooth_ece import smooth_ece
from harnesses.guard.tally import Tally

REPORTS = st.sampled_from([0.0, 0.5, 0.7, 0.9, 0.96875, 0.97, 0.99, 1.0])
ROWS = st.lists(st.tuples(REPORTS, st.integers(0, 1)), min_size=1, max_size=40)
TAUS = st.sampled_from([0, "7/10", 0.9, Fraction(31, 32), 1])


@given(ROWS, TAUS)
def test_the_share_is_the_doubt_and_the_overconfidence_and_stays_under_the_bound(rows, tau):
    """T2 with the sample as the population, in exact rationals."""
    found = ActingRegion.of(Tally.of(*zip(*rows)), tau)
    level = Fraction(str(tau))
    acted = [(Fraction(str(p)), y) for p, y in rows if Fraction(str(p)) >= level]
    assert found.disallowed.denominator == len(acted)
    if not acted:
        assert found.doubt is found.overconfidence is found.bound is found.bound_upper is found.upper is None
        assert found.rows == ()
        return
    doubt = sum(1 - p for p, _ in acted) / len(acted)
    over = sum(p - y for p, y in acted) / len(acted)
    share = Fraction(sum(1 - y for _, y in acted), len(acted))
    assert share == doubt + over <= 1 - level + max(0, over)
    assert found.doubt == pytest.approx(float(doubt), abs=1e-15)
    assert found.overconfidence == pytest.approx(float(over), abs=1e-15)
    assert found.bound == pytest.approx(min(1, float(1 - level + max(0, over))), abs=1e-15)
    assert found.disallowed.rate <= found.bound + 1e-15
    assert found.lower <= found.overconfidence <= found.upper
    assert found.bound <= found.bound_upper
    assert found.bound_upper >= upper_end(found.disallowed.numerator, len(acted)) - 1e-12
    assert sum(row.count for row in found.rows) == len(acted)
    assert all(row.lower >= float(level) for row in found.rows)
    json.dumps(found.json(), allow_nan=False)


def test_a_global_error_may_be_tiny_while_the_region_is_all_wrong():
    """T2: all the error lies in the tail, where 10 of 10,000 items are acted on and every one is disallowed."""
    p = np.concatenate([np.full(9990, 0.5), np.full(10, 0.97)])
    y = np.concatenate([np.tile([0, 1], 4995), np.zeros(10)])
    tally = Tally.of(p, y)
    found = ActingRegion.of(tally, Fraction(31, 32))
    assert ece(equal_width(tally)) == pytest.approx(0.00097)
    assert smooth_ece(tally) < 0.001
    assert found.disallowed.rate == 1
    assert found.overconfidence == pytest.approx(0.97)
    assert found.lower > 0.7
    assert found.bound == 1


@pytest.mark.parametrize("seed, confidence", [(k, (0.9, 0.95)[k % 4 // 2]) for k in range(8)])
def test_each_end_holds_with_its_confidence_for_labels_that_are_not_alike(seed, confidence):
    """T2, T8: the probability, from the exact law of the count, that the mean of p - eta lies beyond an end."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 60))
    p = 0.9 + 0.1 * rng.random(size)
    eta = rng.random(size) if seed % 2 else np.clip(p - 0.3 * rng.random(size) ** 3, 0, 1)
    law = np.ones(1)  # of the number of disallowed items
    for chance in 1 - eta:
        law = np.convolve(law, [1 - chance, chance])
    truth = np.mean(p - eta)
    beyond = np.zeros(2)
    for bad, weight in enumerate(law):
        labels = np.arange(size) >= bad
        found = ActingRegion.of(Tally.of(p, labels), "9/10", bins=1, confidence=confidence)
        beyond += weight * np.array([truth > found.upper, truth < found.lower])
    assert (beyond <= 1 - confidence + 1e-12).all()


def test_the_ends_are_those_of_the_share_less_the_doubt():
    found = ActingRegion.of(Tally.of([0.9] * 130, [0] * 2 + [1] * 128), "1/2", confidence=0.975)
    low, high = clopper_pearson(2, 130, 0.95)
    assert (found.lower, found.upper) == pytest.approx((low - 0.1, high - 0.1))


def test_a_guard_that_errs_on_the_safe_side_is_promised_no_less_than_one_minus_tau():
    found = ActingRegion.of(Tally.of([0.9] * 10, [1] * 10), "3/4")
    assert found.overconfidence == pytest.approx(-0.1)
    assert found.bound == 0.25


def test_an_empty_region_prints_and_serialises():
    found = ActingRegion.of(Tally.of([0.5], [1]), 1)
    assert found.lines() == ["acting region, p >= 1: disallowed 0/0, undefined"]
    assert found.json()["overconfidence"] is None


def test_a_threshold_beyond_one_is_no_threshold():
    with pytest.raises(GuardError, match="tau_act"):
        ActingRegion.of(Tally.of([0.5], [1]), 1.2)


@pytest.mark.parametrize("size", [2, 3, 10, 40])
@pytest.mark.parametrize("confidence", [0.75, 0.9, 0.95])
def test_each_end_holds_where_a_single_doubtful_item_is_among_sure_ones(size, confidence):
    """T8: the count is 1 with all the probability of the mean, more often than a binomial count is above 0."""
    rate = 1.001 * (
        1 - confidence
    )  # of the one item: the count is not 0 so often, too often to exclude its mean
    assert unlike_ends(1, size, confidence)[0] <= rate / size
    assert unlike_ends(size - 1, size, confidence)[1] >= 1 - rate / size


@pytest.mark.parametrize("confidence", [0.75, 0.95])
def test_each_end_holds_for_all_mixtures_of_sure_and_equally_doubtful_items(confidence):
    """T8, Hoeffding: the worst laws of a count with a given mean are these; the mean is just beyond each end."""
    for size in (1, 2, 5, 9):
        ends = np.array([unlike_ends(bad, size, confidence) for bad in range(size + 1)])
        for sure, doubtful in ((j, m) for j in range(size) for m in range(1, size - j + 1)):
            for mean in np.concatenate([ends[:, 0] - 1e-9, ends[:, 1] + 1e-9]):
                rate = (mean * size - sure) / doubtful
                if not 0 <= rate <= 1:
                    continue
                law = np.zeros(size + 1)
                law[sure : sure + doubtful + 1] = stats.binom.pmf(np.arange(doubtful + 1), doubtful, rate)
                beyond = law[ends[:, 0] > mean].sum(), law[ends[:, 1] < mean].sum()
                assert max(beyond) <= 1 - confidence + 1e-12


def test_a_confidence_that_the_ends_cannot_keep_is_refused():
    with pytest.raises(GuardError, match="0.75"):
        unlike_ends(1, 10, 0.5)
