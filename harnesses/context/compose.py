"""Compose: another map's context put through a memoryless function psi of contexts; imports message.

What psi hides is present in the context and lost to its form (formatting). Source: M1 §1.5.3; design of the
formal core, section 4, `garbling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harnesses.context.context_map import Branches, ContextMap, Memory, branches
from harnesses.context.message import Context, Event, Message, Removal, note, removed, stub
from pomdp.model import ModelError

Messages = tuple[Message, ...]


class Psi(Protocol):
    """A function of contexts. What it takes out of the history's messages it returns as removed."""

    @property
    def name(self) -> str:
        """Canonical text."""
        ...

    def apply(self, messages: Messages) -> tuple[Messages, Messages]:
        """The messages shown instead, and those calls and results that they no longer hold."""
        ...


@dataclass(frozen=True)
class Results:
    """Hides the calls: the model sees answers without what it asked."""

    name: str = field(default="results", init=False)

    def apply(self, messages: Messages) -> tuple[Messages, Messages]:
        """All but the calls."""
        return tuple(m for m in messages if m.role != "call"), tuple(m for m in messages if m.role == "call")


@dataclass(frozen=True)
class Calls:
    """Hides the results, and stubs in their place: the model sees what it asked without the answers."""

    name: str = field(default="calls", init=False)

    def apply(self, messages: Messages) -> tuple[Messages, Messages]:
        """Calls and notes."""
        kept = tuple(m for m in messages if m.role in ("call", "note"))
        return kept, tuple(m for m in messages if m.role == "result")


@dataclass(frozen=True)
class Unordered:
    """Forgets the order: pairs, and messages without their other half, are sorted by their text."""

    name: str = field(default="unordered", init=False)

    def apply(self, messages: Messages) -> tuple[Messages, Messages]:
        """The same messages; a call stays before its result."""
        units: list[Messages] = []
        for message in messages:
            if message.role in ("result", "stub") and units and units[-1][-1].role == "call":
                units[-1] = (*units[-1], message)
            else:
                units.append((message,))
        units.sort(key=lambda unit: [message[:3] for message in unit])
        return tuple(message for unit in units for message in unit), ()


@dataclass(frozen=True)
class Rename:
    """Shows some results by other names, `(old, new)` pairs; two results of one new name read alike."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> Rename:
        """From `old>new,old>new`."""
        pairs = [tuple(word.strip() for word in part.split(">")) for part in text.split(",")]
        if not all(len(pair) == 2 and all(pair) for pair in pairs):
            raise ModelError(f"rename cannot read {text!r}; write OLD>NEW,OLD>NEW, such as t2>t,t3>t")
        return cls(tuple((pair[0], pair[1]) for pair in pairs))

    @property
    def name(self) -> str:
        """Canonical text."""
        return "rename:" + ",".join(f"{old}>{new}" for old, new in self.pairs)

    def apply(self, messages: Messages) -> tuple[Messages, Messages]:
        """A stub with the new text stands in place of each renamed result: its size may tell nothing."""
        names = dict(self.pairs)
        changed = [m.role == "result" and m.text in names for m in messages]
        shown = (stub(m, names[m.text]) if c else m for m, c in zip(messages, changed))
        return tuple(shown), tuple(m for m, c in zip(messages, changed) if c)


@dataclass(frozen=True)
class Table:
    """Any function of contexts, for tests and for merged contexts: contexts in the table become one note each.

    `notes` is from a context to the note's text; other contexts stay. It has no text form that `parse_map` reads.
    """

    notes: Mapping[Context, str]
    name: str = "table"

    def apply(self, messages: Messages) -> tuple[Messages, Messages]:
        """The note, where there is one."""
        text = self.notes.get(Context(messages))
        if text is None:
            return messages, ()
        return (note(text),), tuple(m for m in messages if m.role in ("call", "result"))


@dataclass(frozen=True)
class Compose:
    """psi after phi: the memory is that of `inner`, the context is `psi` of its context."""

    psi: Psi
    inner: ContextMap

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"compose:{self.psi.name}:{self.inner.name}"

    @property
    def bounded(self) -> bool:
        """Whether the wrapped map is."""
        return self.inner.bounded

    def start(self) -> Memory:
        """The wrapped map's."""
        return self.inner.start()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """The wrapped map's."""
        return self.inner.step(memory, event)

    def branches(self, memory: Memory, event: Event) -> Branches:
        """The wrapped map's."""
        return branches(self.inner, memory, event)

    def show(self, memory: Memory) -> Context:
        """psi of the wrapped map's context."""
        context = self.inner.show(memory)
        shown, hidden = self.psi.apply(context.messages)
        rule = f"compose:{self.psi.name}"
        return Context(shown, (*context.dropped, *removed(hidden, rule, "formatting")))
