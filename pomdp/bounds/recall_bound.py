"""An upper bound on what is left of a run from a measure at one context; imports context_chain.

From there on the policy may remember everything: no stateless one does better. Exact by recursion over measures where
few are met, else the fast informed bound, which is valid anywhere.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from pomdp.bounds.context_chain import ContextChain

# Without a horizon the recursion looks so many steps ahead before it takes the informed bound.
ENDLESS_DEPTH = 3
# Measures of one steps-to-go agree when their shares agree to so many binary places.
PLACES = 40
SWEEPS = 2000
# Without a horizon: so many measures may follow one for it to be solved exactly, and so many failures are borne.
CLOSURE, CLOSURES = 400, 3


class RecallBound:
    """`value(j, measure)`: at least what `j` more steps can earn; `j` None for a run without end.

    A measure is a vector `[N]` within one context. `budget` is how many measures are expanded exactly; after them
    only what is known already and the informed bound are used.
    """

    def __init__(self, chain: ContextChain, budget: int = 100_000) -> None:
        self.chain = chain
        self._budget = budget
        self._known: dict[tuple[int, bytes], float] = {}
        self._endless_values: dict[bytes, float] = {}
        self._closures = CLOSURES
        self._groups = [_Groups(matrix, chain.context) for matrix in chain.P]
        horizon = chain.criterion.horizon
        self._informed: list[np.ndarray] = [np.zeros((chain.num_actions, chain.num_nodes))]
        if horizon is None:
            self._informed = [self._endless()]
        else:
            for _ in range(horizon):
                self._informed.append(self._sweep(self._informed[-1]))

    def value(self, left: int | None, measure: np.ndarray) -> float:
        """The bound for a measure `[N]` within one context, of any mass."""
        if left is not None:
            return self._value(left, measure)
        if self._closures > 0 and measure.any():
            known = self._closed(measure)
            if known is not None:
                return known
        return self._value(ENDLESS_DEPTH, measure)

    def after(self, left: int | None, measure: np.ndarray, action: int, following: np.ndarray) -> float:
        """The bound where `action` is done now; `following` `[N]` is the measure after it."""
        chain = self.chain
        rest = None if left is None else left - 1
        later = sum(self.value(rest, part) for part in split(chain, following)) if rest != 0 else 0.0
        return float(chain.R[action] @ measure) + chain.criterion.gamma * later

    def _closed(self, measure: np.ndarray) -> float | None:
        """The bound without an end, exact, where few measures can follow; None where they are many."""
        mass = float(measure.sum())
        first = _key(measure)
        if first not in self._endless_values:
            walked = self._walk(measure / mass)
            if walked is None:
                self._closures -= 1
                return None
            self._endless_values.update(self._iterate(walked))
        return mass * self._endless_values[first]

    def _walk(self, measure: np.ndarray) -> dict[bytes, list[tuple[float, list[tuple[float, bytes]]]]] | None:
        """Each measure that can follow, by key: for each action its reward and what follows, with probabilities."""
        chain, found = self.chain, {}
        waiting = {_key(measure): measure}
        while waiting:
            key, unit = waiting.popitem()
            if len(found) > CLOSURE:
                return None
            following = (chain.forward @ unit).reshape(chain.num_actions, -1)
            moves = []
            for a in range(chain.num_actions):
                reached = []
                for part in split(chain, following[a]):
                    p = float(part.sum())
                    child = _key(part)
                    reached.append((p, child))
                    if child != key and child not in found and child not in self._endless_values:
                        waiting.setdefault(child, part / p)
                moves.append((float(chain.R[a] @ unit), reached))
            found[key] = moves
        return found

    def _iterate(
        self, walked: dict[bytes, list[tuple[float, list[tuple[float, bytes]]]]]
    ) -> dict[bytes, float]:
        """Values of a closed set of measures by iteration from above, so that every sweep is valid."""
        chain, gamma = self.chain, self.chain.criterion.gamma
        number = {key: i for i, key in enumerate(walked)}
        rows, columns, data = [], [], []
        rewards = np.zeros((len(walked), chain.num_actions))
        for key, moves in walked.items():
            for a, (reward, reached) in enumerate(moves):
                rewards[number[key], a] = reward
                for p, child in reached:
                    if child in number:
                        rows.append(number[key] * chain.num_actions + a)
                        columns.append(number[child])
                        data.append(p)
                    else:
                        rewards[number[key], a] += gamma * p * self._endless_values[child]
        move = csr_array((data, (rows, columns)), shape=(rewards.size, len(walked)))
        values = np.full(len(walked), float(chain.R.max()) / (1.0 - gamma))
        for _ in range(SWEEPS):
            better = (rewards + gamma * (move @ values).reshape(rewards.shape)).max(axis=1)
            change = float(np.max(np.abs(values - better)))
            values = np.minimum(values, better)
            if change <= 1e-13 * max(1.0, chain.scale):
                break
        # Measures that share a key differ by less than 2^-40 of their mass a step.
        slack = chain.scale * 2.0 ** (2 - PLACES) * chain.num_nodes / (1.0 - gamma)
        return {key: float(values[i]) + slack for key, i in number.items()}

    def _value(self, depth: int, measure: np.ndarray) -> float:
        """Recursion over `depth` steps: with a horizon these are all that are left."""
        chain = self.chain
        mass = float(measure.sum())
        if depth == 0 or mass == 0.0:
            return 0.0 if chain.criterion.horizon is not None or mass == 0.0 else self._bound(-1, measure)
        if not chain.alive[measure > 0.0].any():
            return 0.0
        nodes = np.flatnonzero(measure)
        shares = measure[nodes] / mass
        key = (depth, _key(measure))
        known = self._known.get(key)
        if known is not None:
            # Measures that share a key differ by less than 2^-40 of their mass.
            return mass * (known + chain.scale * 2.0 ** (2 - PLACES) * len(nodes))
        if self._budget <= 0:
            return self._bound(depth, measure)
        self._budget -= 1
        unit = np.zeros(len(measure))
        unit[nodes] = shares
        following = (chain.forward @ unit).reshape(chain.num_actions, -1)
        best = -math.inf
        for a in range(chain.num_actions):
            later = sum(self._value(depth - 1, part) for part in split(chain, following[a]))
            best = max(best, float(chain.R[a] @ unit) + chain.criterion.gamma * later)
        best = min(best, self._bound(depth, unit))
        self._known[key] = best
        return mass * best

    def _bound(self, depth: int, measure: np.ndarray) -> float:
        """The informed bound with `depth` steps left; without a horizon there is one."""
        table = self._informed[depth if self.chain.criterion.horizon is not None else 0]
        return float(np.max(table @ measure))

    def _sweep(self, table: np.ndarray) -> np.ndarray:
        """One more step of the fast informed bound: the best next action may depend on the next context."""
        gamma = self.chain.criterion.gamma
        return np.array(
            [r + gamma * group.best(table) for r, group in zip(self.chain.R, self._groups, strict=True)]
        )

    def _endless(self) -> np.ndarray:
        """The informed bound without a horizon: from above, so that every sweep is valid."""
        gamma = self.chain.criterion.gamma
        table = np.full(self.chain.R.shape, float(self.chain.R.max()) / (1.0 - gamma))
        for _ in range(SWEEPS):
            following = self._sweep(table)
            change = float(np.max(table - following))
            table = following
            if change <= 1e-10 * max(1.0, self.chain.scale):
                break
        return table


class _Groups:
    """The entries of one action's matrix by (node, next context)."""

    def __init__(self, matrix: csr_array, context: np.ndarray) -> None:
        entries = matrix.tocoo()
        order = np.lexsort((context[entries.col], entries.row))
        self._rows, self._columns, self._data = entries.row[order], entries.col[order], entries.data[order]
        seen = context[self._columns]
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (self._rows[1:] != self._rows[:-1]) | (seen[1:] != seen[:-1])
        self._starts = np.flatnonzero(fresh)
        self._nodes = matrix.shape[0]

    def best(self, table: np.ndarray) -> np.ndarray:
        """`[N]` sum over next contexts of the best action's expected `table` `[A, N]` there."""
        parts = np.add.reduceat(self._data * table[:, self._columns], self._starts, axis=1)
        return np.bincount(self._rows[self._starts], parts.max(axis=0), self._nodes)


def _key(measure: np.ndarray) -> bytes:
    """What a measure is up to its mass."""
    nodes = np.flatnonzero(measure)
    return nodes.tobytes() + np.rint(np.ldexp(measure[nodes] / measure.sum(), PLACES)).tobytes()


def split(chain: ContextChain, measure: np.ndarray) -> list[np.ndarray]:
    """A measure `[N]` by context, parts where nothing matters any more left out."""
    nodes = np.flatnonzero((measure > 0.0) & chain.alive)
    parts = []
    for c in np.unique(chain.context[nodes]):
        part = np.zeros(len(measure))
        chosen = nodes[chain.context[nodes] == c]
        part[chosen] = measure[chosen]
        parts.append(part)
    return parts
