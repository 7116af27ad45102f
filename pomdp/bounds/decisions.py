"""Branch and bound over deterministic stateless decisions, one context after another; imports recall_bound.

Time runs forward: what a run may be doing before action t is a measure on nodes, exact once every context met before
has an action. Each open context of a stage is then given each action in turn, the most promising line first. What is
left is bounded by a policy that remembers everything from there on, so that a line whose bound is no better than a
known policy is closed. Source: design of the formal core, section 3 (`stateless-upper`).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass, field

import numpy as np

from pomdp.bounds.context_chain import ContextChain, Measure
from pomdp.bounds.recall_bound import RecallBound

# A line is closed unless its bound is better than a known value by more than the gap asked for or, at the least, by
# this share of the scale.
CLOSED = 1e-11
# Lines kept open at one time; each holds a few measures.
MAX_LINES = 200_000
# Without a horizon, decisions by time are followed for so many steps before the rest is bounded.
ENDLESS_STAGES = 40


@dataclass(frozen=True)
class Decisions:
    """`upper`: no deterministic policy of this kind earns more; `best` is the best known, -inf if none.

    `choice` `[C]` are the actions of a policy found with that value; None where it was known before, or differs by
    time.
    """

    upper: float
    best: float
    choice: np.ndarray | None


@dataclass(order=True)
class _Line:
    """A partial policy: ordered by bound, then by depth, so that equal bounds are dived into.

    `waiting` are the stage's contexts without an action yet, `following` what the decided ones lead to, `promise` the
    bound of what these are worth from the next stage on.
    """

    priority: tuple[float, float, int]
    stage: int = field(compare=False)
    accrued: float = field(compare=False)
    waiting: tuple[Measure, ...] = field(compare=False)
    following: tuple[Measure, ...] = field(compare=False)
    promise: float = field(compare=False)
    choice: tuple[tuple[int, int], ...] = field(compare=False)


class _Search:
    """The lines of one search. `by_time`: a context may have another action at another stage.

    `lump` `[N]` is the state of the bound's model in each node, -1 where the run is over.
    """

    def __init__(
        self, chain: ContextChain, bound: RecallBound, lump: np.ndarray, by_time: bool, gap: float
    ) -> None:
        self.chain, self.bound, self.lump, self.by_time = chain, bound, lump, by_time
        self.slack = max(
            gap, CLOSED * max(1.0, chain.scale)
        )  # by how much a line must be better to be followed
        horizon = chain.criterion.horizon
        self.stages = horizon if horizon is not None else ENDLESS_STAGES
        self.open: list[_Line] = []
        self.best = -math.inf
        self.choice: np.ndarray | None = None
        self.beyond = -math.inf  # the best bound of lines that were given up
        self._count = itertools.count()
        self._met: dict[tuple[int, bytes], float] = {}

    def enter(
        self, stage: int, accrued: float, measure: Measure, choice: tuple[tuple[int, int], ...]
    ) -> None:
        """Begin a stage: contexts that have an action move on at once, the others wait."""
        chain, gamma, given = self.chain, self.chain.criterion.gamma, dict(choice)
        while True:
            parts = chain.split(measure)
            if not parts or stage == chain.criterion.horizon:
                self._finish(accrued, given)
                return
            if self._is_worse(stage, accrued, measure, choice):
                return
            ahead = sum(self.bound.value(self._left(stage), self._lumped(part)) for part in parts)
            if stage >= self.stages:
                self._give_up(accrued + gamma**stage * ahead)
                return
            decided = [(part, given.get(int(chain.context[part.nodes[0]]), -1)) for part in parts]
            waiting = [part for part, action in decided if action < 0]
            moved = [(part, action) for part, action in decided if action >= 0]
            earned = sum(self._reward(part, action) for part, action in moved)
            following = tuple(chain.move(part, action) for part, action in moved)
            if waiting:
                break
            measure, stage, accrued = _joined(following), stage + 1, accrued + gamma**stage * earned
            if not self.by_time and self._closed(given, measure):
                self._finish(accrued, given)
                return
        waiting.sort(key=lambda part: -part.mass)
        promise = gamma * self._ahead(stage + 1, _joined(following)) if following else 0.0
        self._push(stage, accrued + gamma**stage * earned, tuple(waiting), following, promise, choice)

    def expand(self, line: _Line) -> None:
        """Give the first waiting context each action; actions that do and earn the same are one."""
        chain, gamma = self.chain, self.chain.criterion.gamma
        part, rest = line.waiting[0], line.waiting[1:]
        here = self._lumped(part)
        seen: set[bytes] = set()
        for a in range(chain.num_actions):
            led, reward = chain.move(part, a), self._reward(part, a)
            same = led.key() + np.float64(reward).tobytes()
            if same in seen:
                continue
            seen.add(same)
            choice = line.choice if self.by_time else (*line.choice, (int(chain.context[part.nodes[0]]), a))
            accrued = line.accrued + gamma**line.stage * reward
            following = (*line.following, led)
            if not rest:
                self.enter(line.stage + 1, accrued, _joined(following), choice)
                continue
            promise = line.promise + self.bound.after(self._left(line.stage), here, a) - reward
            self._push(line.stage, accrued, rest, following, promise, choice)

    def _push(
        self, stage: int, accrued: float, waiting: tuple[Measure, ...], following: tuple[Measure, ...],
        promise: float, choice: tuple[tuple[int, int], ...],
    ) -> None:  # fmt: skip
        ahead = sum(self.bound.value(self._left(stage), self._lumped(part)) for part in waiting) + promise
        bound = accrued + self.chain.criterion.gamma**stage * ahead
        if bound <= self.best + self.slack:
            self._give_up(bound)
            return
        priority = (-bound, -float(stage) + len(waiting) / (self.chain.contexts + 1.0), next(self._count))
        heapq.heappush(self.open, _Line(priority, stage, accrued, waiting, following, promise, choice))

    def _left(self, stage: int) -> int | None:
        """Steps to go before action `stage`."""
        horizon = self.chain.criterion.horizon
        return None if horizon is None else horizon - stage

    def _reward(self, part: Measure, action: int) -> float:
        return float(self.chain.R[action][part.nodes] @ part.weights)

    def _lumped(self, part: Measure) -> np.ndarray:
        """The measure on the states of the bound's model."""
        place = self.lump[part.nodes]
        return np.bincount(place[place >= 0], part.weights[place >= 0], self.bound.model.num_states)

    def _ahead(self, stage: int, measure: Measure) -> float:
        """The bound from a stage on, the contexts of which may each be remembered from there."""
        left = self._left(stage)
        if left == 0:
            return 0.0
        return sum(self.bound.value(left, self._lumped(part)) for part in self.chain.split(measure))

    def _give_up(self, bound: float) -> None:
        """Close a line for good: no policy in it earns more than this."""
        self.beyond = max(self.beyond, bound)

    def _finish(self, accrued: float, given: dict[int, int]) -> None:
        """A complete policy; one decided by context alone is evaluated over its whole run."""
        value, filled = accrued, None
        if not self.by_time:
            filled = np.zeros(self.chain.contexts, dtype=np.int64)
            filled[list(given)] = list(given.values())
            value = self.chain.evaluate(self.chain.policy(filled))
        if value > self.best:
            self.best, self.choice = value, filled

    def _closed(self, given: dict[int, int], measure: Measure) -> bool:
        """Whether everything that can still be reached has an action, so that the policy is complete."""
        chain = self.chain
        if chain.criterion.horizon is not None:
            return False
        seen: set[int] = set()
        frontier = measure.nodes[chain.alive[measure.nodes]]
        while len(frontier):
            seen.update(frontier.tolist())
            led = []
            for node in frontier.tolist():
                action = given.get(int(chain.context[node]), -1)
                if action < 0:
                    return False
                P = chain.P[action]
                led.append(P.indices[P.indptr[node] : P.indptr[node + 1]])
            reached = np.unique(np.concatenate(led))
            frontier = np.array(
                [n for n in reached[chain.alive[reached]].tolist() if n not in seen], dtype=np.int64
            )
        return True

    def _is_worse(
        self, stage: int, accrued: float, measure: Measure, choice: tuple[tuple[int, int], ...]
    ) -> bool:
        """Whether another line reached the same measure, with the same actions given, and earned no less."""
        key = measure.key() if self.by_time else measure.key() + repr(sorted(choice)).encode()
        known = self._met.get((stage, key))
        if known is not None and known >= accrued:
            return True
        self._met[stage, key] = accrued
        return False


