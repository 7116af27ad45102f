"""Oracles that several tests of harnesses share, as fixtures: exact, by enumeration, apart from the code tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from pomdp.model import POMDP

Pairs = tuple[tuple[str, str], ...]
Belief = dict[int, Fraction]


def all_histories(model: POMDP, length: int) -> Iterator[tuple[Pairs, Belief]]:
    """Every history of positive probability of 0 to `length` pairs, by names, with its exact belief."""
    T = [[m.row(s) for s in range(model.num_states)] for m in model.exact.T]
    Z = [[m.row(s) for s in range(model.num_states)] for m in model.exact.Z]
    level: list[tuple[Pairs, Belief]] = [((), dict(sorted(model.exact.start.items())))]
    yield from level
    for _ in range(length):
        following = []
        for pairs, belief in level:
            for a, action in enumerate(model.actions):
                measures: dict[int, Belief] = {}
                for s, p in belief.items():
                    for t, q in T[a][s].items():
                        for o, z in Z[a][t].items():
                            measure = measures.setdefault(o, {})
                            measure[t] = measure.get(t, Fraction(0)) + p * q * z
                for o, measure in sorted(measures.items()):
                    total = sum(measure.values())
                    after = {t: measure[t] / total for t in sorted(measure)}
                    following.append(((*pairs, (action, model.observations[o])), after))
        yield from following
        level = following


@pytest.fixture(scope="session")
def enumerate_histories() -> Callable[[POMDP, int], Iterator[tuple[Pairs, Belief]]]:
    """`enumerate_histories(model, length)`: (pairs of names, belief {state: Fraction}), shorter ones first."""
    return all_histories
