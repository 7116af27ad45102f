"""T7 in exact arithmetic on random injected guards: what a rise of D can do, with the label and without."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.finite import FiniteGuard
from harnesses.guard.injected import (
    ONLY_NEVER,
    InjectedGuard,
    Pair,
    bad_mass_bound,
    crossing_bound,
    independent_bound,
    lowered,
    remedy,
    restored_mass_bound,
    restored_share_bound,
    restored_threshold,
)
from harnesses.guard.region import GuardError

eighths = st.integers(0, 8).map(lambda k: F(k, 8))
shifts = st.integers(-8, 3).map(lambda k: F(k, 8))
TAUS = [F(k, 8) + d for k in range(9) for d in (F(-1, 1000), 0, F(1, 1000)) if 0 <= F(k, 8) + d <= 1]
STRICTEST = F(31, 32)


def clip(p):
    return min(F(1), max(F(0), p))


def joint(cells):
    """A law from cells (p, d, eta, weight): report p, injected report clip(p + d), P(y = 1) = eta."""
    total, law = sum(w for *_, w in cells), {}
    for p, d, eta, w in cells:
        for y, m in ((1, eta * w / total), (0, (1 - eta) * w / total)):
            law[p, clip(p + d), y] = law.get((p, clip(p + d), y), F(0)) + m
    return InjectedGuard.of(law)


# Any guard, any injection, the label known to the attacker.
any_laws = st.lists(st.tuples(eighths, shifts, eighths, st.integers(1, 5)), min_size=1, max_size=6).map(joint)


@st.composite
def blind_laws(draw):
    """Calibrated before, and shifted by a draw that looks at p alone."""
    reports = draw(st.dictionaries(eighths, st.integers(1, 5), min_size=1, max_size=3))
    drawn = {
        p: draw(st.lists(st.tuples(shifts, st.integers(1, 3)), min_size=1, max_size=3))
        for p in sorted(reports)
    }
    return joint(
        [
            (p, d, p, F(weight * w, sum(v for _, v in drawn[p])))
            for p, weight in reports.items()
            for d, w in drawn[p]
        ]
    )


@st.composite
def knowing_laws(draw):
    """Calibrated before, and shifted by one amount if allowed and another if not."""
    reports = draw(st.lists(st.tuples(eighths, st.integers(1, 5), shifts, shifts), min_size=1, max_size=4))
    cells = [(p, up, F(0), (1 - p) * w) for p, w, up, _ in reports] + [
        (p, d, F(1), p * w) for p, w, _, d in reports
    ]
    return joint([cell for cell in cells if cell[3]])


@given(any_laws)
def test_both_sides_and_the_rise_are_read_off_the_joint_law(law):
    masses = {
        (pair.before, pair.after, y): m
        for pair in law.pairs
        for y, m in ((1, pair.allowed), (0, pair.bad))
        if m
    }
    for k, side in ((0, law.before), (1, law.after)):
        marginal = {}
        for key, m in masses.items():
            marginal[key[k], key[2]] = marginal.get((key[k], key[2]), F(0)) + m
        assert side == FiniteGuard.of(marginal)
    assert InjectedGuard.of(masses) == law
    assert law.rise == max([F(0)] + [after - p for p, after, _ in masses])
    bad_of = {(p, after): masses.get((p, after, 0), F(0)) for p, after, _ in masses}
    known = {
        p: {bad_of[p, a] / (bad_of[p, a] + masses.get((p, a, 1), F(0))) for q, a in bad_of if q == p}
        for p, _ in bad_of
    }
    assert law.independent == all(len(values) == 1 for values in known.values())
    for tau in TAUS:
        crossed = sum(m for (p, after, _), m in masses.items() if p < tau <= after)
        assert law.crossings(tau) == crossed <= law.exposed(tau)
        assert law.exposed(tau) == sum(m for (p, _, _), m in masses.items() if tau - law.rise <= p < tau)


@given(st.lists(st.tuples(eighths, eighths, st.integers(0, 1)), min_size=1, max_size=8))
def test_an_empirical_law_counts_rows(rows):
    law = InjectedGuard.from_scores(*zip(*rows))
    assert law == InjectedGuard.of({row: F(rows.count(row), len(rows)) for row in rows})
    assert law.before == FiniteGuard.from_scores([p for p, _, _ in rows], [y for *_, y in rows])
    floats = InjectedGuard.from_scores(
        [float(p) for p, _, _ in rows], [float(a) for _, a, _ in rows], [y for *_, y in rows]
    )
    assert floats == law


@given(blind_laws())
def test_an_injection_that_ignores_the_label_adds_at_most_its_rise(law):
    """T7, independent: share at most 1 - tau + D, and at tau + D at most 1 - tau again."""
    assert law.before.is_calibrated and law.independent
    for tau in TAUS:
        found, restored = independent_bound(law, tau), restored_share_bound(law, tau)
        assert found.applies and found.holds and restored.holds
        if found.value is not None:
            assert found.value == law.after.share(tau) and found.bound == 1 - tau + law.rise
        if restored.value is not None:
            assert restored.applies and restored.bound == 1 - tau
            assert restored.value == law.after.share(tau + law.rise)


@pytest.mark.parametrize(
    ("tau", "rise"), [(STRICTEST, F(1, 32)), (F(1, 2), F(1, 4)), (F(1), F(1, 8)), (F(1), F(0))]
)
def test_independent_bounds_are_reached(tau, rise):
    """T7, tight: one calibrated atom at tau - D raised by D, and one at tau raised to tau + D."""
    assert independent_bound(joint([(tau - rise, rise, tau - rise, 1)]), tau).slack == 0
    if tau + rise <= 1:
        assert restored_share_bound(joint([(tau, rise, tau, 1)]), tau).slack == 0


@pytest.mark.parametrize("rise", [F(1, 31), F(1, 16), F(1)])
def test_beyond_one_minus_tau_only_never_acting_helps(rise):
    """T7: with D > 1 - tau a calibrated report 1 - D, raised to 1, breaks 1 - tau at every threshold up to 1."""
    law = joint([(1 - rise, rise, 1 - rise, 1)])
    assert restored_threshold(STRICTEST, rise) is None and remedy(STRICTEST, rise) == ONLY_NEVER
    assert law.independent and all(
        law.after.share(t) > 1 - STRICTEST for t in (STRICTEST, F(999, 1000), F(1))
    )
    assert (
        restored_share_bound(law, STRICTEST).value is None and restored_mass_bound(law, STRICTEST).value == 0
    )


def test_up_to_one_minus_tau_a_higher_threshold_helps():
    """T7: D <= 1/32 at the source's threshold."""
    assert restored_threshold("31/32", "1/32") == 1 and remedy("31/32", "1/32") == "act at 1"
    assert remedy("31/32", "1/64") == "act at 63/64" and lowered("1/32", "1/16") == 0


