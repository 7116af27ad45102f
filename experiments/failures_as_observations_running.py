"""Failing calls in the running harness, shown or hidden, and a tabular policy as its model; imports served_task.

A malformed call is one with arguments that its tool does not take; a call that times out outlasts its tool's deadline
on a virtual clock. The harness appends either to the history. A harness that hides failures puts a usual result there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from experiments.served_task import UNIT, ServedTask, episode, tool_name
from harnesses.constructors.base import TIMEOUT
from harnesses.context import Context
from harnesses.context import Message as Item
from harnesses.harness import Induced
from harnesses.runtime.models import RawCall, Reply
from harnesses.runtime.records import AgentError, ToolCall, ToolResult
from harnesses.runtime.tools import Dispatcher, Journal
from pomdp.model import POMDP
from pomdp.rng import ACTION, DYNAMICS, words

MALFORMED = '{"unexpected": 1}'  # no tool of a served task takes arguments


@dataclass
class TabularModel:
    """`pi` `[C, A]` on the contexts of a harness, as a model that reads the messages; `begin` names the episode.

    With probability `malformed` its call has arguments that no tool takes. All draws are of (seed, episode, step).
    AgentError where contexts that read alike are acted on differently.
    """

    induced: Induced
    pi: np.ndarray
    names: Mapping[str, str]
    malformed: float = 0.0
    name: str = "tabular"
    _place: tuple[int, int] = field(default=(0, 0), init=False)

    def __post_init__(self) -> None:
        """Refuse a policy that its reader cannot follow."""
        for c, context in enumerate(self.induced.contexts):
            if not np.array_equal(self.pi[self._rows[context.text]], self.pi[c]):
                raise AgentError(
                    f"context {context.text} reads like another one, in which the policy differs"
                )

    def begin(self, seed: int, number: int) -> None:
        """From here on all draws are those of that episode."""
        self._place = seed, number

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """One call, drawn from the row of the context shown."""
        row = self.pi[self._rows[text_of(messages, self.names)]]
        first, second = (float(word) * UNIT for word in words(self._place[0], ACTION, self._place[1], step))
        shares = np.cumsum(row)
        a = min(int(np.searchsorted(shares, first * shares[-1], side="right")), len(row) - 1)
        arguments = MALFORMED if second < self.malformed else "{}"
        return Reply(calls=(RawCall(tool_name(self.induced.model.actions[a]), arguments),))

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {context.text: c for c, context in enumerate(self.induced.contexts)}


def text_of(messages: list[dict[str, Any]], names: Mapping[str, str]) -> str:
    """The context that these messages show, as `Context.text` writes it; a failed result by how it failed."""
    items = []
    for message in messages[1:]:  # after the request
        for call in message.get("tool_calls", ()):
            items.append(Item("call", names[call["function"]["name"]], 0))
        if message["role"] == "tool":
            content = message["content"]
            seen = content[1:].partition("]")[0] if content.startswith("[") else content
            items.append(Item("result", seen, 0))
        elif message["role"] == "user":
            items.append(Item("note", message["content"], 0))
    return Context(tuple(items)).text


class FailingTask(ServedTask):
    """A served task whose calls time out with probability `timeout`; of those a share `effect` acts, unseen."""

    def __init__(
        self, model: POMDP, dispatcher: Callable[..., Dispatcher], timeout: float = 0.0, effect: float = 0.0
    ) -> None:
        self.timeout, self.effect, self.failed = timeout, effect, 0
        super().__init__(model, dispatcher)

    def begin(self, seed: int, episode: int) -> None:
        """The first state; whoever hides failures has seen no result yet."""
        super().begin(seed, episode)
        self._tries = 0
        forget = getattr(self.dispatcher, "forget", None)
        if forget is not None:
            forget()

    def act(self, action: int) -> str:
        """One step, or a timeout with or without it."""
        u = float(words(self._seed, DYNAMICS, self._episode, self._tries)[1]) * UNIT
        self._tries += 1
        if u >= self.timeout:
            return super().act(action)
        self.failed += 1
        if u < self.timeout * self.effect:
            super().act(action)
        return TIMEOUT


class Hiding(Dispatcher):
    """A dispatcher whose every result is `ok`: of a failure the tool's `blanks`, or its newest true one if `stale`."""

    def __init__(self, *given: Any, blanks: Mapping[str, str], stale: bool, **named: Any) -> None:
        super().__init__(*given, **named)
        self.blanks, self.stale, self.newest = blanks, stale, dict(blanks)

    def forget(self) -> None:
        """A new run."""
        self.newest = dict(self.blanks)

    def dispatch(self, call: ToolCall, journal: Journal | None = None, run: str = "") -> ToolResult:
        """The result, or what is shown in its place."""
        result = super().dispatch(call, journal, run)
        if result.status != "ok":
            return replace(result, status="ok", content=self.newest[call.name])
        if self.stale:
            self.newest[call.name] = result.content
        return result


def run_policy(
    induced: Induced, pi: np.ndarray, dispatcher: Callable[..., Dispatcher], *, timeout: float, effect: float,
    malformed: float, episodes: int, seed: int,
) -> tuple[np.ndarray, int, str]:  # fmt: skip
    """`[E]` what the runs of `pi` earned, the calls that failed in them, and all results of the first run."""
    horizon = induced.criterion.horizon or 0
    served = FailingTask(induced.task, dispatcher, timeout, effect)
    model = TabularModel(induced, pi, served.names, malformed)
    earned, failed, first = [], 0, ""
    for number in range(episodes):
        model.begin(seed, number)
        run = episode(served, model, induced.phi, horizon, seed, number)
        earned.append(run.earned)
        calls = {call.id: call for call in run.run.calls}
        failed += sum(bool(call.arguments) for call in calls.values())
        first = first or str([(calls[r.call_id].name, r.status, r.content) for r in run.run.results.values()])
    return np.array(earned), failed + served.failed, first
