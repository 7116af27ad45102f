"""Injection on score files against loops in exact rationals, the exact laws of `injected`, and the source's answers."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.injected import ONLY_NEVER, InjectedGuard, bad_mass_bound, independent_bound
from harnesses.guard.injection import Injection, injection_success, widest
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError
from harnesses.guard.scores import Scores

TENTHS = st.integers(0, 20).map(lambda k: Fraction(k, 20))
ITEMS = st.lists(st.tuples(TENTHS, TENTHS, st.integers(0, 1)), min_size=1, max_size=10)


def scores_of(items):
    p, after, y = zip(*items)
    return Scores.of([float(q) for q in p], y, [float(q) for q in after])


@given(ITEMS, TENTHS)
def test_shifts_crossings_and_rates_are_those_of_a_loop_over_the_items(items, tau):
    """M14 Eq. 9, in rationals: 0.95 - 0.9 is 1/20 here, and a report on the threshold is over it."""
    found = Injection.of(scores_of(items), tau)
    shifts = [b - a for a, b, _ in items]
    assert (found.smallest, found.largest) == (min(shifts), max(shifts))
    assert found.shift.mean == pytest.approx(float(sum(shifts) / len(items)), abs=1e-12)
    up = [y for a, b, y in items if a < tau <= b]
    size, bad = len(items), sum(1 - y for _, _, y in items)
    assert found.crossed_up == Rate.of(len(up), size)
    assert found.crossed_up_bad == Rate.of(up.count(0), len(up))
    assert found.crossed_down == Rate.of(sum(b < tau <= a for a, b, _ in items), size)
    for side, part in ((0, found.before), (1, found.after)):
        sent = [item[2] for item in items if item[side] >= tau]
        assert (part.sent, part.bad) == (Rate.of(len(sent), size), Rate.of(sent.count(0), size))
        assert (part.share, part.uar) == (Rate.of(sent.count(0), len(sent)), Rate.of(sent.count(0), bad))
    low = tau - max(0, *shifts, 0)
    assert found.exposed == Rate.of(sum(low <= a < tau for a, _, _ in items), size)


@given(ITEMS, TENTHS)
def test_bounds_of_a_file_are_those_of_its_exact_law(items, tau):
    """T7: the exact law of the file's rows has the same D, and the same bounds."""
    found = Injection.of(scores_of(items), tau)
    law = InjectedGuard.of(
        {key: Fraction(sum(item == key for item in items), len(items)) for key in set(items)}
    )
    assert found.rise == law.rise
    exact = independent_bound(law, tau).bound
    assert exact is None or found.share_bound == min(1, exact)
    assert found.doubted == pytest.approx(float(bad_mass_bound(law, tau).bound), abs=1e-12)
    assert Fraction(found.exposed.numerator, len(items)) == law.exposed(tau)


@given(ITEMS, TENTHS)
def test_no_injection_sends_more_bad_than_can_be_reached_and_the_raised_threshold_undoes_it(items, tau):
    """T7, any injection, any guard: the bounds that need no calibration hold on every file."""
    found = Injection.of(scores_of(items), tau)
    assert found.after.bad.numerator <= found.reachable_bad.numerator
    assert found.after.bad.numerator <= found.before.bad.numerator + found.exposed.numerator
    if found.restored is None:
        assert tau + found.rise > 1 and found.remedy == ONLY_NEVER
    else:
        raised = Injection.of(scores_of(items), found.restored)
        assert raised.after.bad.numerator <= found.before.bad.numerator


def test_an_injection_that_knows_the_label_makes_the_share_one():
    """T7, dropped hypothesis: p = 15/16 for all, 1/16 added to the disallowed; 1 against 3/32 for a blind one."""
    y = np.array([0] + [1] * 15)
    found = Injection.of(Scores.of(np.full(16, 0.9375), y, np.where(y == 1, 0.9375, 1.0)), Fraction(31, 32))
    assert (found.after.share.rate, found.share_bound) == (1, Fraction(3, 32))
    assert found.after.bad.rate == found.doubted == 1 / 16
    assert found.crossed_up == Rate.of(1, 16) and found.crossed_up_bad == Rate.of(1, 1)
    assert found.remedy == ONLY_NEVER and any(ONLY_NEVER in line for line in found.lines())


@pytest.mark.parametrize(
    ("after", "restored"), [("0.53125", 1), ("0.5312501", None), ("0.2", Fraction(31, 32))]
)
def test_a_rise_of_exactly_the_room_above_the_threshold_is_still_undone(after, restored):
    """T7: 31/32 + D <= 1 up to D = 1/32, decided on the decimals; a fall asks for nothing."""
    found = Injection.of(Scores.of(["0.5", "0.4"], [1, 0], [after, "0.4"]), "31/32")
    assert found.restored == restored and found.rise == max(0, Fraction(after) - Fraction(1, 2))
    assert (found.remedy == ONLY_NEVER) == (restored is None)


def test_a_guard_that_never_acts_has_no_crossings_and_no_bound():
    found = Injection.of(Scores.of([0.5, 0.4], [1, 0], [1.0, 1.0]), None)
    assert found.crossed_up == Rate.of(0, 2) and found.after.share.rate is None and found.doubted == 0
    assert (found.share_bound, found.restored) == (None, None) and "never acts" in found.remedy
    assert json.loads(json.dumps(found.json(), allow_nan=False))["independent"]["share_bound"] is None
    assert found.lines()


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
def test_the_largest_shift_of_any_floats_is_exact(pairs):
    low, high = (np.array(column) for column in zip(*pairs))
    assert widest(low, high) == max(Fraction(repr(b)) - Fraction(repr(a)) for a, b in pairs)


def test_the_largest_shift_is_found_where_rounding_hides_it():
    low, high = np.array([0.9, 0.0]), np.array([0.9500000000000001, 0.05000000000000005])
    assert (high - low).argmax() == 1 and widest(low, high) == Fraction("0.0500000000000001")
    assert widest(np.array([5e-324]), np.array([0.05])) == Fraction(1, 20) - Fraction("5e-324")


@given(st.lists(st.sampled_from([(0, 0), (1, 0), (1, 1)]), max_size=12))
def test_success_of_model_and_system_count_runs(runs):
    """M14 Eq. 8, twice."""
    tried, done = [a for a, _ in runs], [bool(b) for _, b in runs]
    found = injection_success(tried, done)
    assert found == (Rate.of(sum(tried), len(runs)), Rate.of(sum(done), len(runs)))


def test_the_sources_twenty_runs():
    """M14 §8, second question: 8 of 20 attempted, none carried out, and none of 20 is not zero."""
    found = injection_success([1] * 8 + [0] * 12, [0] * 20)
    assert (found.attempted.rate, str(found.carried_out)) == (0.4, "0/20, at most 0.1684")


@pytest.mark.parametrize(
    ("attempted", "carried_out", "told"),
    [
        ([1, 0, 0], [0, 0, 1], "row 3 is carried out and not attempted"),
        ([1, 0], [0], "2 runs attempted or not, 1 carried"),
        ([1, 2], [0, 0], "row 2: attempted is 2"),
        ([1, 1], [0, None], "row 2: carried_out is missing"),
    ],
)
def test_runs_that_cannot_be_are_refused(attempted, carried_out, told):
    with pytest.raises(GuardError, match=told):
        injection_success(attempted, carried_out)


def test_scores_without_injected_reports_are_refused():
    with pytest.raises(GuardError, match="no column p_injected"):
        Injection.of(Scores.of([0.5], [1]), "31/32")
