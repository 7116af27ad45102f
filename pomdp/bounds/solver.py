"""`solve`: a model and a criterion in, a certified interval around V* out; imports the search and the checker.

The search is anytime: a time limit or Ctrl-C ends it with the best interval so far. What it found is then turned into
a certificate and checked exactly; only intervals that passed are called certified.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

import pomdp.policy as policy
from pomdp.bounds import solved_before
from pomdp.bounds.certify import certify as make_certificate
from pomdp.bounds.certify import reachable
from pomdp.bounds.search import Progress, Search
from pomdp.certificate import END, OPTIMAL, Certificate
from pomdp.check import check
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP, ModelError

# A bound that was not certified is widened by this share of the values' scale, far above the rounding of doubles.
UNCERTIFIED_MARGIN = 1e-9
# Sums of squares of values must stay finite doubles in the linear solves.
LARGEST_VALUE = 1e150


Announce = Callable[[str], None]  # (what begins: "compiling", "searching" or "certifying")


@dataclass(frozen=True)
class Solution:
    """An interval that contains the value asked for, and what it rests on.

    `ended` is why the search stopped: `gap` reached, doubles tell no more (`precision`), `time`, `memory` or
    `interrupt`; `seconds` is the search alone, `certify_seconds` what making and checking the certificate took.
    `controller` earns at least the lower end (with a horizon its nodes have stages). `certificate` is None where none
    was asked for. `cached` says that the certificate was found on disk and checked again.
    """

    model: POMDP = field(repr=False)
    criterion: Criterion
    interval: Interval
    ended: str
    seconds: float
    controller: policy.Controller = field(repr=False)
    certificate: Certificate | None = field(repr=False)
    cached: bool = False
    certify_seconds: float = 0.0

    @property
    def certified(self) -> bool:
        """Whether both ends passed the exact check."""
        return self.interval.certified


def solve(
    model: POMDP,
    criterion: Criterion,
    *,
    gap: float = 1e-3,
    time_limit: float = 60.0,
    certify: bool = True,
    cache: bool = False,
    progress: Progress | None = None,
    announce: Announce | None = None,
    quantity: str = OPTIMAL,
    seed: int = 0,
) -> Solution:
    """Bounds on V* from both sides, to within `gap` or until `time_limit` seconds of search are over.

    `certify=False` skips the certificate, which costs about as long again on hard models, and widens the interval by
    UNCERTIFIED_MARGIN instead. `cache` keeps certificates on disk and takes one that answers the question, checking
    it again. `progress(seconds, lower, upper)` is called now and then, `announce(step)` when a step begins. The run
    depends on `seed` and, where time ends it, on the machine; the interval is valid in any case. Raises ModelError for
    a gap or a time limit out of range, and for rewards too large for doubles.
    """
    if not (gap >= 0 and math.isfinite(gap)):
        raise ModelError(f"gap {gap} is not a number >= 0; give one such as 1e-3")
    if not (time_limit > 0 and math.isfinite(time_limit)):
        raise ModelError(f"time limit {time_limit} is not a positive number of seconds")
    largest = float(np.max(np.abs(model.R))) * criterion.scale
    if not largest <= LARGEST_VALUE:
        raise ModelError(
            f"values up to {largest:.3g} are beyond the solver's {LARGEST_VALUE:g}; scale the rewards down"
        )
    stored = solved_before.find(model, criterion, quantity, gap, time_limit) if certify and cache else None
    if stored is not None:
        found, ended, seconds = stored
        return Solution(
            model, criterion, _interval(found), ended, seconds, _controller(found, model), found, cached=True
        )
    say = announce or (lambda step: None)
    say("compiling")
    warm_up()
    say("searching")
    began = time.perf_counter()
    search = Search(model, criterion, seed)
    ended = search.run(gap, time_limit, progress)
    seconds = time.perf_counter() - began
    if certify:
        say("certifying")
        began = time.perf_counter()
        try:
            certificate = _checked(search, model, criterion, quantity)
        except KeyboardInterrupt:
            ended = "interrupt"
        else:
            if ended == "time" and certificate.upper - certificate.lower <= gap:
                ended = "gap"  # solving the point set at once closed what the search had left
            if cache and ended != "interrupt":
                solved_before.store(model, criterion, certificate, gap, time_limit, ended, seconds)
            interval, controller = _interval(certificate), _controller(certificate, model)
            took = time.perf_counter() - began
            return Solution(
                model, criterion, interval, ended, seconds, controller, certificate, certify_seconds=took
            )
    return Solution(model, criterion, uncertified(search), ended, seconds, _search_controller(search), None)


def _checked(search: Search, model: POMDP, criterion: Criterion, quantity: str) -> Certificate:
    """The certificate of a search, after the exact check."""
    given = None if criterion.discount == model.exact.discount else criterion.discount
    certificate = make_certificate(search, quantity, given)
    verdict = check(certificate, model)
    if not verdict.valid:
        raise AssertionError(f"the solver's certificate fails its check: {verdict.fault}")
    return certificate


def _interval(certificate: Certificate) -> Interval:
    return Interval.of(certificate.lower, certificate.upper, certified=True)


def uncertified(search: Search) -> Interval:
    """The search's bounds widened against rounding."""
    lower, upper = search.bounds
    margin = UNCERTIFIED_MARGIN * (1.0 + max(abs(lower), abs(upper)))
    return Interval(min(lower, upper) - margin, max(lower, upper) + margin)


def _controller(certificate: Certificate, model: POMDP) -> policy.Controller:
    """The certificate's controller as a policy."""
    proof = certificate.controller
    links = np.array([node.following for node in proof.nodes])
    return _policy(links, [node.action for node in proof.nodes], proof.start, model.num_actions)


def _search_controller(search: Search) -> policy.Controller:
    """The controller behind the best vector at the start belief."""
    _, best = search.lower.best_at(*search.graph.belief(search.root))
    vectors = search.lower.vectors
    order = reachable(vectors.link, best)
    number = np.full(search.lower.count + 1, END)
    number[order] = np.arange(len(order))
    return _policy(number[vectors.link[order]], vectors.action[order].tolist(), 0, search.flat.A)


def _policy(links: np.ndarray, actions: list[int], start: int, A: int) -> policy.Controller:
    """Nodes with one action each; past the horizon nothing is acted on, and END leads back to the node itself."""
    own = np.arange(links.shape[0])[:, None]
    following = np.where(links == END, own, links)
    act = np.zeros((links.shape[0], A))
    act[np.arange(links.shape[0]), actions] = 1.0
    return policy.Controller(act=act, successor=np.repeat(following[:, None, :], A, axis=1), start=start)


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
        if search.run(0.0, 0.2) == "interrupt":
            raise KeyboardInterrupt  # meant for whoever waits, not for this
        # What so short a search may not have reached.
        search.upper.sweep()
        search.upper.reweigh(search.root, 0)
        make_certificate(search, OPTIMAL, criterion.discount)
    _warm = True
