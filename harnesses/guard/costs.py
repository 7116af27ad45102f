"""What the three regions cost: of a wrong act, a question, a miss and an escalation; imports region.

Expected cost of a report with q = 1 - p: act `w q`; ask `a + q ((1-e0) s + e0 w) + p e1 r`; escalate `e`.
Source: M14 §7 and Eq. 4 for the costs; the reviewer is this project's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from harnesses.guard.region import Region, at_least, probability


@dataclass(frozen=True)
class Costs:
    """`ask` a question, `miss` a disallowed call that was asked about and rejected, `escalate` a hand-over.

    `wrong`: a disallowed call carried out; 0 in a model whose reward says already what that costs. All at
    least 0, in one unit.
    """

    ask: Any = 0
    miss: Any = 0
    escalate: Any = 0
    wrong: Any = 0

    def exact(self) -> Costs:
        """The same costs as Fractions. Raises GuardError for one that is no number or below 0."""
        return Costs(
            **{f.name: at_least(0, getattr(self, f.name), f"cost {f.name}", "1/2") for f in fields(self)}
        )


@dataclass(frozen=True)
class Reviewer:
    """Approves a disallowed call with probability `e0`, rejects an allowed one with `e1`, at cost `r`."""

    e0: Any = 0
    e1: Any = 0
    r: Any = 0

    def exact(self) -> Reviewer:
        """The same reviewer in Fractions. Raises GuardError for what is no probability or no cost."""
        return Reviewer(
            probability(self.e0, "reviewer e0"),
            probability(self.e1, "reviewer e1"),
            at_least(0, self.r, "reviewer r", "1/2"),
        )


PERFECT = Reviewer()


def expected_costs(p: Any, costs: Costs, reviewer: Reviewer = PERFECT) -> Mapping[Region, Fraction]:
    """Exact expected cost of each region for a call that is allowed with probability p."""
    c, judge, report = costs.exact(), reviewer.exact(), probability(p, "report p")
    q = 1 - report
    asked = c.ask + q * ((1 - judge.e0) * c.miss + judge.e0 * c.wrong) + report * judge.e1 * judge.r
    return {Region.ACT: c.wrong * q, Region.ASK: asked, Region.ESCALATE: c.escalate}


def best_region(p: Any, costs: Costs, reviewer: Reviewer = PERFECT) -> Region:
    """The cheapest region for a call allowed with probability p; ties go to the more autonomous one."""
    found = expected_costs(p, costs, reviewer)
    return min(found, key=lambda kind: found[kind])
