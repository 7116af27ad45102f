"""Message: what a history is made of and a context shows, with sizes and removals; imports pomdp.library.

A history is a sequence of events, an event a call and its result. A context is a list of messages: those of the
history that a map keeps, stubs in place of some that it removed, and notes of its own. Sizes are in tokens.
Source: M1 §1.2.1 (records), §1.2.4 (context management).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pomdp.library import Task
from pomdp.model import ModelError

Role = Literal["call", "result", "stub", "note"]
Kind = Literal["truncation", "summarisation", "formatting"]

DEFAULT_TOKENS = 20  # of a call or result whose size nobody gave
STUB_TOKENS = 4  # of what stands in place of a removed message
NOTE_TOKENS = 4  # of each entry of a note
REMOVED = "~"  # the text of a stub that says only that something was here
# Names of a model file have at most 200 characters, and a state's name holds a context's beside its own.
LONGEST_TEXT = 120
_UNUSABLE = re.compile(r"[\s:*#]+")  # what no name of a model file may contain


# Tuples, not dataclasses: millions of them are hashed when a map is tabulated.
class Message(NamedTuple):
    """One item of a history or context: `tokens` >= 0; `id` is the running harness's, None on the formal side.

    Calls and results come from the history. A stub stands in place of a message and carries its id; a note is
    the map's own.
    """

    role: Role
    text: str
    tokens: int
    id: Hashable = None


class Event(NamedTuple):
    """An action and the observation it led to, as messages."""

    call: Message
    result: Message

    @property
    def action(self) -> str:
        """Name of the action."""
        return self.call.text

    @property
    def observation(self) -> str:
        """Name of the observation."""
        return self.result.text


class Removal(NamedTuple):
    """That `tokens` of a message were taken out of the context, all of them or a part, and by which rule."""

    message: Message
    tokens: int
    rule: str
    kind: Kind


@dataclass(frozen=True)
class Context:
    """What the model sees, and beside it what was removed; equal where the messages are. Source: M1 §1.2.1."""

    messages: tuple[Message, ...]
    dropped: tuple[Removal, ...] = field(default=(), compare=False)

    @property
    def tokens(self) -> int:
        """The size of all messages, stubs and notes included."""
        return sum(message.tokens for message in self.messages)

    @property
    def text(self) -> str:
        """A short name such as `flip=t2;wait=t3`, fit for model files; `-` where empty.

        A call whose result is not shown reads `flip=`, a result without its call `=t2`. Long texts end in a
        digest; contexts that differ in sizes or ids alone read alike.
        """
        words: list[str] = []
        open_call = False
        for message in self.messages:
            if message.role in ("result", "stub"):
                if open_call:
                    words[-1] += message.text
                else:
                    words.append(f"={message.text}")
            else:
                words.append(f"{message.text}=" if message.role == "call" else message.text)
            open_call = message.role == "call"
        text = _UNUSABLE.sub("_", ";".join(words)) or "-"
        if len(text) <= LONGEST_TEXT:
            return text
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        return f"{text[: LONGEST_TEXT - 12]}..{digest}"


def removed(messages: Iterable[Message], rule: str, kind: Kind) -> tuple[Removal, ...]:
    """Whole messages taken out."""
    return tuple(Removal(message, message.tokens, rule, kind) for message in messages)


def stub(message: Message, text: str = REMOVED) -> Message:
    """What stands in place of a removed message."""
    return Message("stub", text, STUB_TOKENS, message.id)


def note(text: str, entries: int = 1) -> Message:
    """A message of the map's own, sized by its entries."""
    return Message("note", text, NOTE_TOKENS * max(1, entries))


def total_tokens(events: Iterable[Event]) -> int:
    """The size of a history."""
    return sum(event.call.tokens + event.result.tokens for event in events)


@dataclass(frozen=True)
class Sizes:
    """Tokens of calls and results by name; a name `a+b` that has none of its own has those of its parts.

    `default` is the size of any other name. Raises ModelError for a negative size.
    """

    calls: Mapping[str, int] = field(default_factory=dict)
    results: Mapping[str, int] = field(default_factory=dict)
    default: int = DEFAULT_TOKENS

    def __post_init__(self) -> None:
        """Refuse sizes that are no counts."""
        for name, tokens in [*self.calls.items(), *self.results.items(), ("default", self.default)]:
            if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
                raise ModelError(
                    f"the size of {name} is {tokens!r}; give a whole number of tokens, such as 20"
                )

    @classmethod
    def of_task(cls, task: Task) -> Sizes:
        """The sizes that a library task states."""
        model = task.model
        calls = dict(zip(model.actions, task.call_tokens, strict=True))
        return cls(calls, dict(zip(model.observations, task.result_tokens, strict=True)))

    def event(self, action: str, observation: str) -> Event:
        """The event of the formal side: messages without ids."""
        return Event(
            Message("call", action, self._size(self.calls, action)),
            Message("result", observation, self._size(self.results, observation)),
        )

    def _size(self, known: Mapping[str, int], name: str) -> int:
        size = known.get(name)
        if size is None:
            parts = name.split("+")
            size = sum(known.get(part, self.default) for part in parts) if len(parts) > 1 else self.default
        return size
