"""Context map: the protocol phi = (X, x0, delta, lam), its fold over a history; imports message.

The formal side tabulates a map over its reachable memories; the running harness folds the same object over its
history. Source: design of the formal core, section 2; M1 §1.2.4, §1.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Protocol

from harnesses.context.message import Context, Event, Removal
from pomdp.model import ModelError

Memory = Any  # hashable, and equal where a map treats two histories alike for ever
Branches = tuple[tuple[Memory, Fraction], ...]


class ContextMap(Protocol):
    """A finite transducer over histories, pure: memory x' = delta(x, event), context c = lam(x).

    A map may also have `branches(memory, event) -> Branches`, the distribution of a stochastic delta; its `step`
    is then the branch in which nothing goes wrong. Nothing depends on the ids of messages, set or not.
    """

    @property
    def name(self) -> str:
        """Canonical text, which `parse_map` reads back to the same map."""
        ...

    @property
    def bounded(self) -> bool:
        """Whether finitely many memories are reachable without a horizon."""
        ...

    def start(self) -> Memory:
        """x0, the memory of the empty history."""
        ...

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """delta: the next memory, and what this step removed for good."""
        ...

    def show(self, memory: Memory) -> Context:
        """lam: what the model sees; `dropped` is what the memory still holds but does not show now."""
        ...


def fold(phi: ContextMap, events: Iterable[Event]) -> Context:
    """The context after a history, `dropped` holding every removal from it until now.

    tokens(history) - tokens(context) = tokens dropped - tokens of the context's stubs and notes.
    """
    memory = phi.start()
    dropped: list[Removal] = []
    for event in events:
        memory, gone = phi.step(memory, event)
        dropped.extend(gone)
    context = phi.show(memory)
    return Context(context.messages, (*dropped, *context.dropped))


def branches(phi: ContextMap, memory: Memory, event: Event) -> Branches:
    """The distribution over next memories of any map: one of probability 1 where delta is deterministic."""
    stochastic = getattr(phi, "branches", None)
    if stochastic is not None:
        return stochastic(memory, event)
    return ((phi.step(memory, event)[0], Fraction(1)),)


def require_horizon(phi: ContextMap, horizon: int | None) -> None:
    """ModelError where the map has no end of memories and no horizon bounds them."""
    if horizon is None and not phi.bounded:
        raise ModelError(f"{phi.name} has infinitely many contexts without a horizon; give --horizon N")
