"""The Bayes filter: unnormalised and normalised, single or batched, floats or rationals; imports pomdp.model.

Floats are arrays `[S]` or `[B, S]`; an exact belief is {state index: Fraction} without zeros. Actions and
observations are indices, for a batch one for all lanes or one each `[B]`.
Source: design of the formal core, section 1; M1 §1.4.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from pomdp.model import POMDP, ModelError
from pomdp.rational import RationalMatrix

# Filtering keeps a sum within a few ulps of 1 at each step; a sum this far off was never a belief.
SUM_TOLERANCE = 1e-6

ExactBelief = dict[int, Fraction]


class BeliefError(ModelError):
    """A belief, action or observation the filter cannot use; the message names the impossible (b, a, o)."""


@dataclass(frozen=True, eq=False)
class Filtered:
    """A history of n pairs: `beliefs` `[n + 1, S]` from the start on, and log Pr(o_1..o_n | a_0..a_(n-1))."""

    beliefs: np.ndarray
    log_likelihood: float


def filter_step(model: POMDP, measure: ArrayLike, action: ArrayLike, observation: ArrayLike) -> np.ndarray:
    """The unnormalised filter: `m'(s') = Z(o|s',a) sum_s m(s) T(s'|s,a)`, for m `[S]` or `[B, S]`.

    The mass of m' is the mass of m times the probability of the observation, 0 where it is impossible.
    Raises BeliefError for shapes or indices that do not fit.
    """
    m = _measure(model, measure)
    lanes = m.shape[:-1]
    actions = _indices(action, lanes, model.actions, "action")
    observations = _indices(observation, lanes, model.observations, "observation")
    if m.ndim == 1:
        chosen = np.zeros(model.num_observations)
        chosen[observations] = 1.0
        return (m @ model.T[int(actions)]) * (model.Z[int(actions)] @ chosen)
    result = np.empty_like(m)
    for a in np.unique(actions).tolist():
        lane = np.flatnonzero(actions == a)
        result[lane] = (m[lane] @ model.T[a]) * _likelihood(model, a, observations[lane])
    return result


def update(model: POMDP, belief: ArrayLike, action: ArrayLike, observation: ArrayLike) -> np.ndarray:
    """The belief after action and observation, for b `[S]` or `[B, S]`.

    Raises BeliefError naming b, a and o where the observation has probability 0.
    """
    b = _belief(model, belief)
    m = filter_step(model, b, action, observation)
    mass = m.sum(axis=-1, keepdims=True)
    if np.any(mass <= 0.0):
        lane = np.unravel_index(int(np.argmax(mass <= 0.0)), mass.shape)[:-1]
        a = int(np.broadcast_to(action, b.shape[:-1])[lane])
        o = int(np.broadcast_to(observation, b.shape[:-1])[lane])
        where = f" (lane {lane[0]})" if lane else ""
        shown = {int(s): float(b[lane][s]) for s in np.flatnonzero(b[lane])}
        raise BeliefError(_impossible(model, shown, a, o) + where)
    return m / mass


def predict(model: POMDP, belief: ArrayLike, action: ArrayLike) -> np.ndarray:
    """Pr(o | b, a) `[O]` for b `[S]`, or `[B, O]` for `[B, S]`; linear in b, so measures are welcome too."""
    m = _measure(model, belief)
    actions = _indices(action, m.shape[:-1], model.actions, "action")
    if m.ndim == 1:
        return (m @ model.T[int(actions)]) @ model.Z[int(actions)]
    result = np.empty((len(m), model.num_observations))
    for a in np.unique(actions):
        chosen = actions == a
        result[chosen] = (m[chosen] @ model.T[a]) @ model.Z[a]
    return result


def successors(model: POMDP, belief: ArrayLike, action: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What can follow action at belief `[S]`: probabilities `[O']`, observations `[O']`, beliefs `[O', S]`.

    Only observations of positive probability, in ascending order.
    """
    b = _belief(model, belief)
    if b.ndim != 1:
        raise BeliefError(f"successors takes one belief [{model.num_states}], found shape {b.shape}")
    a = int(_indices(action, (), model.actions, "action"))
    joint = (model.Z[a] * (b @ model.T[a])[:, None]).tocsc()
    probability = joint.sum(axis=0)
    observations = np.flatnonzero(probability > 0.0)
    beliefs = joint[:, observations].toarray().T / probability[observations, None]
    return probability[observations], observations, beliefs


