"""A numbered map against the map itself: the same contexts, with the same probabilities, on every history."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from harnesses.context import Context, ContextMap, Event, NumberedMap, Sizes, branches, parse_map
from pomdp.library import task

FLIP = task("flip:2")
PAIRS = [("wait", "u1"), ("flip", "u1"), ("flip", "t2")]


def laws(phi: ContextMap, events: tuple[Event, ...]) -> dict[Context, Fraction]:
    """The distribution of the context after a history, by the map's own branches."""
    level = {phi.start(): Fraction(1)}
    for event in events:
        following: dict[object, Fraction] = {}
        for memory, p in level.items():
            for y, q in branches(phi, memory, event):
                following[y] = following.get(y, Fraction(0)) + p * q
        level = following
    found: dict[Context, Fraction] = {}
    for memory, p in level.items():
        found[phi.show(memory)] = found.get(phi.show(memory), Fraction(0)) + p
    return {context: p for context, p in found.items() if p}


@pytest.mark.parametrize(
    "name",
    [
        "full",
        "last:1",
        "null",
        "summary:parity",
        "summary:count:2:error=1/4",
        "compose:rename:t2>t,u1>t:full",
    ],
)
def test_the_numbered_map_shows_what_the_map_shows(name: str) -> None:
    sizes = Sizes.of_task(FLIP)
    phi = parse_map(name).bind(FLIP.model, 3, sizes)
    numbered = NumberedMap(phi, sizes)
    for length in range(4):
        for history in product(PAIRS, repeat=length):
            level = {0: Fraction(1)}
            for pair in history:
                following: dict[int, Fraction] = {}
                for x, p in level.items():
                    for y, q in numbered.step(x, *pair):
                        following[y] = following.get(y, Fraction(0)) + (p if q is None else p * q)
                level = following
            shown: dict[Context, Fraction] = {}
            for x, p in level.items():
                context = numbered.contexts[numbered.shown[x]]
                shown[context] = shown.get(context, Fraction(0)) + p
            assert shown == laws(phi, tuple(sizes.event(*pair) for pair in history))
    assert len(set(numbered.contexts)) == len(numbered.contexts) == len(numbered.first)
    assert all(numbered.shown.index(c) == x for c, x in enumerate(numbered.first))
    assert len(set(numbered.memories)) == len(numbered.memories)
