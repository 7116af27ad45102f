"""Branch and bound over deterministic decisions by context and time, one context after another; imports recall_bound.

Time runs forward: what a run may be doing before action t is a measure on nodes, exact once every context met before
has an action. Each open context of a stage is then given each action in turn, the most promising line first. What is
left is bounded by policies that remember everything from there on, so that a line whose bound is no better than a
known value is closed. Where contexts meet again in one context of the next stage, what told them apart is forgotten
in the bound as well. Source: design of the formal core, section 3 (`stateless-upper`).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass, field

import numpy as np

from pomdp.bounds.context_chain import ContextChain
from pomdp.bounds.recall_bound import RecallBound

# A line is closed unless its bound is better than a known value by more than the gap asked for or, at the least, by
# this share of the scale.
CLOSED = 1e-11
# Lines kept open at one time; each holds a few measures.
MAX_LINES = 200_000
# Measures agree when they do to so many binary places.
PLACES = 48


@dataclass(frozen=True)
class Decisions:
    """`upper`: no decisions by context and time earn more; `best`: the best known, `choice` `[C]` its actions.

    `choice` is None where no better ones than those known before were found, or contexts recur.
    """

    upper: float
    best: float
    choice: np.ndarray | None


@dataclass(order=True)
class _Line:
    """Partial decisions: ordered by bound, then by depth, so that equal bounds are dived into.

    `waiting`: contexts of the stage without an action yet, by place, with their measures and bounds; `following`: what
    the decided ones lead to, by place in the next stage, with bounds. All measures are those of probability, not yet
    discounted.
    """

    priority: tuple[float, int, int, int]
    stage: int = field(compare=False)
    accrued: float = field(compare=False)
    waiting: tuple[tuple[int, np.ndarray, float], ...] = field(compare=False)
    following: dict[int, tuple[np.ndarray, float]] = field(compare=False)
    taken: tuple[tuple[int, int], ...] = field(compare=False)


class _Search:
    """The lines of one search. `origin` `[N]`: the state of the bound's model in each node, -1 where a run is over."""

    def __init__(
        self, chain: ContextChain, bound: RecallBound, origin: np.ndarray, known: float, gap: float
    ) -> None:
        self.chain, self.bound, self.origin = chain, bound, origin
        self.best = known
        self.taken: tuple[tuple[int, int], ...] | None = None
        self.slack = max(gap, CLOSED * max(1.0, chain.scale))
        self.closed = -math.inf  # the best bound of lines that were closed
        self.blur, self.deepest = 0.0, 0  # what taking two measures for one may have cost, at each stage
        self.open: list[_Line] = []
        self._count = itertools.count()
        self._met: dict[tuple[int, bytes], float] = {}

    def ahead(self, t: int, place: int, measure: np.ndarray) -> float:
        """The bound on what a measure on the context at `place` of stage t can earn from there on."""
        chain = self.chain
        if chain.horizon is not None and t >= chain.horizon:
            return 0.0
        stage = chain.stage(t)
        states = self.origin[stage.nodes[stage.part(place)]]
        here = states >= 0
        left = None if chain.horizon is None else chain.horizon - t
        return self.bound.value(left, np.bincount(states[here], measure[here], self.bound.model.num_states))

    def enter(
        self, t: int, accrued: float, parts: dict[int, tuple[np.ndarray, float]], taken: tuple[tuple[int, int], ...]
    ) -> None:  # fmt: skip
        """Begin stage t with the measures `parts` by context; the rarest contexts are decided last."""
        self.deepest = max(self.deepest, t)
        if not parts or t == self.chain.horizon:
            if accrued > self.best:
                self.best, self.taken = accrued, taken
            return
        key = b"".join(
            k.to_bytes(4, "little") + np.rint(np.ldexp(part, PLACES)).tobytes()
            for k, (part, _) in sorted(parts.items())
        )
        known = self._met.get((t, key))
        if known is not None and known >= accrued:
            self._blurred(sum(len(part) for part, _ in parts.values()))
            return  # another line came to the same and earned no less
        self._met[t, key] = accrued
        waiting = [(k, part, value) for k, (part, value) in parts.items()]
        waiting.sort(key=lambda entry: -float(entry[1].sum()))
        self._push(t, accrued, tuple(waiting), {}, taken)

    def expand(self, line: _Line) -> None:
        """Give the first waiting context each action; of actions that do and earn the same the first."""
        chain, t = self.chain, line.stage
        stage = chain.stage(t)
        place, part, _ = line.waiting[0]
        rest = line.waiting[1:]
        last = chain.horizon is not None and t + 1 == chain.horizon
        seen: set[bytes] = set()
        rewards = stage.rewards[:, stage.part(place)] @ part
        for a in range(chain.num_actions):
            led = [] if last else [(k, part @ way) for k, way in stage.branch(place, a)]
            same = np.float64(rewards[a]).tobytes() + b"".join(
                k.to_bytes(4, "little") + np.rint(np.ldexp(m, PLACES)).tobytes() for k, m in led
            )
            if same in seen:
                self._blurred(sum(len(m) for _, m in led))
                continue
            seen.add(same)
            following = dict(line.following)
            for k, more in led:
                value = self.ahead(t + 1, k, more)
                if k in following:
                    before, known = following[k]
                    more = before + more
                    value = min(known + value, self.ahead(t + 1, k, more))
                following[k] = more, value
            accrued = line.accrued + chain.gamma**t * float(rewards[a])
            taken = (*line.taken, (int(stage.contexts[place]), a)) if chain.timed else ()
            if rest:
                self._push(t, accrued, rest, following, taken)
            else:
                self.enter(t + 1, accrued, following, taken)

    def _blurred(self, entries: int) -> None:
        """Two measures with so many entries were taken for one."""
        self.blur = max(self.blur, self.chain.scale * entries * 2.0**-PLACES)

    def _push(
        self, t: int, accrued: float, waiting: tuple[tuple[int, np.ndarray, float], ...],
        following: dict[int, tuple[np.ndarray, float]], taken: tuple[tuple[int, int], ...],
    ) -> None:  # fmt: skip
        gamma = self.chain.gamma
        ahead = math.fsum(value for _, _, value in waiting)
        ahead += gamma * math.fsum(value for _, value in following.values())
        bound = accrued + gamma**t * ahead
        if bound <= self.best + self.slack:
            self.closed = max(self.closed, bound)
            return
        priority = (-bound, -t, len(waiting), next(self._count))
        heapq.heappush(self.open, _Line(priority, t, accrued, waiting, following, taken))


