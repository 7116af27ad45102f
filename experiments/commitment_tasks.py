"""The tasks of the study commitment, each with a rate at which its hidden part changes; imports pomdp, the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np

from experiments.study import StudyError
from pomdp.library import task as library_task
from pomdp.model import POMDP

Moves = Mapping[str, str | Mapping[str, Fraction]]
"""Where a change takes a state, surely or at random; a state that is not named stays."""
RANDOM_SEEDS = (1, 2, 3)
SIDES = ("left", "right")


def changing(model: POMDP, rate: Fraction, moves: Moves) -> POMDP:
    """The model whose state, after each step and before it is observed, moves by `moves` with probability `rate`.

    StudyError for a rate outside [0, 1].
    """
    if not 0 <= rate <= 1:
        raise StudyError(f"the rate of change {rate} is no probability; give one such as 1/10")
    place = {name: s for s, name in enumerate(model.states)}
    after: list[dict[int, Fraction]] = []
    for s, name in enumerate(model.states):
        to = moves.get(name, name)
        row = {to: Fraction(1)} if isinstance(to, str) else to
        moved = {s: 1 - rate}
        for target, p in row.items():
            moved[place[target]] = moved.get(place[target], Fraction(0)) + rate * p
        after.append(moved)
    return POMDP.build(
        states=model.states,
        actions=model.actions,
        observations=model.observations,
        T=[[_through(row, after) for row in matrix.rows()] for matrix in model.exact.T],
        Z=model.exact.Z,
        R=model.exact.R,
        start=model.exact.start,
        discount=model.exact.discount,
        name=f"{model.name} changing at {rate}",
    )


def task(name: str, rate: Fraction) -> POMDP:
    """The task of that name, changing at that rate; StudyError for a name that is none of `NAMES`."""
    if name not in NAMES:
        raise StudyError(f"no task {name!r} in this study; known: {', '.join(NAMES)}")
    model, moves = _still(name)
    return changing(model, rate, moves)


@lru_cache(maxsize=32)
def _still(name: str) -> tuple[POMDP, Moves]:
    if name in ("follow", *RANDOM):
        model = follow() if name == "follow" else random_model(RANDOM[name])
        if name != "follow":
            anywhere = {state: Fraction(1, model.num_states) for state in model.states}
            return model, dict.fromkeys(model.states, anywhere)
        return model, _swapped(model, *SIDES)
    model = library_task(name).model
    return model, _MOVES[name.partition(":")[0]](model)


def _through(row: Mapping[int, Fraction], after: list[dict[int, Fraction]]) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for s, p in row.items():
        for t, q in after[s].items():
            found[t] = found.get(t, Fraction(0)) + p * q
    return found


def follow() -> POMDP:
    """A target, first on the left, seen after every step with accuracy 9/10; naming its side pays 1."""
    sharp = {side: {s: Fraction(9 if s == side else 1, 10) for s in SIDES} for side in SIDES}
    seen = [[sharp[side][s] for s in SIDES] for side in SIDES]
    return POMDP.build(
        states=SIDES,
        actions=[f"say-{side}" for side in SIDES],
        observations=[f"see-{side}" for side in SIDES],
        T=[[[1, 0], [0, 1]]] * 2,
        Z=[seen] * 2,
        R=[[1, 0], [0, 1]],
        start="left",
        name="follow",
    )


def random_model(seed: int) -> POMDP:
    """Three states, actions and observations: each (state, action) leads to one state, seen right 8 times of 10.

    In each state an action of its own pays 1 and the others 0, 1/4 or 1/2, drawn at random. The run begins in state 0,
    so that a still world is known for ever.
    """
    draw = np.random.Generator(np.random.Philox(seed))
    S = A = O = 3
    to = draw.integers(S, size=(A, S))
    seen = [[Fraction(8 if o == s else 1, 10) for o in range(O)] for s in range(S)]
    rewards = [[Fraction(int(r), 4) for r in row] for row in draw.integers(3, size=(A, S))]
    for s, a in enumerate(draw.permutation(A)):
        rewards[a][s] = Fraction(1)
    return POMDP.build(
        states=S,
        actions=[f"act-{a}" for a in range(A)],
        observations=O,
        T=[[{int(t): Fraction(1)} for t in row] for row in to],
        Z=[seen] * A,
        R=rewards,
        start={0: Fraction(1)},
        name=f"random-{seed}",
    )


def _swapped(model: POMDP, first: str, second: str) -> Moves:
    """Each state and the one whose name has the other word."""
    found = {}
    for name in model.states:
        other = name.replace(first, "\0").replace(second, first).replace("\0", second)
        if other in model.states:
            found[name] = other
    return found


def _next_bug(model: POMDP) -> Moves:
    """Each bug and the next one, the last and the first."""
    bugs = [name for name in model.states if name.startswith("bug-")]
    return dict(zip(bugs, [*bugs[1:], bugs[0]], strict=True))


_MOVES: dict[str, Callable[[POMDP], Moves]] = {
    "tmaze": lambda model: _swapped(model, *SIDES),
    "tiger": lambda model: _swapped(model, *SIDES),
    "flip": lambda model: _swapped(model, "y0", "y1"),
    "drift": lambda model: _swapped(model, "up", "down"),
    "repo_repair": _next_bug,
}
RANDOM = {f"random-{seed}": seed for seed in RANDOM_SEEDS}
NAMES = ("follow", "tiger", "tmaze:4", "flip:3", "repo_repair:2:2", "drift", *RANDOM)
