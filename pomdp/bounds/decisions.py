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
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pomdp.bounds.context_chain import ContextChain
from pomdp.bounds.recall_bound import RecallBound, split

# A line is closed unless its bound is better than a known value by more than this share of the scale.
CLOSED = 1e-11
# Lines kept open at one time hold about this many numbers.
MEMORY = 60_000_000
# Without a horizon, decisions by time are followed for so many steps before the rest is bounded.
ENDLESS_STAGES = 40


@dataclass(frozen=True)
class Decisions:
    """`upper`: no deterministic policy of this kind earns more; `best` the best one found, `choice` `[C]` its actions.

    `best` is -inf and `choice` None where time ended before a policy was complete, or where decisions differ by time.
    """

    upper: float
    best: float
    choice: np.ndarray | None
    complete: bool


@dataclass(order=True)
class _Line:
    """A partial policy: ordered by bound, then by depth, so that equal bounds are dived into."""

    priority: tuple[float, float, int]
    stage: int = field(compare=False)
    accrued: float = field(compare=False)
    waiting: tuple[np.ndarray, ...] = field(
        compare=False
    )  # measures of the stage's contexts without an action yet
    following: np.ndarray = field(compare=False)  # [N] what the stage's decided contexts lead to
    promise: float = field(compare=False)  # bound of what follows the decided contexts
    choice: np.ndarray = field(compare=False)  # [C] actions, -1 where none is given


