"""Draw: chance for one item of the decision set, a function of (seed, stream, item) alone; imports pomdp.rng.

Any item can be drawn again without the others, and is the same on every machine and in every Python: a stored split is
what its seed gives. Streams of the simulators are numbers from 0; those here begin at FIRST_STREAM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from pomdp.rng import words

T = TypeVar("T")

FIRST_STREAM = 64
"""The data's streams, apart from those of the simulators."""
BATCH = 64
"""Draws made at once."""


class Draw:
    """The draws of one item, one after the other."""

    def __init__(self, seed: int, stream: int, item: int) -> None:
        """Raises pomdp.rng.SeedError for what is no 32-bit number."""
        self._key = (seed, FIRST_STREAM + stream, item)
        self._block: np.ndarray = np.zeros(0)
        self._next = 0

    def uniform(self) -> float:
        """A number from 0 up to, not including, 1: 32 bits."""
        place = self._next % BATCH
        if place == 0:
            steps = np.arange(self._next, self._next + BATCH)
            self._block = words(*self._key, steps)[0] / 2.0**32
        self._next += 1
        return float(self._block[place])

    def below(self, size: int) -> int:
        """An integer from 0 up to, not including, `size`."""
        return int(self.uniform() * size)

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def happens(self, probability: float) -> bool:
        """Whether something of this probability does."""
        return self.uniform() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all alike."""
        return options[self.below(len(options))]

    def weighted(self, weights: Mapping[T, float]) -> T:
        """One of the keys, by weights that need not sum to 1."""
        left = self.uniform() * sum(weights.values())
        for option, weight in weights.items():
            left -= weight
            if left < 0:
                return option
        return option
