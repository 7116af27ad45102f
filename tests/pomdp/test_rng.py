"""Random words: the published vectors, JAX's own primitive, and that every counter has its own block."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32

from pomdp.rng import ACTION, DYNAMICS, LIMIT, START, WIDE, SeedError, block, words

TOP = LIMIT - 1
# key, counter and block of threefry2x32-20 in the vectors that the Random123 library is distributed with
PUBLISHED = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((TOP, TOP), (TOP, TOP), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("key", "counter", "expected"), PUBLISHED)
def test_published_vectors(key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]) -> None:
    assert tuple(int(word) for word in words(*key, *counter)) == expected
    assert tuple(int(word) for word in block(*map(jnp.uint32, (*key, *counter)))) == expected


def test_blocks_equal_those_of_the_primitive_of_jax() -> None:
    rng = np.random.default_rng(0)
    for key in rng.integers(0, LIMIT, size=(20, 2)):
        counters = rng.integers(0, LIMIT, size=(2, 50))
        # The primitive takes the first halves of all counters before the second halves.
        theirs = np.asarray(threefry_2x32(jnp.asarray(key, jnp.uint32), jnp.asarray(counters, jnp.uint32)))
        assert np.array_equal(np.stack(words(*key, *counters)), theirs)


def test_numpy_and_jax_give_the_same_words_over_shapes_that_broadcast() -> None:
    episodes, steps = np.arange(7, dtype=np.uint32)[:, None], np.arange(5, dtype=np.uint32)[None, :]
    ours = words(3, ACTION, episodes, steps)
    theirs = block(jnp.uint32(3), jnp.uint32(ACTION), jnp.asarray(episodes), jnp.asarray(steps))
    assert ours[0].shape == (7, 5)
    for one, other in zip(ours, theirs, strict=True):
        assert other.dtype == jnp.uint32 and np.array_equal(one, other)
        assert int(words(3, ACTION, 2, 4)[0]) == int(ours[0][2, 4])


def test_no_two_counters_share_a_block_and_no_two_streams_do() -> None:
    episodes, steps = np.meshgrid(np.arange(300), np.arange(300))
    found = set()
    for seed in (0, 1):
        for stream in (DYNAMICS, ACTION, START, WIDE):
            first, second = words(seed, stream, episodes.ravel(), steps.ravel())
            found.update((first.astype(np.uint64) << np.uint64(32) | second).tolist())
    # Within a key blocks cannot collide; between 8 keys of 90000 the expected number is 1e-8.
    assert len(found) == 8 * 300 * 300


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("shift", [0, 8, 16, 24])
def test_every_byte_is_uniform_along_episodes_and_along_steps(which: int, shift: int) -> None:
    for counters in ((np.arange(2**16), 5), (5, np.arange(2**16))):
        drawn = words(1, DYNAMICS, *counters)[which] >> np.uint32(shift) & np.uint32(255)
        counts = np.bincount(drawn.astype(np.int64), minlength=256)
        chi_squared = float(np.sum((counts - 256) ** 2) / 256)
        # 255 degrees of freedom, standard deviation 22.6: five of them to either side.
        assert 142 < chi_squared < 368


@pytest.mark.parametrize("value", [-1, LIMIT, 1.5, True])
@pytest.mark.parametrize("place", range(4))
def test_what_is_no_32_bit_number_is_refused_by_name(place: int, value: object) -> None:
    arguments: list[object] = [0, 0, 0, 0]
    arguments[place] = value
    with pytest.raises(SeedError, match=("seed", "stream", "episode", "step")[place]):
        words(*arguments)
