"""V_f = V* - W: what observing is worth; imports pomdp.bounds.solver and open_loop. Source: M1 §1.7.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pomdp.bounds.open_loop import solve_open_loop
from pomdp.bounds.search import Progress
from pomdp.bounds.solver import Announce, Solution, solve
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP

INTERRUPTED_SECONDS = 0.1  # for the second search where the first was interrupted


@dataclass(frozen=True)
class Feedback:
    """Best closed loop, best open loop and their difference, each an interval.

    `value_of_feedback` is cut at 0 from below, for V* >= W always (`Vf-nonneg`).
    """

    closed: Solution
    open: Solution

    @property
    def optimal(self) -> Interval:
        """V*."""
        return self.closed.interval

    @property
    def open_loop(self) -> Interval:
        """W."""
        return self.open.interval

    @property
    def value_of_feedback(self) -> Interval:
        """V_f = V* - W >= 0."""
        return (self.optimal - self.open_loop).at_least(0.0)

    @property
    def seconds(self) -> float:
        """Seconds of both searches."""
        return self.closed.seconds + self.open.seconds


def feedback(
    model: POMDP,
    criterion: Criterion,
    *,
    gap: float = 1e-3,
    time_limit: float = 60.0,
    certify: bool = True,
    cache: bool = False,
    progress: Progress | None = None,
    announce: Announce | None = None,
) -> Feedback:
    """V*, W and V_f, each end to within `gap` where the time allows; half of `time_limit` for each search.

    What the open loop leaves of its half goes to the closed loop; an interrupt in the first ends both.
    """
    common: dict[str, Any] = {
        "gap": gap / 2,
        "certify": certify,
        "cache": cache,
        "progress": progress,
        "announce": announce,
    }
    open_loop = solve_open_loop(model, criterion, time_limit=time_limit / 2, **common)
    rest = max(time_limit - open_loop.seconds, time_limit / 2)
    if open_loop.ended == "interrupt":
        rest = INTERRUPTED_SECONDS
    closed = solve(model, criterion, time_limit=rest, **common)
    return Feedback(closed, open_loop)
