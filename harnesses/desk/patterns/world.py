"""World: one request as a running graph meets it: calls, results, the email; imports request and pomdp.rng.

Every draw is a function of (seed, episode, step) alone, so graphs whose branches run at the same time draw the same
whatever the order of their threads, and a run can be made again alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from harnesses.desk.patterns.request import SPLIT, Competence, Part, outcomes
from pomdp.rng import ACTION, DYNAMICS, START, words

K = TypeVar("K")
STEPS = 64
"""Draws kept apart for each question or branch: step = 64 * slot + number of the draw there."""

SLOTS = 4
_RANGE = 2**64


class Draws(Protocol):
    """Where chance comes from."""

    def pick(self, stream: int, step: int, row: Mapping[K, Fraction]) -> K:
        """One key of a distribution."""
        ...


@dataclass(frozen=True)
class Keyed:
    """Draws of one episode, by pomdp.rng: 64 bits against exact cumulative probabilities."""

    seed: int
    episode: int

    def pick(self, stream: int, step: int, row: Mapping[K, Fraction]) -> K:
        """The first key whose cumulative probability exceeds the draw."""
        u, reached = Fraction(int(self._table[stream][step]), _RANGE), Fraction(0)
        for key, p in row.items():
            reached += p
            if u < reached:
                return key
        raise ValueError(f"the row {dict(row)} sums to {reached}, not 1")

    @cached_property
    def _table(self) -> dict[int, np.ndarray]:
        """`[256]` draws of 64 bits for each stream; all at once because a single block costs as much."""
        steps = np.arange(STEPS * SLOTS)
        found = {}
        for stream in (START, DYNAMICS, ACTION):
            high, low = words(self.seed, stream, self.episode, steps)
            found[stream] = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        return found


@dataclass
class World:
    """A request in the desk's hands. A slot is a question, or a branch in which the whole request is worked on.

    `seen` is how many questions the model has named, 0 before. Slots are independent: each has a state of its own.
    """

    draws: Draws
    rates: Competence = Competence()
    seen: int = 0
    parts: dict[int, Part] = field(default_factory=dict)
    drawn: dict[tuple[int, int], int] = field(default_factory=dict)

    @cached_property
    def questions(self) -> int:
        """How many there are; nobody is told."""
        return self.draws.pick(START, 0, {1: 1 - self.rates.two, 2: self.rates.two})

    def draw(self, stream: int, slot: int, row: Mapping[K, Fraction]) -> K:
        """The slot's next draw from a stream."""
        number = self.drawn.get((stream, slot), 0)
        if number >= STEPS:
            raise ValueError(f"slot {slot} has made its {STEPS} draws; a graph of this study makes fewer")
        self.drawn[stream, slot] = number + 1
        return self.draws.pick(stream, STEPS * slot + number, row)

    def split(self) -> int:
        """The model names the questions: how many it sees, 1 or 2; work on two taken together is dropped."""
        if self.seen == 0:
            sees = {2: self.rates.split, 1: 1 - self.rates.split} if self.questions == 2 else {1: Fraction(1)}
            self.seen = self.draw(DYNAMICS, SLOTS - 1, sees)
            if self.seen == 2:
                self.parts.clear()
        return self.seen

    def call(self, action: str, slot: int = 0) -> str:
        """One call in a slot; what can be seen of it afterwards, such as `passage.new`."""
        if action == SPLIT:
            self.split()
        else:
            double = self.questions == 2 and self.seen < 2
            row = outcomes(self.part(slot), action, double, self.rates)
            self.parts[slot] = self.draw(DYNAMICS, slot, row) if len(row) > 1 else next(iter(row))
        return self.part(slot).shown

    def part(self, slot: int) -> Part:
        """The state of a slot."""
        return self.parts.get(slot, Part())

    def answer(self, slot: int) -> str | None:
        """The draft's answer, yes or no; right is yes. None without a draft."""
        return {"none": None, "right": "yes", "wrong": "no"}[self.part(slot).draft]

    def send(self, slots: Sequence[int]) -> str:
        """Send the email with these slots' drafts: `solved` if each is there and right, else `wrong`."""
        return "solved" if all(self.answer(slot) == "yes" for slot in slots) else "wrong"
