"""Runs: episodes of a pattern's graph, and what they came to on average; imports graphs and world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from harnesses.desk.patterns.chooser import ERROR, Tokens
from harnesses.desk.patterns.graphs import RECURSION_LIMIT, Surroundings, graph, opening
from harnesses.desk.patterns.request import Competence
from harnesses.desk.patterns.world import Draws, Keyed, World

OUTCOMES = ("solved", "wrong", "handed", "unfinished")


@dataclass(frozen=True)
class Episode:
    """How one request went: its outcome, one of OUTCOMES, and what it cost."""

    outcome: str
    calls: int
    tokens: int
    trace: tuple[str, ...]

    def worth(self, price: Fraction) -> float:
        """Its return: 1 if solved, -1 if wrong, else 0, less the price of its tokens."""
        return {"solved": 1.0, "wrong": -1.0}.get(self.outcome, 0.0) - float(price) * self.tokens


def run_episode(
    pattern: str,
    draws: Draws,
    rates: Competence | None = None,
    tokens: Tokens | None = None,
    error: Fraction = ERROR,
) -> Episode:
    """One request through the pattern's graph. Raises ValueError for an unknown pattern."""
    near = Surroundings(World(draws, rates or Competence()), tokens or Tokens(), error)
    done = graph(pattern).invoke(opening(), {"recursion_limit": RECURSION_LIMIT}, context=near)
    return Episode(done["outcome"], done["calls"], done["tokens"], tuple(done["trace"]))


def run_episodes(
    pattern: str,
    seed: int,
    episodes: Sequence[int],
    rates: Competence | None = None,
    tokens: Tokens | None = None,
    error: Fraction = ERROR,
) -> list[Episode]:
    """The episodes of a seed; any of them can be run alone and comes out the same."""
    return [run_episode(pattern, Keyed(seed, n), rates, tokens, error) for n in episodes]
