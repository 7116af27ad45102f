"""Words and numbers of a Cassandra file, with lines and limits; imports pomdp.model and pomdp.rational.

The text is taken line by line, and long lines piece by piece: what is held does not grow with the file.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TextIO

from pomdp.model import ROW_TOLERANCE, ModelError
from pomdp.rational import MAX_DIGITS, MAX_EXPONENT, read_rational

ZERO = Fraction(0)  # the one object for zero, so that readers of numbers can test by identity
ONE = Fraction(1)
EVERY = -1  # the index that `*` stands for

PREAMBLE = ("discount", "values", "states", "actions", "observations", "start")
SECTIONS = (*PREAMBLE, "T", "O", "R")
# Words of the grammar; the format has no way to quote them, so none can be a name.
RESERVED = frozenset((*SECTIONS, "include", "exclude", "uniform", "identity", "reset", "reward", "cost"))

MAX_NAME = 200  # characters
# Larger rewards would overflow a float once they are added up.
MAX_REWARD = Fraction(10) ** 300
_MAX_PROBABILITY = 1 + ROW_TOLERANCE
_PIECE = 1 << 16
_CACHE = 100_000
# Comparing a misspelt name with more or longer names takes longer than a person waits for an error.
_NEAR_NAMES, _NEAR_LENGTH = 1_000, 60


class FormatError(ModelError):
    """A model file is wrong (`file:line: what was found, what was expected`) or a model cannot be written."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Limits:
    """How large a file may be; beyond, reading ends in a FormatError that names the limit.

    `characters` of the file; `states`, `actions`, `observations`; `entries`: nonzero numbers kept; `steps`:
    assignments that wildcards expand to, and four for each outcome (a, s, s', o) that a reward is averaged
    over; `bits` of one row's common denominator; `total_bits` of all exact numbers together.
    """

    characters: int = 1 << 28
    states: int = 1_000_000
    actions: int = 10_000
    observations: int = 1_000_000
    entries: int = 5_000_000
    steps: int = 50_000_000
    bits: int = 12_000
    total_bits: int = 4_000_000_000


LIMITS = Limits()


