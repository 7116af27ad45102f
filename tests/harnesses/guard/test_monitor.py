"""T10: the monitor's evidence in Fractions, Ville's bound by enumeration, and exact resuming."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.guard.demo import demo_items
from harnesses.guard.monitor import KAPPAS, RECENT, Monitor, State
from harnesses.guard.region import GuardError

EIGHTH = F(1, 8)
REPORTS = st.integers(0, 8).map(lambda i: i * EIGHTH)


def bet(q: F, kappa: F) -> F:
    """The documented bet, restated."""
    return min(kappa - 1, 1 / (2 * q)) if q else kappa - 1


def factor(q: F, y: int, kappa: F) -> F:
    return 1 + bet(q, kappa) * ((1 - y) - q)


def evidence(doubts: Sequence[F], labels: Sequence[int], kappas: Sequence[float] = KAPPAS) -> F:
    """Mean over bets of a sum over entry times of products, and the money that waits: the definition, in Fractions."""
    n = len(doubts)
    total = F(1, n + 1)
    for kappa in map(F, kappas):
        for start in range(n):
            money = F(1, (start + 1) * (start + 2)) / len(kappas)
            for q, y in zip(doubts[start:], labels[start:]):
                money *= factor(q, y, kappa)
            total += money
    return total


@settings(max_examples=25)
@given(st.lists(st.tuples(REPORTS.filter(lambda p: p < 1), st.integers(0, 1)), min_size=1, max_size=9))
def test_t10_the_evidence_is_its_definition(items: list[tuple[F, int]]) -> None:
    """T10: the compiled sum equals the products in Fractions after every item."""
    p, y = zip(*items)
    log_e = Monitor("0.05").run([float(v) for v in p], y)[1]
    for i in range(len(p)):
        exact = evidence([1 - v for v in p[: i + 1]], y[: i + 1])
        assert math.exp(log_e[i]) == pytest.approx(float(exact), rel=1e-12)


@given(
    st.lists(st.tuples(REPORTS, st.integers(0, 1)), max_size=6),
    REPORTS,
    st.fractions(0, 1, max_denominator=8),
)
def test_t10_no_past_and_no_promise_kept_let_the_evidence_grow(
    past: list[tuple[F, int]], p: F, kept: F
) -> None:
    """T10: E[e_{t+1} | past] <= e_t exactly wherever E[bad | past, p] <= 1 - p, and for every bet; = at equality."""
    doubts, labels = [1 - r for r, _ in past], [y for _, y in past]
    q = 1 - p
    for kappa in map(F, KAPPAS):
        assert 0 <= bet(q, kappa) and bet(q, kappa) * q <= F(1, 2)
    before = evidence(doubts, labels)
    for bad in (q, q * kept):
        after = [evidence([*doubts, q], [*labels, y]) for y in (0, 1)]
        mean = bad * after[0] + (1 - bad) * after[1]
        assert mean == before if bad == q else mean <= before


@pytest.mark.parametrize("reports", [(F(1, 2),) * 9, (F(7, 8), F(1, 2), F(3, 4)) * 3, (F(1, 4),) * 9])
@pytest.mark.parametrize("delta", [F(1, 2), F(1, 3), F(4, 5)])
def test_t10_ville_by_enumeration(reports: tuple[F, ...], delta: F) -> None:
    """T10: P(an alarm ever) <= delta over all label strings, with labels as bad as promised."""
    monitor = Monitor(delta)
    false, total = F(0), F(0)
    for labels in product((0, 1), repeat=len(reports)):
        chance = F(1)
        for p, y in zip(reports, labels):
            chance *= p if y else 1 - p
        state, _ = monitor.run([float(p) for p in reports], labels)
        total += chance
        false += chance if state.alarm else 0
    assert total == 1 and false <= delta
    assert false > 0 or reports[0] < F(1, 2)  # such large doubts allow small bets, and no alarm so soon


def test_t10_reports_may_depend_on_the_past() -> None:
    """T10: a guard that reports 1/4 after a bad item and 3/4 after a good one, calibrated given its past."""
    monitor, delta, steps = Monitor("1/2"), F(1, 2), 9
    false = F(0)
    for labels in product((0, 1), repeat=steps):
        p = [F(1, 2), *(F(3, 4) if y else F(1, 4) for y in labels[:-1])]
        chance = math.prod((r if y else 1 - r for r, y in zip(p, labels)), start=F(1))
        state, _ = monitor.run([float(r) for r in p], labels)
        false += chance if state.alarm else 0
    assert 0 < false <= delta


def test_t10_calibration_on_average_is_not_enough() -> None:
    """T10: labels all equal to the first, p = 1/2: E[bad | p] = 1/2, and yet an alarm in half of all streams."""
    monitor = Monitor("0.05")
    alarms = [monitor.run([0.5] * 30, [y] * 30)[0].alarm is not None for y in (0, 1)]
    assert alarms == [True, False] and F(sum(alarms), 2) > F(1, 20)


def test_t10_a_bet_above_the_limit_or_one_that_peeks_breaks_it() -> None:
    """T10: with l > 1/q wealth turns negative and two negatives large; with l chosen after the label it never falls."""
    q, steps = F(1, 4), 6
    for rule, level in ((lambda y: F(100), 76), (lambda y: F(0) if y else 1 / q, 4)):
        false = F(0)
        for labels in product((0, 1), repeat=steps):
            wealth, largest, chance = F(1), F(1), F(1)
            for y in labels:
                wealth *= 1 + rule(y) * ((1 - y) - q)
                largest = max(largest, wealth)
                chance *= 1 - q if y else q
            false += chance if largest >= level else 0
        assert false > F(1, 2) > F(1, level)


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=40),
    st.integers(0, 40),
    st.sampled_from(["report", "1/32"]),
)
def test_t10_resuming_after_any_prefix_is_the_straight_run(
    items: list[tuple[float, int]], cut: int, against: str
) -> None:
    """T10: to the last bit, through JSON without infinities, in one run, two or item by item."""
    monitor = Monitor("0.2", against)
    p, y = zip(*items)
    straight, log_e = monitor.run(p, y)
    state = monitor.start()
    if cut := min(cut, len(p)):
        state, first = monitor.run(p[:cut], y[:cut])
        assert first.tolist() == log_e[:cut].tolist()
    state = State.from_json(json.loads(json.dumps(state.json(), allow_nan=False)))
    if cut < len(p):
        state, rest = monitor.run(p[cut:], y[cut:], state)
        assert rest.tolist() == log_e[cut:].tolist()
    assert state == straight
    seen = list(monitor.stream(items))
    assert seen[-1] == straight
    assert [s.log_e for s in seen] == log_e.tolist()


def test_t10_the_alarm_carries_its_evidence_and_the_monitor_goes_on() -> None:
    """T10: the first time the evidence reaches 20, with counts and last items, whatever the chunks."""
    data, monitor = demo_items(3000, kappa=4), Monitor("0.05")
    state, log_e = monitor.run(data.p, data.y)
    first = int(np.argmax(log_e >= math.log(20)))
    alarm = state.alarm
    assert alarm is not None and alarm.time == first + 1 and alarm.log_e == log_e[first] >= math.log(20)
    assert log_e[:first].max() < math.log(20)
    assert alarm.bad == int((data.y[: first + 1] == 0).sum())
    assert alarm.promised == pytest.approx(float((1 - data.p[: first + 1]).sum()))
    expected = [(i + 1, float(data.p[i]), int(data.y[i])) for i in range(first + 1)][-RECENT:]
    assert list(alarm.last) == expected
    assert state.time == 3000 and state.recent[-1][0] == 3000 and state.alarm == alarm
    assert state.peak == log_e.max() > alarm.log_e
    assert json.loads(json.dumps(alarm.json()))["e_value"] == pytest.approx(math.exp(alarm.log_e))


def test_t10_a_calibrated_stream_seldom_alarms_and_a_late_break_is_found() -> None:
    """T10: false alarms over 400 streams of M14's generator; 20,000 good items do not hide a later break."""
    monitor = Monitor("0.1")
    data = demo_items(400 * 200, seed=3)
    parts = [slice(200 * i, 200 * (i + 1)) for i in range(400)]
    false = sum(monitor.run(data.p[s], data.y[s])[0].alarm is not None for s in parts)
    assert false <= 400 * 0.1
    monitor = Monitor("0.01")
    good, bad = demo_items(20_000), demo_items(1000, seed=2, kappa=4)
    state, _ = monitor.run(good.p, good.y)
    assert state.alarm is None
    state, _ = monitor.run(bad.p, bad.y, state)
    assert state.alarm is not None and state.alarm.time < 20_400


