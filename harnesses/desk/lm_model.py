"""Language model: weights with their tokenizer, asked for log-probabilities; imports llama, lm_tokens, lm_weights.

What several rows have in common at their beginning is read once for all of them. Rows are padded to a few lengths, so
that few programs are compiled. Numbers do not depend on what was asked before, and on what is asked together only by
rounding in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from harnesses.desk import llama
from harnesses.desk.decider import DeciderError
from harnesses.desk.llama import Past
from harnesses.desk.lm_tokens import Tokenizer
from harnesses.desk.lm_weights import FILE, Loaded, load, weights_path

SMOLLM2 = "SmolLM2-135M-Instruct Q4_1"

ROWS = 4
"""Rows in a batch of long ones; more are no faster on a CPU."""
ENDS = 8
"""Short rows in a batch."""
LENGTHS, ROOMS = (1, 8, 16, 32, 64, 128, 192, 256, 320, 384, 448, 512), (128, 256, 384, 512)
"""Lengths that rows are padded to, and the room that a past has for tokens: one of these, beyond them multiples of
half the last and of the last."""

Row = Sequence[int]


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model that has been read into memory."""

    loaded: Loaded

    @property
    def name(self) -> str:
        """What stands beside its numbers: SmolLM2, or the file that holds other weights."""
        return SMOLLM2 if self.loaded.source == FILE else self.loaded.source

    @property
    def tokenizer(self) -> Tokenizer:
        """Its texts as tokens."""
        return self.loaded.tokenizer

    @property
    def vocabulary(self) -> int:
        """Tokens, V."""
        return self.loaded.config.vocabulary

    def read(self, row: Row, past: Past | None = None, room: int = 0) -> tuple[Past, np.ndarray]:
        """The past after a row of one token or more, with room for `room` tokens at least, and the next token's logits
        [V]. Raises DeciderError beyond the model's context.
        """
        config, weights = self.loaded.config, self.loaded.weights
        before = llama.nothing(config) if past is None else past
        end = self._fits(int(before.length) + len(row))
        tokens, counts = _padded([row])
        room = max(
            before.keys.shape[1], _up(max(room, int(before.length) + tokens.shape[1]), ROOMS, ROOMS[-1])
        )
        kept, state = llama.read_on(config, weights, before, tokens[0], room, counts[0])
        return Past(kept.keys, kept.values, end), np.asarray(llama.logits(config, weights, state[None])[0])

    def next_logits(self, rows: Sequence[Row]) -> np.ndarray:
        """The next token's logits [N, V] after each row of one token or more."""
        past, tails = self._together(rows)
        found = np.zeros((len(rows), self.vocabulary), dtype=np.float32)
        for places in _batches(tails, ROWS):
            tokens, counts = _padded([tails[i] for i in places])
            answers = llama.next_logits(self.loaded.config, self.loaded.weights, past, tokens, counts)
            found[places] = np.asarray(answers)[: len(places)]
        return found

    def log_probabilities(self, prompts: Sequence[Row], ends: Sequence[Sequence[Row]]) -> list[np.ndarray]:
        """For each prompt the log-probability of each of its ends [N], rows of one token or more."""
        past, tails = self._together(prompts)
        found = []
        for tail, rows in zip(_shown(tails), ends):
            after = self.read(tail[:-1], past)[0] if len(tail) > 1 else past
            found.append(self.ends(after, tail[-1], rows))
        return found

    def ends(self, past: Past, last: int, rows: Sequence[Row]) -> np.ndarray:
        """The log-probability of each row [N] after a past and one more token, the last of the prompt."""
        self._fits(int(past.length) + 1 + max(map(len, rows)))
        found = np.zeros(len(rows))
        for places in _batches(rows, ENDS):
            tokens, counts = _padded([[last, *rows[i]] for i in places], extra=1)
            answers = llama.log_probabilities(self.loaded.config, self.loaded.weights, past, tokens, counts)
            found[places] = np.asarray(answers)[: len(places)]
        return found

    def _together(self, rows: Sequence[Row]) -> tuple[Past, list[Row]]:
        """The past after what all rows begin with, and what is left of each: one token or more."""
        self._fits(max(map(len, rows), default=0))
        if len(rows) < 2:
            return llama.nothing(self.loaded.config), list(rows)
        first, last = min(map(list, rows)), max(map(list, rows))
        same = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
        same = min(same, *(len(row) - 1 for row in rows))
        past = self.read(rows[0][:same])[0] if same else llama.nothing(self.loaded.config)
        return past, [row[same:] for row in rows]

    def _fits(self, length: int) -> int:
        if length > self.loaded.config.context:
            raise DeciderError(
                f"{length} tokens are more than {self.loaded.source} reads: {self.loaded.config.context}; shorten them"
            )
        return length


@lru_cache(maxsize=1)
def smollm2_model() -> LanguageModel:
    """SmolLM2, read once a process: seconds. Raises DeciderError with the remedy where it is not installed."""
    return LanguageModel(load(weights_path()))


def _padded(rows: Sequence[Row], extra: int = 0) -> tuple[jnp.ndarray, jnp.ndarray]:
    """Rows as int32 [B, S + extra], with S one of the lengths and B 1 or even, and their lengths [B]."""
    steps = _up(max(map(len, rows)) - extra, LENGTHS, LENGTHS[-1] // 2) + extra
    table = np.zeros((1 if len(rows) == 1 else -(-len(rows) // 2) * 2, steps), dtype=np.int32)
    counts = np.ones(len(table), dtype=np.int32)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
        counts[place] = len(row)
    return jnp.asarray(table), jnp.asarray(counts)


def _up(n: int, sizes: Sequence[int], beyond: int) -> int:
    """The next of the sizes, or the next multiple of `beyond`."""
    return next((size for size in sizes if size >= n), -(-n // beyond) * beyond)


def _batches(rows: Sequence[Row], size: int) -> Iterator[list[int]]:
    """The rows' places in batches of like lengths."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    yield from _shown([order[i : i + size] for i in range(0, len(order), size)])


def _shown(work: Sequence[list[int]] | Sequence[Row]) -> tqdm:
    """The work with its progress, where there is enough of it and somebody to see it."""
    return tqdm(work, desc="language model", leave=False, disable=True if len(work) < 8 else None)