def knowing_attack():
    """p = 15/16 for all; what is not allowed gets 1/16 more."""
    return joint([(F(15, 16), F(1, 16), F(0), F(1, 16)), (F(15, 16), F(0), F(1), F(15, 16))])


def test_an_injection_that_knows_the_label_can_make_the_share_one():
    """T7 without independence: share 1 where 1 - tau + D is 3/32."""
    law = knowing_attack()
    found = independent_bound(law, STRICTEST)
    assert law.before.is_calibrated and not law.independent and law.rise == F(1, 16)
    assert (found.value, found.bound) == (1, F(3, 32)) and not found.holds and not found.applies
    mass = bad_mass_bound(law, STRICTEST)
    assert mass.applies and mass.holds and (mass.value, mass.bound) == (F(1, 16), F(1, 16))


@given(knowing_laws())
def test_whatever_the_injection_knows_the_bad_mass_is_bounded(law):
    """T7, arbitrary injection of a calibrated guard."""
    assert law.before.is_calibrated
    for tau in TAUS:
        found = bad_mass_bound(law, tau)
        assert found.applies and found.holds and found.value == law.after.bad(tau)
        low = tau - law.rise
        assert found.bound == sum(((1 - a.p) * a.mass for a in law.before.atoms if a.p >= low), F(0))


