"""Vo: the best stateless, stationary, stochastic policy pi(a|c), from both sides; imports ascent, decisions.

What any model that sees the current context alone can reach. Lower end: a policy found, evaluated exactly. Upper end:
the exact deterministic optimum with the time in the context, or V* of a policy with memory, whichever is lower.
Source: design of the formal core, section 3.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from pomdp.bounds.ascent import Ascent, random_policies
from pomdp.bounds.context_chain import ContextChain
from pomdp.bounds.decisions import decide
from pomdp.bounds.fixed_choice import choose
from pomdp.bounds.recall_bound import RecallBound
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP, ModelError
from pomdp.policy import Reactive

# Upper ends are raised by this share of the scale of values, above the rounding of a search; lower ends are lowered by
# the bound on the error of their one policy's J.
MARGIN = 1e-11
# Up to so many states the model's own beliefs bound what is left: they also know what the contexts hide.
OWN_STATES = 500


@dataclass(frozen=True, eq=False)
class Stateless:
    """Bounds on Vo, the policy behind the lower end, and the best deterministic policy beside it.

    `deterministic` is of policies with one action a context; it may lie below Vo. `timed`: no context occurs at two
    times, so that a deterministic policy is optimal. `upper_from`: `decisions` or `recall`, whatever gave the upper
    end. `seconds` is the time taken.
    """

    interval: Interval
    deterministic: Interval
    policy: Reactive = field(repr=False)
    timed: bool
    upper_from: str
    seconds: float


def stateless(
    model: POMDP,
    first: int,
    criterion: Criterion,
    *,
    gap: float = 1e-6,
    time_limit: float = 10.0,
    restarts: int = 8,
    seed: int = 0,
    recall: Interval | None = None,
    behind: tuple[POMDP, np.ndarray] | None = None,
) -> Stateless:
    """Bounds on Vo of a model whose observations are contexts, `first` being shown before the first action.

    `recall` is V* of a policy with memory, where the caller has it: an upper end. `behind` is the model M_0 behind the
    context map and the state of it in each of `model`'s `[S]` (-1 where a run is over): its beliefs, of which there
    are fewer, then bound what is left of a run. Ends when the width is at most `gap`, when `restarts` random starts
    have been tried, or after about `time_limit` seconds; the interval is valid in any case. The ends are sums of
    doubles moved outward by a bound on their rounding, not certificates. Raises ModelError for arguments out of range.
    """
    if not (gap >= 0 and math.isfinite(gap)):
        raise ModelError(f"gap {gap} is not a number >= 0; give one such as 1e-6")
    if not (time_limit > 0 and math.isfinite(time_limit)):
        raise ModelError(f"time limit {time_limit} is not a positive number of seconds")
    began = time.perf_counter()
    chain = ContextChain.of(model, first, criterion)
    found = Ascent(chain, began + 0.3 * time_limit)
    margin = MARGIN * chain.scale + chain.rounding
    ceiling = math.inf if recall is None else recall.upper
    bounds = _Bounds(chain, model, criterion, behind, gap / 2, began + 0.6 * time_limit)
    upper, source, sure = ceiling, "recall", ceiling
    if found.sure < ceiling - gap:
        by_context = bounds.timed if chain.timed else bounds.fixed
        sure = by_context(found, 0.5 if chain.timed else 0.25) + margin
    if chain.timed and sure < upper:
        upper, source = sure, "decisions"
    start = [np.full(found.pi.shape, 1.0 / chain.num_actions), found.pi]
    if not chain.timed:
        found.run(start, began + 0.4 * time_limit, upper - gap)
        if found.value < upper - gap:
            counted = bounds.timed(found, 0.6) + margin
            upper, source = min((upper, source), (counted, "decisions"))
        start = []
    found.run([*start, *random_policies(chain, restarts, seed)], began + time_limit, upper - gap)
    lower = _down(chain, found.value, found.pi)
    least = _down(chain, found.sure, chain.policy(found.choice))
    return Stateless(
        interval=Interval(lower, max(upper, lower)),
        deterministic=Interval(least, max(found.sure, min(sure, upper)) + margin),
        policy=_policy(model, chain, found.pi, first),
        timed=chain.timed,
        upper_from=source,
        seconds=time.perf_counter() - began,
    )


def stateless_found(
    model: POMDP, first: int, criterion: Criterion, *, starts: int = 12, seed: int = 0
) -> float:
    """A value that a deterministic stateless policy reaches: local search from the uniform and some random policies.

    A lower bound on Vo that costs milliseconds, for those who compare many maps.
    """
    chain = ContextChain.of(model, first, criterion)
    found = Ascent(chain)
    rng = np.random.default_rng(seed)
    for _ in range(starts):
        found.improve(rng.integers(chain.num_actions, size=chain.contexts), math.inf)
    return _down(chain, found.sure, chain.policy(found.choice))


def _down(chain: ContextChain, value: float, pi: np.ndarray) -> float:
    """A lower bound on the J of `pi`, which was found to be `value`."""
    return math.nextafter(value - chain.evaluated(pi)[1], -math.inf)


class _Bounds:
    """The two searches, which share one bound; each is given the end of its time as a share of the whole."""

    def __init__(
        self, chain: ContextChain, model: POMDP, criterion: Criterion, behind: tuple[POMDP, np.ndarray] | None,
        gap: float, deadline: float,
    ) -> None:  # fmt: skip
        inner, origin = model, np.arange(model.num_states)
        if behind is not None and model.num_states > OWN_STATES:
            inner, origin = behind
        # A run that must end is one with a horizon, for which the bound is exact.
        ending = criterion if not chain.horizon else Criterion(criterion.discount, chain.horizon)
        self.chain, self.origin, self.gap = chain, origin[chain.state], gap
        self.recall = RecallBound(inner, ending)
        self.recall.deadline = deadline
        self._began = time.perf_counter()
        self._whole = (deadline - self._began) / 0.6

    def timed(self, found: Ascent, share: float) -> float:
        """An upper end for decisions by context and time; where contexts hold the time, `found` learns the best."""
        if not self.chain.stages:
            return 0.0
        decided = decide(
            self.chain, self.recall, self.origin, known=found.value, gap=self.gap, seconds=self._left(share)
        )
        if decided.choice is not None:
            found.improve(decided.choice, math.inf)
        return max(decided.upper, found.value)

    def fixed(self, found: Ascent, share: float) -> float:
        """An upper end for policies with one action a context; `found` learns the best."""
        chosen = choose(
            self.chain, self.recall, self.origin, known=found.choice, gap=self.gap, seconds=self._left(share)
        )
        if chosen.choice is not None:
            found.improve(chosen.choice, math.inf)
        return max(chosen.upper, found.sure)

    def _left(self, share: float) -> float:
        """Seconds until `share` of the whole time is over."""
        return max(0.0, self._began + share * self._whole - time.perf_counter())


def _policy(model: POMDP, chain: ContextChain, pi: np.ndarray, first: int) -> Reactive:
    """The policy on all observations; where nothing is at stake the first action is as good as any."""
    whole = np.zeros((model.num_observations, model.num_actions))
    whole[:, 0] = 1.0
    whole[chain.shown] = pi / pi.sum(axis=1, keepdims=True)
    return Reactive(whole, whole[first])
