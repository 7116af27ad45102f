"""Repository repair: run tests, read, patch, finish; imports pomdp.library, criterion."""

from __future__ import annotations

from fractions import Fraction

from pomdp.criterion import Criterion
from pomdp.library.definition import Task, lasts, sure, tabulate, uniform
from pomdp.library.family import Family, Parameter

COST = Fraction(1, 20)  # of every call but `finish`
SOURCE = "M1 §1.3: the three-tool harness on a repository with a failing test, made into a task"
TOKENS = (
    "This project's choice: a call of run-tests or read-file is one short line (20 tokens), a patch carries "
    "the new content (120), finish a sentence (40); a failing test log is long (400), a file shorter (300), "
    "a passing run or an import error short (40), an acknowledgement one line (20)."
)


def _make(name: str, places: Fraction, causes: Fraction) -> Task:
    """Bug (i, j): the tests show i, reading shows j, a wrong patch breaks the repository, a fixed one pays 1.

    A fixed repository stays fixed under any later patch and a broken one stays broken, so every call but
    `finish` is idempotent.
    """
    k1, k2 = int(places), int(causes)
    bugs = {f"bug-{i}-{j}": (i, j) for i in range(k1) for j in range(k2)}
    patches = {f"patch-{i}-{j}": f"bug-{i}-{j}" for i in range(k1) for j in range(k2)}
    failing, readings = [f"fails-in-{i}" for i in range(k1)], [f"cause-{j}" for j in range(k2)]

    def step(state: str, action: str) -> dict[str, Fraction]:
        if action == "finish" or state == "end":
            return sure("end")
        if action in patches and state in bugs:
            return sure("fixed" if patches[action] == state else "broken")
        return sure(state)

    def observe(action: str, state: str) -> dict[str, Fraction]:
        if action == "run-tests" and state != "end":
            return sure(
                failing[bugs[state][0]] if state in bugs else {"fixed": "passed", "broken": "error"}[state]
            )
        if action == "read-file" and state in bugs:
            return sure(readings[bugs[state][1]])
        return sure("-")

    def reward(state: str, action: str) -> Fraction:
        if state == "end":
            return Fraction(0)
        if action == "finish":
            return Fraction(int(state == "fixed"))
        return -COST

    actions = ("run-tests", "read-file", *patches, "finish")
    observations = (*failing, *readings, "passed", "error", "-")
    model = tabulate(
        states=[*bugs, "fixed", "broken", "end"],
        actions=actions,
        observations=observations,
        step=step,
        observe=observe,
        reward=reward,
        start=uniform(list(bugs)),
        discount=None,
        name=name,
    )
    return Task(
        model=model,
        horizon=4,
        source=SOURCE,
        call_tokens=(20, 20, *(120 for _ in patches), 40),
        result_tokens=(*(400 for _ in failing), *(300 for _ in readings), 40, 40, 20),
        token_note=TOKENS,
        closed_optimal=lambda criterion: _best_plan(criterion, ((2, 1), (1, k1), (1, k2), (0, k1 * k2))),
        closed_open_loop=lambda criterion: _best_plan(criterion, ((0, k1 * k2),)),
    )


def _best_plan(criterion: Criterion, plans: tuple[tuple[int, int], ...]) -> Fraction:
    """Best of finishing at once (0) and, for each (looks, left): look, patch one of `left` bugs, finish.

    The bugs left after a look are equally likely whatever it showed: looks change the patch, not the plan.
    """
    gamma, best = criterion.discount, Fraction(0)
    for looks, left in plans:
        if lasts(criterion, looks + 2):
            calls = sum((gamma**t for t in range(looks + 1)), Fraction(0))
            best = max(best, gamma ** (looks + 1) / left - COST * calls)
    return best


REPO_REPAIR = Family(
    name="repo_repair",
    summary="one of k1 x k2 bugs: the tests show its place, reading its cause, and only one patch is right",
    parameters=(
        Parameter("k1", Fraction(1), Fraction(20), "2", default=Fraction(2), whole=True),
        Parameter("k2", Fraction(1), Fraction(20), "2", default=Fraction(2), whole=True),
    ),
    make=_make,
)
