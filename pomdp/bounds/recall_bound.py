"""An upper bound on what is left of a run at a belief, for policies that remember everything; imports pomdp.model.

No stateless policy does better from there on. Exact by recursion over measures, or by iteration where finitely many
can follow; else the fast informed bound, which is valid anywhere.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.sparse import csr_array, vstack

from pomdp.criterion import Criterion
from pomdp.model import POMDP

# Measures agree when their shares agree to so many binary places.
PLACES = 40
# So many measures of one number of steps are expanded exactly before the informed bound takes over.
BUDGET = 40_000
# Without a horizon so many measures that can follow the first one are solved for at once, and fewer for later ones;
# beyond them the informed bound holds.
WALK, LATER = 300, 30
SWEEPS = 2_000
# With more steps to go than this the recursion is not begun.
DEEPEST = 100

_Moves = list[tuple[float, list[tuple[float, bytes]]]]


class RecallBound:
    """`value(left, measure)`: no less than what `left` more steps (None: a run without end) can earn.

    A measure is a vector `[S]` over the states of `model` of any mass, every action's observation being seen and
    remembered from there on. After the time `deadline` nothing new is expanded.
    """

    deadline = math.inf

    def __init__(self, model: POMDP, criterion: Criterion) -> None:
        self.model, self.criterion = model, criterion
        self.scale = float(np.max(np.abs(model.R))) * criterion.scale
        self._budget = BUDGET
        self._known: dict[tuple[int, bytes], float] = {}
        self._endless: dict[bytes, float] = {}
        self._informed: list[np.ndarray] = []
        # Two measures of one key differ by less than this share of their mass in what they earn.
        self._slack = self.scale * 2.0 ** (2 - PLACES) * model.num_states
        self._kernel, self._starts, self._acted, self._reached = _joint(model)

    def value(self, left: int | None, measure: np.ndarray) -> float:
        """The bound for a measure `[S]`."""
        if left is not None:
            return self._finite(left, measure) if left <= DEEPEST else self._bound(left, measure)
        mass = float(measure.sum())
        if mass == 0.0:
            return 0.0
        # Of the unit, which the walk begins with: the last bit of a share may round to another key.
        unit = measure / mass
        key = _key(unit)
        if key not in self._endless:
            room = min(LATER if self._endless else WALK, self._budget)
            if room <= 0 or time.perf_counter() > self.deadline:
                return self._bound(0, measure)
            self._endless.update(self._iterate(*self._walk(unit, room)))
        return mass * self._endless[key]

    def successors(self, measure: np.ndarray) -> list[list[np.ndarray]]:
        """For each action the unnormalised measures `[S]` after the observations of positive probability."""
        led = self._kernel @ measure
        masses = np.add.reduceat(led, self._starts[:-1])
        found: list[list[np.ndarray]] = [[] for _ in range(self.model.num_actions)]
        for i in np.flatnonzero(masses > 0.0):
            span = slice(self._starts[i], self._starts[i + 1])
            part = np.zeros(len(measure))
            part[self._reached[span]] = led[span]
            found[self._acted[i]].append(part)
        return found

    def _finite(self, left: int, measure: np.ndarray) -> float:
        """Recursion over the `left` steps that there are."""
        mass = float(measure.sum())
        if mass == 0.0 or left == 0:
            return 0.0
        key = (left, _key(measure))
        known = self._known.get(key)
        if known is None:
            if self._budget <= 0 or time.perf_counter() > self.deadline:
                return self._bound(left, measure)
            self._budget -= 1
            unit = measure / mass
            known = -math.inf
            parts = self.successors(unit) if left > 1 else [[]] * self.model.num_actions
            for a, following in enumerate(parts):
                later = sum(self._finite(left - 1, part) for part in following)
                known = max(known, float(self.model.R[a] @ unit) + self.criterion.gamma * later)
            known += self._slack
            self._known[key] = known
        return mass * known

    def _walk(self, measure: np.ndarray, room: int) -> tuple[dict[bytes, _Moves], dict[bytes, float]]:
        """Measures that can follow, `room` at most, the nearest first, by key: for each action its reward and what
        comes next, with probabilities. Beside them the bounds of those that were met but not followed.
        """
        found: dict[bytes, _Moves] = {}
        waiting = {_key(measure): measure}
        while waiting and len(found) < room:
            key = next(iter(waiting))
            unit = waiting.pop(key)
            found[key] = []
            for a, following in enumerate(self.successors(unit)):
                reached = []
                for part in following:
                    p, child = float(part.sum()), _key(part)
                    reached.append((p, child))
                    if child not in found and child not in self._endless:
                        waiting.setdefault(child, part / p)
                found[key].append((float(self.model.R[a] @ unit), reached))
        self._budget -= len(found)
        return found, {key: self._bound(0, unit) + self._slack for key, unit in waiting.items()}

    def _iterate(self, walked: dict[bytes, _Moves], edge: dict[bytes, float]) -> dict[bytes, float]:
        """Values of the measures walked by iteration from above, so that every sweep is valid."""
        A, gamma = self.model.num_actions, self.criterion.gamma
        number = {key: i for i, key in enumerate(walked)}
        rows, columns, data = [], [], []
        rewards = np.zeros((len(walked), A))
        for key, moves in walked.items():
            for a, (reward, reached) in enumerate(moves):
                rewards[number[key], a] = reward
                for p, child in reached:
                    if child in number:
                        rows.append(number[key] * A + a)
                        columns.append(number[child])
                        data.append(p)
                    else:
                        known = edge[child] if child in edge else self._endless[child]
                        rewards[number[key], a] += gamma * p * known
        move = csr_array((data, (rows, columns)), shape=(rewards.size, len(walked)))
        values = np.full(len(walked), float(self.model.R.max()) / (1.0 - gamma))
        for _ in range(SWEEPS):
            better = (rewards + gamma * (move @ values).reshape(rewards.shape)).max(axis=1)
            change = float(np.max(values - better))
            values = np.minimum(values, better)
            if change <= 1e-13 * max(1.0, self.scale):
                break
        return {key: float(values[i]) + self._slack / (1.0 - gamma) for key, i in number.items()}

    def _bound(self, depth: int, measure: np.ndarray) -> float:
        """The fast informed bound with `depth` steps left; without a horizon there is one."""
        if not self._informed:
            self._inform()
        table = self._informed[depth if self.criterion.horizon is not None else 0]
        return float(np.max(table @ measure))

    def _inform(self) -> None:
        """Tables `[A, S]` by steps to go; without a horizon one, approached from above so that any sweep is valid."""
        groups = [_Groups(T, Z) for T, Z in zip(self.model.T, self.model.Z, strict=True)]
        gamma, R = self.criterion.gamma, self.model.R

        def sweep(table: np.ndarray) -> np.ndarray:
            return np.array([R[a] + gamma * group.best(table) for a, group in enumerate(groups)])

        if self.criterion.horizon is not None:
            self._informed = [np.zeros(R.shape)]
            for _ in range(self.criterion.horizon):
                self._informed.append(sweep(self._informed[-1]))
            return
        table = np.full(R.shape, float(R.max()) / (1.0 - gamma))
        for _ in range(SWEEPS):
            before, table = table, np.minimum(table, sweep(table))
            if float(np.max(before - table)) <= 1e-10 * max(1.0, self.scale):
                break
        self._informed = [table]


class _Groups:
    """The entries of one action's joint kernel by (state, observation)."""

    def __init__(self, T: csr_array, Z: csr_array) -> None:
        moves = T.tocoo()
        counts = np.diff(Z.indptr)[moves.col]
        entry = np.repeat(np.arange(moves.nnz), counts)
        place = (
            np.arange(counts.sum())
            - np.repeat(np.cumsum(counts) - counts, counts)
            + Z.indptr[moves.col][entry]
        )
        rows, seen = moves.row[entry], Z.indices[place]
        order = np.lexsort((seen, rows))
        self._columns, self._data = moves.col[entry][order], (moves.data[entry] * Z.data[place])[order]
        rows, seen = rows[order], seen[order]
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (rows[1:] != rows[:-1]) | (seen[1:] != seen[:-1])
        self._starts = np.flatnonzero(fresh)
        self._rows, self._states = rows[self._starts], T.shape[0]

    def best(self, table: np.ndarray) -> np.ndarray:
        """`[S]` sum over observations of the best next action's expected `table` `[A, S]`."""
        parts = np.add.reduceat(self._data * table[:, self._columns], self._starts, axis=1)
        return np.bincount(self._rows, parts.max(axis=0), self._states)


