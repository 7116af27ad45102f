"""Adapters to pomdp_py, imported here alone: models both ways, POUCT and POMCP; imports pomdp.model, online.

Nothing imports this module by default. What is worth knowing about pomdp_py 1.3.5, and is seen to here:

* A planner keeps its search tree on the agent, so every episode gets an agent of its own.
* Its rollouts know no terminal states. They go on past the end, which is right only because a terminal state
  pays 0 for ever: it costs time and no value.
* It knows no horizon, and a tree searches one step deeper than its rollouts. So states count the steps left
  where there is a horizon, and pay 0 when none is left.
* POMCP fails where none of its particles agrees with what was observed. Fresh ones are then drawn from the
  exact belief, and the result counts how often.
* `update_histogram_belief` answers an impossible observation with a histogram of zeros; `ModelAgent.update`
  raises.
* All draws come from Python's global `random`: seeded here for each episode, put back afterwards.
"""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pomdp_py

from pomdp.belief import BeliefError
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.online import OnlineResult, Rows, play_online, steps_until
from pomdp.rational import read_rational

PLANNERS = ("pouct", "pomcp")


class ModelState(pomdp_py.State):
    """State `index` of a model, with the number of steps `left`, None where there is no horizon."""

    def __init__(self, index: int, name: str, left: int | None = None) -> None:
        self.index = index
        self.left = left
        self.name = name if left is None else f"{name} ({left} left)"
        self._hash = hash((index, left))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelState) and self.index == other.index and self.left == other.left

    def __hash__(self) -> int:
        return self._hash

    def __deepcopy__(self, memo: dict[int, Any]) -> ModelState:
        # States never change, and POMCP copies every particle at every step.
        return self

    def __repr__(self) -> str:
        return self.name


class _Indexed:
    """An entry of a model's list of names."""

    def __init__(self, index: int, name: str) -> None:
        self.index = index
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.index == other.index

    def __hash__(self) -> int:
        return self.index

    def __repr__(self) -> str:
        return self.name


class ModelAction(_Indexed, pomdp_py.Action):
    """Action `index` of a model."""


class ModelObservation(_Indexed, pomdp_py.Observation):
    """Observation `index` of a model."""


class ModelTransitions(pomdp_py.TransitionModel):
    """T of a model; where states count the steps left, every step takes one until none is left."""

    def __init__(self, model: POMDP, horizon: int | None) -> None:
        self.rows = [Rows(matrix) for matrix in model.T]
        counts: Iterable[int | None] = (None,) if horizon is None else range(horizon + 1)
        self.layers = {n: [ModelState(i, name, n) for i, name in enumerate(model.states)] for n in counts}

    def following(self, left: int | None) -> list[ModelState]:
        """The states that a step from a state with `left` steps can lead to."""
        return self.layers[max(left - 1, 0) if left is not None else None]

    def probability(self, next_state: ModelState, state: ModelState, action: ModelAction) -> float:
        """Pr(next state | state, action)."""
        if self.following(state.left)[next_state.index] != next_state:
            return 0.0
        return self.rows[action.index].chance[state.index].get(next_state.index, 0.0)

    def sample(self, state: ModelState, action: ModelAction) -> ModelState:
        """A next state."""
        return self.following(state.left)[self.rows[action.index].draw(state.index, random.random())]

    def get_all_states(self) -> list[ModelState]:
        """Every state, in the model's order for each count of steps left."""
        return [state for layer in self.layers.values() for state in layer]


class ModelObservations(pomdp_py.ObservationModel):
    """Z of a model."""

    def __init__(self, model: POMDP) -> None:
        self.rows = [Rows(matrix) for matrix in model.Z]
        self.all = [ModelObservation(i, name) for i, name in enumerate(model.observations)]

    def probability(
        self, observation: ModelObservation, next_state: ModelState, action: ModelAction
    ) -> float:
        """Pr(observation | next state, action)."""
        return self.rows[action.index].chance[next_state.index].get(observation.index, 0.0)

    def sample(self, next_state: ModelState, action: ModelAction) -> ModelObservation:
        """An observation."""
        return self.all[self.rows[action.index].draw(next_state.index, random.random())]

    def get_all_observations(self) -> list[ModelObservation]:
        """Every observation, in the model's order."""
        return list(self.all)


class ModelRewards(pomdp_py.RewardModel):
    """R of a model: the expected reward of (state, action), 0 where no step is left."""

    def __init__(self, model: POMDP) -> None:
        self.table = model.R.tolist()

    def sample(self, state: ModelState, action: ModelAction, next_state: ModelState) -> float:
        """The reward."""
        return 0.0 if state.left == 0 else self.table[action.index][state.index]

    def argmax(self, state: ModelState, action: ModelAction, next_state: ModelState) -> float:
        """The reward."""
        return self.sample(state, action, next_state)

    def probability(
        self, reward: float, state: ModelState, action: ModelAction, next_state: ModelState
    ) -> float:
        """1 for the reward, else 0."""
        return float(reward == self.sample(state, action, next_state))