class Meter:
    """What reading one file has used of its limits."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.name, self.limits = name, limits
        self.entries = self.steps = self.total_bits = 0

    def error(self, line: int, text: str) -> FormatError:
        """The error at a line of the file, to be raised."""
        return FormatError(f"{self.name}:{line}: {text}", line)

    def store(self, count: int, line: int) -> None:
        """Count `count` more numbers kept (fewer where negative)."""
        self.entries += count
        if self.entries > self.limits.entries:
            raise self._exceeded(line, f"{self.entries} nonzero entries", "entries")

    def step(self, count: int, line: int) -> None:
        """Count `count` more assignments or outcomes."""
        self.steps += count
        if self.steps > self.limits.steps:
            raise self._exceeded(line, f"wildcards or rewards that expand to {self.steps} steps", "steps")

    def row(self, denominator: int, count: int, line: int, where: Callable[[], str]) -> None:
        """Count a row of `count` numbers with a common denominator; `where()` names it in an error."""
        bits = denominator.bit_length()
        self.total_bits += bits * count
        if bits > self.limits.bits:
            raise self._exceeded(line, f"{where()} with a common denominator of {bits} bits", "bits")
        if self.total_bits > self.limits.total_bits:
            raise self._exceeded(line, f"exact numbers of {self.total_bits} bits in all", "total_bits")

    def _exceeded(self, line: int, found: str, limit: str) -> FormatError:
        most = getattr(self.limits, limit)
        return self.error(line, f"found {found}, expected at most {most} (Limits.{limit})")


def shown(word: str) -> str:
    """A word of the file as an error shows it: quoted, printable and short."""
    if not word:
        return "the end of the file"
    return repr(word if len(word) <= 60 else word[:57] + "...")


class Tokens:
    """The words of a text in order; `:` and `*` are words of their own, `#` starts a comment to the line end.

    The end of the text is the empty word. `line` is that of the word last looked at, from 1.
    """

    def __init__(self, stream: TextIO, meter: Meter) -> None:
        self.meter = meter
        self.line = 0
        self._stream = stream
        self._words: list[str] = []
        self._at = 0
        self._characters = 0
        self._carry = ""
        self._whole_line, self._comment = True, False
        self._probabilities: dict[str, Fraction] = {}
        self._rewards: dict[str, Fraction] = {}

    def peek(self) -> str:
        """The next word, which stays."""
        if self._at == len(self._words) and not self._fill():
            return ""
        return self._words[self._at]

    def take(self) -> str:
        """The next word, which is used up."""
        if self._at == len(self._words) and not self._fill():
            return ""
        self._at += 1
        return self._words[self._at - 1]

    def error(self, found: str, expected: str, line: int | None = None) -> FormatError:
        """The error at the current line, to be raised; `found` is a phrase, see `shown`."""
        return self.meter.error(self.line if line is None else line, f"found {found}, expected {expected}")

    def expect_colon(self, after: str) -> None:
        """Take a `:`."""
        if self.peek() != ":":
            raise self.error(f"{shown(self.peek())} after {after!r}", "':'")
        self.take()

    def probability(self, expected: str) -> Fraction:
        """Take one probability."""
        return self._numbers(1, self._probabilities, self.probability_of, expected)[0]

    def probabilities(self, count: int, what: str) -> list[Fraction]:
        """Take `count` probabilities, from as many lines as they need."""
        return self._numbers(count, self._probabilities, self.probability_of, what)

    def reward(self, expected: str) -> Fraction:
        """Take one reward."""
        return self._numbers(1, self._rewards, self._reward_of, expected)[0]

    def rewards(self, count: int, what: str) -> list[Fraction]:
        """Take `count` rewards, from as many lines as they need."""
        return self._numbers(count, self._rewards, self._reward_of, what)

    def _numbers(
        self, count: int, known: dict[str, Fraction], convert: Callable[[str, str], Fraction], what: str
    ) -> list[Fraction]:
        """Take `count` numbers, each converted once; zeros are all the object ZERO."""
        out: list[Fraction] = []
        while len(out) < count:
            if not self.peek():
                raise self.error(shown(""), _ordinal(len(out), count, what))
            for word in self._words[self._at : self._at + count - len(out)]:
                value = known.get(word)
                if value is None:
                    value = convert(word, _ordinal(len(out), count, what)) or ZERO
                    if len(known) < _CACHE:
                        known[word] = value
                out.append(value)
                self._at += 1
        return out

    def value(self, word: str, expected: str, line: int | None = None) -> Fraction:
        """The exact number that a word of this or another line stands for."""
        try:
            return read_rational(word)
        except ValueError:
            if word[0].isdigit() or word[0] in "+-.":
                expected += f" (at most {MAX_DIGITS} digits, an exponent within {MAX_EXPONENT})"
            raise self.error(shown(word), expected, line) from None

    def probability_of(self, word: str, expected: str, line: int | None = None) -> Fraction:
        """The probability a word of this or another line stands for; a rounded one may exceed 1 a little."""
        value = self.value(word, expected, line)
        if not 0 <= value <= _MAX_PROBABILITY:
            raise self.error(f"the probability {shown(word)}", "one between 0 and 1", line)
        return value

    def _reward_of(self, word: str, expected: str) -> Fraction:
        value = self.value(word, expected)
        if abs(value) > MAX_REWARD:
            raise self.error(f"the number {shown(word)}", "one between -1e300 and 1e300")
        return value

    def _fill(self) -> bool:
        """Load the words of the next line or piece of one that has any; False at the end of the text."""
        while piece := self._stream.readline(_PIECE):
            self._characters += len(piece)
            if self._whole_line:
                self.line += 1
                self._comment = False
            if self._characters > self.meter.limits.characters:
                limit = self.meter.limits.characters
                raise self.error("a longer file", f"at most {limit} characters (Limits.characters)")
            self._whole_line = piece.endswith("\n")
            words = self._whole_words(piece)
            if words:
                self._words, self._at = words, 0
                return True
        self._words, self._at = _split(self._carry), 0
        self._carry = ""
        return bool(self._words)

    def _whole_words(self, piece: str) -> list[str]:
        """The whole words of a piece; the beginning of a word that may go on in the next is carried over."""
        if self._comment:
            return []
        piece, self._carry = self._carry + piece, ""
        cut = piece.find("#")
        if cut >= 0:
            self._comment = True
            piece = piece[:cut]
        elif not self._whole_line and not piece[-1].isspace():
            parts = piece.rsplit(None, 1)
            self._carry = parts.pop()
            piece = parts[0] if parts else ""
            if len(self._carry) > _PIECE:
                raise self.error(f"{shown(self._carry)}, a word of over {_PIECE} characters", "a shorter one")
        return _split(piece)


def _split(text: str) -> list[str]:
    """The words of a text without comments."""
    return text.replace(":", " : ").replace("*", " * ").split()


def _ordinal(done: int, count: int, what: str) -> str:
    """What was expected where the number after `done` others was not found."""
    return what if count == 1 else f"number {done + 1} of {count} of {what}"


class Names:
    """The states, actions or observations of a file: a count, or names that numbers may stand for too."""

    def __init__(self, kind: str, given: int | Sequence[str]) -> None:
        self.kind = kind
        self.names = None if isinstance(given, int) else tuple(given)
        self.count = given if isinstance(given, int) else len(given)
        self._index = {"*": EVERY}
        self._index.update((name, i) for i, name in enumerate(self.names or ()))

    def given(self) -> int | tuple[str, ...]:
        """Count or names, as `POMDP.build` takes them."""
        return self.count if self.names is None else self.names

    def named(self, word: str) -> bool:
        """Whether the word is a name that the file has given."""
        # The index also holds the numbers that were looked up; no name is a number.
        return self.names is not None and word in self._index and not is_count(word)

    def find(self, word: str) -> int | None:
        """The index of a name or number, EVERY for `*`, None where there is no such entry."""
        found = self._index.get(word)
        if found is None and is_count(word) and int(word) < self.count:
            found = self._index[word] = int(word)
        return found

    def __getitem__(self, i: int) -> str:
        """The name of entry i."""
        return str(i) if self.names is None else self.names[i]

    def expected(self, word: str) -> str:
        """What should have stood in place of a word that is unknown."""
        if self.names is None:
            return f"{_a(self.kind)} from 0 to {self.count - 1}"
        short = [name for name in self.names[:_NEAR_NAMES] if len(name) <= _NEAR_LENGTH]
        near = difflib.get_close_matches(word[:_NEAR_LENGTH], short, 3)
        if near:
            return f"{_a(self.kind)} such as {', '.join(near)}"
        more = f" ... ({self.count} in all)" if self.count > 8 else ""
        return f"one of the {self.kind}s {', '.join(self.names[:8])}{more}"


def is_count(word: str) -> bool:
    """Whether a word is a plain nonnegative integer short enough to be an index."""
    return word.isascii() and word.isdigit() and len(word) <= 12 and (word[0] != "0" or len(word) == 1)


def name_fault(word: str) -> str | None:
    """Why a word of a file cannot be a name, or None where it can."""
    if word in RESERVED or word in (":", "*"):
        return f"{word!r} is a word of the grammar"
    if len(word) > MAX_NAME:
        return f"a name has at most {MAX_NAME} characters"
    if not word.isprintable():
        return "a name is printable text in UTF-8"
    try:
        read_rational(word)
    except ValueError:
        return None
    return "a number cannot be a name"


def _a(kind: str) -> str:
    """The kind with its article."""
    return f"{'a' if kind == 'state' else 'an'} {kind}"