def decide(
    chain: ContextChain,
    bound: RecallBound,
    lump: np.ndarray,
    *,
    by_time: bool,
    known: float,
    gap: float,
    seconds: float,
) -> Decisions:
    """The best deterministic decisions by context, or by context and time (`by_time`), within `seconds`.

    `known`: a value below which nothing is looked for; lines that promise at most `gap` more than the best are closed,
    with their bound kept. When time is over `upper` is the best bound of the open lines,
    which is valid.
    """
    search = _Search(chain, bound, lump, by_time, gap)
    search.best = known
    end = time.perf_counter() + seconds
    nodes = np.flatnonzero(chain.start)
    search.enter(0, 0.0, Measure(nodes, chain.start[nodes]), ())
    while search.open and len(search.open) < MAX_LINES and time.perf_counter() < end:
        if -search.open[0].priority[0] <= max(search.best, search.beyond) + search.slack:
            break
        search.expand(heapq.heappop(search.open))
    top = -search.open[0].priority[0] if search.open else -math.inf
    return Decisions(max(top, search.best, search.beyond), search.best, search.choice)


def _joined(parts: tuple[Measure, ...]) -> Measure:
    """The sum of measures."""
    return Measure.of(np.concatenate([p.nodes for p in parts]), np.concatenate([p.weights for p in parts]))
