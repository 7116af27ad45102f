"""Stalls: where each rule of loop detection would have fired on a run; imports the records of a run.

Three rules, None where one never fires. Source: M1 §1.2.5, E1.7; design of the running harness, section 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harnesses.logs.run import Step

TIMES = 3  # identical calls, or calls that bring nothing new


@dataclass(frozen=True)
class Stalls:
    """The step, from 1, at which each rule first fires; None where it never does.

    consecutive: the same call, name and arguments, the third time in a row. total: the third time anywhere.
    growth: the third call in a row that repeats an earlier one and its answer, so that nothing new is learned.
    """

    consecutive: int | None
    total: int | None
    growth: int | None


def stalls(steps: Sequence[Step]) -> Stalls:
    """All three rules on the steps of a run; talk between calls neither counts nor interrupts."""
    calls = [(number, step.key) for number, step in enumerate(steps, 1) if step.key is not None]
    consecutive = total = growth = None
    seen: Counter[str] = Counter()
    row, last = 0, None
    for number, key in calls:
        row = row + 1 if key == last else 1
        last = key
        seen[key] += 1
        if row == TIMES and consecutive is None:
            consecutive = number
        if seen[key] == TIMES and total is None:
            total = number
    known: set[tuple[str, str | None, str | None]] = set()
    row = 0
    for number, step in enumerate(steps, 1):
        if step.key is None:
            continue
        status, content = (step.result.status, step.result.content) if step.result else (None, None)
        row = row + 1 if (step.key, status, content) in known else 0
        known.add((step.key, status, content))
        if row == TIMES and growth is None:
            growth = number
    return Stalls(consecutive, total, growth)
