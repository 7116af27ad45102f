"""Served: the world of a table behind tools, one tool an action, in a running harness; imports the table, the runtime.

A tool draws what happens from (seed, episode, step), the step being that of the model's reply, with the tables that
`pomdp.simulate` draws from. The world moves when a tool is executed and never otherwise. A call that times out is one
that takes longer than its tool may, on a clock that stands still between calls; with retries every attempt does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from harnesses.conformance.reading import TaskReading, intended
from harnesses.conformance.table import Table
from harnesses.constructors.base import TIMEOUT
from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.control import Limits, StallRule, Subject
from harnesses.runtime.loop import Harness
from harnesses.runtime.models import Model
from harnesses.runtime.records import ToolCall
from harnesses.runtime.retry import Retry
from harnesses.runtime.tools import Dispatcher, Tool
from harnesses.runtime.trace import Trace
from pomdp.alias import draw
from pomdp.rng import DYNAMICS, START, WIDE, words
from pomdp.rollout import World

SECONDS = 1.0  # that a tool may take


def tool_name(action: str) -> str:
    """The action as an identifier: `open-left` is the tool `do_open_left`."""
    return "do_" + re.sub(r"[^A-Za-z0-9]", lambda c: "_" if c[0] == "-" else f"_{ord(c[0]):x}_", action)


class Served:
    """One episode of a table's world at a time: its state, and what was earned and executed at each step.

    `dispatcher` is made once; the mutants of the tests replace `word_step` and `permitted`.
    """

    def __init__(self, table: Table, dispatcher: Callable[..., Dispatcher] = Dispatcher) -> None:
        self.table, self.clock = table, VirtualClock()
        self._world = World.of(table.model)
        self._states = table.model.num_states
        calls = [move.action for move in table.moves if move.what == "call"]
        self.names = {tool_name(name): name for name in table.split.actions}
        tools = [self._tool(a, name) for a, name in enumerate(calls)]
        rules = {tool_name(name): (_denied,) if name in table.split.denied else () for name in calls}
        retry = Retry(max(table.split.retries.values(), default=0))
        self.dispatcher = dispatcher(tools, rules, clock=self.clock, retry=retry)
        self.begin(0, 0)

    def begin(self, seed: int, episode: int) -> None:
        """Put the world at the start of an episode."""
        self.seed, self.episode, self.step = seed, episode, 0
        self.earned: dict[int, float] = {}
        self.executed: dict[int, str] = {}
        word, second = words(seed, START, [episode], 0)
        self.state = int(draw(self._world.start, np.zeros(1, np.uint32), word, second)[0])

    @property
    def over(self) -> bool:
        """Whether nothing can be earned or lost any more."""
        return self.state in self.table.over

    def act(self, a: int) -> str:
        """What action `a` leads to at this step."""
        model, world = self.table.model, self._world
        self.earned[self.step] = float(model.R[a, self.state])
        self.executed[self.step] = model.actions[a]
        first, second = words(self.seed, DYNAMICS, [self.episode], self.step)
        wide = words(self.seed, WIDE, [self.episode], self.step) if world.wide else (None, None)
        base = a * self._states
        self.state = int(draw(world.transition, np.array([base + self.state], np.uint32), first, wide[0])[0])
        seen = draw(world.observation, np.array([base + self.state], np.uint32), second, wide[1])
        return model.observations[int(seen[0])]

    def harness(self, model: Model, trace: Trace) -> Harness:
        """The harness of the split around a model."""
        split = self.table.split
        limits = Limits(split.steps, None, split.calls, None, None, None)
        stall = split.stall
        rules = () if stall is None else (StallRule(stall.mode, (stall.warn,), stall.stop, self._key),)
        reading = TaskReading(split.spec.sizes, self.names)
        return Harness(model, self.dispatcher, self.table.phi, limits, rules, reading, trace=trace)

    def _tool(self, a: int, name: str) -> Tool:
        def tool() -> str:
            seen = self.act(a)
            if seen == TIMEOUT:
                self.clock.sleep(2 * SECONDS)
            return seen

        return Tool.of(
            tool, name=tool_name(name), description=f"The action {name}.", timeout=SECONDS, inline=True
        )

    def _denied(self, call: ToolCall) -> str | None:
        return f"{call.name} is not permitted"

    def _key(self, subject: Subject) -> str:
        """Which action is repeated: that of a call, or that of a reply that does not parse."""
        return self.names[subject.name] if isinstance(subject, ToolCall) else self.names[intended(subject)]


def _denied(call: ToolCall) -> str:
    return f"{call.name} is not permitted"