class _Search:
    """The lines of one search. `by_time`: a context may have another action at another stage."""

    def __init__(self, chain: ContextChain, bound: RecallBound, by_time: bool) -> None:
        self.chain, self.bound, self.by_time = chain, bound, by_time
        horizon = chain.criterion.horizon
        self.stages = horizon if horizon is not None else ENDLESS_STAGES if by_time else chain.num_nodes + 1
        self.open: list[_Line] = []
        self.best, self.choice = -math.inf, None
        self.beyond = -math.inf  # the best bound of lines that were followed to the last stage without an end
        self._count = itertools.count()
        self._met: dict[tuple[int, bytes], float] = {}

    def left(self, stage: int) -> int | None:
        """Steps to go before action `stage`."""
        horizon = self.chain.criterion.horizon
        return None if horizon is None else horizon - stage

    def enter(self, stage: int, accrued: float, measure: np.ndarray, choice: np.ndarray) -> None:
        """Begin a stage: contexts that have an action move on at once, the others wait."""
        chain, gamma = self.chain, self.chain.criterion.gamma
        while True:
            parts = split(chain, measure)
            if not parts or stage == self.chain.criterion.horizon:
                self._finish(accrued, choice)
                return
            if self._is_worse(stage, accrued, measure, choice):
                return
            if stage >= self.stages:
                rest = sum(self.bound.value(self.left(stage), part) for part in parts)
                self.beyond = max(self.beyond, accrued + gamma**stage * rest)
                return
            following, waiting, earned = np.zeros(chain.num_nodes), [], 0.0
            for part in parts:
                action = -1 if self.by_time else choice[_context(chain, part)]
                if action >= 0:
                    earned += float(chain.R[action] @ part)
                    following += chain.P[action].T @ part
                else:
                    waiting.append(part)
            if waiting:
                break
            if not self.by_time and self._closed(choice, following):
                self._finish(accrued, choice)
                return
            stage, accrued, measure = stage + 1, accrued + gamma**stage * earned, following
        waiting.sort(key=lambda part: -float(part.sum()))
        rest = None if self.left(stage) is None else self.left(stage) - 1
        promise = sum(self.bound.value(rest, part) for part in split(chain, following)) if rest != 0 else 0.0
        self._push(stage, accrued + gamma**stage * earned, tuple(waiting), following, gamma * promise, choice)

    def expand(self, line: _Line) -> None:
        """Give the first waiting context each action."""
        chain, gamma = self.chain, self.chain.criterion.gamma
        part, rest = line.waiting[0], line.waiting[1:]
        led = (chain.forward @ part).reshape(chain.num_actions, -1)
        seen: set[bytes] = set()
        for a in range(chain.num_actions):
            reward = float(chain.R[a] @ part)
            same = np.rint(np.ldexp(led[a] / part.sum(), 40)).tobytes() + np.float64(reward).tobytes()
            if same in seen:
                continue  # an action that does and earns the same
            seen.add(same)
            choice = line.choice
            if not self.by_time:
                choice = line.choice.copy()
                choice[_context(chain, part)] = a
            accrued = line.accrued + gamma**line.stage * reward
            following = line.following + led[a]
            if not rest:
                self.enter(line.stage + 1, accrued, following, choice)
                continue
            promise = line.promise + self.bound.after(self.left(line.stage), part, a, led[a]) - reward
            self._push(line.stage, accrued, rest, following, promise, choice)

    def _push(
        self, stage: int, accrued: float, waiting: tuple[np.ndarray, ...], following: np.ndarray, promise: float,
        choice: np.ndarray,
    ) -> None:  # fmt: skip
        ahead = sum(self.bound.value(self.left(stage), part) for part in waiting) + promise
        bound = accrued + self.chain.criterion.gamma**stage * ahead
        if self.open and bound <= self.best + self.slack:
            self.beyond = max(self.beyond, min(bound, self.best + self.slack))
            return
        priority = (-bound, -float(stage) + len(waiting) / (self.chain.contexts + 1.0), next(self._count))
        line = _Line(priority, stage, accrued, waiting, following, promise, choice)
        heapq.heappush(self.open, line)

    @property
    def slack(self) -> float:
        """By how much a line must be better to be followed."""
        return CLOSED * max(1.0, self.chain.scale)

    def _finish(self, accrued: float, choice: np.ndarray) -> None:
        """A complete policy; one decided by context alone is evaluated over its whole run."""
        value = accrued
        if not self.by_time:
            filled = np.maximum(choice, 0)
            value = self.chain.evaluate(self.chain.policy(filled))
            if value > self.best:
                self.choice = filled
        self.best = max(self.best, value)

    def _closed(self, choice: np.ndarray, following: np.ndarray) -> bool:
        """Whether everything that can still be reached under `choice` has an action, so that the policy is complete."""
        chain = self.chain
        if chain.criterion.horizon is not None:
            return False
        reached = following > 0.0
        while True:
            actions = choice[chain.context]
            if np.any(reached & chain.alive & (actions < 0)):
                return False
            more = reached.copy()
            for a in range(chain.num_actions):
                here = (reached & (actions == a)).astype(float)
                more |= (here @ chain.P[a]) > 0.0
            if np.array_equal(more, reached):
                return True
            reached = more

    def _is_worse(self, stage: int, accrued: float, measure: np.ndarray, choice: np.ndarray) -> bool:
        """Whether another line reached the same measure, with the same actions given, and earned no less."""
        nodes = np.flatnonzero((measure > 0.0) & self.chain.alive)
        key = nodes.tobytes() + np.rint(np.ldexp(measure[nodes], 45)).tobytes()
        if not self.by_time:
            key += choice.tobytes()
        known = self._met.get((stage, key))
        if known is not None and known >= accrued:
            return True
        self._met[stage, key] = accrued
        return False


def decide(
    chain: ContextChain,
    bound: RecallBound,
    *,
    by_time: bool,
    known: float,
    seconds: float,
    tick: Callable[[], None] | None = None,
) -> Decisions:
    """The best deterministic decisions by context, or by context and time (`by_time`), within `seconds`.

    `known`: the value of a policy of that kind, below which nothing is looked for; -inf where there is none. When time
    is over `upper` is the best bound of the open lines, which is valid.
    """
    search = _Search(chain, bound, by_time)
    search.best = known
    end = time.perf_counter() + seconds
    room = max(1000, MEMORY // max(1, 3 * chain.num_nodes))
    search.enter(0, 0.0, chain.start, np.full(chain.contexts, -1))
    while search.open:
        top = -search.open[0].priority[0]
        if top <= max(search.best, search.beyond) + search.slack:
            break
        if time.perf_counter() > end or len(search.open) > room:
            break
        search.expand(heapq.heappop(search.open))
        if tick is not None:
            tick()
    top = -search.open[0].priority[0] if search.open else -math.inf
    upper = max(top, search.best, search.beyond)
    return Decisions(upper, search.best, search.choice, top <= search.best + search.slack)


def _context(chain: ContextChain, part: np.ndarray) -> int:
    """The context of a measure within one."""
    return int(chain.context[np.flatnonzero(part)[0]])
