"""Counter: the step number beside another map's context; imports message.

With the time in the context no context recurs within a run: the stateless optimum is then a deterministic one.
Source: design of the formal core, section 3 (`Vo`).
"""

from __future__ import annotations

from dataclasses import dataclass

from harnesses.context.context_map import Branches, ContextMap, Memory, branches
from harnesses.context.message import Context, Event, Removal, note
from pomdp.model import ModelError


@dataclass(frozen=True)
class Counter:
    """A note of how many pairs came before, first in the context of `inner`; from `limit` >= 1 on it stays there.

    Counts the events that it is given: inside a pin, those not pinned. Memory: the count, and that of `inner`.
    """

    inner: ContextMap
    limit: int | None = None

    def __post_init__(self) -> None:
        """Refuse a limit that counts nothing."""
        if self.limit is not None and self.limit < 1:
            raise ModelError(f"counter needs a limit from 1, such as counter:5:last:2; got {self.limit}")

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"counter:{'' if self.limit is None else f'{self.limit}:'}{self.inner.name}"

    @property
    def bounded(self) -> bool:
        """Whether the count saturates and the wrapped map is bounded."""
        return self.inner.bounded and self.limit is not None

    def start(self) -> Memory:
        """0."""
        return 0, self.inner.start()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """Count on."""
        count, inner = memory
        following, gone = self.inner.step(inner, event)
        return (self._next(count), following), gone

    def branches(self, memory: Memory, event: Event) -> Branches:
        """The wrapped map's branches."""
        count, inner = memory
        return tuple(
            ((self._next(count), following), p) for following, p in branches(self.inner, inner, event)
        )

    def show(self, memory: Memory) -> Context:
        """The note `n=COUNT`, `n>=LIMIT` once it stays, then the wrapped map's context."""
        count, inner = memory
        context = self.inner.show(inner)
        sign = ">=" if count == self.limit else "="
        return Context((note(f"n{sign}{count}"), *context.messages), context.dropped)

    def _next(self, count: int) -> int:
        return count + 1 if self.limit is None else min(count + 1, self.limit)
