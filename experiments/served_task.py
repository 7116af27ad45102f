"""A task served as tools to the minimal harness, one tool an action, and a whole episode of it; imports the runtime.

The world draws what happens at its own step t from (seed, episode, t), so that two policies that do the same see the
same. Studies use it to set what a running harness earns beside what was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harnesses.constructors.base import TIMEOUT, Base
from harnesses.context import ContextMap
from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.control import Limits
from harnesses.runtime.loop import Harness, end, model_step, start, tool_step
from harnesses.runtime.models import Model
from harnesses.runtime.records import Reason, Run
from harnesses.runtime.tools import Dispatcher, Tool
from pomdp.model import POMDP
from pomdp.rng import DYNAMICS, START, words

REQUEST = "Earn as much as you can."
TIMEOUT_SECONDS = 1.0
UNIT = 2.0**-32


@dataclass(frozen=True)
class Episode:
    """What one run earned, how often the model was asked, and the run itself with `statuses` of all its results."""

    earned: float
    replies: int
    run: Run

    @property
    def statuses(self) -> list[str]:
        """In the order of the calls."""
        return [result.status for result in self.run.results.values()]


class ServedTask:
    """The task behind tools; `begin` puts it at the start of an episode. An observation `timeout` is a real one."""

    def __init__(
        self, model: POMDP, dispatcher: Callable[..., Dispatcher] = Dispatcher, discount: float = 1.0
    ) -> None:
        self.model, self.discount, self.clock = model, discount, VirtualClock()
        self._base = Base(model)
        tools = [self._tool(a, name) for a, name in enumerate(model.actions)]
        self.names: Mapping[str, str] = {tool_name(name): name for name in model.actions}
        self.dispatcher = dispatcher(tools, {tool.name: () for tool in tools}, clock=self.clock)
        self._drawn: dict[tuple[int, int], tuple[np.ndarray, list[tuple[int, str]]]] = {}
        self.begin(0, 0)

    def begin(self, seed: int, episode: int) -> None:
        """The first state, drawn; nothing earned."""
        self._seed, self._episode, self._steps, self.earned = seed, episode, 0, 0.0
        first = float(words(seed, START, episode, 0)[0]) * UNIT
        shares = np.cumsum(self.model.start)
        self._state = min(int(np.searchsorted(shares, first, side="right")), len(shares) - 1)

    @cached_property
    def _over(self) -> frozenset[int]:
        return self._base.over

    @property
    def over(self) -> bool:
        """Whether nothing can be earned or lost any more."""
        return self._state in self._over

    def act(self, action: int) -> str:
        """One step: its expected reward R(s, a) is earned, the next state drawn, the observation given."""
        s = self._state
        if (s, action) not in self._drawn:
            found = list(self._base.kernel.step(s, action))
            self._drawn[s, action] = np.cumsum([float(p) for _, _, p in found]), [(t, o) for t, o, _ in found]
        shares, outcomes = self._drawn[s, action]
        u = float(words(self._seed, DYNAMICS, self._episode, self._steps)[0]) * UNIT
        self.earned += self.discount**self._steps * float(self.model.R[action, s])
        self._steps += 1
        self._state, seen = outcomes[min(int(np.searchsorted(shares, u, side="right")), len(outcomes) - 1)]
        return seen

    def _tool(self, action: int, name: str) -> Tool:
        def tool() -> str:
            seen = self.act(action)
            if seen == TIMEOUT:
                self.clock.sleep(2 * TIMEOUT_SECONDS)
            return seen

        called, what = tool_name(name), f"The action {name}."
        return Tool.of(tool, name=called, description=what, timeout=TIMEOUT_SECONDS, inline=True)


def tool_name(action: str) -> str:
    """The action as an identifier: `say-left` is the tool `say_left`."""
    return action.replace("-", "_")


def episode(
    served: ServedTask, model: Model, context_map: ContextMap, horizon: int, seed: int, number: int
) -> Episode:
    """One run of at most `horizon` calls, ended as completed where nothing is left to earn; no other rule ends it."""
    served.begin(seed, number)
    limits = Limits(
        steps=None, tokens=None, tool_calls=horizon, seconds=None, cost=None, consecutive_errors=None
    )
    harness = Harness(model, served.dispatcher, context_map, limits=limits, stall=())
    run = start(harness, REQUEST)
    while not run.state.terminated:
        run = model_step(harness, run)
        if run.state.terminated:
            break
        run = tool_step(harness, run)
        if served.over:
            run = end(harness, run, Reason.COMPLETED)
    return Episode(served.earned, run.state.step, run)


def shown_pairs(messages: list[dict[str, Any]], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """The calls and results that a model is shown, in the task's own names; a failed result by how it failed."""
    answers = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    pairs = []
    for call in (call for m in messages for call in m.get("tool_calls", ())):
        content = answers[call["id"]]
        seen = content[1:].partition("]")[0] if content.startswith("[") else content
        pairs.append((names[call["function"]["name"]], seen))
    return pairs
