"""Held: the context of the last decision, kept while a plan of k steps is followed; imports context_map, message.

What a model chooses within a plan can depend on nothing but the context at its beginning and the steps made since, so
its choices are the plan. The plan is itself a memory: it outlasts what `inner` would have dropped meanwhile.
Source: M1 §1.6.5 (a plan kept by the harness).
"""

from __future__ import annotations

from dataclasses import dataclass

from harnesses.context.context_map import Branches, ContextMap, Memory, branches
from harnesses.context.message import Context, Event, Removal, note
from pomdp.model import ModelError


@dataclass(frozen=True)
class Held:
    """The context of `inner` as it was when the plan was made, and after it a note `plan+j` of the j steps since.

    A plan ends after k steps, or with an observation named in `reconsider`. Memory: j, the memory of `inner` at the
    last decision, and its memory now. k = 1 is `inner` beside the note.
    """

    k: int
    inner: ContextMap
    reconsider: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a plan of no steps."""
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 1:
            raise ModelError(f"held needs a number of steps from 1, such as held:3:last:2; got {self.k!r}")

    @property
    def name(self) -> str:
        """Canonical text."""
        named = ",".join(self.reconsider)
        return f"held:{self.k}{'|' if named else ''}{named}:{self.inner.name}"

    @property
    def bounded(self) -> bool:
        """Whether the wrapped map is."""
        return self.inner.bounded

    def start(self) -> Memory:
        """A decision at the start."""
        first = self.inner.start()
        return 0, first, first

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """One more step of the plan, or the next decision."""
        following, gone = self.inner.step(memory[2], event)
        return self._next(memory, following, event), gone

    def branches(self, memory: Memory, event: Event) -> Branches:
        """The wrapped map's branches."""
        return tuple((self._next(memory, now, event), p) for now, p in branches(self.inner, memory[2], event))

    def show(self, memory: Memory) -> Context:
        """What `inner` showed at the last decision, and the place in the plan."""
        made, held, _ = memory
        context = self.inner.show(held)
        return Context((*context.messages, note(f"plan+{made}")), context.dropped)

    def _next(self, memory: Memory, now: Memory, event: Event) -> Memory:
        made, held, _ = memory
        over = made + 1 == self.k or event.observation in self.reconsider
        return (0, now, now) if over else (made + 1, held, now)
