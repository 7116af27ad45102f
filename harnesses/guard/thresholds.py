"""Thresholds from costs: theorems T1 (perfect reviewer) and T5 (fallible reviewer); imports costs and region.

M14 Eq. 4 as printed fails where its tau_esc exceeds its tau_act (wrong 2, ask 1, miss 1, escalate 1 acts at p = 0
at cost 2 where escalating costs 1) and where wrong <= miss. The rule here is optimal for all costs.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from harnesses.guard.costs import PERFECT, Costs, Reviewer
from harnesses.guard.region import GuardError, Thresholds


def thresholds(costs: Costs, reviewer: Reviewer = PERFECT) -> Thresholds:
    """The thresholds under which `region(p, ...)` has the least expected cost at every p, ties to autonomy.

    Exact: costs are read as rationals. Raises GuardError where no pair does that, which needs a reviewer whose
    rejections of allowed calls cost more than a miss: then escalate lies between act and ask. It is raised too where
    asking meets the cost of escalating at p = 0 alone, and only the tie there goes to escalating without it.
    Source: M14 Eq. 4 for the form. Differs from the source: see the module.
    """
    c, judge = costs.exact(), reviewer.exact()
    found = cuts(c.wrong, c.ask, c.miss, c.escalate, *astuple(judge))
    if found is None:
        raise GuardError(
            f"with e1 {judge.e1} at cost {judge.r} asking gets cheaper as a call gets worse, and no two thresholds "
            f"are optimal; lower r or e1, or raise miss {c.miss}"
        )
    q_act, q_ask = found
    return Thresholds(1 - q_act, 1 - q_ask)


def cuts(w: Any, a: Any, s: Any, e: Any, e0: Any = 0, e1: Any = 0, r: Any = 0) -> tuple[Any, Any] | None:
    """Largest doubts q = 1 - p at which to act, and at which to act or ask; None where ask follows escalate.

    Uses arithmetic and comparisons only, so that it runs on Fractions, floats and symbols alike: this is the
    function that z3 proves optimal over the reals. With a fallible reviewer asking costs `base + slope q`; a
    perfect one (e0 = e1 = 0) has base a and slope s, which is T1.
    """
    base = a + e1 * r
    slope = (1 - e0) * s + e0 * w - e1 * r
    q_act = 1
    if w > e:  # then w > 0
        q_act = e / w
    if w - slope > base:
        q_act = min(q_act, base / (w - slope))
    if slope >= 0:
        if base > e:
            return q_act, q_act
        if slope > e - base:
            return q_act, max(q_act, (e - base) / slope)
        return q_act, 1
    # Asking gets cheaper with doubt: from `turn` on it is no dearer than escalating.
    if base <= e:
        return q_act, 1
    turn = (base - e) / -slope
    if turn > 1:
        return q_act, q_act
    return (q_act, 1) if turn <= q_act else None
