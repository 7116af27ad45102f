"""Reports against loops over exact rationals, the source's demo, and binomial tails summed exactly."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.guard.costs import Costs, Reviewer
from harnesses.guard.demo import COSTS, demo_items
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, Region, Thresholds, region
from harnesses.guard.report import report
from harnesses.guard.scores import Scores
from harnesses.guard.thresholds import thresholds

EIGHTHS = st.integers(0, 8).map(lambda k: Fraction(k, 8))
SMALL = st.integers(0, 20)
CHANCE = st.sampled_from([0, Fraction(1, 10), Fraction(1, 2), 1])


@st.composite
def guarded(draw):
    """Items with ties and both labels, thresholds on them, costs, and a reviewer."""
    items = draw(st.lists(st.tuples(EIGHTHS, st.integers(0, 1), st.sampled_from("ab")), max_size=12))
    items += [(draw(EIGHTHS), 1, "a"), (draw(EIGHTHS), 0, "b")]
    low, high = sorted((draw(EIGHTHS), draw(EIGHTHS)))
    cut = Thresholds(draw(st.sampled_from([high, None])), low)
    costs = Costs(*(draw(SMALL) for _ in range(4)))
    return items, cut, costs, Reviewer(draw(CHANCE), draw(CHANCE), draw(SMALL))


def scores_of(items):
    p, y, group = zip(*items)
    return Scores.of([float(q) for q in p], y, group=group)


def cost_of(kind, y, c, judge):
    """Expected cost of one item, written out over what the reviewer may answer."""
    if kind is Region.ESCALATE:
        return c.escalate
    if kind is Region.ACT:
        return 0 if y else c.wrong
    if y:
        return c.ask + judge.e1 * judge.r
    return c.ask + judge.e0 * c.wrong + (1 - judge.e0) * c.miss


@given(guarded())
def test_counts_rates_and_costs_are_those_of_a_loop_over_the_items(case):
    items, cut, costs, judge = case
    found = report(scores_of(items), cut, costs, reviewer=judge)
    kinds = [region(p, cut) for p, _, _ in items]
    labels = [y for _, y, _ in items]
    pairs = list(zip(kinds, labels))
    sent = [y for kind, y in pairs if kind is Region.ACT]
    assert (found.sent, found.bad) == (len(sent), sent.count(0))
    assert (found.asked, found.asked_disallowed) == (kinds.count(Region.ASK), pairs.count((Region.ASK, 0)))
    assert (found.escalated, found.escalated_disallowed) == (
        kinds.count(Region.ESCALATE),
        pairs.count((Region.ESCALATE, 0)),
    )
    held = [kind is not Region.ACT for kind, y in pairs if y == 1]
    assert found.share == Rate.of(sent.count(0), len(sent))
    assert found.uar == Rate.of(sent.count(0), labels.count(0))
    assert found.held_back == Rate.of(sum(held), len(held))
    spent = [cost_of(kind, y, costs, judge) for kind, y in pairs]
    assert found.cost_exact == Fraction(sum(spent)) / len(items)
    assert found.cost_per_case.mean == pytest.approx(float(found.cost_exact), abs=1e-12)
    for kind in Region:
        assert found.always[kind] == Fraction(sum(cost_of(kind, y, costs, judge) for y in labels)) / len(
            items
        )
    assert found.wrongly_approved == judge.e0 * pairs.count((Region.ASK, 0))


@given(guarded())
@settings(max_examples=20)
def test_groups_are_the_reports_of_their_items_and_add_up(case):
    items, cut, costs, judge = case
    found = report(scores_of(items), cut, costs, reviewer=judge)
    assert sorted(found.groups) == sorted({name for _, _, name in items})
    for name, one in found.groups.items():
        mine = [item for item in items if item[2] == name]
        sent = [y for p, y, _ in mine if region(p, cut) is Region.ACT]
        assert (one.items, one.sent, one.bad) == (len(mine), len(sent), sent.count(0))
        assert one.uar.denominator == [y for _, y, _ in mine].count(0)
    for name in ("items", "disallowed", "sent", "bad", "asked", "escalated", "asked_disallowed"):
        assert sum(getattr(one, name) for one in found.groups.values()) == getattr(found, name)
    assert sum(one.cost_exact * one.items for one in found.groups.values()) == found.cost_exact * found.items


def tail(n, k, b):
    """Exact P(Bin(n, b) <= k)."""
    return sum((math.comb(n, i) * b**i * (1 - b) ** (n - i) for i in range(k + 1)), Fraction(0))


@given(
    sent=st.integers(0, 60),
    bad=st.integers(0, 60),
    tau=st.sampled_from([Fraction(k, 16) for k in range(17)] + [Fraction(31, 32), Fraction(99, 100)]),
    confidence=st.sampled_from(["0.5", "0.9", "0.95", "0.99"]),
)
def test_the_verdict_is_that_of_the_exact_binomial_test(sent, bad, tau, confidence):
    """T8: certified where k or fewer bad have probability at most 1 - confidence at the bound, refuted mirrored."""
    bad = min(bad, sent)
    p = [1.0] * sent + [0.0, 0.0]
    y = [0] * bad + [1] * (sent - bad) + [0, 1]
    cut = Thresholds(tau or "1/100", 0)
    found = report(Scores.of(p, y), cut, COSTS, float(confidence))
    error, bound = 1 - Fraction(confidence), 1 - cut.tau_act
    if sent == 0:
        expected = "undecided"
    elif bad < sent and tail(sent, bad, bound) <= error:
        expected = "certified"
    else:
        expected = "refuted" if bad > 0 and 1 - tail(sent, bad - 1, bound) < error else "undecided"
    assert (found.sent, found.bad, found.verdict) == (sent, bad, expected)


@pytest.mark.parametrize(("tau", "least"), [("0.95", 59), ("31/32", 95), ("0.98", 149), ("0.99", 299)])
def test_the_least_number_sent_without_a_failure_that_certifies(tau, least):
    """T8: one-sided, log .05 / log tau; the two-sided end would ask for a quarter more."""
    for sent, expected in ((least - 1, "undecided"), (least, "certified")):
        found = report(Scores.of([1.0] * sent + [0.0], [1] * sent + [0]), Thresholds(tau, 0), COSTS)
        assert (found.sent, found.bad, found.verdict) == (sent, 0, expected)


@pytest.mark.parametrize(
    ("kappa", "tau", "counts", "total", "uar", "held"),
    [
        (1, "0.969", (129, 2, 218, 57, 53, 41), 536, "0.02", 173),
        (4, "0.969", (211, 10, 189, 90, 0, 0), "654.5", "0.1", 99),
        (1, "31/32", (130, 2, 217, 57, 53, 41), "535.5", "0.02", 172),
        (4, "31/32", (212, 10, 188, 90, 0, 0), 654, "0.1", 98),
    ],
)
def test_the_demo_of_the_source_comes_out_to_the_last_count(kappa, tau, counts, total, uar, held):
    """M14 §7: 400 items, calibrated and overconfident."""
    found = report(demo_items(kappa=kappa), Thresholds(tau, "3/8"), COSTS)
    assert counts == (
        found.sent,
        found.bad,
        found.asked,
        found.asked_disallowed,
        found.escalated,
        found.escalated_disallowed,
    )
    assert found.cost_exact * 400 == Fraction(total)
    assert found.uar.rate == float(uar) and found.held_back == Rate.of(held, 300)
    assert list(found.always.values()) == [5, Fraction(3, 2), 3]
    assert found.verdict == "undecided"


def test_the_demo_is_undecided_at_its_size_and_certified_on_more_items_of_the_same_generator():
    """T8: 2 of 130 have the one-sided upper end 0.0476, above 1/32."""
    cut = thresholds(COSTS)
    small, large = (report(demo_items(count), cut, COSTS) for count in (400, 4000))
    assert (small.bad, small.sent, round(small.share_upper, 4)) == (2, 130, 0.0476)
    assert (small.bound, small.verdict) == (Fraction(1, 32), "undecided")
    assert large.verdict == "certified" and large.share_upper <= 1 / 32
    assert report(demo_items(4000, kappa=8), Thresholds("31/32", "3/8"), COSTS).verdict == "refuted"


def test_a_guard_that_never_acts_promises_nothing_and_its_share_is_undefined():
    found = report(demo_items(), Thresholds(None, "3/8"), COSTS)
    record = found.json()
    assert (found.bound, found.share.rate, found.verdict) == (None, None, "undecided")
    assert record["share"] == {
        "numerator": 0,
        "denominator": 0,
        "rate": None,
        "se": None,
        "lower": None,
        "upper": None,
    }
    assert record["uar"]["rate"] == 0 and record["bound"] is None
    assert "nothing is sent alone" in found.text() and "0/0, undefined" in found.text()


@pytest.mark.parametrize("label", [0, 1])
def test_labels_of_a_single_class_are_refused_and_in_a_group_only_undefined(label):
    with pytest.raises(GuardError, match="single class"):
        report(Scores.of([0.5, 0.9], [label] * 2), Thresholds("31/32", "3/8"), COSTS)
    scores = Scores.of([0.5, 0.9], [label, 1 - label], group=["one", "two"])
    one = report(scores, Thresholds("31/32", "3/8"), COSTS).groups["one"]
    assert (one.uar.rate is None) == (label == 1) and (one.held_back.rate is None) == (label == 0)


def test_a_confidence_that_is_none_is_refused():
    for confidence in (0, 1, 95):
        with pytest.raises(GuardError, match=f"confidence is {confidence};"):
            report(demo_items(), Thresholds("31/32", "3/8"), COSTS, confidence)


@given(guarded(), st.booleans())
@settings(max_examples=15)
def test_the_record_is_plain_json_and_names_the_interface(case, injected):
    items, cut, costs, judge = case
    scores = scores_of(items)
    if injected:
        scores = Scores.of(scores.p, scores.y, scores.p[::-1], scores.group)
    found = report(scores, cut, costs, reviewer=judge)
    record = json.loads(json.dumps(found.json(), allow_nan=False))
    assert {
        "sent",
        "bad",
        "asked",
        "escalated",
        "cost_per_case",
        "bound",
        "verdict",
        "calibration",
    } <= record.keys()
    assert ("injection" in record) == injected
    assert record["cost_per_case"] == float(found.cost_exact)
    assert record["cost_per_case_always"].keys() == {"act", "ask", "escalate"}
    for name in ("share", "uar", "held_back"):
        assert set(record[name]) == {"numerator", "denominator", "rate", "se", "lower", "upper"}
    assert found.text().endswith("\n") and "nan" not in found.text()


def test_none_of_thirty_is_printed_with_its_upper_end_and_not_as_zero_percent():
    scores = Scores.of([0.5] * 30 + [1.0] * 30, [0] * 30 + [1] * 30)
    shown = report(scores, Thresholds("31/32", "3/8"), COSTS).text()
    assert (
        "unsafe-action rate    0/30, at most 0.1157" in shown and "0.0%" not in shown and "0 %" not in shown
    )


def test_the_table_names_the_reviewers_errors_and_every_group():
    scores = Scores.of([0.99, 0.5, 0.5, 0.1], [1, 0, 0, 0], group=["refunds", "refunds", "mail", "mail"])
    shown = report(scores, Thresholds("31/32", "3/8"), COSTS, reviewer=Reviewer(e0="1/4")).text()
    assert "0.5 expected of 2" in shown and "act at p >= 31/32 = 0.96875, ask at p >= 3/8 = 0.375" in shown
    rows = [line.split()[:4] for line in shown.splitlines() if line.startswith(("refunds", "mail"))]
    assert rows == [["mail", "2", "0", "0"], ["refunds", "2", "1", "0"]]
    collapsed = report(scores, Thresholds("3/4", "3/4"), COSTS).text()
    assert "no questions" in collapsed and "wrongly approved" not in collapsed


def test_reading_a_report_by_its_shortest_decimal_decides_ties():
    found = report(Scores.of(np.array([0.7, 0.7, 0.1]), [1, 0, 1]), Thresholds("7/10", "1/10"), COSTS)
    assert (found.sent, found.asked, found.escalated) == (2, 1, 0)
