"""Framework or hand-written loop: four questions after LG as a second view on the decision; imports nothing.

Source: LG, the handbook's case study of LangGraph, its closing decision framework. Differs from the source: its third
question, which no arrow of its diagram leads to, is asked of every task, and answers that pull both ways give the
hybrid that it recommends in the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FRAMEWORK, PIPELINE, LOOP, HYBRID, OPEN = "framework", "pipeline", "loop", "hybrid", "undecided"
CONCLUSIONS = {
    FRAMEWORK: "a graph framework: states, edges and checkpoints declared",
    PIPELINE: "a hand-written pipeline: the steps are fixed and nothing has to outlive the process",
    LOOP: "a hand-written loop: a thin harness with good tools and evaluations",
    HYBRID: "a hybrid: a drawn outer graph for gates and checkpoints, a free loop inside one of its nodes",
    OPEN: "undecided until it is known whether the control flow can be drawn",
}


@dataclass(frozen=True)
class View:
    """One question with its answer and what it implies."""

    question: str
    answer: str
    implies: str


@dataclass(frozen=True)
class FrameworkView:
    """The four questions and where they lead."""

    views: tuple[View, ...]
    choice: str

    @property
    def conclusion(self) -> str:
        """The choice in words."""
        return CONCLUSIONS[self.choice]

    def json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "choice": self.choice,
            "conclusion": self.conclusion,
            "questions": [vars(view) for view in self.views],
        }


def framework_view(*, drawn: bool | None, persistent: bool, costly: bool, betting: bool) -> FrameworkView:
    """Whether the control flow can be drawn (None: undecided), must persist, errs at a cost, bets on better models."""
    if drawn is None:
        first = "either a drawn graph or a loop: see what would decide question 1"
    elif drawn:
        first = "drawing it pays; the next question is what has to persist"
    else:
        first = "it leans towards a loop; a graph of it would be two nodes and a detour"
    views = (
        View(
            "Can the control flow be drawn in advance?",
            OPEN if drawn is None else _yes(drawn),
            first,
        ),
        View(
            "Must runs persist across processes, resume after a crash, or wait for human approval?",
            _yes(persistent),
            "a framework with checkpoints and interrupts has this ready made"
            if persistent
            else "no checkpoint is needed, so plain code is enough",
        ),
        View(
            "What does one wrong step cost?",
            "high" if costly else "low",
            "a controlled loop, every branch drawn by hand"
            if costly
            else "a free loop with good tools and evaluations is enough: run it again",
        ),
        View(
            "Is the system betting on better models?",
            _yes(betting),
            "a thin harness with little hard-coded flow, which gains with the model"
            if betting
            else "an explicit state machine, which freezes today's behaviour",
        ),
    )
    return FrameworkView(views, _choice(drawn, persistent, costly, betting))


def _choice(drawn: bool | None, persistent: bool, costly: bool, betting: bool) -> str:
    if drawn is None:
        return OPEN
    if drawn:
        return FRAMEWORK if persistent else PIPELINE
    if persistent or costly:
        return HYBRID
    return LOOP if betting else FRAMEWORK


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"
