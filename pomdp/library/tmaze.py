"""The T-maze: a cue at the entrance decides the turn n steps later; imports pomdp.library, criterion."""

from __future__ import annotations

from fractions import Fraction

from pomdp.criterion import Criterion
from pomdp.library.definition import Task, lasts, sure, tabulate
from pomdp.library.family import Family, Parameter

GOALS = ("left", "right")
ACTIONS = ("go", "turn-left", "turn-right")
OBSERVATIONS = ("cue-left", "cue-right", "-", "T")
SOURCE = (
    "After Bakker, NeurIPS 14 (2001): the T-maze, with a cue of accuracy q and n >= 2 steps to the junction"
)
TOKENS = (
    "This project's choice: every call takes 20 tokens and every result 20, cue and corridor alike, so that "
    "a budget in tokens counts steps and no result is kept or dropped for its size."
)


def _place(goal: str, steps: int) -> str:
    """Name of the state with the goal on that side, `steps` steps from the entrance."""
    return f"goal-{goal}-at-{steps}"


def _make(name: str, length: Fraction, accuracy: Fraction) -> Task:
    """`go` advances and waits at the junction; a turn ends the run and pays 1 or -1 there, -1 before it."""
    n = int(length)
    where = {_place(goal, i): (goal, i) for goal in GOALS for i in range(n + 1)}

    def step(state: str, action: str) -> dict[str, Fraction]:
        if state == "end" or action != "go":
            return sure("end")
        goal, i = where[state]
        return sure(_place(goal, min(i + 1, n)))

    def observe(action: str, state: str) -> dict[str, Fraction]:
        if state == "end" or action != "go":
            return sure("-")
        goal, i = where[state]
        if i == 1:
            return {f"cue-{side}": accuracy if side == goal else 1 - accuracy for side in GOALS}
        return sure("T" if i == n else "-")

    def reward(state: str, action: str) -> Fraction:
        if state == "end" or action == "go":
            return Fraction(0)
        goal, i = where[state]
        return Fraction(1 if i == n and action == f"turn-{goal}" else -1)

    model = tabulate(
        states=[*where, "end"],
        actions=ACTIONS,
        observations=OBSERVATIONS,
        step=step,
        observe=observe,
        reward=reward,
        start={_place(goal, 0): Fraction(1, 2) for goal in GOALS},
        discount=Fraction(19, 20),
        name=name,
    )

    def optimal(criterion: Criterion) -> Fraction:
        # The better turn wins with probability max(q, 1 - q), n steps from now; never turning is worth 0.
        return criterion.discount**n * abs(2 * accuracy - 1) if lasts(criterion, n + 1) else Fraction(0)

    return Task(
        model=model,
        horizon=n + 1,
        source=SOURCE,
        call_tokens=(20,) * len(ACTIONS),
        result_tokens=(20,) * len(OBSERVATIONS),
        token_note=TOKENS,
        closed_optimal=optimal,
        # Without the cue either turn is worth 0 at the junction and -1 before it.
        closed_open_loop=lambda criterion: Fraction(0),
    )


TMAZE = Family(
    name="tmaze",
    summary="a cue seen at step 1 with accuracy q tells which way to turn at step n",
    parameters=(
        Parameter("n", Fraction(2), Fraction(1000), "4", whole=True),
        Parameter("q", Fraction(0), Fraction(1), "0.9", default=Fraction(1)),
    ),
    make=_make,
)