def decide(
    chain: ContextChain,
    bound: RecallBound,
    origin: np.ndarray,
    *,
    known: float,
    gap: float,
    seconds: float,
) -> Decisions:
    """The best decisions by context and time, within `seconds`.

    `known`: a value below which nothing is looked for; lines that promise at most `gap` more than the best are closed,
    with their bound kept. When time is over `upper` is the best bound of the open lines, which is valid.
    """
    search = _Search(chain, bound, origin, known, gap)
    end = time.perf_counter() + seconds
    parts = chain.stage(0).split(chain.start) if chain.stages else {}
    search.enter(0, 0.0, {k: (part, search.ahead(0, k, part)) for k, part in parts.items()}, ())
    while search.open:
        top = -search.open[0].priority[0]
        if top <= max(search.best + search.slack, search.closed):
            break
        if time.perf_counter() > end or len(search.open) > MAX_LINES:
            break
        search.expand(heapq.heappop(search.open))
    top = -search.open[0].priority[0] if search.open else -math.inf
    choice = None
    if search.taken is not None and chain.timed:
        choice = np.zeros(chain.contexts, dtype=np.int64)
        for c, a in search.taken:
            choice[c] = a
    upper = max(top, search.best, search.closed) + search.blur * (search.deepest + 1)
    return Decisions(upper, search.best, choice)
