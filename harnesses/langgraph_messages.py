"""LangGraph messages: a run as the values of a graph's state and back, without loss; imports langchain, the runtime.

The history becomes LangChain messages, which any LangGraph tool can read: an assistant's calls are `tool_calls`, a
result is a ToolMessage with its status. What LangChain has no field for (timestamps, what a correction is about, the
status `denied`, durations) stands in `response_metadata` and `artifact`, which no provider is sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.graph.message import add_messages

from harnesses.runtime.records import Context, Dropped, Message, Run, State, ToolCall, ToolResult
from harnesses.runtime.tools import clean

LARGEST = 2**63  # integers from here on, and below its negative, have no place in a checkpoint


class Values(TypedDict):
    """The state of the graph: `messages` is the history, which only grows; the other keys are the rest of a Run.

    state: as `State.json` writes it. tick: the last timestamp. context: what the model was last shown, as JSON text in
    which a message of the history is its timestamp, None before the first step.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    state: dict[str, Any]
    tick: int
    context: str | None


def to_values(run: Run, known: int = 0) -> Values:
    """The state of a run; `messages` without the first `known` of the history, for the update of a node."""
    messages: list[Any] = [to_langchain(message) for message in run.history[known:]]
    reason = run.state.termination_reason
    state = run.state.json() | {"termination_reason": None if reason is None else str(reason)}
    return {"messages": messages, "state": state, "tick": run.tick, "context": _written(run)}


def of_values(values: Mapping[str, Any]) -> Run:
    """The run of a state that `to_values` gave; KeyError or TypeError where it is not such."""
    history = tuple(of_langchain(message) for message in values["messages"])
    return Run(history, State.of(values["state"]), values["tick"], _read(values["context"], history))


def to_langchain(message: Message) -> BaseMessage:
    """A record as a LangChain message; where a checkpoint could not hold it as it is, with its JSON text beside."""
    beside: dict[str, Any] = {"timestamp": message.timestamp}
    if message.about is not None:
        beside["about"] = message.about
    if not _holds([message.content, *((call.name, dict(call.arguments)) for call in message.calls)]):
        beside = {"record": json.dumps(message.json())}
        message = _cleaned(message)
    fields: dict[str, Any] = {
        "content": message.content,
        "id": f"t{message.timestamp}",
        "response_metadata": beside,
    }
    if message.role == "system":
        return SystemMessage(**fields)
    if message.role == "user":
        return HumanMessage(**fields)
    if message.role == "assistant":
        calls = [{"name": c.name, "args": dict(c.arguments), "id": c.id} for c in message.calls]
        return AIMessage(**fields, tool_calls=calls)
    result = message.result
    if result is None:
        raise TypeError(f"a message of role {message.role!r} has no result")
    artifact: dict[str, Any] = {"status": result.status, "duration": result.duration}
    if result.content != message.content:
        artifact["content"] = result.content
    status = "success" if result.status == "ok" else "error"
    return ToolMessage(**fields, tool_call_id=result.call_id, status=status, artifact=artifact)


def of_langchain(message: BaseMessage) -> Message:
    """The record of a message that `to_langchain` made; KeyError or TypeError for any other."""
    beside = message.response_metadata
    if "record" in beside:
        return Message.of(json.loads(beside["record"]))
    content, about = message.content, beside.get("about")
    if not isinstance(content, str):
        raise TypeError(f"message {message.id} holds {type(content).__name__}, no text")
    if isinstance(message, AIMessage):
        calls = tuple(ToolCall(str(c["id"]), c["name"], c["args"]) for c in message.tool_calls)
        return Message("assistant", content, beside["timestamp"], calls, about=about)
    if isinstance(message, ToolMessage):
        kept = message.artifact
        result = ToolResult(
            message.tool_call_id, kept["status"], kept.get("content", content), kept["duration"]
        )
        return Message("tool", content, beside["timestamp"], result=result, about=about)
    if not isinstance(message, SystemMessage | HumanMessage):
        raise TypeError(f"message {message.id} is a {type(message).__name__}, which no history holds")
    return Message(
        "system" if isinstance(message, SystemMessage) else "user", content, beside["timestamp"], about=about
    )


def _written(run: Run) -> str | None:
    if run.context is None:
        return None
    context, known = run.context, {message.timestamp: message for message in run.history}
    messages = [m.timestamp if known.get(m.timestamp) == m else m.json() for m in context.messages]
    return json.dumps(
        vars(context) | {"messages": messages, "dropped": [list(vars(d).values()) for d in context.dropped]}
    )


def _read(text: str | None, history: Sequence[Message]) -> Context | None:
    if text is None:
        return None
    data, known = json.loads(text), {message.timestamp: message for message in history}
    data["messages"] = tuple(known[m] if isinstance(m, int) else Message.of(m) for m in data["messages"])
    data["dropped"] = tuple(Dropped(*removal) for removal in data["dropped"])
    return Context(**data)


def _holds(value: Any) -> bool:
    """Whether a checkpoint gives the value back as it is: no lone surrogates, no integers beyond 64 bits."""
    if isinstance(value, str):
        return value.isascii() or value == clean(value)
    if isinstance(value, dict):
        return all(_holds(key) and _holds(inner) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return all(map(_holds, value))
    return not isinstance(value, int) or -LARGEST <= value < LARGEST


def _cleaned(message: Message) -> Message:
    """The message as it may be shown, with its calls' arguments as text."""
    calls = tuple(
        ToolCall(call.id, clean(call.name), {"json": json.dumps(dict(call.arguments))})
        for call in message.calls
    )
    return Message(message.role, clean(message.content), message.timestamp, calls, message.result)
