"""Whose fault it is: the loss of a run split into tools and control, context, and model; imports case, harness.

    V*(M) - J(pi; M_H) = [V*(M) - V*(M_0)] + [V*(M_0) - Vo(M_H)] + [Vo(M_H) - J(pi; M_H)]

Source: design of the formal core, section 3; M1 Thm 1.4.2 and §1.4.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from harnesses.case import Case
from harnesses.harness import Harness
from pomdp.interval import Interval
from pomdp.model import ModelError

PARTS = ("tools", "control", "loop", "context")


@dataclass(frozen=True)
class Attribution:
    """The four base intervals and the parts between them; each part is an interval too.

    `task` V*(M), `inner` V*(M_0), `stateless` Vo(M_H), `achieved` J(pi; M_H). Parts 2 and 3 are never negative and
    cut at 0. For any choice of a point in each base interval the parts sum to the total exactly (`at_midpoints`).
    """

    task: Interval
    inner: Interval
    stateless: Interval
    achieved: Interval

    @property
    def total(self) -> Interval:
        """V*(M) - J."""
        return self.task - self.achieved

    @property
    def tools_control_loop(self) -> Interval:
        """V*(M) - V*(M_0): what tools, control and loop cost; negative where they help (a reviewer, an early end)."""
        return self.task - self.inner

    @property
    def context(self) -> Interval:
        """V*(M_0) - Vo(M_H): what no stateless model can recover."""
        return (self.inner - self.stateless).at_least(0.0)

    @property
    def model(self) -> Interval:
        """Vo(M_H) - J: what is left to the model."""
        return (self.stateless - self.achieved).at_least(0.0)

    def at_midpoints(self) -> dict[str, Fraction]:
        """Total and parts at the midpoints of the base intervals, exactly: total = sum of the three parts."""
        task, inner, best, achieved = (
            (Fraction(i.lower) + Fraction(i.upper)) / 2
            for i in (self.task, self.inner, self.stateless, self.achieved)
        )
        return {
            "total": task - achieved,
            "tools_control_loop": task - inner,
            "context": inner - best,
            "model": best - achieved,
        }

    @property
    def certified(self) -> bool:
        """Whether every base interval passed an exact check; J and Vo are exact but for a stated rounding."""
        return self.task.certified and self.inner.certified

    def json(self) -> dict[str, object]:
        """The parts, their values at the midpoints, and the base intervals."""
        parts = {
            name: getattr(self, name).json() for name in ("total", "tools_control_loop", "context", "model")
        }
        base = {name: getattr(self, name).json() for name in ("task", "inner", "stateless", "achieved")}
        return parts | {"midpoints": {k: float(v) for k, v in self.at_midpoints().items()}, "values": base}


def attribute(case: Case, announce: Callable[[str], None] | None = None) -> Attribution:
    """Compute every part of one case; `announce(text)` is told what begins."""
    say = announce or (lambda text: None)
    parts = (
        ("V* of the task", lambda: case.task.interval),
        ("V* behind tools, control and loop", lambda: case.inner.interval),
        ("best stateless policy", lambda: case.best.interval),
        ("the model's return", lambda: case.achieved),
    )
    found = []
    for text, compute in parts:
        say(text)
        found.append(compute())
    task, inner, best, achieved = found
    # J <= Vo <= V*(M_0): rounding must not lift an upper end above the next, or the parts would not sum to the total.
    best = _capped(best, inner.upper)
    return Attribution(task, inner, best, _capped(achieved, best.upper))


def _capped(interval: Interval, most: float) -> Interval:
    """The part at or below `most`, for a quantity known never to be above it; a point where that is empty."""
    return Interval(min(interval.lower, most), min(interval.upper, most), interval.certified)


def changed_parts(first: Harness, second: Harness) -> tuple[str, ...]:
    """The parts in which two harnesses differ, by what a spec would write."""
    one, two = first.json(), second.json()
    return tuple(name for name in PARTS if one[name] != two[name])


def mixed(first: Harness, second: Harness, taken: Sequence[str]) -> Harness:
    """`first` with the parts named in `taken` from `second`."""
    return replace(first, **{name: getattr(second, name) for name in taken})


def shapley(value: Callable[[frozenset], Fraction], players: Sequence[Hashable]) -> dict[Hashable, Fraction]:
    """Exact Shapley shares of `value(all) - value(none)`; `value` is asked once for each subset.

    A share is the mean gain of switching a player on, over all orders in which the players can be switched on.
    Raises ModelError beyond 12 players, 4096 subsets.
    """
    n = len(players)
    if n > 12:
        raise ModelError(
            f"{n} changed components have {2**n} combinations; compare harnesses that differ in 12 at most"
        )
    known = {
        frozenset(taken): value(frozenset(taken))
        for size in range(n + 1)
        for taken in combinations(players, size)
    }
    shares = {}
    for player in players:
        rest = [other for other in players if other != player]
        shares[player] = Fraction(0)
        for size in range(n):
            weight = Fraction(math.factorial(size) * math.factorial(n - 1 - size), math.factorial(n))
            for taken in combinations(rest, size):
                gain = known[frozenset(taken) | {player}] - known[frozenset(taken)]
                shares[player] += weight * gain
    return shares


def interaction(returns: np.ndarray) -> np.ndarray:
    """`[M - 1, H - 1]` interaction contrasts of J `[M, H]` against the first model and the first harness."""
    return returns[1:, 1:] - returns[1:, :1] - returns[:1, 1:] + returns[0, 0]


def rank_reversals(returns: Sequence[Sequence[Interval]]) -> list[tuple[int, int, int, int]]:
    """(m, m', h, h') with model m above m' in harness h and below it in h', for certain: M1 §1.4.5.

    `returns[m][h]` is J of model m in harness h; a difference counts where the intervals do not meet.
    """
    found = []
    for m, other in combinations(range(len(returns)), 2):
        signs = [_sign(a, b) for a, b in zip(returns[m], returns[other], strict=True)]
        for h, k in combinations(range(len(signs)), 2):
            if signs[h] * signs[k] < 0:
                found.append((m, other, h, k) if signs[h] > 0 else (other, m, h, k))
    return found


def _sign(a: Interval, b: Interval) -> int:
    return 1 if a.lower > b.upper else -1 if a.upper < b.lower else 0
