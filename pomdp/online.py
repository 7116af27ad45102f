"""Playing a model with a planner that thinks at every step; imports pomdp.belief, criterion and model."""

from __future__ import annotations

import math
import random
import time
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from pomdp.belief import update
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError

# Of the discount, this share is left when an endless episode is cut, unless the caller says how many steps.
CUT = 1e-3


class Session(Protocol):
    """A planner in one episode. `recovered` counts the steps at which it had to be given a new belief."""

    recovered: int

    def choose(self) -> int:
        """Index of the action to take now."""
        ...

    def observe(self, action: int, observation: int, belief: np.ndarray) -> None:
        """Take note of what happened; `belief` `[S]` is the exact one after it."""
        ...


@dataclass(frozen=True)
class OnlineResult:
    """Returns of an online planner: an estimate with its standard error, not an interval.

    `returns` holds one number an episode, so that planners can be compared over the same episodes;
    `truncation` bounds what the steps after the last one played could add or take; `recovered` sums the
    sessions'; `seconds` is wall time.
    """

    mean: float
    standard_error: float
    returns: tuple[float, ...]
    truncation: float
    recovered: int
    seconds: float


def play_online(
    model: POMDP,
    criterion: Criterion,
    start: Callable[[int], Session],
    *,
    episodes: int,
    seed: int = 0,
    steps: int | None = None,
) -> OnlineResult:
    """Play `episodes` (at least 2), each with the fresh session that `start(episode)` gives.

    `steps` cuts an endless episode, by default where 1/1000 of the discount is left; an episode also ends at
    the horizon and in a terminal state. What the world of an episode does depends on (seed, episode) and the
    actions alone. Raises ModelError for a count out of range.
    """
    if episodes < 2:
        raise ModelError(
            f"episodes {episodes} is below 2, which gives no standard error; give one such as 100"
        )
    if steps is not None and steps < 1:
        raise ModelError(f"steps {steps} is below 1; give one such as 100")
    length = steps_until(criterion, CUT) if steps is None else min(steps, criterion.horizon or steps)
    began, world = time.perf_counter(), _World(model)
    returns, recovered = np.empty(episodes), 0
    for episode in range(episodes):
        session = start(episode)
        returns[episode] = _play(world, session, criterion, length, random.Random(f"{seed}:{episode}:world"))
        recovered += session.recovered
    return OnlineResult(
        mean=float(returns.mean()),
        standard_error=float(returns.std(ddof=1) / math.sqrt(episodes)),
        returns=tuple(returns.tolist()),
        truncation=criterion.tail(length) * float(np.abs(model.R).max()),
        recovered=recovered,
        seconds=time.perf_counter() - began,
    )


def steps_until(criterion: Criterion, share: float) -> int:
    """The first step t >= 1 with discount**t <= `share`, or the horizon where that comes first."""
    limits = [] if criterion.horizon is None else [criterion.horizon]
    if criterion.discount < 1:
        steps = 1 if criterion.gamma <= share else math.ceil(math.log(share) / math.log(criterion.gamma))
        limits.append(steps)
    return min(limits)


class Rows:
    """The rows of a stochastic matrix as Python numbers, ready for looking up and for drawing one column."""

    def __init__(self, matrix: csr_array) -> None:
        self.columns: list[list[int]] = []
        self.sums: list[list[float]] = []
        self.chance: list[dict[int, float]] = []
        for i in range(matrix.shape[0]):
            span = slice(matrix.indptr[i], matrix.indptr[i + 1])
            columns, values = matrix.indices[span].tolist(), matrix.data[span].tolist()
            self.columns.append(columns)
            self.sums.append(list(accumulate(values)))
            self.chance.append(dict(zip(columns, values, strict=True)))

    def draw(self, row: int, at: float) -> int:
        """The column that `at`, uniform in [0, 1), falls on."""
        sums, columns = self.sums[row], self.columns[row]
        return columns[min(bisect(sums, at), len(columns) - 1)]


class _World:
    """The hidden side of a model, one state at a time."""

    def __init__(self, model: POMDP) -> None:
        self.model = model
        self.start = Rows(csr_array(model.start[None, :]))
        self.T = [Rows(matrix) for matrix in model.T]
        self.Z = [Rows(matrix) for matrix in model.Z]


def _play(world: _World, session: Session, criterion: Criterion, length: int, draws: random.Random) -> float:
    """The return of one episode of at most `length` steps."""
    model, belief = world.model, world.model.start
    state = world.start.draw(0, draws.random())
    weight, total = 1.0, 0.0
    for _ in range(length):
        if model.terminal[state]:
            break
        action = session.choose()
        total += weight * float(model.R[action, state])
        weight *= criterion.gamma
        state = world.T[action].draw(state, draws.random())
        observation = world.Z[action].draw(state, draws.random())
        belief = update(model, belief, action, observation)
        session.observe(action, observation, belief)
    return total
