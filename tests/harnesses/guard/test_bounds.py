"""T2 to T4 in exact arithmetic on random finite guards, each tight, and broken once a hypothesis is dropped."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.bounds import (
    Bound,
    humble,
    regret_at,
    regret_bound,
    share_bound,
    share_parts,
    slope_spread,
    uar_bound,
    uar_prior_bound,
)
from harnesses.guard.costs import Costs, Reviewer, best_region, expected_costs
from harnesses.guard.finite import FiniteGuard
from harnesses.guard.region import GuardError, Region, Thresholds
from harnesses.guard.thresholds import thresholds

eighths = st.integers(0, 8).map(lambda k: F(k, 8))
atoms = st.lists(st.tuples(eighths, eighths, st.integers(1, 5)), min_size=1, max_size=6)
whole_costs = st.builds(Costs, *[st.integers(0, 20)] * 4)
reviewers = st.builds(Reviewer, eighths, eighths, st.integers(0, 3))
SEED = Costs(ask="1/2", miss=4, escalate=3, wrong=20)


@st.composite
def calibrated(draw, base=FiniteGuard):
    """A weighted mean of etas in each cell of a partition is its report."""
    contexts = draw(
        st.lists(st.tuples(st.integers(0, 2), eighths, st.integers(1, 5)), min_size=1, max_size=8)
    )
    cells = {c: [(eta, w) for k, eta, w in contexts if k == c] for c, _, _ in contexts}
    mean = {c: sum(eta * w for eta, w in cell) / sum(w for _, w in cell) for c, cell in cells.items()}
    return base.from_atoms((mean[c], eta, w) for c, eta, w in contexts)


def ties(guard):
    near = {p + d for p in guard.reports for d in (F(-1, 1000), 0, F(1, 1000))} | {F(0), F(1)}
    return [None, *sorted(tau for tau in near if 0 <= tau <= 1)]


@given(atoms)
def test_share_is_at_most_what_is_stated_plus_the_overconfidence_where_the_guard_acts(triples):
    """T2 for every guard, against both errors recomputed from the calls."""
    guard = FiniteGuard.from_atoms(triples)
    total = sum(w for *_, w in triples)
    for tau in ties(guard):
        found = share_bound(guard, tau)
        assert found.applies and found.holds
        acted = {p for p, _, _ in triples if tau is not None and p >= tau}
        if not acted:
            assert (found.value, found.bound, share_parts(guard, tau)) == (None, None, None)
            continue
        mass = {p: F(sum(w for r, _, w in triples if r == p), total) for p in acted}
        eta = {p: sum(e * w for r, e, w in triples if r == p) / (mass[p] * total) for p in acted}
        m = sum(mass.values())
        spread = sum(mass[p] * abs(p - eta[p]) for p in acted) / m
        assert found.value == sum(mass[p] * (1 - eta[p]) for p in acted) / m == sum(share_parts(guard, tau))
        assert found.bound == 1 - tau + min(max(0, *(p - eta[p] for p in acted)), spread)
        assert found.bound <= 1 - tau + min(guard.excess(tau), guard.ece() / m)


@given(calibrated())
def test_a_calibrated_guard_keeps_the_promise_of_equation_5(guard):
    """T2, M14 Eq. 5: the second part of the identity is 0 and the bound is 1 - tau."""
    for tau in ties(guard):
        if guard.sent(tau):
            assert share_parts(guard, tau)[1] == 0
            assert share_bound(guard, tau).bound == 1 - tau


@given(eighths, eighths, st.integers(0, 8))
def test_share_bound_is_reached_by_one_atom_at_the_threshold(tau, eta, rest):
    """T2, tight, calibrated (eta = tau) or overconfident."""
    guard = FiniteGuard.from_atoms([(tau, min(tau, eta), 1), (0, 0, 0 if tau == 0 else rest)])
    found = share_bound(guard, tau)
    assert found.slack == 0 and found.holds


@given(atoms, eighths)
def test_errors_below_the_threshold_and_underconfidence_above_do_not_count(triples, tau):
    """T2: only overconfidence inside A matters."""
    humbled = [(p, max(p, eta) if p >= tau else eta, w) for p, eta, w in triples]
    guard = FiniteGuard.from_atoms(humbled)
    assert humble(guard, tau) and share_bound(guard, tau).holds
    assert guard.sent(tau) == 0 or guard.share(tau) <= 1 - tau


@pytest.mark.parametrize("small", [F(1, 10), F(1, 1000), F(1, 10**9)])
def test_a_small_global_calibration_error_promises_nothing(small):
    """T2 without the division by P(A): all error where the guard acts, share 1 at any ECE."""
    tau = F(31, 32)
    guard = FiniteGuard.from_atoms([(tau, 0, small), (0, 0, 1 - small)])
    assert guard.ece() <= small and guard.share(tau) == 1
    assert guard.share(tau) > 1 - tau + guard.ece()
    assert share_bound(guard, tau).slack == 0


@given(calibrated())
def test_uar_is_bounded_by_what_is_sent_and_that_by_the_prior(guard):
    """T3, both forms, and the second vacuous exactly where pi0 <= 1 - tau."""
    for tau in ties(guard):
        sent, prior = uar_bound(guard, tau), uar_prior_bound(guard, tau)
        assert sent.applies and prior.applies and sent.holds and prior.holds and sent.value == prior.value
        if guard.pi0 == 0:
            assert sent.value is None
        elif tau == 0:
            assert prior.bound is None and prior.vacuous
        elif tau is not None:
            assert sent.bound <= prior.bound
            assert prior.vacuous == (guard.pi0 <= 1 - tau)


@given(atoms)
def test_calibration_is_needed_only_where_the_guard_acts_and_only_against_overconfidence(triples):
    """T3 under its weaker hypothesis, on guards of any kind below tau."""
    guard = FiniteGuard.from_atoms(triples)
    for tau in ties(guard):
        for bound in (uar_bound(guard, tau), uar_prior_bound(guard, tau)):
            assert bound.holds or not bound.applies


@given(eighths.filter(bool), st.integers(1, 9))
def test_uar_bounds_are_reached_by_reports_zero_and_tau(tau, rest):
    """T3, tight in both forms."""
    guard = FiniteGuard.from_atoms([(tau, tau, 1), (0, 0, rest)])
    assert uar_bound(guard, tau).slack == 0 == uar_prior_bound(guard, tau).slack


def test_with_few_disallowed_calls_a_calibrated_guard_may_send_them_all():
    """T3 is vacuous at pi0 <= 1 - tau, and nothing better holds there."""
    guard = FiniteGuard.from_atoms([(F(31, 32), F(31, 32), 1)])
    found = uar_prior_bound(guard, F(31, 32))
    assert guard.is_calibrated and found.value == 1 and found.vacuous
    assert not uar_prior_bound(
        FiniteGuard.from_atoms([(F(31, 32), F(31, 32), 9), (0, 0, 1)]), F(31, 32)
    ).vacuous


def test_an_overconfident_guard_breaks_both_uar_bounds():
    """T3 without calibration."""
    guard = FiniteGuard.from_atoms([("3/4", 0, 1), (0, "1/2", 1)])
    for found in (uar_bound(guard, "3/4"), uar_prior_bound(guard, "3/4")):
        assert not found.applies and not found.holds and found.slack < 0


class Strict(FiniteGuard):
    """Acts on p > tau, not p >= tau."""

    def _sent(self, tau):
        return [atom for atom in super()._sent(tau) if atom.p > F(tau)]


class Swapped(FiniteGuard):
    """Takes the share among disallowed calls, and the UAR among acted-on ones."""

    def share(self, tau):
        return FiniteGuard.uar(self, tau)

    def uar(self, tau):
        return FiniteGuard.share(self, tau)


class Unmerged(FiniteGuard):
    """Takes eta of single calls: each atom as if its calls were told apart."""

    def excess(self, tau):
        return max((atom.p for atom in self._sent(tau) if atom.bad), default=None)

    def ece(self, tau=0):
        return sum(atom.allowed * (1 - atom.p) + atom.bad * atom.p for atom in self._sent(tau))


def test_mutated_guards_are_caught():
    """T2 and T3: ties cut strictly, denominators swapped, atoms unmerged."""
    half = [("1/2", 0, 1), ("1/2", 1, 1)]
    assert share_bound(FiniteGuard.from_atoms(half), "1/2").slack == 0
    assert share_bound(Strict.from_atoms(half), "1/2").value is None
    assert share_bound(Unmerged.from_atoms(half), "1/2").slack != 0
    assert not humble(Unmerged.from_atoms(half), "1/2")
    one = [("3/4", "3/4", 1)]  # UAR 1, share 1/4
    assert (
        share_bound(FiniteGuard.from_atoms(one), "3/4").holds
        and not share_bound(Swapped.from_atoms(one), "3/4").holds
    )
    few = [("1/2", "1/2", 1), (0, 0, 9)]  # UAR 1/19, share 1/2
    assert (
        uar_bound(FiniteGuard.from_atoms(few), "1/2").holds
        and not uar_bound(Swapped.from_atoms(few), "1/2").holds
    )


@given(eighths, eighths, whole_costs, reviewers)
def test_regret_of_one_report_is_at_most_the_spread_of_slopes_times_its_error(p, eta, costs, reviewer):
    """T4, pointwise, for every reviewer; max(wrong, miss) is the spread of a perfect one."""
    found = regret_at(p, eta, costs, reviewer)
    at_truth = expected_costs(eta, costs, reviewer)
    assert (
        found.value
        == at_truth[best_region(p, costs, reviewer)] - at_truth[best_region(eta, costs, reviewer)]
        >= 0
    )
    assert found.holds and not found.vacuous
    assert regret_at(p, eta, costs).bound == max(costs.wrong, costs.miss) * abs(p - eta)
    blameless = Reviewer(reviewer.e0, reviewer.e1, 0)
    assert slope_spread(costs, blameless) <= max(costs.wrong, costs.miss)


@given(atoms, whole_costs)
def test_regret_on_average_is_at_most_max_wrong_miss_times_ece(triples, costs):
    """T4, on average: the regret is the cost of the guard's own thresholds over that of the best rule."""
    guard = FiniteGuard.from_atoms(triples)
    found = regret_bound(guard, costs)
    assert found.value == guard.cost(thresholds(costs), costs) - guard.best_cost(costs) >= 0
    assert found.bound == max(costs.wrong, costs.miss) * guard.ece()
    assert found.holds


