"""Sampled runs of a model in a harness whose induced POMDP is too large to write down; imports harnesses, pomdp.rng.

The context map is folded along each run as the running harness does, over M_0 alone. All draws are functions of
(seed, episode, step), and outcomes are put in order by name, so that two arms that behave alike draw alike.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from harnesses.case import Case
from harnesses.constructors.base import Base
from harnesses.context import Context, Memory, branches, require_horizon
from harnesses.harness import Induced
from harnesses.lookahead import Lookahead
from harnesses.models import naive_scores, policy, random_scores, rule_scores
from pomdp.model import ModelError
from pomdp.rng import ACTION, DYNAMICS, START, words
from pomdp.simulate import cut

READERS = ("naive", "rules", "random")
_WORD = 2.0**-32


@dataclass(frozen=True, eq=False)
class Sample:
    """What sampled runs gave: `returns` `[seeds]` mean return of each seed's episodes, and means over all of them.

    `steps` is the number of actions of an episode, `tokens` the context's size at an action; `seen` counts
    (step, context, action); `truncation` bounds what lies beyond the last step.
    """

    returns: np.ndarray
    steps: float
    tokens: float
    truncation: float
    actions: tuple[str, ...]
    seen: Counter[tuple[int, Context, int]]


def sample(case: Case, seeds: Sequence[int], episodes: int) -> Sample:
    """Run `episodes` episodes with each seed; seed and episode number fix all draws. Raises ModelError.

    A model that weighs histories against each other (bayes, optimal) needs the induced POMDP and is refused.
    """
    spec = case.spec
    if spec.model.kind not in READERS:
        raise ModelError(
            f"the induced POMDP has more than {case.effort.max_states} states, without which the model "
            f"{spec.model.kind!r} is not defined; raise --max-states, or take one of {', '.join(READERS)}"
        )
    world = _World(case)
    length, truncation = cut(world.inner, spec.criterion, None)
    weights = spec.criterion.gamma ** np.arange(length)
    numbers = np.arange(episodes)
    returns, seen = [], Counter[tuple[int, Context, int]]()
    for seed in seeds:
        start = words(seed, START, numbers, 0)[0] * _WORD
        state = [world.start(u) for u in start.tolist()]
        memory, total = [0] * episodes, 0.0
        for t in range(length):
            live = [i for i, s in enumerate(state) if s not in world.over]
            if not live:
                break
            act, turn = (w * _WORD for w in words(seed, ACTION, numbers, t))
            move = words(seed, DYNAMICS, numbers, t)[0] * _WORD
            world.decide({memory[i] for i in live})
            earned = 0.0
            for i in live:
                a = world.action(memory[i], act[i])
                seen[t, world.contexts[memory[i]], a] += 1
                earned += world.rewards[a][state[i]]
                state[i], o = world.outcome(state[i], a, move[i])
                memory[i] = world.remember(memory[i], a, o, turn[i])
            total += weights[t] * earned
        returns.append(total / episodes)
    made = sum(seen.values())
    tokens = sum(context.tokens * n for (_, context, _), n in seen.items())
    return Sample(
        np.array(returns), made / (episodes * len(seeds)), tokens / made, truncation,
        world.inner.actions, seen,
    )  # fmt: skip


class _World:
    """M_0 and the context map folded along; each row is built when it is first met, and memory 0 is the start."""

    def __init__(self, case: Case) -> None:
        spec = case.spec
        self._case = case
        self.inner = spec.harness.inner(spec.task, spec.task.actions if spec.model.fixed else ())
        self._phi = spec.harness.context.bind(self.inner, spec.criterion.horizon, spec.sizes)
        require_horizon(self._phi, spec.criterion.horizon)
        base = Base(self.inner)
        self.over, self._kernel = base.over, base.kernel
        self.rewards = self.inner.R.tolist()
        self._memories: list[Memory] = []
        self.contexts: list[Context] = []
        self._number: dict[Memory, int] = {}
        self._moves: dict[tuple[int, int], _Row] = {}
        self._turns: dict[tuple[int, int, str], _Row] = {}
        self._policy: dict[Context, list[float]] = {}
        begin = sorted(self.inner.exact.start.items(), key=lambda item: self.inner.states[item[0]])
        self._start = _row(begin)
        self._remembered(self._phi.start())

    def start(self, u: float) -> int:
        """The first state, drawn by `u` in [0, 1)."""
        return _drawn(self._start, u)

    def decide(self, memories: set[int]) -> None:
        """Work out what the model does in the contexts of these memories, all new ones at once."""
        new = list(dict.fromkeys(self.contexts[x] for x in sorted(memories)))
        new = [context for context in new if context not in self._policy]
        if not new:
            return
        spec, nobody = self._case.spec, np.zeros(0, dtype=int)
        # The readers look at contexts and actions alone, so M_0 stands in for the model that is too large.
        seen = Induced(
            spec.task, self.inner, self.inner, self._phi, spec.criterion, tuple(new), nobody, nobody
        )
        if spec.model.kind == "random":
            scores = random_scores(seen)
        elif spec.model.kind == "rules":
            scores = rule_scores(seen, spec.model)
        else:
            scores = naive_scores(seen, Lookahead.of(self._case.task))
        for context, row in zip(new, policy(scores, spec.model.temperature), strict=True):
            self._policy[context] = list(accumulate(row.tolist()))

    def action(self, x: int, u: float) -> int:
        """What the model does at memory `x`."""
        ends = self._policy[self.contexts[x]]
        return min(bisect_right(ends, u * ends[-1]), len(ends) - 1)

    def outcome(self, s: int, a: int, u: float) -> tuple[int, str]:
        """The next state of M_0 and what is observed, the outcomes lying in order of their names."""
        row = self._moves.get((s, a))
        if row is None:
            states = self.inner.states
            found = sorted(self._kernel.step(s, a), key=lambda outcome: (outcome[1], states[outcome[0]]))
            row = self._moves[s, a] = _row([((t, o), p) for t, o, p in found])
        return _drawn(row, u)

    def remember(self, x: int, a: int, o: str, u: float) -> int:
        """The next memory."""
        row = self._turns.get((x, a, o))
        if row is None:
            event = self._case.spec.sizes.event(self.inner.actions[a], o)
            found = branches(self._phi, self._memories[x], event)
            row = self._turns[x, a, o] = _row([(self._remembered(y), q) for y, q in found])
        return _drawn(row, u)

    def _remembered(self, memory: Memory) -> int:
        number = self._number.get(memory)
        if number is None:
            number = self._number[memory] = len(self._memories)
            self._memories.append(memory)
            self.contexts.append(self._phi.show(memory))
        return number


_Row = tuple[list[Any], list[float]]
"""Outcomes, and the ends of their shares of [0, 1)."""


def _row(pairs: Sequence[tuple[Any, Fraction]]) -> _Row:
    return [value for value, _ in pairs], [float(end) for end in accumulate(p for _, p in pairs)]


def _drawn(row: _Row, u: float) -> Any:
    values, ends = row
    return values[min(bisect_right(ends, u), len(values) - 1)]
