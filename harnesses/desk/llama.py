"""Llama: the forward pass of a Llama language model as pure functions of its weights, in JAX; imports jax and numpy.

Tokens that are read once are kept as a `Past`, which any number of continuations share. Padding stands at the end of
a row, where by the causal mask nothing before it sees it. Source: Touvron et al., LLaMA (2023); Ainslie et al., GQA
(2023); Su et al., RoFormer (2021), in the interleaved form for which gguf files order the rows of `query` and `key`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

PRECISION = "highest"
"""Products in float32 on every device; on a CPU they always are."""


class LlamaError(ValueError):
    """A shape or an array that makes no Llama, in one line."""


@dataclass(frozen=True)
class Config:
    """Sizes of a model: `heads` of queries share `kv_heads` of keys and values, in equal groups.

    context: the longest sequence it was trained on, in tokens. Raises LlamaError for sizes that do not fit together.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    context: int = 8192
    rope_base: float = 1e5
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise LlamaError(f"{field.name} is {getattr(self, field.name)}; give a size such as 576")
        if self.width % self.heads or self.size % 2:
            raise LlamaError(f"width {self.width} does not split into {self.heads} heads of an even size")
        if self.heads % self.kv_heads:
            raise LlamaError(f"{self.heads} heads cannot share {self.kv_heads} of keys and values equally")

    @property
    def size(self) -> int:
        """Numbers in a head, H."""
        return self.width // self.heads


class Blocks(NamedTuple):
    """The layers, stacked: float32, matrices as [L, out, in]. D width, H head, N heads, G of keys, F hidden."""

    attention_norm: Any  # [L, D]
    query: Any  # [L, N H, D]
    key: Any  # [L, G H, D]
    value: Any  # [L, G H, D]
    output: Any  # [L, D, N H]
    feed_norm: Any  # [L, D]
    gate: Any  # [L, F, D]
    up: Any  # [L, F, D]
    down: Any  # [L, D, F]


class Weights(NamedTuple):
    """A model's numbers: `embedding` [V, D] serves both ends; `final_norm` [D]."""

    embedding: Any
    final_norm: Any
    blocks: Blocks


class Past(NamedTuple):
    """Keys and values [L, P, G, H] of tokens read before, of which the first `length` count."""

    keys: Any
    values: Any
    length: int | Any


def shapes(config: Config) -> Weights:
    """The shape of every array."""
    c, lead = config, config.layers
    queries, keys = c.heads * c.size, c.kv_heads * c.size
    blocks = Blocks(
        (lead, c.width),
        (lead, queries, c.width),
        (lead, keys, c.width),
        (lead, keys, c.width),
        (lead, c.width, queries),
        (lead, c.width),
        (lead, c.hidden, c.width),
        (lead, c.hidden, c.width),
        (lead, c.width, c.hidden),
    )
    return Weights((c.vocabulary, c.width), (c.width,), blocks)


def checked(config: Config, weights: Weights) -> Weights:
    """The weights as float32 arrays of JAX. Raises LlamaError for an array of another shape, or with a hole."""

    def made(name: str, array: Any, shape: tuple[int, ...]) -> jax.Array:
        if np.shape(array) != shape:
            raise LlamaError(f"{name} has the shape {np.shape(array)}, not {shape}")
        found = np.asarray(array, dtype=np.float32)
        if not np.isfinite(found).all():
            raise LlamaError(f"{name} holds an entry that is no finite number")
        return jnp.asarray(found)

    wanted = shapes(config)
    blocks = (made(n, a, s) for n, a, s in zip(Blocks._fields, weights.blocks, wanted.blocks))
    return Weights(
        made("embedding", weights.embedding, wanted.embedding),
        made("final_norm", weights.final_norm, wanted.final_norm),
        Blocks(*blocks),
    )


def nothing(config: Config) -> Past:
    """The past of a sequence that begins."""
    empty = jnp.zeros((config.layers, 0, config.kv_heads, config.size), dtype=jnp.float32)
    return Past(empty, empty, 0)


