"""The kit: strategies give what they advertise, right rules pass, wrong ones end in an exact counterexample."""

from __future__ import annotations

import doctest
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import harnesses.guard.testing as kit
from harnesses.guard.costs import Costs, Reviewer, expected_costs
from harnesses.guard.finite import FiniteGuard
from harnesses.guard.region import GuardError, Region, Thresholds, region
from harnesses.guard.selection import naive_threshold, pac_threshold
from harnesses.guard.selection_law import SelectionLaw, samples, telling_sizes
from harnesses.guard.thresholds import thresholds

F = Fraction
DEMO = Costs(ask=F(1, 2), miss=4, escalate=3, wrong=20)
FINDING = settings(max_examples=1000, derandomize=True, database=None, phases=[Phase.generate])


def by_thresholds(p: float) -> str:
    """The rule of M14 §7."""
    return "act" if p >= 31 / 32 else "ask" if p >= 3 / 8 else "escalate"


def failure(check, *given, **named) -> str:
    """The message with which an assertion fails."""
    with pytest.raises(AssertionError) as caught:
        check(*given, **named)
    return str(caught.value)


@pytest.mark.parametrize(
    ("strategy", "feature"),
    [
        (kit.costs(), lambda c: c.ask == 0 and c.wrong > 10),
        (kit.costs(), lambda c: c.ask == c.escalate > 0 and c.miss == 0),
        (kit.costs(), lambda c: c.wrong == c.miss > 0),
        (kit.costs(rational=True), lambda c: c.miss.denominator > 3),
        (kit.reviewers(), lambda r: 0 < r.e0 < 1 and r.e1 == 0),
        (kit.reviewers(), lambda r: r.e1 > 0 and r.r > 5),
        (kit.calibrated_guards(), lambda g: len(g.atoms) == 3),
        (kit.calibrated_guards(), lambda g: g.pi0 == 0),
        (kit.calibrated_guards(near=[F(31, 32)]), lambda g: F(31, 32) in g.reports),
        (kit.calibrated_guards(near=[F(31, 32)]), lambda g: F(31, 32) - kit.STEP in g.reports),
        (kit.miscalibrated_guards(), lambda g: any(a.p > a.eta for a in g.atoms) and len(g.atoms) > 1),
        (kit.miscalibrated_guards(), lambda g: any(a.p < a.eta for a in g.atoms)),
        (kit.scores(), lambda s: len(set(s.p)) < s.size and s.allowed.any() and not s.allowed.all()),
        (kit.report_laws(near=[F(1, 20)]), lambda law: len(law) == 3 and F(1, 20) in law.values()),
        (kit.report_laws(), lambda law: len(law) == 1),
    ],
)
def test_each_advertised_feature_occurs(strategy, feature) -> None:
    assert feature(find(strategy, feature, settings=FINDING))


@given(kit.calibrated_guards(near=[F(1, 3)]))
def test_calibrated_guards_are_calibrated(guard: FiniteGuard) -> None:
    assert guard.is_calibrated and guard.ece() == 0
    assert all(atom.eta == atom.p for atom in guard.atoms)


@given(st.data())
def test_thresholds_hit_reports_and_pass_them_on_both_sides(data) -> None:
    guard = data.draw(kit.miscalibrated_guards())
    tau = data.draw(kit.thresholds_near(guard))
    assert 0 <= tau <= 1
    assert tau in (0, 1) or min(abs(tau - p) for p in guard.reports) <= F(1, 1000)


@given(kit.scores(max_items=4, both_classes=True), kit.report_laws(max_atoms=2), kit.costs(max_cost=3))
def test_samples_laws_and_costs_keep_to_what_was_asked(sample, law, costs) -> None:
    assert sample.size <= 4 and set(sample.y.tolist()) == {0, 1}
    assert sum(law.values()) == 1 and list(law) == sorted(law, reverse=True) and len(law) <= 2
    assert all(m > 0 for m in law.values())
    assert all(0 <= c <= 3 for c in (costs.ask, costs.miss, costs.escalate, costs.wrong))


