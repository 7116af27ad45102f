"""Tail: Eq. 5 where a guard acts, with P6 in code and without; imports toy, evaluation and guard.report.

A small calibration error over all emails says little about the few that are acted on. Without P6 in code, a decider
that compares no addresses sees wrong addresses as it sees right ones: near certainty its report is too high by their
share, and the promise 1 - tau_act breaks. With P6 in code the same emails never reach it.
Source: M14 Eq. 5, §6 (hard rules in code); guard design T2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harnesses.desk.decider import Decider, nouls
from harnesses.desk.generator import CALIBRATION, SEED, TRAIN, split
from harnesses.desk.items import GuardItem
from harnesses.desk.policy import GUARD_COSTS, GUARD_THRESHOLDS
from harnesses.desk.toy import BETA, Toy, Trained, asked, toy
from harnesses.guard.region import Thresholds
from harnesses.guard.report import Report, report
from harnesses.guard.scores import Scores

IN_CODE, LEFT_TO_MODEL, LIFTED = "in code", "left to the model", "lifted"
"""P6 checked before the decider is asked; never checked, and the decider fitted on all emails; the decider of the first
arm in a desk without the rule."""
ARMS = (IN_CODE, LEFT_TO_MODEL, LIFTED)


@dataclass(frozen=True)
class Tail:
    """One arm: `guard` counts the emails that the decider was asked about, `ece` is its calibration error on them."""

    arm: str
    guard: Report

    @property
    def ece(self) -> float:
        """Global calibration error of the reports, L1 over bins."""
        assert self.guard.calibration is not None
        return float(self.guard.calibration.ece_width)

    def json(self) -> dict[str, Any]:
        """As data."""
        return {"arm": self.arm, "ece": self.ece, **self.guard.json()}


def tail(
    arm: str,
    items: Sequence[GuardItem],
    decider: Decider | None = None,
    thresholds: Thresholds = GUARD_THRESHOLDS,
) -> Tail:
    """What an arm does on labelled emails; the toy decider of the arm unless another is given.

    Raises ValueError for an unknown arm.
    """
    if arm not in ARMS:
        raise ValueError(f"no arm {arm!r}; name one of {', '.join(ARMS)}")
    used = decider_of(arm) if decider is None else decider
    emails = asked(items, p6_in_code=arm == IN_CODE)
    reports = nouls(used, [item.question() for item in emails])
    scores = Scores.of(reports, [int(item.allowed) for item in emails], source=f"P6 {arm}")
    return Tail(arm, report(scores, thresholds, GUARD_COSTS))


def decider_of(arm: str) -> Toy:
    """The toy decider of an arm: fitted on emails that pass P6, or on all where that is left to it."""
    return Toy(_without_p6(), BETA) if arm == LEFT_TO_MODEL else toy()


@lru_cache(maxsize=1)
def _without_p6() -> Trained:
    """Fitted on all emails of the published splits."""
    return Trained.of(split(TRAIN, SEED), split(CALIBRATION, SEED), p6_in_code=False)
