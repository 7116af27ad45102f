"""Every run of a graph, by trying each outcome of each draw: exact means without the formal side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from harnesses.desk.patterns.runs import Episode, run_episode

Key = tuple[int, int]


@dataclass
class Scripted:
    """Draws by number: those of `fixed`, else the first outcome; `met` lists what was drawn, in order."""

    fixed: Mapping[Key, int]
    met: list[tuple[Key, int, int]] = field(default_factory=list)
    probability: Fraction = Fraction(1)
    lock: Any = field(default_factory=threading.Lock)

    def pick(self, stream: int, step: int, row: Mapping[Any, Fraction]) -> Any:
        """The outcome of that number among those that are possible."""
        possible = [(key, p) for key, p in row.items() if p]
        with self.lock:
            number = self.fixed.get((stream, step), 0)
            key, p = possible[number]
            self.met.append(((stream, step), number, len(possible)))
            self.probability *= p
        return key


def every_run(play: Callable[[Scripted], Episode]) -> Iterator[tuple[Fraction, Episode]]:
    """(probability, episode) of every run; branches may draw in any order."""
    waiting: list[dict[Key, int]] = [{}]
    while waiting:
        fixed = waiting.pop()
        draws = Scripted(fixed)
        episode = play(draws)
        yield draws.probability, episode
        before = dict(fixed)
        for key, number, outcomes in draws.met:
            if key in fixed:
                continue
            waiting += [{**before, key: other} for other in range(1, outcomes)]
            before[key] = number


def exact_means(pattern: str, price: Fraction, **given: Any) -> dict[str, Fraction]:
    """Exact shares of the outcomes, calls, tokens and J of a graph, and the number of its runs."""
    found: dict[str, Fraction] = dict.fromkeys(
        ("solved", "wrong", "handed", "unfinished", "calls", "tokens", "J", "total", "runs"), Fraction(0)
    )
    for p, episode in every_run(lambda draws: run_episode(pattern, draws, **given)):
        found[episode.outcome] += p
        found["calls"] += p * episode.calls
        found["tokens"] += p * episode.tokens
        found["total"] += p
        found["runs"] += 1
    found["J"] = found["solved"] - found["wrong"] - price * found["tokens"]
    return found


@pytest.fixture(scope="session")
def enumerated() -> Callable[..., dict[str, Fraction]]:
    """`exact_means`."""
    return exact_means
