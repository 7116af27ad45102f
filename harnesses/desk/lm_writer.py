"""Writer: a text written token by token by a language model, within what is allowed; imports lm_model.

Three moves: write what is given, choose among given texts by log-probability, write freely to the closing quote of a
JSON string. So whatever the model's numbers are, what comes out has the form that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from harnesses.desk.lm_model import LanguageModel
from harnesses.desk.lm_tokens import Tokenizer

QUOTE = '"'

Noise = Callable[[int], np.ndarray]
"""Gumbel noise [n], by which the largest of n log-probabilities becomes a draw; nothing for the largest itself."""


def greedy(n: int) -> np.ndarray:
    """No noise: the most probable is taken, the first of equals."""
    return np.zeros(n)


class Writer:
    """What has been read and written so far, from a prompt on; `written` counts the tokens after it.

    room: tokens that are expected to be written.
    """

    def __init__(
        self, language: LanguageModel, prompt: Sequence[int], room: int = 256, noise: Noise = greedy
    ) -> None:
        """Read the prompt. Raises DeciderError beyond the model's context."""
        self.language, self.noise = language, noise
        self.written, self._room, self._open = 0, len(prompt) + room, prompt[-1]
        self._past, self._logits = language.read(prompt, room=self._room)
        self._before = self._past._replace(length=self._past.length - 1)

    def write(self, text: str) -> None:
        """Put a given text down."""
        self._take(self.language.tokenizer.encode(text))

    def choose(self, texts: Sequence[str]) -> int:
        """Put down one of the texts, by the probability of its tokens, and say which."""
        rows = [self.language.tokenizer.encode(text) for text in texts]
        found = 0
        if len(rows) > 1:
            # The prompt's last token is read again: its key and value are in the past, behind its length.
            scores = self.language.ends(self._before, self._open, rows)
            found = int(np.argmax(scores + self.noise(len(rows))))
        self._take(rows[found])
        return found

    def string(self, most: int, letters: str | None = None) -> str:
        """Put down the inside of a JSON string of `most` tokens at most, and say it; the closing quote is not written.

        It is not blank, has no quote, backslash or control character, and no other than `letters` where they are given.
        """
        inside, closes, blank = _allowed(self.language.tokenizer, letters)
        said: list[int] = []
        for _ in range(most):
            started = bool(self.language.tokenizer.decode(said).strip())
            allowed = inside | closes if started else inside & ~blank
            scores = np.where(allowed, self._logits + self.noise(len(allowed)), -np.inf)
            number = int(np.argmax(scores))
            if closes[number]:
                break
            said.append(number)
            self._take([number])
        return self.language.tokenizer.decode(said)

    def _take(self, numbers: Sequence[int]) -> None:
        if numbers:
            self._past, self._logits = self.language.read(numbers, self._past, self._room)
            self._open = numbers[-1]
            self._before = self._past._replace(length=self._past.length - 1)
            self.written += len(numbers)


@lru_cache(maxsize=8)
def _allowed(tokenizer: Tokenizer, letters: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which tokens [V] may stand inside a JSON string, which begin with its closing quote, and which are blank."""
    inside, closes, blank = np.zeros((3, len(tokenizer.tokens)), dtype=bool)
    for number in range(len(tokenizer.tokens)):
        try:
            text = tokenizer.bytes_of(number).decode()
        except UnicodeDecodeError:  # a part of a character
            continue
        closes[number] = text.startswith(QUOTE)
        blank[number] = not text.strip()
        plain = bool(text) and text.isprintable() and QUOTE not in text and "\\" not in text
        inside[number] = plain and (letters is None or set(text) <= set(letters))
    return inside, closes, blank
