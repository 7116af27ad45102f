"""Theorem T6 from a score file: what a stated distance of the new data allows; imports rate and shift.

The distance is the user's to give. It is between the laws of (report, label) before and after, and is not estimated
from two files: the plug-in estimate of a sup ratio or of chi2 on finitely many cells is no bound on the true one.
`shift` computes distances and bounds of exact laws.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, at_least, probability
from harnesses.guard.shift import chi2_end


@dataclass(frozen=True)
class Shifted:
    """Bounds under a shifted law Q from `sent` and `bad`, rates of all N items under the law P of the file.

    `bad_mass` bounds Q(disallowed and sent), taking P's to be as measured, and `bad_mass_upper` taking it at its
    one-sided upper end, which holds with probability `confidence`; each is the least over the distances given.
    With Q(A) the share that Q sends, `sent_after` or else at least P(A) - TV as measured: `share` bounds the disallowed
    share of it by 1 - tau_act + TV / Q(A), for a P without overconfidence above tau_act (None without a TV), and
    `share_upper` by bad_mass_upper / Q(A), for any P. Both are None where Q(A) is not known to exceed 0.
    """

    bad_mass: Fraction
    bad_mass_upper: Fraction
    share: Fraction | None
    share_upper: Fraction | None
    confidence: float

    def json(self) -> dict[str, Any]:
        """The bounds as floats."""
        return {
            "bad_mass": float(self.bad_mass),
            "bad_mass_upper": float(self.bad_mass_upper),
            "share": None if self.share is None else float(self.share),
            "share_upper": None if self.share_upper is None else float(self.share_upper),
            "confidence": self.confidence,
        }


def shifted(
    report: Any,
    *,
    tv: Any = None,
    ratio: Any = None,
    chi2: Any = None,
    sent_after: Any = None,
) -> Shifted:
    """Bounds on what a `Report`'s guard sends after a shift of at most these distances, at least one of them given.

    `tv` in [0, 1]: total variation. `ratio` >= 1: sup of Q/P. `chi2` >= 0: E_P[(Q/P - 1)^2]. All of (report, label),
    numbers read exactly. `sent_after`: the share of new items sent, which needs no labels.
    Raises GuardError for values outside these ranges. Source: M14 Eq. 5, guard design T6.
    """
    distances = [
        None if tv is None else probability(tv, "tv"),
        None if ratio is None else at_least(1, ratio, "ratio", "2"),
        None if chi2 is None else at_least(0, chi2, "chi2", "1/4"),
    ]
    if distances == [None, None, None]:
        raise GuardError("no distance is given; give tv, ratio or chi2 of the shift, such as tv=0.01")
    sent = Fraction(report.sent, report.items)
    if sent_after is not None:
        sent = probability(sent_after, "sent_after")
    elif distances[0] is not None:
        sent = max(Fraction(0), sent - distances[0])
    else:
        sent = Fraction(0)
    upper = moved(Fraction(Rate.of(report.bad, report.items).upper_at(report.confidence)), *distances)
    return Shifted(
        bad_mass=moved(Fraction(report.bad, report.items), *distances),
        bad_mass_upper=upper,
        share=_share(report.thresholds.tau_act, sent, distances[0]),
        share_upper=min(Fraction(1), upper / sent) if sent else None,
        confidence=report.confidence,
    )


def moved(mass: Fraction, tv: Fraction | None, ratio: Fraction | None, chi2: Fraction | None) -> Fraction:
    """The most that an event of P-mass `mass` can weigh under Q within the distances given, at most 1. T6."""
    found = [Fraction(1)]
    if tv is not None:
        found.append(mass + tv)
    if ratio is not None:
        found.append(mass * ratio)
    if chi2 is not None:
        found.append(chi2_end(mass, chi2))
    return min(found)


def _share(tau: Fraction | None, sent: Fraction, tv: Fraction | None) -> Fraction | None:
    """T6 in total variation: 1 - tau + TV / Q(A), at most 1."""
    if tau is None or tv is None or sent == 0:
        return None
    return min(Fraction(1), 1 - tau + tv / sent)
