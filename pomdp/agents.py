"""Policies as the simulator runs them: memory, choice and update for a batch of lanes; imports jax,
pomdp.policy.

An agent is a frozen pytree with the same three methods. `begin(lanes)` is the memory before the first action;
`choose(memory, words)` the action uint32 `[lanes]`; `update(memory, action, observation)` the next memory.
`words` are the first `draws` words, at most two, of the lane's block of the stream ACTION at this step.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.sparse import csr_array, vstack

from pomdp.alias import AliasTable, draw
from pomdp.model import POMDP, ModelError
from pomdp.policy import AlphaVectors, Controller, Policy, as_controller, check_fits

# Beliefs are dense, so few lanes at a time; fixed, because float sums may depend on the size of a batch.
BELIEF_LANES = 256
BELIEF_ENTRIES = 2**22
# A dense product costs about as much per entry as this many scattered additions save.
DENSE_ENTRIES, DENSE_FACTOR = 2**16, 32

Words = tuple[Array, ...]


def take(array: Array, index: Array) -> Array:
    """`array[index]` where every index is known to lie inside."""
    return array.at[index].get(mode="promise_in_bounds")


def draw_lanes(table: AliasTable, row: Array, word: Array, second: Array | None = None) -> Array:
    """`pomdp.alias.draw` in JAX."""
    return draw(table, row, word, second, take, jnp.where)


jax.tree_util.register_dataclass(
    AliasTable,
    data_fields=["entries", "aliases", "outcomes", "offsets", "row_bits"],
    meta_fields=["bits"],
)


class Agent(Protocol):
    """What the simulator asks of a policy; see the head of this file."""

    @property
    def draws(self) -> int:
        """How many words `choose` needs."""

    @property
    def lanes(self) -> int | None:
        """The only batch size it runs with, None for any."""

    def begin(self, lanes: int) -> Any:
        """Memory before the first action."""

    def choose(self, memory: Any, words: Words) -> Array:
        """Action uint32 `[lanes]`."""

    def update(self, memory: Any, action: Array, observation: Array) -> Any:
        """Memory after the action and what was observed."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["follow", "start"],
    meta_fields=["action_bits", "observations"],
)
@dataclass(frozen=True, eq=False)
class Deterministic:
    """A controller whose nodes each have one action; memory is node * 2^action_bits + action, one word.

    `follow` uint32 `[K * O]`: the next memory, so that node and action come out of a single look-up.
    """

    follow: Array
    start: Array
    action_bits: int
    observations: int

    draws = 0
    lanes = None

    def begin(self, lanes: int) -> Array:
        """Start node and its action in every lane."""
        return jnp.full(lanes, self.start)

    def choose(self, memory: Array, words: Words) -> Array:
        """The action that is part of the memory."""
        return memory & np.uint32((1 << self.action_bits) - 1)

    def update(self, memory: Array, action: Array, observation: Array) -> Array:
        """The next node and its action."""
        node = memory >> np.uint32(self.action_bits)
        return take(self.follow, node * np.uint32(self.observations) + observation)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["act", "successor", "start"],
    meta_fields=["actions", "observations"],
)
@dataclass(frozen=True, eq=False)
class Stochastic:
    """A controller that draws its actions from an alias table with a row a node; memory is the node.

    `successor` uint32 `[K * A * O]`.
    """

    act: AliasTable
    successor: Array
    start: Array
    actions: int
    observations: int

    lanes = None

    @property
    def draws(self) -> int:
        """Two words where the table is wide: a carried word costs time even if it is never read."""
        return 2 if self.act.wide else 1

    def begin(self, lanes: int) -> Array:
        """Start node in every lane."""
        return jnp.full(lanes, self.start)

    def choose(self, memory: Array, words: Words) -> Array:
        """An action drawn from the node's row."""
        return draw_lanes(self.act, memory, *words)

    def update(self, memory: Array, action: Array, observation: Array) -> Array:
        """The next node."""
        pair = memory * np.uint32(self.actions) + action
        return take(self.successor, pair * np.uint32(self.observations) + observation)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["vectors", "actions", "start", "moves", "entries", "sees"],
    meta_fields=["observations"],
)
@dataclass(frozen=True, eq=False)
class Greedy:
    """Alpha vectors on a belief that is filtered in float32; memory is the belief `[lanes, S]`.

    Far slower than a controller: a step costs lanes * A * S^2, or lanes times the entries of all T where
    those are few. `vectors` `[S, K]`, `actions` uint32 `[K]`. `moves` `[S, A * S]` dense T, or None and
    then `entries` = (source state, place a * S + s', probability) of all T, places ascending. `sees` `[A *
    O, S]`. Where float32 leaves an observation no probability, the predicted belief stands without it.
    """

    vectors: Array
    actions: Array
    start: Array
    moves: Array | None
    entries: tuple[Array, Array, Array] | None
    sees: Array
    observations: int

    draws = 0

    @property
    def lanes(self) -> int:
        """A batch that fits the memory, a function of the model alone."""
        states = self.start.shape[0]
        width = self.sees.shape[0] // self.observations * states
        if self.entries is not None:
            width += self.entries[0].shape[0]
        return int(np.clip(1 << (BELIEF_ENTRIES // width).bit_length(), 8, BELIEF_LANES))

    def begin(self, lanes: int) -> Array:
        """The model's start in every lane."""
        return jnp.tile(self.start, (lanes, 1))

    def choose(self, memory: Array, words: Words) -> Array:
        """The action of the first vector with the largest product."""
        scores = jnp.matmul(memory, self.vectors, precision=jax.lax.Precision.HIGHEST)
        return take(self.actions, jnp.argmax(scores, axis=1))

    def update(self, memory: Array, action: Array, observation: Array) -> Array:
        """Bayes' rule, normalised."""
        lanes, states = memory.shape
        if self.moves is not None:
            product = jnp.matmul(memory, self.moves, precision=jax.lax.Precision.HIGHEST)
            following = product.reshape(lanes, -1, states)
        else:
            assert self.entries is not None
            source, place, probability = self.entries
            size = self.sees.shape[0] // self.observations * states
            flow = memory.T[source] * probability[:, None]
            product = jax.ops.segment_sum(flow, place, size, indices_are_sorted=True)
            following = product.reshape(-1, states, lanes).transpose(2, 0, 1)
        predicted = jnp.take_along_axis(following, action[:, None, None].astype(jnp.int32), axis=1)[:, 0]
        joint = predicted * take(self.sees, action * np.uint32(self.observations) + observation)
        kept = jnp.where(jnp.sum(joint, axis=1, keepdims=True) > 0, joint, predicted)
        return kept / jnp.sum(kept, axis=1, keepdims=True)


def agent_for(policy: Policy | Agent, model: POMDP, steps: int) -> Agent:
    """The agent that acts as `policy` does for `steps` steps; ModelError where it does not fit the model.

    What is an agent already, of whatever make, is taken as it is.
    """
    if not isinstance(policy, Policy):
        return policy
    if isinstance(policy, AlphaVectors):
        check_fits(policy, model)
        return _greedy(policy, model)
    controller = as_controller(policy, model, steps)
    certain = bool(np.all(np.max(controller.act, axis=1) == 1.0))
    return _deterministic(controller) if certain else _stochastic(controller)


def _deterministic(controller: Controller) -> Deterministic:
    K, A, O = controller.successor.shape
    action = np.argmax(controller.act, axis=1)
    bits = (A - 1).bit_length()
    _check_size(K << bits, K * O)
    memory = (np.arange(K) << bits) | action
    follow = memory[controller.successor[np.arange(K), action]]
    return Deterministic(
        follow=jnp.asarray(follow.ravel(), dtype=jnp.uint32),
        start=jnp.asarray(memory[controller.start], dtype=jnp.uint32),
        action_bits=bits,
        observations=O,
    )


def _stochastic(controller: Controller) -> Stochastic:
    K, A, O = controller.successor.shape
    _check_size(K, K * A * O)
    return Stochastic(
        act=AliasTable.build(csr_array(controller.act)),
        successor=jnp.asarray(controller.successor.ravel(), dtype=jnp.uint32),
        start=jnp.asarray(controller.start, dtype=jnp.uint32),
        actions=A,
        observations=O,
    )


def _check_size(memories: int, entries: int) -> None:
    """ModelError where 32-bit words cannot count the controller's memories or its table's entries."""
    if memories >= 2**32 or entries >= 2**31:
        raise ModelError(f"a controller with {entries} successors is too large to simulate; merge its nodes")


def _greedy(policy: AlphaVectors, model: POMDP) -> Greedy:
    A, S, O = model.num_actions, model.num_states, model.num_observations
    stored = sum(T.nnz for T in model.T)
    moves, entries = None, None
    if A * S * S <= max(DENSE_ENTRIES, DENSE_FACTOR * stored):
        moves = jnp.asarray(np.hstack([T.toarray() for T in model.T]), dtype=jnp.float32)
    else:
        backward = vstack([T.T for T in model.T], format="csr")
        place = np.repeat(np.arange(A * S, dtype=np.int32), np.diff(backward.indptr))
        source = backward.indices.astype(np.int32)
        entries = (jnp.asarray(source), jnp.asarray(place), jnp.asarray(backward.data, dtype=jnp.float32))
    sees = np.stack([Z.toarray().T for Z in model.Z]).reshape(A * O, S)
    return Greedy(
        vectors=jnp.asarray(policy.vectors.T, dtype=jnp.float32),
        actions=jnp.asarray(policy.actions, dtype=jnp.uint32),
        start=jnp.asarray(model.start, dtype=jnp.float32),
        moves=moves,
        entries=entries,
        sees=jnp.asarray(sees, dtype=jnp.float32),
        observations=O,
    )
