"""Theorem T6: what a bound proved on one law P of (report, label) says on another, Q; imports bounds and finite.

Distances are exact and between joint laws of report and label. Each bound names the one it needs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from harnesses.guard.bounds import Bound, humble
from harnesses.guard.finite import ZERO, FiniteGuard
from harnesses.guard.region import probability

# Square roots are rounded up to a multiple of this, so that a bound stays one.
ROOT_STEP = Fraction(1, 10**15)


def total_variation(P: FiniteGuard, Q: FiniteGuard) -> Fraction:
    """The largest |P(E) - Q(E)| over events E of report and label."""
    p, q = P.law, Q.law
    return sum((abs(p.get(key, ZERO) - q.get(key, ZERO)) for key in p.keys() | q.keys()), ZERO) / 2


def likelihood_ratio(P: FiniteGuard, Q: FiniteGuard) -> Fraction | None:
    """The largest Q/P over (report, label); None where Q has mass on what never happens under P."""
    p, q = P.law, Q.law
    return max(q[key] / p[key] for key in q) if q.keys() <= p.keys() else None


def chi2(P: FiniteGuard, Q: FiniteGuard) -> Fraction | None:
    """E_P[(Q/P - 1)^2], the chi-square divergence of Q from P; None where it is infinite."""
    p, q = P.law, Q.law
    if not q.keys() <= p.keys():
        return None
    return sum((q[key] ** 2 / p[key] for key in q), ZERO) - 1


def labels_fixed(P: FiniteGuard, Q: FiniteGuard, tau: Any = 0) -> bool:
    """Whether every report p >= tau that Q has, P has too, with the same eta(p): y given p did not shift."""
    if tau is None:
        return True
    tau = probability(tau, "threshold tau")
    etas = {atom.p: atom.eta for atom in P.atoms}
    return all(etas.get(atom.p) == atom.eta for atom in Q.atoms if atom.p >= tau)


def variation_bound(P: FiniteGuard, Q: FiniteGuard, tau: Any) -> Bound:
    """T6, total variation: share_Q(tau) <= 1 - tau + TV(P, Q) / Q(A), A = {p >= tau}.

    Hypotheses: under P no report in A exceeds its eta; Q(A) > 0 (else both sides are None). Dividing by Q(A) is
    needed: a shift of any TV > 0 may consist of bad sends, and make the share 1 where nothing else is sent.
    Source: M14 Eq. 5, guard design T6.
    """
    sent = Q.sent(tau)
    if sent == 0:
        return Bound.of(None, None)
    bound = 1 - probability(tau, "threshold tau") + total_variation(P, Q) / sent
    return Bound.of(Q.share(tau), bound, applies=humble(P, tau))


def ratio_bound(P: FiniteGuard, Q: FiniteGuard, tau: Any) -> Bound:
    """T6, likelihood ratio: Q(bad, A) <= B P(bad, A), B = sup Q/P over (report, label).

    Hypotheses: B finite (else no bound); no calibration. P(A) and Q(A) alone do not do: all of Q(A) can be bad.
    Source: guard design T6.
    """
    most = likelihood_ratio(P, Q)
    bound = None if most is None else most * P.bad(tau)
    return Bound.of(Q.bad(tau), bound)


def chi2_bound(P: FiniteGuard, Q: FiniteGuard, tau: Any) -> Bound:
    """T6, chi-square: Q(bad, A) <= r + sqrt(chi2 r (1 - r)), r = P(bad, A), by Cauchy-Schwarz.

    Hypotheses: chi2 finite (else no bound); no calibration. `holds` is decided without the root, by squaring; the
    bound shown is the root rounded up by less than 1e-15. Tight: Q/P constant on the event and off it.
    Source: guard design T6.
    """
    r, value, distance = P.bad(tau), Q.bad(tau), chi2(P, Q)
    if distance is None:
        return Bound.of(value, None)
    below = value <= r or (value - r) ** 2 <= distance * r * (1 - r)
    return Bound(value, chi2_end(r, distance), below)


def chi2_end(r: Fraction, distance: Fraction) -> Fraction:
    """The least multiple of 1e-15 not below sqrt(chi2 r (1 - r)), added to r: what an event of mass r can become."""
    square = distance * r * (1 - r) / ROOT_STEP**2
    whole = -(-square.numerator // square.denominator)
    return r + (math.isqrt(whole - 1) + 1 if whole else 0) * ROOT_STEP


def fixed_labels_bound(P: FiniteGuard, Q: FiniteGuard, tau: Any) -> Bound:
    """T6, shift of the reports alone: share_Q(tau) <= 1 - tau, as Eq. 5 has it under P.

    Hypotheses: y given *p* is the same under P and Q for reports p >= tau, and there no p exceeds its eta under P.
    That y given the input x is the same does not do: two inputs may share a report, and Q may hold more of the worse.
    Source: M14 Eq. 5, guard design T6.
    """
    if Q.sent(tau) == 0:
        return Bound.of(None, None)
    applies = humble(P, tau) and labels_fixed(P, Q, tau)
    return Bound.of(Q.share(tau), 1 - probability(tau, "threshold tau"), applies=applies)
