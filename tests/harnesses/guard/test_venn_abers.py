"""Venn-Abers against exact isotonic regression fitted anew for every item and label, and against two peers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.region import GuardError, Thresholds, regions
from harnesses.guard.venn_abers import LowerVennAbers, VennAbers

REPORTS = st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
ROWS = st.lists(st.tuples(REPORTS, st.integers(0, 1)), min_size=1, max_size=14)
BETWEEN = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def isotonic(rows):
    """Exact isotonic regression by its max-min formula: value of each distinct report."""
    distinct = sorted({p for p, _ in rows})
    labels = [[y for p, y in rows if p == value] for value in distinct]
    size = range(len(distinct))

    def mean(a, b):
        pooled = [y for part in labels[a : b + 1] for y in part]
        return Fraction(sum(pooled), len(pooled))

    return {
        value: max(min(mean(a, b) for b in size if b >= i) for a in size if a <= i)
        for i, value in enumerate(distinct)
    }


def sample(seed, size, power=1.5):
    rng = np.random.default_rng(seed)
    p = rng.random(size)
    return p, (rng.random(size) < p**power).astype(int)


@given(ROWS)
def test_both_ends_are_those_of_isotonic_regression_fitted_with_the_item(rows):
    low, high = VennAbers.fit(*zip(*rows)).interval(BETWEEN)
    # Equal floats, not close ones: both are the float next to the same rational.
    assert low.tolist() == [float(isotonic([*rows, (p, 0)])[p]) for p in BETWEEN]
    assert high.tolist() == [float(isotonic([*rows, (p, 1)])[p]) for p in BETWEEN]


@given(st.lists(st.tuples(REPORTS, st.integers(0, 1)), min_size=2, max_size=10))
def test_the_end_of_the_true_label_is_calibrated(rows):
    """Exchangeability, exactly: each of the items is the new one once, the others calibrate.

    Among the items whose true label's end is v the share of allowed ones is v, for every v.
    """
    at = {}
    for k, (p, y) in enumerate(rows):
        low, high = VennAbers.fit(*zip(*rows[:k], *rows[k + 1 :])).interval([p])
        at.setdefault(float(high[0] if y else low[0]), []).append(y)
    for value, labels in at.items():
        assert value == len([y for y in labels if y]) / len(labels)


def test_calibrated_on_new_items():
    """By simulation: new items allowed at a rate between the mean ends, within four standard errors."""
    p, y = sample(0, 2000)
    new, label = sample(1, 40000)
    low, high = VennAbers.fit(p, y).interval(new)
    for k in range(5):
        inside = (new >= k / 5) & (new < (k + 1) / 5)
        # The calibration set is one draw: its own error in a fifth of the items comes on top.
        slack = 4 * 0.5 / np.sqrt(inside.sum()) + 4 * 0.5 / np.sqrt(400)
        assert low[inside].mean() - slack <= label[inside].mean() <= high[inside].mean() + slack


def test_agrees_with_the_package_of_that_name():
    peer = pytest.importorskip("venn_abers", reason="an oracle")
    p, y = sample(2, 300)
    new = np.concatenate([np.random.default_rng(3).random(200), p[:50]])
    fitted = peer.VennAbers()
    fitted.fit(np.column_stack([1 - p, p]), y)
    merged, ends = fitted.predict_proba(np.column_stack([1 - new, new]))
    found = VennAbers.fit(p, y)
    assert np.column_stack(found.interval(new)) == pytest.approx(ends, abs=1e-12)
    assert found.predict(new) == pytest.approx(merged[:, 1], abs=1e-12)


def test_agrees_with_scikit_learn_fitted_twice_per_item_on_a_larger_set_with_ties():
    isotonic_regression = pytest.importorskip("sklearn.isotonic", reason="an oracle").IsotonicRegression
    p, y = sample(4, 400)
    p = np.round(p, 2)
    low, high = VennAbers.fit(p, y).interval(BETWEEN)
    for k, new in enumerate(BETWEEN):
        for label, found in ((0, low), (1, high)):
            fitted = isotonic_regression().fit(np.append(p, new), np.append(y, label))
            assert found[k] == pytest.approx(fitted.predict([new])[0], abs=1e-9)


@given(ROWS, st.randoms(use_true_random=False))
def test_ends_rise_with_the_report_and_enclose_the_merged_probability(rows, random):
    other = rows[:]
    random.shuffle(other)
    found = VennAbers.fit(*zip(*rows))
    low, high = found.interval(BETWEEN)
    merged = found.predict(BETWEEN)
    assert (np.diff(low) >= 0).all() and (np.diff(high) >= 0).all() and (np.diff(merged) >= -1e-15).all()
    assert (low >= 0).all() and (low < high).all() and (high <= 1).all()
    assert (low <= merged + 1e-15).all() and (merged <= high + 1e-15).all()
    assert merged == pytest.approx(high / (1 - low + high))
    assert VennAbers.fit(*zip(*other)).predict(BETWEEN).tolist() == merged.tolist()


def test_the_conservative_rule_acts_where_the_lower_probability_reaches_the_threshold():
    """With n allowed items at one report p0 is n / (n + 1): 31/32 is reached with 31 of them, exactly."""
    limits = Thresholds("31/32", 0)
    for n in (30, 31):
        found = VennAbers.fit([0.9] * n, [1] * n)
        assert found.lower([0.9])[0] == n / (n + 1)
        acts = regions(found.lower([0.9]), limits)[0] == 0
        assert acts == (n == 31)
        assert LowerVennAbers.fit([0.9] * n, [1] * n).predict([0.9, 0.8]).tolist() == [n / (n + 1), 0.0]


def test_many_distinct_reports_are_one_pass():
    p, y = sample(5, 20000)
    low, high = VennAbers.fit(p, y).interval([0.25, 0.5, 0.75])
    assert np.array([0.25, 0.5, 0.75]) ** 1.5 == pytest.approx((low + high) / 2, abs=0.05)
    assert (high - low).max() < 0.05


def test_a_report_outside_zero_and_one_is_named():
    with pytest.raises(GuardError, match="report 2"):
        VennAbers.fit([0.5], [1]).interval([0.5, -0.1])