class UniformRollout(pomdp_py.RolloutPolicy):
    """Every action of a model, drawn with equal probability."""

    def __init__(self, model: POMDP) -> None:
        self.all = [ModelAction(i, name) for i, name in enumerate(model.actions)]

    def sample(self, state: ModelState) -> ModelAction:
        """An action."""
        return random.choice(self.all)

    def rollout(self, state: ModelState, history: tuple[Any, ...]) -> ModelAction:
        """An action."""
        return random.choice(self.all)

    def probability(self, action: ModelAction, state: ModelState) -> float:
        """Pr(action): the same for all."""
        return 1.0 / len(self.all)

    def get_all_actions(self, state: Any = None, history: Any = None) -> list[ModelAction]:
        """Every action, in the model's order."""
        return self.all


class ModelAgent(pomdp_py.Agent):
    """An agent that knows a model, with a histogram belief."""

    def update(self, real_action: ModelAction, real_observation: ModelObservation) -> None:
        """Extend the history and the belief, by pomdp_py's own histogram update.

        Raises BeliefError, leaving both as they were, where the observation has probability 0.
        """
        left = next(iter(self.belief)).left
        belief = pomdp_py.update_histogram_belief(
            self.belief,
            real_action,
            real_observation,
            self.observation_model,
            self.transition_model,
            next_state_space=self.transition_model.following(left),
        )
        if not any(belief[state] for state in belief):
            raise BeliefError(f"observation {real_observation} has probability 0 after action {real_action}")
        self.update_history(real_action, real_observation)
        self.set_belief(belief)


def to_pomdp_py(model: POMDP, *, horizon: int | None = None, seed: int = 0) -> pomdp_py.POMDP:
    """The model as pomdp_py's agent and environment, with equal numbers, names and order.

    With a `horizon`, states count the steps left. The environment starts in a state drawn with `seed`.
    """
    transitions, observations = ModelTransitions(model, horizon), ModelObservations(model)
    rewards, policy = ModelRewards(model), UniformRollout(model)
    first = transitions.layers[horizon]
    belief = _histogram(model.start, first)
    state = belief.random(random.Random(seed))
    agent = ModelAgent(belief, policy, transitions, observations, rewards)
    problem = pomdp_py.POMDP(agent, pomdp_py.Environment(state, transitions, rewards))
    problem.name = model.name  # its constructor takes a name and forgets it
    return problem


def _histogram(belief: np.ndarray, states: Sequence[ModelState]) -> pomdp_py.Histogram:
    """A belief `[S]` as pomdp_py's histogram over all of `states`."""
    return pomdp_py.Histogram(dict(zip(states, belief.tolist(), strict=True)))


def from_pomdp_py(
    source: Any,
    *,
    states: Iterable[Any] | None = None,
    actions: Iterable[Any] | None = None,
    observations: Iterable[Any] | None = None,
    discount: Any = None,
    name: str = "",
) -> POMDP:
    """The model that a pomdp_py agent (or the agent of a pomdp_py POMDP) believes in, by enumeration.

    Spaces left out are those that the agent lists; a set is taken in the order of names. pomdp_py keeps the
    discount with its planners: give it here, or None. Numbers are read by their shortest decimals. Raises
    ModelError for a space that is not listed, names that are not distinct, probabilities that do not sum to 1
    and rewards that are random.
    """
    agent = source.agent if isinstance(source, pomdp_py.POMDP) else source
    if not isinstance(agent, pomdp_py.Agent):
        raise ModelError(f"from_pomdp_py needs a pomdp_py Agent or POMDP; got {type(source).__name__}")
    S = _space(states, "states", lambda: agent.all_states)
    A = _space(actions, "actions", lambda: agent.all_actions)
    O = _space(observations, "observations", lambda: agent.all_observations)
    move, see = agent.transition_model.probability, agent.observation_model.probability
    T = [[{j: p for j, t in enumerate(S) if (p := move(t, s, a))} for s in S] for a in A]
    Z = [[{k: p for k, o in enumerate(O) if (p := see(o, t, a))} for t in S] for a in A]
    return POMDP.build(
        states=[_name(s) for s in S],
        actions=[_name(a) for a in A],
        observations=[_name(o) for o in O],
        T=T,
        Z=Z,
        R=[[_reward(agent, s, a, S, T[i][j]) for j, s in enumerate(S)] for i, a in enumerate(A)],
        start=[agent.init_belief[s] for s in S],
        discount=discount,
        name=name or (source.name if isinstance(source, pomdp_py.POMDP) else "") or "",
    )


def _space(given: Iterable[Any] | None, label: str, listed: Callable[[], Iterable[Any]]) -> list[Any]:
    """The members of a space in a fixed order; ModelError where nobody lists them."""
    if given is None:
        try:
            given = listed()
        except (NotImplementedError, AttributeError):
            given = None
        if given is None:
            raise ModelError(f"the agent does not list its {label}; give {label}=[...]")
    return sorted(given, key=_name) if isinstance(given, (set, frozenset)) else list(given)


