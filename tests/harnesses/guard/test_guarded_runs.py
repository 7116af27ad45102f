"""Sampled runs against the exact numbers of the guarded task and of the constructor, within 99.99 % intervals."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from harnesses.constructors.guards import Check, check
from harnesses.guard import guarded_runs
from harnesses.guard.costs import Costs, Reviewer
from harnesses.guard.guarded import Guarded
from harnesses.guard.guarded_runs import Runs, sample_runs
from harnesses.guard.rate import Average
from harnesses.guard.region import GuardError, regions
from harnesses.guard.report import report
from pomdp.criterion import Criterion
from pomdp.exact_value import evaluate_exact
from pomdp.library import task
from pomdp.policy import OpenLoop, Policy, Reactive

LEVEL, RUNS = 0.9999, 20_000
THIRD = Fraction(1, 3)
REPORT = {
    "tiger-left": {"1/8": THIRD, "3/8": THIRD, "31/32": THIRD},
    "tiger-right": {"1/4": "1/4", "1/2": "1/4", 1: "1/2"},
}
COSTS = Costs(ask="1/2", miss=4, escalate=3, wrong=20)
JUDGES = {"perfect": Reviewer(), "fallible": Reviewer("1/10", "1/5", 1), "careless": Reviewer("1/2", 0, 0)}
FINITE = Criterion(Fraction(19, 20), 5)


def door(judge: str, fresh: bool = False) -> Check:
    """Tiger with its left door guarded."""
    return check(
        task("tiger").model, "open-left", "tiger-right", REPORT, "3/8", "31/32", COSTS, JUDGES[judge], fresh
    )


def repair(judge: str, fresh: bool = False) -> Check:
    """A task whose runs end: one patch guarded, which is right for one bug of four."""
    report = {"bug-0-0": {"1/2": "1/2", "7/8": "1/2"}, "bug-0-1": {"1/8": "1/4", "7/8": "3/4"}, "*": "1/2"}
    model = task("repo_repair").model
    return check(model, "patch-0-0", "bug-0-0", report, "1/2", "7/8", COSTS, JUDGES[judge], fresh)


CASES = {
    "door": door("perfect"),
    "door, fallible reviewer": door("fallible"),
    "door, judged anew": door("fallible", fresh=True),
    "repair": repair("careless"),
}


def wandering(given: Check) -> Policy:
    """A reactive policy that does everything, the checked action most, and more so after some observations."""
    rng = np.random.default_rng(7)
    pi = rng.integers(1, 5, (given.guarded.num_observations + 1, given.guarded.num_actions)) / 1.0
    pi[:, given.action] += 4
    pi /= pi.sum(axis=1, keepdims=True)
    return Reactive(pi[1:], pi[0])


@cache
def pair(name: str) -> tuple[Guarded, Runs]:
    """The exact numbers and the runs of a case."""
    given = CASES[name]
    policy = wandering(given)
    return Guarded.of(given, policy, FINITE), sample_runs(given, policy, FINITE, RUNS, seed=3)


def per_run(found: Runs, mask: np.ndarray) -> np.ndarray:
    """How many submissions of each run the mask `[M]` takes."""
    return np.bincount(found.run[mask], minlength=len(found.returns))


@pytest.mark.parametrize("name", CASES)
def test_j_cost_and_questions_agree(name: str) -> None:
    """The sampler, which uses nothing of the constructor's kernel, confirms its J."""
    exact, found = pair(name)
    assert exact.value == evaluate_exact(CASES[name].guarded, wandering(CASES[name]), FINITE)
    for values, expected in (
        (found.returns, exact.value),
        (found.returns + found.costs, exact.earned),
        (found.costs, exact.cost),
        (found.questions, exact.questions),
        (per_run(found, ~found.repeated), exact.submissions),
        (per_run(found, found.repeated), sum(exact.counted.repeated.values())),
    ):
        interval = Average.of(values, LEVEL)
        assert interval.lower <= expected <= interval.upper, (name, float(expected), str(interval))


@pytest.mark.parametrize("name", CASES)
def test_every_report_comes_as_often_as_it_should(name: str) -> None:
    """The numbers of each (report, label) and of each (region, label), a run being one item."""
    exact, found = pair(name)
    judged = ~found.repeated
    for (p, y), number in exact.counted.judged.items():
        mask = judged & (np.abs(found.p - float(p)) < 1e-9) & (found.y == y)
        interval = Average.of(per_run(found, mask), LEVEL)
        assert interval.lower <= number <= interval.upper
    for code, kind in enumerate(("act", "ask", "escalate")):
        for y in (0, 1):
            number = next(n for (k, label), n in exact.regions.items() if (k.value, label) == (kind, y))
            interval = Average.of(per_run(found, judged & (found.code == code) & (found.y == y)), LEVEL)
            assert interval.lower <= number <= interval.upper


