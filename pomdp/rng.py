"""Counter-based random words: a pure function of (seed, stream, episode, step); imports only numpy.

Threefry-2x32 with 20 rounds, key (seed, stream), counter (episode, step). No state is carried from one draw
to the next, so any single episode can be drawn again alone, on any device and in any engine. The same lines
serve numpy and JAX: they use only `+ ^ << >> |` on arrays of uint32, where both wrap around.
Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

Words = TypeVar("Words")
"""A numpy or JAX array of uint32."""

LIMIT = 2**32

# One stream for each kind of draw: whether a policy draws its actions leaves the world's draws alone.
DYNAMICS, ACTION, START, WIDE = 0, 1, 2, 3
"""Streams: next state and observation; action; start state; thresholds of alias tables with wide rows."""

PARITY = np.uint32(0x1BD11BDA)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


class SeedError(ValueError):
    """A seed, stream, episode or step that is no 32-bit number; the message shows a right one."""


def block(seed: Words, stream: Words, episode: Words, step: Words) -> tuple[Words, Words]:
    """The two words of one threefry-2x32-20 block; all arguments uint32 arrays that broadcast together.

    In numpy at least one argument must be an array of one axis or more: numpy warns of wrap-around in
    scalars. `words` takes care of that and of plain integers.
    """
    x0: Any = episode
    x1: Any = step
    k0: Any = seed
    k1: Any = stream
    keys = (k0, k1, k0 ^ k1 ^ PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ _rotated(x1, rotation)
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def _rotated(word: Any, places: int) -> Any:
    return (word << np.uint32(places)) | (word >> np.uint32(32 - places))


def words(seed: Any, stream: Any, episode: Any, step: Any) -> tuple[np.ndarray, np.ndarray]:
    """The two words of each block in numpy; arguments integers or integer arrays that broadcast together.

    Raises SeedError where one is negative or above 2^32 - 1.
    """
    names = ("seed", "stream", "episode", "step")
    given = [as_word(value, name) for value, name in zip((seed, stream, episode, step), names)]
    shape = np.broadcast_shapes(*(array.shape for array in given))
    first, second = block(*(np.atleast_1d(array) for array in given))
    return first.reshape(shape), second.reshape(shape)


def as_word(value: Any, name: str) -> np.ndarray:
    """`value` as uint32, an integer or an array of them; SeedError naming `name` where it does not fit."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or (array.size and (int(array.min()) < 0 or int(array.max()) >= LIMIT)):
        shown = repr(value) if array.ndim == 0 else f"an array of {array.dtype}"
        raise SeedError(f"{name} {shown} is not an integer from 0 to {LIMIT - 1}; give one such as 0")
    return array.astype(np.uint32)
