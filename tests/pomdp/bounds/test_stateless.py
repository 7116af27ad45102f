"""Bounds on Vo against searches of decision rules in rationals, a general optimiser and dropped hypotheses."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pomdp.bounds import solve, solve_open_loop
from pomdp.bounds.stateless import Stateless, stateless
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP, ModelError
from pomdp.policy import Reactive
from pomdp.testing import criteria, pomdps, reactives
from pomdp.value import evaluate, evaluate_exact

ROUNDING = 1e-7
OVER = "over"

# Two observations, either of which is seen first: at most nine deterministic policies, or sixteen by time.
few_contexts = pomdps(max_states=3, max_actions=2, min_observations=2, max_observations=2)
small = settings(max_examples=20)


def counted(model: POMDP, first: int, horizon: int) -> POMDP:
    """The model with the number of actions taken in every observation; the first one is `0/first`.

    A state is (step, state), observation (step, o) follows from the step of the state; after `horizon` all is over.
    """
    S, O = model.num_states, model.num_observations
    exact = model.exact
    T, Z = [], []
    for a in range(model.num_actions):
        rows = [
            {(t + 1) * S + s2: p for s2, p in exact.T[a].row(s).items()}
            if t + 1 < horizon
            else {horizon * S: 1}
            for t in range(horizon)
            for s in range(S)
        ]
        T.append([*rows, {horizon * S: 1}])
        shown = [
            {t * O + o: q for o, q in exact.Z[a].row(s).items()} for t in range(horizon) for s in range(S)
        ]
        Z.append([*shown, {horizon * O: 1}])
    R = [
        [exact.R.row(a).get(s, Fraction(0)) for _ in range(horizon) for s in range(S)] + [0]
        for a in range(len(T))
    ]
    return POMDP.build(
        states=horizon * S + 1,
        actions=model.num_actions,
        observations=[*(f"{t}/{o}" for t in range(horizon) for o in range(O)), OVER],
        T=T,
        Z=Z,
        R=R,
        start=dict(exact.start.items()),
    )


def deterministic(model: POMDP, first: int, choice: tuple[int, ...]) -> Reactive:
    """One action a context."""
    pi = np.eye(model.num_actions)[list(choice)]
    return Reactive(pi, pi[first])


def best_deterministic(model: POMDP, first: int, criterion: Criterion) -> Fraction:
    """The best of all policies with one action a context, each evaluated in rationals."""
    every = itertools.product(range(model.num_actions), repeat=model.num_observations)
    return max(evaluate_exact(model, deterministic(model, first, choice), criterion) for choice in every)


def best_by_time(model: POMDP, first: int, criterion: Criterion) -> Fraction:
    """The best of all decision rules c -> a, another at each step: backward over exact measures, all rules tried."""
    exact, A = model.exact, model.num_actions

    def best(left: int, measure: dict[tuple[int, int], Fraction]) -> Fraction:
        """`measure` {(context, state): mass}."""
        if left == 0 or not measure:
            return Fraction(0)
        contexts = sorted({c for c, _ in measure})
        found = None
        for actions in itertools.product(range(A), repeat=len(contexts)):
            rule = dict(zip(contexts, actions, strict=True))
            total, following = Fraction(0), dict[tuple[int, int], Fraction]()
            for (c, s), mass in measure.items():
                a = rule[c]
                total += mass * exact.R.row(a).get(s, Fraction(0))
                for s2, p in exact.T[a].row(s).items():
                    for o, q in exact.Z[a].row(s2).items():
                        following[o, s2] = following.get((o, s2), Fraction(0)) + mass * p * q
            value = total + criterion.discount * best(left - 1, following)
            found = value if found is None else max(found, value)
        return found or Fraction(0)

    return best(criterion.horizon or 0, {(first, s): p for s, p in exact.start.items()})


def stay_or_leave() -> POMDP:
    """Context = state; `stay` pays 1, `leave` pays 2 and ends. Formal core, section 3."""
    return POMDP.build(
        states=["here", "end"],
        actions=["stay", "leave"],
        observations=["here", "end"],
        T=[[[1, 0], [0, 1]], [[0, 1], [0, 1]]],
        Z=[[[1, 0], [0, 1]]] * 2,
        R=[[1, 0], [2, 0]],
        start="here",
    )


def contains(interval: Interval, value: Fraction | float, slack: float = 1e-12) -> bool:
    """Whether the value is in the interval, but for the rounding of one double."""
    return interval.lower - slack <= float(value) <= interval.upper + slack


def test_a_stochastic_policy_beats_every_deterministic_one_and_the_counter_beats_both() -> None:
    """`stateless-upper`: 2 < 9/4 < 3, so a deterministic search without the counter is no upper end."""
    model, criterion = stay_or_leave(), Criterion(Fraction(1), 2)
    found = stateless(model, 0, criterion, time_limit=2.0)
    assert contains(found.deterministic, 2) and found.deterministic.width <= 1e-6
    assert found.interval.lower == pytest.approx(2.25, abs=1e-6) and found.interval.upper <= 3 + 1e-6
    assert found.policy.pi[0, 0] == pytest.approx(0.5, abs=1e-3)
    with_time = counted(model, 0, 2)
    assert best_deterministic(with_time, 0, criterion) == best_by_time(model, 0, criterion) == 3
    timed = stateless(with_time, 0, criterion)
    assert contains(timed.interval, 3) and timed.interval.width <= 1e-6


@small
@given(st.data())
def test_the_deterministic_interval_holds_the_best_of_all_policies_and_closes(data: st.DataObject) -> None:
    model, criterion = data.draw(few_contexts), data.draw(criteria(max_horizon=3))
    first = data.draw(st.integers(0, 1))
    found = stateless(model, first, criterion, time_limit=8.0, restarts=0)
    best = best_deterministic(model, first, criterion)
    assert contains(found.deterministic, best)
    assert found.deterministic.width <= 1e-6 * max(1.0, abs(float(best)))
    assert found.interval.upper >= float(best) - 1e-12


@small
@given(st.data())
def test_vo_lies_below_the_best_rules_by_time_and_reaches_them_once_the_time_is_seen(
    data: st.DataObject,
) -> None:
    """`stateless-upper`: the deterministic optimum of the counted model bounds the best stochastic policy."""
    model = data.draw(few_contexts)
    horizon = data.draw(st.integers(1, 3))
    criterion = Criterion(data.draw(st.sampled_from((Fraction(1), Fraction(9, 10)))), horizon)
    first = data.draw(st.integers(0, 1))
    best = best_by_time(model, first, criterion)
    untimed = stateless(model, first, criterion, time_limit=3.0, restarts=1)
    assert untimed.interval.lower <= float(best) + 1e-12
    assert untimed.interval.upper <= float(best) + ROUNDING
    timed = stateless(counted(model, first, horizon), first, criterion, time_limit=1.0)
    assert contains(timed.interval, best) and timed.interval.width <= 1e-6
    assert contains(timed.deterministic, best)


@small
@given(st.data())
def test_no_policy_earns_more_than_the_upper_end_and_the_returned_one_earns_the_lower(
    data: st.DataObject,
) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=3, max_observations=3))
    criterion = data.draw(criteria())
    first = data.draw(st.integers(0, model.num_observations - 1))
    found = stateless(model, first, criterion, time_limit=0.5, restarts=1)
    scale = criterion.scale * float(np.abs(model.R).max())
    for _ in range(3):
        drawn = data.draw(reactives(model))
        assert (
            evaluate(model, Reactive(drawn.pi, drawn.pi[first]), criterion)
            <= found.interval.upper + 1e-9 * scale
        )
    assert np.array_equal(found.policy.first, found.policy.pi[first])
    J = evaluate_exact(model, found.policy, criterion)
    assert found.interval.lower <= J <= found.interval.lower + 1e-8 * (1 + scale)
    assert J <= found.interval.upper


@settings(max_examples=8)
@given(st.data())
def test_the_lower_end_is_no_worse_than_a_general_optimiser_without_gradients(data: st.DataObject) -> None:
    model = data.draw(pomdps(min_states=2, max_states=3, min_actions=2, max_actions=2, max_observations=3))
    criterion = data.draw(criteria(max_horizon=3))
    found = stateless(model, 0, criterion, time_limit=1.0, restarts=6)
    O = model.num_observations

    def loss(p: np.ndarray) -> float:
        pi = np.stack([p, 1 - p], axis=1)
        return -evaluate(model, Reactive(pi, pi[0]), criterion)

    rng = np.random.default_rng(0)
    best = -min(
        minimize(loss, rng.random(O), bounds=[(0, 1)] * O, method="L-BFGS-B", options={"maxiter": 20}).fun
        for _ in range(3)
    )
    scale = 1 + criterion.scale * float(np.abs(model.R).max())
    assert found.interval.lower >= best - 1e-6 * scale
    assert found.interval.upper >= best - 1e-9 * scale


@settings(max_examples=8)
@given(st.data())
def test_memory_is_worth_something_and_the_counter_is_worth_an_action_sequence(data: st.DataObject) -> None:
    """`chain`: Vo <= V*, and W <= Vo for a horizon that the context counts to."""
    model = data.draw(few_contexts)
    horizon = data.draw(st.integers(1, 3))
    criterion = Criterion(Fraction(1), horizon)
    optimal = solve(model, criterion, gap=1e-7, time_limit=5.0, certify=False).interval
    plain = stateless(model, 0, criterion, time_limit=3.0, restarts=1, recall=optimal)
    assert plain.interval.lower <= optimal.upper and plain.interval.upper <= optimal.upper
    timed = stateless(counted(model, 0, horizon), 0, criterion, time_limit=1.0)
    plan = solve_open_loop(model, criterion, gap=1e-7, time_limit=5.0, certify=False).interval
    assert plan.lower <= timed.interval.upper and timed.interval.lower <= optimal.upper


def test_without_the_counter_an_action_sequence_can_beat_every_stateless_policy() -> None:
    """`chain`, its hypothesis dropped: one context, in which 1 then 2 pays 1 and all else nothing."""
    model = POMDP.build(
        states=["begin", "half", "end"],
        actions=["one", "two"],
        observations=1,
        T=[[[0, 1, 0], [0, 0, 1], [0, 0, 1]], [[0, 0, 1], [0, 0, 1], [0, 0, 1]]],
        Z=[[[1], [1], [1]]] * 2,
        R=[[0, 0, 0], [0, 1, 0]],
        start="begin",
    )
    criterion = Criterion(Fraction(1), 2)
    found = stateless(model, 0, criterion, time_limit=1.0)
    assert solve_open_loop(model, criterion, gap=1e-9).interval.lower > 1 - 1e-8
    assert found.interval.lower == pytest.approx(0.25, abs=1e-6)
    assert contains(found.deterministic, 0)


@settings(max_examples=10)
@given(st.data())
def test_both_intervals_are_valid_when_there_is_no_time(data: st.DataObject) -> None:
    model = data.draw(pomdps(min_states=2, max_states=4, min_actions=2, min_observations=2))
    criterion = data.draw(criteria(max_horizon=4))
    hurried = stateless(model, 0, criterion, time_limit=1e-4)
    patient = stateless(model, 0, criterion, time_limit=1.0)
    assert hurried.interval.meets(patient.interval) and hurried.deterministic.meets(patient.deterministic)
    if model.num_actions**model.num_observations <= 9:
        assert contains(hurried.deterministic, best_deterministic(model, 0, criterion))


def test_one_run_repeats_another() -> None:
    model, criterion = stay_or_leave(), Criterion(Fraction(9, 10))
    found: list[Stateless] = [
        stateless(model, 0, criterion, seed=3, time_limit=5.0, restarts=2) for _ in range(2)
    ]
    assert found[0].interval.lower == found[1].interval.lower
    assert np.array_equal(found[0].policy.pi, found[1].policy.pi)


def test_discounted_with_the_state_in_the_context_there_is_no_loss() -> None:
    """`no-loss`: where the context gives the belief, a deterministic stateless policy earns V*."""
    model = POMDP.build(
        states=2,
        actions=2,
        observations=2,
        T=[[["1/2", "1/2"], ["1/4", "3/4"]], [["9/10", "1/10"], ["2/3", "1/3"]]],
        Z=[[[1, 0], [0, 1]]] * 2,
        R=[[3, -1], [1, 2]],
        start={0: 1},
    )
    criterion = Criterion(Fraction(9, 10))
    optimal = solve(model, criterion, gap=1e-8).interval
    found = stateless(model, 0, criterion, recall=optimal)
    assert found.interval.meets(optimal) and found.interval.width <= 1e-6
    assert found.deterministic.meets(optimal) and found.deterministic.width <= 1e-6


def test_the_policy_is_given_for_the_contexts_it_was_found_for() -> None:
    """Where the observation of what is over comes first, contexts that matter are not the first observations."""
    model = POMDP.build(
        states=["here", "there", "end"],
        actions=["stay", "go"],
        observations=["over", "odd", "here", "there"],
        T=[[{0: 1}, {2: 1}, {2: 1}], [{1: 1}, {2: 1}, {2: 1}]],
        Z=[[{2: 1}, {3: 1}, {0: 1}]] * 2,
        R=[[1, 7, 0], [0, 3, 0]],
        start="here",
    )
    criterion = Criterion(Fraction(1), 2)
    found = stateless(model, 2, criterion)
    assert contains(found.deterministic, 7) and contains(found.interval, 7)
    assert evaluate_exact(model, found.policy, criterion) == 7


def test_a_model_without_anything_to_earn_is_worth_nothing() -> None:
    model = POMDP.build(
        states=2, actions=2, observations=1, T=[np.eye(2)] * 2, Z=[[[1], [1]]] * 2, R=[[0, 0]] * 2
    )
    for criterion in (Criterion(Fraction(1), 5), Criterion(Fraction(1, 2))):
        found = stateless(model, 0, criterion)
        assert contains(found.interval, 0) and found.interval.width <= 1e-6
        assert contains(found.deterministic, 0) and found.deterministic.width <= 1e-6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gap": -1.0}, "gap -1"),
        ({"time_limit": 0.0}, "time limit 0"),
        ({"first": 7}, "first context 7"),
        ({"first": -1}, "first context -1"),
    ],
)
def test_arguments_out_of_range_are_refused(given: dict[str, float], message: str) -> None:
    arguments = {"first": 0} | given
    with pytest.raises(ModelError, match=message):
        stateless(stay_or_leave(), criterion=Criterion(Fraction(1), 2), **arguments)  # type: ignore[arg-type]