# Rules: p -> region.


@pytest.mark.parametrize("exact", [False, True])
def test_a_right_rule_passes(exact: bool) -> None:
    kit.assert_rule_optimal(by_thresholds, DEMO, exact=exact, max_examples=100)
    reviewer = Reviewer(e0=F(1, 10))
    kit.assert_rule_optimal(
        lambda p: region(p, thresholds(DEMO, reviewer)), DEMO, reviewer, exact=exact, max_examples=100
    )


def test_the_project_s_rule_passes_for_all_costs_and_eq_4_as_printed_does_not() -> None:
    """T1; M14 Eq. 4 as printed is refuted at costs that the message names."""
    kit.assert_rule_optimal(
        lambda p, c: region(p, thresholds(c)), kit.costs(rational=True), exact=True, max_examples=100
    )

    def printed(p: float, c: Costs) -> str:
        if c.wrong <= c.miss:
            return "act"
        act = 1 - c.ask / (c.wrong - c.miss)
        return (
            "act" if p >= act else "ask" if c.miss and p >= 1 - (c.escalate - c.ask) / c.miss else "escalate"
        )

    told = failure(kit.assert_rule_optimal, printed, kit.costs(), ties=False)
    assert told.startswith("the rule is not optimal: at p = ")
    numbers = dict(re.findall(r"(ask|miss|escalate|wrong) (\d+)[,)]", told))
    p = F(re.search(r"at p = (\S+) ", told)[1])
    c = Costs(**{name: int(value) for name, value in numbers.items()})
    found = expected_costs(p, c)
    assert found[Region(printed(float(p), c))] > min(found.values())


def test_a_tie_to_the_less_autonomous_region_is_told_from_a_dear_one() -> None:
    def strict(p: float) -> str:
        return "act" if p > 31 / 32 else "ask" if p > 3 / 8 else "escalate"

    told = failure(kit.assert_rule_optimal, strict, DEMO)
    assert "at p = 31/32 the rule says ask, which costs 5/8 as act does; a tie goes to" in told or (
        "at p = 3/8 the rule says escalate, which costs 3 as ask does; a tie goes to" in told
    )
    kit.assert_rule_optimal(strict, DEMO, ties=False, max_examples=100)


@pytest.mark.parametrize(
    ("tau_act", "tau_esc"), [(0.969, 0.375), (0.96, 0.375), (31 / 32, 0.376), (31 / 32, 0.374), (1.5, 0.375)]
)
def test_a_threshold_that_is_rounded_costs_something_somewhere(tau_act: float, tau_esc: float) -> None:
    def rounded(p: float) -> str:
        return "act" if p >= tau_act else "ask" if p >= tau_esc else "escalate"

    told = failure(kit.assert_rule_optimal, rounded, DEMO, ties=False)
    p, chosen, paid, best, least = re.search(
        r"at p = (\S+) the rule says (\w+), which costs (\S+) where (\w+) costs (\S+) \(ask 1/2, ", told
    ).groups()
    found = expected_costs(F(p), DEMO)
    assert (found[Region(chosen)], found[Region(best)]) == (F(paid), F(least))
    assert F(paid) > F(least) == min(found.values())


@pytest.mark.parametrize("answer", [True, False, 0, 1, None, np.int8(0), "yes", 0.9])
def test_an_answer_that_names_no_region_is_refused(answer) -> None:
    for check in (
        lambda rule: kit.assert_rule_optimal(rule, DEMO),
        lambda rule: kit.assert_share_bound(rule, 0.9),
        lambda rule: kit.assert_uar_bound(rule, 0.9),
    ):
        with pytest.raises(
            GuardError, match="names no region, and a gate that tests its truth lets calls through"
        ):
            check(lambda p: answer)


def test_an_error_in_the_rule_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        kit.assert_rule_optimal(lambda p: "act" if 1 / p else "ask", DEMO)


# Bounds: T2 and T3.


