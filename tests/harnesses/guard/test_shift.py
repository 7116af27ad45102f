"""T6 in exact arithmetic: distances by brute force, each bound on random pairs of laws, tight, and broken when bent."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction as F
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.finite import FiniteGuard
from harnesses.guard.shift import (
    ROOT_STEP,
    chi2,
    chi2_bound,
    chi2_end,
    fixed_labels_bound,
    labels_fixed,
    likelihood_ratio,
    ratio_bound,
    total_variation,
    variation_bound,
)

quarters = st.integers(0, 4).map(lambda k: F(k, 4))
# Few reports, so that two laws share most of them.
laws = st.lists(st.tuples(quarters, quarters, st.integers(1, 5)), min_size=1, max_size=4).map(
    FiniteGuard.from_atoms
)
calibrated = st.lists(st.tuples(quarters, st.integers(1, 5)), min_size=1, max_size=5).map(
    lambda cells: FiniteGuard.from_atoms((p, p, w) for p, w in cells)
)
TAUS = [None, *(F(k, 4) + d for k in range(5) for d in (F(-1, 1000), 0, F(1, 1000)) if 0 <= F(k, 4) + d <= 1)]


def events(P, Q):
    """All sets of pairs (report, label) that either law has."""
    pairs = sorted(P.law.keys() | Q.law.keys())
    return chain.from_iterable(combinations(pairs, k) for k in range(len(pairs) + 1))


def mass(law, event):
    return sum((law.law.get(pair, F(0)) for pair in event), F(0))


@given(laws, laws)
def test_distances_are_what_they_say_of_events(P, Q):
    """T6: total variation and the ratio as suprema over all events, chi-square as a mean over P."""
    pairs = [(mass(P, event), mass(Q, event)) for event in events(P, Q)]
    assert total_variation(P, Q) == max(abs(p - q) for p, q in pairs) == total_variation(Q, P)
    if any(q > 0 and p == 0 for p, q in pairs):
        assert likelihood_ratio(P, Q) is None and chi2(P, Q) is None
    else:
        assert likelihood_ratio(P, Q) == max(q / p for p, q in pairs if p)
        ratio = {pair: Q.law.get(pair, 0) / m for pair, m in P.law.items()}
        assert chi2(P, Q) == sum(m * (ratio[pair] - 1) ** 2 for pair, m in P.law.items())
    assert total_variation(P, P) == 0 == chi2(P, P) and likelihood_ratio(P, P) == 1


@given(calibrated, laws)
def test_share_after_a_shift_of_given_total_variation(P, Q):
    """T6, total variation."""
    for tau in TAUS:
        found = variation_bound(P, Q, tau)
        assert found.applies and found.holds
        if Q.sent(tau):
            assert found.value == Q.share(tau)
            assert found.bound == 1 - tau + total_variation(P, Q) / Q.sent(tau)


def test_variation_bound_is_reached():
    """T6, tight: mass 1/8 moves from what is never sent to bad sends, at tau = 1."""
    P = FiniteGuard.of({(1, 1): "1/8", (0, 0): "7/8"})
    Q = FiniteGuard.of({(1, 1): "1/8", (1, 0): "1/8", (0, 0): "3/4"})
    assert P.is_calibrated and variation_bound(P, Q, 1).slack == 0


def test_total_variation_must_be_divided_by_what_is_sent():
    """T6 without Q(A): a shift of a thousandth makes the share 1."""
    P = FiniteGuard.of({(0, 0): 1})
    Q = FiniteGuard.of({(0, 0): "999/1000", (1, 0): "1/1000"})
    assert P.is_calibrated and total_variation(P, Q) == F(1, 1000)
    assert Q.share(1) == 1 > 1 - 1 + total_variation(P, Q)
    assert variation_bound(P, Q, 1).slack == 0


def test_total_variation_says_nothing_of_a_guard_that_was_overconfident_before():
    """T6 without calibration under P."""
    P = FiniteGuard.of({(1, 0): 1})
    found = variation_bound(P, P, 1)
    assert not found.holds and not found.applies


@given(laws, laws)
def test_bad_sends_grow_by_at_most_the_likelihood_ratio(P, Q):
    """T6, likelihood ratio, for guards of any calibration."""
    for tau in TAUS:
        found = ratio_bound(P, Q, tau)
        assert found.holds and found.value == Q.bad(tau)
        ratio = likelihood_ratio(P, Q)
        assert found.bound == (None if ratio is None else ratio * P.bad(tau))


def test_ratio_bound_is_reached_and_needs_the_labels():
    """T6, tight where Q/P is largest; the ratio of the reports alone is 1 here and bounds nothing."""
    P = FiniteGuard.of({(1, 1): "3/4", (1, 0): "1/4"})
    Q = FiniteGuard.of({(1, 1): "1/4", (1, 0): "3/4"})
    assert ratio_bound(P, Q, 1).slack == 0 and likelihood_ratio(P, Q) == 3
    of_reports = Q.sent(1) / P.sent(1)
    assert of_reports == 1 and Q.bad(1) > of_reports * P.bad(1)


def test_no_distance_bounds_what_never_happened_before():
    """T6 where Q has bad sends that P has not: ratio and chi-square are infinite, and no bound is given."""
    P, Q = FiniteGuard.of({(1, 1): 1}), FiniteGuard.of({(1, 0): 1})
    for found in (ratio_bound(P, Q, 1), chi2_bound(P, Q, 1)):
        assert found.bound is None and found.vacuous and found.holds and found.value == 1


@given(laws, laws)
def test_bad_sends_after_a_shift_of_given_chi_square(P, Q):
    """T6, chi-square, with the root recomputed to sixty digits."""
    for tau in TAUS:
        found = chi2_bound(P, Q, tau)
        assert found.holds
        if found.bound is not None:
            r, distance = P.bad(tau), chi2(P, Q)
            with localcontext() as context:
                context.prec = 60
                square = distance * r * (1 - r)
                root = F((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())
            assert -F(1, 10**50) <= found.bound - r - root < ROOT_STEP
            assert found.value <= found.bound


@given(st.fractions(0, 1, max_denominator=50), st.fractions(0, 1, max_denominator=50))
def test_chi_square_bound_is_reached_by_two_labels(r, after):
    """T6, tight: with all reports equal the bad mass r becomes exactly r + sqrt(chi2 r (1 - r)) where it grows."""
    P = FiniteGuard.of({(1, 0): r, (1, 1): 1 - r})
    Q = FiniteGuard.of({(1, 0): after, (1, 1): 1 - after})
    if 0 < r < 1 and after >= r:
        found = chi2_bound(P, Q, 1)
        assert found.holds and 0 <= found.bound - after < ROOT_STEP
        assert (found.value - r) ** 2 == chi2(P, Q) * r * (1 - r)  # equality: no smaller bound holds


def test_chi_square_of_the_reports_alone_bounds_nothing():
    """T6 with the divergence of reports in place of reports and labels."""
    P = FiniteGuard.of({(1, 1): "3/4", (1, 0): "1/4"})
    Q = FiniteGuard.of({(1, 1): "1/4", (1, 0): "3/4"})
    assert chi2_end(P.bad(1), F(0)) == F(1, 4) < Q.bad(1) <= chi2_bound(P, Q, 1).bound


@given(calibrated, st.lists(st.integers(0, 5), min_size=5, max_size=5), laws)
def test_a_shift_of_the_reports_alone_keeps_equation_5(P, weights, other):
    """T6, y given p fixed: any new weights of the same reports; another law only where it happens to qualify."""
    Q = FiniteGuard.from_atoms([(a.p, a.eta, w) for a, w in zip(P.atoms, [weights[0] + 1, *weights[1:]])])
    for tau in TAUS:
        found = fixed_labels_bound(P, Q, tau)
        assert found.applies and found.holds
        assert found.value is None or found.bound == 1 - tau
        for unrelated in (fixed_labels_bound(P, other, tau), fixed_labels_bound(other, Q, tau)):
            assert unrelated.holds or not unrelated.applies


def test_labels_fixed_given_the_input_are_not_labels_fixed_given_the_report():
    """T6: two inputs, one safe and one not, share the report 1/2; after the shift only the other one comes."""
    inputs = [("1/2", 1), ("1/2", 0)]  # y given x never changes
    P = FiniteGuard.from_atoms((p, eta, w) for (p, eta), w in zip(inputs, (1, 1)))
    Q = FiniteGuard.from_atoms((p, eta, w) for (p, eta), w in zip(inputs, (0, 1)))
    found = fixed_labels_bound(P, Q, "1/2")
    assert P.is_calibrated and not labels_fixed(P, Q)
    assert found.value == 1 > found.bound and not found.holds and not found.applies


def test_a_report_never_seen_before_has_no_known_labels():
    """T6: Q may not act on reports of which P says nothing; below tau it may."""
    P, Q = FiniteGuard.of({(1, 1): 1}), FiniteGuard.of({("3/4", 0): "1/2", (1, 1): "1/2"})
    assert not labels_fixed(P, Q, "1/2") and labels_fixed(P, Q, 1) and labels_fixed(P, Q, None)
    assert not fixed_labels_bound(P, Q, "3/4").applies and fixed_labels_bound(P, Q, 1).applies


def test_calibration_before_the_shift_is_needed():
    """T6, y given p fixed, without calibration."""
    P = FiniteGuard.of({(1, 0): "1/2", (0, 0): "1/2"})
    found = fixed_labels_bound(P, P, 1)
    assert labels_fixed(P, P) and not found.holds and not found.applies