@given(atoms, whole_costs, reviewers)
def test_regret_under_a_fallible_reviewer(triples, costs, reviewer):
    """T4 with T5's costs."""
    guard = FiniteGuard.from_atoms(triples)
    found = regret_bound(guard, costs, reviewer)
    assert found.holds
    try:
        cuts = thresholds(costs, reviewer)
    except GuardError:
        return
    assert found.value == guard.cost(cuts, costs, reviewer) - guard.best_cost(costs, reviewer)


@pytest.mark.parametrize("eta", [F(0), F(1, 4), F(1, 2)])
def test_regret_bound_is_reached_at_the_threshold_between_act_and_escalate(eta):
    """T4, tight: wrong 4, escalate 1, asking too dear."""
    costs = Costs(ask=3, miss=4, escalate=1, wrong=4)
    guard = FiniteGuard.from_atoms([("3/4", eta, 1)])
    assert regret_at("3/4", eta, costs).slack == 0 == regret_bound(guard, costs).slack


def test_calibration_in_bins_bounds_no_regret():
    """T4 without the L1 error of single reports: errors that cancel in one bin still cost."""
    guard = FiniteGuard.from_atoms([("1/4", 0, 1), ("1/2", "3/4", 1)])
    mean_p, mean_y = sum(a.p * a.mass for a in guard.atoms), 1 - guard.pi0
    assert mean_p == mean_y  # ECE 0 in the bin [0, 1]
    assert regret_bound(guard, Costs(ask=3, miss=4, escalate=2, wrong=5)).value > 0


