"""Arms of the study langgraph_agreement: a policy in LangGraph and exactly; the guarded desk and its twin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.langgraph_agreement import CLOSED, HORIZONS, OPEN
from harnesses.case import Case, Effort
from harnesses.conformance.compare import Conformance, differences
from harnesses.conformance.episode import engine, running
from harnesses.context_loss import ContextLoss
from harnesses.desk.generator import CALIBRATION, TEST, guard_item, split
from harnesses.desk.played import play_email
from harnesses.desk.policy import GUARD_THRESHOLDS
from harnesses.desk.toy import Toy, toy
from harnesses.desk.twin import Twin, seen
from harnesses.spec import parse_spec
from pomdp.bounds import feedback
from pomdp.interval import Interval
from pomdp.simulate import trajectories

KINDS = ("optimal", "bayes")
"""Readers of a context; the one that earns more, exactly, is the policy of an arm."""

FIRST_SET = 15
"""Seed of the first decision set; the toy decider was fitted on the set of seed 14."""
EMAILS = 90
"""Of a test split. Source: M14 §8."""


@dataclass(frozen=True)
class Ran:
    """Return of each episode by its number; steps that were compared with the simulator's, and how many differ."""

    returns: Mapping[int, float]
    steps: int
    differences: int


@dataclass(frozen=True, eq=False)
class Arm:
    """A task with one context map and the better reader of it."""

    task: str
    context: str
    conformance: Conformance

    @property
    def J(self) -> float:
        """Return of the policy, exact but for rounding."""
        return self.conformance.formal

    @cached_property
    def largest(self) -> float:
        """A bound on the difference of two policies: the spread of rewards times the steps."""
        R = self.conformance.spec.task.R
        return float(R.max() - R.min()) * (self.conformance.spec.criterion.horizon or 1)

    def run(self, numbers: Iterable[int]) -> Ran:
        """Episodes in LangGraph, each beside the same one of the tabular simulator."""
        made = self.conformance
        expected = made.reference(list(numbers))
        returns, steps, apart = {}, 0, 0
        gamma = float(made.spec.criterion.discount)
        with engine("langgraph") as saver:
            for number, reference in expected.items():
                found = running(made.served, made.policy(0, number), saver)
                apart += len(differences("langgraph", number, reference, found))
                steps += len(found.steps)
                returns[number] = sum(gamma**t * step.reward for t, step in enumerate(found.steps))
        return Ran(returns, steps, apart)

    def simulated(self, numbers: Iterable[int]) -> np.ndarray:
        """Returns of other episodes in the tabular simulator alone, in the order of their numbers."""
        made = self.conformance
        paths = trajectories(
            made.table.model, made.table.agent, list(numbers), steps=made.split.steps, seed=0
        )
        weights = float(made.spec.criterion.discount) ** np.arange(made.split.steps)
        return np.array([float(path.rewards @ weights) for path in paths.values()])

    def formal(self, gap: float, seconds: float) -> Interval | None:
        """V_f of the task for the plan without observations, the loss of a map, None for the closed loop itself."""
        spec = self.conformance.spec
        if self.context == CLOSED:
            return None
        width = gap * self.largest
        if self.context == OPEN:
            return feedback(spec.task, spec.criterion, gap=width, time_limit=seconds).value_of_feedback
        return ContextLoss(Case(spec, Effort(gap=width, seconds=seconds))).loss


def arm(task: str, context: str) -> Arm:
    """The arm of a task and a map by name, with the reader that earns more."""
    made = [
        Conformance.of(
            parse_spec(
                {"task": f"library:{task}", "horizon": HORIZONS[task], "model": kind, "context": context},
                Path(),
            )
        )
        for kind in KINDS
    ]
    return Arm(task, context, max(made, key=lambda one: one.formal))


@lru_cache(maxsize=1)
def _toy() -> Toy:
    return toy()


def guarded(seed: int, calibration: int) -> list[dict[str, Any]]:
    """One decision set: per measure the twin's prediction, made first, and what the LangGraph desk did with its emails.

    The twin sees `calibration` emails of the calibration split, the desk runs the test split with the toy decider and a
    person who never errs.
    """
    number, decider = FIRST_SET + seed, _toy()
    known = [guard_item(CALIBRATION, item, number) for item in range(calibration)]
    predicted = Twin.of(decider, known).predict(EMAILS, seed=number)
    emails = split(TEST, number).guard
    came = seen([play_email(item, decider, GUARD_THRESHOLDS)[0] for item in emails])
    rows = []
    for name, made in predicted.items():
        found = came[name]
        rows.append(
            {
                "measure": name, "predicted": made.value, "lower": made.lower, "upper": made.upper,
                "ran": found, "items": len(emails), "covered": int(made.covers(found)),
            }
        )  # fmt: skip
    return rows