def filter_history(model: POMDP, history: Iterable[tuple[int, int]]) -> Filtered:
    """Every belief along a history of (action, observation) pairs from the model's start; its log-likelihood.

    Raises BeliefError naming b, a and o, and the step, where the history is impossible.
    """
    beliefs, logs = [model.start], []
    for step, (action, observation) in enumerate(history):
        mass = filter_step(model, beliefs[-1], action, observation)
        total = float(mass.sum())
        if total <= 0.0:
            shown = {int(s): float(beliefs[-1][s]) for s in np.flatnonzero(beliefs[-1])}
            raise BeliefError(f"{_impossible(model, shown, action, observation)} (step {step})")
        beliefs.append(mass / total)
        logs.append(math.log(total))
    return Filtered(np.array(beliefs), math.fsum(logs))


def exact_step(model: POMDP, measure: Mapping[int, Fraction], action: int, observation: int) -> ExactBelief:
    """The unnormalised filter in rationals, zeros left out; empty where the observation is impossible."""
    _indices(observation, (), model.observations, "observation")
    reached = _exact_reached(model, measure, action)
    result = {}
    for s, mass in reached.items():
        likelihood = _entry(model.exact.Z[action], s, observation)
        if likelihood:
            result[s] = mass * likelihood
    return result


def exact_update(model: POMDP, belief: Mapping[int, Fraction], action: int, observation: int) -> ExactBelief:
    """The belief after action and observation in rationals; BeliefError where that is impossible."""
    measure = exact_step(model, belief, action, observation)
    if not measure:
        raise BeliefError(_impossible(model, belief, action, observation))
    return normalise(measure)


def exact_predict(model: POMDP, belief: Mapping[int, Fraction], action: int) -> dict[int, Fraction]:
    """Pr(o | b, a) as {observation index: Fraction}, impossible observations left out."""
    return {o: sum(m.values(), Fraction(0)) for o, m in exact_measures(model, belief, action).items()}


def exact_measures(model: POMDP, measure: Mapping[int, Fraction], action: int) -> dict[int, ExactBelief]:
    """The unnormalised successors {observation index: measure} of positive mass, observations ascending."""
    found: dict[int, ExactBelief] = {}
    for s, mass in _exact_reached(model, measure, action).items():
        for o, likelihood in model.exact.Z[action].row(s).items():
            found.setdefault(o, {})[s] = mass * likelihood
    return dict(sorted(found.items()))


def exact_history(model: POMDP, history: Iterable[tuple[int, int]]) -> tuple[list[ExactBelief], Fraction]:
    """Every belief along a history from the model's exact start, and Pr(o_1..o_n | a_0..a_(n-1)).

    Raises BeliefError naming b, a and o where the history is impossible.
    """
    beliefs, likelihood = [dict(model.exact.start)], Fraction(1)
    for action, observation in history:
        measure = exact_step(model, beliefs[-1], action, observation)
        if not measure:
            raise BeliefError(_impossible(model, beliefs[-1], action, observation))
        likelihood *= sum(measure.values(), Fraction(0))
        beliefs.append(normalise(measure))
    return beliefs, likelihood


def normalise(measure: Mapping[int, Fraction]) -> ExactBelief:
    """A measure divided by its positive mass, states ascending, without zeros: one dict for one belief."""
    total = sum(measure.values(), Fraction(0))
    if total <= 0:
        raise BeliefError("a measure of mass 0 has no belief; give one with a positive entry")
    return {s: m / total for s, m in sorted(measure.items()) if m}


