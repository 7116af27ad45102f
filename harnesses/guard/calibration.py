"""How far reports can be trusted, in one record; imports tally, reliability, smooth_ece and acting_region.

Scores of the whole set (Brier, log loss, AUC, calibration errors) and, with a threshold, of the region acted on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from harnesses.guard.acting_region import ActingRegion
from harnesses.guard.rate import Rate
from harnesses.guard.reliability import Bin, bin_number, debiased_squared, ece, equal_mass, equal_width
from harnesses.guard.smooth_ece import smooth_ece
from harnesses.guard.tally import Tally


@dataclass(frozen=True)
class Calibration:
    """Calibration of reports against labels.

    `allowed` of all items were allowed. `width_rows` and `mass_rows` are the tables with `bins` bins of equal width
    and of equal mass; `ece_width` and `ece_mass` their errors, biased upwards; `debiased_squared` the squared error
    of the mass table without its noise, None where no bin has two items; `smooth_ece` needs no bins.
    `log_loss` is None where `certain_and_wrong` items, reported 0 or 1 against their label, make it infinite;
    `auc` is None with labels of one kind. `acting` is None where no threshold was given.
    """

    allowed: Rate
    bins: int
    width_rows: tuple[Bin, ...]
    mass_rows: tuple[Bin, ...]
    ece_width: float
    ece_mass: float
    debiased_squared: float | None
    smooth_ece: float
    brier: float
    log_loss: float | None
    certain_and_wrong: int
    auc: float | None
    acting: ActingRegion | None

    @classmethod
    def of(cls, p: Any, y: Any, tau_act: Any = None, bins: int = 15) -> Calibration:
        """From reports `[N]` in [0, 1] and labels `[N]`; `tau_act` as in Thresholds, None for no acting region.

        Raises GuardError naming the first row that is no report or no label, and for a set without items.
        """
        tally, size = Tally.of(p, y), bin_number(bins)
        width, mass = equal_width(tally, size), equal_mass(tally, size)
        wrong = certain_and_wrong(tally)
        return cls(
            allowed=Rate.of(tally.total_allowed, tally.size),
            bins=size,
            width_rows=width,
            mass_rows=mass,
            ece_width=ece(width) or 0.0,
            ece_mass=ece(mass) or 0.0,
            debiased_squared=debiased_squared(mass),
            smooth_ece=smooth_ece(tally),
            brier=brier(tally),
            log_loss=None if wrong else log_loss(tally),
            certain_and_wrong=wrong,
            auc=auc(tally),
            acting=None if tau_act is None else ActingRegion.of(tally, tau_act, size),
        )

    @property
    def debiased(self) -> float | None:
        """Root of the debiased squared error, 0 where that is negative: on the scale of the other errors."""
        return None if self.debiased_squared is None else math.sqrt(max(0.0, self.debiased_squared))

    def json(self) -> dict[str, Any]:
        """The record with nested tables; no value is NaN or infinite."""
        plain = ("bins", "ece_width", "ece_mass", "debiased_squared", "debiased", "smooth_ece", "brier")
        return {
            "items": self.allowed.denominator,
            "allowed": self.allowed.json(),
            **{name: getattr(self, name) for name in plain},
            "log_loss": self.log_loss,
            "certain_and_wrong": self.certain_and_wrong,
            "auc": self.auc,
            "equal_width": [row.json() for row in self.width_rows],
            "equal_mass": [row.json() for row in self.mass_rows],
            "acting": None if self.acting is None else self.acting.json(),
        }

    def lines(self) -> list[str]:
        """For people: errors, scores, the acting region, the table of equal mass."""
        loss = f"infinite ({self.certain_and_wrong} items certain and wrong)"
        if self.log_loss is not None:
            loss = f"{self.log_loss:.4f}"
        return [
            f"allowed {self.allowed}",
            f"ECE {self.ece_width:.4f} in {self.bins} bins of equal width, {self.ece_mass:.4f} of equal mass",
            f"calibration error without bins {self.smooth_ece:.4f}, root mean square {_text(self.debiased)} (debiased)",
            f"Brier {self.brier:.4f}, log loss {loss}, AUC {_text(self.auc)}",
            *([] if self.acting is None else self.acting.lines()),
            *(str(row) for row in self.mass_rows),
        ]


def brier(tally: Tally) -> float:
    """Mean of (p - y)^2, in [0, 1]."""
    report = tally.report
    return float(tally.allowed @ (1 - report) ** 2 + tally.disallowed @ report**2) / tally.size


def log_loss(tally: Tally) -> float:
    """Mean of -log of the probability given to the label, in nats; infinite where `certain_and_wrong` is not 0."""
    with np.errstate(divide="ignore"):
        gains = _times(tally.allowed, np.log(tally.report)) + _times(
            tally.disallowed, np.log1p(-tally.report)
        )
    return 0.0 - float(gains.sum()) / tally.size


def certain_and_wrong(tally: Tally) -> int:
    """Disallowed items reported as 1 and allowed ones reported as 0."""
    return int(tally.disallowed[tally.report == 1].sum() + tally.allowed[tally.report == 0].sum())


def auc(tally: Tally) -> float | None:
    """Probability that an allowed item is reported above a disallowed one, ties half; None with one kind only."""
    bad = tally.disallowed
    pairs = tally.total_allowed * (tally.size - tally.total_allowed)
    if not pairs:
        return None
    below = np.cumsum(bad) - bad
    return int((tally.allowed * (2 * below + bad)).sum()) / (2 * pairs)


def _times(count: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Products in which no item of infinite loss is 0 and not undefined."""
    return np.multiply(count, value, out=np.zeros(value.shape), where=count > 0)


def _text(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
