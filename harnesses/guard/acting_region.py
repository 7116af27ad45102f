"""Calibration where it decides, among the items acted on (theorem T2); imports reliability, rate and binomial.

The share of disallowed items among those with p >= tau is E[1-p|A] + E[p-y|A] <= 1 - tau + E[p-y|A]. A global
calibration error says little about the second term, because all of it may lie in A: measure it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harnesses.guard.binomial import lower_end, upper_end
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, probability
from harnesses.guard.reliability import Bin, equal_mass
from harnesses.guard.tally import Tally


@dataclass(frozen=True)
class ActingRegion:
    """The items with p >= `tau`: `disallowed` of them, `doubt` their mean 1 - p, `overconfidence` their mean p - y.

    `se` is that mean's standard error; `lower` and `upper` are its one-sided ends, each at `confidence`. `bound` is
    the estimate of T2's bound, 1 - tau + max(0, overconfidence), and `bound_upper` the same at `upper`: only the
    latter holds with `confidence`, and only without regard to how tau was chosen. `rows` splits the region into
    bins of equal mass. All but the counts are None where nothing is acted on; `se` also with one item.
    """

    tau: Fraction
    disallowed: Rate
    doubt: float | None
    overconfidence: float | None
    se: float | None
    lower: float | None
    upper: float | None
    bound: float | None
    bound_upper: float | None
    rows: tuple[Bin, ...]
    confidence: float

    @classmethod
    def of(cls, tally: Tally, tau: Any, bins: int = 15, confidence: float = 0.95) -> ActingRegion:
        """From all items of a guard and its `tau_act`, read exactly.

        The ends are those of the disallowed share, `unlike_ends`, less the mean doubt. They concern the reports at
        hand, whose labels are independent but not alike. Raises GuardError for a confidence below 3/4.
        """
        tau = probability(tau, "tau_act")
        acted = tally.at_least(tau)
        bad, sent = acted.size - acted.total_allowed, acted.size
        rate = Rate.of(bad, sent)
        if not sent:
            return cls(tau, rate, None, None, None, None, None, None, None, (), confidence)
        # Doubts are summed as such: 1 - mean(p) loses the digits of a mean near 1.
        doubt = float(acted.count @ (1 - acted.report)) / sent
        low, high = unlike_ends(bad, sent, confidence)
        lower, upper = low - doubt, high - doubt
        over = bad / sent - doubt
        (whole,) = equal_mass(acted, 1)
        rows = equal_mass(acted, bins)
        return cls(
            *(tau, rate, doubt, over, whole.se, lower, upper),
            *(_bound(tau, over), _bound(tau, upper), rows, confidence),
        )

    def json(self) -> dict[str, Any]:
        """The record; `tau_exact` is text."""
        plain = ("doubt", "overconfidence", "lower", "upper", "bound", "bound_upper", "confidence")
        return {
            "tau": float(self.tau),
            "tau_exact": str(self.tau),
            "disallowed": self.disallowed.json(),
            "overconfidence_se": self.se,
            **{name: getattr(self, name) for name in plain},
            "bins": [row.json() for row in self.rows],
        }

    def lines(self) -> list[str]:
        """For people: what was promised, what was observed, and what T2 makes of it."""
        found = [f"acting region, p >= {self.tau}: disallowed {self.disallowed}"]
        if self.overconfidence is None:
            return found
        error = "" if self.se is None else f" (se {self.se:.4f})"
        sure = f"{100 * self.confidence:g} %"
        return [
            *found,
            f"  mean doubt reported there {self.doubt:.4f}, overconfidence {self.overconfidence:+.4f}{error}",
            f"  with {sure} each: at least {self.lower:+.4f}, at most {self.upper:+.4f}",
            f"  bound 1 - tau + overconfidence: {self.bound:.4f} as estimated, {self.bound_upper:.4f} with {sure}",
        ]


def unlike_ends(bad: int, sent: int, confidence: float) -> tuple[float, float]:
    """One-sided ends of the mean rate of `sent` independent labels, not all of one rate, of which `bad` are bad.

    Clopper-Pearson but for one of either kind: P(count >= c) is at most the binomial tail of the mean rate m where
    c >= sent m + 1, which any c > 1 of probability below 1/4 meets. That at least one is bad has at most probability
    sent m, and a single doubtful item among sure ones attains it; so then the lower end is (1 - confidence) / sent.
    Source: W. Hoeffding, On the distribution of the number of successes in independent trials, Annals of
    Mathematical Statistics 27 (1956).
    """
    if not 0.75 <= confidence < 1:
        raise GuardError(f"confidence is {confidence}; give one from 0.75 up and below 1, such as 0.95")
    one = (1 - confidence) / sent
    lower = one if bad == 1 else lower_end(bad, sent, confidence)
    upper = 1 - one if sent - bad == 1 else upper_end(bad, sent, confidence)
    return lower, upper


def _bound(tau: Fraction, overconfidence: float) -> float:
    """T2's bound on the share, at most 1; a guard that errs on the safe side is still promised 1 - tau only."""
    return min(1.0, float(1 - tau) + max(0.0, overconfidence))
