"""Choosing tau_act from labelled reports so that the unsafe-action rate is at most alpha: theorem T9.

Imports region, rate, scores and tail. All rules act strictly above the order statistic b_{k+1} of the disallowed
reports, sorted down; they differ in k, the number of disallowed items that may pass. Strictness matters: where
several items share that report, a threshold at it lets all of them pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from harnesses.guard.rate import Rate
from harnesses.guard.region import Thresholds
from harnesses.guard.scores import Scores
from harnesses.guard.tail import level, most_failures, rate_between, zero_failure_size


@dataclass(frozen=True)
class Selection:
    """A chosen threshold, with what it was chosen from. None in `tau_act`: never act alone; `why` says why.

    `n` disallowed items, `k` of them may pass (None: no k is admissible), `b` the report b_{k+1} that a call must
    exceed; `tau_act` is the next float above it. On the data of the choice `sent` calls reach it, `bad` of them
    disallowed. The intervals of `uar` and `share` ignore that the threshold was chosen on these data: the promise of
    the rule is `alpha`, not they.
    """

    rule: str
    tau_act: float | None
    alpha: Fraction
    delta: Fraction | None
    n: int
    k: int | None
    b: float | None
    sent: int
    bad: int
    why: str | None

    @property
    def uar(self) -> Rate:
        """Acted on among the disallowed, on the data of the choice. Source: M14 Eq. 7."""
        return Rate.of(self.bad, self.n)

    @property
    def share(self) -> Rate:
        """Disallowed among those acted on, on the data of the choice."""
        return Rate.of(self.bad, self.sent)

    def thresholds(self, tau_esc: Any) -> Thresholds:
        """Both thresholds of the guard; a tau_esc above tau_act is lowered to it: nothing is asked about then."""
        return Thresholds.capped(self.tau_act, tau_esc)

    def json(self) -> dict[str, Any]:
        """The record; alpha and delta as floats."""
        out: dict[str, Any] = dict(vars(self))
        out["alpha"] = float(self.alpha)
        out["delta"] = None if self.delta is None else float(self.delta)
        out["uar"], out["share"] = self.uar.json(), self.share.json()
        return out


def pac_threshold(p: Any, y: Any, alpha: Any, delta: Any) -> Selection:
    """The least threshold under which P(UAR <= alpha) >= 1 - delta over the draw of the data, T9.

    `p` `[N]` reports in [0, 1], `y` `[N]` labels, 1 = allowed, of independent items from one population. Nothing
    else is assumed: the guard need not be calibrated and reports may tie. With k = max{k : P(Bin(n, alpha) <= k)
    <= delta} the rule fails only if at most k of n disallowed items lie in the least set {p >= t} that holds
    alpha or more of their mass. Raises GuardError for reports, labels, alpha or delta that are none.
    """
    data, alpha, delta = Scores.of(p, y), rate_between(alpha, "alpha"), level(delta, "delta")
    n = _disallowed(data)
    why = None
    k = most_failures(n, alpha, delta)
    if k is None:
        why = f"with {_items(n)} no threshold can be certified; {zero_failure_size(alpha, delta)} are needed"
    return _select("pac", data, alpha, delta, k, why)


def conformal_threshold(p: Any, y: Any, alpha: Any) -> Selection:
    """The least threshold under which E[UAR] <= alpha, the mean over draws of the data: split conformal.

    A new disallowed item exceeds the j-th largest of n earlier ones with probability at most j / (n + 1), so j =
    floor(alpha (n + 1)). The rate of the threshold one gets exceeds alpha in up to about half of all draws. Source: V.
    Vovk, A. Gammerman and G. Shafer, Algorithmic Learning in a Random World (2005).
    """
    data, alpha = Scores.of(p, y), rate_between(alpha, "alpha")
    n = _disallowed(data)
    j = math.floor(alpha * (n + 1))
    why = None
    if j == 0:
        why = f"with {_items(n)} the mean rate cannot be kept; {math.ceil(1 / alpha) - 1} are needed"
    return _select("conformal", data, alpha, None, j - 1 if j else None, why)


def naive_threshold(p: Any, y: Any, alpha: Any) -> Selection:
    """The least threshold whose observed UAR is at most alpha: no guarantee; of many items half the choices fail."""
    data, alpha = Scores.of(p, y), rate_between(alpha, "alpha")
    n = _disallowed(data)
    k = math.floor(alpha * n) if n else None
    return _select(
        "naive", data, alpha, None, k, None if n else "without disallowed items no rate is observed"
    )


def _disallowed(data: Scores) -> int:
    return int(np.count_nonzero(~data.allowed))


def _items(n: int) -> str:
    return f"{n} disallowed item{'' if n == 1 else 's'}"


def _select(
    rule: str, data: Scores, alpha: Fraction, delta: Fraction | None, k: int | None, why: str | None
) -> Selection:
    """Act strictly above b_{k+1}, which is 0-based entry k of the disallowed reports sorted down."""
    bad = np.sort(data.p[~data.allowed])[::-1]
    b = None if k is None else float(bad[k])
    tau = None
    if b is not None and b < 1:
        tau = float(np.nextafter(b, 2.0))
    elif b is not None:
        why = f"{_items(int(np.count_nonzero(bad == 1)))} have report 1, more than the {k} that may pass"
    acted = np.zeros(data.size, dtype=bool) if tau is None else data.p >= tau
    passed = int(acted[~data.allowed].sum())
    return Selection(rule, tau, alpha, delta, bad.size, k, b, int(acted.sum()), passed, why)
