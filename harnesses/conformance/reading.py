"""Reading: names and sizes of a task's messages for the map, and what a rendered context says; imports the runtime.

Both directions between the runtime's messages and the words of the formal side, so that both print contexts alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harnesses.constructors.base import ERROR
from harnesses.constructors.limits import WARNING
from harnesses.context import Context, Sizes
from harnesses.context import Message as Item
from harnesses.context.message import REMOVED
from harnesses.context.oldest_first import CUT
from harnesses.runtime.assembly import ALONE, CUT_MARK, STUB, Reading
from harnesses.runtime.loop import CORRECTION
from harnesses.runtime.records import ToolCall, ToolResult

BROKEN = "{"  # arguments that do not parse
UNREAD = CORRECTION + "Your reply could not be read"


def intended(text: str) -> str:
    """The tool that a reply that does not parse names."""
    return text.partition(" ")[0]


@dataclass(frozen=True)
class TaskReading(Reading):
    """Names and sizes of a task; `names` are tool -> action. Head, schemas and a reply's own words cost nothing."""

    sizes: Sizes = field(default_factory=Sizes)
    names: Mapping[str, str] = field(default_factory=dict)

    def tokens(self, text: str) -> int:
        """The size of a correction; of any other text 0."""
        if text.startswith(UNREAD):
            return self._result(ERROR)[1]
        return self._result(WARNING)[1] if text.startswith(CORRECTION) else 0

    def call(self, call: ToolCall) -> tuple[str, int]:
        """Name and size of the action."""
        return self._call(call.name)

    def unparsed(self, content: str) -> tuple[str, int]:
        """Those of the action that was meant."""
        return self._call(intended(content))

    def result(self, result: ToolResult) -> tuple[str, int]:
        """Those of the observation, or of how the call failed."""
        return self._result(result.content if result.status == "ok" else result.status)

    def inserted(self, item: Item, shown: str) -> int:
        """The size that the map gave it; a mark in front of a message costs nothing."""
        return 0 if shown == ALONE else item.tokens

    def _call(self, name: str) -> tuple[str, int]:
        action = self.names.get(name, name)
        return action, self.sizes.event(action, ERROR).call.tokens

    def _result(self, name: str) -> tuple[str, int]:
        return name, self.sizes.event("", name).result.tokens


def read(messages: list[dict[str, Any]], names: Mapping[str, str]) -> str:
    """The text of the context that is rendered, `Context.text`, read from the messages alone."""
    items: list[Item] = []
    head = True
    for message in messages:
        role, content = message["role"], str(message["content"])
        if head and role in ("system", "user"):
            head = role != "user"  # the head ends with the request
            continue
        head = False
        if role == "assistant":
            items.extend(_called(message, content, names))
        elif role == "tool":
            items.append(_answered(content))
        elif content.startswith(UNREAD):
            items.append(Item("result", ERROR, 0))
        elif content.startswith(CORRECTION):
            items[-1] = items[-1]._replace(text=f"{items[-1].text}+{WARNING}")
        elif content.startswith(ALONE):
            first, *corrections = content.removeprefix(ALONE).split("\n")
            item = Item("result", ERROR, 0) if first.startswith(UNREAD) else _answered(first)
            items.append(item._replace(text="+".join([item.text, *[WARNING] * len(corrections)])))
        else:
            items.append(_noted(content, items))
    return Context(tuple(items)).text


def _called(message: dict[str, Any], content: str, names: Mapping[str, str]) -> list[Item]:
    calls = [call["function"]["name"] for call in message.get("tool_calls", ())]
    return [Item("call", names.get(name, name), 0) for name in calls or [intended(content)]]


def _answered(content: str) -> Item:
    if content == STUB or content.endswith(f"] {STUB}"):
        return Item("stub", REMOVED, 0)
    if content.startswith(CUT_MARK) or f"] {CUT_MARK}" in content:
        return Item("result", CUT, 0)
    for status in ("error", "timeout", "denied"):
        if content.startswith(f"[{status}] "):
            return Item("result", status, 0)
    return Item("result", content, 0)


def _noted(content: str, items: list[Item]) -> Item:
    """A note, or a stub for the answer to a reply that did not parse, which has no tool message."""
    if items and items[-1].role == "call":
        return _answered(content)
    return Item("note", content, 0)
