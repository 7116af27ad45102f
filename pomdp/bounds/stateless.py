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

from pomdp.bounds.ascent import ascend, improve
from pomdp.bounds.context_chain import ContextChain
from pomdp.bounds.decisions import decide
from pomdp.bounds.recall_bound import RecallBound
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP, ModelError
from pomdp.policy import Reactive

# Both ends are moved outward by this share of the scale of values, far above the rounding of doubles.
MARGIN = 1e-10
# Up to so many states the model's own beliefs bound what is left: they also know what the contexts hide.
OWN_STATES = 500
# Steps walked to see whether the context contains the time.
LEVELS = 10_000


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
    are fewer, then bound what is left of a run. Ends when the
    width is at most `gap` or after about `time_limit` seconds; the interval is valid in any case. The ends are sums of
    doubles moved outward by a stated margin, not certificates. Raises ModelError for arguments out of range.
    """
    if not (gap >= 0 and math.isfinite(gap)):
        raise ModelError(f"gap {gap} is not a number >= 0; give one such as 1e-6")
    if not (time_limit > 0 and math.isfinite(time_limit)):
        raise ModelError(f"time limit {time_limit} is not a positive number of seconds")
    began = time.perf_counter()
    chain = ContextChain.of(model, first, criterion)
    margin = MARGIN * max(1.0, chain.scale)
    ceiling = math.inf if recall is None else recall.upper
    inner, origin = model, np.arange(model.num_states)
    if behind is not None and model.num_states > OWN_STATES:
        inner, origin = behind
    bound, lump = RecallBound(inner, criterion), origin[chain.state]
    timed = chain.contains_time(LEVELS)
    value, pi = ascend(
        chain,
        [],
        restarts=0,
        seed=seed,
        seconds=0.15 * time_limit,
        enough=ceiling - gap,
        stochastic=not timed,
    )
    fixed = decide(chain, bound, lump, by_time=False, known=-math.inf, gap=gap / 2, seconds=0.25 * time_limit)
    seeds = [] if fixed.choice is None else [chain.policy(fixed.choice)]
    if seeds and fixed.best > value:
        value, pi = fixed.best, seeds[0]
    upper, source = (
        min((ceiling, "recall"), (fixed.upper + margin, "decisions")) if timed else (ceiling, "recall")
    )
    if upper - value > gap + 2 * margin and not timed:
        found = decide(chain, bound, lump, by_time=True, known=value, gap=gap / 2, seconds=0.3 * time_limit)
        upper, source = min((upper, source), (found.upper + margin, "decisions"))
    if upper - value > gap + 2 * margin:
        left = max(0.0, time_limit - (time.perf_counter() - began))
        better = ascend(
            chain, seeds, restarts=restarts, seed=seed, seconds=left, enough=upper - gap, stochastic=not timed
        )
        if better[0] > value:
            value, pi = better
    sure = _deterministic(chain, pi, value, fixed.best)
    lower = value - margin
    return Stateless(
        interval=Interval(lower, max(upper, lower)),
        deterministic=Interval(sure - margin, max(sure, min(fixed.upper, upper)) + margin),
        policy=Reactive(pi, pi[first]),
        timed=timed,
        upper_from=source,
        seconds=time.perf_counter() - began,
    )


def _deterministic(chain: ContextChain, pi: np.ndarray, value: float, known: float) -> float:
    """The best deterministic policy known: the search's, or the ascent's where it is one or rounds to one."""
    rounded = chain.policy(pi.argmax(axis=1))
    return max(known, chain.evaluate(rounded))


def stateless_found(
    model: POMDP, first: int, criterion: Criterion, *, starts: int = 12, seed: int = 0
) -> float:
    """A value that a deterministic stateless policy reaches: local search from the uniform and some random policies.

    A lower bound on Vo that costs milliseconds, for those who compare many maps.
    """
    chain = ContextChain.of(model, first, criterion)
    rng = np.random.default_rng(seed)
    _, gradient, _ = chain.gradient(np.full((chain.contexts, chain.num_actions), 1.0 / chain.num_actions))
    begin = [gradient.argmax(axis=1)]
    begin += [rng.integers(chain.num_actions, size=chain.contexts) for _ in range(starts)]
    return max(improve(chain, choice, math.inf)[0] for choice in begin) - MARGIN * max(1.0, chain.scale)
