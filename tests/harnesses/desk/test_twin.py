"""The desk's formal twin: exact values by an independent sum and by a harness, and predictions that hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from harnesses.constructors.catalogue import parse_part
from harnesses.context import Sizes, parse_map
from harnesses.desk.generator import CALIBRATION, TEST, guard_item, split
from harnesses.desk.measures import Guarded as Played
from harnesses.desk.measures import guard_report
from harnesses.desk.played import play_email
from harnesses.desk.policy import GUARD_COSTS, GUARD_THRESHOLDS
from harnesses.desk.toy import Toy, toy
from harnesses.desk.twin import ALLOWED, MEASURES, SEND, STOPPED, WRONG, Prediction, Twin, measured, seen
from harnesses.guard.costs import Reviewer
from harnesses.guard.region import GuardError, Thresholds
from harnesses.harness import Harness
from pomdp.criterion import Criterion

RECORDS = [
    *[Played(True, True, 0.99, True, False)] * 30,
    *[Played(True, True, 0.8, False, True, True)] * 20,
    *[Played(True, True, 0.1, False, False)] * 5,
    *[Played(False, True, 0.98, True, False)] * 2,
    *[Played(False, True, 0.5, False, True)] * 15,
    *[Played(False, True, 0.01, False, False)] * 20,
    *[Played(False, False, None, False, False)] * 8,
]


@pytest.fixture(scope="module")
def decider() -> Toy:
    return toy()


def test_the_exact_values_are_the_sums_over_the_emails() -> None:
    twin = Twin.from_records(RECORDS)
    cost = Fraction(2 * 20 + 20 * Fraction(1, 2) + 15 * (Fraction(1, 2) + 4) + (5 + 20 + 8) * 3, 100)
    assert twin.exact() == {"cost_per_case": cost, "uar": Fraction(2, 45), "questions": Fraction(35, 100)}
    report = guard_report(RECORDS, GUARD_THRESHOLDS)
    assert report.cost_exact == cost and report.uar.numerator == 2
    # What goes out: sent alone, and approved.
    assert twin.guarded.earned == Fraction(30 + 2 + 20, 100)


@pytest.mark.parametrize("reviewer", [Reviewer(0, 0), Reviewer("1/10", "1/20", 2)])
def test_an_imperfect_reviewer_by_the_formula_of_t5(reviewer: Reviewer) -> None:
    twin = Twin.from_records(RECORDS, reviewer=reviewer)
    e0, e1, r = (Fraction(x) for x in (reviewer.e0, reviewer.e1, reviewer.r))
    asked_wrong = Fraction(1, 2) + (1 - e0) * 4 + e0 * 20
    asked_allowed = Fraction(1, 2) + e1 * r
    expected = (2 * 20 + 20 * asked_allowed + 15 * asked_wrong + 33 * 3) / Fraction(100)
    assert twin.exact()["cost_per_case"] == expected


def test_the_same_by_a_harness_around_the_task_and_its_induced_pomdp() -> None:
    """The guard as a part of a harness, induced and evaluated: what is earned less the guard's costs."""
    twin = Twin.from_records(RECORDS)
    report = {
        kind: {str(p): str(Fraction(n, counts.total())) for p, n in counts.items()}
        for kind, counts in twin.reports.items()
    }
    costs = {"ask": "1/2", "miss": 4, "escalate": 3, "wrong": 20}
    names = {"action": SEND, "allowed": ALLOWED, "report": {**report, "*": 0}}
    taus = {"tau_esc": "3/8", "tau_act": "31/32"}
    part = parse_part({"name": "guard", **names, **taus, "costs": costs})
    induced = Harness((), (part,), (), parse_map("last:1")).induce(
        twin.task, Criterion(Fraction(1), 1), Sizes()
    )
    pi = np.zeros((induced.num_contexts, induced.model.num_actions))
    pi[:, induced.model.action_index(SEND)] = 1.0
    expected = twin.guarded.earned - twin.exact()["cost_per_case"]
    assert induced.evaluate(pi) == pytest.approx(float(expected), abs=1e-9)


def test_counts_by_region_and_label_give_the_same_measures() -> None:
    twin = Twin.from_records(RECORDS)
    assert twin.counts().tolist() == [[2, 30], [15, 20], [28, 5]]
    found = measured(twin.counts())
    assert {name: pytest.approx(float(value)) for name, value in twin.exact().items()} == {
        name: float(found[name]) for name in MEASURES
    }
    assert {name: pytest.approx(float(found[name])) for name in MEASURES} == seen(RECORDS)


def test_the_thresholds_themselves_act_and_ask() -> None:
    records = [Played(True, True, 31 / 32, True, False), Played(False, True, 3 / 8, False, True)]
    assert Twin.from_records(records).counts().tolist() == [[0, 1], [1, 0], [0, 0]]


