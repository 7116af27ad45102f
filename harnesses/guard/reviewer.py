"""Theorem T5's facts on a fallible reviewer: when asking stops paying, and when two thresholds suffice; imports costs.

The thresholds themselves are in `thresholds`. Asking costs `base + slope q` with q = 1 - p: base = a + e1 r,
slope = (1 - e0) s + e0 w - e1 r.
"""

from __future__ import annotations

from fractions import Fraction

from harnesses.guard.costs import PERFECT, Costs, Reviewer, expected_costs
from harnesses.guard.region import GuardError, Region


def asking_line(costs: Costs, reviewer: Reviewer = PERFECT) -> tuple[Fraction, Fraction]:
    """(base, slope) of the cost of asking in the doubt q = 1 - p."""
    base = expected_costs(1, costs, reviewer)[Region.ASK]
    return base, expected_costs(0, costs, reviewer)[Region.ASK] - base


def threshold_form(costs: Costs, reviewer: Reviewer = PERFECT) -> bool:
    """T5: whether e1 r <= s + e0 (w - s), under which act, ask, escalate follow each other as p falls.

    Without it asking can be best at the *worst* reports: w 20, a 1/2, s 0, e 1, e1 1/2, r 10 asks up to p = 1/10,
    escalates up to 19/20 and acts above. Sufficient, not necessary. Source: guard design T5.
    """
    return asking_line(costs, reviewer)[1] >= 0


def collapses(costs: Costs, reviewer: Reviewer = PERFECT) -> bool:
    """T5: whether no report is worth a question: min(e, w) (w - slope) <= base w.

    Hypotheses: `threshold_form`, else GuardError. For r = 0 this is min(e, w)(1 - e0)(w - s) <= a w. The minimum is
    needed: with w 2, a 1, s 1, e 10 acting is never dearer than asking, though e (w - s) > a w. One tie excepted:
    where asking always costs just what escalating does (slope 0, base = e < w), questions are asked.
    Source: M14 §7 for the collapse of the router's rule, guard design T5. Differs from the design: min(e, w) for e.
    """
    c = costs.exact()
    base, slope = asking_line(costs, reviewer)
    if slope < 0:
        raise GuardError(
            f"asking gets cheaper with doubt (by {-slope}); lower e1 or r, or raise miss {c.miss}"
        )
    if slope == 0 and base == c.escalate < c.wrong:
        return False
    return min(c.escalate, c.wrong) * (c.wrong - slope) <= base * c.wrong


def collapse_error(costs: Costs) -> Fraction:
    """T5: the least e0 at which the guard collapses, with no wrong rejections (e1 = 0 or r = 0).

    1 - a w / (min(e, w)(w - s)), at least 0; 0 too for a guard that asks at a perfect reviewer by the tie of
    `collapses` alone. M14's guard (20, 1/2, 4, 3): 19/24. Source: guard design T5.
    """
    c = costs.exact()
    gain = min(c.escalate, c.wrong) * (c.wrong - c.miss)
    return max(Fraction(0), 1 - c.ask * c.wrong / gain) if gain > 0 else Fraction(0)
