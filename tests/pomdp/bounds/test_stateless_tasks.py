"""Vo on the library's tasks under windows: the known values, and Tiger's by trying all decision rules in rationals."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest

from pomdp.bounds import solve
from pomdp.bounds.context_chain import ContextChain
from pomdp.bounds.fixed_choice import choose
from pomdp.bounds.recall_bound import RecallBound
from pomdp.bounds.stateless import Stateless, stateless
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.library import task
from pomdp.model import POMDP
from pomdp.value import evaluate_exact

Memory = Hashable
Step = Callable[[Memory, int, int], Memory]
OVER = "over"


def windowed(model: POMDP, k: int, *, horizon: int | None = None, count: bool = False) -> POMDP:
    """The model that shows the last k (action, observation) pairs, with the step number where `count`.

    A state is (state, context); the context before the first action is observation 0. Runs that have ended, or have
    used up the horizon, are one absorbing state.
    """
    begin: Memory = (0, ()) if count else ()

    def after(context: Memory, action: int, observation: int) -> Memory:
        step, pairs = context if count else (0, context)  # type: ignore[misc]
        kept = (*pairs, (action, observation))[-k:] if k else ()
        return (step + 1, kept) if count else kept

    return composed(model, begin, after, horizon)


def composed(model: POMDP, begin: Memory, after: Step, horizon: int | None) -> POMDP:
    """The model with the memory `after` of its history in the state and as the observation."""
    exact = model.exact
    places: dict[Hashable, int] = {}
    contexts: dict[Memory, int] = {begin: 0}
    order: list[tuple[int, Memory, int]] = []

    def place(s: int, memory: Memory, t: int) -> int:
        """`t` is kept only where a horizon ends the run."""
        node = OVER if model.terminal[s] or t == horizon else (s, memory, t if horizon else 0)
        if node not in places:
            places[node] = len(places)
            order.append((s, memory, t) if node != OVER else (-1, OVER, -1))
            contexts.setdefault(order[-1][1], len(contexts))
        return places[node]

    start = {place(s, begin, 0): p for s, p in exact.start.items()}
    T: list[list[dict[int, Fraction]]] = [[] for _ in model.actions]
    R: list[list[Fraction]] = [[] for _ in model.actions]
    for i, (s, memory, t) in enumerate(order):  # grows while it is read
        for a in range(model.num_actions):
            row: dict[int, Fraction] = {}
            for s2, p in exact.T[a].row(s).items() if s >= 0 else ():
                for o, q in exact.Z[a].row(s2).items():
                    j = place(s2, after(memory, a, o), t + 1)
                    row[j] = row.get(j, Fraction(0)) + p * q
            T[a].append(row or {i: Fraction(1)})
            R[a].append(exact.R.row(a).get(s, Fraction(0)) if s >= 0 else Fraction(0))
    shown = [{contexts[memory]: 1} for _, memory, _ in order]
    return POMDP.build(
        states=len(order), actions=model.num_actions, observations=[str(i) for i in range(len(contexts))],
        T=T, Z=[shown] * model.num_actions, R=R, start=start, discount=exact.discount,
    )  # fmt: skip


def best_rules(model: POMDP, horizon: int) -> Fraction:
    """The best decision rules on a model whose contexts hold the time: all tried, the last step by its maxima."""
    exact, A = model.exact, model.num_actions
    context = [next(iter(exact.Z[0].row(s))) for s in range(model.num_states)]
    T = [[list(exact.T[a].row(s).items()) for s in range(model.num_states)] for a in range(A)]
    R = [[exact.R.row(a).get(s, Fraction(0)) for s in range(model.num_states)] for a in range(A)]

    def best(left: int, measure: dict[int, Fraction]) -> Fraction:
        parts: dict[int, dict[int, Fraction]] = {}
        for s, mass in measure.items():
            parts.setdefault(context[s], {})[s] = mass
        earned = {
            (c, a): sum((m * R[a][s] for s, m in part.items()), Fraction(0))
            for c, part in parts.items()
            for a in range(A)
        }
        if left == 1:
            return sum((max(earned[c, a] for a in range(A)) for c in parts), Fraction(0))
        led = {}
        for c, part in parts.items():
            for a in range(A):
                led[c, a] = moved = dict[int, Fraction]()
                for s, m in part.items():
                    for s2, p in T[a][s]:
                        moved[s2] = moved.get(s2, Fraction(0)) + m * p
        values = []
        for rule in itertools.product(range(A), repeat=len(parts)):
            following: dict[int, Fraction] = {}
            for pair in zip(parts, rule, strict=True):
                for s, m in led[pair].items():
                    following[s] = following.get(s, Fraction(0)) + m
            now = sum((earned[pair] for pair in zip(parts, rule, strict=True)), Fraction(0))
            values.append(now + best(left - 1, following))
        return max(values)

    return best(horizon, dict(exact.start))


def best_stateless(model: POMDP, criterion: Criterion, optimal: Interval | None = None) -> Stateless:
    """Vo with a minute, of which these tasks take a second or so, after which their intervals have closed."""
    return stateless(model, 0, criterion, time_limit=60.0, recall=optimal)


def holds(interval: Interval, value: Fraction | float, width: float = 1e-6) -> bool:
    """Whether a narrow interval contains the value."""
    return interval.lower - 1e-12 <= float(value) <= interval.upper + 1e-12 and interval.width <= width


def test_tiger_with_the_step_counter_never_falls_with_the_window_and_reaches_the_optimum() -> None:
    """`stateless-upper`, `chain`: exact Vo at horizon 4 for last(0..3), the last one V* = 2.42125."""
    model, criterion = task("tiger").model, Criterion(Fraction(1), 4)
    found = []
    for k in range(4):
        counted = windowed(model, k, horizon=4, count=True)
        exact = best_rules(counted, 4) if k < 3 else Fraction("2.42125")
        result = best_stateless(counted, criterion)
        assert result.timed and holds(result.interval, exact) and holds(result.deterministic, exact)
        assert evaluate_exact(counted, result.policy, criterion) == exact
        found.append(exact)
    assert found == sorted(found)
    assert found == [-4, Fraction("-3.89"), Fraction("1.72"), Fraction("2.42125")]
    assert holds(solve(model, criterion, gap=1e-7).interval, found[-1], 1e-5)


def test_tigers_full_window_needs_no_upper_end_from_elsewhere() -> None:
    """The search alone closes, without V* being handed to it."""
    counted = windowed(task("tiger").model, 3, horizon=4, count=True)
    assert best_stateless(counted, Criterion(Fraction(1), 4)).upper_from == "decisions"


@pytest.mark.parametrize(("k", "value"), [(1, Fraction(5, 8)), (2, Fraction(17, 20)), (3, Fraction(17, 20))])
def test_repo_repair_with_windows(k: int, value: Fraction) -> None:
    """`no-loss` at k = 2; at k = 1 the best deterministic policy earns 5/8, and no stochastic one more."""
    repair = task("repo_repair:2:2")
    found = best_stateless(windowed(repair.model, k, horizon=4), repair.criterion())
    assert holds(found.deterministic, value)
    assert holds(found.interval, value)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_larger_repository_with_windows_is_bounded_by_its_optimum(k: int) -> None:
    repair = task("repo_repair:3:2")
    optimal = repair.optimal(repair.criterion())
    assert optimal == Fraction(17, 20)
    model = windowed(repair.model, k, horizon=4)
    found = best_stateless(model, repair.criterion(), Interval.of(optimal, optimal))
    assert found.interval.width <= 1e-6
    assert holds(found.interval, Fraction(11, 20) if k == 1 else optimal)


@pytest.mark.parametrize("n", [2, 4, 6])
def test_a_window_remembers_the_cue_of_the_t_maze_exactly_when_it_is_long_enough(n: int) -> None:
    """`garbling` in numbers: Vo(last(k)) is 0 for k < n and V* from n on, discounted and without end."""
    maze = task(f"tmaze:{n}")
    optimal = maze.optimal(Criterion.of(maze.model))
    for k in range(1, n + 2):
        found = best_stateless(windowed(maze.model, k), Criterion.of(maze.model))
        assert holds(found.interval, 0 if k < n else optimal), k


@pytest.mark.parametrize(("n", "windows"), [(2, (1, 2)), (3, (1, 2, 3)), (6, (1, 2))])
@pytest.mark.parametrize("discounted", [False, True])
def test_a_window_keeps_the_flip_exactly_when_it_is_long_enough(
    n: int, windows: tuple[int, ...], discounted: bool
) -> None:
    """`M1-T0.2.7` in value: Vo(last(k)) is 0 for k < n although V* is gamma^(n+1), and V* at k = n."""
    flip = task(f"flip:{n}")
    criterion = Criterion.of(flip.model) if discounted else Criterion(Fraction(19, 20), n + 2)
    optimal = flip.optimal(criterion)
    assert optimal == Fraction(19, 20) ** (n + 1)
    for k in windows:
        found = best_stateless(windowed(flip.model, k), criterion)
        assert holds(found.interval, 0 if k < n else optimal), k


def test_a_run_that_must_end_is_timed_even_without_a_horizon() -> None:
    """Every context of `flip` has a stage of its own marker, so that a deterministic policy is optimal."""
    flip = task("flip:3")
    assert best_stateless(windowed(flip.model, 1), Criterion.of(flip.model)).timed
    assert not best_stateless(windowed(task("tmaze:2").model, 1), Criterion.of(flip.model)).timed


@pytest.mark.parametrize(("k", "value"), [(0, -20.0), (1, -20.0), (2, 12.04405928)])
def test_discounted_tiger_with_short_windows_has_an_exact_deterministic_optimum(k: int, value: float) -> None:
    """One report is too little to open a door, two that agree are enough; the time decides nothing here."""
    model = windowed(task("tiger").model, k)
    criterion = Criterion.of(model)
    chain = ContextChain.of(model, 0, criterion)
    begin = np.zeros(chain.contexts, dtype=np.int64)
    found = choose(chain, RecallBound(model, criterion), chain.state, known=begin, gap=1e-7, seconds=120.0)
    assert found.best == pytest.approx(value, abs=1e-6) and found.upper <= found.best + 2e-7
    optimal = Interval(19.371368363, 19.371368375)
    hurried = stateless(model, 0, criterion, time_limit=0.5, restarts=1, recall=optimal)
    assert hurried.interval.lower >= -20.0 - 1e-6
    assert value - 1e-6 <= hurried.interval.upper <= optimal.upper and hurried.deterministic.contains(
        found.best
    )


def test_contexts_by_the_hundred_and_states_by_the_thousand_finish_in_time() -> None:
    """A hundred contexts that recur, two thousand states, no horizon: valid ends within about the limit."""
    rng = np.random.default_rng(1)
    S, O, A = 2000, 100, 3
    T = [
        [{int(j): Fraction(1, 4) for j in rng.choice(S, 4, replace=False)} for _ in range(S)]
        for _ in range(A)
    ]
    Z = [[{int(rng.integers(O)): Fraction(1)} for _ in range(S)]] * A
    model = POMDP.build(
        states=S,
        actions=A,
        observations=O,
        T=T,
        Z=Z,
        R=rng.integers(-5, 6, (A, S)),
        start={0: 1},
        discount="9/10",
    )
    for criterion in (Criterion(Fraction(9, 10)), Criterion(Fraction(1), 8)):
        began = time.process_time()
        found = stateless(model, 0, criterion, time_limit=2.0)
        assert time.process_time() - began < 6.0
        assert found.interval.lower <= found.interval.upper <= 5 * criterion.scale + 1e-6
        assert found.deterministic.lower <= found.interval.lower + 1e-6