def _name(thing: Any) -> str:
    """The `name` of a pomdp_py object where it is text, else what it prints as."""
    name = getattr(thing, "name", None)
    return name if isinstance(name, str) else str(thing)


def _reward(agent: Any, state: Any, action: Any, states: Sequence[Any], row: dict[int, float]) -> Fraction:
    """Expected reward of (state, action), exact in the numbers that pomdp_py states."""
    total, mass = Fraction(0), Fraction(0)
    for following, chance in row.items():
        drawn = [agent.reward_model.sample(state, action, states[following]) for _ in range(2)]
        place = f"[{_name(action)}, {_name(state)}, {_name(states[following])}]"
        if drawn[0] != drawn[1]:
            shown = f"{drawn[0]}, then {drawn[1]}"
            raise ModelError(f"reward {place} is random ({shown}); give a model of its expectation")
        try:
            probability, reward = read_rational(chance), read_rational(drawn[0])
        except ValueError as error:
            raise ModelError(f"transition or reward {place}: {error}") from None
        mass += probability
        total += probability * reward
    return total / mass if mass else total


class _Search:
    """A session of POUCT or POMCP. Source of both: Silver and Veness, NeurIPS 23 (2010)."""

    def __init__(
        self, template: ModelAgent, kind: str, particles: int, depth: int, settings: dict[str, Any]
    ) -> None:
        self.transitions = template.transition_model
        self.observations = template.observation_model
        self.kind = pomdp_py.POMCP if kind == "pomcp" else pomdp_py.POUCT
        self.particles = particles if kind == "pomcp" else None
        self.depth, self.settings = depth, settings
        self.left = next(iter(template.belief)).left
        self.recovered = 0
        models = (template.policy_model, self.transitions, self.observations, template.reward_model)
        self.agent = ModelAgent(self._belief(template.belief), *models)

    def choose(self) -> int:
        """The action that comes out best of the simulations."""
        depth = self.depth if self.left is None else min(self.depth, self.left)
        self.planner = self.kind(max_depth=depth, **self.settings)
        return self.planner.plan(self.agent).index

    def observe(self, action: int, observation: int, belief: np.ndarray) -> None:
        """Keep the part of the tree that still applies, and the belief."""
        taken, seen = self.agent.policy_model.all[action], self.observations.all[observation]
        self.left = None if self.left is None else self.left - 1
        histogram = _histogram(belief, self.transitions.layers[self.left])
        self.agent.update_history(taken, seen)
        if self.particles is None:
            self.planner.update(self.agent, taken, seen)
            self.agent.set_belief(histogram)
        elif not self._follow(taken, seen):
            self.agent.tree = None
            self.agent.set_belief(self._belief(histogram))
            self.recovered += 1

    def _belief(self, histogram: pomdp_py.Histogram) -> pomdp_py.GenerativeDistribution:
        """The belief in the form that the planner wants: particles for POMCP."""
        if self.particles is None:
            return histogram
        return pomdp_py.Particles.from_histogram(histogram, num_particles=self.particles)

    def _follow(self, action: ModelAction, observation: ModelObservation) -> bool:
        """Let POMCP move its particles on; False where none of them agrees with the observation."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # it prints a line a step
                self.planner.update(self.agent, action, observation)
        except ValueError as error:
            if "deprivation" in str(error):
                return False
            raise
        return True


def plan_online(
    model: POMDP,
    criterion: Criterion,
    *,
    planner: str = "pouct",
    episodes: int = 30,
    seed: int = 0,
    simulations: int = 300,
    steps: int | None = None,
    depth: int | None = None,
    exploration: float | None = None,
) -> OnlineResult:
    """Play `episodes` (at least 2) with POUCT or POMCP choosing every action by `simulations` simulations.

    `steps` as in `play_online`. `depth` bounds the search, by default where a quarter of the discount is
    left, and at most at the horizon. `exploration` is the constant of UCB1, by default the spread of the
    model's rewards. Episode i depends on (seed, i) alone. Raises ModelError for an unknown planner or a
    count out of range.
    """
    if planner not in PLANNERS:
        raise ModelError(f"no planner {planner!r}; known: {', '.join(PLANNERS)}")
    for label, count in (("simulations", simulations), ("depth", depth)):
        if count is not None and count < 1:
            raise ModelError(f"{label} {count} is below 1; give one such as 100")
    settings = {
        "num_sims": simulations,
        "discount_factor": criterion.gamma,
        "exploration_const": (float(np.ptp(model.R)) or 1.0) if exploration is None else exploration,
        "rollout_policy": UniformRollout(model),
    }
    deepest = steps_until(criterion, 0.25) if depth is None else depth
    template = to_pomdp_py(model, horizon=criterion.horizon).agent

    def start(episode: int) -> _Search:
        random.seed(f"{seed}:{episode}:planner")
        return _Search(template, planner, simulations, deepest, settings)

    state = random.getstate()
    try:
        return play_online(model, criterion, start, episodes=episodes, seed=seed, steps=steps)
    finally:
        random.setstate(state)
