"""Conversation: chat messages of any provider's shape, read into a head and steps; imports the records of a run.

Roles are system, user, assistant and tool, or LangChain's names for them. A result goes to the open call with its
id, without one to the oldest open call; a result that answers no call stands as a step of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harnesses.logs.fields import LogError, as_arguments, as_list, as_name, as_object, as_text, need
from harnesses.logs.run import Head, Step, untimed
from harnesses.logs.tokens import estimate, reply_tokens
from harnesses.runtime.records import Status, ToolCall

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
}
UNNAMED = "unnamed"  # the id of a call to which the log gave none

Verdict = Callable[[Mapping[str, Any], str], tuple[Status, str]]
"""From a tool message and its text to the result's status and the text that the model saw."""


@dataclass
class _Reading:
    """The steps so far, and which of the last reply's calls still wait for a result."""

    system: list[str] = field(default_factory=list)
    user: list[str] = field(default_factory=list)
    head_tokens: int = 0
    steps: list[Step] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)


def read_conversation(messages: Any, place: str, verdict: Verdict) -> tuple[Head, tuple[Step, ...]]:
    """The head and the steps of a list of messages, sized by the estimator. LogError names a wrong entry."""
    reading = _Reading()
    for i, value in enumerate(as_list(messages, place)):
        here = f"{place}[{i}]"
        message = as_object(value, here)
        role = role_of(message, here)
        text = as_text(message.get("content"), f"{here}.content")
        if role == "assistant":
            calls = read_calls(message.get("tool_calls"), f"{here}.tool_calls")
            _reply(reading, text, calls)
        elif role == "tool":
            _answer(reading, message, text, verdict)
        else:
            _heard(reading, role, text)
    head = Head("\n".join(reading.system), "\n".join(reading.user), reading.head_tokens)
    return head, tuple(reading.steps)


def role_of(message: Mapping[str, Any], place: str) -> str:
    """One of the four roles. LogError for another."""
    role = message.get("role", message.get("type"))
    known = ROLES.get(role) if isinstance(role, str) else None
    if known is None:
        raise LogError(f"{place}.role is {str(role)[:40]!r}; known: {', '.join(ROLES)}")
    return known


def read_calls(value: Any, place: str) -> list[ToolCall]:
    """The calls of a reply: `{id, function: {name, arguments}}`, `{id, name, args}` or `{id, function, args}`."""
    calls = []
    for i, entry in enumerate(as_list(value, place)):
        here = f"{place}[{i}]"
        call = as_object(entry, here)
        function = call.get("function")
        body = function if isinstance(function, dict) else call
        name = function if isinstance(function, str) else need(body, "name", here)
        arguments = as_arguments(body.get("arguments", body.get("args")))
        identity = call.get("id")
        identity = UNNAMED if identity is None else as_name(identity, f"{here}.id")
        calls.append(ToolCall(id=identity, name=as_name(name, f"{here}.name"), arguments=arguments))
    return calls


def _reply(reading: _Reading, text: str, calls: Sequence[ToolCall]) -> None:
    """A step for each call, the text with the first; one step of talk without calls."""
    reading.waiting = []
    for i, call in enumerate(calls or [None]):
        said = text if i == 0 else ""
        if call is not None:
            reading.waiting.append(len(reading.steps))
        reading.steps.append(Step(said, call, call_tokens=reply_tokens(said, call)))


def _answer(reading: _Reading, message: Mapping[str, Any], text: str, verdict: Verdict) -> None:
    """A result goes to its call."""
    status, seen = verdict(message, text)
    identity = message.get("tool_call_id")
    place = next(
        (i for i in reading.waiting if identity is None or reading.steps[i].call.id == identity),  # type: ignore[union-attr]
        None,
    )
    if place is None:
        reading.steps.append(Step())
        place = len(reading.steps) - 1
    else:
        reading.waiting.remove(place)
    step = reading.steps[place]
    call_id = step.call.id if step.call else str(identity)
    result = untimed(call_id, status, seen)
    reading.steps[place] = replace(step, result=result, result_tokens=estimate(seen))


def _heard(reading: _Reading, role: str, text: str) -> None:
    """Before the first reply it is the head; afterwards what the last step heard."""
    if not reading.steps:
        (reading.system if role == "system" else reading.user).append(text)
        reading.head_tokens += estimate(text)
        return
    step = reading.steps[-1]
    heard = f"{step.heard}\n{text}" if step.heard else text
    reading.steps[-1] = replace(step, heard=heard, heard_tokens=step.heard_tokens + estimate(text))
