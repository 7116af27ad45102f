"""Both bounds of `solve` against exact oracles: expectimax, fully observed chains, known values."""

from __future__ import annotations

import math
import signal
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pomdp.bounds.search
from pomdp.bounds import solve, warm_up
from pomdp.bounds.graph import BeliefGraph
from pomdp.bounds.search import Search
from pomdp.cassandra import read
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps
from pomdp.value import evaluate

SMALL = {"max_states": 3, "max_actions": 2, "max_observations": 2}
TIGHT = 1e-9

# Optimal values known from several independent solvers, to the digits shown.
DISCOUNTED = {"tiger.95": 19.37136837, "1d": 1.26034470, "tiger.aaai": 1.93343899}
STAGED = [
    ("tiger.95", 3, None, 2.3098),
    ("tiger.95", 3, 1, 2.72),
    ("tiger.95", 10, None, 6.69336843),
    ("tiger.95", 10, 1, 9.43816762),
    ("tiger.95", 20, None, 11.87956873),
    ("tiger.95", 20, 1, 20.39082625),
    ("1d", 10, None, 1.18514335),
    ("1d", 10, 1, 3.25720149),
    ("4x3.95", 4, None, 0.04730673),
]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """No time limit below pays for compiling."""
    warm_up()


def known_file(benchmarks, name: str) -> POMDP:
    """The benchmark file of that name, whatever the case of its ending."""
    return read(next(f for f in benchmarks.iterdir() if f.stem == name and f.suffix.lower() == ".pomdp"))


@settings(max_examples=30)
@given(st.data())
def test_the_interval_of_a_horizon_holds_the_exact_value(expectimax, data):
    model = data.draw(pomdps(**SMALL))
    discount = data.draw(st.sampled_from((Fraction(0), Fraction(9, 10), Fraction(1))))
    steps = data.draw(st.integers(1, 4))
    found = solve(model, Criterion(discount, steps), gap=TIGHT, time_limit=5.0)
    exact = expectimax(model, discount, steps)
    assert found.certified and found.ended == "gap"
    assert found.interval.contains(exact)
    assert found.interval.width < 2 * TIGHT


@settings(max_examples=12)
@given(pomdps(**SMALL, discount=Fraction(1, 2)))
def test_the_discounted_interval_meets_the_value_of_some_steps_and_its_tail(expectimax, model):
    """What follows the steps pays between the least and the greatest reward, discounted."""
    steps, discount = 5, Fraction(1, 2)
    found = solve(model, Criterion.of(model), gap=1e-6, time_limit=5.0)
    exact = expectimax(model, discount, steps)
    tail = discount**steps / (1 - discount)
    assert found.certified
    assert found.interval.lower <= exact + tail * Fraction(model.R.max())
    assert found.interval.upper >= exact + tail * Fraction(model.R.min())


@settings(max_examples=15)
@given(st.data())
def test_where_the_state_is_seen_the_interval_holds_the_value_of_the_markov_chain(data):
    drawn = data.draw(pomdps(max_states=4, max_actions=3, max_observations=1))
    S, A = drawn.num_states, drawn.num_actions
    seen = [[{s: Fraction(1)} for s in range(S)]] * A
    model = POMDP.build(
        states=S, actions=A, observations=S, T=drawn.exact.T, Z=seen, R=drawn.R, start=drawn.exact.start
    )
    criterion = Criterion(data.draw(st.sampled_from((Fraction(0), Fraction(1, 2), Fraction(19, 20)))))
    value = np.zeros(S)
    for _ in range(2 + math.ceil(math.log(1e-11) / math.log(max(criterion.gamma, 0.01)))):
        ahead = np.array([model.R[a] + criterion.gamma * (model.T[a] @ value) for a in range(A)])
        value = ahead.max(axis=0)
    exact = float((ahead @ model.start).max())
    found = solve(model, criterion, gap=1e-6, time_limit=10.0)
    assert found.ended == "gap"
    assert found.interval.lower - 1e-8 <= exact <= found.interval.upper + 1e-8
    assert found.interval.width < 2e-6


@settings(max_examples=15)
@given(st.data())
def test_the_controller_earns_at_least_the_lower_end(data):
    model = data.draw(pomdps(**SMALL, discount=Fraction(9, 10)))
    steps = data.draw(st.sampled_from((None, 1, 3)))
    criterion = Criterion.of(model, horizon=steps)
    found = solve(model, criterion, gap=1e-4, time_limit=5.0, certify=data.draw(st.booleans()))
    earned = evaluate(model, found.controller, criterion)
    assert found.interval.lower - 1e-9 <= earned <= found.interval.upper + 1e-9


@pytest.mark.parametrize("name", DISCOUNTED)
def test_discounted_values_of_published_models(benchmarks, name):
    model = known_file(benchmarks, name)
    found = solve(model, Criterion.of(model), gap=1e-6, time_limit=60.0)
    assert found.certified and found.ended == "gap"
    assert found.interval.lower - 1e-8 <= DISCOUNTED[name] <= found.interval.upper + 1e-8
    assert found.interval.width <= 1.1e-6


@pytest.mark.parametrize(("name", "steps", "discount", "value"), STAGED)
def test_values_of_published_models_over_a_horizon(benchmarks, name, steps, discount, value):
    model = known_file(benchmarks, name)
    found = solve(model, Criterion.of(model, discount, steps), gap=1e-7, time_limit=60.0)
    assert found.certified
    assert found.interval.lower - 1e-8 <= value <= found.interval.upper + 1e-8
    assert found.interval.width < 2e-7


