"""Transcript: what the message list of a run says, as functions of it: calls, results, passages, the record found.

Imports toolbox and state. The list is in the usual chat format, as plain dictionaries; a tool message also carries
the tool's `name` and the `status` of its result. Nothing here trusts a text of the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harnesses.desk.state import Message
from harnesses.desk.toolbox import GET_REGISTRATION, NO_PASSAGE, RETRIEVE
from harnesses.runtime.models import Reply
from harnesses.runtime.records import ToolResult

LIMIT = 3
"""Repetitions that count as no progress, this project's choice; M14 §7 names the condition without a number."""
SEARCHES = 2
"""Searches without a passage after which a case counts as one that the policy does not cover."""


def said(reply: Reply, first: int) -> Message:
    """A reply as a message; its calls get the ids from c`first` on, their arguments stay the text that was written."""
    message: Message = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"c{first + place}",
                "type": "function",
                "function": {"name": raw.name, "arguments": raw.arguments},
            }
            for place, raw in enumerate(reply.calls)
        ]
    return message


def resulted(name: str, result: ToolResult) -> Message:
    """A result as a message."""
    return {
        "role": "tool",
        "tool_call_id": result.call_id,
        "name": name,
        "status": result.status,
        "content": result.content,
    }


def calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message: `id`, `name`, and `arguments` as text."""
    return [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())]


def all_calls(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The calls of all messages, in order."""
    return [call for message in messages for call in calls(message)]


def results(messages: Sequence[Message]) -> list[Message]:
    """The tool messages, in order."""
    return [message for message in messages if message["role"] == "tool"]


def open_calls(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Calls without a result: what a run leaves that was stopped, or whose email went to staff."""
    answered = {message["tool_call_id"] for message in results(messages)}
    return [call for call in all_calls(messages) if call["id"] not in answered]


def closing(messages: Sequence[Message]) -> list[Message]:
    """A result for each open call, so that call and result are paired before the thread goes on."""
    text = "Stop: the run ended before this call was carried out; nothing came of it."
    return [
        resulted(call["name"], ToolResult(call["id"], "error", text, 0.0)) for call in open_calls(messages)
    ]


def this_request(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages from the newest request on; earlier ones of the thread are memory."""
    starts = [place for place, message in enumerate(messages) if message["role"] == "user"]
    return messages[starts[-1] :] if starts else messages


def passages(messages: Sequence[Message]) -> list[str]:
    """The passages that this request's searches gave, each once, in order."""
    found = [
        line
        for message in results(this_request(messages))
        if message["name"] == RETRIEVE and message["status"] == "ok" and message["content"] != NO_PASSAGE
        for line in message["content"].splitlines()
    ]
    return list(dict.fromkeys(found))


def record(case: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any] | None:
    """The participant's registration: what the newest lookup of this request found, else what intake found, or None.

    A lookup that failed says nothing. One that worked and found nobody does: the booking has gone meanwhile.
    """
    for message in reversed(results(this_request(messages))):
        if message["name"] == GET_REGISTRATION and message["status"] == "ok":
            return _record(message["content"])
    return case.get("registration")


def no_progress(messages: Sequence[Message]) -> str | None:
    """Why this request does not get on: one call made three times running, or one tool failing three times running.

    A result that says Retry counts as a failure too: the tool has been tried again by then.
    """
    of_request = this_request(messages)
    made = [(call["name"], call["arguments"]) for call in all_calls(of_request)][-LIMIT:]
    if len(made) == LIMIT and len(set(made)) == 1:
        return f"{made[0][0]} was called {LIMIT} times with the same arguments"
    last = results(of_request)[-LIMIT:]
    if len(last) == LIMIT and len({m["name"] for m in last}) == 1 and all(m["status"] != "ok" for m in last):
        return f"{last[0]['name']} failed {LIMIT} times"
    return None


def policy_gap(messages: Sequence[Message]) -> str | None:
    """Why the documents say nothing of this request: its searches worked and found no passage, twice and never one."""
    searched = [m for m in results(this_request(messages)) if m["name"] == RETRIEVE and m["status"] == "ok"]
    if len(searched) >= SEARCHES and all(m["content"] == NO_PASSAGE for m in searched):
        return f"{len(searched)} searches found nothing in the policy and event documents"
    return None


def _record(text: str) -> dict[str, Any] | None:
    """The record that a result shows; None for the sentence that there is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("email"), str) else None
