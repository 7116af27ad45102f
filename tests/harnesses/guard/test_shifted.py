"""Bounds under a stated shift, on exactly reweighted items: distances and truth are computed in rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harnesses.guard.demo import COSTS, demo_items
from harnesses.guard.finite import FiniteGuard
from harnesses.guard.region import GuardError, Thresholds
from harnesses.guard.report import counted, report
from harnesses.guard.scores import Scores
from harnesses.guard.shift import chi2, likelihood_ratio, total_variation
from harnesses.guard.shifted import moved, shifted

QUARTERS = st.integers(0, 4).map(lambda k: Fraction(k, 4))
WEIGHTED = st.lists(st.tuples(QUARTERS, st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=8)


@given(WEIGHTED, QUARTERS)
def test_a_shift_of_the_stated_distance_sends_no_more_bad_than_is_said(items, tau):
    """T6: the items carry P equally and Q by weight; each distance alone bounds Q(bad, A), and all together."""
    total = sum(weight for _, _, weight in items)
    assume(total)
    rows = [(p, y) for p, y, _ in items]
    P = FiniteGuard.of({row: Fraction(rows.count(row), len(rows)) for row in set(rows)})
    Q = FiniteGuard.of(
        {row: Fraction(sum(w for p, y, w in items if (p, y) == row), total) for row in set(rows)}
    )
    scores = Scores.of([float(p) for p, _ in rows], [y for _, y in rows])
    one = counted(scores, Thresholds(tau, 0), COSTS, 0.9)
    distances = {"tv": total_variation(P, Q), "ratio": likelihood_ratio(P, Q), "chi2": chi2(P, Q)}
    found = [shifted(one, **{name: value}) for name, value in distances.items()] + [shifted(one, **distances)]
    assert all(Q.bad(tau) <= bound.bad_mass <= bound.bad_mass_upper for bound in found)
    assert found[3].bad_mass == min(bound.bad_mass for bound in found[:3])
    known, unknown = shifted(one, **distances, sent_after=Q.sent(tau)), found[3]
    if not Q.sent(tau):
        assert (known.share, known.share_upper, unknown.share, unknown.share_upper) == (None,) * 4
        return
    # Eq. 5 assumes no overconfidence under P; what there is of it is added here, exactly.
    excess = P.excess(tau) * P.sent(tau) / Q.sent(tau) if P.sent(tau) else 0
    for bound in (known, unknown):
        if bound.share is not None:
            assert Q.share(tau) <= bound.share + excess or bound.share == 1
            assert Q.share(tau) <= bound.share_upper
    assert known.share is not None


@given(QUARTERS, QUARTERS)
def test_a_stated_total_variation_is_used_up_by_the_worst_shift(mass, tv):
    """T6 is tight: a P with room for it can move all of tv to what is bad and sent."""
    assert moved(mass, tv, None, None) == min(1, mass + tv)
    assert moved(mass, None, Fraction(1), None) == mass == moved(mass, None, None, Fraction(0))


def test_the_share_after_a_shift_of_the_demo():
    """T6 by hand: 2 of 400 bad, 130 sent, tau 31/32."""
    one = report(demo_items(), Thresholds("31/32", "3/8"), COSTS)
    found = shifted(one, tv="0.01")
    assert found.bad_mass == Fraction(2, 400) + Fraction(1, 100)
    assert found.share == Fraction(1, 32) + Fraction(1, 100) / (Fraction(130, 400) - Fraction(1, 100))
    assert shifted(one, tv="0.01", sent_after="1/4").share == Fraction(1, 32) + Fraction(1, 25)
    assert shifted(one, ratio=2).bad_mass == Fraction(1, 100) and shifted(one, ratio=2).share is None
    assert shifted(one, tv="0.4").share is None and shifted(one, tv="0.4").json()["share_upper"] is None
    end = found.bad_mass_upper - Fraction(1, 100)
    tail = sum(math.comb(400, k) * end**k * (1 - end) ** (400 - k) for k in range(3))
    assert float(tail) == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize(
    ("distances", "told"),
    [
        ({}, "no distance is given"),
        ({"tv": 2}, "tv is 2"),
        ({"ratio": "1/2"}, "ratio is 1/2; give 1 or more"),
        ({"chi2": -1}, "chi2 is -1; give 0 or more"),
        ({"chi2": "x"}, "chi2: 'x' is not a number"),
        ({"tv": 0, "sent_after": -1}, "sent_after is -1"),
    ],
)
def test_what_is_no_distance_is_refused(distances, told):
    with pytest.raises(GuardError, match=told):
        shifted(counted(demo_items(), Thresholds("31/32", "3/8"), COSTS, 0.95), **distances)
