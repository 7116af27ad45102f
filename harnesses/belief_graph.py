"""The exact beliefs that histories lead to, each once, and the moves between them; imports pomdp alone.

A belief is kept as whole weights without a common factor, so that equal beliefs are equal tuples and a step
needs no fractions. Beliefs are numbered in the order in which they are met; 0 is the start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from pomdp.belief import ExactBelief
from pomdp.model import POMDP, ModelError

# Weights of the states in a belief's support, states ascending; they have no common factor.
Weights = tuple[tuple[int, int], ...]
MAX_BELIEFS = 200_000


class TooManyError(ModelError):
    """More beliefs, or more pairs of belief and memory, are reachable than the caller allowed."""


class Move(NamedTuple):
    """What can follow an action at a belief: the observation, its probability, the number of the next belief."""

    observation: int
    probability: Fraction
    belief: int


class BeliefGraph:
    """Reachable beliefs of `model`, expanded on demand and each once.

    Raises TooManyError beyond `max_beliefs`. Source: design of the formal core, sections 1 and 3.
    """

    def __init__(self, model: POMDP, max_beliefs: int = MAX_BELIEFS) -> None:
        self.model = model
        self._max = max_beliefs
        self._number: dict[Weights, int] = {}
        self._beliefs: list[Weights] = []
        self._moves: dict[tuple[int, int], tuple[Move, ...]] = {}
        self._rows: dict[tuple[int, int], tuple[int, list[tuple[int, int, int]]]] = {}
        self._rewards = [model.exact.R.row(a) for a in range(model.num_actions)]
        self.number(model.exact.start)

    def __len__(self) -> int:
        """Beliefs met so far."""
        return len(self._beliefs)

    def number(self, belief: ExactBelief) -> int:
        """The number of a belief {state: Fraction}, a new one if it was not met before."""
        common = math.lcm(*(p.denominator for p in belief.values()))
        return self._add({s: int(p * common) for s, p in belief.items() if p})

    def weights(self, i: int) -> Weights:
        """Belief `i` as whole weights."""
        return self._beliefs[i]

    def belief(self, i: int) -> ExactBelief:
        """Belief `i` as {state: Fraction}, states ascending."""
        total = sum(w for _, w in self._beliefs[i])
        return {s: Fraction(w, total) for s, w in self._beliefs[i]}

    def reward(self, i: int, action: int) -> Fraction:
        """`R(b, a)`, the expected immediate reward."""
        weights, rewards = self._beliefs[i], self._rewards[action]
        earned = sum((w * rewards[s] for s, w in weights if s in rewards), Fraction(0))
        return earned / sum(w for _, w in weights)

    def moves(self, i: int, action: int) -> tuple[Move, ...]:
        """What can follow `action` at belief `i`, observations ascending, impossible ones left out."""
        found = self._moves.get((i, action))
        if found is None:
            found = self._moves[i, action] = self._expand(i, action)
        return found

    def successors(self, beliefs: Iterable[int]) -> set[int]:
        """The beliefs that one more pair can lead to from any of `beliefs`."""
        actions = range(self.model.num_actions)
        return {move.belief for i in beliefs for a in actions for move in self.moves(i, a)}

    def within(self, length: int | None, start: int = 0) -> list[int]:
        """Beliefs of all histories of 0 to `length` pairs after belief `start` (None: of any length), ascending.

        Without a length this ends only where the beliefs are finitely many.
        """
        seen, edge, steps = {start}, {start}, 0
        while edge and (length is None or steps < length):
            edge = self.successors(edge) - seen
            seen |= edge
            steps += 1
        return sorted(seen)

    def _expand(self, i: int, action: int) -> tuple[Move, ...]:
        weights = self._beliefs[i]
        rows = [self._row(action, s) for s, _ in weights]
        common = math.lcm(*(denominator for denominator, _ in rows))
        measures: dict[int, dict[int, int]] = {}
        for (_, w), (denominator, entries) in zip(weights, rows, strict=True):
            scale = w * (common // denominator)
            for o, s, n in entries:
                measure = measures.setdefault(o, {})
                measure[s] = measure.get(s, 0) + scale * n
        total = common * sum(w for _, w in weights)
        return tuple(
            Move(o, Fraction(sum(measure.values()), total), self._add(measure))
            for o, measure in sorted(measures.items())
        )

    def _row(self, action: int, state: int) -> tuple[int, list[tuple[int, int, int]]]:
        """`P(s', o | s, a)` as a denominator and (observation, next state, numerator)."""
        found = self._rows.get((action, state))
        if found is None:
            exact = self.model.exact
            joint = [
                (o, reached, p * q)
                for reached, p in exact.T[action].row(state).items()
                for o, q in exact.Z[action].row(reached).items()
            ]
            common = math.lcm(*(p.denominator for _, _, p in joint))
            entries = [(o, reached, int(p * common)) for o, reached, p in joint]
            found = self._rows[action, state] = common, entries
        return found

    def _add(self, measure: dict[int, int]) -> int:
        factor = math.gcd(*measure.values())
        weights = tuple((s, measure[s] // factor) for s in sorted(measure))
        number = self._number.get(weights)
        if number is None:
            if len(self._beliefs) >= self._max:
                raise TooManyError(
                    f"more than {self._max} beliefs of {self.model.name or 'the model'} are reachable; "
                    "give a shorter horizon, such as --horizon 4"
                )
            number = self._number[weights] = len(self._beliefs)
            self._beliefs.append(weights)
        return number
