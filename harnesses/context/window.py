"""Window: the newest pairs or messages, all of them, or none; imports message.

What leaves a window is lost by its age alone (truncation). Source: M1 §1.5.2, §1.5.3; M1 §1.4.6 for messages.
"""

from __future__ import annotations

from dataclasses import dataclass

from harnesses.context.context_map import Memory
from harnesses.context.message import Context, Event, Removal, removed
from pomdp.model import ModelError


@dataclass(frozen=True)
class Last:
    """The last `k` >= 0 pairs of call and result; memory: those events, oldest first."""

    k: int

    def __post_init__(self) -> None:
        """Refuse a negative window."""
        _require_count(self.k, "last", "pairs", 0)

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"last:{self.k}"

    @property
    def bounded(self) -> bool:
        """Always."""
        return True

    def start(self) -> Memory:
        """No event."""
        return ()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """The oldest pair leaves a full window."""
        return _slide((*memory, event), self.k, self.name)

    def show(self, memory: Memory) -> Context:
        """The pairs in the order in which they happened."""
        return Context(tuple(message for event in memory for message in event))


@dataclass(frozen=True)
class Full:
    """The whole history of up to `horizon` >= 1 pairs; in a longer one the oldest go."""

    horizon: int

    def __post_init__(self) -> None:
        """Refuse an empty history."""
        _require_count(self.horizon, "full", "pairs", 1)

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"full:{self.horizon}"

    @property
    def bounded(self) -> bool:
        """Always."""
        return True

    def start(self) -> Memory:
        """No event."""
        return ()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """Nothing is removed within the horizon."""
        return _slide((*memory, event), self.horizon, self.name)

    def show(self, memory: Memory) -> Context:
        """The pairs in the order in which they happened."""
        return Context(tuple(message for event in memory for message in event))


@dataclass(frozen=True)
class LastMessages:
    """The last `k` >= 0 messages, a pair being two: an odd k shows a result without its call. Source: M1 §1.4.6."""

    k: int

    def __post_init__(self) -> None:
        """Refuse a negative window."""
        _require_count(self.k, "last_messages", "messages", 0)

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"last_messages:{self.k}"

    @property
    def bounded(self) -> bool:
        """Always."""
        return True

    def start(self) -> Memory:
        """No message."""
        return ()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """The oldest messages leave a full window."""
        messages = (*memory, *event)
        leaving = max(0, len(messages) - self.k)
        return messages[leaving:], removed(messages[:leaving], self.name, "truncation")

    def show(self, memory: Memory) -> Context:
        """The messages in the order in which they were written."""
        return Context(memory)


@dataclass(frozen=True)
class Null:
    """The blind map: it shows nothing and remembers nothing."""

    @property
    def name(self) -> str:
        """Canonical text."""
        return "null"

    @property
    def bounded(self) -> bool:
        """Always."""
        return True

    def start(self) -> Memory:
        """The one memory."""
        return ()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """Both messages are removed."""
        return memory, removed(event, self.name, "truncation")

    def show(self, memory: Memory) -> Context:
        """The empty context."""
        return Context(())


def _slide(events: tuple[Event, ...], k: int, rule: str) -> tuple[Memory, tuple[Removal, ...]]:
    """The newest k events, and the removal of the others."""
    leaving = max(0, len(events) - k)
    gone = (message for event in events[:leaving] for message in event)
    return events[leaving:], removed(gone, rule, "truncation")


def _require_count(value: int, name: str, what: str, lowest: int) -> None:
    """ModelError unless the value is a whole number from `lowest` on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise ModelError(
            f"{name} needs a number of {what}, a whole number from {lowest}, such as {name}:2; got {value!r}"
        )
