"""The best actions at exact beliefs, exact where a horizon is given; imports pomdp and belief_graph.

With a horizon by recursion over the beliefs that can follow, in rationals. Without one by iterating a lower and
an upper bound over as many of those beliefs as are allowed, in doubles: then actions within TIE are ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from harnesses.belief_graph import BeliefGraph, TooManyError
from pomdp.criterion import Criterion

MAX_PAIRS = 20_000
# Two action values this close, as a share of the largest return, are ties of the iteration.
TIE = 1e-9
MAX_SWEEPS = 5_000
# Beliefs whose moves are followed without a horizon.
MAX_FOLLOWED = 2_000


@dataclass(frozen=True)
class Best:
    """Actions that may be best at a belief; `certain` says that all of them are and no other is."""

    actions: frozenset[int]
    certain: bool


def differ(one: Best | None, other: Best | None) -> bool | None:
    """Whether no action is best at both; None where the bounds do not tell."""
    if one is None or other is None:
        return None
    if not one.actions & other.actions:
        return True
    return False if one.certain and other.certain else None


class BestActions:
    """Best actions of one criterion at beliefs of `graph`, remembering what was computed."""

    def __init__(self, graph: BeliefGraph, criterion: Criterion, max_pairs: int = MAX_PAIRS) -> None:
        self._graph, self._criterion, self._left = graph, criterion, max_pairs
        self._max = max_pairs
        self._values: dict[tuple[int, int], Fraction] = {}
        self._bounds: dict[int, _Bounds] = {}

    @property
    def method(self) -> str:
        """How the answers come about, as a report says it."""
        if self._criterion.horizon is not None:
            return "exact recursion over the remaining steps"
        return f"bounds iterated over reachable beliefs, ties within {TIE:g} of the largest return"

    def at(self, belief: int, length: int) -> Best | None:
        """Best actions at `belief` after a history of `length` pairs; None where too many beliefs follow."""
        try:
            if self._criterion.horizon is None:
                return self._endless(belief)
            return self._recursive(belief, self._criterion.horizon - length)
        except TooManyError:
            return None

    def _recursive(self, belief: int, steps: int) -> Best | None:
        layers = [{belief}]
        for left in range(steps - 1, 0, -1):
            fresh = {i for i in self._graph.successors(layers[-1]) if (i, left) not in self._values}
            self._left -= len(fresh)
            if self._left < 0:
                return None
            layers.append(fresh)
        for left, layer in zip(range(1, steps), reversed(layers[1:])):
            for i in layer:
                self._values[i, left] = max(self._q(i, left))
        q = self._q(belief, steps)
        return Best(frozenset(a for a, value in enumerate(q) if value == max(q)), certain=True)

    def _q(self, belief: int, steps: int) -> list[Fraction]:
        """`[A]` exact values of each action with `steps` to go."""
        found = []
        for a in range(self._graph.model.num_actions):
            value = self._graph.reward(belief, a)
            if steps > 1:
                after = (
                    m.probability * self._values[m.belief, steps - 1] for m in self._graph.moves(belief, a)
                )
                value += self._criterion.discount * sum(after, Fraction(0))
            found.append(value)
        return found

    def _endless(self, belief: int) -> Best | None:
        # Bounds around the start serve most beliefs; one that they leave open gets bounds of its own.
        found: Best | None = None
        for centre in (0, belief):
            if centre not in self._bounds:
                budget = min(self._max, MAX_FOLLOWED)
                self._bounds[centre] = _Bounds.around(self._graph, centre, self._criterion, budget)
            if belief in self._bounds[centre].place:
                found = self._bounds[centre].best(belief)
                if found.certain:
                    break
        return found


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Action values without a horizon: `low` and `high` `[A, N]` at the followed beliefs, `place` belief -> column."""

    place: dict[int, int]
    low: np.ndarray
    high: np.ndarray
    tie: float

    @classmethod
    def around(cls, graph: BeliefGraph, belief: int, criterion: Criterion, budget: int) -> _Bounds:
        """Follow the moves from `belief` on, level by level, while `budget` beliefs suffice for whole levels.

        The beliefs beyond keep the bounds that the largest and the smallest reward give.
        """
        inner: list[int] = []
        edge = [belief]
        while edge and (not inner or len(inner) + len(edge) <= budget):
            inner.extend(edge)
            edge = sorted(graph.successors(edge).difference(inner))
        place = {i: n for n, i in enumerate([*inner, *edge])}
        actions = range(graph.model.num_actions)
        rewards = np.array([[float(graph.reward(i, a)) for i in inner] for a in actions])
        chains = [_chain(graph, inner, place, a) for a in actions]
        reach = np.array([graph.model.R.min(), graph.model.R.max()]) * criterion.scale
        tie = TIE * max(1.0, float(np.abs(reach).max()))
        ends = [np.full(len(place), bound) for bound in reach]

        def values(end: np.ndarray) -> np.ndarray:
            return rewards + criterion.gamma * np.array([chain @ end for chain in chains])

        for _ in range(MAX_SWEEPS):
            change = 0.0
            for end in ends:
                new = values(end).max(axis=0)
                change = max(change, float(np.abs(new - end[: len(inner)]).max()))
                end[: len(inner)] = new
            if change <= tie * (1.0 - criterion.gamma) / 4:
                break
        return cls({i: place[i] for i in inner}, values(ends[0]), values(ends[1]), tie)

    def best(self, belief: int) -> Best:
        """The actions that the bounds leave."""
        low, high = self.low[:, self.place[belief]], self.high[:, self.place[belief]]
        left = np.flatnonzero(high >= low.max() - self.tie)
        certain = bool(np.all(low[left] >= high.max() - 2 * self.tie))
        return Best(frozenset(left.tolist()), certain)


def _chain(graph: BeliefGraph, inner: list[int], place: dict[int, int], action: int) -> csr_array:
    """`[len(inner), len(place)]` the probabilities of the next belief under one action."""
    entries = [
        (n, place[m.belief], float(m.probability))
        for n, i in enumerate(inner)
        for m in graph.moves(i, action)
    ]
    rows, columns, weights = zip(*entries, strict=True)
    return csr_array((weights, (rows, columns)), shape=(len(inner), len(place)))
