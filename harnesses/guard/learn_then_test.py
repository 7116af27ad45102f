"""Choosing tau_act so that the share of bad calls among those sent is at most alpha: theorem T9, Learn-then-Test.

The unsafe-action rate only grows as tau falls, so that one order statistic settles it. The share need not: a guard
may be worst where it is surest, and then the share falls with tau. So each threshold of a grid that is fixed before
the data are seen gets its own test of "the share exceeds alpha", and the tests are combined so that with
probability 1 - delta no true one among these is rejected. Given that n items are sent, the bad ones are Bin(n,
share), whatever n: the p-value is P(Bin(n, alpha) <= bad), exactly, and 1 where nothing is sent.

Combining, always with rationals:
* fallback (the default): delta is split evenly over the grid; from the strictest threshold down, each is tested at
  its own part plus, if the one before was rejected, all that one had. An empty selection is not rejected and its
  part is lost, but the next thresholds have theirs: it does not stop the search. Valid for p-values that depend
  on one another in any way. Source: B. L. Wiens and A. Dmitrienko, The fallback procedure (2005).
* holm, bonferroni: valid likewise.
* fixed-sequence: all of delta at the strictest threshold, then at the next, until one is not rejected; an empty
  selection is passed over. Without that last clause the proof is one line: the first true hypothesis would have to
  be rejected. Passing over looks at the data, and beyond an empty threshold only items below it remain, whose
  share may be smaller than that of the hypothesis tested. What is proven is an error of at most delta plus the
  probability that the first threshold at which the share exceeds alpha is empty. No guard has been found that
  exceeds delta. Few sends at the strictest threshold do stop this chain: begin the grid where enough are expected.

Imports region, rate, scores and tail. Source: A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan and L. Lei,
Learn then Test (2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, Thresholds, cut, probability
from harnesses.guard.scores import Scores
from harnesses.guard.tail import at_most, level, rate_between, tail, zero_failure_size

GRID = tuple(map(Fraction, "0.5 0.6 0.7 0.8 0.85 0.9 0.925 0.95 0.97 0.98 0.99 0.995 0.999".split()))
"""Thresholds tried by default."""
METHODS = ("fallback", "fixed-sequence", "holm", "bonferroni")


@dataclass(frozen=True)
class ThresholdTest:
    """One threshold of the grid: `bad` of `sent`, p-value, and the error probability `spent` on it.

    `p_value` is None where nothing is sent, which counts as 1. `spent` is None where no test was made: the chain
    had stopped, or passed over an empty selection.
    """

    tau: Fraction
    sent: int
    bad: int
    p_value: float | None
    spent: Fraction | None
    rejected: bool

    def json(self) -> dict[str, Any]:
        """The record, rationals as floats."""
        spent = None if self.spent is None else float(self.spent)
        return {**vars(self), "tau": float(self.tau), "spent": spent}


@dataclass(frozen=True)
class ShareSelection:
    """The least threshold certified, None if none is, with every test, from the strictest threshold down.

    `tau_act` is the float at which the guard sends what was tested: the least one that reaches the threshold.

    `sent` calls, `bad` of them, reach it in the data of the choice; the promise is `alpha`, not their interval.
    """

    rule: str
    tau_act: float | None
    alpha: Fraction
    delta: Fraction
    sent: int
    bad: int
    tests: tuple[ThresholdTest, ...]
    why: str | None

    @property
    def share(self) -> Rate:
        """Bad among those sent, on the data of the choice."""
        return Rate.of(self.bad, self.sent)

    def thresholds(self, tau_esc: Any) -> Thresholds:
        """Both thresholds of the guard; a tau_esc above tau_act is lowered to it."""
        return Thresholds.capped(self.tau_act, tau_esc)

    def json(self) -> dict[str, Any]:
        """The record, rationals as floats."""
        return {
            **vars(self),
            "alpha": float(self.alpha),
            "delta": float(self.delta),
            "share": self.share.json(),
            "tests": [test.json() for test in self.tests],
        }


def share_threshold(
    p: Any, y: Any, alpha: Any, delta: Any, grid: Sequence[Any] = GRID, method: str = METHODS[0]
) -> ShareSelection:
    """The least threshold of the grid certified to have P(y = 0 | p >= tau) <= alpha, with confidence 1 - delta.

    `p` `[N]` reports in [0, 1], `y` `[N]` labels, 1 = allowed, of independent items from one population; the guard
    need not be calibrated. `grid`: thresholds chosen without these data, in any order. Raises GuardError for
    reports, labels, numbers or a method that are none.
    """
    data, alpha, delta = Scores.of(p, y), rate_between(alpha, "alpha"), level(delta, "delta")
    taus = sorted({probability(tau, "grid threshold") for tau in grid}, reverse=True)
    if not taus:
        raise GuardError("the grid is empty; give at least one threshold, such as 31/32")
    if method not in METHODS:
        raise GuardError(f"method is {method!r}; give one of {', '.join(METHODS)}")
    counts = [_counts(data, tau) for tau in taus]
    combine = {
        "fallback": _fallback,
        "fixed-sequence": _fixed_sequence,
        "holm": _holm,
        METHODS[3]: _bonferroni,
    }
    outcome = combine[method](counts, alpha, delta)
    tests = tuple(
        ThresholdTest(tau, sent, bad, tail(bad, sent, alpha) if sent else None, spent, rejected)
        for tau, (sent, bad), (spent, rejected) in zip(taus, counts, outcome)
    )
    certified = [test for test in tests if test.rejected]
    last = certified[-1] if certified else None
    return ShareSelection(
        f"learn-then-test, {method}",
        None if last is None else float(cut(last.tau)),
        alpha,
        delta,
        last.sent if last else 0,
        last.bad if last else 0,
        tests,
        None if last else _why(tests, alpha, delta),
    )


Count = tuple[int, int]
"""Sent and bad."""
Outcome = list[tuple[Fraction | None, bool]]
"""Error probability spent on each threshold, strictest first, and whether it is certified."""


def _counts(data: Scores, tau: Fraction) -> Count:
    acted = data.p >= cut(tau)
    return int(acted.sum()), int(np.count_nonzero(acted & ~data.allowed))


def _rejects(count: Count, alpha: Fraction, spent: Fraction) -> bool:
    """Whether P(Bin(sent, alpha) <= bad) <= spent; never where nothing is sent, because that tail is 1."""
    sent, bad = count
    return at_most(bad, sent, alpha, spent)


def _fallback(counts: Sequence[Count], alpha: Fraction, delta: Fraction) -> Outcome:
    out: Outcome = []
    carried = Fraction(0)
    for count in counts:
        spent = carried + delta / len(counts)
        rejected = _rejects(count, alpha, spent)
        carried = spent if rejected else Fraction(0)
        out.append((spent, rejected))
    return out


def _fixed_sequence(counts: Sequence[Count], alpha: Fraction, delta: Fraction) -> Outcome:
    out: Outcome = []
    going = True
    for count in counts:
        tested = going and count[0] > 0
        rejected = tested and _rejects(count, alpha, delta)
        going = going and (rejected or not tested)
        out.append((delta if tested else None, rejected))
    return out


def _holm(counts: Sequence[Count], alpha: Fraction, delta: Fraction) -> Outcome:
    """In rounds, each at delta over the number not yet rejected: the same as going through sorted p-values."""
    spent: list[Fraction] = [delta / len(counts)] * len(counts)
    rejected = [False] * len(counts)
    while True:
        left = [i for i, done in enumerate(rejected) if not done]
        for i in left:
            spent[i] = delta / len(left)
        new = [i for i in left if _rejects(counts[i], alpha, spent[i])]
        if not new:
            return list(zip(spent, rejected))
        for i in new:
            rejected[i] = True


def _bonferroni(counts: Sequence[Count], alpha: Fraction, delta: Fraction) -> Outcome:
    part = delta / len(counts)
    return [(part, _rejects(count, alpha, part)) for count in counts]


def _why(tests: Sequence[ThresholdTest], alpha: Fraction, delta: Fraction) -> str:
    most = tests[-1].sent
    need = zero_failure_size(alpha, delta)
    if most < need:
        return f"{most} sent at the least threshold of the grid; one alone needs {need}, none of them bad"
    empty = sum(test.sent == 0 for test in tests)
    passed = f", {empty} of them empty," if empty else ""
    return (
        f"none of {len(tests)} thresholds{passed} is certified to keep the share at or below {float(alpha):g}"
    )
