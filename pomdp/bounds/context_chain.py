"""The chain of a model whose observations are contexts: what a stateless policy sees and moves; imports pomdp.model.

A node is a state with the context last shown. A stateless policy pi(a|c) picks by the node's context alone, so that
its value and its gradient are those of a Markov chain on nodes. Nodes from which nothing can be earned or lost any
more are left out, so that rows sum to at most 1 and a run that must end has a horizon even where the problem has none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, vstack
from scipy.sparse.linalg import splu

from pomdp.criterion import Criterion
from pomdp.discounted import solve
from pomdp.model import POMDP, ModelError

# Up to this many nodes an endless chain is a dense array.
DENSE_NODES = 200
# A sparse endless chain is swept until so small a share is left, where that takes no more sweeps than this; factors of
# a chain that mixes fill up.
NEGLIGIBLE = 1e-14
MAX_SWEEPS = 2_000
# Steps followed to see whether every run ends by itself.
LONGEST_RUN = 500
EPSILON = float(np.finfo(np.float64).eps)


class Stage:
    """The nodes `[n]` a run can be in before one action, sorted by context; `start[k]:start[k+1]` is context k's.

    `context` `[n]`, `contexts` `[K]` distinct; `moves` `[A n, n']` leads from row a n + i to the next stage's nodes,
    `into` is its transpose; `rewards` `[A, n]`. A context is known here by its place k among the K.
    """

    def __init__(self, nodes: np.ndarray, context: np.ndarray, moves: csr_array, rewards: np.ndarray) -> None:
        self.nodes, self.context, self.moves, self.rewards = nodes, context, moves, rewards
        self.contexts, first = np.unique(context, return_index=True)
        self.start = np.append(first, len(context))
        self.into = csr_array(moves.T)
        self.following: Stage = self
        self._branches: dict[tuple[int, int], list[tuple[int, np.ndarray | csr_array]]] = {}

    def part(self, k: int | np.integer) -> slice:
        """Where the nodes of context k are."""
        return slice(self.start[k], self.start[k + 1])

    def split(self, measure: np.ndarray) -> dict[int, np.ndarray]:
        """A measure `[n]` by context, contexts without mass left out."""
        masses = np.add.reduceat(measure, self.start[:-1]) if len(measure) else np.zeros(0)
        return {int(k): measure[self.part(k)] for k in np.flatnonzero(masses > 0.0)}

    def branch(self, k: int, action: int) -> list[tuple[int, np.ndarray | csr_array]]:
        """Where `action` leads from context k: each next context k' with the matrix `[n_k, n_k']` of the way there."""
        if (k, action) not in self._branches:
            rows = slice(
                action * len(self.nodes) + self.start[k], action * len(self.nodes) + self.start[k + 1]
            )
            block = self.moves[rows].tocsc()
            found: list[tuple[int, np.ndarray | csr_array]] = []
            reached = np.flatnonzero(np.diff(block.indptr))
            for place in np.unique(np.searchsorted(self.following.start, reached, side="right") - 1):
                way = block[:, self.following.part(place)]
                small = way.shape[0] * way.shape[1] <= 4 * way.nnz + 1024
                found.append((int(place), way.toarray() if small else csr_array(way)))
            self._branches[k, action] = found
        return self._branches[k, action]


@dataclass(frozen=True, eq=False)
class ContextChain:
    """`shown` `[C]` are the observations that occur as contexts; a policy here is `pi` `[C, A]`. `state` `[N]` is the
    model's state in each node.

    `stages`: one for each action up to the horizon (equal ones are one object), or a single one that follows itself.
    `start` `[n]` on the nodes of the first stage. `timed`: no context can occur before two different actions.
    `scale` bounds every |return|.
    """

    horizon: int | None
    gamma: float
    shown: np.ndarray
    state: np.ndarray
    num_actions: int
    stages: tuple[Stage, ...]
    start: np.ndarray
    timed: bool
    scale: float

    @classmethod
    def of(cls, model: POMDP, first: int, criterion: Criterion) -> ContextChain:
        """The chain of `model`, where observation `first` is seen before the first action."""
        if not 0 <= first < model.num_observations:
            raise ModelError(
                f"first context {first} is none of the {model.num_observations} observations; give one such as 0"
            )
        context, state, moves, rewards, start = _nodes(model, first)
        shown, context = np.unique(context, return_inverse=True)
        levels = _levels(moves, start, min(criterion.horizon or LONGEST_RUN + 1, LONGEST_RUN + 1))
        ends = len(levels[-1]) == 0
        horizon = criterion.horizon
        if ends:
            horizon = len(levels) - 1 if horizon is None else min(horizon, len(levels) - 1)
        largest = float(np.max(np.abs(rewards), initial=0.0))
        scale = largest * Criterion(criterion.discount, horizon or None).scale if horizon != 0 else 0.0
        if horizon is None:
            everything = np.arange(len(context))
            stages = [Stage(everything, context, csr_array(vstack(moves)), rewards)]
        else:
            stages = _staged(levels, context, moves, rewards, horizon)
        met = np.concatenate([np.zeros(0), *(stage.contexts for stage in stages)])
        timed = horizon is not None and len(np.unique(met)) == len(met)
        begun = start[stages[0].nodes] if stages else np.zeros(0)
        A = model.num_actions
        return cls(horizon, criterion.gamma, shown, state, A, tuple(stages), begun, timed, scale)

    @property
    def contexts(self) -> int:
        """C."""
        return len(self.shown)

    @property
    def num_nodes(self) -> int:
        """Nodes of all stages together."""
        return sum(len(stage.nodes) for stage in self.stages)

    def stage(self, t: int) -> Stage:
        """The stage before action t."""
        return self.stages[0 if self.horizon is None else t]

    def policy(self, choice: np.ndarray) -> np.ndarray:
        """`[C, A]` of one action a context, `choice` `[C]`."""
        return np.eye(self.num_actions)[choice]

    def evaluate(self, pi: np.ndarray) -> float:
        """J of `pi` `[C, A]`."""
        return self.evaluated(pi)[0]

    def evaluated(self, pi: np.ndarray) -> tuple[float, float]:
        """J of `pi` `[C, A]` and a bound on its error: of some roundings with a horizon, else of the linear solve."""
        if self.horizon is not None:
            return self._backward(pi)[0], self.rounding
        transition, rewards = self.mixed(pi[self.stages[0].context])
        solved = solve(lambda v: transition @ v, rewards, self.gamma, lambda: csr_array(transition))
        return float(self.start @ solved.values), solved.error + self.rounding

    @cached_property
    def rounding(self) -> float:
        """What a sum over whole runs can be off by: one rounding of doubles an operation, each of at most `scale`."""
        widths = [int(np.max(np.diff(stage.moves.indptr), initial=0)) for stage in self.stages]
        operations = float(sum(w + self.num_actions + 4 for w in widths))
        if self.horizon is None:
            operations /= 1.0 - self.gamma
        return EPSILON * self.scale * (operations + len(self.start))

    def gradient(self, pi: np.ndarray) -> tuple[float, np.ndarray]:
        """J and its gradient `[C, A]` in pi's entries: sums over the visits of c of doing a there and then as pi."""
        total = np.zeros((self.contexts, self.num_actions))
        if self.horizon is None:
            stage = self.stages[0]
            values, visits = self.solved(*self.mixed(pi[stage.context]))
            q = stage.rewards + self.gamma * (stage.moves @ values).reshape(stage.rewards.shape)
            for a in range(self.num_actions):
                total[:, a] = np.bincount(stage.context, visits * q[a], self.contexts)
            return float(self.start @ values), total
        value, qs = self._backward(pi)
        measure = self.start
        for t, stage in enumerate(self.stages):
            acted = pi[stage.context].T
            for a in range(self.num_actions):
                total[:, a] += np.bincount(stage.context, measure * qs[t][a], self.contexts)
            if t + 1 < len(self.stages):
                measure = self.gamma * (stage.into @ (measure * acted).ravel())
        return value, total

    def mixed(self, weights: np.ndarray) -> tuple[np.ndarray | csr_array, np.ndarray]:
        """The endless chain where node i does action a with weight `[n, A]`: matrix `[n, n]`, expected rewards."""
        stage = self.stages[0]
        n, A = weights.shape
        rewards = np.sum(weights.T * stage.rewards, axis=0)
        if n <= DENSE_NODES:
            return np.einsum("na,anm->nm", weights, self._dense), rewards
        columns = np.arange(n)[:, None] + n * np.arange(A)
        mix = csr_array((weights.ravel(), columns.ravel(), A * np.arange(n + 1)), shape=(n, A * n))
        return csr_array(mix @ stage.moves), rewards

    def solved(
        self, transition: np.ndarray | csr_array, rewards: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and discounted visits `[n]` without a horizon."""
        n = len(rewards)
        if isinstance(transition, np.ndarray):
            inverse = np.linalg.inv(np.eye(n) - self.gamma * transition)
            return inverse @ rewards, self.start @ inverse
        sweeps = 1 if self.gamma == 0.0 else math.ceil(math.log(NEGLIGIBLE) / math.log(self.gamma))
        if sweeps > MAX_SWEEPS:
            factors = splu(csc_array(eye_array(n) - self.gamma * transition))
            return factors.solve(rewards), factors.solve(self.start, trans="T")
        values, visits, backward = rewards, self.start, csr_array(transition.T)
        for _ in range(sweeps):
            values = rewards + self.gamma * (transition @ values)
            visits = self.start + self.gamma * (backward @ visits)
        return values, visits

    @cached_property
    def _dense(self) -> np.ndarray:
        """The moves of a small endless chain `[A, n, n]`."""
        return self.stages[0].moves.toarray().reshape(self.num_actions, len(self.start), -1)

    def _backward(self, pi: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """J and what each action is worth `[A, n]` in every node of every stage when `pi` follows."""
        qs: list[np.ndarray] = []
        values = np.zeros(0)
        for t in reversed(range(len(self.stages))):
            stage = self.stages[t]
            q = stage.rewards
            if t + 1 < len(self.stages):
                q = q + self.gamma * (stage.moves @ values).reshape(q.shape)
            values = np.sum(pi[stage.context].T * q, axis=0)
            qs.append(q)
        return float(self.start @ values) if qs else 0.0, qs[::-1]


def _nodes(
    model: POMDP, first: int
) -> tuple[np.ndarray, np.ndarray, list[csr_array], np.ndarray, np.ndarray]:
    """Nodes: their contexts and states `[N]`, moves `[N, N]` by action, rewards `[A, N]`, start `[N]`."""
    S = model.num_states
    begun = first * S + np.flatnonzero(model.start)
    shown = [Z.tocoo() for Z in model.Z]
    ends = [Z.col.astype(np.int64) * S + Z.row for Z in shown]
    keys = np.unique(np.concatenate([begun, *ends]))
    state = keys % S
    at = csr_array((np.ones(len(keys)), (np.arange(len(keys)), state)), shape=(len(keys), S))
    moves = []
    for T, Z, end in zip(model.T, shown, ends):
        led = csr_array((Z.data, (Z.row, np.searchsorted(keys, end))), shape=(S, len(keys)))
        moves.append(csr_array(at @ csr_array(T @ led)))
    start = np.zeros(len(keys))
    start[np.searchsorted(keys, begun)] = model.start[np.flatnonzero(model.start)]
    rewards = model.R[:, state]
    step = csr_array(sum(moves[1:], moves[0]))
    kept = np.flatnonzero(
        _closure(start > 0.0, step.T.tocsr()) & _closure(np.any(rewards != 0.0, axis=0), step)
    )
    moves = [csr_array(matrix[kept][:, kept]) for matrix in moves]
    return keys[kept] // S, state[kept], moves, rewards[:, kept], start[kept]


def _closure(mask: np.ndarray, into: csr_array) -> np.ndarray:
    """The mask with all that `into` leads to it from: row i of `into` has the columns that i is entered from."""
    frontier = mask
    while frontier.any():
        fresh = (into @ frontier.astype(float) > 0.0) & ~mask
        mask, frontier = mask | fresh, fresh
    return mask


def _levels(moves: list[csr_array], start: np.ndarray, limit: int) -> list[np.ndarray]:
    """Nodes that can be occupied before action 0, 1, ..., `limit`; fewer where none is left (a last empty level)."""
    step = csr_array(sum(moves[1:], moves[0])).T.tocsr()
    levels, mask = [np.flatnonzero(start)], start > 0.0
    while len(levels) <= limit and len(levels[-1]):
        mask = step @ mask.astype(float) > 0.0
        levels.append(np.flatnonzero(mask))
    return levels


def _staged(
    levels: list[np.ndarray], context: np.ndarray, moves: list[csr_array], rewards: np.ndarray, horizon: int
) -> list[Stage]:
    """The stages of a horizon; steps beyond the levels followed may be anywhere."""
    everything = np.arange(len(context))
    levels = [*levels[:horizon], *[everything] * (horizon - len(levels)), np.zeros(0, dtype=np.int64)]
    known: dict[tuple[bytes, bytes], Stage] = {}
    stages = []
    for here, there in zip(levels, levels[1:]):
        key = here.tobytes(), there.tobytes()
        if key not in known:
            led = csr_array(vstack([matrix[here][:, there] for matrix in moves]))
            known[key] = Stage(here, context[here], led, rewards[:, here])
        stages.append(known[key])
    for stage, after in zip(stages, stages[1:]):
        stage.following = after
    return stages
