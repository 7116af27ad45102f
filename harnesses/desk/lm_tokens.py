"""Tokens: the byte-level BPE tokenizer that a gguf file of SmolLM2 describes, both ways; imports the standard library.

Marks of a turn are never read out of a text: what a participant or a document writes is bytes, whatever it spells.
Source: Sennrich et al. (2016) for byte pair encoding, Radford et al. (2019) for its form on bytes; digits stand alone,
as the file's `tokenizer.ggml.pre = smollm` says. The package `tokenizers` does the same, and brings huggingface-hub
along, a client of its servers; the two agree (see the tests).
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

OPENS, CLOSES = "<|im_start|>", "<|im_end|>"
"""The marks around a turn of the chat that SmolLM2 was trained on."""


LOST = "\ufffd"
"""What stands for a character that cannot be read."""


class TokenError(ValueError):
    """A vocabulary or a token that is none, in one line."""


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """Texts to tokens and back.

    tokens: the vocabulary's texts by number, with bytes spelled as in GPT-2; merges: pairs to join, the first first;
    marks: tokens that are no text. Raises TokenError where a merge or a mark has no token, or plain text has none.

    SmolLM2's vocabulary lacks eight of the bytes that UTF-8 uses, those of six control characters and of planes 4 to
    11, where no character is assigned. Such a character is read as U+FFFD, and so is half of a surrogate pair.
    """

    tokens: Sequence[str]
    merges: Sequence[tuple[str, str]]
    marks: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = field(init=False, repr=False)
    ranks: Mapping[tuple[str, str], int] = field(init=False, repr=False)
    missing: frozenset[int] = field(init=False, repr=False)
    known: dict[str, tuple[int, ...]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", {token: i for i, token in enumerate(self.tokens)})
        object.__setattr__(self, "ranks", {pair: i for i, pair in enumerate(self.merges)})
        for mark in self.marks:
            self.mark(mark)
        for pair in self.merges:
            if "".join(pair) not in self.numbers:
                raise TokenError(f"the merge {' '.join(pair)!r} gives no token of the vocabulary")
        missing = frozenset(byte for byte in range(256) if _SPELLED[byte] not in self.numbers)
        object.__setattr__(self, "missing", missing)
        for byte in f"{string.printable}{LOST}".encode():
            if byte in missing and byte not in b"\x0b\x0c":
                raise TokenError(f"byte {byte} has no token; a byte-level vocabulary has all of plain text")

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        found: list[int] = []
        text = self._readable(text)
        for part in _digits().split(text):
            for word in _words().findall(part) if part else ():
                if word not in self.known:
                    self.known[word] = tuple(self._word(word))
                found.extend(self.known[word])
        return found

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of tokens; marks give nothing, and bytes that end in mid-character the replacement character."""
        return b"".join(self.bytes_of(number) for number in numbers).decode("utf-8", errors="replace")

    def bytes_of(self, number: int) -> bytes:
        """The bytes of one token, none for a mark. Raises TokenError for no token."""
        if not 0 <= number < len(self.tokens):
            raise TokenError(f"{number} is no token; they go from 0 to {len(self.tokens) - 1}")
        token = self.tokens[number]
        return b"" if token in self.marks else bytes(_BYTES[letter] for letter in token)

    def mark(self, mark: str) -> int:
        """The number of a mark. Raises TokenError where the vocabulary has none."""
        if mark not in self.numbers:
            raise TokenError(f"the vocabulary has no {mark}; name a mark such as {OPENS}")
        return self.numbers[mark]

    def turn(self, role: str, text: str) -> list[int]:
        """A whole turn of a chat."""
        return [*self.opening(role), *self.encode(text), self.mark(CLOSES), *self.encode("\n")]

    def opening(self, role: str) -> list[int]:
        """What a turn begins with."""
        return [self.mark(OPENS), *self.encode(f"{role}\n")]

    def _readable(self, text: str) -> str:
        """The text with what has no tokens replaced."""
        text = _HALVES.sub(LOST, text)
        if self.missing.isdisjoint(text.encode()):
            return text
        return "".join(c if self.missing.isdisjoint(c.encode()) else LOST for c in text)

    def _word(self, word: str) -> list[int]:
        """Join the pair of the lowest rank, all its places from the left, until no pair has one."""
        parts = [_SPELLED[byte] for byte in word.encode()]
        while len(parts) > 1:
            pair = min(zip(parts, parts[1:]), key=lambda one: self.ranks.get(one, len(self.ranks)))
            if pair not in self.ranks:
                break
            joined, place = [], 0
            while place < len(parts):
                if tuple(parts[place : place + 2]) == pair:
                    joined.append("".join(pair))
                    place += 2
                else:
                    joined.append(parts[place])
                    place += 1
            parts = joined
        return [self.numbers[part] for part in parts]


def _spelling() -> dict[int, str]:
    """The letter that stands for each byte: itself where it prints, else one from 256 on. Source: GPT-2."""
    printing = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    rest = [byte for byte in range(256) if byte not in printing]
    return {byte: chr(byte) for byte in printing} | {byte: chr(256 + i) for i, byte in enumerate(rest)}


_SPELLED = _spelling()
_BYTES = {letter: byte for byte, letter in _SPELLED.items()}
_HALVES = re.compile("[\ud800-\udfff]")


@cache
def _digits() -> re.Pattern[str]:
    """Splits a text so that every number character is a part of its own."""
    return re.compile(f"([{_classes()['N']}])")


@cache
def _words() -> re.Pattern[str]:
    """GPT-2's parts of a text, within which bytes are joined: `re` has no classes for letters and numbers."""
    letter, number = _classes()["L"], _classes()["N"]
    # Unicode's white space: Python counts four control characters too.
    space = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    return re.compile(
        f"'s|'t|'re|'ve|'m|'ll|'d| ?[{letter}]+| ?[{number}]+| ?[^{space}{letter}{number}]+"
        f"|[{space}]+(?![^{space}])|[{space}]+"
    )


@cache
def _classes() -> dict[str, str]:
    """The insides of character classes by the first letter of their categories, as ranges."""
    codes = range(sys.maxunicode + 1)
    ranges: dict[str, list[str]] = {}
    for kind, run in groupby(codes, key=lambda code: unicodedata.category(chr(code))[0]):
        members = list(run)
        ranges.setdefault(kind, []).append(f"\\U{members[0]:08x}-\\U{members[-1]:08x}")
    return {kind: "".join(found) for kind, found in ranges.items()}
