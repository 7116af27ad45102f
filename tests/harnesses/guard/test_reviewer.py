"""T5's facts on a fallible reviewer against the thresholds and the cheapest region of each report."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnesses.guard.costs import PERFECT, Costs, Reviewer, best_region
from harnesses.guard.region import REGIONS, GuardError, Region, Thresholds
from harnesses.guard.reviewer import asking_line, collapse_error, collapses, threshold_form
from harnesses.guard.thresholds import thresholds

SEED = Costs(ask="1/2", miss=4, escalate=3, wrong=20)
WORST_ASKED = Costs(ask="1/2", miss=0, escalate=1, wrong=20), Reviewer(0, "1/2", 10)
eighths = st.integers(0, 8).map(lambda k: F(k, 8))
whole_costs = st.builds(Costs, *[st.integers(0, 20)] * 4)


@given(whole_costs, eighths, eighths, st.integers(0, 4))
@example(Costs(ask=2, miss=0, escalate=2, wrong=5), F(0), F(0), 0)  # asking ties with escalating everywhere
@example(Costs(ask=1, miss=1, escalate=10, wrong=2), F(0), F(0), 0)  # escalating is never worth it
def test_the_guard_collapses_exactly_where_its_thresholds_are_equal(costs, e0, e1, r):
    """T5 with r = 0, and with r > 0 as long as the threshold form holds."""
    reviewer = Reviewer(e0, e1, r)
    if threshold_form(costs, reviewer):
        assert collapses(costs, reviewer) == thresholds(costs, reviewer).collapsed
    else:
        with pytest.raises(GuardError, match="cheaper with doubt"):
            collapses(costs, reviewer)


def test_collapse_on_a_grid_of_small_costs_and_the_statement_it_corrects():
    """T5: the design's `e (1 - e0)(w - s) <= a w` is exact up to e = w; beyond, the minimum is needed."""
    wrong_statement = 0
    for w, a, s, e in product(range(1, 5), range(5), range(5), range(7)):
        costs = Costs(ask=a, miss=s, escalate=e, wrong=w)
        for e0 in (F(0), F(1, 3), F(1)):
            found = thresholds(costs, Reviewer(e0)).collapsed
            assert collapses(costs, Reviewer(e0)) == found
            tie = (1 - e0) * s + e0 * w == 0 and a == e < w
            printed = e * (1 - e0) * (w - s) <= a * w and not tie
            assert e > w or printed == found
            wrong_statement += printed != found
    assert wrong_statement


def test_escalating_dearer_than_the_mistake_needs_the_minimum():
    """T5 without e <= w: acting is never dearer than asking here, so the guard collapses to it."""
    costs = Costs(ask=1, miss=1, escalate=10, wrong=2)
    assert 10 * (2 - 1) > 1 * 2 and collapses(costs) and thresholds(costs) == Thresholds(0, 0)


def test_the_seed_guard_collapses_at_a_reviewer_error_of_19_24():
    """T5: M14's costs, and the thresholds at e0 = 0.1."""
    assert collapse_error(SEED) == F(19, 24)
    assert collapses(SEED, Reviewer("19/24")) and not collapses(SEED, Reviewer(F(19, 24) - F(1, 10**12)))
    assert thresholds(SEED, Reviewer("0.1")) == Thresholds(F(139, 144), F(31, 56))
    assert float(F(139, 144)) == pytest.approx(0.96528, abs=5e-6) and float(F(31, 56)) == pytest.approx(
        0.55357, abs=5e-6
    )
    assert not collapses(SEED) and collapses(Costs(ask="12/5", miss=4, escalate=3, wrong=20))


@given(whole_costs, eighths)
@example(Costs(ask=1, miss=1, escalate=10, wrong=2), F(0))  # collapsed by e > w alone
@example(Costs(ask=2, miss=0, escalate=2, wrong=5), F(0))  # the tie
def test_collapse_error_separates_the_reviewers_that_are_asked_from_those_that_are_not(costs, e0):
    """T5: at and beyond it the guard collapses, below it asks; the perfect reviewer's tie alone is excepted."""
    least = collapse_error(costs)
    assert 0 <= least <= 1
    tied = costs.miss == 0 and costs.ask == costs.escalate < costs.wrong
    for error in (e0, least, least / 2, (1 + least) / 2):
        if not (tied and error == 0):
            assert collapses(costs, Reviewer(error)) == (error >= least)


@given(whole_costs, eighths)
def test_thresholds_with_a_reviewer_have_the_stated_closed_form(costs, e0):
    """T5, r = 0, not collapsed: tau_act = 1 - a / ((1-e0)(w-s)), tau_esc = 1 - (e-a) / (s + e0 (w-s)), at least 0."""
    if not collapses(costs, Reviewer(e0)):
        a, s, e, w = costs.ask, costs.miss, costs.escalate, costs.wrong
        slope = s + e0 * (w - s)
        esc = max(F(0), 1 - (e - a) / slope) if slope else 0
        assert thresholds(costs, Reviewer(e0)) == Thresholds(1 - a / ((1 - e0) * (w - s)), esc)


def best_along(costs, reviewer, steps=40):
    """The cheapest region at p = 0, 1/steps, ..., 1."""
    return [best_region(F(k, steps), costs, reviewer) for k in range(steps + 1)]


@given(whole_costs, eighths, eighths, st.integers(0, 4))
def test_under_the_threshold_form_autonomy_grows_with_p(costs, e0, e1, r):
    """T5: e1 r <= s + e0 (w - s) suffices for escalate, ask, act in this order."""
    reviewer = Reviewer(e0, e1, r)
    assert threshold_form(costs, reviewer) == (e1 * r <= costs.miss + e0 * (costs.wrong - costs.miss))
    if threshold_form(costs, reviewer):
        ranks = [REGIONS.index(kind) for kind in best_along(costs, reviewer)]
        assert all(a >= b for a, b in pairwise(ranks))


def test_without_it_the_worst_calls_are_asked_about():
    """T5 without e1 r <= s + e0 (w - s): asks up to .1, escalates between .1 and .95, acts from there."""
    found = best_along(*WORST_ASKED)
    assert found == [Region.ASK] * 5 + [Region.ESCALATE] * 33 + [Region.ACT] * 3
    assert not threshold_form(*WORST_ASKED)
    for refused in (thresholds, collapses):
        with pytest.raises(GuardError):
            refused(*WORST_ASKED)


@given(whole_costs, eighths, eighths, st.integers(0, 4), eighths)
def test_asking_costs_its_line(costs, e0, e1, r, p):
    """T5: a + q ((1-e0) s + e0 w) + p e1 r is base + slope q."""
    base, slope = asking_line(costs, Reviewer(e0, e1, r))
    q = 1 - p
    stated = costs.ask + q * ((1 - e0) * costs.miss + e0 * costs.wrong) + p * e1 * r
    assert base + slope * q == stated and asking_line(costs, PERFECT) == (costs.ask, costs.miss)