@partial(jax.jit, static_argnums=0)
def extend(config: Config, weights: Weights, past: Past, tokens: jax.Array) -> tuple[jax.Array, Any, Any]:
    """Read B rows of S tokens, int32 [B, S], each after the same past.

    Returns the last layer's state [B, S, D] and the rows' keys and values [L, B, S, G, H].
    """
    c = config
    rows, steps = tokens.shape
    start = jnp.asarray(past.length, dtype=jnp.int32)
    turns = _turns(c, start + jnp.arange(steps, dtype=jnp.int32))
    before = jnp.broadcast_to(jnp.arange(past.keys.shape[1]) < start, (steps, past.keys.shape[1]))
    seen = jnp.concatenate([before, jnp.tril(jnp.ones((steps, steps), dtype=bool))], axis=1)

    def block(x: jax.Array, layer: tuple[Blocks, Any, Any]) -> tuple[jax.Array, tuple[Any, Any]]:
        w, old_keys, old_values = layer
        y = _norm(c, x, w.attention_norm)
        queries = _turned(_split(c, y @ w.query.T, c.heads), turns)
        keys = _turned(_split(c, y @ w.key.T, c.kv_heads), turns)
        values = _split(c, y @ w.value.T, c.kv_heads)
        shared = queries.reshape(rows, steps, c.kv_heads, c.heads // c.kv_heads, c.size)
        scores = jnp.concatenate(
            [
                jnp.einsum("bsgrh,pgh->bgrsp", shared, old_keys),
                jnp.einsum("bsgrh,btgh->bgrst", shared, keys),
            ],
            axis=-1,
        ) / np.float32(np.sqrt(c.size))
        share = jax.nn.softmax(jnp.where(seen[None, None, None], scores, -jnp.inf), axis=-1)
        places = old_keys.shape[0]
        mixed = jnp.einsum("bgrsp,pgh->bsgrh", share[..., :places], old_values) + jnp.einsum(
            "bgrst,btgh->bsgrh", share[..., places:], values
        )
        x = x + mixed.reshape(rows, steps, c.width) @ w.output.T
        y = _norm(c, x, w.feed_norm)
        x = x + (jax.nn.silu(y @ w.gate.T) * (y @ w.up.T)) @ w.down.T
        return x, (keys, values)

    with jax.default_matmul_precision(PRECISION):
        x, (keys, values) = jax.lax.scan(
            block, weights.embedding[tokens], (weights.blocks, past.keys, past.values)
        )
    return x, keys, values


@partial(jax.jit, static_argnums=0)
def logits(config: Config, weights: Weights, state: jax.Array) -> jax.Array:
    """The next token's logits [N, V] from the last layer's state [N, D]."""
    with jax.default_matmul_precision(PRECISION):
        return _norm(config, state, weights.final_norm) @ weights.embedding.T


@partial(jax.jit, static_argnums=0)
def next_logits(
    config: Config, weights: Weights, past: Past, tokens: jax.Array, counts: jax.Array
) -> jax.Array:
    """The logits [B, V] after the first `counts` [B] tokens, one or more, of each row [B, S]."""
    state, _, _ = extend(config, weights, past, tokens)
    return logits(config, weights, state[jnp.arange(tokens.shape[0]), counts - 1])


@partial(jax.jit, static_argnums=0)
def log_probabilities(
    config: Config, weights: Weights, past: Past, tokens: jax.Array, counts: jax.Array
) -> jax.Array:
    """For each row [B, S] the log-probability [B] of its tokens 1 to counts - 1, given the past and its token 0."""
    state, _, _ = extend(config, weights, past, tokens[:, :-1])
    rows, steps = tokens.shape[0], tokens.shape[1] - 1
    table = jax.nn.log_softmax(logits(config, weights, state.reshape(rows * steps, config.width)), axis=-1)
    found = jnp.take_along_axis(table, tokens[:, 1:].reshape(-1, 1), axis=1).reshape(rows, steps)
    counted = jnp.arange(1, steps + 1)[None, :] < counts[:, None]
    return jnp.where(counted, found, 0).sum(axis=1)


@partial(jax.jit, static_argnums=(0, 4))
def read_on(
    config: Config, weights: Weights, past: Past, tokens: jax.Array, room: int, count: jax.Array
) -> tuple[Past, jax.Array]:
    """The past after the first `count` of one row of tokens [S], with room for `room` tokens; and its last state [D].

    room: at least past.length + S, or later tokens would be written over earlier ones.
    """
    state, keys, values = extend(config, weights, past, tokens[None])
    more = ((0, 0), (0, room - past.keys.shape[1]), (0, 0), (0, 0))
    place = (0, past.length, 0, 0)
    keys, values = (
        jax.lax.dynamic_update_slice(jnp.pad(old, more), new[:, 0], place)
        for old, new in ((past.keys, keys), (past.values, values))
    )
    return Past(keys, values, past.length + count), state[0, count - 1]


def _norm(config: Config, x: jax.Array, scale: jax.Array) -> jax.Array:
    """Root mean square normalisation over the last axis."""
    square = jnp.mean(x * x, axis=-1, keepdims=True)
    shaped = scale.reshape((1,) * (x.ndim - 1) + scale.shape)
    return x * jax.lax.rsqrt(square + np.float32(config.epsilon)) * shaped


def _split(config: Config, x: jax.Array, heads: int) -> jax.Array:
    return x.reshape(*x.shape[:2], heads, config.size)


def _turns(config: Config, positions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine [S, H/2] of the angles by which the pairs of numbers at each position are turned."""
    speeds = config.rope_base ** (-np.arange(0, config.size, 2) / config.size)
    angles = positions.astype(jnp.float32)[:, None] * jnp.asarray(speeds, dtype=jnp.float32)[None, :]
    return jnp.cos(angles), jnp.sin(angles)


def _turned(x: jax.Array, turns: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Heads [B, S, heads, H] with each pair of neighbouring numbers turned."""
    cos, sin = (part[None, :, None, :] for part in turns)
    even, odd = x[..., 0::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)
