"""Bounds to start from: the fast informed bound from above, blind policies from below; imports pomdp.bounds.flat.

Both are closed first: a bound cut off before it converged spoils the search that starts from it (solver design,
section 2).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from pomdp.bounds.flat import Flat
from pomdp.compiled import compiled

SWEEPS = 200  # policy improvements; Howard's iteration needs a handful
SLACK = 1e-11  # relative widening against rounding of the linear solves


def fast_informed_bound(flat: Flat) -> np.ndarray:
    """Q `[layers, S, A]` with Q(s,a) >= Q*(corner s, a) that satisfies its own inequality.

    H x(s,a) = R(s,a) + gamma sum_o max_a' sum_s' T(s'|s,a) Z(o|s',a) x(s',a'), a contraction whose fixed point bounds
    Q* because Q*(., a') is convex. Discounted: Howard's policy iteration, then x + delta/(1-gamma) with
    delta = max(Hx - x, 0), since its iterates come from below. Horizon: the exact recursion.
    """
    choice = np.zeros((flat.S, flat.A, flat.O), dtype=np.int64)
    out = np.zeros((flat.layers, flat.S, flat.A))
    if not flat.discounted:
        following = np.zeros((flat.S, flat.A))
        for t in range(flat.layers - 1, -1, -1):
            out[t] = informed_backup(flat, following, choice)
            following = out[t]
        return out
    x = np.zeros((flat.S, flat.A))
    informed_backup(flat, x, choice)
    for _ in range(SWEEPS):
        x = _evaluate_choice(flat, choice)
        before = choice.copy()
        updated = informed_backup(flat, x, choice)
        if np.array_equal(before, choice) or np.max(np.abs(updated - x)) <= 1e-12 * (1 + np.max(np.abs(x))):
            break
    delta = max(float(np.max(informed_backup(flat, x, choice) - x)), 0.0)
    out[0] = x + (delta + SLACK * (1 - flat.gamma) * (1 + np.max(np.abs(x)))) / (1 - flat.gamma)
    return out


@compiled
def informed_backup(flat, x, choice):
    """H x `[S, A]`; `choice` `[S, A, O]` receives the maximising a' for each (s, a, o)."""
    S, A, O = flat.S, flat.A, flat.O
    out = np.empty((S, A))
    table = np.zeros((O, A))
    touched = np.zeros(O, dtype=np.int64)
    for s in range(S):
        for a in range(A):
            n = 0
            for e in range(flat.t_ptr[a * S + s], flat.t_ptr[a * S + s + 1]):
                following = flat.t_col[e]
                for f in range(flat.z_ptr[a * S + following], flat.z_ptr[a * S + following + 1]):
                    o = flat.z_col[f]
                    p = flat.t_val[e] * flat.z_val[f]
                    new = True
                    for q in range(n):
                        if touched[q] == o:
                            new = False
                            break
                    if new:
                        touched[n] = o
                        n += 1
                        table[o, :] = 0.0
                    for b in range(A):
                        table[o, b] += p * x[following, b]
            total = flat.R[a, s]
            for q in range(n):
                o = touched[q]
                best = choice[s, a, o]  # ties keep the old choice, so that the iteration ends
                for b in range(A):
                    if table[o, b] > table[o, best] + 1e-13 * abs(table[o, best]):
                        best = b
                choice[s, a, o] = best
                total += flat.gamma * table[o, best]
            out[s, a] = total
    return out


def _evaluate_choice(flat: Flat, choice: np.ndarray) -> np.ndarray:
    """The x `[S, A]` that solves x = R + gamma P_choice x."""
    S, A = flat.S, flat.A
    rows, columns, values = _choice_matrix(flat, choice)
    matrix = csr_array((values, (rows, columns)), shape=(S * A, S * A))
    system = (eye_array(S * A) - flat.gamma * matrix).tocsc()
    return splu(system).solve(np.ascontiguousarray(flat.R.T).ravel()).reshape(S, A)


@compiled
def _choice_matrix(flat, choice):
    """Coordinates of P_choice over pairs (s, a) numbered s*A + a."""
    S, A = flat.S, flat.A
    count = 0
    for row in range(A * S):
        for e in range(flat.t_ptr[row], flat.t_ptr[row + 1]):
            r = (row // S) * S + flat.t_col[e]
            count += flat.z_ptr[r + 1] - flat.z_ptr[r]
    rows = np.empty(count, dtype=np.int64)
    columns = np.empty(count, dtype=np.int64)
    values = np.empty(count)
    n = 0
    for a in range(A):
        for s in range(S):
            for e in range(flat.t_ptr[a * S + s], flat.t_ptr[a * S + s + 1]):
                following = flat.t_col[e]
                for f in range(flat.z_ptr[a * S + following], flat.z_ptr[a * S + following + 1]):
                    rows[n] = s * A + a
                    columns[n] = following * A + choice[s, a, flat.z_col[f]]
                    values[n] = flat.t_val[e] * flat.z_val[f]
                    n += 1
    return rows, columns, values


def blind_values(flat: Flat) -> np.ndarray:
    """Alpha vectors `[layers, A, S]` of the policies that repeat one action for ever, each a valid lower bound.

    Discounted: the linear solve, lowered by its residual over 1-gamma. Horizon: the recursion.
    """
    out = np.zeros((flat.layers, flat.A, flat.S))
    for a in range(flat.A):
        span = slice(a * flat.S, (a + 1) * flat.S + 1)
        start, stop = flat.t_ptr[a * flat.S], flat.t_ptr[(a + 1) * flat.S]
        entries = flat.t_val[start:stop], flat.t_col[start:stop], flat.t_ptr[span] - start
        T = csr_array(entries, shape=(flat.S, flat.S))
        if flat.discounted:
            v = splu((eye_array(flat.S) - flat.gamma * T).tocsc()).solve(flat.R[a])
            residual = min(float(np.min(flat.R[a] + flat.gamma * (T @ v) - v)), 0.0)
            out[0, a] = v + residual / (1 - flat.gamma)
        else:
            v = np.zeros(flat.S)
            for t in range(flat.layers - 1, -1, -1):
                v = flat.R[a] + flat.gamma * (T @ v)
                out[t, a] = v
    return out
