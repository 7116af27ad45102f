"""Compiled rollouts: many episodes of a model and an agent, step by step; imports jax and pomdp's tables.

One step of one episode takes one threefry block of the stream DYNAMICS: the first word draws the next
state, the second the observation. All draws compare integers, so states, actions and observations of an
episode are the same on every device and in every batch (for a Greedy agent: on one kind of device; its
belief is float).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pomdp.agents import Agent, draw_lanes, take
from pomdp.alias import AliasTable
from pomdp.model import POMDP, ModelError
from pomdp.rational import RationalMatrix
from pomdp.rng import ACTION, DYNAMICS, START, WIDE, block

# Events are bits of one word per (action, state) and one per observation.
MAX_EVENTS = 32
# Twice as fast on cores with 512-bit vectors, harmless on others.
CPU_OPTIONS = {"xla_cpu_prefer_vector_width": 512}


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["start", "transition", "observation", "reward"],
    meta_fields=["states"],
)
@dataclass(frozen=True, eq=False)
class World:
    """A model's tables: `transition` and `observation` have a row a * S + s for each action and state.

    `observation`'s row belongs to the state reached. `reward` float32 `[A * S]`: expected immediate reward.
    """

    start: AliasTable
    transition: AliasTable
    observation: AliasTable
    reward: Array
    states: int

    @classmethod
    def of(cls, model: POMDP) -> World:
        """The tables of `model`, from its exact numbers; ModelError where they would be too large."""
        if model.num_actions * model.num_states >= 2**31:
            raise ModelError("the model has more action-state pairs than 32-bit indices")
        return cls(
            start=AliasTable.build(RationalMatrix.from_rows([model.exact.start], model.num_states)),
            transition=AliasTable.build(_stacked(model.exact.T)),
            observation=AliasTable.build(_stacked(model.exact.Z)),
            reward=jnp.asarray(model.R.ravel(), dtype=jnp.float32),
            states=model.num_states,
        )

    @property
    def wide(self) -> bool:
        """Whether a step takes a second block."""
        return self.transition.wide or self.observation.wide


def _stacked(matrices: tuple[RationalMatrix, ...]) -> RationalMatrix:
    """One matrix with the rows of all."""
    ends = np.cumsum([0] + [len(m.indices) for m in matrices])
    indptr = np.concatenate([[0]] + [m.indptr[1:] + end for m, end in zip(matrices, ends)])
    return RationalMatrix(
        (sum(m.shape[0] for m in matrices), matrices[0].shape[1]),
        indptr,
        *(
            np.concatenate([getattr(m, n) for m in matrices])
            for n in ("indices", "numerators", "denominators")
        ),
    )


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["pairs", "observations"], meta_fields=["kinds"]
)
@dataclass(frozen=True, eq=False)
class Events:
    """What is counted along the way: bit i of a word says whether event i happens.

    `pairs` uint32 `[A * S]` for events of (action, state before it), `observations` uint32 `[O]`. `kinds`:
    for each event in order whether it is one of observations, and its bit.
    """

    pairs: Array
    observations: Array
    kinds: tuple[tuple[bool, int], ...]

    @classmethod
    def of(cls, masks: list[np.ndarray], model: POMDP) -> Events:
        """From boolean masks `[A, S]` or `[O]`, at most 32 of each."""
        pairs = np.zeros(model.num_actions * model.num_states, dtype=np.uint32)
        observations = np.zeros(model.num_observations, dtype=np.uint32)
        kinds: list[tuple[bool, int]] = []
        for mask in masks:
            seen = mask.ndim == 1
            bit = sum(kind == seen for kind, _ in kinds)
            word = observations if seen else pairs
            word |= mask.ravel().astype(np.uint32) << np.uint32(bit)
            kinds.append((seen, bit))
        return cls(jnp.asarray(pairs), jnp.asarray(observations), tuple(kinds))

    def add(self, counts: tuple[Array, ...], pair: Array, observation: Array) -> tuple[Array, ...]:
        """The counts after one step."""
        if not self.kinds:
            return counts
        before, after = take(self.pairs, pair), take(self.observations, observation)
        return tuple(
            count + (((after if seen else before) >> np.uint32(bit)) & np.uint32(1))
            for count, (seen, bit) in zip(counts, self.kinds)
        )


def _words(world: World, agent: Agent, seed: Array, episodes: Array, step: Array) -> tuple[Any, Any, Any]:
    """Words of one step: dynamics, action and wide rows, as many as are read."""
    dynamics = block(seed, jnp.uint32(DYNAMICS), episodes, step)
    action = block(seed, jnp.uint32(ACTION), episodes, step)[: agent.draws] if agent.draws else ()
    wide = block(seed, jnp.uint32(WIDE), episodes, step) if world.wide else (None, None)
    return dynamics, action, wide


def _begin(world: World, agent: Agent, seed: Array, episodes: Array) -> tuple[Any, Any, Array]:
    """Words of step 0, memory and state before it."""
    word, second = block(seed, jnp.uint32(START), episodes, jnp.uint32(0))
    state = draw_lanes(world.start, jnp.zeros_like(episodes), word, second)
    return _words(world, agent, seed, episodes, jnp.uint32(0)), agent.begin(episodes.shape[0]), state


def _step(world: World, agent: Agent, words: Any, memory: Any, state: Array) -> tuple[Any, ...]:
    """Pair a * S + s, action, next state, observation and next memory."""
    (first, second), action_words, (wide_first, wide_second) = words
    action = agent.choose(memory, action_words)
    base = action * np.uint32(world.states)
    following = draw_lanes(world.transition, base + state, first, wide_first)
    observation = draw_lanes(world.observation, base + following, second, wide_second)
    return base + state, action, following, observation, agent.update(memory, action, observation)


def _returns(
    world: World, agent: Agent, events: Events, weights: Array, seed: Array, episodes: Array
) -> tuple[Array, tuple[Array, ...]]:
    """Return float32 `[lanes]` of each episode, and its counts of events uint32 `[lanes]`.

    The sum is compensated (Kahan), so its error is one float32 rounding of the total and one of each reward.
    """

    def step(carry: Any, at: tuple[Array, Array]) -> tuple[Any, None]:
        words, memory, state, total, lost, counts = carry
        number, weight = at
        pair, _, following, observation, memory = _step(world, agent, words, memory, state)
        reward = weight * take(world.reward, pair) - lost
        higher = total + reward
        lost = (higher - total) - reward
        # The next step's words are part of the carry: XLA would otherwise compute them once for every use.
        words = _words(world, agent, seed, episodes, number + np.uint32(1))
        return (words, memory, following, higher, lost, events.add(counts, pair, observation)), None

    zero = jnp.zeros(episodes.shape, dtype=jnp.float32)
    none = tuple(jnp.zeros_like(episodes) for _ in events.kinds)
    steps = jnp.arange(weights.shape[0], dtype=jnp.uint32)
    carry = (*_begin(world, agent, seed, episodes), zero, zero, none)
    (_, _, _, total, _, counts), _ = lax.scan(step, carry, (steps, weights))
    return total, counts


def _batch(
    world: World,
    agent: Agent,
    events: Events,
    weights: Array,
    seed: Array,
    first: Array,
    chunks: Array,
    lanes: int,
    capacity: int,
) -> tuple[Array, tuple[Array, ...]]:
    """Returns float32 `[capacity, lanes]` and counts of episodes `first`, ... in the first `chunks` rows."""

    def chunk(i: Array, out: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
        offset = i.astype(jnp.uint32) * np.uint32(lanes)
        episodes = first + offset + jnp.arange(lanes, dtype=jnp.uint32)
        rows = _returns(world, agent, events, weights, seed, episodes)
        return jax.tree.map(lambda table, row: table.at[i].set(row), out, rows)

    empty = jnp.zeros((capacity, lanes), dtype=jnp.float32)
    none = tuple(jnp.zeros((capacity, lanes), dtype=jnp.uint32) for _ in events.kinds)
    return lax.fori_loop(jnp.int32(0), chunks, chunk, (empty, none))


_STATIC = ("lanes", "capacity")
_batch_cpu = jax.jit(_batch, static_argnames=_STATIC, compiler_options=CPU_OPTIONS)
_batch_other = jax.jit(_batch, static_argnames=_STATIC)


def batch(device: Any, *arguments: Any, lanes: int, capacity: int) -> tuple[Array, tuple[Array, ...]]:
    """`_batch` compiled for `device`, on which the tables already lie."""
    compiled = _batch_cpu if device.platform == "cpu" else _batch_other
    return compiled(*arguments, lanes=lanes, capacity=capacity)


@functools.partial(jax.jit, static_argnames="steps")
def paths(
    world: World, agent: Agent, seed: Array, episodes: Array, steps: int
) -> tuple[Array, Array, Array, Array]:
    """Start states `[lanes]`, and actions, next states and observations `[steps, lanes]`, all uint32."""

    def step(carry: Any, number: Array) -> tuple[Any, tuple[Array, Array, Array]]:
        words, memory, state = carry
        _, action, following, observation, memory = _step(world, agent, words, memory, state)
        words = _words(world, agent, seed, episodes, number + np.uint32(1))
        return (words, memory, following), (action, following, observation)

    carry = _begin(world, agent, seed, episodes)
    _, (actions, states, observations) = lax.scan(step, carry, jnp.arange(steps, dtype=jnp.uint32))
    return carry[2], actions, states, observations
