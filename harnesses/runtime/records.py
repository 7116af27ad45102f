"""Records of a running harness: messages, calls, results, contexts, budgets, state, runs; imports nothing.

All are frozen: a history grows by making a longer tuple, so nothing recorded can be changed or lost. Every record
that a trace holds has `json()` and, where a run is read back, `of()`.
Source: M1 §1.2.1. Differs from the source: a message carries a list of calls; `about` ties a corrective message to
the call that it is about; `budget_remaining` is a record of five numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["ok", "error", "timeout", "denied"]


class AgentError(ValueError):
    """A setting, script or trace that cannot be used; the message names the place and shows a right value."""


class Reason(StrEnum):
    """Why a run ended. Source: M1 §1.2.5, design of the running harness, section 1."""

    COMPLETED = "completed"
    STEP_LIMIT = "step_limit"
    TOKEN_BUDGET = "token_budget"
    TOOL_CALL_BUDGET = "tool_call_budget"
    WALL_CLOCK = "wall_clock"
    COST_BUDGET = "cost_budget"
    STALLED = "stalled"
    CONTEXT_OVERFLOW = "context_overflow"
    ERROR = "error"


@dataclass(frozen=True)
class ToolCall:
    """A call that parsed: `id` is the harness's own (`c1`, `c2`, ...), `arguments` an object of JSON values."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class ToolResult:
    """What became of a call, of one shape whatever happened; `duration` >= 0 in seconds, retries included."""

    call_id: str
    status: Status
    content: str
    duration: float


@dataclass(frozen=True)
class Message:
    """One item of a history or a context; `timestamp` counts up through a run, 0 for what no history holds.

    `calls` only in assistant messages, `result` only in tool messages. `about` is set in the harness's own
    corrective messages, to the id of the call or reply that they are about, and in a reply that did not parse,
    to its own id (`m3` for the third).
    """

    role: Role
    content: str
    timestamp: int
    calls: tuple[ToolCall, ...] = ()
    result: ToolResult | None = None
    about: str | None = None

    def json(self) -> dict[str, Any]:
        """As data; entries that are empty are left out, and the content where the result says the same."""
        data: dict[str, Any] = {"role": self.role, "content": self.content, "timestamp": self.timestamp}
        if self.calls:
            data["calls"] = [dict(vars(call), arguments=dict(call.arguments)) for call in self.calls]
        if self.result is not None:
            data["result"] = dict(vars(self.result))
            if self.result.content == self.content:
                del data["content"]
        if self.about is not None:
            data["about"] = self.about
        return data

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Message:
        """From what `json` gave; KeyError or TypeError where the data are not such."""
        rest = dict(data)
        calls = tuple(ToolCall(**call) for call in rest.pop("calls", ()))
        result = rest.pop("result", None)
        if result is not None:
            rest = {"content": result["content"]} | rest
        return cls(**rest, calls=calls, result=None if result is None else ToolResult(**result))


@dataclass(frozen=True)
class Dropped:
    """That the context manager took `tokens` of a message out of the context, and by which rule.

    `message` names a call by its id, `c3`, and its result by `c3=`. Source: M1 §1.2.1, §1.2.4.
    """

    message: str
    tokens: int
    rule: str
    kind: str


@dataclass(frozen=True)
class Context:
    """What the model is shown at a step. Source: M1 §1.2.1.

    `token_estimate` is all that it costs, `schema_tokens` of it the tools' schemas and `inserted_tokens` of it what
    no history holds: stubs and notes. `dropped` holds every removal from the history until now, so that
    tokens(history) - (token_estimate - schema_tokens) = sum of dropped tokens - inserted_tokens.
    """

    messages: tuple[Message, ...]
    token_estimate: int
    dropped: tuple[Dropped, ...] = ()
    schema_tokens: int = 0
    inserted_tokens: int = 0


@dataclass(frozen=True)
class Budget:
    """What is left of each limit; None where there is no such limit. Tokens, seconds and cost may end below 0."""

    steps: int | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    seconds: float | None = None
    cost: float | None = None

    def less(self, **spent: float) -> Budget:
        """After spending; what has no limit stays without."""
        left = {name: getattr(self, name) for name in spent}
        return replace(
            self, **{name: None if left[name] is None else left[name] - used for name, used in spent.items()}
        )


@dataclass(frozen=True)
class State:
    """The harness's own bookkeeping, which the model does not see. Source: M1 §1.2.1.

    step: model calls so far, whatever came of them. consecutive_errors: failing steps since the last success.
    at: the clock when `budget_remaining.seconds` was last brought up to date. detail: one line beside the reason.
    run: what tells the run from all others in the keys of its tools; empty where no tool takes one.
    """

    budget_remaining: Budget
    step: int = 0
    consecutive_errors: int = 0
    termination_reason: Reason | None = None
    detail: str = ""
    at: float = 0.0
    run: str = ""

    @property
    def terminated(self) -> bool:
        """Whether the run is over."""
        return self.termination_reason is not None

    def json(self) -> dict[str, Any]:
        """As data; without `run` where that is empty."""
        data = vars(self) | {"budget_remaining": dict(vars(self.budget_remaining))}
        return data if self.run else {name: value for name, value in data.items() if name != "run"}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> State:
        """From what `json` gave; KeyError, TypeError or ValueError where the data are not such."""
        rest = dict(data)
        reason = rest.pop("termination_reason")
        budget = Budget(**rest.pop("budget_remaining"))
        return cls(budget, termination_reason=None if reason is None else Reason(reason), **rest)


@dataclass(frozen=True)
class Run:
    """A run at one moment: its append-only history, its state, and `tick`, the last timestamp given out.

    `context` is what the model was last shown, None before the first step.
    """

    history: tuple[Message, ...]
    state: State = field(default_factory=lambda: State(Budget()))
    tick: int = 0
    context: Context | None = None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All calls, in order."""
        return tuple(call for message in self.history for call in message.calls)

    @property
    def results(self) -> dict[str, ToolResult]:
        """The results by the ids of their calls."""
        return {message.result.call_id: message.result for message in self.history if message.result}

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls of the newest reply that have no result yet."""
        answered = []
        for message in reversed(self.history):
            if message.result is not None:
                answered.append(message.result.call_id)
            elif message.role == "assistant":
                return tuple(call for call in message.calls if call.id not in answered)
        return ()
