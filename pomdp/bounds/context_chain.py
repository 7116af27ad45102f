"""The chain of a model whose observations are contexts: what a stateless policy sees and moves; imports pomdp.model.

A node is a state with the context last shown. A stateless policy pi(a|c) picks by the node's context alone, so that
its value and its gradient are those of a Markov chain on nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu

from pomdp.criterion import Criterion
from pomdp.discounted import solve
from pomdp.model import POMDP, ModelError

# Up to this many nodes a factorisation is faster than iterating, and serves value and occupancy alike.
FACTOR_NODES = 20_000


@dataclass(frozen=True, eq=False)
class Measure:
    """A sparse measure: `nodes` ascending and their `weights`, all positive."""

    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, nodes: np.ndarray, weights: np.ndarray) -> Measure:
        """Of entries in any order, repeats added up."""
        distinct, place = np.unique(nodes, return_inverse=True)
        return cls(distinct, np.bincount(place, weights, len(distinct)))

    @property
    def mass(self) -> float:
        """The sum of all weights."""
        return float(self.weights.sum())

    def key(self) -> bytes:
        """Equal for measures that differ by rounding alone."""
        return self.nodes.tobytes() + np.rint(np.ldexp(self.weights, 45)).tobytes()


@dataclass(frozen=True, eq=False)
class ContextChain:
    """Nodes `[N]` reachable from the start: `state`, `context`; `P[a]` `[N, N]`, `R` `[A, N]`, `start` `[N]`.

    `contexts` is C, the number of observations of the model. `alive` `[N]`: some action now or later may earn or
    cost something; elsewhere nothing that is decided matters.
    """

    criterion: Criterion
    state: np.ndarray
    context: np.ndarray
    P: tuple[csr_array, ...]
    R: np.ndarray
    start: np.ndarray
    contexts: int

    @classmethod
    def of(cls, model: POMDP, first: int, criterion: Criterion) -> ContextChain:
        """The chain of `model`, where observation `first` is seen before the first action."""
        if not 0 <= first < model.num_observations:
            raise ModelError(f"first context {first} is none of the {model.num_observations} observations")
        S, O, A = model.num_states, model.num_observations, model.num_actions
        began = np.flatnonzero(model.start) * O + first
        shown = [_pairs(Z) for Z in model.Z]
        keys = np.unique(np.concatenate([began, *(rows * O + columns for rows, columns in shown)]))
        state, context = keys // O, keys % O
        at = csr_array((np.ones(len(keys)), (np.arange(len(keys)), state)), shape=(len(keys), S))
        P = []
        for a, (rows, columns) in enumerate(shown):
            place = np.searchsorted(keys, rows * O + columns)
            led = csr_array((model.Z[a].tocoo().data, (rows, place)), shape=(S, len(keys)))
            P.append(csr_array(at @ model.T[a] @ led))
        start = np.zeros(len(keys))
        start[np.searchsorted(keys, began)] = model.start[np.flatnonzero(model.start)]
        seen = _reachable(P, start)
        P = [matrix[seen][:, seen] for matrix in P]
        R = model.R[:A][:, state[seen]]
        return cls(criterion, state[seen], context[seen], tuple(P), R, start[seen], O)

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.state)

    @property
    def num_actions(self) -> int:
        """A."""
        return len(self.P)

    @cached_property
    def alive(self) -> np.ndarray:
        """Mask `[N]` of the nodes from which a reward other than 0 can be reached."""
        matrix = csr_array(sum(self.P[1:], self.P[0]))
        alive = np.any(self.R != 0.0, axis=0)
        while True:
            more = alive | (matrix @ alive.astype(float) > 0.0)
            if np.array_equal(more, alive):
                return alive
            alive = more

    @cached_property
    def scale(self) -> float:
        """A bound on every |return|."""
        return float(np.max(np.abs(self.R))) * self.criterion.scale

    def move(self, measure: Measure, action: int) -> Measure:
        """The measure after an action."""
        P = self.P[action]
        begin, count = P.indptr[measure.nodes], np.diff(P.indptr)[measure.nodes]
        entry = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count) + begin[entry]
        return Measure.of(P.indices[place], P.data[place] * measure.weights[entry])

    def split(self, measure: Measure) -> list[Measure]:
        """A measure by context, parts where nothing matters any more left out."""
        alive = self.alive[measure.nodes]
        nodes, weights = measure.nodes[alive], measure.weights[alive]
        shown = self.context[nodes]
        return [Measure(nodes[shown == c], weights[shown == c]) for c in np.unique(shown)]

    def policy(self, choice: np.ndarray) -> np.ndarray:
        """`[C, A]` of one action a context, `choice` `[C]`."""
        return np.eye(self.num_actions)[choice]

    def evaluate(self, pi: np.ndarray) -> float:
        """J of `pi` `[C, A]`, within 1e-10 of `scale`."""
        transition, rewards = self._mixed(pi)
        horizon, gamma = self.criterion.horizon, self.criterion.gamma
        if horizon is None:
            return float(self.start @ self._values(transition, rewards))
        values = rewards
        for _ in range(horizon - 1):
            values = rewards + gamma * (transition @ values)
        return float(self.start @ values)

    def gradient(self, pi: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """J, its gradient `[C, A]` in pi's entries and the discounted visits `[C]` of each context.

        dJ/dpi(a|c) sums over the visits of c the value of doing a there once and following pi afterwards.
        """
        transition, rewards = self._mixed(pi)
        gamma, horizon = self.criterion.gamma, self.criterion.horizon
        total, visits = np.zeros((self.contexts, self.num_actions)), np.zeros(self.contexts)
        if horizon is None:
            values, measure = self._solved(transition, rewards)
            self._add(total, visits, measure, values)
            return float(self.start @ values), total, visits
        after = [np.zeros(self.num_nodes)]
        for _ in range(horizon):
            after.append(rewards + gamma * (transition @ after[-1]))
        measure = self.start
        for t in range(horizon):
            self._add(total, visits, measure, after[horizon - 1 - t])
            measure = gamma * (measure @ transition)
        return float(self.start @ after[-1]), total, visits

    def contains_time(self, limit: int) -> bool:
        """Whether no context in which something is left to decide can occur before two different actions.

        False where that is not settled within `limit` steps.
        """
        any_action = csr_array(sum(self.P[1:], self.P[0]))
        stage = np.full(self.contexts, -1)
        level = self.start > 0.0
        for t in range(min(limit, self.criterion.horizon or limit)):
            shown = np.unique(self.context[level & self.alive])
            if not len(shown):
                return True
            if np.any(stage[shown] >= 0):
                return False
            stage[shown] = t
            level = (level.astype(float) @ any_action) > 0.0
        return self.criterion.horizon is not None and self.criterion.horizon <= limit

    def _add(self, total: np.ndarray, visits: np.ndarray, measure: np.ndarray, after: np.ndarray) -> None:
        """Add one step's visits, `after` `[N]` being what the next nodes are worth."""
        for a in range(self.num_actions):
            q = self.R[a] + self.criterion.gamma * (self.P[a] @ after)
            total[:, a] += np.bincount(self.context, measure * q, self.contexts)
        visits += np.bincount(self.context, measure, self.contexts)

    @cached_property
    def _entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, csr_array]:
        """Row, action, probability of every entry of all P, its place in their common pattern, and that pattern."""
        parts = [matrix.tocoo() for matrix in self.P]
        rows = np.concatenate([part.row for part in parts]).astype(np.int64)
        columns = np.concatenate([part.col for part in parts])
        actions = np.repeat(np.arange(self.num_actions), [part.nnz for part in parts])
        cells, place = np.unique(rows * self.num_nodes + columns, return_inverse=True)
        shape = (self.num_nodes, self.num_nodes)
        pattern = csr_array((np.ones(len(cells)), np.divmod(cells, self.num_nodes)), shape=shape)
        return rows, actions, np.concatenate([part.data for part in parts]), place, pattern

    def _mixed(self, pi: np.ndarray) -> tuple[csr_array, np.ndarray]:
        """The chain under `pi`: matrix `[N, N]`, expected rewards `[N]`."""
        rows, actions, data, place, pattern = self._entries
        weights = pi[self.context]
        mixed = np.bincount(place, data * weights[rows, actions], pattern.nnz)
        transition = csr_array((mixed, pattern.indices, pattern.indptr), shape=pattern.shape)
        return transition, np.einsum("na,an->n", weights, self.R)

    def _values(self, transition: csr_array, rewards: np.ndarray) -> np.ndarray:
        """Values `[N]` without a horizon, the residual of which is held against 1e-10 of `scale`."""
        gamma = self.criterion.gamma
        if self.num_nodes <= FACTOR_NODES:
            values = self._solved(transition, rewards)[0]
            residual = rewards + gamma * (transition @ values) - values
            if float(np.max(np.abs(residual))) <= 1e-10 * self.scale * (1.0 - gamma):
                return values
        return solve(lambda v: transition @ v, rewards, gamma, lambda: transition).values

    def _solved(self, transition: csr_array, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values `[N]` and discounted visits `[N]` without a horizon."""
        gamma = self.criterion.gamma
        if self.num_nodes <= FACTOR_NODES:
            factors = splu(csc_array(eye_array(self.num_nodes) - gamma * transition))
            return factors.solve(rewards), factors.solve(self.start, trans="T")
        values = solve(lambda v: transition @ v, rewards, gamma, lambda: transition).values
        measure, term = self.start.copy(), self.start
        while term.sum() > 1e-12:
            term = gamma * (term @ transition)
            measure = measure + term
        return values, measure


def _pairs(Z: csr_array) -> tuple[np.ndarray, np.ndarray]:
    entries = coo_array(Z)
    return entries.row.astype(np.int64), entries.col.astype(np.int64)


def _reachable(P: list[csr_array], start: np.ndarray) -> np.ndarray:
    """Indices of the nodes that some sequence of actions reaches."""
    any_action = csr_array(sum(P[1:], P[0]))
    seen = start > 0.0
    frontier = seen
    while frontier.any():
        reached = (frontier.astype(float) @ any_action) > 0.0
        frontier = reached & ~seen
        seen = seen | reached
    return np.flatnonzero(seen)
