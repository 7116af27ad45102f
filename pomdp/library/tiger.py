"""The tiger task: two doors, a noisy ear; imports pomdp.library, criterion."""

from __future__ import annotations

from fractions import Fraction

from pomdp.criterion import Criterion
from pomdp.library.definition import ClosedForm, Task, geometric, sure, tabulate, uniform
from pomdp.library.family import Family, Parameter

STATES = ("tiger-left", "tiger-right")
ACTIONS = ("listen", "open-left", "open-right")
HEARD = STATES  # what is heard is named after the side it points to
SOURCE = "Kaelbling, Littman and Cassandra, Artificial Intelligence 101 (1998): the tiger problem"
TOKENS = (
    "This project's choice: calls have one short argument (20 tokens), what is heard is one line (20), so "
    "that a budget in tokens counts steps."
)


def _make(name: str, accuracy: Fraction) -> Task:
    """Listening costs 1 and is right with probability `accuracy`; a door pays 10 or -100 and starts anew."""

    def observe(action: str, state: str) -> dict[str, Fraction]:
        if action != "listen":
            return uniform(HEARD)
        return {heard: accuracy if heard == state else 1 - accuracy for heard in HEARD}

    def reward(state: str, action: str) -> Fraction:
        if action == "listen":
            return Fraction(-1)
        return Fraction(-100 if action.removeprefix("open-") == state.removeprefix("tiger-") else 10)

    model = tabulate(
        states=STATES,
        actions=ACTIONS,
        observations=HEARD,
        step=lambda state, action: sure(state) if action == "listen" else uniform(STATES),
        observe=observe,
        reward=reward,
        start=uniform(STATES),
        discount=Fraction(19, 20),
        name=name,
    )
    return Task(
        model=model,
        horizon=None,
        source=SOURCE,
        call_tokens=(20, 20, 20),
        result_tokens=(20, 20),
        token_note=TOKENS,
        closed_optimal=_optimal(accuracy),
        closed_open_loop=_open_loop,
    )


def _open_loop(criterion: Criterion) -> Fraction:
    """Without feedback the belief stays uniform, where a door is worth -45 and listening -1: listen on."""
    return -geometric(criterion)


def _optimal(accuracy: Fraction) -> ClosedForm:
    """Known where listening says nothing or everything; then it is listened to and a door opened in turn."""

    def optimal(criterion: Criterion) -> Fraction | None:
        if accuracy == Fraction(1, 2):
            return _open_loop(criterion)
        if accuracy in (0, 1):
            return 10 * geometric(criterion, 1, 2) - geometric(criterion, 0, 2)
        return None

    return optimal


TIGER = Family(
    name="tiger",
    summary="listen at a cost of 1 until sure enough to open the door without the tiger",
    parameters=(Parameter("accuracy", Fraction(0), Fraction(1), "0.85", default=Fraction(17, 20)),),
    make=_make,
)
