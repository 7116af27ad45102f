"""Format: records as the dicts that a chat model takes, the one replaceable function; imports records.

Source: M1 §1.2.4 (formatting).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from harnesses.runtime.records import Message

Formatter = Callable[[Sequence[Message]], list[dict[str, Any]]]


def chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Roles and tool calls as most providers' chat interfaces write them; a failed result says how it failed."""
    return [_one(message) for message in messages]


def _one(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        shown["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in message.calls
        ]
    result = message.result
    if result is not None:
        shown["tool_call_id"] = result.call_id
        shown["content"] = result.content if result.status == "ok" else f"[{result.status}] {result.content}"
    return shown
