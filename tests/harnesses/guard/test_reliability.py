"""Reliability tables against exact rationals and two peers."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.region import GuardError
from harnesses.guard.reliability import debiased_squared, ece, equal_mass, equal_width
from harnesses.guard.tally import Tally

# Decimals whose products with 10 and 100 round to the wrong side, the edges 0 and 1, and many ties.
VALUES = [0.0, 0.07, 0.1, 0.29, 0.3, 1 / 3, 0.57, 0.58, 0.6, 2 / 3, 0.7, 0.9, 0.999, 1.0]
REPORTS = st.sampled_from(VALUES)
ROWS = st.lists(st.tuples(REPORTS, st.integers(0, 1)), min_size=1, max_size=40)
BINS = st.sampled_from([1, 2, 3, 7, 10])


def exact(value):
    return Fraction(str(value))


def exact_rows(rows, place):
    """Count, sum of reports and allowed items per bin, in exact rationals and in the order of the bins."""
    found = {}
    for p, y in rows:
        entry = found.setdefault(place(p), [0, Fraction(0), 0])
        entry[0] += 1
        entry[1] += exact(p)
        entry[2] += y
    return [found[key] for key in sorted(found)]


def exact_ece(parts, items):
    return float(sum(abs(said - good) for _, said, good in parts) / items)


def sample(seed, size=3000):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.4, size)
    return p, (rng.random(size) < p**1.5).astype(int)


def tied_rows(seed):
    """Rows of which few reports hold most, as hypothesis seldom draws them."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 200))
    weights = rng.dirichlet(np.full(len(VALUES), 0.5))
    return list(zip(rng.choice(VALUES, size, p=weights).tolist(), rng.integers(0, 2, size).tolist()))


@given(ROWS, BINS)
def test_equal_width_bins_are_those_of_exact_decimals(rows, bins):
    check_equal_width(rows, bins)


def check_equal_width(rows, bins):
    table = equal_width(Tally.of(*zip(*rows)), bins)
    parts = exact_rows(rows, lambda p: min(int(exact(p) * bins), bins - 1))
    assert len(table) == bins
    filled = [row for row in table if row.count]
    assert [(row.count, row.allowed.numerator) for row in filled] == [(n, k) for n, _, k in parts]
    assert [row.mean_report for row in filled] == pytest.approx(
        [float(s / n) for n, s, _ in parts], abs=1e-15
    )
    assert ece(table) == pytest.approx(exact_ece(parts, len(rows)), abs=1e-14)
    for row in table:
        if not row.count:
            assert row.mean_report is row.overconfidence is row.se is row.allowed.rate is None


@pytest.mark.parametrize("bins", [1, 2, 3, 5, 8])
def test_equal_mass_bins_of_heavy_ties_never_split_them(bins):
    for seed in range(5):
        check_equal_mass(tied_rows(seed), bins)


@pytest.mark.parametrize("bins", [3, 10, 100])
def test_equal_width_bins_meet_every_edge(bins):
    rows = [(p, y) for p in VALUES for y in (0, 1)]
    check_equal_width(rows, bins)


@given(ROWS, BINS)
def test_equal_mass_bins_never_split_equal_reports(rows, bins):
    check_equal_mass(rows, bins)


def check_equal_mass(rows, bins):
    table = equal_mass(Tally.of(*zip(*rows)), bins)
    below = {p: sum(other < p for other, _ in rows) for p, _ in rows}
    parts = exact_rows(rows, lambda p: Fraction(bins * below[p], len(rows)).__floor__())
    assert [(row.count, row.allowed.numerator) for row in table] == [(n, k) for n, _, k in parts]
    assert ece(table) == pytest.approx(exact_ece(parts, len(rows)), abs=1e-14)
    assert all(a.upper < b.lower for a, b in zip(table, table[1:]))
    assert len(table) <= min(bins, len({p for p, _ in rows}))


@pytest.mark.parametrize("bins", [1, 4, 15])
def test_equal_mass_bins_of_distinct_reports_differ_by_at_most_one_item(bins):
    counts = [row.count for row in equal_mass(Tally.of(*sample(1, 397)), bins)]
    assert len(counts) == bins
    assert max(counts) - min(counts) <= 1


@given(ROWS, st.randoms(use_true_random=False))
def test_tables_do_not_depend_on_the_order_of_rows(rows, random):
    other = rows[:]
    random.shuffle(other)
    for table in (equal_width, equal_mass):
        assert table(Tally.of(*zip(*rows)), 6) == table(Tally.of(*zip(*other)), 6)


