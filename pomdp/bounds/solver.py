"""`solve`: a model and a criterion in, a certified interval around V* out; imports the search and the checker.

The search is anytime: a time limit or Ctrl-C ends it with the best interval so far. What it found is then turned into
a certificate and checked exactly; only intervals that passed are called certified.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from pomdp import policy
from pomdp.bounds.certify import certify as make_certificate
from pomdp.bounds.search import Progress, Search
from pomdp.certificate import END, OPTIMAL, Certificate
from pomdp.check import check
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP, ModelError

# A bound that was not certified is widened by this share of the values' scale, far above the rounding of doubles.
UNCERTIFIED_MARGIN = 1e-9


@dataclass(frozen=True)
class Solution:
    """An interval that contains V*, and what it rests on.

    `ended` is why the search stopped: `gap`, `time`, `memory` or `interrupt`; `seconds` is the search alone.
    `certificate` is None where none was asked for.
    """

    model: POMDP = field(repr=False)
    criterion: Criterion
    interval: Interval
    ended: str
    seconds: float
    certificate: Certificate | None = field(repr=False)
    search: Search = field(repr=False)

    @property
    def certified(self) -> bool:
        """Whether both ends passed the exact check."""
        return self.interval.certified

    def controller(self) -> policy.Controller:
        """The finite-state controller that earns at least the lower end. With a horizon its nodes have stages."""
        return controller_of(self.search)


def solve(
    model: POMDP,
    criterion: Criterion,
    *,
    gap: float = 1e-3,
    time_limit: float = 60.0,
    certify: bool = True,
    progress: Progress | None = None,
    quantity: str = OPTIMAL,
    seed: int = 0,
) -> Solution:
    """Bounds on V* from both sides, to within `gap` or until `time_limit` seconds of search are over.

    `certify=False` skips the certificate, which costs about as long again on hard models, and widens the interval by
    UNCERTIFIED_MARGIN instead. `progress(seconds, lower, upper)` is called now and then. The run depends on `seed`
    and, where time ends it, on the machine; the interval is valid in any case.
    """
    if not (gap >= 0 and math.isfinite(gap)):
        raise ModelError(f"gap {gap} is not a number >= 0; give one such as 1e-3")
    if not (time_limit > 0 and math.isfinite(time_limit)):
        raise ModelError(f"time limit {time_limit} is not a positive number of seconds")
    warm_up()
    began = time.perf_counter()
    search = Search(model, criterion, seed)
    ended = search.run(gap, time_limit, progress)
    seconds = time.perf_counter() - began
    certificate, interval = None, uncertified(search)
    if certify:
        given = None if criterion.discount == model.exact.discount else criterion.discount
        certificate = make_certificate(search, quantity, given)
        verdict = check(certificate, model)
        if not verdict.valid:
            raise AssertionError(f"the solver's certificate fails its check: {verdict.fault}")
        interval = Interval.of(certificate.lower, certificate.upper, certified=True)
    return Solution(model, criterion, interval, ended, seconds, certificate, search)


def uncertified(search: Search) -> Interval:
    """The search's bounds widened against rounding."""
    lower, upper = search.bounds
    margin = UNCERTIFIED_MARGIN * (1.0 + max(abs(lower), abs(upper)))
    return Interval(min(lower, upper) - margin, max(lower, upper) + margin)


def controller_of(search: Search) -> policy.Controller:
    """The controller behind the best vector at the start belief, by breadth first from it."""
    idx, val = search.graph.belief(search.root)
    _, best = search.lower.best_at(idx, val)
    vectors = search.lower.vectors
    order, number = [best], {best: 0}
    for k in order:
        for j in np.unique(vectors.link[k]).tolist():
            if j != END and j not in number:
                number[j] = len(order)
                order.append(j)
    act = np.zeros((len(order), search.flat.A))
    act[np.arange(len(order)), vectors.action[order]] = 1.0
    # Past the horizon nothing is acted on: the last stage's nodes lead to themselves.
    following = np.array([[number.get(int(j), n) for j in vectors.link[k]] for n, k in enumerate(order)])
    successor = np.repeat(following[:, None, :], search.flat.A, axis=1)
    return policy.Controller(act=act, successor=successor, start=0)


_warm = False


def warm_up() -> None:
    """Compile, or load from the cache, every inner loop, so that no time limit pays for it.

    About half a minute on the first call after an installation, a second or less in later processes.
    """
    global _warm
    if _warm:
        return
    coin = POMDP.build(
        states=2,
        actions=2,
        observations=2,
        T=[[[1, 0], [0, 1]], [["1/2", "1/2"], ["1/2", "1/2"]]],
        Z=[[["3/4", "1/4"], ["1/4", "3/4"]], [[1, 0], [1, 0]]],
        R=[[-1, -1], [8, -8]],
    )
    for criterion in (Criterion(Fraction(4, 5)), Criterion(Fraction(1), 3)):
        search = Search(coin, criterion)
        search.run(0.0, 0.2)
        make_certificate(search, OPTIMAL, criterion.discount)
    _warm = True