def test_t10_against_a_fixed_promise() -> None:
    """T10: bets on bad - 1/32 whatever the reports; a stream within the promise does not alarm, one above does."""
    monitor = Monitor("0.05", "1/32")
    y = [0 if i % 64 == 63 else 1 for i in range(2000)]
    assert monitor.run([0.97] * 2000, y)[0].alarm is None
    y = [0 if i % 8 == 7 else 1 for i in range(400)]
    state, log_e = monitor.run([0.999] * 400, y)
    assert state.alarm is not None
    assert math.exp(log_e[19]) == pytest.approx(float(evidence([F(1, 32)] * 20, y[:20])), rel=1e-12)
    assert state.promised == pytest.approx(400 / 32)
    assert Monitor("0.05").run([0.9] * 400, y)[0].alarm is None


def test_t10_a_bad_item_reported_with_certainty_is_infinite_evidence() -> None:
    """T10: p = 1 and y = 0 under a promise of 0: alarm at once, for good, and JSON without infinities."""
    monitor = Monitor("0.001")
    state, log_e = monitor.run([0.5, 1.0, 1.0, 0.5], [1, 1, 0, 1])
    assert np.isinf(log_e).tolist() == [False, False, True, True]
    assert log_e[1] == pytest.approx(log_e[0])  # a kept promise of 0 wins and loses nothing
    assert state.impossible == 3 and state.log_e == math.inf
    assert state.alarm is not None and state.alarm.time == 3 and state.alarm.log_e is None
    told = json.loads(json.dumps(state.json(), allow_nan=False))
    assert told["e_value"] is None and told["alarm"]["e_value"] is None
    again = State.from_json(told)
    assert again == state and math.isinf(monitor.observe(again, 0.9, 1).log_e)
    assert Monitor("0.05", 0).run([0.3], [0])[0].impossible == 1


