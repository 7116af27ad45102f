"""Thresholds from costs, T1 and T5, against the cheapest region by expected cost in exact arithmetic."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.costs import PERFECT, Costs, Reviewer, best_region, expected_costs
from harnesses.guard.region import GuardError, Region, Thresholds, region
from harnesses.guard.thresholds import cuts, thresholds

F = Fraction
DEMO = Costs(ask=F(1, 2), miss=4, escalate=3, wrong=20)
amounts = st.builds(F, st.integers(0, 20), st.sampled_from([1, 1, 1, 2, 3]))
shares = st.sampled_from([F(0), F(1, 10), F(1, 4), F(1, 2), F(9, 10), F(1)])
doubts = st.builds(lambda k, n: F(min(k, n), n), st.integers(0, 24), st.integers(1, 24))


def cheapest(q: Fraction, w: Fraction, a: Fraction, s: Fraction, e: Fraction, ask: Fraction) -> Region:
    """The region of least cost, ties to the more autonomous; apart from harnesses.guard.costs."""
    act = w * q
    if act <= ask and act <= e:
        return Region.ACT
    return Region.ASK if ask <= e else Region.ESCALATE


def test_brute_force_over_costs_and_doubts_has_no_mismatch() -> None:
    """T1 at 290,004 points: w in 1..12; a, s, e in 0..12; q in eighths and at both thresholds."""
    eighths, mismatches, points = range(9), [], 0
    for w, a, s, e in product(range(1, 13), range(13), range(13), range(13)):
        found = cuts(F(w), F(a), F(s), F(e))
        assert found is not None
        (x, n), (y, m) = (F(q).as_integer_ratio() for q in found)
        # Doubts as integer pairs top/bottom: the same comparisons as `region` makes, without building fractions.
        for top, bottom in (*((k, 8) for k in eighths), (x, n), (y, m)):
            chosen = 0 if top * n <= x * bottom else 1 if top * m <= y * bottom else 2
            act, ask, escalate = w * top, a * bottom + s * top, e * bottom
            best = 0 if act <= ask and act <= escalate else 1 if ask <= escalate else 2
            points += 1
            if chosen != best:
                mismatches.append((w, a, s, e, F(top, bottom)))
    assert (points, mismatches) == (290_004, [])


@given(amounts, amounts, amounts, amounts, doubts)
def test_the_thresholds_with_their_region_choose_the_cheapest(w, a, s, e, q) -> None:
    """T1 through the public functions, at any doubt and at both thresholds."""
    costs = Costs(ask=a, miss=s, escalate=e, wrong=w)
    limits = thresholds(costs)
    for p in (1 - q, limits.tau_act, limits.tau_esc, F(0), F(1)):
        best = cheapest(1 - p, w, a, s, e, a + s * (1 - p))
        assert region(p, limits) is best_region(p, costs) is best


@given(amounts, amounts, amounts, amounts, shares, shares, amounts, doubts)
def test_a_fallible_reviewer_moves_the_thresholds_so_that_they_stay_the_cheapest(
    w, a, s, e, e0, e1, r, q
) -> None:
    """T5: where two thresholds exist they are optimal; where none do, some doubt above an escalation asks."""
    costs, reviewer = Costs(a, s, e, w), Reviewer(e0, e1, r)

    def best(p: Fraction) -> Region:
        ask = a + (1 - p) * ((1 - e0) * s + e0 * w) + p * e1 * r
        assert best_region(p, costs, reviewer) is cheapest(1 - p, w, a, s, e, ask)
        return best_region(p, costs, reviewer)

    try:
        limits = thresholds(costs, reviewer)
    except GuardError:
        assert e1 * r > (1 - e0) * s + e0 * w, "three regions in this order need a regret above every miss"
        assert best(F(0)) is Region.ASK
        assert Region.ESCALATE in {best(F(k, 2000)) for k in range(2000)}
        return
    for p in (1 - q, limits.tau_act, limits.tau_esc, F(0), F(1)):
        assert region(p, limits) is best(p)


@pytest.mark.parametrize(
    ("w", "a", "s", "e", "tau_act", "tau_esc"),
    [
        (20, F(1, 2), 4, 3, F(31, 32), F(3, 8)),
        (4, F(5, 2), 2, 1, F(3, 4), F(3, 4)),
        # Degenerate: nothing is wrong, so everything is done.
        (0, F(1, 2), 4, 3, 0, 0),
        (0, 0, 0, 0, 0, 0),
        # A wrong act is no dearer than an escalation nor, with the miss, than a question.
        (3, 1, 4, 3, 0, 0),
        # A wrong act costs a miss: a question never saves what it costs.
        (4, 1, 4, 3, F(1, 4), F(1, 4)),
        # Questions are free: nothing doubtful is done, and a miss still may cost more than an escalation.
        (20, 0, 4, 3, 1, F(1, 4)),
        (20, 0, 0, 3, 1, 0),
        # Escalating is free.
        (20, F(1, 2), 4, 0, 1, 1),
        # Both are free: the tie at certain doubt goes to the question.
        (20, 0, 0, 0, 1, 0),
        # A perfect question without a miss at the price of an escalation: the one tie outside the survival condition.
        (20, 3, 0, 3, F(17, 20), 0),
        (20, 4, 0, 3, F(17, 20), F(17, 20)),
        # Escalating is too dear ever to pay.
        (20, F(1, 2), 4, 5, F(31, 32), 0),
    ],
)
def test_known_costs_have_known_thresholds(w, a, s, e, tau_act, tau_esc) -> None:
    """T1: the example of M14 §7, the collapsed one, and each degenerate case."""
    found = thresholds(Costs(ask=a, miss=s, escalate=e, wrong=w))
    assert (found.tau_act, found.tau_esc) == (tau_act, tau_esc)
    assert all(isinstance(tau, Fraction) for tau in (found.tau_act, found.tau_esc))


@pytest.mark.parametrize(
    ("a", "collapsed"), [(F(12, 5) - F(1, 10**9), False), (F(12, 5), True), (F(5, 2), True), (3, True)]
)
def test_a_guard_that_pays_too_much_for_questions_collapses(a, collapsed) -> None:
    """T1: with (20, a, 4, 3) no report is asked about from a = 12/5 on, and both thresholds are Chow's 17/20."""
    found = thresholds(Costs(ask=a, miss=4, escalate=3, wrong=20))
    assert found.collapsed is collapsed
    assert (found.tau_act == found.tau_esc == F(17, 20)) is collapsed


