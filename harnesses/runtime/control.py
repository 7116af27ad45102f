"""Control: limits, loop detection and permission patterns, all functions of history and state; imports records.

Source: M1 §1.2.5, E1.7. Differs from the source: stalls are counted on the history, which only grows, so that
trimming never looks like one; "fails to grow" means that calls and their answers repeat earlier ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harnesses.runtime.records import AgentError, Budget, Context, Message, Reason, State, ToolCall

Subject = ToolCall | str
"""What may be repeated: a call, or the text of a reply that did not parse."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a run, each independent and None for no bound; checked before the model is called.

    steps: model calls, whatever comes of them. tokens: of all contexts and replies together. tool_calls: executed,
    refused or invalid. seconds: by the clock. cost: as the model reports it. consecutive_errors: failing steps in a
    row. context_tokens: of one context, schemas included, after trimming. Source: M1 §1.2.2, property 3.
    """

    steps: int | None = 50
    tokens: int | None = 200_000
    tool_calls: int | None = 100
    seconds: float | None = 600.0
    cost: float | None = None
    consecutive_errors: int | None = 5
    context_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse what bounds nothing."""
        for name, value in vars(self).items():
            if value is not None and not 0 < value < float("inf"):
                raise AgentError(
                    f"the limit {name}={value!r} bounds nothing; write {name}=10, or None for no limit"
                )

    @property
    def budget(self) -> Budget:
        """All of it."""
        return Budget(self.steps, self.tokens, self.tool_calls, self.seconds, self.cost)

    def violation(self, state: State, context: Context) -> tuple[Reason, str] | None:
        """The reason, with one line, for which the model must not be called with this context."""
        left, size = state.budget_remaining, context.token_estimate
        if self.consecutive_errors is not None and state.consecutive_errors >= self.consecutive_errors:
            return Reason.ERROR, f"{state.consecutive_errors} failing steps in a row"
        if left.steps is not None and left.steps <= 0:
            return Reason.STEP_LIMIT, f"{self.steps} steps made"
        if left.tool_calls is not None and left.tool_calls <= 0:
            return Reason.TOOL_CALL_BUDGET, f"{self.tool_calls} tool calls made"
        if left.seconds is not None and left.seconds <= 0:
            return Reason.WALL_CLOCK, f"{self.seconds:g} s are over"
        if left.cost is not None and left.cost <= 0:
            return Reason.COST_BUDGET, f"a cost of {self.cost:g} is spent"
        if self.context_tokens is not None and size > self.context_tokens:
            return Reason.CONTEXT_OVERFLOW, f"{size} tokens cannot be trimmed to {self.context_tokens}"
        if left.tokens is not None and size > left.tokens:
            return Reason.TOKEN_BUDGET, f"{max(left.tokens, 0)} of {self.tokens} tokens left, {size} needed"
        return None


def identity(subject: Subject) -> Hashable:
    """What makes two calls identical: the tool and its arguments, in whatever order they were written."""
    if isinstance(subject, str):
        return subject
    return subject.name, json.dumps(dict(subject.arguments), sort_keys=True)


@dataclass(frozen=True)
class StallRule:
    """A loop detector: corrective messages at the counts `warn`, the end of the run at `stop`.

    What is counted, by `mode`: "consecutive", identical calls in a row; "total", identical calls in the whole run;
    "growth", calls in a row each of which repeats an earlier one and its answer. With the first two, the stopping
    call is not executed. More than one warning escalates (M1 E1.7): StallRule(warn=(3, 4), stop=6).
    """

    mode: Literal["consecutive", "total", "growth"] = "consecutive"
    warn: tuple[int, ...] = (3,)
    stop: int = 4
    key: Callable[[Subject], Hashable] = identity

    def __post_init__(self) -> None:
        """Refuse unknown modes and thresholds out of order."""
        if self.mode not in ("consecutive", "total", "growth"):
            raise AgentError(f"no stall mode {self.mode!r}; write consecutive, total or growth")
        levels = (*self.warn, self.stop)
        if any(a >= b for a, b in zip(levels, levels[1:])) or levels[0] < 1:
            raise AgentError(f"stall thresholds {levels} do not rise from 1 on; write warn=(3,), stop=4")

    def count(self, history: Sequence[Message], subject_id: str) -> int:
        """How often the subject was repeated, itself included, as of when it was made."""
        if self.mode == "growth":
            return self._without_growth(history, subject_id)
        earlier = (self.key(subject) for _, subject in _until(history, subject_id))
        key, times = next(earlier), 1
        for other in earlier:
            if other == key:
                times += 1
            elif self.mode == "consecutive":
                break
        return times

    def _without_growth(self, history: Sequence[Message], subject_id: str) -> int:
        answers = {m.result.call_id: (m.result.status, m.result.content) for m in history if m.result}
        seen: set[Hashable] = set()
        stale = 0
        for id, subject in reversed(list(_until(history, subject_id))):
            pair = (self.key(subject), answers.get(id))
            stale = stale + 1 if pair in seen else 0
            seen.add(pair)
        return stale

    def advice(self, times: int) -> str | None:
        """The corrective message due at this count, stronger from the second on."""
        if times not in self.warn:
            return None
        what = {
            "consecutive": f"You have made the same call with the same arguments {times} times in a row.",
            "total": f"You have made the same call with the same arguments {times} times.",
            "growth": f"Your last {times} calls repeated earlier ones and brought nothing new.",
        }[self.mode]
        if times == self.warn[0]:
            return f"{what} The answer has not changed: make a different call or give your final answer."
        return f"{what} It will not tell you anything new: change your approach or finish; at {self.stop} the run ends."


def _until(history: Sequence[Message], subject_id: str) -> Iterator[tuple[str, Subject]]:
    """The subjects with their ids, newest first, from the one asked for."""
    begun = False
    for id, subject in _backwards(history):
        begun = begun or id == subject_id
        if begun:
            yield id, subject


def _backwards(history: Sequence[Message]) -> Iterator[tuple[str, Subject]]:
    for message in reversed(history):
        if message.role == "assistant" and message.about is not None:
            yield message.about, message.content
        for call in reversed(message.calls):
            yield call.id, call


@dataclass(frozen=True)
class Matches:
    """A permission rule: the argument must be one of the patterns, in which `*` stands for one plain name.

    A plain name has letters, digits, `_`, `-` and dots but does not begin with one, so that `src/*.py` lets through
    no `..`, no other folder and no second command. Source: M1 §1.2.5 (argument patterns).
    """

    argument: str
    patterns: tuple[str, ...]

    def __call__(self, call: ToolCall) -> str | None:
        """None where allowed, else the rule."""
        value = call.arguments.get(self.argument)
        if isinstance(value, str) and any(_fits(pattern, value) for pattern in self.patterns):
            return None
        return (
            f"{self.argument} {value!r} is outside of what {call.name} is allowed: {', '.join(self.patterns)}"
        )


def _fits(pattern: str, value: str) -> bool:
    return re.fullmatch(r"\w[\w.-]*".join(re.escape(part) for part in pattern.split("*")), value) is not None
