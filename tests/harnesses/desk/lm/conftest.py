"""Tiny language models with random numbers, and the same model written out in numpy, float64, one token at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from harnesses.desk import lm_model
from harnesses.desk.llama import Blocks, Config, Weights, checked, shapes
from harnesses.desk.lm_model import LanguageModel
from harnesses.desk.lm_tokens import Tokenizer
from harnesses.desk.lm_weights import Loaded

MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# Learned by the package tokenizers 0.23.3 from a few sentences of the desk.
MERGES = """re|at|on|se|Ġ re|'s|ai|em|es|i on|nd|tr|we|Ġ a|Ġ d|Ġ m|at ion|ai l|em ail|' re|An|Pl|Th|al|ay|a se|be|c on
c al|ev|e ase|fi|fo|fu|gi|it|i ev|m ation|no|of|or|ry|r mation|sk|s tr|s we|s or|ue|u se|y es|Ġ es|Ġ we|Ġ email|Ġ An
Ġ Th|Ġ be|Ġ con|Ġ it|Ġ no|Ġ of|Ġ sor|Ġ yes|at e|se nd|Ġre tr|Ġre fu|Ġre gi|Ġa sk|Ġd ay|Ġd ue|Ġm e"""
# The letters that stand for bytes in GPT-2's vocabulary, from the description of its rule.
PRINTING = [*range(33, 127), *range(161, 173), *range(174, 256)]
LETTERS = [chr(b) for b in PRINTING] + [chr(256 + i) for i in range(256 - len(PRINTING))]


def pair(merge: str) -> tuple[str, str]:
    """Two parts, apart by a space or of one letter each."""
    left, space, right = merge.partition(" ")
    return (left, right) if space else (merge[0], merge[1:])


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """330 tokens: three marks, the bytes, the merges."""
    merges = [pair(merge) for line in MERGES.splitlines() for merge in line.split("|")]
    return Tokenizer([*MARKS, *LETTERS, *("".join(merge) for merge in merges)], merges, frozenset(MARKS))


def weights(config: Config, seed: int) -> Weights:
    """Random numbers large enough that every part of the model shows in its logits."""
    rng = np.random.default_rng(seed)
    wanted = shapes(config)
    drawn = [rng.normal(0, 0.5, shape) for shape in wanted.blocks]
    embedding, norm = rng.normal(0, 1, wanted.embedding), rng.normal(1, 0.3, wanted.final_norm)
    return checked(config, Weights(embedding, norm, Blocks(*drawn)))


def plain_logits(config: Config, given: Weights, row: Sequence[int]) -> np.ndarray:
    """The logits [T, V] after every token of a row, from the published formulas and nothing of the project's code."""
    w = Weights(
        *(np.asarray(a, dtype=np.float64) for a in given[:2]), Blocks(*(np.float64(a) for a in given.blocks))
    )
    size = config.width // config.heads
    pairs = np.arange(size // 2)
    turn = np.exp(1j * np.outer(np.arange(len(row)), config.rope_base ** (-2 * pairs / size)))

    def norm(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x**2).mean() + config.epsilon) * scale

    def heads(flat: np.ndarray, place: int, size: int) -> np.ndarray:
        rows = flat.reshape(-1, size)
        spun = (rows[:, 0::2] + 1j * rows[:, 1::2]) * turn[place]
        return np.stack([spun.real, spun.imag], axis=2).reshape(rows.shape)

    states = [w.embedding[token] for token in row]
    for l in range(config.layers):
        layer = Blocks(*(array[l] for array in w.blocks))
        read = [norm(x, layer.attention_norm) for x in states]
        keys = np.array([heads(layer.key @ y, s, size) for s, y in enumerate(read)])
        values = np.array([(layer.value @ y).reshape(-1, size) for y in read])
        for t, y in enumerate(read):
            mixed = []
            for head, query in enumerate(heads(layer.query @ y, t, size)):
                of = head * config.kv_heads // config.heads
                scores = keys[: t + 1, of] @ query
                share = np.exp((scores - scores.max()) / np.sqrt(size))
                mixed.append(share @ values[: t + 1, of] / share.sum())
            states[t] = states[t] + layer.output @ np.concatenate(mixed)
        for t, x in enumerate(states):
            y = norm(x, layer.feed_norm)
            gate = layer.gate @ y
            states[t] = x + layer.down @ (gate / (1 + np.exp(-gate)) * (layer.up @ y))
    return np.array([w.embedding @ norm(x, w.final_norm) for x in states])


@pytest.fixture(autouse=True)
def few_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows padded to fewer lengths: with models this small, compiling takes longer than computing."""
    monkeypatch.setattr(lm_model, "LENGTHS", (16, 256, 1024, 2048))
    monkeypatch.setattr(lm_model, "ROOMS", (512, 1280, 2560))


@pytest.fixture(scope="session")
def tiny(tokenizer: Tokenizer) -> Callable[..., LanguageModel]:
    """`tiny(seed)`: a language model of random numbers over the tiny vocabulary."""

    def make(seed: int = 0, context: int = 8192, source: str = "tiny.gguf") -> LanguageModel:
        config = Config(2, 16, 4, 2, 24, len(tokenizer.tokens), context, 1e5, 1e-5)
        return LanguageModel(Loaded(config, weights(config, seed), tokenizer, source))

    return make


@pytest.fixture(scope="session")
def plain() -> Callable[..., np.ndarray]:
    """The model in numpy: `plain(config, weights, row)` -> logits [T, V]."""
    return plain_logits


@pytest.fixture(scope="session")
def random_weights() -> Callable[[Config, int], Weights]:
    """`random_weights(config, seed)`."""
    return weights
