"""Chains of few beliefs: the return of a greedy policy that reaches few; imports pomdp.policy, discounted.

Alpha vectors have no finite memory, but on many models they reach few beliefs: those are enumerated in
batches and merged where they agree to 12 decimals, so that rounding alone makes no new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from pomdp.criterion import Criterion
from pomdp.discounted import solve
from pomdp.model import POMDP, ModelError
from pomdp.policy import AlphaVectors

DECIMALS = 12
# Beliefs of one enumeration, and their entries: seconds and some 200 MiB.
MAX_BELIEFS = 50_000
MAX_ENTRIES = 25_000_000
# Beliefs first reached when this share of the largest return is left are not followed.
NEGLIGIBLE = 1e-13


@dataclass(frozen=True, eq=False)
class _Reached:
    """What follows a batch of beliefs: `parent` `[N]` of each, `probability` `[N]`, `beliefs` `[N, S]`."""

    parent: np.ndarray
    probability: np.ndarray
    beliefs: np.ndarray


def greedy_return(model: POMDP, policy: AlphaVectors, criterion: Criterion, rewards: np.ndarray) -> float:
    """Expected discounted sum of `rewards` `[A, S]` under the greedy policy from the model's start.

    Raises ModelError where more than MAX_BELIEFS beliefs are reached: then use Monte Carlo.
    """
    if criterion.horizon is None:
        return _discounted(model, policy, criterion.gamma, rewards)
    return _finite(model, policy, criterion.gamma, criterion.horizon, rewards)


def _finite(model: POMDP, policy: AlphaVectors, discount: float, horizon: int, rewards: np.ndarray) -> float:
    """Layer by layer, each with the probability of its beliefs."""
    beliefs: np.ndarray = model.start[None, :]
    mass: np.ndarray = np.ones(1)
    total, factor, count = 0.0, 1.0, 1
    for step in range(horizon):
        actions = policy.choose(beliefs)
        total += factor * float(mass @ np.sum(rewards[actions] * beliefs, axis=1))
        if step + 1 == horizon:
            break
        reached = _advance(model, beliefs, actions)
        _, first, which = np.unique(_rounded(reached.beliefs), axis=0, return_index=True, return_inverse=True)
        mass = np.bincount(which.ravel(), mass[reached.parent] * reached.probability)
        beliefs = reached.beliefs[first]
        factor *= discount
        count += len(beliefs)
        _require_few(count, step + 1)
    return total


def _discounted(model: POMDP, policy: AlphaVectors, discount: float, rewards: np.ndarray) -> float:
    """Close the set of reached beliefs, then solve the chain on them."""
    index = {_rounded(model.start).tobytes(): 0}
    frontier = model.start[None, :]
    immediate: list[np.ndarray] = []
    edges: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    left, depth, offset = 1.0, 0, 0
    while len(frontier) and left > NEGLIGIBLE * (1.0 - discount):
        actions = policy.choose(frontier)
        immediate.append(np.sum(rewards[actions] * frontier, axis=1))
        reached = _advance(model, frontier, actions)
        targets = np.empty(len(reached.beliefs), dtype=np.int64)
        fresh: list[int] = []
        for i, key in enumerate(_rounded(reached.beliefs)):
            targets[i] = index.setdefault(key.tobytes(), len(index))
            if targets[i] == offset + len(frontier) + len(fresh):
                fresh.append(i)
        edges.append((reached.parent + offset, targets, reached.probability))
        offset += len(frontier)
        frontier = reached.beliefs[fresh]
        left *= discount
        depth += 1
        _require_few(len(index), depth)
    # Beliefs beyond the last followed layer keep reward 0 and no successors.
    values = np.concatenate([*immediate, np.zeros(len(index) - offset)])
    rows, columns, weights = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    chain = csr_array((weights, (rows, columns)), shape=(len(index), len(index)))
    return float(solve(lambda V: chain @ V, values, discount, lambda: chain).values[0])


def _advance(model: POMDP, beliefs: np.ndarray, actions: np.ndarray) -> _Reached:
    """Every successor of positive probability of beliefs `[B, S]` under their actions `[B]`."""
    found: list[_Reached] = []
    for a in np.unique(actions):
        chosen = np.flatnonzero(actions == a)
        reached = beliefs[chosen] @ model.T[a]
        likely = (reached @ model.Z[a]) > 0.0
        if likely.sum() * model.num_states > MAX_ENTRIES:
            raise _too_many(int(likely.sum()), "one step")
        columns = model.Z[a].tocsc()
        for o in np.flatnonzero(likely.any(axis=0)):
            lanes = np.flatnonzero(likely[:, o])
            joint = reached[lanes] * columns[:, [o]].toarray().ravel()
            probability = joint.sum(axis=1)
            found.append(_Reached(chosen[lanes], probability, joint / probability[:, None]))
    return _Reached(
        np.concatenate([part.parent for part in found]),
        np.concatenate([part.probability for part in found]),
        np.concatenate([part.beliefs for part in found]),
    )


def _rounded(beliefs: np.ndarray) -> np.ndarray:
    """What beliefs are compared by."""
    return np.round(beliefs, DECIMALS)


def _require_few(count: int, steps: int) -> None:
    if count > MAX_BELIEFS:
        raise _too_many(count, f"{steps} steps")


def _too_many(count: int, within: str) -> ModelError:
    return ModelError(
        f"the alpha vectors reach {count} beliefs or more within {within}, too many for an exact J; "
        "estimate it by Monte Carlo (hpomdp simulate), or give a shorter horizon"
    )
