"""Branch and bound over deterministic stationary policies, one action a context; imports context_chain, recall_bound.

A line gives some contexts an action. A run is followed until it first shows a context without one; from there on it
is bounded by policies that remember everything. Without a horizon all first visits to such a context, discounted, are
one measure: a stationary policy does the same from all of them. The result is no bound on stochastic policies.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass, field

import numpy as np

from pomdp.bounds.context_chain import ContextChain
from pomdp.bounds.decisions import CLOSED, MAX_LINES, Decisions
from pomdp.bounds.recall_bound import RecallBound

# First visits with less discounted mass than this are none: what is left of a linear solve.
NOTHING = 1e-15


@dataclass(order=True)
class _Line:
    """Partial choices `[C]`, -1 where none is made, ordered by bound; `context`: the one to decide next."""

    priority: tuple[float, int, int]
    choice: np.ndarray = field(compare=False)
    context: int = field(compare=False)


class _Search:
    """The lines of one search. `origin` `[N]`: the state of the bound's model in each node, -1 where a run is over."""

    def __init__(self, chain: ContextChain, bound: RecallBound, origin: np.ndarray, gap: float) -> None:
        self.chain, self.bound, self.origin = chain, bound, origin
        self.slack = max(gap, CLOSED * max(1.0, chain.scale))
        self.best, self.choice = -math.inf, np.zeros(chain.contexts, dtype=np.int64)
        self.closed = -math.inf
        self.open: list[_Line] = []
        self._count = itertools.count()

    def push(self, choice: np.ndarray) -> None:
        """Bound a line; keep it open, close it, or take it for the best policy where nothing is left to decide."""
        follow = self._endless if self.chain.horizon is None else self._staged
        bound, ahead = follow(choice)
        if not ahead:
            self.offer(choice)
            return
        if bound <= self.best + self.slack:
            self.closed = max(self.closed, bound)
            return
        decided = int(np.count_nonzero(choice >= 0))
        context = max(ahead, key=lambda c: ahead[c])
        heapq.heappush(self.open, _Line((-bound, -decided, next(self._count)), choice, context))

    def offer(self, choice: np.ndarray) -> None:
        """Evaluate a complete policy, contexts without an action being beyond reach."""
        filled = np.maximum(choice, 0)
        value = self.chain.evaluate(self.chain.policy(filled))
        if value > self.best:
            self.best, self.choice = value, filled

    def _staged(self, choice: np.ndarray) -> tuple[float, dict[int, float]]:
        """The bound of a line with a horizon, and the mass that first reaches each context without an action."""
        chain = self.chain
        total, factor, measure = 0.0, 1.0, chain.start
        ahead: dict[int, float] = {}
        for t, stage in enumerate(chain.stages):
            actions = choice[stage.context]
            for place in np.flatnonzero(choice[stage.contexts] < 0):
                part = measure[stage.part(place)]
                mass = float(part.sum())
                if mass > 0.0:
                    context = int(stage.contexts[place])
                    ahead[context] = ahead.get(context, 0.0) + factor * mass
                    total += factor * self._recalled(
                        stage.nodes[stage.part(place)], part, len(chain.stages) - t
                    )
            moving = np.flatnonzero((actions >= 0) & (measure > 0.0))
            if not len(moving):
                break
            total += factor * float(stage.rewards[actions[moving], moving] @ measure[moving])
            if t + 1 < len(chain.stages):
                acted = np.zeros(stage.rewards.size)
                acted[actions[moving] * len(stage.nodes) + moving] = measure[moving]
                measure = stage.into @ acted
            factor *= chain.gamma
        return total, ahead

    def _endless(self, choice: np.ndarray) -> tuple[float, dict[int, float]]:
        """The same without a horizon."""
        chain, stage = self.chain, self.chain.stages[0]
        actions = choice[stage.context]
        decided = actions >= 0
        weights = chain.policy(np.maximum(actions, 0)) * decided[:, None]
        transition, rewards = chain.mixed(weights)
        visits = np.maximum(chain.solved(transition, rewards)[1], 0.0)
        total = float(rewards @ visits)
        ahead: dict[int, float] = {}
        for place in np.flatnonzero(choice[stage.contexts] < 0):
            part = visits[stage.part(place)]
            mass = float(part.sum())
            total += self._recalled(stage.nodes[stage.part(place)], part, None) if mass > 0.0 else 0.0
            if mass > NOTHING:
                ahead[int(stage.contexts[place])] = mass
        return total, ahead

    def _recalled(self, nodes: np.ndarray, measure: np.ndarray, left: int | None) -> float:
        """What a policy that remembers everything can earn from a measure on one context."""
        states = self.origin[nodes]
        here = states >= 0
        return self.bound.value(left, np.bincount(states[here], measure[here], self.bound.model.num_states))


def choose(
    chain: ContextChain,
    bound: RecallBound,
    origin: np.ndarray,
    *,
    known: np.ndarray,
    gap: float,
    seconds: float,
) -> Decisions:
    """The best policy with one action a context, within `seconds`; `known` `[C]` is one to begin with.

    `choice` is never None. When time is over `upper` is the best bound of the open lines, which is valid.
    """
    search = _Search(chain, bound, origin, gap)
    end = time.perf_counter() + seconds
    search.offer(known)
    search.push(np.full(chain.contexts, -1))
    while search.open:
        top = -search.open[0].priority[0]
        if top <= max(search.best + search.slack, search.closed):
            break
        if time.perf_counter() > end or len(search.open) > MAX_LINES:
            break
        line = heapq.heappop(search.open)
        for a in range(chain.num_actions):
            choice = line.choice.copy()
            choice[line.context] = a
            search.push(choice)
    top = -search.open[0].priority[0] if search.open else -math.inf
    return Decisions(max(top, search.best, search.closed), search.best, search.choice)
