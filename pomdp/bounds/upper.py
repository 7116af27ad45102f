"""Backups of the upper bound over the belief graph; imports pomdp.bounds.flat, graph and simplex.

The value of a child is U = max_a' sum_j w_j Q(j, a') over its convex weights w. It is a bound because Q*(., a') is
convex for every a', and never worse than sum_j w_j V(j). Every step below replaces an upper value by a smaller one
that the Bellman inequality justifies, so all values stay valid at every moment.
Source: solver design, section 3, "Child upper bound", "Node update", "Fixed point on the point set".
"""

from __future__ import annotations

import numpy as np

from pomdp.bounds.graph import BeliefGraph
from pomdp.bounds.simplex import interpolate
from pomdp.compiled import compiled

PIVOTS = 30  # pivots of one interpolation
LP_SHARE = 0.05  # a child is interpolated anew only where it carries this share of its node's gap


@compiled
def child_value(children, Q, c):
    """max_a' sum_j w_j Q(j, a') of child c."""
    best = -np.inf
    start, end = children.t_ptr[c], children.t_ptr[c + 1]
    for a in range(Q.shape[1]):
        total = 0.0
        for e in range(start, end):
            w = children.w_val[e]
            if w > 0.0:
                total += w * Q[children.w_idx[e], a]
        if total > best:
            best = total
    return best


@compiled
def improve_weights(nodes, children, candidates, corner, position, c, pivots):
    """Interpolate child c anew, keep the better of the old and the new weights, return their value."""
    start, end = children.t_ptr[c], children.t_ptr[c + 1]
    old = child_value(children, nodes.Q, c)
    basis, x, _ = interpolate(
        children.t_idx[start:end],
        children.t_val[start:end],
        corner,
        nodes.V,
        candidates,
        nodes.b_ptr,
        nodes.b_idx,
        nodes.b_val,
        position,
        pivots,
    )
    old_idx = children.w_idx[start:end].copy()
    old_val = children.w_val[start:end].copy()
    children.w_idx[start:end] = basis
    children.w_val[start:end] = x
    new = child_value(children, nodes.Q, c)
    if new < old:
        return new
    children.w_idx[start:end] = old_idx
    children.w_val[start:end] = old_val
    return old


@compiled
def reweigh(nodes, children, candidates, corner, position, i, a, pivots):
    """Improve the weights of all children of (i, a); returns how many became better."""
    count = 0
    for c in range(nodes.first[i, a], nodes.first[i, a + 1]):
        if children.node[c] < 0:
            old = child_value(children, nodes.Q, c)
            if improve_weights(nodes, children, candidates, corner, position, c, pivots) < old:
                count += 1
    return count


@compiled
def update_node(flat, nodes, children, candidates, corner, position, i, share, pivots):
    """Lower Q(i, .) lazily: refresh the greatest action until the greatest is fresh. Non-best actions wait."""
    A = flat.A
    fresh = np.zeros(A, dtype=np.bool_)
    while True:
        a = np.argmax(nodes.Q[i])
        if fresh[a]:
            break
        total = nodes.reward[i, a]
        gap = nodes.V[i] - nodes.L[i]
        for c in range(nodes.first[i, a], nodes.first[i, a + 1]):
            value = min(child_value(children, nodes.Q, c), children.U[c])
            p = children.probability[c]
            # L may still be -inf: then the gap is infinite and the product not a number, and we interpolate.
            if children.node[c] < 0 and pivots > 0 and not p * (value - children.L[c]) <= share * gap:
                value = min(value, improve_weights(nodes, children, candidates, corner, position, c, pivots))
            children.U[c] = value
            total += flat.gamma * p * value
        nodes.Q[i, a] = min(nodes.Q[i, a], total)
        fresh[a] = True
    nodes.V[i] = np.max(nodes.Q[i])


@compiled
def sweep(flat, nodes, children, order):
    """One Gauss-Seidel pass over expanded nodes with all weights fixed; returns the largest decrease of a V."""
    largest = 0.0
    for k in range(order.size):
        i = order[k]
        if nodes.first[i, 0] < 0:
            continue
        for a in range(flat.A):
            total = nodes.reward[i, a]
            for c in range(nodes.first[i, a], nodes.first[i, a + 1]):
                value = min(child_value(children, nodes.Q, c), children.U[c])
                children.U[c] = value
                total += flat.gamma * children.probability[c] * value
            nodes.Q[i, a] = min(nodes.Q[i, a], total)
        value = np.max(nodes.Q[i])
        largest = max(largest, nodes.V[i] - value)
        nodes.V[i] = value
    return largest


