"""Drift: the belief moves although nothing is ever seen; imports pomdp.library, criterion."""

from __future__ import annotations

from fractions import Fraction

from pomdp.criterion import Criterion
from pomdp.library.definition import Task, geometric, sure, tabulate
from pomdp.library.family import Family

SOURCE = "M1 E1.8 and S1.8: an uninformative observation, with a belief that does not stay at the prior"
TOKENS = (
    "This project's choice: calls and results are a line each (20 tokens), so that a budget counts steps."
)


def _make(name: str) -> Task:
    """`flip` toggles the state with probability 3/4 for 0; `take` leaves it and pays 1 `up`, -1 `down`."""
    other = {"down": "up", "up": "down"}

    def step(state: str, action: str) -> dict[str, Fraction]:
        return sure(state) if action == "take" else {other[state]: Fraction(3, 4), state: Fraction(1, 4)}

    def reward(state: str, action: str) -> Fraction:
        return Fraction(0) if action == "flip" else Fraction(1 if state == "up" else -1)

    model = tabulate(
        states=["down", "up"],
        actions=["flip", "take"],
        observations=["-"],
        step=step,
        observe=lambda action, state: sure("-"),
        reward=reward,
        start=sure("down"),
        discount=None,
        name=name,
    )
    return Task(
        model=model,
        horizon=10,
        source=SOURCE,
        call_tokens=(20, 20),
        result_tokens=(20,),
        token_note=TOKENS,
        closed_optimal=_value,
        closed_open_loop=_value,
    )


def _value(criterion: Criterion) -> Fraction:
    """One flip reaches the best belief, 3/4, where taking is worth 1/2 a step: (n - 1)/2 undiscounted."""
    return geometric(criterion, 1) / 2


DRIFT = Family(
    name="drift",
    summary="one observation, yet the belief moves: closed and open loop are worth the same",
    parameters=(),
    make=_make,
)