@pytest.mark.parametrize("check", [kit.assert_share_bound, kit.assert_uar_bound])
@pytest.mark.parametrize("exact", [False, True])
def test_a_promise_that_is_kept_passes(check, exact: bool) -> None:
    """T2, T3: acting at or above tau_act keeps the promise on every calibrated guard."""
    check(F(31, 32), "31/32", exact=exact, max_examples=50)
    check(lambda p: region(p, Thresholds("31/32", 0)), "31/32", exact=exact, max_examples=50)


@pytest.mark.parametrize(
    ("check", "what"), [(kit.assert_share_bound, "the share among"), (kit.assert_uar_bound, "the UAR is")]
)
@pytest.mark.parametrize("cut", [F(31, 32) - F(1, 10**6), F(24, 25), F(0)])
def test_acting_below_the_promised_threshold_breaks_it(check, what: str, cut: Fraction) -> None:
    told = failure(check, cut, "31/32")
    guard = guard_in(told)
    assert told.startswith(what) and guard.is_calibrated
    value = F(re.search(r"is (\S+), above", told)[1])
    if check is kit.assert_share_bound:
        assert value == guard.share(cut) > F(1, 32)
    else:
        sent = guard.sent(cut)
        assert value == guard.uar(cut) > min(F(1, 32) * sent, F(1, 31) * (1 - guard.pi0)) / guard.pi0


@pytest.mark.parametrize("check", [kit.assert_share_bound, kit.assert_uar_bound])
def test_without_calibration_the_promise_breaks(check) -> None:
    """T2, T3 without their hypothesis: an overconfident report at or above tau_act is enough."""
    told = failure(check, "31/32", "31/32", kit.miscalibrated_guards())
    guard = guard_in(told)
    assert "on the miscalibrated guard" in told and any(a.p >= F(31, 32) and a.p > a.eta for a in guard.atoms)


@pytest.mark.parametrize(
    ("check", "fragment"),
    [
        (kit.assert_share_bound, "is 1/2, above 1 - tau_act = 1/4"),
        (kit.assert_uar_bound, "is 1/11, above the 1/22 that"),
    ],
)
def test_a_promise_is_about_the_calls_acted_on_however_few(check, fragment: str) -> None:
    """Acted on: 1/10 of all calls, half of them disallowed; of all calls that is less than 1 - tau = 1/4."""
    guard = FiniteGuard.from_atoms([(F(3, 4), F(1, 2), 1), (0, F(1, 18) * 8, 9)])
    assert (guard.sent("3/4"), guard.pi0) == (F(1, 10), F(11, 20))
    told = failure(check, "3/4", "3/4", st.just(guard))
    assert fragment in told


def guard_in(told: str) -> FiniteGuard:
    """The guard that a message prints."""
    atoms = re.findall(r"p (\S+): allowed (\S+), not ([^;}]+)", told.split("{")[1])
    return FiniteGuard.of(
        {(F(p), y): F(m) for p, *masses in atoms for y, m in zip((1, 0), masses, strict=True)}
    )


# Measures.


def test_measures_are_held_against_exact_ones() -> None:
    def share(p: np.ndarray, y: np.ndarray, tau: float) -> float | None:
        acted = p >= tau
        return float((y[acted] == 0).mean()) if acted.any() else None

    kit.assert_measured(share, "share", max_examples=100)
    kit.assert_measured(
        lambda p, y, tau: math.nan if share(p, y, tau) is None else share(p, y, tau), "share", max_examples=50
    )
    told = failure(kit.assert_measured, lambda p, y, tau: share(p, y, tau) or 0.0, "share")
    assert "is undefined, and the function gives 0.0, for reports" in told
    with pytest.raises(GuardError, match="quantity 'precision' is none of share, uar"):
        kit.assert_measured(share, "precision")


# Selections: T9.

PAIR = {"alpha": F(1, 2), "delta": F(1, 8)}