def test_asking_survives_exactly_where_it_pays_and_else_the_thresholds_are_chows() -> None:
    """T1: survival iff w > s, a w < e (w - s), a < w - s; the exception is the tie s = 0, a = e, and only it."""
    seen: Counter[str] = Counter()
    for w, a, s, e in product(range(1, 9), range(9), range(9), range(9)):
        found = thresholds(Costs(a, s, e, w))
        survives = w > s and a * w < e * (w - s) and a < w - s
        chow = max(F(0), 1 - F(e, w))
        if s == 0 and a == e and not survives and not found.collapsed:
            # Asking and escalating cost the same at every doubt; the tie is a question's.
            assert (found.tau_act, found.tau_esc) == (chow, 0)
            seen["tie"] += 1
        elif survives:
            assert not found.collapsed
            seen["survives"] += 1
        else:
            assert found.tau_act == found.tau_esc == chow
            seen["collapsed"] += 1
    assert min(seen.values()) > 20


def test_a_reviewer_who_errs_one_time_in_ten_widens_acting_and_narrows_asking() -> None:
    """T5: e0 = 1/10 on the guard of M14 §7."""
    found = thresholds(DEMO, Reviewer(e0=F(1, 10)))
    assert (found.tau_act, found.tau_esc) == (1 - F(1, 2) / (F(9, 10) * 16), 1 - F(5, 2) / F(28, 5))
    assert (found.tau_act, found.tau_esc) == (F(139, 144), F(31, 56))
    assert [round(float(tau), 5) for tau in (found.tau_act, found.tau_esc)] == [0.96528, 0.55357]


@pytest.mark.parametrize(
    ("e0", "collapsed"), [(F(19, 24) - F(1, 10**9), False), (F(19, 24), True), (F(9, 10), True), (1, True)]
)
def test_a_reviewer_who_errs_too_often_is_not_asked(e0, collapsed) -> None:
    """T5: asking collapses iff e (1 - e0) (w - s) <= a w, here e0 >= 19/24."""
    found = thresholds(DEMO, Reviewer(e0=e0))
    assert found.collapsed is collapsed is (3 * (1 - e0) * 16 <= F(1, 2) * 20)


def test_regret_above_every_miss_leaves_no_two_thresholds() -> None:
    """T5: e1 r <= (1 - e0) s + e0 w dropped: asks below 1/10, escalates from there up to 19/20, then acts."""
    costs, reviewer = Costs(ask=F(1, 2), miss=0, escalate=1, wrong=20), Reviewer(e0=0, e1=F(1, 2), r=10)
    with pytest.raises(GuardError, match="no two thresholds are optimal"):
        thresholds(costs, reviewer)
    step = F(1, 10**6)
    kinds = {
        Region.ASK: (F(0), F(1, 20), F(1, 10) - step, F(1, 10)),
        Region.ESCALATE: (F(1, 10) + step, F(1, 2), F(19, 20) - step),
        Region.ACT: (F(19, 20), F(1)),
    }
    for kind, reports in kinds.items():
        for p in reports:
            found = expected_costs(p, costs, reviewer)
            assert found[kind] == min(found.values())
            assert best_region(p, costs, reviewer) is kind


def test_equation_4_as_printed_is_not_optimal() -> None:
    """formal.md section 6, erratum 1: M14 Eq. 4 acts at cost 2 where escalating costs 1."""
    w, a, s, e = 2, 1, 1, 1
    printed = Thresholds(
        tau_act=1 - F(a, w - s), tau_esc=0
    )  # its tau_esc is 1 - (e - a)/s = 1, above tau_act = 0
    assert 1 - F(e - a, s) > printed.tau_act
    costs, p = Costs(a, s, e, w), F(0)
    found = expected_costs(p, costs)
    assert region(p, printed) is Region.ACT
    assert (found[Region.ACT], found[Region.ESCALATE]) == (2, 1)
    assert region(p, thresholds(costs)) is Region.ESCALATE


def test_costs_as_text_and_floats_are_read_exactly() -> None:
    for a in ("1/2", 0.5, "0.5", F(1, 2)):
        assert thresholds(Costs(a, "4", 3.0, 20)).tau_act == F(31, 32)
    assert thresholds(Costs(0.3, 0, 1, 3)).tau_act == F(9, 10)


def test_the_same_cuts_come_out_of_floats() -> None:
    assert cuts(20.0, 0.5, 4.0, 3.0) == (1 / 32, 5 / 8)
    assert PERFECT == Reviewer(0, 0, 0)