def test_a_guard_that_never_acts() -> None:
    twin = Twin.from_records(RECORDS, Thresholds(None, Fraction(3, 8)))
    assert twin.exact()["uar"] == 0 and twin.counts()[0].tolist() == [0, 0]


def test_kinds_that_did_not_come_are_no_trouble() -> None:
    only = Twin.from_records([Played(True, True, 0.99, True, False)])
    assert only.exact() == {"cost_per_case": 0, "uar": None, "questions": 0}
    assert not only.reports[WRONG] and not only.reports[STOPPED]
    with pytest.raises(GuardError, match="made from emails"):
        Twin({ALLOWED: Counter()})


def test_a_level_or_a_size_that_is_none_is_refused() -> None:
    twin = Twin.from_records(RECORDS)
    for items, level in ((0, 0.95), (10, 1.0), (10, 0.0)):
        with pytest.raises(GuardError, match="give a level"):
            twin.predict(items, level)


def test_predictions_cover_where_the_law_is_known() -> None:
    """Two samples from one law, 150 times: an interval of 90 percent holds at least so often, within chance."""
    random = np.random.default_rng(5)
    shares = np.array([[0.03, 0.4], [0.2, 0.12], [0.22, 0.03]])
    held = Counter()
    kinds = [(0.99, True), (0.8, False), (0.1, False)]
    for trial in range(150):
        first, second = (random.multinomial(n, shares.ravel()).reshape(3, 2) for n in (400, 60))
        records = [
            Played(bool(y), True, p, p > 0.9, 0.375 <= p < 0.9)
            for (row, (p, _)) in zip(first, kinds)
            for y in (0, 1)
            for _ in range(row[y])
        ]
        predicted = Twin.from_records(records).predict(60, 0.9, seed=trial)
        came = measured(second)
        for name in MEASURES:
            held[name] += predicted[name].covers(float(came[name]))
    assert all(held[name] >= 127 for name in MEASURES), held  # P(Bin(150, 0.9) < 127) < 0.02
    assert all(held[name] < 150 for name in MEASURES)


def test_the_interval_shrinks_with_both_samples() -> None:
    def width(records: list[Played], items: int) -> float:
        found = Twin.from_records(records).predict(items)["questions"]
        return found.upper - found.lower

    assert width(RECORDS * 20, 5000) < width(RECORDS, 5000) < width(RECORDS, 50)


def test_what_is_undefined_is_not_covered() -> None:
    assert not Prediction(0.1, 0.0, 0.2, 0.95, 90).covers(None)
    assert Prediction(0.1, 0.0, 0.2, 0.95, 90).covers(0.2)


def test_the_twin_of_the_toy_predicts_the_running_desk(decider: Toy) -> None:
    """Three decision sets of their own seeds; the study langgraph_agreement has twenty."""
    held = Counter()
    for seed in range(20, 23):
        fresh = [guard_item(CALIBRATION, number, seed) for number in range(800)]
        predicted = Twin.of(decider, fresh).predict(90, seed=seed)
        ran = [play_email(item, decider, GUARD_THRESHOLDS)[0] for item in split(TEST, seed).guard]
        came = seen(ran)
        report = guard_report(ran, GUARD_THRESHOLDS, GUARD_COSTS)
        assert came["cost_per_case"] == pytest.approx(float(report.cost_exact))
        for name in MEASURES:
            held[name] += predicted[name].covers(came[name])
    assert min(held.values()) >= 2, held


def test_a_twin_of_another_decider_would_be_seen(decider: Toy) -> None:
    """The prediction is no matter of course: a guard whose reports are all too high by a quarter falls outside it."""

    class Bold:
        name, model = "toy", "bold"

        def noul_all(self, questions: list) -> list[float]:
            return [min(1.0, p + 0.25) for p in decider.noul_all(questions)]

        def choose_all(self, questions: list) -> list:
            return decider.choose_all(questions)

        def noul(self, question: object) -> float:
            return self.noul_all([question])[0]

        def choose(self, question: object) -> object:
            return self.choose_all([question])[0]

    fresh = [guard_item(CALIBRATION, number, 31) for number in range(800)]
    predicted = Twin.of(Bold(), fresh).predict(90)  # type: ignore[arg-type]
    came = seen([play_email(item, decider, GUARD_THRESHOLDS)[0] for item in split(TEST, 31).guard])
    assert not all(predicted[name].covers(came[name]) for name in MEASURES)


def test_an_allowed_email_that_code_stops_counts_as_escalated() -> None:
    stopped = replace(RECORDS[0], p=None, sent=False)
    assert Twin.from_records([stopped]).counts().tolist() == [[0, 0], [0, 0], [0, 1]]