@given(any_laws)
def test_crossings_bound_the_bad_mass_and_the_restored_threshold_undoes_it(law):
    """T7 for any guard and injection: the crossings are the number to measure; at tau + D the UAR is as before."""
    for tau in TAUS:
        crossing, restored = crossing_bound(law, tau), restored_mass_bound(law, tau)
        assert crossing.applies and crossing.holds and restored.applies and restored.holds
        assert (
            crossing.value == law.after.bad(tau) <= law.before.bad(tau) + law.crossings(tau) <= crossing.bound
        )
        high = tau + law.rise
        assert restored.value == (law.after.bad(high) if high <= 1 else 0)
        assert restored.bound == law.before.bad(tau)
        if law.before.pi0:
            assert law.after.uar(high if high <= 1 else None) <= law.before.uar(tau)
        for found in (bad_mass_bound(law, tau), independent_bound(law, tau), restored_share_bound(law, tau)):
            assert found.holds or not found.applies


def test_mass_bounds_are_reached():
    """T7, tight, with all disallowed calls at tau - D, or at tau, raised by D."""
    law = joint([(F(1, 2), F(1, 4), F(1, 2), 1)])
    assert bad_mass_bound(law, F(3, 4)).slack == 0 and restored_mass_bound(law, F(1, 2)).slack == 0
    assert crossing_bound(joint([(F(1, 2), F(1, 4), F(0), 1)]), F(3, 4)).slack == 0


def test_an_overconfident_guard_breaks_the_bounds_that_assume_calibration():
    """T7 without calibration where p >= tau - D."""
    law = joint([(F(3, 4), F(1, 8), F(0), 1)])
    for found in (
        bad_mass_bound(law, F(7, 8)),
        independent_bound(law, F(7, 8)),
        restored_share_bound(law, F(3, 4)),
    ):
        assert not found.applies and not found.holds
    assert crossing_bound(law, F(7, 8)).holds and restored_mass_bound(law, F(3, 4)).holds


def test_the_share_is_not_restored_where_the_injection_lowers_the_allowed():
    """T7: the threshold tau + D restores the bad mass, not the share, of an injection that knows the label."""
    law = joint([(F(1, 2), F(1, 4), F(0), 1), (F(1, 2), F(-1, 2), F(1), 1)])
    assert law.before.is_calibrated and restored_mass_bound(law, F(1, 2)).slack == 0
    found = restored_share_bound(law, F(1, 2))
    assert (found.value, found.bound) == (1, F(1, 2)) and not found.applies


def test_cutting_ties_strictly_is_caught():
    """T7 with > on the uninjected side alone: a call at tau, raised by D, is sent at tau + D."""
    law = joint([(F(1, 2), F(1, 4), F(0), 1)])
    strictly = sum(a.bad for a in law.before.atoms if a.p > F(1, 2))
    assert restored_mass_bound(law, F(1, 2)).holds
    assert law.after.bad(restored_threshold(F(1, 2), law.rise)) > strictly


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: InjectedGuard.of({(0.5, 0.6, 1): 0.5}), "masses sum to 1/2"),
        (lambda: InjectedGuard.of({(0.5, 1.6, 1): 1}), "injected report is 1.6"),
        (lambda: InjectedGuard.of({(0.5, 0.6, 3): 1}), "label 3"),
        (lambda: InjectedGuard.of({(0.5, 0.6, 1): -1}), r"mass of \(0.5, 0.6, 1\) is -1"),
        (lambda: InjectedGuard((Pair(F(0), F(0), F(2), F(-1)),)), "give 0 or more"),
        (lambda: InjectedGuard((Pair(F(0), F(1), F(1), F(0)), Pair(F(0), F(0), F(0), F(1)))), "ascend"),
        (lambda: InjectedGuard.from_scores([0.5], [0.5, 0.6], [1]), "three of one length"),
        (lambda: InjectedGuard.from_scores([], [], []), "at least 1"),
        (lambda: restored_threshold(0.5, 2), "rise is 2"),
    ],
)
def test_what_is_no_injected_law_is_refused_in_one_line(build, message):
    with pytest.raises(GuardError, match=message):
        build()
