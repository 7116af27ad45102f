"""Run: one run of an agent as its log tells it, the same for every format; imports the runtime's records.

A step is a call of one tool with its result, or a turn of talk without a call. Source: M1 §1.2.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from harnesses.logs.tokens import Source, call_key, estimate, reply_tokens
from harnesses.runtime.records import Status, ToolCall, ToolResult

UNTIMED = math.nan  # the duration of a call of which the log does not tell how long it took


def untimed(call_id: str, status: Status, content: str) -> ToolResult:
    """A result as logs have it, without a duration."""
    return ToolResult(call_id, status, content, UNTIMED)


@dataclass(frozen=True)
class Head:
    """What stood before the first reply of the model: system prompt and user request, sized in tokens."""

    system: str = ""
    user: str = ""
    tokens: int = 0


@dataclass(frozen=True)
class Step:
    """What the model said, the call it made with its result, and what a user said after it; sizes in tokens.

    `call` is None where the model only talked, `result` where the log has no answer. `call_tokens` is the size of
    `said` and the call, `result_tokens` of the result, `heard_tokens` of `heard`; all >= 0.
    """

    said: str = ""
    call: ToolCall | None = None
    result: ToolResult | None = None
    heard: str = ""
    call_tokens: int = 0
    result_tokens: int = 0
    heard_tokens: int = 0

    @cached_property
    def key(self) -> str | None:
        """Equal for identical calls, name and arguments; None without a call."""
        return None if self.call is None else call_key(self.call.name, self.call.arguments)

    @property
    def tokens(self) -> int:
        """Of everything in the step."""
        return self.call_tokens + self.result_tokens + self.heard_tokens


@dataclass(frozen=True)
class Outcome:
    """How a run ended; None where the log has no verdict.

    `success` of the user's task; `attempted`, whether injected text was planted in what tools return; `carried_out`,
    whether the injected goal was reached. `counts` are further numbers of the format, such as checkpoints.
    """

    success: bool | None = None
    attempted: bool | None = None
    carried_out: bool | None = None
    ended: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run: its format, id, task (None where the log does not say), setting, outcome, head and steps.

    `setting` tells apart what must not be counted together, such as the guard of an AgentDojo pipeline.
    """

    source: str
    id: str
    task: str | None
    setting: str
    outcome: Outcome
    head: Head
    steps: tuple[Step, ...]
    counted: Source = "estimate"

    @property
    def tokens(self) -> int:
        """The size of the whole log of the run."""
        return self.head.tokens + sum(step.tokens for step in self.steps)

    def estimated(self) -> Run:
        """The same run with every size by the estimator, for comparison with logs that carry no counts."""
        if self.counted == "estimate":
            return self
        head = replace(self.head, tokens=estimate(self.head.system) + estimate(self.head.user))
        return replace(self, head=head, steps=tuple(map(_estimated, self.steps)), counted="estimate")


def _estimated(step: Step) -> Step:
    return replace(
        step,
        call_tokens=reply_tokens(step.said, step.call),
        result_tokens=estimate(step.result.content if step.result else ""),
        heard_tokens=estimate(step.heard),
    )
