"""The product chain of a model and a controller, K x S states, kept in factors; imports pomdp.policy.

Its matrix has up to K * nnz(T) * O entries and takes longer to assemble than to use. The factors do the
same: `W_a[m, s'] = sum_o Z_a[s', o] V[successor(m, a, o), s']`, then `sum_a act(a|m) T_a W_a[m]`. Nodes with
the same successors after an action share a row of W, which makes the work for a window or a reactive policy
smaller by the number of observations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from pomdp.model import POMDP
from pomdp.policy import Controller

# Above this share of non-zeros a dense product is faster than a sparse one.
DENSE_SHARE = 0.15
# A dense transition matrix of more rows than this would not pay for its memory.
DENSE_STATES = 4000
# What a gathered element costs in streamed ones.
GATHER_COST = 3
# Up to this many elements, one call for all classes of observations beats one call for each.
AT_ONCE = 1 << 16
# Gathered indices are kept only up to this many, 256 MiB.
MAX_GATHERED = 1 << 25


@dataclass(frozen=True, eq=False)
class _Branch:
    """What the controller does with one action: `nodes` `[N]` that take it, with probability `weight` `[N]`.

    `group` `[N]`: the row of `successor` `[G, C]` each node follows, by class of observations; `likelihood`
    `[S', C]` is the probability of each class, `columns` `[C, S']` the same dense. Where each state has few
    of many classes, `gather` holds pairs of flat indices into V `[G, S']` and likelihoods `[S']`, and
    `columns` nothing.
    """

    nodes: np.ndarray
    weight: np.ndarray
    group: np.ndarray
    successor: np.ndarray
    likelihood: csr_array
    transition: csr_array | np.ndarray
    gather: tuple[tuple[np.ndarray, np.ndarray], ...]
    columns: np.ndarray


class ProductChain:
    """The Markov chain on (node, state) of `controller` in `model`, applied to functions V `[K, S]`."""

    def __init__(self, model: POMDP, controller: Controller) -> None:
        """Group the nodes by action and by successors."""
        self.model = model
        self.controller = controller
        self.shape = (controller.num_nodes, model.num_states)
        self._act = controller.act / controller.act.sum(axis=1, keepdims=True)
        used = np.flatnonzero(np.any(controller.act > 0.0, axis=0))
        self._branches = [_branch(model, controller, self._act, int(a)) for a in used]

    def expected(self, rewards: np.ndarray) -> np.ndarray:
        """`[K, S]` expected immediate value of `rewards` `[A, S]` in each product state."""
        return self._act @ rewards

    def apply(self, values: np.ndarray) -> np.ndarray:
        """`[K, S]` expectation of `values` `[K, S]` one step later."""
        result = np.zeros(self.shape)
        for branch in self._branches:
            following = _through(branch.transition, self._reached(branch, values))
            if len(branch.nodes) == self.shape[0]:
                result += branch.weight[:, None] * following[branch.group]
            else:
                result[branch.nodes] += branch.weight[:, None] * following[branch.group]
        return result

    def _reached(self, branch: _Branch, values: np.ndarray) -> np.ndarray:
        """W `[G, S']`: the expectation over observations, given the state reached."""
        W = np.zeros((len(branch.successor), self.shape[1]))
        if branch.gather:
            flat = values.ravel()
            for index, likelihood in branch.gather:
                W += likelihood * flat[index]
            return W
        G, C = branch.successor.shape
        if C == 1:
            return values[branch.successor[:, 0]]
        if G * C * self.shape[1] <= AT_ONCE:
            return np.einsum("gcs,cs->gs", values[branch.successor], branch.columns)
        for c in range(C):
            W += branch.columns[c] * values[branch.successor[:, c]]
        return W

    @property
    def size_assembled(self) -> int:
        """An upper bound on the number of entries of the assembled matrix."""
        entries = 0
        for branch in self._branches:
            entered = np.bincount(csr_array(branch.transition).indices, minlength=self.shape[1])
            entries += len(branch.nodes) * int(entered @ np.diff(branch.likelihood.indptr))
        return entries

    @cached_property
    def assembled(self) -> csr_array:
        """The transition matrix `[K S, K S]`, product state (k, s) at k S + s."""
        K, S = self.shape
        rows, columns, entries = [], [], []
        for branch in self._branches:
            transition = coo_array(branch.transition)
            for c in range(branch.successor.shape[1]):
                column = branch.likelihood[:, [c]].toarray().ravel()
                moved = transition.data * column[transition.coords[1]]
                kept = np.flatnonzero(moved)
                following = branch.successor[branch.group, c]
                rows.append(np.add.outer(branch.nodes * S, transition.coords[0][kept]).ravel())
                columns.append(np.add.outer(following * S, transition.coords[1][kept]).ravel())
                entries.append(np.outer(branch.weight, moved[kept]).ravel())
        places = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.concatenate(entries), places), shape=(K * S, K * S))


def _branch(model: POMDP, controller: Controller, act: np.ndarray, action: int) -> _Branch:
    """The branch of one action, its observations merged where no node tells them apart."""
    nodes = np.flatnonzero(act[:, action] > 0.0)
    successor, group = np.unique(controller.successor[nodes, action], axis=0, return_inverse=True)
    Z, T = model.Z[action], model.T[action]
    possible = np.flatnonzero(np.bincount(Z.indices, minlength=Z.shape[1]))
    classes, member = np.unique(successor[:, possible], axis=1, return_inverse=True)
    merge = csr_array(
        (np.ones(len(possible)), (possible, member.ravel())), shape=(model.num_observations, classes.shape[1])
    )
    likelihood = csr_array(Z @ merge)
    gather = _gather(classes, likelihood)
    dense = T.nnz > DENSE_SHARE * T.shape[0] ** 2 and T.shape[0] <= DENSE_STATES
    return _Branch(
        nodes,
        act[nodes, action],
        group.ravel(),
        np.ascontiguousarray(classes),
        likelihood,
        T.toarray() if dense else T,
        gather,
        np.empty((0, T.shape[0])) if gather else likelihood.T.toarray(),
    )


def _gather(successor: np.ndarray, likelihood: csr_array) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Flat indices and likelihoods of each state's j-th possible class, where those are few; else empty."""
    S, C = likelihood.shape
    counts = np.diff(likelihood.indptr)
    width = int(counts.max())
    if GATHER_COST * width >= C or width * len(successor) * S > MAX_GATHERED:
        return ()
    found = []
    for j in range(width):
        has = counts > j
        place = likelihood.indptr[:-1][has] + j
        which, weight = np.zeros(S, dtype=np.int64), np.zeros(S)
        which[has], weight[has] = likelihood.indices[place], likelihood.data[place]
        found.append((successor[:, which] * S + np.arange(S), weight))
    return tuple(found)


def _through(transition: csr_array | np.ndarray, values: np.ndarray) -> np.ndarray:
    """`[G, S]` from values `[G, S']`: the expectation over the state reached."""
    if isinstance(transition, np.ndarray):
        return values @ transition.T
    return np.ascontiguousarray((transition @ np.ascontiguousarray(values.T)).T)