def _exact_reached(model: POMDP, measure: Mapping[int, Fraction], action: int) -> ExactBelief:
    """`sum_s m(s) T(s'|s,a)` by state reached, states ascending."""
    _indices(action, (), model.actions, "action")
    reached: ExactBelief = {}
    for s, mass in measure.items():
        if not mass:
            continue
        if not 0 <= s < model.num_states:
            raise BeliefError(f"the belief names state {s}; the model has states 0 to {model.num_states - 1}")
        for following, p in model.exact.T[action].row(s).items():
            reached[following] = reached.get(following, Fraction(0)) + mass * p
    return dict(sorted(reached.items()))


def _entry(matrix: RationalMatrix, row: int, column: int) -> Fraction:
    """One entry of an exact matrix."""
    start, stop = int(matrix.indptr[row]), int(matrix.indptr[row + 1])
    place = bisect_left(matrix.indices, column, start, stop)
    if place == stop or matrix.indices[place] != column:
        return Fraction(0)
    return Fraction(matrix.numerators[place], matrix.denominators[row])


def _likelihood(model: POMDP, action: int, observations: np.ndarray) -> np.ndarray:
    """`Z(o|s',a)` `[len(observations), S]`."""
    distinct, which = np.unique(observations, return_inverse=True)
    return model.Z[action].tocsc()[:, distinct].toarray().T[which.ravel()]


def _measure(model: POMDP, values: ArrayLike) -> np.ndarray:
    """A measure `[S]` or `[B, S]` as float64."""
    m = np.asarray(values, dtype=np.float64)
    if m.ndim not in (1, 2) or m.shape[-1] != model.num_states:
        raise BeliefError(
            f"a belief needs shape [{model.num_states}] or [B, {model.num_states}], found {m.shape}"
        )
    return m


def _belief(model: POMDP, values: ArrayLike) -> np.ndarray:
    """A belief `[S]` or `[B, S]`: non-negative, each summing to 1."""
    b = _measure(model, values)
    if not np.all(b >= 0.0):  # false for NaN too
        raise BeliefError(f"the belief has the entry {b[~(b >= 0.0)][0]}; probabilities are from 0 to 1")
    sums = b.sum(axis=-1)
    if np.any(np.abs(sums - 1.0) > SUM_TOLERANCE):
        wrong = np.atleast_1d(sums)[np.argmax(np.abs(np.atleast_1d(sums) - 1.0))]
        raise BeliefError(f"the belief sums to {wrong:.12g}, not 1; divide it by its sum")
    return b


def _indices(values: ArrayLike, lanes: tuple[int, ...], names: tuple[str, ...], noun: str) -> np.ndarray:
    """Action or observation indices, one for all lanes or one each."""
    found = np.asarray(values)
    if found.dtype.kind not in "iu":
        raise BeliefError(f"{noun} {values!r} is not an index; the model has {noun}s 0 to {len(names) - 1}")
    if found.ndim and found.shape != lanes:
        raise BeliefError(f"{noun}s have shape {found.shape}, the beliefs {lanes or 'one lane'}")
    if np.any((found < 0) | (found >= len(names))):
        wrong = found[(found < 0) | (found >= len(names))].ravel()[0]
        raise BeliefError(f"no {noun} {wrong}; the model has {noun}s 0 to {len(names) - 1}")
    return np.broadcast_to(found, lanes)


def _impossible(model: POMDP, belief: Mapping[int, float | Fraction], action: int, observation: int) -> str:
    """The error for an observation of probability 0, with the likeliest states of the belief."""
    likeliest = sorted(belief.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = ", ".join(f"{model.states[s]}: {float(p):.4g}" for s, p in likeliest[:4])
    rest = f", and {len(likeliest) - 4} more" if len(likeliest) > 4 else ""
    return (
        f"observation {model.observations[int(observation)]!r} has probability 0 after action "
        f"{model.actions[int(action)]!r} at belief {{{shown}{rest}}}"
    )
