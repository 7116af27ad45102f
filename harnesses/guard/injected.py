"""Theorem T7: a guard whose reports are raised by injected text, from p to p'; imports bounds and finite.

`rise` D is the largest p' - p, at least 0: an attack may lower reports too, as clip(p + d) with d <= D does. What
is promised depends on whether p' tells anything about the label that p does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from harnesses.guard.bounds import Bound, humble
from harnesses.guard.finite import ZERO, FiniteGuard, by_label, merged
from harnesses.guard.region import GuardError, at_least, probability

ONLY_NEVER = "only never acting helps"


class Pair(NamedTuple):
    """The report `before` and `after` the injection, and the masses of this pair with y = 1 and with y = 0."""

    before: Fraction
    after: Fraction
    allowed: Fraction
    bad: Fraction


@dataclass(frozen=True)
class InjectedGuard:
    """The exact joint law of (p, p', y): distinct pairs, ascending, masses together 1. Build one by `of`.

    Raises GuardError for what is no such law.
    """

    pairs: tuple[Pair, ...]

    def __post_init__(self) -> None:
        for pair in self.pairs:
            if pair.allowed < 0 or pair.bad < 0:
                raise GuardError(f"masses {pair.allowed}, {pair.bad} of reports {pair[:2]}; give 0 or more")
        if any(a[:2] >= b[:2] for a, b in zip(self.pairs, self.pairs[1:])):
            raise GuardError("pairs (p, p') ascend, equal ones merged as `of` does")
        _ = self.before, self.after  # each checks its reports and its total mass

    @classmethod
    def of(cls, mass: Mapping[tuple[Any, Any, int], Any]) -> InjectedGuard:
        """From {(p, p', y): probability}, numbers as `read_rational` reads them."""
        return cls(
            _paired(
                (p, after, y, at_least(0, m, f"mass of ({p}, {after}, {y})", "1/4"))
                for (p, after, y), m in mass.items()
            )
        )

    @classmethod
    def from_scores(cls, p: Any, p_injected: Any, y: Any) -> InjectedGuard:
        """The empirical law of reports `[N]`, injected reports `[N]` and labels `[N]`, 0 or 1."""
        columns = [np.asarray(column) for column in (p, p_injected, y)]
        if any(column.shape != (columns[0].size,) for column in columns) or not columns[0].size:
            raise GuardError(
                f"columns of shapes {[c.shape for c in columns]}; give three of one length, at least 1"
            )
        # Equal rows are counted first: reading a number exactly is slow.
        counts: dict[tuple[Any, Any, Any], int] = {}
        for row in zip(*columns):
            counts[row] = counts.get(row, 0) + 1
        size = columns[0].size
        return cls(_paired((before, after, y, Fraction(k, size)) for (before, after, y), k in counts.items()))

    @cached_property
    def before(self) -> FiniteGuard:
        """The law of (p, y): the guard without the injection."""
        return FiniteGuard(merged((pair.before, pair.allowed, pair.bad) for pair in self.pairs))

    @cached_property
    def after(self) -> FiniteGuard:
        """The law of (p', y): the guard under the injection."""
        return FiniteGuard(merged((pair.after, pair.allowed, pair.bad) for pair in self.pairs))

    @property
    def rise(self) -> Fraction:
        """D: the largest p' - p of positive mass, 0 where no report rises."""
        return max(ZERO, *(pair.after - pair.before for pair in self.pairs))

    @property
    def independent(self) -> bool:
        """Whether y is independent of p' given p: the injection does not know more than the guard."""
        eta = {atom.p: atom.eta for atom in self.before.atoms}
        return all(pair.allowed == eta[pair.before] * (pair.allowed + pair.bad) for pair in self.pairs)

    def crossings(self, tau: Any) -> Fraction:
        """P(p < tau <= p'): the calls that are sent because of the injection."""
        tau = probability(tau, "threshold tau")
        return sum((pair.allowed + pair.bad for pair in self.pairs if pair.before < tau <= pair.after), ZERO)

    def exposed(self, tau: Any) -> Fraction:
        """P(tau - D <= p < tau): the calls that a rise of D can send, at least the crossings."""
        low = lowered(tau, self.rise)
        return self.before.sent(low) - self.before.sent(tau)


def independent_bound(law: InjectedGuard, tau: Any) -> Bound:
    """T7, an injection that ignores the label: the share under injection is at most 1 - tau + D.

    Hypotheses: y independent of p' given p; without injection no report p >= tau - D exceeds its eta. If p' may
    depend on the label the share can be 1, see `bad_mass_bound`. Tight: one atom at tau - D, raised by D.
    Source: M14 §7 on injected instructions, guard design T7.
    """
    share = law.after.share(tau)
    if share is None:
        return Bound.of(None, None)
    return Bound.of(
        share, 1 - probability(tau, "threshold tau") + law.rise, applies=_humble_and_blind(law, tau)
    )


def restored_share_bound(law: InjectedGuard, tau: Any) -> Bound:
    """T7, an injection that ignores the label: acting at `restored_threshold` the share is at most 1 - tau again.

    Hypotheses: as `independent_bound`, at p >= tau. Where tau + D > 1 nothing is sent and the share is None.
    Source: guard design T7.
    """
    high = restored_threshold(tau, law.rise)
    share = law.after.share(high)
    if share is None:
        return Bound.of(None, None)
    return Bound.of(share, 1 - probability(tau, "threshold tau"), applies=_humble_and_blind(law, high))


def bad_mass_bound(law: InjectedGuard, tau: Any) -> Bound:
    """T7, any injection: P(y = 0, p' >= tau) <= E[(1 - p) 1{p >= tau - D}], labels known to the attacker or not.

    Hypotheses: without injection no report p >= tau - D exceeds its eta. It bounds a mass and no share: with p = 15/16
    for all and 1/16 added to the disallowed alone, tau = 31/32 sends just these. Source: guard design T7.
    """
    low = lowered(tau, law.rise)
    bound = law.before.doubted(low)
    return Bound.of(law.after.bad(tau), bound, applies=humble(law.before, low), ceiling=law.before.pi0)


def crossing_bound(law: InjectedGuard, tau: Any) -> Bound:
    """T7, any injection and any guard: P(y = 0, p' >= tau) <= P(y = 0, p >= tau) + P(tau - D <= p < tau).

    Hypotheses: none but p' <= p + D. The second term is the number to measure. Source: guard design T7.
    """
    bound = law.before.bad(tau) + law.exposed(tau)
    return Bound.of(law.after.bad(tau), bound, ceiling=law.before.pi0)


def restored_mass_bound(law: InjectedGuard, tau: Any) -> Bound:
    """T7, any injection and any guard: at `restored_threshold` the bad mass is at most P(y = 0, p >= tau), as before.

    So is the UAR, whose denominator pi0 no injection moves. Hypotheses: none but p' <= p + D. The share is not
    restored: the injection may lower the allowed. Source: guard design T7.
    """
    high = restored_threshold(tau, law.rise)
    return Bound.of(law.after.bad(high), law.before.bad(tau), ceiling=law.before.pi0)


def restored_threshold(tau: Any, rise: Any) -> Fraction | None:
    """tau + D, at which the promises made at tau hold under a rise of D; None where it exceeds 1: never act."""
    high = probability(tau, "threshold tau") + probability(rise, "rise")
    return high if high <= 1 else None


def remedy(tau: Any, rise: Any) -> str:
    """What restores the promise made at tau under a rise of D, in words."""
    high = restored_threshold(tau, rise)
    return ONLY_NEVER if high is None else f"act at {high}"


def lowered(tau: Any, rise: Any) -> Fraction:
    """The least report that a rise of D can bring to tau, at least 0."""
    return max(ZERO, probability(tau, "threshold tau") - probability(rise, "rise"))


def _humble_and_blind(law: InjectedGuard, tau: Any) -> bool:
    return law.independent and (tau is None or humble(law.before, lowered(tau, law.rise)))


def _paired(rows: Iterable[tuple[Any, Any, Any, Fraction]]) -> tuple[Pair, ...]:
    """Pairs of rows (p, p', y, mass), ascending, equal ones added up, those of mass 0 dropped."""
    found: dict[tuple[Fraction, Fraction], tuple[Fraction, Fraction]] = {}
    for before, after, y, mass in rows:
        key = probability(before, "report p"), probability(after, "injected report")
        allowed, bad = by_label(y, mass)
        total = found.get(key, (ZERO, ZERO))
        found[key] = total[0] + allowed, total[1] + bad
    return tuple(Pair(*key, *found[key]) for key in sorted(found) if any(found[key]))
