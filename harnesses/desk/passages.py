"""Passages: the index behind `retrieve`, paragraphs of documents ranked by shared words; imports nothing.

Okapi BM25 with its usual constants over lower-case words: no model, no download, the same order on every machine.
Source: M14 §1 (the Module 13 retriever over policy and event documents); the scoring is this project's choice.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

K1, B = 1.2, 0.75
"""BM25: how fast repeated words stop counting, and how much long passages are discounted."""

_WORD = re.compile(r"[a-z0-9]+")
_EMPTY_WORDS = frozenset(
    "a an and are as at be but by can do does for from get have how i if in is it its me my no not of on or our so "
    "that the their them there they this to was we what when where which who will with would you your".split()
)


def words(text: str) -> list[str]:
    """The words that say something, lower-case, a plural s left off."""
    found = _WORD.findall(text.lower())
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in found
            if w not in _EMPTY_WORDS]  # fmt: skip


@dataclass(frozen=True)
class Passage:
    """A paragraph of a document, numbered from 1 in it."""

    document: str
    number: int
    text: str

    @property
    def shown(self) -> str:
        """As a model reads it, its source first."""
        return f"[{self.document}:{self.number}] {self.text}"


@dataclass(frozen=True)
class Index:
    """Passages that can be searched."""

    passages: Sequence[Passage]

    @classmethod
    def of(cls, documents: Iterable[tuple[str, str]]) -> Index:
        """From (id, text) of each document, split at empty lines."""
        found = []
        for document, text in documents:
            paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
            kept = [part for part in paragraphs if part]
            found += [Passage(document, number, part) for number, part in enumerate(kept, 1)]
        return cls(tuple(found))

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        return [Counter(words(passage.text)) for passage in self.passages]

    @cached_property
    def _length(self) -> float:
        """Mean words of a passage, at least 1."""
        return max(1.0, sum(map(Counter.total, self._counts)) / max(1, len(self._counts)))

    @cached_property
    def _rarity(self) -> dict[str, float]:
        """The weight of each word: rarer ones weigh more, none weighs nothing."""
        held = Counter(word for counts in self._counts for word in counts)
        return {word: math.log(1 + (len(self._counts) - n + 0.5) / (n + 0.5)) for word, n in held.items()}

    def search(self, query: str, most: int) -> list[Passage]:
        """At most `most` passages that share a word with the query, the best first, ties in their order."""
        asked = Counter(words(query))
        scored = [(self._score(asked, counts), place) for place, counts in enumerate(self._counts)]
        best = sorted((-score, place) for score, place in scored if score > 0)
        return [self.passages[place] for _, place in best[:most]]

    def _score(self, asked: Counter[str], counts: Counter[str]) -> float:
        norm = K1 * (1 - B + B * counts.total() / self._length)
        return sum(
            times * self._rarity[word] * counts[word] * (K1 + 1) / (counts[word] + norm)
            for word, times in sorted(asked.items())
            if word in counts
        )
