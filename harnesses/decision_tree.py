"""The decision tree of M1 §1.8.2 as a function of four answers, and what each answer holds up; imports nothing.

The tree asks in order and stops at the first answer that decides, at every branch in favour of the simpler system.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

WORKFLOW, SINGLE, MULTI, UNDECIDED = "workflow", "single agent", "multi-agent", "undecided"
GATED = "workflow with human gates"
QUESTIONS = (
    "Is the sequence of steps known at design time for every task?",
    "Is a wrong action so costly that no one may take it without human review?",
    "Does the task fall into subtasks that each need a large context of their own, worth coordinating?",
    "Do the tasks vary little in structure, being of a few recognisable types?",
)
AXES = (
    "Axis 2, observability of intermediate state",
    "Axis 4, cost of failure",
    "Axis 1, tools, and the size of contexts",
    "Axis 5, variance in task structure",
)
FORMS = {
    WORKFLOW: "a workflow: the steps are drawn at design time and the model is called at fixed points",
    GATED: "a workflow with a human gate at each irreversible step, or an agent that may only take reversible "
    "actions on its own, with a human gate before any other",
    "gated too": "a workflow: the steps are drawn at design time and the model is called at fixed points, with a human "
    "gate at each irreversible step, for the cost of failure asks for it whatever feedback is worth",
    MULTI: "multi-agent, subject to the null-hypothesis test: build the single agent first, and adopt several only "
    "where they measurably win on reliability, cost and diagnosability",
    "routed": "a single agent behind a router that recognises the type of task, or a few workflows behind a classifier",
    SINGLE: "a single agent: its loop, tools and context map are where the work goes",
}
# What an answer of yes or no to each question rests on: the observation that would turn it.
TURNS = (
    (
        "some step is found to depend on what an earlier one returns",
        "branches for all that the steps return can be drawn beforehand",
    ),
    ("every irreversible action becomes reversible or cheap", "an action turns out irreversible and costly"),
    (
        "the subtasks come to fit one context, or coordinating them costs more than it brings",
        "subtasks come to need large contexts of their own that crowd each other out, and coordination pays",
    ),
    (
        "traces show tasks that none of the recognised types covers",
        "traces fall into a few recognisable types with the same steps",
    ),
)


@dataclass(frozen=True)
class TreeAnswers:
    """Yes or no to the four questions in order; `known` is None where bounds do not decide it."""

    known: bool | None
    costly: bool
    divided: bool
    alike: bool

    def in_order(self) -> tuple[bool | None, bool, bool, bool]:
        """The answers by question."""
        return self.known, self.costly, self.divided, self.alike

    def turned(self, number: int) -> TreeAnswers:
        """The same answers but for question `number`, from 1."""
        name = ("known", "costly", "divided", "alike")[number - 1]
        return replace(self, **{name: not getattr(self, name)})


@dataclass(frozen=True)
class Step:
    """One question on the path: its number from 1, the answer (yes, no or undecided) and the axis it asks about."""

    number: int
    answer: str

    @property
    def question(self) -> str:
        """What is asked."""
        return QUESTIONS[self.number - 1]

    @property
    def axis(self) -> str:
        """The axis that dominates where this answer decides."""
        return AXES[self.number - 1]


@dataclass(frozen=True)
class Decision:
    """The architecture, the form it takes, and the path to it; the last step's axis dominates.

    Undecided where question 1 is, `otherwise` being the decision if its answer is no.
    """

    architecture: str
    form: str
    path: tuple[Step, ...]
    otherwise: Decision | None = None

    @property
    def dominant(self) -> str:
        """The axis that decided."""
        return self.path[0 if self.otherwise else -1].axis


@dataclass(frozen=True)
class Turn:
    """What the decision becomes if question `number` is answered the other way, and what would turn it."""

    number: int
    answer: str
    because: str
    decision: Decision

    def text(self) -> str:
        """The revision condition as a sentence."""
        return (
            f"Question {self.number} turns to {self.answer} if {self.because}; the decision is then "
            f"{self.decision.form}."
        )


def decide(answers: TreeAnswers) -> Decision:
    """Walk the tree.

    Source: M1 §1.8.2. Differs from the source: a workflow whose wrong actions are costly keeps human gates, as its
    Axis 4 asks, although its tree stops before the question.
    """
    if answers.known is None:
        other = decide(replace(answers, known=False))
        drawn = decide(replace(answers, known=True))
        form = f"undecided: {drawn.form} if question 1 is answered yes; otherwise {other.form}"
        return Decision(UNDECIDED, form, (Step(1, UNDECIDED), *other.path[1:]), other)
    path: list[Step] = []
    outcomes = (WORKFLOW, GATED, MULTI, "routed")
    for number, (answer, outcome) in enumerate(zip(answers.in_order(), outcomes, strict=True), 1):
        path.append(Step(number, "yes" if answer else "no"))
        if answer:
            form = "gated too" if number == 1 and answers.costly else outcome
            return Decision(SINGLE if outcome == "routed" else outcome, FORMS[form], tuple(path))
    return Decision(SINGLE, FORMS[SINGLE], tuple(path))


def turns(answers: TreeAnswers) -> Iterator[Turn]:
    """Every question of which the other answer alone gives another decision; an undecided one is none of these."""
    now = decide(answers)
    for number, answer in enumerate(answers.in_order(), 1):
        if answer is None:
            continue
        then = decide(answers.turned(number))
        if then.form != now.form:
            yes_falls, no_falls = TURNS[number - 1]
            yield Turn(number, "no" if answer else "yes", yes_falls if answer else no_falls, then)
