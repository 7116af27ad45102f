"""Monte Carlo: means and rates against exact values; no batch, chunk, device or interrupt changes them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from importlib import import_module

import jax
import numpy as np
import pytest

from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.policy import Controller, OpenLoop, Policy, Reactive
from pomdp.simulate import BLOCK, Moments, Trajectory, cut, simulate, trajectories
from pomdp.value import evaluate

# The module itself, whose settings some tests replace.
MODULE = import_module("pomdp.simulate")

S, A, O, STEPS = 5, 3, 4, 30


@cache
def random_model(seed: int, states: int = S, observations: int = O) -> POMDP:
    """Rows of small integer weights, some of them zero."""
    rng = np.random.default_rng(seed)

    def rows(columns: int) -> list[dict[int, Fraction]]:
        weights = rng.integers(0, 4, size=(states, columns))
        weights[:, rng.integers(columns)] += 1
        return [{j: Fraction(w, sum(row)) for j, w in enumerate(row) if w} for row in weights.tolist()]

    return POMDP.build(
        states=states,
        actions=A,
        observations=observations,
        T=[rows(states) for _ in range(A)],
        Z=[rows(observations) for _ in range(A)],
        R=rng.integers(-10, 11, size=(A, states)),
        discount="0.9",
        start=rows(states)[0],
    )


def random_controller(seed: int, stochastic: bool, nodes: int = 6) -> Controller:
    rng = np.random.default_rng(seed + 1000)
    act = np.eye(A)[rng.integers(A, size=nodes)]
    if stochastic:
        act = (act + rng.dirichlet(np.ones(A), size=nodes)) / 2
    return Controller(act, rng.integers(nodes, size=(nodes, A, O)), int(rng.integers(nodes)))


def exact_value(model: POMDP, controller: Controller, gamma: float, horizon: int | None) -> float:
    """J by a dense solve of the product chain, or by `horizon` dense products."""
    K = controller.num_nodes
    T, Z = (np.stack([m.toarray() for m in matrices]) for matrices in (model.T, model.Z))
    chain = np.zeros((K, S, K, S))
    for k in range(K):
        for a in range(A):
            for o in range(O):
                moved = controller.act[k, a] * T[a] * Z[a][:, o]
                chain[k, :, controller.successor[k, a, o], :] += moved
    flat = chain.reshape(K * S, K * S)
    reward = (controller.act @ model.R).ravel()
    if horizon is None:
        value = np.linalg.solve(np.eye(K * S) - gamma * flat, reward)
    else:
        value = np.zeros(K * S)
        for _ in range(horizon):
            value = reward + gamma * flat @ value
    return float(model.start @ value.reshape(K, S)[controller.start])


def same(one: Trajectory, other: Trajectory) -> bool:
    names = ("states", "actions", "observations", "rewards")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize(
    "criterion", [Criterion(Fraction(1, 2)), Criterion(Fraction(1), STEPS)], ids=lambda c: c.text()
)
def test_the_mean_is_within_four_standard_errors_of_the_exact_value(
    stochastic: bool, criterion: Criterion
) -> None:
    scores = []
    for seed in range(40):
        model, controller = random_model(seed), random_controller(seed, stochastic)
        found = simulate(model, controller, criterion, episodes=3000, seed=seed, steps=STEPS)
        exact = exact_value(model, controller, criterion.gamma, criterion.horizon)
        assert exact == pytest.approx(evaluate(model, controller, criterion), abs=1e-9)
        assert found.standard_error is not None
        # Float32 sums of numbers below 300 are within 1e-4.
        allowed = 4 * found.standard_error + found.truncation + 1e-4
        assert abs(found.mean - exact) < allowed
        if found.standard_error > 1e-3:
            scores.append((found.mean - exact) / found.standard_error)
    # Standard errors of the right size: the squares of n scores sum to n within 5 standard deviations.
    n = len(scores)
    assert n >= 30 and abs(sum(z * z for z in scores) - n) < 5 * math.sqrt(2 * n)


@pytest.mark.parametrize("stochastic", [False, True])
def test_an_episode_is_the_same_alone_and_in_any_company(stochastic: bool) -> None:
    model, controller = random_model(1), random_controller(1, stochastic)
    together = trajectories(model, controller, range(40), steps=STEPS, seed=4)
    alone = trajectories(model, controller, [17], steps=STEPS, seed=4)
    found = simulate(model, controller, Criterion.of(model), episodes=40, steps=STEPS, seed=4, keep=[39, 17])
    assert list(found.trajectories) == [17, 39]
    for some in (alone, found.trajectories):
        assert all(same(together[i], trajectory) for i, trajectory in some.items())
    other_seed = trajectories(model, controller, [17], steps=STEPS, seed=5)
    assert not same(other_seed[17], alone[17])


def test_chunks_and_devices_change_no_bit_of_the_result() -> None:
    model, controller = random_model(2), random_controller(2, True)
    episodes = 2 * BLOCK + 77
    hit = {"pair": np.arange(A * S).reshape(A, S) == 4, "end": np.arange(O) == 2}

    def run(chunk: int | None, times: int) -> tuple[object, ...]:
        found = simulate(
            model, controller, Criterion.of(model), episodes=episodes, steps=STEPS, seed=6,
            events=hit, chunk=chunk, devices=jax.devices() * times,
        )  # fmt: skip
        return found.mean, found.standard_error, found.events["end"], found.episodes

    reference = run(None, 1)
    assert run(None, 3) == reference
    assert run(1000, 2) == reference


def test_the_result_is_made_of_the_returns_of_its_episodes() -> None:
    model, controller = random_model(3), random_controller(3, True)
    found = simulate(
        model, controller, Criterion.of(model), episodes=60, steps=STEPS, seed=1,
        events={"a1 in s2": np.arange(A)[:, None] * S + np.arange(S) == S + 2, "o3": np.arange(O) == 3},
        keep=range(60),
    )  # fmt: skip
    weights = 0.9 ** np.arange(STEPS)
    runs = list(found.trajectories.values())
    returns = np.array([weights @ run.rewards for run in runs])
    assert found.mean == pytest.approx(returns.mean(), abs=1e-4)
    assert found.standard_error == pytest.approx(returns.std(ddof=1) / math.sqrt(60), rel=1e-5)
    counts = {
        "a1 in s2": [np.sum((run.actions == 1) & (run.states[:-1] == 2)) for run in runs],
        "o3": [np.sum(run.observations == 3) for run in runs],
    }
    for name, values in counts.items():
        count = np.array(values)
        rate = found.events[name]
        assert rate.per_step == pytest.approx(count.mean() / STEPS, rel=1e-12)
        assert rate.per_step_error == pytest.approx(count.std(ddof=1) / math.sqrt(60) / STEPS, rel=1e-9)
        some = count > 0
        assert rate.per_episode == some.mean()
        assert rate.per_episode_error == pytest.approx(some.std(ddof=1) / math.sqrt(60), rel=1e-9)
    assert all(np.array_equal(run.rewards, model.R[run.actions, run.states[:-1]]) for run in runs)


def test_rates_of_events_are_those_of_a_known_chain() -> None:
    # From `up`, fall with probability 1/4 and stay down; the observation shows the state with accuracy 9/10.
    model = POMDP.build(
        states=["up", "down"], actions=["wait"], observations=["up", "down"],
        T=[[["3/4", "1/4"], [0, 1]]], Z=[[["9/10", "1/10"], ["1/10", "9/10"]]],
        R=[[1, 0]], start="up", discount=1,
    )  # fmt: skip
    n = 6
    up_before = [0.75**t for t in range(n)]
    found = simulate(
        model, OpenLoop((), (0,)), Criterion(Fraction(1), n), episodes=40_000, seed=3,
        events={"wait when down": np.array([[False, True]]), "alarm": np.array([False, True])},
    )  # fmt: skip
    assert found.truncation == 0.0 and found.steps == n
    down, alarm = found.events["wait when down"], found.events["alarm"]
    expected_alarm = np.mean([0.9 - 0.8 * 0.75 ** (t + 1) for t in range(n)])
    # No alarm at all: the sum over the step of the fall (or none) of the chances of silence.
    silent = sum(0.75**t * 0.25 * 0.9**t * 0.1 ** (n - t) for t in range(n)) + (0.75 * 0.9) ** n
    for value, error, exact in [
        (found.mean, found.standard_error, sum(up_before)),
        (down.per_step, down.per_step_error, 1 - sum(up_before) / n),
        (down.per_episode, down.per_episode_error, 1 - 0.75 ** (n - 1)),
        (alarm.per_step, alarm.per_step_error, expected_alarm),
        (alarm.per_episode, alarm.per_episode_error, 1 - silent),
    ]:
        assert error is not None and error < 0.01
        assert abs(value - exact) < 4 * error


def test_a_cut_episode_says_what_it_may_have_left_out() -> None:
    model = POMDP.build(states=1, actions=1, observations=1, T=[[[1]]], Z=[[[1]]], R=[[-3]], discount=0.9)
    found = simulate(model, OpenLoop((), (0,)), Criterion.of(model), episodes=3, steps=17)
    assert found.mean - found.truncation == pytest.approx(-30, rel=1e-6)
    assert found.standard_error == 0.0 and found.steps == 17
    endless = Criterion.of(model)
    steps, bound = cut(model, endless, None)
    assert bound == pytest.approx(30 * 0.9**steps) and bound <= 30e-4 < bound / 0.9
    within = Criterion.of(model, horizon=10)
    assert cut(model, within, 4) == (4, pytest.approx(3 * sum(0.9**t for t in range(4, 10))))
    assert cut(model, within, None) == cut(model, within, 99) == (10, 0.0)
    assert cut(model, Criterion(Fraction(0)), None) == (1, 0.0)


def test_long_undiscounted_sums_do_not_drift() -> None:
    # 0.1 is no binary fraction: a plain float32 sum of 10,000 of them is off by more than 1e-2.
    model = POMDP.build(states=1, actions=1, observations=1, T=[[[1]]], Z=[[[1]]], R=[["0.1"]])
    found = simulate(model, OpenLoop((), (0,)), Criterion(Fraction(1), 10_000), episodes=2)
    assert found.mean == pytest.approx(1000, abs=1e-4)


def test_an_interrupt_keeps_what_is_finished() -> None:
    model, controller = random_model(1), random_controller(1, False)
    criterion, calls = Criterion.of(model), []

    def interrupt(done: int) -> None:
        calls.append(done)
        if len(calls) == 2:
            raise KeyboardInterrupt

    whole = 2**22
    found = simulate(
        model, controller, criterion, episodes=whole, steps=STEPS, devices=jax.devices(), progress=interrupt
    )
    assert found.interrupted and found.episodes == calls[-1] < whole
    again = simulate(model, controller, criterion, episodes=found.episodes, steps=STEPS)
    assert (again.mean, again.standard_error) == (found.mean, found.standard_error)
    assert not again.interrupted


def test_an_interrupt_before_anything_is_finished_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, "batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate(random_model(1), random_controller(1, False), Criterion(Fraction(1, 2)), episodes=5)


def test_progress_counts_episodes_up_to_all() -> None:
    seen: list[int] = []
    model = random_model(1)
    simulate(
        model, random_controller(1, False), Criterion.of(model), episodes=5000, steps=STEPS,
        progress=seen.append, devices=jax.devices(),
    )  # fmt: skip
    assert seen == sorted(seen) and seen[-1] == 5000


def test_moments_of_parts_are_the_moments_of_the_whole() -> None:
    values = np.random.default_rng(0).normal(1e6, 1.0, size=1000)
    merged = Moments()
    for part in np.split(values, [1, 7, 400, 999]):
        merged = merged.merge(Moments.of(part))
    assert merged.count == 1000
    assert merged.mean == pytest.approx(values.mean(), rel=1e-14)
    assert merged.standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(1000), rel=1e-9)
    assert Moments.of(values[:1]).standard_error is None


ONE = Criterion(Fraction(1, 2))
WRONG = {
    "episodes": {"episodes": 0},
    "seed": {"seed": -1},
    "chunk": {"chunk": 0},
    "steps": {"steps": 0},
    "episode": {"keep": [-3]},
    "event 'x'": {"events": {"x": np.zeros((S, A), dtype=bool)}},
    "int64": {"events": {"x": np.zeros(O, dtype=np.int64)}},
    "more than 32": {"events": {str(i): np.zeros(O, dtype=bool) for i in range(33)}},
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_are_refused_before_anything_runs(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "batch", None)
    arguments: dict[str, object] = {"episodes": 10, **WRONG[what]}
    with pytest.raises(ModelError, match=what):
        simulate(random_model(0), random_controller(0, False), ONE, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "policy", [OpenLoop((0,), ()), OpenLoop((), (A,)), Reactive(np.eye(A), np.eye(A)[0])]
)
def test_policies_that_do_not_fit_are_refused(policy: Policy) -> None:
    with pytest.raises(ModelError):
        simulate(random_model(0), policy, ONE, episodes=10)
