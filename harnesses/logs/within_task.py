"""Within-task: whether successes are shorter than failures, over all runs and within each task; imports nothing.

Long tasks are harder: the figure over all runs mixes that with any effect of length. It is given only together with
the one within tasks. Source: design of the running harness, section 5.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Ended = tuple[int, bool]  # length in tokens, success


@dataclass(frozen=True)
class Comparison:
    """Of all pairs of a success and a failure, the share in which the success is the shorter; ties count half.

    `within` is over the `pairs` of runs of one task, of `tasks` tasks; 1/2 means that length tells nothing.
    """

    over_all_runs: float
    within: float
    pairs: int
    tasks: int

    def json(self) -> dict[str, Any]:
        """As data."""
        return {
            "success_is_shorter_within_task": self.within,
            "pairs": self.pairs,
            "tasks": self.tasks,
            "success_is_shorter_over_all_runs": self.over_all_runs,
        }


def compare(tasks: Mapping[str | None, Sequence[Ended]]) -> Comparison | None:
    """The comparison; None where no task has both a success and a failure. Runs of task None belong to no task."""
    wins, pairs, mixed = 0.0, 0, 0
    for task, runs in tasks.items():
        won, of = _shorter(runs)
        if task is not None and of:
            wins, pairs, mixed = wins + won, pairs + of, mixed + 1
    if not pairs:
        return None
    won, of = _shorter([run for runs in tasks.values() for run in runs])
    return Comparison(won / of, wins / pairs, pairs, mixed)


def _shorter(runs: Iterable[Ended]) -> tuple[float, int]:
    """In how many pairs the success is the shorter, and of how many pairs."""
    runs = list(runs)
    failures = sorted(length for length, success in runs if not success)
    successes = [length for length, success in runs if success]
    won = sum(
        len(failures) - (bisect_left(failures, length) + bisect_right(failures, length)) / 2
        for length in successes
    )
    return won, len(successes) * len(failures)