def test_a_rule_that_is_not_optimal_at_p_has_regret_without_any_error():
    """T4 without T1: M14 Eq. 4 as printed has tau_act 0 here, where escalating is cheaper."""
    costs, guard = Costs(ask=1, miss=1, escalate=1, wrong=2), FiniteGuard.from_atoms([(0, 0, 1)])
    assert guard.ece() == 0 and guard.cost(Thresholds(0, 0), costs) - guard.best_cost(costs) == 1


def test_rejections_of_allowed_calls_widen_the_regret():
    """T4 with max(wrong, miss) but without r = 0."""
    costs, reviewer = Costs(ask=0, miss=0, escalate=5, wrong=5), Reviewer(0, 1, 10)
    found = regret_at(0, 1, costs, reviewer)
    assert best_region(0, costs, reviewer) is Region.ASK
    assert found.value == 10 > max(costs.wrong, costs.miss) and found.bound == 15 and found.holds


def test_a_bound_is_decided_exactly_and_says_when_it_says_nothing():
    assert Bound.of(F(1, 3), F(1, 3)).holds and not Bound.of(F(1, 3) + F(1, 10**30), F(1, 3)).holds
    assert Bound.of(None, F(1, 3)).holds and Bound.of(None, F(1, 3)).slack is None
    assert (
        Bound.of(F(1), None).vacuous and Bound.of(F(0), F(1)).vacuous and not Bound.of(F(0), F(1, 2)).vacuous
    )
    assert regret_bound(FiniteGuard.of({(1, 0): 1}), SEED).bound == 20


def test_an_erring_reviewer_narrows_the_spread_where_a_miss_is_dearer_than_a_mistake():
    assert slope_spread(Costs(ask=1, miss=4, escalate=3, wrong=2)) == 4
    assert slope_spread(Costs(ask=1, miss=4, escalate=3, wrong=2), Reviewer(e0="1/2")) == 3


def test_the_bound_by_the_prior_is_the_larger_one_under_its_hypothesis_only():
    """T3: with p 1/2 for all and eta 1/8 more is sent than a humble guard could."""
    guard = FiniteGuard.from_atoms([("1/2", "1/8", 1)])
    assert uar_prior_bound(guard, "1/2").bound == F(1, 7) < uar_bound(guard, "1/2").bound == F(4, 7)
    assert not humble(guard, "1/2")
