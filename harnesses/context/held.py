"""Held: the context of the last decision, kept while a plan of k steps is followed; imports context_map, message.

What a model chooses within a plan can depend on nothing but the context at its beginning and the steps made since, so
its choices are the plan. The plan is itself a memory: it outlasts what `inner` would have dropped meanwhile.
Source: M1 §1.6.5 (a plan kept by the harness).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from harnesses.context.context_map import Branches, ContextMap, Memory, branches
from harnesses.context.message import Context, Event, Removal, note, removed
from pomdp.model import ModelError

RULE = "held"


@dataclass(frozen=True)
class Held:
    """The context of `inner` as it was when the plan was made, and after it a note `plan+j` of the j steps since.

    A plan ends after k steps, or with an observation named in `reconsider`; `inner` is then given all its pairs, which
    until then are not shown. Memory: that of `inner` at the last decision, and the pairs since. k = 1 is `inner`
    beside the note.
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
        return self.inner.start(), ()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """One more step of the plan, or the next decision, at which `inner` removes what it has to."""
        decided, since = memory
        since = (*since, event)
        if not self._over(since):
            return (decided, since), ()
        gone: list[Removal] = []
        for pair in since:
            decided, removals = self.inner.step(decided, pair)
            gone.extend(removals)
        return (decided, ()), tuple(gone)

    def branches(self, memory: Memory, event: Event) -> Branches:
        """The branches of the wrapped map, over all pairs of the plan."""
        decided, since = memory
        since = (*since, event)
        if not self._over(since):
            return (((decided, since), Fraction(1)),)
        reached: Branches = ((decided, Fraction(1)),)
        for pair in since:
            reached = tuple((y, p * q) for x, p in reached for y, q in branches(self.inner, x, pair))
        return tuple(((y, ()), p) for y, p in reached)

    def show(self, memory: Memory) -> Context:
        """What `inner` showed at the last decision, and the place in the plan."""
        decided, since = memory
        context = self.inner.show(decided)
        hidden = removed([message for pair in since for message in pair], RULE, "truncation")
        return Context((*context.messages, note(f"plan+{len(since)}")), (*context.dropped, *hidden))

    def _over(self, since: tuple[Event, ...]) -> bool:
        """Whether a plan of which these pairs were made has come to its end."""
        return len(since) == self.k or since[-1].observation in self.reconsider
