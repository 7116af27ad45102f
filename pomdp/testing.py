"""Hypothesis strategies for property tests on POMDPs; the one file of this package that imports hypothesis.

Paste this into a test and replace the property by one of your own:

    >>> from hypothesis import given, strategies as st
    >>> from pomdp.belief import predict
    >>> from pomdp.testing import beliefs, pomdps
    >>> @given(st.data())
    ... def test_observation_probabilities_sum_to_one(data):
    ...     model = data.draw(pomdps(max_states=3, max_actions=2))
    ...     belief = data.draw(beliefs(model))
    ...     assert abs(predict(model, belief, 0).sum() - 1) < 1e-9
    >>> test_observation_probabilities_sum_to_one()

Every distribution is drawn as small integer weights and divided by their sum, so its entries are rationals
with small denominators, the exact copy of a model is short, and examples shrink to certain transitions, the
first action, reward 0 and one state. Zero weights are common: impossible observations and unreachable states
need no luck. Strategies draw from nothing but their arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from pomdp.belief import ExactBelief, exact_measures, normalise
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import AlphaVectors, Controller, OpenLoop, Reactive

DISCOUNTS = (Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(19, 20))
DENSITIES = ("any", "sparse", "dense")
# Weights of a distribution run from 0 to this, so denominators are at most this times the number of entries.
MAX_WEIGHT = 4
MAX_REWARD = 10


@st.composite
def distributions(
    draw: st.DrawFn, size: int, *, density: str = "any", support: Sequence[int] | None = None
) -> dict[int, Fraction]:
    """A distribution on 0..size-1 as {index: positive Fraction}, within `support` (None: everywhere).

    density: "any"; "sparse", at most two entries; "dense", every allowed entry positive.
    """
    allowed = list(range(size)) if support is None else list(support)
    if density == "sparse":
        allowed = sorted({draw(st.sampled_from(allowed)), draw(st.sampled_from(allowed))})
    lowest = 1 if density == "dense" else 0
    weights = [draw(st.integers(lowest, MAX_WEIGHT)) for _ in allowed]
    if not any(weights):
        weights[0] = 1
    total = sum(weights)
    return {i: Fraction(w, total) for i, w in sorted(zip(allowed, weights, strict=True)) if w}


@st.composite
def pomdps(
    draw: st.DrawFn,
    *,
    min_states: int = 1,
    max_states: int = 4,
    min_actions: int = 1,
    max_actions: int = 3,
    min_observations: int = 1,
    max_observations: int = 3,
    density: str = "any",
    discount: Fraction | st.SearchStrategy[Fraction | None] | None = st.sampled_from(DISCOUNTS),  # noqa: B008
    terminal: bool = False,
    unreachable: bool = False,
    impossible: bool = False,
) -> POMDP:
    """A small valid POMDP with rational probabilities and integer rewards from -10 to 10.

    density: of the rows of T and Z, as for `distributions`; "dense" excludes the other features only where
    it must. discount: one value, None for a model without one, or a strategy of them. On request:
    `terminal`, the last state is absorbing with reward 0 under every action; `unreachable`, the first state
    is never entered nor started in (needs two states, three with `terminal`); `impossible`, the last
    observation has probability 0 everywhere (needs two). All three also occur by themselves unless the
    density is "dense".
    """
    _check_request(density, max_states, max_observations, terminal, unreachable, impossible)
    S = draw(st.integers(max(min_states, 1 + unreachable + (terminal and unreachable)), max_states))
    A = draw(st.integers(min_actions, max_actions))
    O = draw(st.integers(max(min_observations, 1 + impossible), max_observations))
    entered = range(int(unreachable), S)
    seen = range(O - int(impossible))
    T, Z, R = [], [], []
    for _ in range(A):
        T.append([draw(distributions(S, density=density, support=entered)) for _ in range(S)])
        Z.append([draw(distributions(O, density=density, support=seen)) for _ in range(S)])
        R.append([draw(st.integers(-MAX_REWARD, MAX_REWARD)) for _ in range(S)])
        if terminal:
            T[-1][-1], R[-1][-1] = {S - 1: Fraction(1)}, 0
    start = draw(distributions(S, density=density, support=entered))
    drawn = draw(discount) if isinstance(discount, st.SearchStrategy) else discount
    return POMDP.build(states=S, actions=A, observations=O, T=T, Z=Z, R=R, start=start, discount=drawn)


@st.composite
def exact_beliefs(draw: st.DrawFn, model: POMDP, *, density: str = "any") -> ExactBelief:
    """A belief over the model's states as {state index: positive Fraction}, reachable or not."""
    return draw(distributions(model.num_states, density=density))


def beliefs(model: POMDP, *, density: str = "any") -> st.SearchStrategy[np.ndarray]:
    """A belief `[S]` in float64, reachable or not; corners and faces are common."""
    return exact_beliefs(model, density=density).map(lambda row: _dense(row, model.num_states))


