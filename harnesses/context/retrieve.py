"""Retrieve: pairs stored when they happen and shown again when a later call asks for them; imports pattern.

Just-in-time loading, the remedy for truncation. Source: M1 §1.5.3; design of the formal core, section 2.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from harnesses.context.context_map import Branches, ContextMap, Memory, branches
from harnesses.context.message import Context, Event, Message, Removal, removed
from harnesses.context.pattern import Pattern
from pomdp.model import ModelError


@dataclass(frozen=True)
class Register:
    """Pairs that match `stored` are shown again whenever the newest pair matches `trigger`."""

    trigger: Pattern
    stored: Pattern

    @classmethod
    def parse(cls, text: str) -> Register:
        """From `trigger>stored`."""
        trigger, arrow, stored = text.partition(">")
        if not arrow:
            raise ModelError(
                f"the register {text!r} lacks '>'; write TRIGGER>STORED, such as read/*>flip/t2: "
                "when a read comes, show the flip again"
            )
        return cls(Pattern.parse(trigger), Pattern.parse(stored))

    @property
    def text(self) -> str:
        """Canonical text."""
        return f"{self.trigger.text}>{self.stored.text}"


class _Mark(NamedTuple):
    """The id under which the wrapped map sees a message: its own id, and its pair where a register stores it."""

    id: Hashable
    stored: Event | None


class _Entry(NamedTuple):
    """A stored pair, and which of its messages the wrapped map has removed: only those can be shown again."""

    event: Event
    gone: tuple[bool, bool] = (False, False)

    def missing(self) -> tuple[Message, ...]:
        """The messages that the wrapped map no longer has."""
        return tuple(message for message, gone in zip(self.event, self.gone) if gone)


@dataclass(frozen=True)
class Retrieve:
    """All pairs go to `inner`; what it removes of a stored pair comes first in the context when it is recalled.

    At other times that counts as dropped (truncation), though the memory holds it. A result of which a part was
    cut is lost to its register. `recurring` says whether stored pairs may be made without end; the memory is
    unbounded then. Memory: the stored pairs, which registers the newest pair triggers, and that of `inner`.
    A stochastic `inner` must remove the same messages in every branch.
    """

    registers: tuple[Register, ...]
    inner: ContextMap
    recurring: bool = True

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"retrieve:{','.join(register.text for register in self.registers)}:{self.inner.name}"

    @property
    def bounded(self) -> bool:
        """Whether both the stored pairs and the wrapped map come to an end of memories."""
        return self.inner.bounded and not self.recurring

    def start(self) -> Memory:
        """Nothing stored, nothing triggered."""
        return (), (False,) * len(self.registers), self.inner.start()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """Store the pair where a register says so; keep back what the wrapped map removes of stored pairs."""
        entries, _, inner = memory
        stored = self._stores(event)
        if stored:
            entries = (*entries, _Entry(event))
        following, gone = self.inner.step(inner, _marked(event, stored))
        entries, lost = self._keep_back(entries, gone)
        return (entries, self._triggered(event), following), lost

    def branches(self, memory: Memory, event: Event) -> Branches:
        """The wrapped map's branches."""
        (entries, triggered, _), _ = self.step(memory, event)
        given = _marked(event, self._stores(event))
        return tuple(
            ((entries, triggered, following), p) for following, p in branches(self.inner, memory[2], given)
        )

    def show(self, memory: Memory) -> Context:
        """What is recalled, then the wrapped map's context."""
        entries, triggered, inner = memory
        context = self.inner.show(inner)
        recalled: list[Message] = []
        absent: list[Message] = []
        for entry in entries:
            wanted = any(
                on and register.stored.matches(entry.event) for on, register in zip(triggered, self.registers)
            )
            (recalled if wanted else absent).extend(entry.missing())
        dropped = (_unmarked_removal(removal) for removal in context.dropped)
        return Context(
            (*recalled, *map(_unmarked, context.messages)),
            (*dropped, *removed(absent, self.name, "truncation")),
        )

    def _stores(self, event: Event) -> bool:
        return any(register.stored.matches(event) for register in self.registers)

    def _triggered(self, event: Event) -> tuple[bool, ...]:
        return tuple(register.trigger.matches(event) for register in self.registers)

    def _keep_back(
        self, entries: tuple[_Entry, ...], gone: Iterable[Removal]
    ) -> tuple[tuple[_Entry, ...], tuple[Removal, ...]]:
        """The entries after the wrapped map's removals, and those removals that are for good."""
        kept, lost = list(entries), []
        for removal in gone:
            message = removal.message
            place = _holder(kept, message)
            if place is None:
                lost.append(_unmarked_removal(removal))
            elif removal.tokens < message.tokens:
                lost.append(_unmarked_removal(removal))
                del kept[place]
            else:
                event, (call, result) = kept[place]
                now = (True, result) if message.role == "call" else (call, True)
                kept[place] = _Entry(event, now)
        return tuple(kept), tuple(lost)


def _holder(entries: Iterable[_Entry], message: Message) -> int | None:
    """The entry whose message this is, of equal ones the oldest: every map removes equal pairs oldest first."""
    event = message.id.stored if isinstance(message.id, _Mark) else None
    part = 0 if message.role == "call" else 1
    if event is None or _unmarked(message) != event[part]:  # a result already cut is no longer the event's
        return None
    return next(
        (place for place, entry in enumerate(entries) if entry.event == event and not entry.gone[part]), None
    )


def _marked(event: Event, stored: bool) -> Event:
    """The event as the wrapped map sees it."""
    pair = event if stored else None
    call, result = event
    return Event(call._replace(id=_Mark(call.id, pair)), result._replace(id=_Mark(result.id, pair)))


def _unmarked(message: Message) -> Message:
    """The message with its own id; a note has no mark."""
    return message._replace(id=message.id.id) if isinstance(message.id, _Mark) else message


def _unmarked_removal(removal: Removal) -> Removal:
    """The removal of a message with its own id."""
    return removal._replace(message=_unmarked(removal.message))