def _joint(model: POMDP) -> tuple[csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """P(s', o | s, a) as a matrix with a row for each possible (a, o, s'), in that order, and a column for each s.

    Also where each (a, o) starts, with the end after the last; its action; and the s' of each row.
    """
    S, O = model.num_states, model.num_observations
    blocks, keys = [], []
    for a in range(model.num_actions):
        Z = model.Z[a].tocoo()
        order = np.lexsort((Z.row, Z.col))
        keys.append((a * O + Z.col[order].astype(np.int64)) * S + Z.row[order])
        weight = csr_array((Z.data[order], (np.arange(Z.nnz), Z.row[order])), shape=(Z.nnz, S))
        blocks.append(csr_array(weight @ csr_array(model.T[a].T)))
    kernel, key = csr_array(vstack(blocks)), np.concatenate(keys)
    kept = np.diff(kernel.indptr) > 0
    kernel, key = csr_array(kernel[kept]), key[kept]
    pairs, starts = np.unique(key // S, return_index=True)
    return kernel, np.append(starts, len(key)), pairs // O, key % S


def _key(measure: np.ndarray) -> bytes:
    """What a measure is up to its mass."""
    states = np.flatnonzero(measure)
    return states.tobytes() + np.rint(np.ldexp(measure[states] / measure.sum(), PLACES)).tobytes()