@st.composite
def histories(draw: st.DrawFn, model: POMDP, *, max_length: int = 4) -> tuple[tuple[int, int], ...]:
    """A history ((a_0, o_1), (a_1, o_2), ...) of positive probability from the model's start."""
    belief, history = dict(model.exact.start), []
    for _ in range(draw(st.integers(0, max_length))):
        action = draw(st.integers(0, model.num_actions - 1))
        following = exact_measures(model, belief, action)
        observation = draw(st.sampled_from(sorted(following)))
        belief = normalise(following[observation])
        history.append((action, observation))
    return tuple(history)


@st.composite
def controllers(
    draw: st.DrawFn, model: POMDP, *, max_memory: int = 3, deterministic: bool | None = None
) -> Controller:
    """A finite-state controller of 1 to `max_memory` nodes; `deterministic` None draws either kind."""
    certain = draw(st.booleans()) if deterministic is None else deterministic
    K = draw(st.integers(1, max_memory))
    act = [draw(_action_rows(model, certain)) for _ in range(K)]
    node = st.integers(0, K - 1)
    successor = np.array([draw(node) for _ in range(K * model.num_actions * model.num_observations)])
    shape = (K, model.num_actions, model.num_observations)
    return Controller(np.array(act), successor.reshape(shape), draw(node))


@st.composite
def open_loops(
    draw: st.DrawFn, model: POMDP, *, max_prefix: int = 3, max_cycle: int = 3, length: int | None = None
) -> OpenLoop:
    """An action sequence with a cycle; with `length`, a plan of exactly that many actions that then ends."""
    action = st.integers(0, model.num_actions - 1)
    if length is not None:
        return OpenLoop(tuple(draw(action) for _ in range(length)), ())
    prefix = draw(st.lists(action, max_size=max_prefix))
    return OpenLoop(tuple(prefix), tuple(draw(st.lists(action, min_size=1, max_size=max_cycle))))


@st.composite
def reactives(draw: st.DrawFn, model: POMDP, *, deterministic: bool | None = None) -> Reactive:
    """A reactive policy `pi(a|o)` with its first step; `deterministic` None draws either kind."""
    certain = draw(st.booleans()) if deterministic is None else deterministic
    rows = [draw(_action_rows(model, certain)) for _ in range(model.num_observations + 1)]
    return Reactive(np.array(rows[1:]), rows[0])


@st.composite
def alpha_vectors(draw: st.DrawFn, model: POMDP, *, max_vectors: int = 3) -> AlphaVectors:
    """One to `max_vectors` alpha vectors of integers from -10 to 10, each with an action."""
    K = draw(st.integers(1, max_vectors))
    entry = st.integers(-MAX_REWARD, MAX_REWARD)
    vectors = [[draw(entry) for _ in range(model.num_states)] for _ in range(K)]
    actions = [draw(st.integers(0, model.num_actions - 1)) for _ in range(K)]
    return AlphaVectors(np.array(vectors), np.array(actions))


@st.composite
def criteria(
    draw: st.DrawFn, *, max_horizon: int = 4, discounted: bool = True, finite: bool = True
) -> Criterion:
    """A discount below 1 for ever (`discounted`) or a horizon with a discount up to 1 (`finite`)."""
    if not discounted and not finite:
        raise ValueError("criteria needs discounted=True, finite=True or both")
    if finite and (not discounted or draw(st.booleans())):
        return Criterion(draw(st.sampled_from((*DISCOUNTS, Fraction(1)))), draw(st.integers(1, max_horizon)))
    return Criterion(draw(st.sampled_from(DISCOUNTS)), None)


def _action_rows(model: POMDP, certain: bool) -> st.SearchStrategy[np.ndarray]:
    """Action probabilities `[A]`, of one action where `certain`."""
    if certain:
        return st.integers(0, model.num_actions - 1).map(lambda a: np.eye(model.num_actions)[a])
    return distributions(model.num_actions).map(lambda row: _dense(row, model.num_actions))


def _dense(row: dict[int, Fraction], size: int) -> np.ndarray:
    """A float vector of a sparse exact distribution."""
    dense = np.zeros(size)
    dense[list(row)] = [float(p) for p in row.values()]
    return dense


def _check_request(
    density: str, max_states: int, max_observations: int, terminal: bool, unreachable: bool, impossible: bool
) -> None:
    """ValueError where a feature does not fit the sizes asked for."""
    if density not in DENSITIES:
        raise ValueError(f"density {density!r} is none of {', '.join(DENSITIES)}")
    if unreachable and max_states < 2 + terminal:
        raise ValueError(f"an unreachable state needs max_states >= {2 + terminal}, not {max_states}")
    if impossible and max_observations < 2:
        raise ValueError(f"an impossible observation needs max_observations >= 2, not {max_observations}")
