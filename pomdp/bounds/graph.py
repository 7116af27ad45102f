"""The belief points of a search and their successors, in growing arrays; imports pomdp.bounds.flat.

Node i: a sparse belief in a layer, the upper values Q(i, .) and V(i) = max Q(i, .), the lower value L(i). The corners
of the simplex are the first nodes: that of state s in layer t is node t*S + s. Child (i, a, o): probability,
successor belief and, for the upper bound, convex weights over nodes of the next layer that reproduce it.
Source: solver design, section 3, "Data".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pomdp.bounds.flat import Flat, successors

UNEXPANDED = -1
# Beliefs that agree to 40 binary places are one node; certificates recompute what this neglects.
KEY_SCALE = 2.0**40


class Nodes(NamedTuple):
    """Arrays over nodes; the belief of node i is b_idx, b_val from b_ptr[i] to b_ptr[i + 1].

    `reward` `[N, A]` is R(b, a); `Q` `[N, A]`, `V`, `L` `[N]`; children of (i, a) run from first[i, a] to
    first[i, a + 1], and first[i, 0] is UNEXPANDED before they exist.
    """

    layer: np.ndarray
    b_ptr: np.ndarray
    b_idx: np.ndarray
    b_val: np.ndarray
    reward: np.ndarray
    Q: np.ndarray
    V: np.ndarray
    L: np.ndarray
    first: np.ndarray


class Children(NamedTuple):
    """Arrays over children; belief and weights of child c stand from t_ptr[c] to t_ptr[c + 1].

    A basis has as many points as the support has states, so `w_idx`, `w_val` run parallel to `t_idx`, `t_val`.
    `U`, `L`: bounds at the child; `best`: the alpha vector that attains L; `seen`: how much of the layer's list of
    alpha vectors L has been compared with; `node`: the node of this very belief, or -1.
    """

    observation: np.ndarray
    probability: np.ndarray
    t_ptr: np.ndarray
    t_idx: np.ndarray
    t_val: np.ndarray
    w_idx: np.ndarray
    w_val: np.ndarray
    node: np.ndarray
    U: np.ndarray
    L: np.ndarray
    best: np.ndarray
    seen: np.ndarray


class BeliefGraph:
    """Storage for nodes and children; values are written by `upper` and `lower`."""

    def __init__(self, flat: Flat, corner_Q: np.ndarray) -> None:
        """Start with the corners of every layer; `corner_Q` `[layers, S, A]` bounds Q* there."""
        self.flat = flat
        self.num_nodes = 0
        self.num_children = 0
        # Node -> (older nodes of its layer, weights): how its belief was made of them when its values were inherited.
        self.heritage: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._keys: dict[tuple[int, bytes, bytes], int] = {}
        self._predicted = np.zeros(flat.S)
        self._mark = np.zeros(max(flat.S, flat.O), dtype=np.int64)
        A, n = flat.A, flat.layers * flat.S
        self._node_arrays = {
            "layer": np.repeat(np.arange(flat.layers), flat.S),
            "b_ptr": np.arange(n + 1),
            "b_idx": np.tile(np.arange(flat.S), flat.layers),
            "b_val": np.ones(n),
            "reward": np.ascontiguousarray(np.tile(flat.R.T, (flat.layers, 1))),
            "Q": corner_Q.reshape(n, A).copy(),
            "V": corner_Q.reshape(n, A).max(axis=1),
            "L": np.full(n, -np.inf),
            "first": np.full((n, A + 1), UNEXPANDED),
        }
        self._child_arrays: dict[str, np.ndarray] = {
            name: np.zeros(1 if name == "t_ptr" else 0, dtype=np.float64 if name in _FLOATS else np.int64)
            for name in Children._fields
        }
        self.num_nodes = n
        self.interior: list[np.ndarray] = [np.zeros(0, dtype=np.int64) for _ in range(flat.layers)]
        self._interior_count = [0] * flat.layers
        self._view()

    def _view(self) -> None:
        """Refresh the tuples that compiled code reads, after an array was replaced."""
        self.nodes = Nodes(**self._node_arrays)
        self.children = Children(**self._child_arrays)

    def _grow(self, arrays: dict[str, np.ndarray], needs: dict[str, int]) -> None:
        """Double every array that is shorter than it needs to be."""
        changed = False
        for name, need in needs.items():
            old = arrays[name]
            if old.shape[0] < need:
                new = np.zeros((max(need, 2 * old.shape[0], 64), *old.shape[1:]), dtype=old.dtype)
                new[: old.shape[0]] = old
                arrays[name] = new
                changed = True
        if changed:
            self._view()

    def corner(self, layer: int) -> int:
        """Node of state 0's corner in a layer."""
        return layer * self.flat.S

    def following(self, layer: int) -> int:
        """The next layer, or -1 past the horizon."""
        if self.flat.discounted:
            return 0
        return layer + 1 if layer + 1 < self.flat.layers else -1

    def candidates(self, layer: int) -> np.ndarray:
        """Nodes of a layer that are not corners, oldest first."""
        return self.interior[layer][: self._interior_count[layer]]

    def belief(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """States and probabilities of node i."""
        span = slice(self.nodes.b_ptr[i], self.nodes.b_ptr[i + 1])
        return self.nodes.b_idx[span], self.nodes.b_val[span]

    def child_belief(self, c: int) -> tuple[np.ndarray, np.ndarray]:
        """States and probabilities of child c."""
        span = slice(self.children.t_ptr[c], self.children.t_ptr[c + 1])
        return self.children.t_idx[span], self.children.t_val[span]

    def find(self, layer: int, idx: np.ndarray, val: np.ndarray) -> int:
        """The node of a belief, or -1."""
        if idx.size == 1:
            return self.corner(layer) + int(idx[0])
        return self._keys.get(_key(layer, idx, val), -1)

    def add(
        self, layer: int, idx: np.ndarray, val: np.ndarray, parents: np.ndarray, weights: np.ndarray
    ) -> int:
        """The node of a belief that is the mixture `weights` of the nodes `parents` of its layer.

        A new one inherits Q(i, a) = sum_j w_j Q(j, a), a bound because Q*(., a) is convex.
        """
        known = self.find(layer, idx, val)
        if known >= 0:
            return known
        i, end = self.num_nodes, int(self.nodes.b_ptr[self.num_nodes])
        needs = dict.fromkeys(("layer", "reward", "Q", "V", "L", "first"), i + 1)
        self._grow(
            self._node_arrays, needs | {"b_ptr": i + 2, "b_idx": end + idx.size, "b_val": end + idx.size}
        )
        nodes = self.nodes
        nodes.layer[i] = layer
        nodes.b_idx[end : end + idx.size] = idx
        nodes.b_val[end : end + idx.size] = val
        nodes.b_ptr[i + 1] = end + idx.size
        nodes.reward[i] = self.flat.R[:, idx] @ val
        last = self.following(layer) < 0
        nodes.Q[i] = nodes.reward[i] if last else weights @ nodes.Q[parents]
        self.heritage[i] = (parents.copy(), weights.copy())
        nodes.V[i] = nodes.Q[i].max()
        nodes.L[i] = -np.inf
        nodes.first[i] = UNEXPANDED
        self.num_nodes += 1
        self._keys[_key(layer, idx, val)] = i
        count = self._interior_count[layer]
        if count == self.interior[layer].size:
            self.interior[layer] = np.concatenate(
                [self.interior[layer], np.zeros(max(64, count), dtype=np.int64)]
            )
        self.interior[layer][count] = i
        self._interior_count[layer] = count + 1
        return i

    def expanded(self, i: int) -> bool:
        """Whether node i has children, or needs none because the horizon ends with it."""
        return self.nodes.first[i, 0] != UNEXPANDED or self.following(int(self.nodes.layer[i])) < 0

    def expand(self, i: int) -> None:
        """Make the children of node i under every action, with the weights of the corners."""
        if self.expanded(i):
            return
        layer = self.following(int(self.nodes.layer[i]))
        corner = self.corner(layer)
        idx, val = (x.copy() for x in self.belief(i))
        for a in range(self.flat.A):
            found = successors(self.flat, idx, val, a, self._predicted, self._mark)
            observations, probabilities, pointers, states, values = found
            c, k = self.num_children, observations.size
            start = int(self.children.t_ptr[c])
            end = start + states.size
            needs = {name: c + k for name in Children._fields if name not in _POOLS}
            self._grow(self._child_arrays, needs | {"t_ptr": c + k + 1} | dict.fromkeys(_POOLS, end))
            kids = self.children
            kids.observation[c : c + k] = observations
            kids.probability[c : c + k] = probabilities
            kids.t_ptr[c + 1 : c + k + 1] = start + pointers[1:]
            kids.t_idx[start:end] = states
            kids.t_val[start:end] = values
            kids.w_idx[start:end] = corner + states
            kids.w_val[start:end] = values
            kids.U[c : c + k] = np.inf
            kids.L[c : c + k] = -np.inf
            kids.best[c : c + k] = -1
            kids.seen[c : c + k] = 0
            for q in range(k):
                span = slice(pointers[q], pointers[q + 1])
                self.match(c + q, self.find(layer, states[span], values[span]))
            self.nodes.first[i, a] = c
            self.num_children += k
        self.nodes.first[i, self.flat.A] = self.num_children

    def match(self, c: int, node: int) -> None:
        """Say that child c is the belief of `node` (-1: of none); all its weight then lies there."""
        self.children.node[c] = node
        if node >= 0:
            start, end = self.children.t_ptr[c], self.children.t_ptr[c + 1]
            self.children.w_idx[start:end] = node
            self.children.w_val[start:end] = 0.0
            self.children.w_val[start] = 1.0

    @property
    def memory(self) -> int:
        """Bytes held by the arrays."""
        return sum(x.nbytes for x in (*self._node_arrays.values(), *self._child_arrays.values()))


_FLOATS = {"probability", "t_val", "w_val", "U", "L"}
_POOLS = ("t_idx", "t_val", "w_idx", "w_val")


def _key(layer: int, idx: np.ndarray, val: np.ndarray) -> tuple[int, bytes, bytes]:
    """What two equal beliefs share."""
    return layer, idx.astype(np.int64).tobytes(), np.rint(val * KEY_SCALE).astype(np.int64).tobytes()
