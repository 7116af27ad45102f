"""Parallel: copies of a run side by side, whose results the code combines; imports base.

What is drawn at the start (the request) is shared; everything after that each copy draws alone. Source: M14 §9
(parallelization: independent calls whose results are combined).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

from harnesses.constructors.base import ZERO, Base, count
from harnesses.kernel import Outcome
from pomdp.model import POMDP

BESIDE = "&"

Combine = Callable[[tuple[str, ...]], int]
"""From the names of the copies' states, to the place of the copy with which the run goes on."""


def side_by_side(model: POMDP, k: int, closing: str, combine: Combine) -> POMDP:
    """`k` copies of the model in lock step, until the action `closing` goes on with the one that `combine` takes.

    Each call is made in every copy, and each pays for it; the results are shown together, in the order of their
    names (`a&a&b`), because the code that combines them does not care whose they are. `combine` must be symmetric: it
    sees the states in that same order. Copies are exchangeable, so a state is a sorted tuple of states.
    Raises ModelError for k < 1.
    """
    copies, base = count(k, "side_by_side k"), Base(model)
    close = model.action_index(closing)

    def taken(state: tuple[int, ...]) -> int:
        return state[0] if len(state) == 1 else state[combine(tuple(model.states[s] for s in state))]

    def step(state: tuple[int, ...], a: int) -> Iterator[Outcome]:
        if len(state) == 1 or a == close:
            for t, o, p in base.kernel.step(taken(state), a):
                yield (t,), o, p
            return
        for reached, shown, p in _product([base.kernel.step(s, a) for s in state]):
            yield tuple(sorted(reached)), BESIDE.join(sorted(shown)), p

    def reward(state: tuple[int, ...], a: int) -> Fraction:
        if len(state) == 1 or a == close:
            return base.kernel.reward(taken(state), a)
        return sum((base.kernel.reward(s, a) for s in state), ZERO)

    return base.build(
        step,
        reward,
        start={(s,) * copies: p for s, p in base.kernel.start.items()},
        label=lambda state: BESIDE.join(model.states[s] for s in state),
        observations=(),
    )


def _product(
    rows: Sequence[Iterable[Outcome]],
) -> Iterator[tuple[tuple[int, ...], tuple[str, ...], Fraction]]:
    """Every combination of one outcome a copy, with its probability."""
    if not rows:
        yield (), (), Fraction(1)
        return
    later = list(_product(rows[1:]))
    for t, o, p in rows[0]:
        for reached, shown, q in later:
            yield (t, *reached), (o, *shown), p * q
