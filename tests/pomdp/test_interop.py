"""pomdp_py: models survive the trip there and back, both filters agree, and its planners play our models."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("pomdp_py", reason="pomdp-py has no build for this Python")

import pomdp_py

from pomdp.belief import BeliefError, update
from pomdp.criterion import Criterion
from pomdp.interop import PLANNERS, from_pomdp_py, plan_online, to_pomdp_py
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.policy import Controller
from pomdp.value import evaluate

NAMES = ["tiger", "tmaze:3:0.9", "flip:2", "repo_repair:2:3", "ticket_routing", "drift"]


def rough(seed: int, states: int = 4, actions: int = 3, observations: int = 3) -> POMDP:
    """A random sparse model with awkward decimals, an impossible observation and an uneven start."""
    rng = np.random.default_rng(seed)

    def rows(height: int, width: int) -> np.ndarray:
        table = rng.random((height, width)) * (rng.random((height, width)) < 0.6)
        table[np.arange(height), rng.integers(width, size=height)] += 0.1
        return table / table.sum(axis=1, keepdims=True)

    return POMDP.build(
        states=states,
        actions=actions,
        observations=observations + 1,
        T=[rows(states, states) for _ in range(actions)],
        Z=[np.pad(rows(states, observations), ((0, 0), (0, 1))) for _ in range(actions)],
        R=rng.normal(size=(actions, states)).round(3),
        start=rows(1, states)[0],
        discount=0.9,
        name=f"rough-{seed}",
    )


def models() -> list[POMDP]:
    return [*(task(name).model for name in NAMES), *(rough(seed) for seed in range(3))]


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_a_model_comes_back_from_pomdp_py_with_equal_numbers_and_names(model: POMDP) -> None:
    back = from_pomdp_py(to_pomdp_py(model), discount=model.discount)
    assert (back.states, back.actions, back.observations) == (model.states, model.actions, model.observations)
    assert back.name == model.name
    assert back.discount == model.discount
    for ours, theirs in zip((*model.T, *model.Z), (*back.T, *back.Z), strict=True):
        # Floats are stated as shortest decimals, whose rows miss 1 by a few units in the last place at most.
        np.testing.assert_allclose(theirs.toarray(), ours.toarray(), rtol=1e-14, atol=0)
    np.testing.assert_allclose(back.R, model.R, rtol=1e-14, atol=0)
    np.testing.assert_allclose(back.start, model.start, rtol=1e-14, atol=0)


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
@pytest.mark.parametrize("horizon", [None, 6])
def test_our_filter_equals_their_histogram_update_over_random_histories(
    model: POMDP, horizon: int | None
) -> None:
    rng = np.random.default_rng(7)
    for _ in range(5):
        agent = to_pomdp_py(model, horizon=horizon).agent
        belief = model.start
        for step in range(6):
            a, o = int(rng.integers(model.num_actions)), int(rng.integers(model.num_observations))
            action, seen = agent.all_actions[a], agent.all_observations[o]
            before = dict(agent.belief.get_histogram())
            try:
                belief = update(model, belief, a, o)
            except BeliefError:
                with pytest.raises(BeliefError, match=f"{model.observations[o]} has probability 0"):
                    agent.update(action, seen)
                assert agent.belief.get_histogram() == before
                assert len(agent.history) == step
                # Go on with an observation that can be seen.
                chances = (belief @ model.T[a]) @ model.Z[a]
                seen = agent.all_observations[o := int(np.argmax(chances))]
                belief = update(model, belief, a, o)
            agent.update(action, seen)
            theirs = agent.belief.get_histogram()
            left = None if horizon is None else horizon - step - 1
            assert {state.left for state in theirs} == {left}
            found = np.array([theirs[state] for state in agent.transition_model.layers[left]])
            np.testing.assert_allclose(found, belief, rtol=1e-10, atol=1e-13)
            assert agent.history[-1] == (action, seen)


def test_an_observation_that_can_never_be_seen_is_refused() -> None:
    model = rough(0)
    agent = to_pomdp_py(model).agent
    for action in agent.all_actions:
        with pytest.raises(BeliefError, match="3 has probability 0 after action"):
            agent.update(action, agent.all_observations[3])


def test_samples_follow_the_model() -> None:
    model, draws = rough(1), 4000
    problem = to_pomdp_py(model)
    agent = problem.agent
    held = random.getstate()
    random.seed(3)
    for a, action in enumerate(agent.all_actions):
        for s, state in enumerate(agent.all_states):
            reached = [agent.transition_model.sample(state, action) for _ in range(draws)]
            shares = np.bincount([t.index for t in reached], minlength=model.num_states) / draws
            np.testing.assert_allclose(shares, model.T[a].toarray()[s], atol=4 * 0.5 / np.sqrt(draws))
            seen = [agent.observation_model.sample(state, action) for _ in range(draws)]
            shares = np.bincount([o.index for o in seen], minlength=model.num_observations) / draws
            np.testing.assert_allclose(shares, model.Z[a].toarray()[s], atol=4 * 0.5 / np.sqrt(draws))
            assert agent.reward_model.sample(state, action, reached[0]) == model.R[a, s]
    random.setstate(held)


def test_the_environment_starts_by_seed_in_a_state_the_model_may_start_in() -> None:
    model = task("tmaze:2").model
    starts = {to_pomdp_py(model, seed=seed).env.state.name for seed in range(20)}
    assert starts == {"goal-left-at-0", "goal-right-at-0"}
    assert to_pomdp_py(model, seed=5).env.state == to_pomdp_py(model, seed=5).env.state


def test_states_that_count_steps_pay_nothing_when_none_is_left() -> None:
    model = task("tiger").model
    agent = to_pomdp_py(model, horizon=2).agent
    listen = agent.all_actions[0]
    last, over = agent.transition_model.layers[1][0], agent.transition_model.layers[0][0]
    assert agent.reward_model.sample(last, listen, over) == -1
    assert agent.reward_model.sample(over, listen, over) == 0
    assert agent.transition_model.sample(over, listen).left == 0
    assert agent.transition_model.probability(over, last, listen) == 1
    assert agent.transition_model.probability(last, last, listen) == 0


def test_the_model_with_counted_steps_is_a_model_of_its_own() -> None:
    model = task("tiger").model
    layered = from_pomdp_py(to_pomdp_py(model, horizon=2), discount=1)
    assert layered.states[:2] == ("tiger-left (0 left)", "tiger-right (0 left)")
    assert layered.start.tolist() == [0, 0, 0, 0, 0.5, 0.5]
    listening = Controller(act=np.eye(3)[:1], successor=np.zeros((1, 3, 2), dtype=int), start=0)
    assert evaluate(layered, listening, Criterion(Fraction(1), 9)) == pytest.approx(-2)


def test_their_own_tiger_is_read_as_ours() -> None:
    from pomdp_py.problems.tiger.tiger_problem import TigerProblem

    problem, ours = TigerProblem.create(obs_noise=0.15), task("tiger").model
    # It lists its spaces from sets of text, in an order that changes from process to process.
    states, observations = set(problem.agent.all_states), set(problem.agent.all_observations)
    theirs = from_pomdp_py(problem, states=states, observations=observations, discount=0.95)
    assert sorted(theirs.actions) == sorted(ours.actions)
    assert theirs.states == theirs.observations == ("tiger-left", "tiger-right")
    for name in ours.actions:
        a, b = ours.action_index(name), theirs.action_index(name)
        # Their listening moves the tiger with probability 1e-9.
        np.testing.assert_allclose(theirs.T[b].toarray(), ours.T[a].toarray(), atol=2e-9)
        np.testing.assert_allclose(theirs.Z[b].toarray(), ours.Z[a].toarray(), atol=1e-15)
        assert theirs.R[b].tolist() == ours.R[a].tolist()


class Unlisted(pomdp_py.TransitionModel):
    """Their model type with no list of states."""

    def probability(self, next_state: object, state: object, action: object) -> float:
        return float(next_state == state)


class Coin(pomdp_py.RewardModel):
    """A reward that changes from draw to draw."""

    def __init__(self) -> None:
        self.draws = 0

    def sample(self, state: object, action: object, next_state: object) -> float:
        self.draws += 1
        return float(self.draws % 2)


def test_what_cannot_be_read_is_refused_in_one_line() -> None:
    agent = to_pomdp_py(task("tiger").model).agent
    parts = {"policy_model": agent.policy_model, "observation_model": agent.observation_model}
    unlisted = pomdp_py.Agent(
        agent.belief, transition_model=Unlisted(), reward_model=agent.reward_model, **parts
    )
    with pytest.raises(ModelError, match=r"does not list its states; give states=\[...\]"):
        from_pomdp_py(unlisted)
    assert from_pomdp_py(unlisted, states=agent.all_states).num_states == 2
    with pytest.raises(ModelError, match="start sums to 0.5"):
        from_pomdp_py(unlisted, states=agent.all_states[:1])
    tossed = pomdp_py.Agent(
        agent.belief, transition_model=agent.transition_model, reward_model=Coin(), **parts
    )
    with pytest.raises(
        ModelError, match=r"reward \[listen, tiger-left, tiger-left\] is random \(1.0, then 0.0\)"
    ):
        from_pomdp_py(tossed)
    with pytest.raises(ModelError, match="needs a pomdp_py Agent or POMDP; got str"):
        from_pomdp_py("tiger")


def random_policy(model: POMDP) -> Controller:
    size = (1, model.num_actions)
    return Controller(
        act=np.full(size, 1 / model.num_actions),
        successor=np.zeros((*size, model.num_observations), dtype=int),
        start=0,
    )


@pytest.mark.parametrize("planner", PLANNERS)
def test_their_planners_find_the_better_turn_of_a_short_maze(planner: str) -> None:
    maze = task("tmaze:2")
    criterion = maze.criterion()
    played = plan_online(maze.model, criterion, planner=planner, episodes=10, simulations=150, seed=1)
    best = maze.optimal(criterion)
    assert best is not None
    # A planner cannot beat V* in the mean; here every episode of the best policy returns V* itself.
    assert max(played.returns) == pytest.approx(float(best))
    slack = 4 * played.standard_error + 1e-9
    assert evaluate(maze.model, random_policy(maze.model), criterion) < played.mean - slack
    assert played.mean <= float(best) + slack
    assert len(played.returns) == 10
    assert played.truncation == 0


@pytest.mark.parametrize("planner", PLANNERS)
def test_their_planners_beat_a_random_policy_on_tiger(planner: str) -> None:
    model, criterion = task("tiger").model, Criterion(Fraction(1), 3)
    played = plan_online(model, criterion, planner=planner, episodes=25, simulations=80, seed=2)
    assert evaluate(model, random_policy(model), criterion) == pytest.approx(-91)
    assert played.mean - 4 * played.standard_error > -91
    # A run that opens after two equal growls returns 8, one that never opens -3.
    assert set(np.round(played.returns, 9)) & {8.0, -3.0}


def savings() -> POMDP:
    """After one idle step: take 1 and end, or invest twice and reap 10 on the third step."""
    idle, poor, grown, rich, end = ({s: 1} for s in range(5))
    return POMDP.build(
        states=["idle", "poor", "grown", "rich", "end"],
        actions=["take", "invest", "reap"],
        observations=1,
        T=[[poor, end, end, end, end], [poor, grown, rich, rich, end], [poor, end, end, end, end]],
        Z=[[{0: 1}] * 5] * 3,
        R=[[0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 10, 0]],
        start="idle",
    )


@pytest.mark.parametrize("planner", PLANNERS)
def test_the_last_step_is_searched_and_no_step_after_it(planner: str) -> None:
    for horizon, best in ((2, 1.0), (3, 1.0), (4, 10.0), (5, 10.0)):
        criterion = Criterion(Fraction(1), horizon)
        played = plan_online(savings(), criterion, planner=planner, episodes=2, simulations=200)
        assert played.returns == (best,) * 2, horizon
    shallow = plan_online(savings(), criterion, planner=planner, episodes=2, simulations=200, depth=1)
    assert shallow.returns == (1.0, 1.0)


def test_pomcp_that_lost_its_particles_goes_on_from_the_exact_belief() -> None:
    # Two simulations a step leave most observations without a particle.
    criterion = Criterion(Fraction(9, 10), 6)
    played = plan_online(task("tiger").model, criterion, planner="pomcp", episodes=5, simulations=2, seed=1)
    assert played.recovered > 0
    assert (
        plan_online(task("drift").model, criterion, planner="pouct", episodes=2, simulations=2).recovered == 0
    )


def test_an_episode_is_the_same_alone_and_in_company_and_the_global_random_is_left_alone() -> None:
    # Three simulations a step: what is done is mostly chance, so an unseeded draw would show.
    model, criterion = task("tiger").model, Criterion(Fraction(9, 10), 6)
    held = random.getstate()
    random.seed(1)
    before = random.getstate()
    some = plan_online(model, criterion, episodes=2, simulations=3, seed=5)
    assert random.getstate() == before
    random.seed(2)
    more = plan_online(model, criterion, episodes=4, simulations=3, seed=5)
    assert more.returns[:2] == some.returns
    other = plan_online(model, criterion, episodes=4, simulations=3, seed=6)
    assert other.returns != more.returns
    random.setstate(held)


def test_an_endless_episode_is_cut_with_the_bound_on_what_is_left() -> None:
    model = task("tiger:1").model
    played = plan_online(model, Criterion(Fraction(1, 2)), episodes=2, simulations=10, steps=4)
    assert played.truncation == pytest.approx(100 * 0.5**4 / 0.5)
    ended = plan_online(task("ticket_routing").model, Criterion(Fraction(1), 50), episodes=2, simulations=20)
    assert all(-2.5 <= total <= 1 for total in ended.returns)
    assert ended.truncation == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"planner": "despot"}, "no planner 'despot'; known: pouct, pomcp"),
        ({"episodes": 1}, "episodes 1 is below 2"),
        ({"simulations": 0}, "simulations 0 is below 1"),
        ({"depth": 0}, "depth 0 is below 1"),
        ({"steps": 0}, "steps 0 is below 1"),
    ],
)
def test_settings_out_of_range_are_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        plan_online(task("tiger").model, Criterion(Fraction(1), 2), **asked)  # type: ignore[arg-type]
