"""FiniteGuard against plain counting over a list of calls, and what its quantities mean for T2 and T3."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.costs import Costs, Reviewer
from harnesses.guard.demo import demo_items
from harnesses.guard.finite import Atom, FiniteGuard
from harnesses.guard.region import GuardError, Thresholds
from harnesses.guard.thresholds import thresholds

eighths = st.integers(0, 8).map(lambda k: F(k, 8))
# Calls (p, y) in a list, so that every mass is a count.
calls = st.lists(st.tuples(eighths, st.integers(0, 1)), min_size=1, max_size=12)
whole_costs = st.builds(Costs, *[st.integers(0, 20)] * 4)


@st.composite
def calibrated(draw):
    """Contexts of any eta and weight in cells; each cell reports its mean eta, and cells may agree on it."""
    contexts = draw(
        st.lists(st.tuples(st.integers(0, 2), eighths, st.integers(1, 5)), min_size=1, max_size=8)
    )
    mean = {
        cell: F(
            sum(eta * w for c, eta, w in contexts if c == cell), sum(w for c, _, w in contexts if c == cell)
        )
        for cell in {c for c, _, _ in contexts}
    }
    return FiniteGuard.from_atoms((mean[c], eta, w) for c, eta, w in contexts)


def ties(guard):
    """Thresholds on, just beside and far from the reports."""
    near = {p + d for p in guard.reports for d in (F(-1, 1000), 0, F(1, 1000))} | {F(0), F(1)}
    return [None, *sorted(tau for tau in near if 0 <= tau <= 1)]


def counted(items, wanted, among=lambda p, y: True):
    whole = [(p, y) for p, y in items if among(p, y)]
    return F(sum(wanted(p, y) for p, y in whole), len(whole)) if whole else None


@given(calls)
def test_every_rate_is_a_count_over_a_count(items):
    guard = FiniteGuard.from_scores(*zip(*items))
    assert guard.pi0 == counted(items, lambda p, y: not y)
    for tau in ties(guard):

        def acts(p, y, tau=tau):
            return tau is not None and p >= tau

        assert guard.sent(tau) == counted(items, acts)
        assert guard.bad(tau) == counted(items, lambda p, y: not y and acts(p, y))
        assert guard.share(tau) == counted(items, lambda p, y: not y, acts)
        assert guard.uar(tau) == counted(items, acts, lambda p, y: not y)
        assert guard.held_back(tau) == counted(items, lambda p, y: not acts(p, y), lambda p, y: y)
        assert guard.doubted(tau) == F(sum((1 - p) * acts(p, y) for p, y in items), len(items))


@given(calls)
def test_calibration_is_that_of_the_mean_label_of_each_report(items):
    guard = FiniteGuard.from_scores(*zip(*items))
    size, sums = Counter(p for p, _ in items), Counter()
    for p, y in items:
        sums[p] += y
    eta = {p: F(sums[p], size[p]) for p in size}
    assert guard.reports == tuple(sorted(eta))
    assert all(guard.eta(p) == eta[p] and guard.mass(p) == F(size[p], len(items)) for p in eta)
    assert guard.eta(F(1, 3)) is None and guard.mass(F(1, 3)) == 0
    assert guard.is_calibrated == all(p == eta[p] for p in eta)
    for tau in ties(guard):
        above = [p for p in eta if tau is not None and p >= tau]
        assert guard.ece(tau) == F(sum(size[p] * abs(p - eta[p]) for p in above), len(items))
        assert guard.excess(tau) == (max(0, *(p - eta[p] for p in above)) if above else None)


@given(calls, whole_costs, eighths, eighths, eighths, eighths, st.integers(0, 3))
def test_cost_is_what_each_call_costs_on_average(items, costs, one, other, e0, e1, r):
    guard, cuts = FiniteGuard.from_scores(*zip(*items)), Thresholds(max(one, other), min(one, other))

    def cost(p, y):
        if p >= cuts.tau_act:
            return 0 if y else costs.wrong
        if p >= cuts.tau_esc:
            return costs.ask + (e1 * r if y else (1 - e0) * costs.miss + e0 * costs.wrong)
        return costs.escalate

    assert guard.cost(cuts, costs, Reviewer(e0, e1, r)) == F(sum(cost(p, y) for p, y in items), len(items))
    assert guard.sent(cuts.tau_act) + guard.asked(cuts) + guard.escalated(cuts) == 1
    assert guard.asked(cuts) == counted(items, lambda p, y: cuts.tau_esc <= p < cuts.tau_act)
    assert guard.escalated(cuts) == counted(items, lambda p, y: p < cuts.tau_esc)


@given(calls, whole_costs)
def test_no_thresholds_beat_the_best_rule_which_is_that_of_the_recalibrated_guard(items, costs):
    guard = FiniteGuard.from_scores(*zip(*items))
    true = guard.recalibrated()
    assert true.is_calibrated and true.ece() == 0 and true.recalibrated() == true and true.pi0 == guard.pi0
    assert true.cost(thresholds(costs), costs) == guard.best_cost(costs)
    cuts = [Thresholds(act, esc) for act in ties(guard)[1:] for esc in ties(guard)[1:] if esc <= act]
    assert all(guard.cost(cut, costs) >= guard.best_cost(costs) for cut in cuts)


@given(calls, st.integers(1, 5))
def test_ways_to_build_one_law_agree(items, scale):
    guard = FiniteGuard.from_scores(*zip(*items))
    assert FiniteGuard.of(guard.law) == guard
    assert FiniteGuard.from_atoms((p, y, scale) for p, y in items) == guard
    assert (
        FiniteGuard.from_scores(np.array([float(p) for p, _ in items]), np.array([y for _, y in items]))
        == guard
    )
    assert FiniteGuard.of({(str(p), y): m for (p, y), m in guard.law.items()}) == guard


@given(calibrated())
def test_means_of_any_partition_are_calibrated(guard):
    assert guard.is_calibrated
    assert all(guard.bad(tau) == guard.doubted(tau) for tau in ties(guard))


@given(calls, calibrated())
def test_uar_falls_with_tau_and_so_does_the_share_of_a_calibrated_guard(items, guard):
    """T3's rate is monotone for every guard, T2's only for calibrated ones."""
    for law in (FiniteGuard.from_scores(*zip(*items)), guard):
        rates = [law.uar(tau) for tau in ties(law)[1:]]
        assert rates == [None] * len(rates) or all(a >= b for a, b in zip(rates, rates[1:]))
    shares = [s for tau in ties(guard)[1:] if (s := guard.share(tau)) is not None]
    assert all(a >= b for a, b in zip(shares, shares[1:]))


def test_the_share_of_a_miscalibrated_guard_may_rise_with_tau():
    """T2: without calibration a higher threshold can make the share worse."""
    guard = FiniteGuard.from_atoms([("1/2", 1, 1), ("3/4", 0, 1)])
    assert (guard.share("1/2"), guard.share("3/4")) == (F(1, 2), 1)


def test_a_report_at_the_threshold_is_sent():
    guard = FiniteGuard.of({(0.7, 1): "7/10", (0.7, 0): "3/10"})  # the float next to 7/10 lies below it
    assert guard.sent(F(7, 10)) == 1 and guard.sent(F(7001, 10000)) == 0
    assert guard.asked(Thresholds(1, F(7, 10))) == 1
    assert FiniteGuard.from_scores(np.array([0.7], dtype=np.float32), [1]).reports == (F(7, 10),)


def test_equal_reports_are_one_atom_before_eta_is_computed():
    """T2: two inputs, one sure to be allowed and one sure not to be, under one report 1/2 are calibrated."""
    contexts = [("1/2", 0, 1), ("1/2", 1, 1)]
    guard = FiniteGuard.from_atoms(contexts)
    unmerged = sum(abs(F(p) - eta) * F(w, 2) for p, eta, w in contexts)
    assert guard.atoms == (Atom(F(1, 2), F(1, 2), F(1, 2)),)
    assert guard.is_calibrated and guard.ece() == 0 and unmerged == F(1, 2)


def test_undefined_is_none_and_never_zero():
    good, bad = FiniteGuard.of({(1, 1): 1}), FiniteGuard.of({(0, 0): 1})
    assert good.uar(0) is None and good.share(None) is None and good.excess(None) is None
    assert bad.held_back(0) is None and bad.share("1/2") is None and bad.uar(None) == 0
    assert good.held_back(None) == 1 and good.held_back(0) == 0


def test_the_demo_of_the_source_is_this_law_at_both_thresholds():
    """M14 §7 with PRNG seed 14: 2 of 129 sent at 0.969 and 2 of 130 at 31/32."""
    scores, costs = demo_items(), Costs(ask="1/2", miss=4, escalate=3, wrong=20)
    guard = FiniteGuard.from_scores(scores.p, scores.y)
    assert (guard.share(0.969), guard.share(F(31, 32)), guard.pi0) == (F(2, 129), F(2, 130), F(1, 4))
    assert (guard.uar(0.969), guard.held_back(0.969)) == (F(1, 50), F(173, 300))
    cuts = Thresholds(0.969, 0.375)
    assert (guard.asked(cuts), guard.escalated(cuts)) == (F(218, 400), F(53, 400))
    assert guard.cost(cuts, costs) == F(536, 400)
    assert guard.cost(Thresholds(F(31, 32), F(3, 8)), costs) == F("1.33875")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FiniteGuard.of({(0.5, 1): 0.5}), "masses sum to 1/2, not 1"),
        (lambda: FiniteGuard.of({(1.5, 1): 1}), "report p is 1.5"),
        (lambda: FiniteGuard.of({(0.5, 2): 1}), "label 2"),
        (lambda: FiniteGuard.of({(0.5, 1): 2, (0.5, 0): -1}), "mass of .0.5, 0. is -1"),
        (lambda: FiniteGuard.of({(0.5, 1): "much"}), "mass of .0.5, 1.: 'much' is not a number"),
        (lambda: FiniteGuard.from_atoms([]), "no atom has a weight"),
        (lambda: FiniteGuard.from_atoms([(0.5, 2, 1)]), "eta of report 0.5 is 2"),
        (lambda: FiniteGuard.from_scores([0.5, 0.6], [1, 2]), "row 2: y is 2"),
        (lambda: FiniteGuard.from_scores([float("nan")], [1]), "report p: nan is not a finite number"),
        (lambda: FiniteGuard.from_scores([], []), "as many of one as of the other"),
        (lambda: FiniteGuard.from_scores([0.5], [1, 0]), "as many of one as of the other"),
        (lambda: FiniteGuard((Atom(F(1), F(1), F(0)), Atom(F(0), F(1), F(0)))), "atoms ascend"),
        (lambda: FiniteGuard((Atom(F(1), F(2), F(-1)),)), "give 0 or more"),
        (lambda: FiniteGuard.of({(0, 1): 1}).share(2), "threshold tau is 2"),
    ],
)
def test_what_is_no_law_is_refused_in_one_line(build, message):
    with pytest.raises(GuardError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)
