"""An upper bound on what is left of a run at a belief, for policies that remember everything; imports pomdp.model.

No stateless policy does better from there on. Exact by recursion over measures, or by iteration where finitely many
can follow; else the fast informed bound, which is valid anywhere.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from pomdp.criterion import Criterion
from pomdp.model import POMDP

# Measures agree when their shares agree to so many binary places.
PLACES = 45
# So many measures of one number of steps are expanded exactly before the informed bound takes over.
BUDGET = 60_000
# Without a horizon: so many measures may follow one for it to be solved exactly, and so many failures are borne;
# then the recursion looks a few steps ahead.
CLOSURE, FAILURES, ENDLESS_DEPTH = 400, 3, 3
SWEEPS = 2_000

_Moves = list[tuple[float, list[tuple[float, bytes]]]]


class RecallBound:
    """`value(left, measure)`: no less than what `left` more steps (None: a run without end) can earn.

    A measure is a vector `[S]` over the states of `model` of any mass, every action's observation being seen and
    remembered from there on.
    """

    def __init__(self, model: POMDP, criterion: Criterion) -> None:
        self.model, self.criterion = model, criterion
        self.scale = float(np.max(np.abs(model.R))) * criterion.scale
        self._budget, self._failures = BUDGET, FAILURES
        self._known: dict[tuple[int, bytes], float] = {}
        self._endless: dict[bytes, float] = {}
        self._informed: list[np.ndarray] = []
        # Two measures of one key differ by less than this share of their mass in what they earn.
        self._slack = self.scale * 2.0 ** (2 - PLACES) * model.num_states
        self._columns = [Z.tocsc() for Z in model.Z]
        self._transposed = [T.T.tocsr() for T in model.T]

    def value(self, left: int | None, measure: np.ndarray) -> float:
        """The bound for a measure `[S]`."""
        if left is not None:
            return self._finite(left, measure)
        if not measure.any():
            return 0.0
        if self._failures > 0:
            known = self._closed(measure)
            if known is not None:
                return known
        return self._finite(ENDLESS_DEPTH, measure)

    def after(self, left: int | None, measure: np.ndarray, action: int) -> float:
        """The bound where `action` is done now."""
        rest = None if left is None else left - 1
        later = 0.0 if rest == 0 else sum(self.value(rest, part) for part in self.successors(measure, action))
        return float(self.model.R[action] @ measure) + self.criterion.gamma * later

    def successors(self, measure: np.ndarray, action: int) -> list[np.ndarray]:
        """The unnormalised measure `[S]` after each observation of positive probability."""
        reached = self._transposed[action] @ measure
        Z = self._columns[action]
        masses = reached @ self.model.Z[action]
        parts = []
        for o in np.flatnonzero(masses > 0.0):
            span = slice(Z.indptr[o], Z.indptr[o + 1])
            part = np.zeros(len(measure))
            part[Z.indices[span]] = reached[Z.indices[span]] * Z.data[span]
            parts.append(part)
        return parts

    def _finite(self, depth: int, measure: np.ndarray) -> float:
        """Recursion over `depth` steps; with a horizon these are all that are left."""
        mass = float(measure.sum())
        endless = self.criterion.horizon is None
        if mass == 0.0 or (depth == 0 and not endless):
            return 0.0
        if depth == 0:
            return self._bound(0, measure)
        key = (depth, _key(measure))
        known = self._known.get(key)
        if known is None:
            if self._budget <= 0:
                return self._bound(depth, measure)
            self._budget -= 1
            unit = measure / mass
            known = -math.inf
            for a in range(self.model.num_actions):
                later = sum(self._finite(depth - 1, part) for part in self.successors(unit, a))
                known = max(known, float(self.model.R[a] @ unit) + self.criterion.gamma * later)
            known += self._slack
            self._known[key] = known
        return mass * known

    def _closed(self, measure: np.ndarray) -> float | None:
        """The bound without an end where few measures can follow; None where they are many."""
        first = _key(measure)
        if first not in self._endless:
            walked = self._walk(measure / measure.sum())
            if walked is None:
                self._failures -= 1
                return None
            self._endless.update(self._iterate(walked))
        return float(measure.sum()) * self._endless[first]

    def _walk(self, measure: np.ndarray) -> dict[bytes, _Moves] | None:
        """Each measure that can follow, by key: for each action its reward and what follows, with probabilities."""
        found: dict[bytes, _Moves] = {}
        waiting = {_key(measure): measure}
        while waiting:
            key, unit = waiting.popitem()
            if len(found) >= CLOSURE:
                return None
            found[key] = []
            for a in range(self.model.num_actions):
                reached = []
                for part in self.successors(unit, a):
                    p, child = float(part.sum()), _key(part)
                    reached.append((p, child))
                    if child not in found and child not in self._endless:
                        waiting.setdefault(child, part / p)
                found[key].append((float(self.model.R[a] @ unit), reached))
        return found

    def _iterate(self, walked: dict[bytes, _Moves]) -> dict[bytes, float]:
        """Values of a closed set of measures by iteration from above, so that every sweep is valid."""
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
                        rewards[number[key], a] += gamma * p * self._endless[child]
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


def _key(measure: np.ndarray) -> bytes:
    """What a measure is up to its mass."""
    states = np.flatnonzero(measure)
    return states.tobytes() + np.rint(np.ldexp(measure[states] / measure.sum(), PLACES)).tobytes()
