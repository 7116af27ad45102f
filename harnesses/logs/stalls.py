"""Stalls: where each rule of loop detection would have fired on a run; imports the records of a run.

Three rules, None where one never fires. Source: M1 §1.2.5, E1.7; design of the running harness, section 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harnesses.logs.run import Step

TIMES = 3  # identical calls, or steps that bring nothing new


@dataclass(frozen=True)
class Stalls:
    """The step, from 1, at which each rule first fires; None where it never does.

    consecutive: the same call, name and arguments, the third time in a row. total: the third time anywhere.
    growth: the third step in a row that adds no token which was not there before, its call, its result and its text
    being those of an earlier step.
    """

    consecutive: int | None
    total: int | None
    growth: int | None


def stalls(steps: Sequence[Step]) -> Stalls:
    """All three rules on the steps of a run; steps without a call neither count nor interrupt the first two."""
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
    known: set[tuple[str | None, str | None, str, str]] = set()
    row = 0
    for number, step in enumerate(steps, 1):
        content = (step.key, step.result.content if step.result else None, step.said, step.heard)
        row = row + 1 if content in known else 0
        known.add(content)
        if row == TIMES and growth is None:
            growth = number
    return Stalls(consecutive, total, growth)
