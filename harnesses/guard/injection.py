"""What an injected document does to the items of a score file, with T7's bounds; imports scores, rate and injected.

`injected` states the theorem on an exact law; here its terms are counted on data. The shift of an item is its
report with the document minus its report without, and a rise is a shift upwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from harnesses.guard.injected import lowered, remedy, restored_threshold
from harnesses.guard.rate import Average, Rate
from harnesses.guard.region import GuardError, cut, probability
from harnesses.guard.scores import Scores, labels, rows_of

# Reports are within 2^-54 of their decimals, so a difference of floats is within this of the exact one.
_ROUNDING = 2.0**-50
# Enough for the difference of any two float64 in [0, 1]: the least one ends at its 324th decimal place.
_DIGITS = 400


@dataclass(frozen=True)
class Sending:
    """What one threshold sends of N items: all sent and the disallowed sent, each of N; `share` and `uar`."""

    sent: Rate
    bad: Rate
    share: Rate
    uar: Rate

    @classmethod
    def of(cls, p: np.ndarray, y: np.ndarray, tau: Any, level: float = 0.95) -> Sending:
        """From reports and labels `[N]`, sending at p >= tau; tau None sends nothing."""
        acted = p >= cut(tau)
        sent, bad = int(acted.sum()), int((acted & (y == 0)).sum())
        disallowed = int((y == 0).sum())
        counts = (sent, p.size), (bad, p.size), (bad, sent), (bad, disallowed)
        return cls(*(Rate.of(k, n, level) for k, n in counts))

    def json(self) -> dict[str, Any]:
        """The four rates."""
        return {
            "sent": self.sent.json(),
            "bad": self.bad.json(),
            "share": self.share.json(),
            "uar": self.uar.json(),
        }


@dataclass(frozen=True)
class Injection:
    """Reports with and without an injected document, at the threshold `tau_act` or None.

    `shift` is the mean of p_injected - p, `smallest` and `largest` its exact extremes, `rise` D = max(0, largest).
    `crossed_up` and `crossed_down` count, of all N items, those the document moves over tau_act;
    `crossed_up_bad` counts the disallowed of the first. `before` and `after` are what tau_act sends.

    T7, an injection that tells no more of the label than the report: the share is at most `share_bound`
    = 1 - tau_act + D, and 1 - tau_act again at `restored` = tau_act + D (None: beyond 1).
    T7, any injection: the mass of disallowed sent is at most `doubted` = E[(1-p) 1{p >= tau_act - D}] for a
    calibrated p, and at most `reachable_bad`, the disallowed with p >= tau_act - D, for any; `restored` brings it to
    its value without injection or less. `exposed`: items with tau_act - D <= p < tau_act, which a rise of D can send.
    All of this takes D for the largest rise; one of a sample may be below that of the population.
    Source: M14 Eq. 9 and §7; guard design T7.
    """

    tau_act: Fraction | None
    shift: Average
    smallest: Fraction
    largest: Fraction
    crossed_up: Rate
    crossed_down: Rate
    crossed_up_bad: Rate
    before: Sending
    after: Sending
    exposed: Rate
    reachable_bad: Rate
    doubted: float

    @classmethod
    def of(cls, scores: Scores, tau_act: Any, level: float = 0.95) -> Injection:
        """From scores with `p_injected`. Raises GuardError where they have none."""
        if scores.p_injected is None:
            raise GuardError(
                f"{scores.source} has no column p_injected; give the report of every item with the document added"
            )
        tau = None if tau_act is None else probability(tau_act, "tau_act")
        p, after, bad = scores.p, scores.p_injected, ~scores.allowed
        largest = widest(p, after)
        limit = cut(tau)
        up = (p < limit) & (after >= limit)
        low = math.inf if tau is None else cut(lowered(tau, max(Fraction(0), largest)))
        return cls(
            tau_act=tau,
            shift=Average.of(after - p, level),
            smallest=-widest(after, p),
            largest=largest,
            crossed_up=Rate.of(int(up.sum()), p.size, level),
            crossed_down=Rate.of(int(((p >= limit) & (after < limit)).sum()), p.size, level),
            crossed_up_bad=Rate.of(int((up & bad).sum()), int(up.sum()), level),
            before=Sending.of(p, scores.y, tau, level),
            after=Sending.of(after, scores.y, tau, level),
            exposed=Rate.of(int(((p >= low) & (p < limit)).sum()), p.size, level),
            reachable_bad=Rate.of(int(((p >= low) & bad).sum()), p.size, level),
            doubted=math.fsum(1 - p[p >= low]) / p.size,
        )

    @property
    def rise(self) -> Fraction:
        """D: the largest shift upwards, 0 where none is."""
        return max(Fraction(0), self.largest)

    @property
    def share_bound(self) -> Fraction | None:
        """1 - tau_act + D, at most 1; None where nothing is sent."""
        return None if self.tau_act is None else min(Fraction(1), 1 - self.tau_act + self.rise)

    @property
    def restored(self) -> Fraction | None:
        """tau_act + D; None where it exceeds 1, and where the guard never acts anyway."""
        return None if self.tau_act is None else restored_threshold(self.tau_act, self.rise)

    @property
    def remedy(self) -> str:
        """What restores the promises of tau_act, in words."""
        if self.tau_act is None:
            return "none needed: the guard never acts"
        return remedy(self.tau_act, self.rise)

    def json(self) -> dict[str, Any]:
        """The record, its theorem values under `independent` and `arbitrary`."""
        restored = _number(self.restored), _exact(self.restored)
        return {
            "tau_act": _number(self.tau_act),
            "delta_p": {
                **self.shift.json(),
                "smallest": float(self.smallest),
                "largest": float(self.largest),
            },
            "largest_rise": float(self.rise),
            "largest_rise_exact": str(self.rise),
            "crossed_up": self.crossed_up.json(),
            "crossed_up_disallowed": self.crossed_up_bad.json(),
            "crossed_down": self.crossed_down.json(),
            "exposed": self.exposed.json(),
            "before": self.before.json(),
            "after": self.after.json(),
            "independent": {
                "share_bound": _number(self.share_bound),
                "share_bound_exact": _exact(self.share_bound),
            },
            "arbitrary": {"bad_mass_bound": self.doubted, "reachable_bad": self.reachable_bad.json()},
            "restored_tau_act": restored[0],
            "restored_tau_act_exact": restored[1],
            "remedy": self.remedy,
        }

    def lines(self) -> list[str]:
        """For people, one figure a line."""
        found = [
            f"delta p               mean {self.shift}",
            f"                      smallest {float(self.smallest):.6g}, largest {float(self.largest):.6g}",
            f"moved over tau_act    up {self.crossed_up}; not allowed among them {self.crossed_up_bad}",
            f"                      down {self.crossed_down}",
            f"share without, with   {self.before.share}; {self.after.share}",
            f"UAR without, with     {self.before.uar}; {self.after.uar}",
            f"bad of all, the same  {self.before.bad}; {self.after.bad}",
        ]
        if self.tau_act is None or self.share_bound is None:
            return found
        at = f"{float(self.tau_act):.6g}"
        here = f"{self.reachable_bad.numerator}/{self.reachable_bad.denominator}"
        return [
            *found,
            f"within D of tau_act   {self.exposed}, D = {float(self.rise):.6g} the largest rise seen",
            f"if it ignores y       share at most 1 - {at} + D = {float(self.share_bound):.6g}, if p is calibrated",
            f"whatever it does      bad of all at most {self.doubted:.6g}, if p is calibrated; here at most {here}",
            f"to undo a rise of D   {_remedy(self.restored, self.remedy)}",
        ]


class Success(NamedTuple):
    """Injection success rates over runs: of the model (`attempted`) and of the system (`carried_out`)."""

    attempted: Rate
    carried_out: Rate


def injection_success(attempted: Any, carried_out: Any, level: float = 0.95) -> Success:
    """M14 Eq. 8 twice, over runs that contain an injected instruction: booleans or 0 and 1, `[N]` each.

    `carried_out` means without a person's approval. Raises GuardError where it holds for a run that attempted nothing.
    """
    place = rows_of("injection")
    tried, done = (
        labels(list(values), name, place)
        for values, name in ((attempted, "attempted"), (carried_out, "carried_out"))
    )
    if tried.size != done.size:
        raise GuardError(
            f"{tried.size} runs attempted or not, {done.size} carried out or not; give both for every run"
        )
    odd = np.flatnonzero(done > tried)
    if odd.size:
        raise GuardError(
            f"{place(int(odd[0]))} is carried out and not attempted; give attempted 1 or carried_out 0"
        )
    return Success(Rate.of(int(tried.sum()), tried.size, level), Rate.of(int(done.sum()), done.size, level))


def widest(low: np.ndarray, high: np.ndarray) -> Fraction:
    """The exact largest high - low of reports `[N]`, N >= 1, each read by its shortest decimal."""
    gap = high - low
    near = np.flatnonzero(gap >= gap.max() - _ROUNDING)
    # A constant rise makes every item a candidate; decimals subtract several times faster than fractions.
    with localcontext(prec=_DIGITS):
        return Fraction(
            max(
                Decimal(repr(b)) - Decimal(repr(a))
                for a, b in set(zip(low[near].tolist(), high[near].tolist()))
            )
        )


def _remedy(restored: Fraction | None, words: str) -> str:
    return words if restored is None else f"act at p >= {float(restored):.6g}"


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _exact(value: Fraction | None) -> str | None:
    return None if value is None else str(value)