@pytest.mark.parametrize("name", CASES)
def test_rates_of_pooled_submissions_agree(name: str) -> None:
    """Share, UAR and held back are ratios of means over runs: numerator - rate x denominator has mean 0."""
    exact, found = pair(name)
    judged, acts, bad = ~found.repeated, found.code == 0, found.y == 0
    for part, whole, rate in (
        (acts & bad, acts, exact.share),
        (acts & bad, bad, exact.uar),
        (~acts & ~bad, ~bad, exact.held_back),
    ):
        top, bottom = per_run(found, judged & part), per_run(found, judged & whole)
        interval = Average.of(top - float(rate) * bottom, LEVEL)
        assert interval.lower <= 0 <= interval.upper, (name, float(rate), top.sum() / bottom.sum())


@pytest.mark.parametrize("judge", JUDGES)
def test_a_report_agrees_where_a_run_submits_once(judge: str) -> None:
    """Then items are independent: rates with Clopper-Pearson ends and the cost per case, from the scores alone."""
    given = door(judge)
    listen, left = (given.guarded.action_index(name) for name in ("listen", "open-left"))
    plan, twice = OpenLoop((listen, left), ()), Criterion(Fraction(1), 2)
    exact, found = Guarded.of(given, plan, twice), sample_runs(given, plan, twice, RUNS, seed=5)
    assert found.scores.size == RUNS and exact.submissions == 1
    seen = report(found.scores, given.thresholds, given.costs, LEVEL, given.reviewer)
    rates = {"share": exact.share, "uar": exact.uar, "held_back": exact.held_back}
    for name, kind in (("sent_rate", "act"), ("asked_rate", "ask"), ("escalated_rate", "escalate")):
        rates[name] = sum(n for (k, _), n in exact.regions.items() if k.value == kind)
    for name, rate in seen.rates().items():
        assert rate.lower <= rates[name] <= rate.upper, (name, str(rate))
    assert exact.questions == rates["asked_rate"]
    assert exact.cost == exact.law.cost(given.thresholds, given.costs, given.reviewer)
    for cost in (seen.cost_per_case, Average.of(found.costs, LEVEL)):
        assert cost.lower <= exact.cost <= cost.upper
    assert seen.verdict == "refuted" and exact.share > seen.bound


def test_scores_are_cut_as_the_guard_cut_them() -> None:
    """1/3 and 2/3 are no floats: the nearest ones would lie below the thresholds that they meet."""
    model = task("tiger").model
    given = check(model, "open-left", "tiger-right", {"*": {"1/3": "1/2", "2/3": "1/2"}}, "1/3", "2/3")
    found = sample_runs(given, wandering(given), FINITE, 200)
    judged = ~found.repeated
    assert set(found.code[judged]) == {0, 1}
    assert np.array_equal(regions(found.scores.p, given.thresholds), found.code[judged])


def test_a_run_is_fixed_by_seed_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are and however they are batched."""
    given = door("fallible")
    policy = wandering(given)

    def rows(runs: int, seed: int = 2) -> set[tuple[Any, ...]]:
        found = sample_runs(given, policy, FINITE, runs, seed)
        names = ("run", "step", "y", "code", "repeated")
        columns = [getattr(found, name).tolist() for name in names]
        reports = [None if repeated else p for p, repeated in zip(found.p.tolist(), found.repeated)]
        ends = zip(range(runs), found.returns.tolist(), found.costs.tolist(), found.questions.tolist())
        return {*zip(*columns, reports, strict=True), *ends}

    whole = rows(200)
    monkeypatch.setattr(guarded_runs, "CHUNK", 64)
    assert rows(200) == whole and rows(70) == {row for row in whole if row[0] < 70}
    assert rows(200, seed=1) != whole


def test_what_cannot_be_sampled_is_said() -> None:
    given = door("perfect")
    listen = OpenLoop((), (given.guarded.action_index("listen"),))
    with pytest.raises(GuardError, match="end at a horizon"):
        sample_runs(given, listen, Criterion(Fraction(1, 2)), 10)
    with pytest.raises(GuardError, match="runs is 0"):
        sample_runs(given, listen, FINITE, 0)
    with pytest.raises(GuardError, match="no rows"):
        _ = sample_runs(given, listen, FINITE, 10).scores
