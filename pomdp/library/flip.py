"""The scrolled-out flip: an own action long past decides what a flag means; imports pomdp.library."""

from __future__ import annotations

from fractions import Fraction

from pomdp.criterion import Criterion
from pomdp.library.definition import Task, lasts, sure, tabulate
from pomdp.library.family import Family, Parameter

ACTIONS = ("wait", "flip", "read", "say-0", "say-1")
BITS = (0, 1)
# With 1 instead of 4, never flipping would cost 1/2 and make the meaning of the flag known.
PENALTY = Fraction(4)
SOURCE = "M1 §1.5.2: the scrolled-out-action construction, made into a task"
TOKENS = (
    "This project's choice: every call takes 20 tokens and every result 20, the flip's among them, so that "
    "a budget in tokens counts steps and the flip leaves the context by its age alone."
)


def _held(stage: int, y: int, phi: int) -> str:
    """Name of a state after the flip's stage: the answer y and whether the flag is flipped (phi)."""
    return f"stage-{stage}-y{y}-{'flipped' if phi else 'plain'}"


def _make(name: str, length: Fraction) -> Task:
    """Stage 0 shows u; at stage 1 flip iff u = 1; wait; at stage n read shows y xor phi; at n + 1 say y.

    4n + 7 states: u is drawn on leaving stage 0, and stage n + 1 still holds phi, since what `read` shows
    is a function of the state reached.
    """
    n = int(length)
    first = {f"stage-0-y{y}": y for y in BITS}
    asked = {f"stage-1-y{y}-u{u}": (y, u) for y in BITS for u in BITS}
    held = {_held(k, y, phi): (k, y, phi) for k in range(2, n + 2) for y in BITS for phi in BITS}

    def step(state: str, action: str) -> dict[str, Fraction]:
        if state in first:
            return {f"stage-1-y{first[state]}-u{u}": Fraction(1, 2) for u in BITS}
        if state in asked:
            return sure(_held(2, asked[state][0], int(action == "flip")))
        if state == "end" or held[state][0] == n + 1:
            return sure("end")
        k, y, phi = held[state]
        return sure(_held(k + 1, y, phi))

    def observe(action: str, state: str) -> dict[str, Fraction]:
        if state in asked:
            return sure(f"u{asked[state][1]}")
        if state not in held:
            return sure("none")
        k, y, phi = held[state]
        if k <= n:
            return sure(f"t{k}")
        return sure(f"flag-{y ^ phi}" if action == "read" else "none")

    def reward(state: str, action: str) -> Fraction:
        if state in asked:
            return Fraction(0) if (action == "flip") == (asked[state][1] == 1) else -PENALTY
        if state not in held:
            return Fraction(0)
        k, y, _ = held[state]
        if k == n + 1:
            return Fraction(1 if action == f"say-{y}" else -1)
        return Fraction(0) if action == ("read" if k == n else "wait") else -PENALTY

    observations = ("u0", "u1", *(f"t{k}" for k in range(2, n + 1)), "flag-0", "flag-1", "none")
    model = tabulate(
        states=[*first, *asked, *held, "end"],
        actions=ACTIONS,
        observations=observations,
        step=step,
        observe=observe,
        reward=reward,
        start={state: Fraction(1, 2) for state in first},
        discount=Fraction(19, 20),
        name=name,
    )

    def optimal(criterion: Criterion) -> Fraction:
        # The right moves are free and only the answer, at stage n + 1, pays.
        return criterion.discount ** (n + 1) if lasts(criterion, n + 2) else Fraction(0)

    def open_loop(criterion: Criterion) -> Fraction:
        # Stage 1 costs the penalty with probability 1/2 whatever is done, and either answer is then worth 0.
        return -PENALTY / 2 * criterion.discount if lasts(criterion, 2) else Fraction(0)

    return Task(
        model=model,
        horizon=n + 2,
        source=SOURCE,
        call_tokens=(20,) * len(ACTIONS),
        result_tokens=(20,) * len(observations),
        token_note=TOKENS,
        closed_optimal=optimal,
        closed_open_loop=open_loop,
    )


FLIP = Family(
    name="flip",
    summary="a flag read at step n means the opposite if the agent flipped it at step 1",
    parameters=(Parameter("n", Fraction(2), Fraction(1000), "3", whole=True),),
    make=_make,
)
