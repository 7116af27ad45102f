"""The toy guard of M14 §7: its 400 items to the last bit, as many more as wanted, and its closed form.

An item has u uniform on [0, 1) and is allowed with probability 1 - c u^3, c = 19/20. The calibrated guard reports
that probability; an overconfident one divides its doubt by kappa. Imports region, costs and scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harnesses.guard.costs import PERFECT, Costs, Reviewer
from harnesses.guard.region import GuardError, Thresholds
from harnesses.guard.scores import Scores

SEED = 14
COUNT = 400
KAPPA = 4
DOUBT = 0.95
"""c: the largest doubt of the calibrated guard."""
COSTS = Costs(wrong=20, ask="1/2", miss=4, escalate=3)

_STEP = np.uint32(0x6D2B79F5)


def demo_items(count: int = COUNT, seed: int = SEED, kappa: float = 1) -> Scores:
    """The first `count` items of the source's generator under `seed`; `kappa` 4 is its overconfident guard.

    Draw 2 i makes the report of item i, draw 2 i + 1 its label. Source: M14 §7, the demo.
    """
    if count < 1:
        raise GuardError(f"count is {count}; give at least 1 item, such as {COUNT}")
    draws = uniforms(2 * count, seed)
    u = draws[0::2]
    # Products, not a power: libraries round powers differently, and the source's last item tells which it has.
    q = 1 - DOUBT * (u * u * u)
    allowed = draws[1::2] < q
    return Scores.of(q if kappa == 1 else overconfident(q, kappa), allowed, source=f"demo, seed {seed}")


def overconfident(p: Any, kappa: float = KAPPA) -> Any:
    """Reports `[...]` with the doubt 1 - p divided by kappa."""
    if not kappa > 0:
        raise GuardError(f"kappa is {kappa}; give a number above 0, such as {KAPPA}")
    return 1 - (1 - p) / kappa


def uniforms(count: int, seed: int) -> np.ndarray:
    """Draws float64 `[count]` in [0, 1) of the mulberry32 generator, whose state is a counter.

    Source: M14 §7, the demo's code, which computes in 32 bits.
    """
    with np.errstate(over="ignore"):
        state = np.uint32(seed % 2**32) + _STEP * np.arange(1, count + 1, dtype=np.uint32)
        mixed = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
        mixed ^= mixed + (mixed ^ (mixed >> np.uint32(7))) * (mixed | np.uint32(61))
    return (mixed ^ (mixed >> np.uint32(14))) / 2.0**32


@dataclass(frozen=True)
class ClosedForm:
    """Exact population of the guard that divides its doubts by `kappa`: report p = 1 - c u^3 / kappa.

    `kappa` at least 1. Shares are of all items unless said otherwise. Source: the closed form follows from M14
    §7's generator; calibrated at kappa 1.
    """

    kappa: float = 1.0

    def __post_init__(self) -> None:
        if not self.kappa >= 1:
            raise GuardError(f"kappa is {self.kappa}; give 1 (calibrated) or more, such as {KAPPA}")

    @property
    def pi0(self) -> float:
        """Share of items that are not allowed."""
        return DOUBT / 4

    def quantile(self, tau: Any) -> float:
        """u below which the report is at least tau: the share of items with such a report; 0 for None."""
        if tau is None:
            return 0.0
        return min(1.0, (self.kappa * float(1 - tau) / DOUBT) ** (1 / 3))

    def report(self, u: Any) -> Any:
        """Reports `[...]` at u `[...]`."""
        return 1 - DOUBT * u**3 / self.kappa

    def sent(self, tau: Any) -> float:
        """Share that is acted on alone."""
        return self.quantile(tau)

    def share(self, tau: Any) -> float | None:
        """Disallowed among those acted on; None where none is."""
        u = self.quantile(tau)
        return DOUBT * u**3 / 4 if u > 0 else None

    def uar(self, tau: Any) -> float:
        """Acted on among the disallowed."""
        return self.quantile(tau) ** 4

    def threshold(self, uar: float) -> float:
        """The least tau whose unsafe-action rate is at most `uar`."""
        return float(self.report(uar**0.25))

    def asked(self, cut: Thresholds) -> float:
        """Share that is asked about."""
        return self.quantile(cut.tau_esc) - self.quantile(cut.tau_act)

    def escalated(self, cut: Thresholds) -> float:
        """Share that is escalated."""
        return 1 - self.quantile(cut.tau_esc)

    def cost(self, cut: Thresholds, costs: Costs = COSTS, reviewer: Reviewer = PERFECT) -> float:
        """Expected cost per case."""
        c, judge = costs.exact(), reviewer.exact()
        act, esc = self.quantile(cut.tau_act), self.quantile(cut.tau_esc)
        bad, bad_asked = DOUBT * act**4 / 4, DOUBT * (esc**4 - act**4) / 4
        approved = judge.e0 * bad_asked
        rejected = judge.e1 * ((esc - act) - bad_asked)
        return float(
            float(c.wrong) * (bad + approved)
            + float(c.ask) * (esc - act)
            + float(c.miss) * (bad_asked - approved)
            + float(judge.r) * rejected
            + float(c.escalate) * (1 - esc)
        )
