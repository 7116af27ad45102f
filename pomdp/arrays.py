"""Arrays checked at the door: read-only copies, finite, rows summing to 1; imports pomdp.model.

`place` is what an error calls the array; where it holds `{}`, the number of the offending row goes there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pomdp.model import ModelError

# Probabilities come from JSON, softmaxes and divisions; rounding stays far below this, mistakes far above.
SUM_TOLERANCE = 1e-9


def is_index(value: Any) -> bool:
    """Whether `value` is an integer and not a truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def short(value: Any) -> str:
    """`value` as an error shows it: at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def frozen(array: np.ndarray) -> np.ndarray:
    """`array` itself, made read-only."""
    array.setflags(write=False)
    return array


def indices(values: Iterable[int], place: str) -> tuple[int, ...]:
    """A tuple of non-negative integers; ModelError naming the first that is none."""
    found = tuple(values)
    for i, value in enumerate(found):
        if not is_index(value) or value < 0:
            raise ModelError(f"{place}[{i}] is {short(value)}, not an index such as 0")
    return tuple(int(value) for value in found)


def integers(values: Any, rank: int, place: str) -> np.ndarray:
    """A read-only int64 copy with `rank` axes, not empty; ModelError otherwise."""
    array = np.asarray(values)
    if array.ndim != rank or not array.size or array.dtype.kind not in "iu":
        found = f"{array.dtype} of shape {array.shape}"
        raise ModelError(f"{place} must be a non-empty array of integers with {rank} axes, found {found}")
    return frozen(array.astype(np.int64))


def reals(values: Any, rank: int, place: str) -> np.ndarray:
    """A read-only float64 copy with `rank` axes, not empty, every entry finite; ModelError otherwise."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{place} must be an array of numbers with {rank} axes") from None
    if array.ndim != rank or not array.size:
        raise ModelError(f"{place} must be a non-empty array with {rank} axes, found shape {array.shape}")
    if not np.all(np.isfinite(array)):
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ModelError(
            f"{place} has the entry {array[tuple(where)]} at {where}; every entry must be finite"
        )
    return frozen(array)


def distributions(values: Any, rank: int, place: str) -> np.ndarray:
    """A read-only float64 copy whose last axis holds distributions; ModelError naming the row."""
    array = reals(values, rank, place.replace("[{}]", ""))
    rows = np.atleast_2d(array)
    negative = np.argwhere(rows < 0)
    if len(negative):
        i, j = negative[0].tolist()
        raise ModelError(
            f"{place.format(i)} has the negative probability {rows[i, j]:g} at {j}; give one from 0 to 1"
        )
    sums = rows.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if len(wrong):
        i = int(wrong[0])
        example = (
            np.round(rows[i] / sums[i], 4).tolist()[:6]
            if sums[i]
            else [1.0] + [0.0] * (min(rows.shape[1], 6) - 1)
        )
        raise ModelError(f"{place.format(i)} sums to {sums[i]:.12g}, not 1; a right one is {example}")
    return array
