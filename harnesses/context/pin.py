"""Pin: pairs that match a pattern are kept for ever, whatever the wrapped map does; imports pattern.

The remedy for a decisive fact that scrolls out of a window. Source: M1 §1.5.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from harnesses.context.context_map import Branches, ContextMap, Memory, branches
from harnesses.context.message import Context, Event, Removal
from harnesses.context.pattern import Pattern


@dataclass(frozen=True)
class Pin:
    """Pairs that match one of `patterns` are shown first, in order, and are not given to `inner`.

    `recurring` says whether matching pairs may be made without end; the memory is unbounded then. Memory: the
    pinned events, and that of `inner`.
    """

    patterns: tuple[Pattern, ...]
    inner: ContextMap
    recurring: bool = True

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"pin:{','.join(pattern.text for pattern in self.patterns)}:{self.inner.name}"

    @property
    def bounded(self) -> bool:
        """Whether both the pins and the wrapped map come to an end of memories."""
        return self.inner.bounded and not self.recurring

    def start(self) -> Memory:
        """Nothing pinned."""
        return (), self.inner.start()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """Pin the event or hand it on."""
        pinned, inner = memory
        if self._matches(event):
            return ((*pinned, event), inner), ()
        following, gone = self.inner.step(inner, event)
        return (pinned, following), gone

    def branches(self, memory: Memory, event: Event) -> Branches:
        """The wrapped map's branches."""
        pinned, inner = memory
        if self._matches(event):
            return ((((*pinned, event), inner), Fraction(1)),)
        return tuple(((pinned, following), p) for following, p in branches(self.inner, inner, event))

    def show(self, memory: Memory) -> Context:
        """The pins, then the wrapped map's context."""
        pinned, inner = memory
        context = self.inner.show(inner)
        first = (message for event in pinned for message in event)
        return Context((*first, *context.messages), context.dropped)

    def _matches(self, event: Event) -> bool:
        return any(pattern.matches(event) for pattern in self.patterns)