def test_bounds_are_valid_and_monotone_at_every_moment(tiger):
    criterion = Criterion(Fraction(19, 20))
    reports: list[tuple[float, float, float]] = []
    search = Search(tiger(), criterion)
    ended = search.run(1e-4, 30.0, lambda *report: reports.append(report))
    assert ended == "gap" and len(reports) > 3
    seconds, lower, upper = np.array(reports).T
    for row in (seconds, lower, -upper):
        assert (np.diff(row) >= 0).all()
    assert (lower <= 19.371369).all() and (upper >= 19.371368).all()


def test_an_interrupt_keeps_the_best_interval(tiger):
    def interrupt(seconds: float, lower: float, upper: float) -> None:
        if upper - lower < 30:
            raise KeyboardInterrupt

    found = solve(tiger(), Criterion(Fraction(19, 20)), gap=0.0, time_limit=30.0, progress=interrupt)
    assert found.ended == "interrupt"
    assert found.interval.width < 31 and found.interval.contains(19.37136837)


def test_an_interrupt_within_a_step_waits_until_the_graph_is_whole(tiger, monkeypatch):
    """A signal while a node is being expanded: raised there, it would leave children without their ends."""
    match, calls = BeliefGraph.match, []

    def interrupted_match(graph: BeliefGraph, c: int, node: int) -> None:
        calls.append(c)
        if len(calls) == 4:  # the start belief, its second action
            signal.raise_signal(signal.SIGINT)
        match(graph, c, node)

    monkeypatch.setattr(BeliefGraph, "match", interrupted_match)
    found = solve(tiger(), Criterion(Fraction(19, 20)), gap=0.0, time_limit=30.0)
    assert found.ended == "interrupt" and found.certified and found.interval.contains(19.37136837)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_time_limit_ends_a_search_that_cannot_finish(benchmarks):
    model = known_file(benchmarks, "hallway")
    began = time.process_time()
    found = solve(model, Criterion.of(model), gap=0.0, time_limit=1.0, certify=False)
    assert found.ended == "time"
    assert time.process_time() - began < 5.0  # one step may outlast the limit, not many
    assert found.interval.lower <= 1.23 and found.interval.upper >= 0.95


def test_the_memory_limit_ends_a_search(tiger, monkeypatch):
    monkeypatch.setattr(pomdp.bounds.search, "MEMORY", 1)
    found = solve(tiger(), Criterion(Fraction(19, 20)), gap=0.0, time_limit=30.0)
    assert found.ended == "memory" and found.interval.contains(19.37136837)


def ring(reward: Fraction) -> POMDP:
    """Three states in a ring, seen; action 0 moves on, action 1 stays; only moving into state 0 pays."""
    go, stay = [{1: 1}, {2: 1}, {0: 1}], [{0: 1}, {1: 1}, {2: 1}]
    return POMDP.build(
        states=3,
        actions=2,
        observations=3,
        T=[go, stay],
        Z=[stay, stay],
        R=[[0, 0, reward], [0, 0, 0]],
        start="0",
    )


@pytest.mark.parametrize("reward", ["1", "1e12", "1e-12", "-1e12"])
@pytest.mark.parametrize("criterion", [Criterion(Fraction(1, 2)), Criterion(Fraction(1), 30)], ids=str)
def test_a_deterministic_ring_at_any_scale_of_rewards(reward, criterion):
    """Every third step pays, discounted; a negative reward is avoided by standing still."""
    r = Fraction(reward)
    worth = Fraction(1, 4) / (1 - Fraction(1, 8)) if criterion.horizon is None else Fraction(10)
    found = solve(ring(r), criterion, gap=float(abs(r)) * 1e-6, time_limit=10.0)
    exact = max(r, Fraction(0)) * worth
    assert found.certified and found.ended == "gap" and found.interval.contains(exact)


@pytest.mark.parametrize("discount", ["0", "0.5", "0.99999"])
def test_one_state_one_action_one_observation(discount):
    model = POMDP.build(states=1, actions=1, observations=1, T=[[[1]]], Z=[[[1]]], R=[["1/3"]])
    criterion = Criterion(Fraction(discount))
    found = solve(model, criterion, gap=1e-3, time_limit=10.0)
    assert found.interval.contains(Fraction(1, 3) / (1 - criterion.discount))


@pytest.mark.parametrize("criterion", [Criterion(Fraction(19, 20)), Criterion(Fraction(1), 200)], ids=str)
def test_no_rewards_are_worth_nothing(criterion):
    model = POMDP.build(
        states=2,
        actions=2,
        observations=2,
        T=[[["1/2", "1/2"]] * 2] * 2,
        Z=[[["1/3", "2/3"]] * 2] * 2,
        R=[[0, 0]] * 2,
    )
    found = solve(model, criterion, gap=1e-6, time_limit=10.0)
    assert found.interval.contains(0) and found.interval.width <= 1e-6


def test_a_start_in_a_corner_knows_where_it_is(tiger, expectimax):
    model = tiger().with_start({0: 1})
    found = solve(model, Criterion(Fraction(1), 4), gap=TIGHT, time_limit=10.0)
    exact = expectimax(model, Fraction(1), 4)
    assert exact > 10 and found.interval.contains(exact)


@pytest.mark.parametrize(
    "wrong", [{"gap": -1.0}, {"gap": math.nan}, {"time_limit": 0.0}, {"time_limit": math.inf}]
)
def test_limits_out_of_range_are_refused(tiger, wrong):
    with pytest.raises(ModelError, match="gap|time limit"):
        solve(tiger(), Criterion(Fraction(1), 2), **wrong)