def test_the_standard_error_of_a_gap_is_that_of_the_mean_residual():
    p, y = sample(2, 50)
    (row,) = equal_width(Tally.of(p, y), 1)
    assert row.overconfidence == pytest.approx(np.mean(p - y), abs=1e-15)
    assert row.se == pytest.approx(np.std(p - y, ddof=1) / np.sqrt(50), rel=1e-12)


def test_equal_width_agrees_with_scikit_learn():
    calibration_curve = pytest.importorskip("sklearn.calibration", reason="an oracle").calibration_curve
    p, y = sample(3)  # no report lies on an edge, which the peer counts to the bin below
    observed, said = calibration_curve(y, p, n_bins=15)
    table = equal_width(Tally.of(p, y), 15)
    assert [row.allowed.rate for row in table] == pytest.approx(list(observed), rel=1e-12)
    assert [row.mean_report for row in table] == pytest.approx(list(said), rel=1e-12)


def test_equal_width_agrees_with_mapie_asked_for_one_bin_more():
    """MAPIE 1.6 cuts [0, 1] into num_bins - 1 bins, so that its num_bins=11 is what is called 10 bins here."""
    mapie = pytest.importorskip("mapie.metrics.calibration", reason="an oracle")
    p, y = sample(4)
    peer = mapie.expected_calibration_error(y, p, num_bins=11, split_strategy="uniform")
    assert ece(equal_width(Tally.of(p, y), 10)) == pytest.approx(peer, rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_debiased_square_of_one_bin_is_unbiased(size):
    """The mean over all samples, weighed by their probabilities, is the squared gap of the law."""
    law = {(0.5, 1): 0.2, (0.5, 0): 0.3, (0.8, 1): 0.4, (0.8, 0): 0.1}
    mean = 0.0
    for rows in product(law, repeat=size):
        weight = np.prod([law[row] for row in rows])
        mean += weight * debiased_squared(equal_width(Tally.of(*zip(*rows)), 1))
    assert mean == pytest.approx((0.5 * 0.5 + 0.5 * 0.8 - 0.6) ** 2, abs=1e-15)


def test_debiased_square_is_unbiased_given_the_counts_of_fixed_bins():
    low = {(0.1, 1): 0.3, (0.1, 0): 0.3, (0.4, 0): 0.4}
    high = {(0.6, 1): 0.5, (0.9, 0): 0.5}
    gaps = [sum(w * (p - y) for (p, y), w in law.items()) for law in (low, high)]
    mean = 0.0
    for a, b, c, d, e in product(low, low, high, high, high):
        weight = low[a] * low[b] * high[c] * high[d] * high[e]
        mean += weight * debiased_squared(equal_width(Tally.of(*zip(a, b, c, d, e)), 2))
    assert mean == pytest.approx((2 * gaps[0] ** 2 + 3 * gaps[1] ** 2) / 5, abs=1e-15)


def test_debiased_square_is_the_published_one_where_bins_hold_one_report():
    """Kumar, Liang and Ma: (s - y)^2 - y (1 - y) / (n - 1) per bin, weighed by n."""
    rng = np.random.default_rng(5)
    p = rng.choice([0.1, 0.5, 0.9], 60)
    y = rng.integers(0, 2, 60)
    total = 0.0
    for value in (0.1, 0.5, 0.9):
        labels = y[p == value]
        n, rate = labels.size, labels.mean()
        total += n / 60 * ((value - rate) ** 2 - rate * (1 - rate) / (n - 1))
    assert debiased_squared(equal_width(Tally.of(p, y), 10)) == pytest.approx(total, abs=1e-14)


def test_debiased_square_needs_a_bin_of_two():
    assert debiased_squared(equal_width(Tally.of([0.1, 0.9], [0, 1]), 2)) is None
    found = debiased_squared(equal_width(Tally.of([0.1, 0.9, 0.9], [1, 1, 1]), 2))
    assert found == pytest.approx(0.01)  # the bin of one item has a gap of 0.9 and no vote


@pytest.mark.parametrize("bins", [0, -1, 1.5, True, "15"])
def test_the_number_of_bins_is_a_positive_integer(bins):
    for table in (equal_width, equal_mass):
        with pytest.raises(GuardError, match="such as 15"):
            table(Tally.of([0.5], [1]), bins)