def test_the_sizes_at_which_a_selection_is_tried_are_those_where_the_rule_changes() -> None:
    assert telling_sizes(F(1, 2), F(1, 8)) == (1, 2, 3, 5, 6)
    assert telling_sizes(F(1, 20), F(1, 20))[1:3] == (
        58,
        59,
    )  # design T9: 59 disallowed items at alpha = delta = .05


def test_the_samples_of_a_law_are_all_of_them() -> None:
    for masses in ((F(1),), (F(1, 3), F(2, 3)), (F(1, 2), F(1, 3), F(1, 6))):
        found = dict(samples(masses, 4))
        assert len(found) == math.comb(4 + len(masses) - 1, 4) and sum(found.values()) == 1
        assert all(sum(sample) == 4 for sample in found)
    assert dict(samples((F(1, 2), F(1, 3), F(1, 6)), 2))[1, 0, 1] == 2 * F(1, 2) * F(1, 6)


def test_a_uar_of_exactly_alpha_keeps_the_promise() -> None:
    law, selection = {F(1, 2): F(1, 2), F(0): F(1, 2)}, SelectionLaw(lambda p, y: 0.5)
    assert selection.violations(law, 2, F(1, 2)) == []
    above = selection.violations(law, 2, F(49, 100))
    assert sum(v.chance for v in above) == 1 and {v.uar for v in above} == {F(1, 2)}


def test_the_shipped_selection_passes_at_several_levels() -> None:
    """T9, by exact enumeration: no simulation, ties included."""
    kit.assert_selection_valid(
        lambda p, y: pac_threshold(p, y, F(1, 2), F(1, 8)).tau_act, **PAIR, max_examples=80
    )
    kit.assert_selection_valid(
        lambda p, y: pac_threshold(p, y, F(2, 5), F(3, 10)).tau_act, F(2, 5), F(3, 10), max_examples=50
    )


def test_never_acting_and_acting_on_everything_are_the_two_ends() -> None:
    for never in (lambda p, y: None, lambda p, y: math.inf, lambda p, y: 1.5):
        kit.assert_selection_valid(never, **PAIR, max_examples=30)
    told = failure(kit.assert_selection_valid, lambda p, y: 0.0, **PAIR)
    assert "with probability 1, above delta = 1/8, where the reports of N = 1 " in told


def test_the_naive_selection_is_refuted_by_an_exact_law() -> None:
    """T9: the observed rate is no bound. The message's law is enough to compute its probability again."""
    told = failure(
        kit.assert_selection_valid, lambda p, y: naive_threshold(p, y, PAIR["alpha"]).tau_act, **PAIR
    )
    chance, size, text = re.search(r"probability (\S+), above .* N = (\d+) .* law \{(.*?)\}", told).groups()
    law = {F(p): F(m) for p, m in (pair.split(": ") for pair in text.split(", "))}
    selection = SelectionLaw(lambda p, y: naive_threshold(p, y, PAIR["alpha"]).tau_act)
    found = selection.violations(law, int(size), F(1, 2))
    assert sum(v.chance for v in found) == F(chance) > F(1, 8)


@pytest.mark.parametrize("answer", [True, "0.9", math.nan, (0.5,)])
def test_a_selection_that_gives_no_threshold_is_refused(answer) -> None:
    with pytest.raises(GuardError, match="None: never act"):
        kit.assert_selection_valid(lambda p, y: answer, **PAIR)


@pytest.mark.parametrize(("alpha", "delta"), [(0, 0.1), (1, 0.1), (0.1, 0), (0.1, 1)])
def test_levels_lie_strictly_between_0_and_1(alpha, delta) -> None:
    with pytest.raises(GuardError, match="strictly between 0 and 1"):
        kit.assert_selection_valid(lambda p, y: None, alpha, delta)


def test_a_search_gives_the_same_counterexample_twice() -> None:
    assert failure(kit.assert_share_bound, "3/4", "7/8") == failure(kit.assert_share_bound, "3/4", "7/8")


def test_the_example_in_the_documentation_runs() -> None:
    result = doctest.testmod(kit)
    assert result.attempted >= 6 and not result.failed
