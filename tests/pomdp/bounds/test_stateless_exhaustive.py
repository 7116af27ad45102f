"""Vo against exhaustive search, grids of stochastic policies, counterexamples and the library's known values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp.bounds import solve
from pomdp.bounds.context_chain import ContextChain
from pomdp.bounds.decisions import decide
from pomdp.bounds.recall_bound import RecallBound
from pomdp.bounds.stateless import stateless, stateless_found
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.policy import Reactive
from pomdp.testing import criteria, pomdps
from pomdp.value import evaluate, evaluate_exact

SMALL = {"max_states": 3, "max_actions": 2, "max_observations": 2, "discount": Fraction(1)}


def timed(model: POMDP, horizon: int) -> POMDP:
    """The model with the number of actions taken in its state and in what it shows."""
    S, O = model.num_states, model.num_observations
    T, Z = [], []
    for a in range(model.num_actions):
        moves = [dict(model.exact.T[a].row(s)) for s in range(S)]
        shown = [dict(model.exact.Z[a].row(s)) for s in range(S)]
        T.append(
            [
                {min(t + 1, horizon) * S + s2: p for s2, p in moves[s].items()}
                for t in range(horizon + 1)
                for s in range(S)
            ]
        )
        Z.append([{t * O + o: p for o, p in shown[s].items()} for t in range(horizon + 1) for s in range(S)])
    return POMDP.build(
        states=S * (horizon + 1),
        actions=model.num_actions,
        observations=O * (horizon + 1),
        T=T,
        Z=Z,
        R=[
            [model.exact.R.row(a).get(s, 0) for _ in range(horizon + 1) for s in range(S)]
            for a in range(model.num_actions)
        ],
        start=dict(model.exact.start),
        discount=model.exact.discount,
    )


def best_deterministic(model: POMDP, first: int, criterion: Criterion) -> Fraction:
    """By trying every deterministic stateless policy, in rationals."""
    eye = np.eye(model.num_actions)
    return max(
        evaluate_exact(model, Reactive(eye[list(choice)], eye[choice[first]]), criterion)
        for choice in itertools.product(range(model.num_actions), repeat=model.num_observations)
    )


def stay_or_end() -> POMDP:
    """Context = state: a pays 1 and stays, b pays 2 and ends. Design of the formal core, section 3."""
    return POMDP.build(
        states=["here", "end"],
        actions=["a", "b"],
        observations=["here", "end"],
        T=[np.eye(2), [[0, 1], [0, 1]]],
        Z=[np.eye(2)] * 2,
        R=[[1, 0], [2, 0]],
        start="here",
        discount=1,
    )


def test_a_stochastic_policy_may_beat_every_deterministic_one() -> None:
    """`stateless-upper`: deterministic 2, Vo 9/4, V* = 3, so a search without a counter is no upper end."""
    found = stateless(stay_or_end(), 0, Criterion(Fraction(1), 2))
    assert found.deterministic.contains(2.0) and found.deterministic.width < 1e-6
    assert abs(found.interval.lower - 2.25) < 1e-7
    assert found.interval.upper >= 2.25 and not found.timed


def test_the_counter_closes_the_example() -> None:
    """With the time in the context the best policy is a, then b: 3 = V*."""
    found = stateless(timed(stay_or_end(), 2), 0, Criterion(Fraction(1), 2))
    assert found.timed and found.interval.contains(3.0) and found.interval.width < 1e-6


@given(pomdps(**SMALL), criteria(max_horizon=3, discounted=False))
def test_with_the_time_in_the_context_vo_is_the_exhaustive_optimum(
    model: POMDP, criterion: Criterion
) -> None:
    """`stateless-upper`: no context recurs, so that the best deterministic policy is optimal."""
    counted = timed(model, criterion.horizon or 1)
    if counted.num_actions ** (counted.num_observations - model.num_observations) > 300:
        counted = timed(model, 1)
        criterion = Criterion(criterion.discount, 1)
    found = stateless(counted, 0, criterion)
    shown = model.num_observations * (criterion.horizon or 1)
    assert found.timed
    assert found.interval.width < 1e-6
    if counted.num_actions**shown <= 300:
        assert found.interval.contains(_by_stages(model, criterion))


def _by_stages(model: POMDP, criterion: Criterion) -> Fraction:
    """The best decision rules by stage and context, every combination tried on exact measures."""
    horizon, O, A = criterion.horizon or 1, model.num_observations, model.num_actions

    def best(t: int, measure: dict[tuple[int, int], Fraction]) -> Fraction:
        if t == horizon or not measure:
            return Fraction(0)
        shown = sorted({o for _, o in measure})
        values = []
        for rule in itertools.product(range(A), repeat=len(shown)):
            act = dict(zip(shown, rule, strict=True))
            reward, after = Fraction(0), {}
            for (s, o), mass in measure.items():
                a = act[o]
                reward += mass * model.exact.R.row(a).get(s, Fraction(0))
                for s2, p in model.exact.T[a].row(s).items():
                    for o2, q in model.exact.Z[a].row(s2).items():
                        after[s2, o2] = after.get((s2, o2), Fraction(0)) + mass * p * q
            values.append(reward + criterion.discount * best(t + 1, after))
        return max(values)

    assert O >= 1
    return best(0, {(s, 0): p for s, p in model.exact.start.items()})


@given(pomdps(**SMALL), criteria(max_horizon=3))
def test_the_deterministic_interval_holds_the_exhaustive_optimum(model: POMDP, criterion: Criterion) -> None:
    found = stateless(model, 0, criterion, time_limit=0.3, restarts=1)
    exact = best_deterministic(model, 0, criterion)
    assert found.deterministic.lower <= exact <= found.deterministic.upper
    assert found.deterministic.lower >= exact - Fraction(1, 10**6)
    assert found.interval.lower >= exact - Fraction(1, 10**6)


@given(pomdps(**SMALL), criteria(max_horizon=3), st.integers(0, 2**32 - 1))
def test_no_stochastic_policy_beats_the_upper_end(model: POMDP, criterion: Criterion, seed: int) -> None:
    """`chain` from below: random policies, and the uniform one."""
    found = stateless(model, 0, criterion, time_limit=0.3, restarts=1)
    rng = np.random.default_rng(seed)
    for pi in (*rng.dirichlet(np.ones(model.num_actions), (5, model.num_observations)),):
        assert evaluate(model, Reactive(pi, pi[0]), criterion) <= found.interval.upper + 1e-9
    assert abs(evaluate(model, found.policy, criterion) - found.interval.lower) < 1e-6 * (
        1 + abs(found.interval.lower)
    )


@given(pomdps(**SMALL), criteria(max_horizon=3))
def test_vo_is_at_most_v_star(model: POMDP, criterion: Criterion) -> None:
    """`chain`: a policy with memory does no worse."""
    found = stateless(model, 0, criterion, time_limit=0.3, restarts=1)
    best = solve(model, criterion, gap=1e-7, certify=False).interval
    assert found.interval.lower <= best.upper + 1e-6


def test_the_ascent_finds_a_grid_s_best_stochastic_policy() -> None:
    """Two contexts, two actions: a fine grid over both probabilities, for several models."""
    rng = np.random.default_rng(3)
    grid = np.linspace(0, 1, 41)
    for _ in range(4):
        T = rng.dirichlet(np.ones(3), (2, 3))
        Z = rng.dirichlet(np.ones(2), (2, 3))
        R = rng.integers(-5, 6, (2, 3))
        model = POMDP.build(states=3, actions=2, observations=2, T=T, Z=Z, R=R, discount="9/10")
        criterion = Criterion(Fraction(9, 10))
        chain = ContextChain.of(model, 0, criterion)
        best = max(
            chain.evaluate(np.array([[p, 1 - p], [q, 1 - q]])) for p, q in itertools.product(grid, repeat=2)
        )
        assert stateless(model, 0, criterion, time_limit=1.5).interval.lower >= best - 1e-6


@given(pomdps(**SMALL), criteria(max_horizon=3), st.integers(0, 2**32 - 1))
def test_the_gradient_is_that_of_j(model: POMDP, criterion: Criterion, seed: int) -> None:
    """Against central differences of J in directions that keep rows distributions."""
    chain = ContextChain.of(model, 0, criterion)
    rng = np.random.default_rng(seed)
    pi = 0.9 * rng.dirichlet(np.ones(model.num_actions), chain.contexts) + 0.1 / model.num_actions
    toward = np.eye(model.num_actions)[rng.integers(model.num_actions, size=chain.contexts)] - pi
    value, gradient = chain.gradient(pi)
    h = 1e-4
    slope = (chain.evaluate(pi + h * toward) - chain.evaluate(pi - h * toward)) / (2 * h)
    assert value == pytest.approx(chain.evaluate(pi), abs=1e-8 * (1 + chain.scale))
    assert slope == pytest.approx(float((gradient * toward).sum()), abs=1e-4 * (1 + chain.scale))


@given(pomdps(**SMALL), criteria(max_horizon=3))
def test_the_recall_bound_is_v_star_from_the_start(model: POMDP, criterion: Criterion) -> None:
    """Exact where few beliefs follow, above it otherwise."""
    bound = RecallBound(model, criterion).value(criterion.horizon, model.start)
    best = solve(model, criterion, gap=1e-7, certify=False).interval
    assert bound >= best.lower - 1e-6
    if criterion.horizon is not None:
        assert bound <= best.upper + 1e-6


def test_a_search_without_time_still_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The open lines' best bound is the upper end when time is over."""
    monkeypatch.setattr("pomdp.bounds.decisions.MAX_LINES", 2)
    model, criterion = timed(stay_or_end(), 2), Criterion(Fraction(1), 2)
    chain = ContextChain.of(model, 0, criterion)
    bound = RecallBound(model, criterion)
    found = decide(chain, bound, chain.state, known=-math.inf, gap=0.0, seconds=10.0)
    assert found.upper >= 3.0 - 1e-9


@given(pomdps(**SMALL), criteria(max_horizon=3))
def test_the_quick_value_is_reached_by_some_policy(model: POMDP, criterion: Criterion) -> None:
    assert stateless_found(model, 0, criterion) <= best_deterministic(model, 0, criterion)


def test_bad_arguments_are_named() -> None:
    model, criterion = stay_or_end(), Criterion(Fraction(1), 2)
    for arguments, said in (({"gap": -1.0}, "gap"), ({"time_limit": 0.0}, "time limit")):
        with pytest.raises(ModelError, match=said):
            stateless(model, 0, criterion, **arguments)
    with pytest.raises(ModelError, match="first context 2 is none of the 2"):
        stateless(model, 2, criterion)
