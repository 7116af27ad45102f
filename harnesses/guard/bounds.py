"""Bound: a quantity beside what bounds it, and theorems T2 to T4 on one finite guard; imports finite and costs.

One theorem, one function. Each computes both sides exactly and says whether its hypotheses are met on this law, so
that the same function states the theorem, proves nothing by itself, and shows the failure where one is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harnesses.guard.costs import PERFECT, Costs, Reviewer, best_region, expected_costs
from harnesses.guard.finite import ZERO, FiniteGuard
from harnesses.guard.region import probability

ONE = Fraction(1)


@dataclass(frozen=True)
class Bound:
    """`value <= bound`, decided exactly.

    `value` None: undefined on this law (a share among nothing). `bound` None: no finite bound. `holds` is False only
    where the value exceeds the bound. `applies`: whether the theorem's hypotheses are met, without which `holds` is
    an observation and no promise. `ceiling`: what the value cannot exceed anyway, None where there is none.
    """

    value: Fraction | None
    bound: Fraction | None
    holds: bool
    applies: bool = True
    ceiling: Fraction | None = ONE

    @classmethod
    def of(
        cls,
        value: Fraction | None,
        bound: Fraction | None,
        *,
        applies: bool = True,
        ceiling: Fraction | None = ONE,
    ) -> Bound:
        """The record of a value and a bound that is itself rational."""
        return cls(value, bound, value is None or bound is None or value <= bound, applies, ceiling)

    @property
    def slack(self) -> Fraction | None:
        """bound - value, negative where the bound is broken."""
        return None if self.value is None or self.bound is None else self.bound - self.value

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: there is none, or it is at least the ceiling."""
        return self.bound is None or (self.ceiling is not None and self.bound >= self.ceiling)


def humble(guard: FiniteGuard, tau: Any) -> bool:
    """Whether no report p >= tau exceeds eta(p): all that Eq. 5 needs of calibration."""
    return not guard.excess(tau)


def share_parts(guard: FiniteGuard, tau: Any) -> tuple[Fraction, Fraction] | None:
    """T2, the identity: share(tau) = E[1 - p | A] + E[p - eta | A] with A = {p >= tau}; None where P(A) = 0.

    Hypotheses: none. Calibrated, the second part is 0, which is M14 Eq. 5's equality.
    Source: M14 Eq. 5, guard design T2.
    """
    sent = guard.sent(tau)
    if sent == 0:
        return None
    stated = guard.doubted(tau) / sent
    return stated, (guard.bad(tau) - guard.doubted(tau)) / sent


def share_bound(guard: FiniteGuard, tau: Any) -> Bound:
    """T2: share(tau) <= 1 - tau + min(sup_A (p - eta)^+, E[|p - eta| 1_A] / P(A)), A = {p >= tau}.

    Hypotheses: P(A) > 0 (else both sides are None). Calibrated, this is M14 Eq. 5. The second error is at most the
    global ECE / P(A). Without the division it is no bound: with all error in A the share is 1 at any ECE > 0.
    Tight: one atom at p = tau. Only overconfidence inside A counts, none elsewhere.
    Source: M14 Eq. 5, guard design T2.
    """
    excess = guard.excess(tau)
    if excess is None:
        return Bound.of(None, None)
    error = min(excess, guard.ece(tau) / guard.sent(tau))
    return Bound.of(guard.share(tau), 1 - probability(tau, "threshold tau") + error)


def uar_bound(guard: FiniteGuard, tau: Any) -> Bound:
    """T3, by what is sent: UAR(tau) <= (1 - tau) P(A) / pi0, A = {p >= tau}.

    Hypotheses: no report in A exceeds its eta (calibrated reports do not); pi0 > 0 (else undefined). An overconfident
    atom in A breaks it. UAR is a rate among disallowed calls, the share one among acted-on calls: neither bounds the
    other. Source: M14 Eq. 5 and Eq. 7, guard design T3.
    """
    pi0 = guard.pi0
    if pi0 == 0:
        return Bound.of(None, None)
    doubt = ZERO if tau is None else 1 - probability(tau, "threshold tau")
    return Bound.of(guard.uar(tau), doubt * guard.sent(tau) / pi0, applies=humble(guard, tau))


def uar_prior_bound(guard: FiniteGuard, tau: Any) -> Bound:
    """T3, by the prior alone: UAR(tau) <= (1 - tau)(1 - pi0) / (tau pi0).

    Hypotheses: as `uar_bound`, under which this is at least as large; tau > 0 (else no bound). Vacuous exactly where
    pi0 <= 1 - tau: then a calibrated guard may send every disallowed call.
    Source: M14 Eq. 5 and Eq. 7, guard design T3.
    """
    pi0 = guard.pi0
    if pi0 == 0:
        return Bound.of(None, None)
    if tau is None:
        return Bound.of(guard.uar(None), ZERO)
    tau = probability(tau, "threshold tau")
    bound = (1 - tau) * (1 - pi0) / (tau * pi0) if tau else None
    return Bound.of(guard.uar(tau), bound, applies=humble(guard, tau))


def regret_at(p: Any, eta: Any, costs: Costs, reviewer: Reviewer = PERFECT) -> Bound:
    """T4, pointwise: acting by a report p where the truth is eta costs at most `spread |p - eta|` too much.

    Hypotheses: the region is the cheapest at p (T1, T5), ties either way. `spread` is that of the costs' slopes in
    1 - p: max(wrong, miss) with a perfect reviewer, at most that if e1 r = 0; rejections of allowed calls can widen it.
    Tight: one of act and escalate, at the threshold. Source: M14 Eq. 4, guard design T4.
    """
    at_truth = expected_costs(eta, costs, reviewer)
    regret = at_truth[best_region(p, costs, reviewer)] - min(at_truth.values())
    error = abs(probability(p, "report p") - probability(eta, "eta"))
    return Bound.of(regret, slope_spread(costs, reviewer) * error, ceiling=None)


def regret_bound(guard: FiniteGuard, costs: Costs, reviewer: Reviewer = PERFECT) -> Bound:
    """T4, on average: the cheapest rule by p costs at most `spread ECE_L1` more than the cheapest by eta(p).

    Hypotheses: as `regret_at`; ECE in L1 over merged reports. An ECE of unmerged atoms bounds it too, loosely; one of
    bins does not, for errors cancel within a bin. Source: M14 Eq. 4, guard design T4.
    """
    regret = sum(
        (atom.mass * (regret_at(atom.p, atom.eta, costs, reviewer).value or ZERO) for atom in guard.atoms),
        ZERO,
    )
    return Bound.of(regret, slope_spread(costs, reviewer) * guard.ece(), ceiling=None)


def slope_spread(costs: Costs, reviewer: Reviewer = PERFECT) -> Fraction:
    """Largest difference between the regions' costs per unit of doubt 1 - p; max(wrong, miss) if e0 = e1 r = 0."""
    sure, doubtful = expected_costs(1, costs, reviewer), expected_costs(0, costs, reviewer)
    slopes = [doubtful[kind] - sure[kind] for kind in sure]
    return max(slopes) - min(slopes)
