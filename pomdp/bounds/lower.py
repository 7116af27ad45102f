"""Alpha vectors and their point-based backups: the lower bound; imports pomdp.bounds.flat and graph.

Every vector keeps its action and, for every observation, the vector it leads to (-1 past the horizon), so that each
is the value of a finite-state controller that stands in the archive: vectors are never deleted, only left out of
the lists that children are compared with. Hence alpha_k(s) <= R + gamma sum T Z alpha_next(s') holds for each, which
is what a certificate needs. Source: solver design, section 3, "Lower bound", and section 5, first pitfall.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, bicgstab

from pomdp.bounds.flat import Flat
from pomdp.bounds.graph import BeliefGraph
from pomdp.compiled import compiled

END = -1  # the link past the horizon: value 0


class _Late(Exception):
    """Ends a linear solve whose time is over."""


class Vectors(NamedTuple):
    """Arrays over vectors: values `[K, S]`, action, layer, links `[K, O]` to the next layer, the node backed up."""

    value: np.ndarray
    action: np.ndarray
    layer: np.ndarray
    link: np.ndarray
    node: np.ndarray


@compiled
def score(children, value, listed, first, last):
    """Raise L of the children first..last-1 to the best of the listed vectors not yet seen."""
    for c in range(first, last):
        start, end = children.t_ptr[c], children.t_ptr[c + 1]
        for q in range(children.seen[c], listed.size):
            k = listed[q]
            total = 0.0
            for e in range(start, end):
                total += value[k, children.t_idx[e]] * children.t_val[e]
            if total > children.L[c]:
                children.L[c] = total
                children.best[c] = k
        children.seen[c] = listed.size


@compiled
def best_action(flat, nodes, children, i):
    """(value, action) of the best backup at node i among actions that can beat L(i)."""
    best, action = -np.inf, -1
    for a in range(flat.A):
        if nodes.Q[i, a] < nodes.L[i]:
            continue
        total = nodes.reward[i, a]
        for c in range(nodes.first[i, a], nodes.first[i, a + 1]):
            total += flat.gamma * children.probability[c] * children.L[c]
        if total > best:
            best, action = total, a
    return best, action


@compiled
def back_up(flat, a, link, value, out):
    """out(s) = R(s,a) + gamma sum_s' T sum_o Z value[link(o)](s'); END links are worth 0."""
    S = flat.S
    reached = np.zeros(S)
    for s in range(S):
        row = a * S + s
        total = 0.0
        for e in range(flat.z_ptr[row], flat.z_ptr[row + 1]):
            k = link[flat.z_col[e]]
            if k >= 0:
                total += flat.z_val[e] * value[k, s]
        reached[s] = total
    for s in range(S):
        row = a * S + s
        total = 0.0
        for e in range(flat.t_ptr[row], flat.t_ptr[row + 1]):
            total += flat.t_val[e] * reached[flat.t_col[e]]
        out[s] = flat.R[a, s] + flat.gamma * total


@compiled
def apply_controller(flat, action, link, inside, value, frozen, out):
    """Backup of every vector of a block: link < 0 is END, inside marks links to the block, others go to `frozen`.

    With `frozen` of zero rows and no rewards this is the linear part alone; `value` and `out` are `[K, S]`.
    """
    S = flat.S
    reached = np.zeros(S)
    for k in range(action.size):
        a = action[k]
        for s in range(S):
            row = a * S + s
            total = 0.0
            for e in range(flat.z_ptr[row], flat.z_ptr[row + 1]):
                o = flat.z_col[e]
                j = link[k, o]
                if j >= 0:
                    if inside[k, o]:
                        total += flat.z_val[e] * value[j, s]
                    elif frozen.shape[0] > 0:
                        total += flat.z_val[e] * frozen[j, s]
            reached[s] = total
        for s in range(S):
            row = a * S + s
            total = 0.0
            for e in range(flat.t_ptr[row], flat.t_ptr[row + 1]):
                total += flat.t_val[e] * reached[flat.t_col[e]]
            out[k, s] = flat.gamma * total


@compiled
def improve_defaults(flat, reach, best, link, value, k):
    """Let (a, o) lead to vector k where it is the best so far on the successors of a uniform belief.

    `reach` `[A, S]` is that belief's prediction; `best`, `link` `[A, O]` are updated. It serves observations that a
    backup's own belief cannot show: any link is sound there, a good one generalises.
    """
    S = flat.S
    total = np.zeros(flat.O)
    for a in range(flat.A):
        total[:] = 0.0
        for s in range(S):
            row = a * S + s
            if reach[a, s] > 0.0:
                for e in range(flat.z_ptr[row], flat.z_ptr[row + 1]):
                    total[flat.z_col[e]] += flat.z_val[e] * reach[a, s] * value[k, s]
        for o in range(flat.O):
            if total[o] > best[a, o]:
                best[a, o] = total[o]
                link[a, o] = k


class LowerBound:
    """The lower side of a search: an archive of alpha vectors and the lists in use, one a layer."""

    def __init__(self, graph: BeliefGraph, blind: np.ndarray) -> None:
        """Start from the vectors `[layers, A, S]` of the blind policies."""
        self.graph = graph
        flat = graph.flat
        self.count = 0
        self._arrays = Vectors(
            np.zeros((64, flat.S)),
            np.zeros(64, dtype=np.int64),
            np.zeros(64, dtype=np.int64),
            np.full((64, flat.O), END),
            np.full(64, -1),
        )
        self.listed: list[np.ndarray] = [np.zeros(0, dtype=np.int64) for _ in range(flat.layers)]
        reach = np.zeros((flat.A, flat.S))
        for a in range(flat.A):
            for s in range(flat.S):
                span = slice(flat.t_ptr[a * flat.S + s], flat.t_ptr[a * flat.S + s + 1])
                np.add.at(reach[a], flat.t_col[span], flat.t_val[span] / flat.S)
        self._reach = reach
        self._default_best = np.full((flat.layers, flat.A, flat.O), -np.inf)
        self._default = np.full((flat.layers, flat.A, flat.O), END)
        for t in range(flat.layers - 1, -1, -1):
            ahead = graph.following(t)
            for a in range(flat.A):
                own = self.count if flat.discounted else END
                link = np.full(flat.O, own if flat.discounted or ahead < 0 else self.listed[ahead][a])
                self.append(blind[t, a], a, t, link, -1)

    @property
    def vectors(self) -> Vectors:
        """The archive; rows from `count` on are unused."""
        return self._arrays

    def append(self, value: np.ndarray, action: int, layer: int, link: np.ndarray, node: int) -> int:
        """Store a vector and list it in its layer; returns its number."""
        k = self.count
        if k == self._arrays.action.size:
            self._arrays = Vectors(*(np.concatenate([x, np.zeros_like(x)]) for x in self._arrays))
        v = self._arrays
        v.value[k], v.action[k], v.layer[k], v.link[k], v.node[k] = value, action, layer, link, node
        self.count += 1
        self.listed[layer] = np.append(self.listed[layer], k)
        if self.graph.flat.discounted or layer > 0:
            before = 0 if self.graph.flat.discounted else layer - 1
            improve_defaults(
                self.graph.flat, self._reach, self._default_best[before], self._default[before], v.value, k
            )
        return k

    def refresh(self, i: int) -> None:
        """Bring L of all children of node i up to date."""
        graph = self.graph
        layer = graph.following(int(graph.nodes.layer[i]))
        if layer >= 0 and graph.expanded(i):
            first = graph.nodes.first[i]
            score(graph.children, self._arrays.value, self.listed[layer], first[0], first[-1])

    def look_up(self, i: int) -> None:
        """Raise L(i) to the best listed vector of its own layer."""
        idx, val = self.graph.belief(i)
        listed = self.listed[int(self.graph.nodes.layer[i])]
        best = float(np.max(self._arrays.value[np.ix_(listed, idx)] @ val))
        self.graph.nodes.L[i] = max(self.graph.nodes.L[i], best)

    def update(self, i: int) -> bool:
        """Point-based backup at node i; says whether L(i) rose."""
        graph, flat = self.graph, self.graph.flat
        layer = int(graph.nodes.layer[i])
        ahead = graph.following(layer)
        idx, val = graph.belief(i)
        if ahead < 0:
            a = int(np.argmax(graph.nodes.reward[i]))
            if graph.nodes.reward[i, a] > graph.nodes.L[i]:
                self.look_up(i)  # the blind vectors of the last layer are exact there
            return False
        graph.expand(i)
        self.refresh(i)
        value, a = best_action(flat, graph.nodes, graph.children, i)
        if a < 0 or value <= graph.nodes.L[i] + 1e-13 * (1 + abs(value)):
            return False
        link = self._default[layer, a].copy()
        span = slice(graph.nodes.first[i, a], graph.nodes.first[i, a + 1])
        link[graph.children.observation[span]] = graph.children.best[span]
        vector = np.empty(flat.S)
        back_up(flat, a, link, self._arrays.value, vector)
        k = self.append(vector, a, layer, link, i)
        graph.nodes.L[i] = max(graph.nodes.L[i], float(self._arrays.value[k, idx] @ val))
        return True

    def best_at(self, idx: np.ndarray, val: np.ndarray, layer: int = 0) -> tuple[float, int]:
        """(value, vector) of the best listed vector of a layer at a belief."""
        listed = self.listed[layer]
        values = self._arrays.value[np.ix_(listed, idx)] @ val
        q = int(np.argmax(values))
        return float(values[q]), int(listed[q])

    def prune(self) -> None:
        """List only vectors that are best at a node, the blind ones always; nothing leaves the archive."""
        graph = self.graph
        for layer in range(graph.flat.layers):
            listed = self.listed[layer]
            ids = graph.candidates(layer)
            if listed.size < 2 * graph.flat.A + 16 or ids.size == 0:
                continue
            beliefs = np.zeros((ids.size, graph.flat.S))
            for row, i in enumerate(ids):
                idx, val = graph.belief(int(i))
                beliefs[row, idx] = val
            winners = listed[np.unique(np.argmax(beliefs @ self._arrays.value[listed].T, axis=1))]
            keep = np.union1d(winners, listed[listed < graph.flat.A * graph.flat.layers])
            if keep.size < listed.size:
                self.listed[layer] = keep
                self._restart_comparison(layer)

    def _restart_comparison(self, layer: int) -> None:
        """Children compare with a shortened list from its beginning; what they found stays, for it is still valid."""
        graph = self.graph
        if graph.flat.discounted:
            graph.children.seen[: graph.num_children] = 0
            return
        for i in range(graph.num_nodes):
            if graph.nodes.layer[i] == layer - 1 and graph.nodes.first[i, 0] >= 0:
                graph.children.seen[graph.nodes.first[i, 0] : graph.nodes.first[i, -1]] = 0

    def evaluate(self, late: Callable[[], bool]) -> int:
        """Evaluate the listed vectors as one controller and append what improves; returns how many were added.

        Each listed vector is relinked to the vectors now best at its node's children; all are solved for at once
        (links outside the list stay constants), lowered by the residual over 1-gamma, and appended as a block where
        a vector beats L at its node. Discounted problems only; `late` ends the solve early, at any point of which
        the lowered vectors are bounds. Source: solver design, "Policy evaluation".
        """
        graph = self.graph
        listed, v = self.listed[0], self._arrays
        where = np.full(self.count, -1)
        where[listed] = np.arange(listed.size)
        action, link = v.action[listed].copy(), v.link[listed].copy()
        for row, k in enumerate(listed):
            i = int(v.node[k])
            if i >= 0 and graph.expanded(i):
                self.refresh(i)
                span = slice(graph.nodes.first[i, action[row]], graph.nodes.first[i, action[row] + 1])
                link[row, graph.children.observation[span]] = graph.children.best[span]
        inside = where[link] >= 0
        local = np.where(inside, where[link], link)
        solved = self._solve(action, local, inside, v.value[listed], late)
        better = np.zeros(listed.size, dtype=bool)
        for row, k in enumerate(listed):
            i = int(v.node[k])
            if i >= 0:
                idx, val = graph.belief(i)
                better[row] = solved[row, idx] @ val > graph.nodes.L[i] + 1e-9 * (1 + abs(graph.nodes.L[i]))
        if not better.any():
            return 0
        block = _closure(better, local, inside)
        number = np.full(listed.size, -1)
        number[block] = self.count + np.arange(block.size)
        for row in block:
            final = np.where(inside[row], number[np.where(inside[row], local[row], 0)], link[row])
            i = int(v.node[listed[row]])
            self.append(solved[row], int(action[row]), 0, final, i)
            if i >= 0:
                idx, val = graph.belief(i)
                graph.nodes.L[i] = max(graph.nodes.L[i], float(solved[row, idx] @ val))
        return int(block.size)

    def _solve(
        self,
        action: np.ndarray,
        link: np.ndarray,
        inside: np.ndarray,
        guess: np.ndarray,
        late: Callable[[], bool],
    ) -> np.ndarray:
        """Values `[K, S]` below the fixed point of a block of linked vectors, near it."""
        flat: Flat = self.graph.flat
        K, S = guess.shape
        nothing = np.zeros((0, S))
        constant = np.empty((K, S))
        apply_controller(flat, action, link, inside, np.zeros((K, S)), self._arrays.value, constant)
        constant += flat.R[action]

        def linear(x: np.ndarray) -> np.ndarray:
            out = np.empty((K, S))
            apply_controller(flat, action, link, inside, np.ascontiguousarray(x).reshape(K, S), nothing, out)
            return (x.reshape(K, S) - out).ravel()

        system = LinearOperator((K * S, K * S), matvec=linear, dtype=np.float64)
        latest = guess.ravel()

        def stop(x: np.ndarray) -> None:
            nonlocal latest
            latest = x.copy()
            if late():
                raise _Late

        with suppress(_Late):
            bicgstab(system, constant.ravel(), x0=latest, rtol=1e-12, atol=0.0, maxiter=200, callback=stop)
        x = latest if np.all(np.isfinite(latest)) else guess.ravel()
        residual = constant.ravel() - linear(x)
        # x + min(residual)/(1 - gamma) is a sub-solution, hence a lower bound; so is its backup, which is closer.
        shift = min(float(residual.min()), 0.0) / (1.0 - flat.gamma)
        return (x + residual).reshape(K, S) + shift


def _closure(wanted: np.ndarray, link: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Rows reachable from the wanted ones by links inside the block, ascending."""
    reached = wanted.copy()
    stack = np.flatnonzero(wanted).tolist()
    while stack:
        row = stack.pop()
        for j in np.unique(link[row][inside[row]]):
            if not reached[j]:
                reached[j] = True
                stack.append(int(j))
    return np.flatnonzero(reached)