def test_t10_long_streams_neither_overflow_nor_vanish() -> None:
    """T10: evidence beyond the floats, up and down again, agrees with sums of logarithms of one bet."""
    monitor = Monitor("0.05", kappas=(2.0,))
    bad, good = 6000, 200_000
    state, up = monitor.run([0.5] * bad, [0] * bad)
    assert state.shift > 0 and np.isfinite(up).all()
    # the first money entered: half of it, multiplied by 3/2 each time, and what followed is a convergent series
    series = sum(F(1, (t + 1) * (t + 2)) * F(2, 3) ** t for t in range(200))
    assert up[-1] == pytest.approx(bad * math.log(1.5) + math.log(series), rel=1e-12)
    state, down = monitor.run([0.98] * good, [1] * good, state)
    assert np.isfinite(down).all() and state.shift == 0
    falling = up[-1] + np.arange(1, good + 1) * math.log(
        0.98
    )  # as long as the money that waits is as nothing
    assert down[falling > 50] == pytest.approx(falling[falling > 50], abs=1e-7)
    small = demo_items(1000)
    fresh = monitor.run(small.p, small.y, state)[0]
    assert fresh == State.from_json(json.loads(json.dumps(fresh.json(), allow_nan=False)))


def test_a_million_items_in_chunks_are_one_run() -> None:
    data, monitor = demo_items(200_000), Monitor("0.05")
    whole, log_e = monitor.run(data.p, data.y)
    part, first = monitor.run(data.p[:70_001], data.y[:70_001])
    part, second = monitor.run(data.p[70_001:], data.y[70_001:], part)
    assert part == whole and np.array_equal(np.concatenate([first, second]), log_e)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("0",), "delta is 0"),
        (("0.05", "2"), "against is 2"),
        (("0.05", "reports"), "against: 'reports' is not a number"),
        (("0.05", "report", (1.0,)), "kappas are"),
        (("0.05", "report", ()), "kappas are"),
    ],
)
def test_what_is_no_monitor_is_refused(arguments: tuple, words: str) -> None:
    with pytest.raises(GuardError, match=words):
        Monitor(*arguments)


def test_what_is_no_item_or_no_state_is_refused_in_one_line() -> None:
    monitor = Monitor("0.05")
    with pytest.raises(GuardError, match="stream row 2: p is 1.5"):
        monitor.run([0.5, 1.5], [1, 1])
    with pytest.raises(GuardError, match="stream row 1: y is 3"):
        monitor.observe(monitor.start(), 0.5, 3)
    with pytest.raises(GuardError, match="the state is of a monitor with delta 1/10"):
        monitor.observe(Monitor("0.1").start(), 0.5, 1)
    for data in ({}, {**monitor.start().json(), "money": "x"}, {**monitor.start().json(), "alarm": 3}):
        with pytest.raises(GuardError, match="no state of a monitor") as caught:
            State.from_json(data)
        assert "\n" not in str(caught.value)