@compiled
def occupancy(flat, nodes, children, root, count, rounds, tolerance):
    """Discounted visits `[N]` of the upper-greedy policy from the root in the point model.

    Mass moves from a node to the points that carry its children's weights, corners included; nodes without children
    keep theirs. With a horizon `rounds` is the number of stages, and the result is exact.
    """
    total = np.zeros(count)
    now = np.zeros(count)
    now[root] = 1.0
    for _ in range(rounds):
        following = np.zeros(count)
        mass = 0.0
        for i in range(count):
            if now[i] <= 0.0:
                continue
            total[i] += now[i]
            if nodes.first[i, 0] < 0:
                continue
            a = np.argmax(nodes.Q[i])
            for c in range(nodes.first[i, a], nodes.first[i, a + 1]):
                push = now[i] * flat.gamma * children.probability[c]
                for e in range(children.t_ptr[c], children.t_ptr[c + 1]):
                    if children.w_val[e] > 0.0:
                        following[children.w_idx[e]] += push * children.w_val[e]
                        mass += push * children.w_val[e]
        now = following
        if mass < tolerance:
            break
    return total


@compiled
def score_children(flat, nodes, children, visits):
    """Worth `[C]` of making each child of a greedy action a node: visits x gamma p (U - L)(1 - largest weight)."""
    score = np.zeros(children.U.size)
    for i in range(visits.size):
        if visits[i] <= 0.0 or nodes.first[i, 0] < 0:
            continue
        a = np.argmax(nodes.Q[i])
        for c in range(nodes.first[i, a], nodes.first[i, a + 1]):
            if children.node[c] >= 0 or not children.L[c] > -np.inf:
                continue
            largest = 0.0
            for e in range(children.t_ptr[c], children.t_ptr[c + 1]):
                largest = max(largest, children.w_val[e])
            gap = children.U[c] - children.L[c]
            score[c] = visits[i] * flat.gamma * children.probability[c] * gap * (1.0 - largest)
    return score


class UpperBound:
    """The upper side of a search: updates of single nodes and of the whole point set."""

    def __init__(self, graph: BeliefGraph) -> None:
        self.graph = graph
        self.position = np.full(graph.flat.S, -1)

    def update(self, i: int, share: float = LP_SHARE, pivots: int = PIVOTS) -> None:
        """Back node i up, its important children interpolated anew."""
        graph = self.graph
        layer = graph.following(int(graph.nodes.layer[i]))
        if layer < 0:
            return
        graph.expand(i)
        update_node(
            graph.flat,
            graph.nodes,
            graph.children,
            graph.candidates(layer),
            graph.corner(layer),
            self.position,
            i,
            share,
            pivots,
        )

    def reweigh(self, i: int, a: int) -> int:
        """Interpolate all children of (i, a) anew; returns how many became better."""
        graph = self.graph
        layer = graph.following(int(graph.nodes.layer[i]))
        candidates, corner = graph.candidates(layer), graph.corner(layer)
        return int(reweigh(graph.nodes, graph.children, candidates, corner, self.position, i, a, PIVOTS))

    def sweep(self) -> float:
        """One pass over all nodes, newest first; returns the largest decrease."""
        order = np.arange(self.graph.num_nodes - 1, -1, -1)
        return float(sweep(self.graph.flat, self.graph.nodes, self.graph.children, order))

    def visits(self, root: int) -> np.ndarray:
        """Occupancy `[N]` of the upper-greedy policy."""
        graph = self.graph
        rounds = 200 if graph.flat.discounted else graph.flat.layers
        return occupancy(graph.flat, graph.nodes, graph.children, root, graph.num_nodes, rounds, 1e-3)

    def node_of(self, c: int, layer: int) -> int:
        """The node of child c in `layer`, made where it is new of the points that carry the child's weight."""
        graph = self.graph
        known = int(graph.children.node[c])
        if known >= 0:
            return known
        span = slice(graph.children.t_ptr[c], graph.children.t_ptr[c + 1])
        used = graph.children.w_val[span] > 0.0
        idx, val = (x.copy() for x in graph.child_belief(c))
        node = graph.add(layer, idx, val, graph.children.w_idx[span][used], graph.children.w_val[span][used])
        graph.match(c, node)
        return node
