"""Compaction: views of a thread's messages for the agent node, and what each leaves out; imports transcript.

A view is what the model is shown; the state keeps every message, so nothing is ever lost, and a removal is written down
with its tokens and rule. The facts of the case stand in the system message, which is made anew for every call from the
typed case and passes through no view. The newest request is always shown whole, calls with their results, so that no
result stands without its call. Source: M14 §9 (compact or isolate), stretch C.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harnesses.desk.state import Message
from harnesses.desk.transcript import all_calls, results

CHARACTERS = 4
"""Characters that count as one token where no model's own count is at hand."""

Summarise = Callable[[Sequence[Message]], str]
"""What tells a part of a thread in fewer words. It may fail: then nothing is left out."""


@dataclass(frozen=True)
class Removal:
    """A message left out or cut down: its place in the thread, about how many tokens went, by which rule."""

    place: int
    tokens: int
    rule: str


class Compaction(Protocol):
    """A view that says what it leaves out."""

    def __call__(self, messages: Sequence[Message]) -> list[Message]:
        """What the model is shown."""
        ...

    def removals(self, messages: Sequence[Message]) -> list[Removal]:
        """What it is not shown."""
        ...


@dataclass(frozen=True)
class Requests:
    """The newest `count` requests whole, each with all that followed it. Raises ValueError below 1."""

    count: int

    def __post_init__(self) -> None:
        """Refuse to drop the request in hand."""
        if self.count < 1:
            raise ValueError(f"requests {self.count}; keep 1 or more, the newest is the one in hand")

    def __call__(self, messages: Sequence[Message]) -> list[Message]:
        """From the oldest request that is kept on."""
        return list(messages[self._start(messages) :])

    def removals(self, messages: Sequence[Message]) -> list[Removal]:
        """Everything before it."""
        rule = f"requests:{self.count}"
        return [Removal(i, tokens(m), rule) for i, m in enumerate(messages[: self._start(messages)])]

    def _start(self, messages: Sequence[Message]) -> int:
        starts = [place for place, message in enumerate(messages) if message["role"] == "user"]
        return starts[-self.count] if len(starts) >= self.count else 0


@dataclass(frozen=True)
class Stubs:
    """Results of tools before the newest request become one line each; their calls stay, and keep their results."""

    def __call__(self, messages: Sequence[Message]) -> list[Message]:
        """The messages, old results cut down."""
        last = newest(messages)
        return [
            {**message, "content": stub(message)} if place < last and _long(message) else message
            for place, message in enumerate(messages)
        ]

    def removals(self, messages: Sequence[Message]) -> list[Removal]:
        """What was cut from each."""
        last = newest(messages)
        return [
            Removal(place, tokens(message) - tokens({**message, "content": stub(message)}), "stubs")
            for place, message in enumerate(messages)
            if place < last and _long(message)
        ]


@dataclass(frozen=True)
class Summary:
    """Everything before the newest request becomes one message, told by `summarise`, with the decisions as they were.

    A summariser that raises or gives no words leaves all as it is.
    """

    summarise: Summarise

    def __call__(self, messages: Sequence[Message]) -> list[Message]:
        """The summary, then the newest request."""
        last, told = newest(messages), self._told(messages)
        return list(messages) if told is None else [told, *messages[last:]]

    def removals(self, messages: Sequence[Message]) -> list[Removal]:
        """All that the summary stands for."""
        if self._told(messages) is None:
            return []
        return [Removal(i, tokens(m), "summary") for i, m in enumerate(messages[: newest(messages)])]

    def _told(self, messages: Sequence[Message]) -> Message | None:
        old = messages[: newest(messages)]
        if not old:
            return None
        try:
            text = self.summarise(old)
        except Exception:  # whatever a summariser raises, its thread stays whole
            return None
        if not isinstance(text, str) or not text.strip():
            return None
        return {"role": "user", "content": f"[Summary of earlier requests] {text.strip()}\n{decisions(old)}"}


def told_by_code(messages: Sequence[Message]) -> str:
    """A summary without a model: who asked what, and how each request was answered."""
    parts = []
    for place, message in enumerate(messages):
        if message["role"] == "user":
            parts.append(f"Asked: {message['content']}")
        elif message["role"] == "assistant" and not message.get("tool_calls"):
            parts.append(f"Answered: {message['content']}")
        elif place == len(messages) - 1:
            parts.append("The last request was not answered.")
    return " ".join(" ".join(part.split()) for part in parts)


def decisions(messages: Sequence[Message]) -> str:
    """What was done, exactly: each email with its arguments and what came of it. Never left to a summariser."""
    came = {message["tool_call_id"]: message for message in results(messages)}
    lines = []
    for call in all_calls(messages):
        result = came.get(call["id"])
        if call["name"] == "send_email":
            status = "no result" if result is None else f"{result['status']}: {result['content']}"
            lines.append(f"- {call['id']} send_email {call['arguments']} -> {status}")
    return "\n".join(["Emails asked for before:", *lines]) if lines else "No email was asked for before."


def newest(messages: Sequence[Message]) -> int:
    """The place of the newest request, 0 where there is none."""
    return max((place for place, message in enumerate(messages) if message["role"] == "user"), default=0)


def stub(message: Message) -> str:
    """The line that stands for a result."""
    return f"[{message['name']} {message['status']}: {tokens(message)} tokens left out]"


def tokens(message: Any) -> int:
    """About how many tokens a message is, of its content and calls."""
    text = str(message["content"]) + json.dumps(message.get("tool_calls", ""))
    return max(1, -(-len(text) // CHARACTERS))


def _long(message: Message) -> bool:
    """Whether a message is a result that a stub would shorten."""
    return message["role"] == "tool" and len(str(message["content"])) > len(stub(message))
