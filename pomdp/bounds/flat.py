"""A model and a criterion as flat float arrays for compiled loops; imports the model and pomdp.compiled.

Everything in `pomdp.bounds` but the certificates works on this form. A discounted problem has one *layer*, whose
successor is itself; a horizon n has layers 0..n-1, one a stage, and after the last one every value is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from pomdp.compiled import compiled
from pomdp.criterion import Criterion
from pomdp.model import POMDP


class Flat(NamedTuple):
    """The arrays. Row a*S + s of T is T[a][s, .], row a*S + s' of Z is Z[a][s', .], both CSR.

    `t_ptr`, `z_ptr` int64 `[A*S + 1]`, columns int32, values float64; `R` `[A, S]`; `layers` is 1 when discounted.
    """

    S: int
    A: int
    O: int
    t_ptr: np.ndarray
    t_col: np.ndarray
    t_val: np.ndarray
    z_ptr: np.ndarray
    z_col: np.ndarray
    z_val: np.ndarray
    R: np.ndarray
    gamma: float
    layers: int
    discounted: bool


def flatten(model: POMDP, criterion: Criterion) -> Flat:
    """The flat form of `model` under `criterion`."""
    t_ptr, t_col, t_val = _stack(model.T)
    z_ptr, z_col, z_val = _stack(model.Z)
    discounted = criterion.horizon is None
    return Flat(
        model.num_states,
        model.num_actions,
        model.num_observations,
        t_ptr,
        t_col,
        t_val,
        z_ptr,
        z_col,
        z_val,
        np.ascontiguousarray(model.R),
        criterion.gamma,
        1 if discounted else int(criterion.horizon or 1),
        discounted,
    )


def _stack(matrices: Sequence[csr_array]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR matrices on top of each other."""
    ptr = [np.zeros(1, dtype=np.int64)]
    offset = 0
    for m in matrices:
        ptr.append(m.indptr[1:].astype(np.int64) + offset)
        offset += m.nnz
    columns = np.concatenate([m.indices for m in matrices]).astype(np.int32)
    return np.concatenate(ptr), columns, np.concatenate([m.data for m in matrices])


@compiled
def successors(flat, b_idx, b_val, a, predicted, mark):
    """All positive-probability successors of a sparse belief under action a.

    `predicted` float `[S]` and `mark` int64 `[max(S, O)]` are scratch, zero on entry and on return. Returns
    (observations, probabilities, pointers, states, values): child k lives on states[pointers[k]:pointers[k+1]],
    ascending, with normalised values.
    """
    S = flat.S
    touched = np.empty(S, dtype=np.int64)
    n = 0
    for k in range(b_idx.size):
        row = a * S + b_idx[k]
        for e in range(flat.t_ptr[row], flat.t_ptr[row + 1]):
            s = flat.t_col[e]
            if mark[s] == 0:
                mark[s] = 1
                touched[n] = s
                n += 1
            predicted[s] += b_val[k] * flat.t_val[e]
    reached = np.sort(touched[:n])
    for k in range(n):
        mark[reached[k]] = 0
    total = 0
    for k in range(n):
        row = a * S + reached[k]
        for e in range(flat.z_ptr[row], flat.z_ptr[row + 1]):
            mark[flat.z_col[e]] += 1
            total += 1
    seen = 0
    for o in range(flat.O):
        if mark[o] > 0:
            seen += 1
    observations = np.empty(seen, dtype=np.int64)
    pointers = np.zeros(seen + 1, dtype=np.int64)
    cursor = np.empty(seen, dtype=np.int64)
    seen = 0
    for o in range(flat.O):
        if mark[o] > 0:
            observations[seen] = o
            pointers[seen + 1] = pointers[seen] + mark[o]
            cursor[seen] = pointers[seen]
            mark[o] = seen + 1
            seen += 1
    states = np.empty(total, dtype=np.int64)
    values = np.empty(total)
    probabilities = np.zeros(seen)
    for k in range(n):
        row = a * S + reached[k]
        for e in range(flat.z_ptr[row], flat.z_ptr[row + 1]):
            c = mark[flat.z_col[e]] - 1
            value = predicted[reached[k]] * flat.z_val[e]
            states[cursor[c]] = reached[k]
            values[cursor[c]] = value
            probabilities[c] += value
            cursor[c] += 1
    for k in range(n):
        predicted[reached[k]] = 0.0
    for c in range(seen):
        mark[observations[c]] = 0
        for e in range(pointers[c], pointers[c + 1]):
            values[e] /= probabilities[c]
    return observations, probabilities, pointers, states, values
