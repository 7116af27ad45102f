"""Interpolation of an upper bound: a truncated primal simplex over belief points; imports pomdp.compiled alone.

An upper bound known at points b_j (values V_j, the corners among them) extends to any belief tau by convexity of
V*: if tau = sum_j w_j b_j with w >= 0, then V*(tau) <= sum_j w_j V_j. The linear program that looks for the least
such sum starts at the corners (w = tau, always feasible), and every pivot keeps w feasible, so every pivot is a
valid bound and the work may stop at any of them. Source: solver design, section 3, "Child upper bound".
"""

from __future__ import annotations

import numpy as np

from pomdp.compiled import compiled

RESIDUAL = 1e-10  # weights that reproduce tau less exactly are dropped for those of the corners
PIVOT = 1e-9  # smallest pivot element
COST = 1e-11  # relative reduced cost below which a point is not worth a pivot


@compiled
def interpolate(t_idx, t_val, corner, V, candidates, b_ptr, b_idx, b_val, position, pivots):
    """Convex weights for the belief (t_idx, t_val) over corners and candidate points.

    `corner` is the node id of the corner of state 0 (that of state s is corner + s); `V` float values by node id;
    `candidates` int64 node ids whose beliefs stand in b_idx, b_val from b_ptr[j] to b_ptr[j + 1]; `position`
    int64 `[S]` is scratch holding -1. Returns (points, weights, value), at most one point a supported state.
    """
    m = t_idx.size
    basis = np.empty(m, dtype=np.int64)
    cost = np.empty(m)
    x = t_val.copy()
    for k in range(m):
        position[t_idx[k]] = k
        basis[k] = corner + t_idx[k]
        cost[k] = V[basis[k]]
    scale = 1.0
    for k in range(m):
        scale = max(scale, abs(cost[k]))
    usable = np.empty(candidates.size, dtype=np.int64)
    n = 0
    for q in range(candidates.size):
        j = candidates[q]
        if b_ptr[j + 1] - b_ptr[j] > m:
            continue
        inside = True
        gain = -V[j]
        for e in range(b_ptr[j], b_ptr[j + 1]):
            k = position[b_idx[e]]
            if k < 0:
                inside = False
                break
            gain += b_val[e] * cost[k]
        if inside and gain > COST * scale:
            usable[n] = j
            n += 1
    if n > 0 and pivots > 0:
        _pivot(basis, cost, x, usable[:n], V, corner, t_idx, b_ptr, b_idx, b_val, position, pivots, scale)
        residual = t_val.copy()
        for k in range(m):
            j = basis[k]
            for e in range(b_ptr[j], b_ptr[j + 1]):
                residual[position[b_idx[e]]] -= x[k] * b_val[e]
        worst = 0.0
        for k in range(m):
            worst = max(worst, abs(residual[k]))
        if worst > RESIDUAL:
            for k in range(m):
                basis[k] = corner + t_idx[k]
                x[k] = t_val[k]
    value = 0.0
    for k in range(m):
        value += x[k] * V[basis[k]]
        position[t_idx[k]] = -1
    return basis, x, value


@compiled
def _pivot(basis, cost, x, usable, V, corner, t_idx, b_ptr, b_idx, b_val, position, pivots, scale):
    """Up to `pivots` steps of the revised simplex from the corner basis, in place; x stays feasible."""
    m = basis.size
    inverse = np.eye(m)
    dual = cost.copy()
    direction = np.empty(m)
    for _ in range(pivots):
        best, entering = -COST * scale, -1
        for q in range(usable.size):
            j = usable[q]
            reduced = V[j]
            for e in range(b_ptr[j], b_ptr[j + 1]):
                reduced -= dual[position[b_idx[e]]] * b_val[e]
            if reduced < best:
                best, entering = reduced, j
        for k in range(m):
            reduced = V[corner + t_idx[k]] - dual[k]
            if reduced < best:
                best, entering = reduced, corner + t_idx[k]
        if entering < 0:
            return
        direction[:] = 0.0
        for e in range(b_ptr[entering], b_ptr[entering + 1]):
            k = position[b_idx[e]]
            for r in range(m):
                direction[r] += inverse[r, k] * b_val[e]
        leaving, theta = -1, np.inf
        for r in range(m):
            if direction[r] > PIVOT:
                ratio = x[r] / direction[r]
                if ratio < theta or (ratio == theta and direction[r] > direction[leaving]):
                    leaving, theta = r, ratio
        if leaving < 0:
            return
        for r in range(m):
            x[r] = max(x[r] - theta * direction[r], 0.0)
        x[leaving] = theta
        pivot = direction[leaving]
        for k in range(m):
            inverse[leaving, k] /= pivot
            dual[k] += best * inverse[leaving, k]
        for r in range(m):
            if r != leaving and direction[r] != 0.0:
                for k in range(m):
                    inverse[r, k] -= direction[r] * inverse[leaving, k]
        basis[leaving] = entering
        cost[leaving] = V[entering]
