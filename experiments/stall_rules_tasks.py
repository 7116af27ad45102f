"""Workflows whose calls may legitimately repeat, models that get stuck in them, and loop detectors; imports pomdp.

A workflow is a row of stages, each with its right call. A stuck model repeats calls that are done; the world answers
them as before. What models do is this study's choice: getting stuck and recovering with given probabilities.
Source: M1 §1.2.5 (loop detection), E1.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

from harnesses.constructors.base import ONE, ZERO
from harnesses.kernel import Kernel, Outcome, tabulate
from pomdp.model import POMDP

DONE, BROKEN, PENDING = "done", "broken", "pending"
Mode = Literal["consecutive", "total", "growth"]
Counts = Literal["success", "waste", "calls"]


@dataclass(frozen=True)
class Workflow:
    """`stages` of (right call, its answer), in order; at a stage in `waits` the call is answered `pending` first.

    waits: stage -> the probability that one more call is answered. A call that is neither right nor among the two
    done before breaks the task; no model here makes one.
    """

    name: str
    stages: tuple[tuple[str, str], ...]
    waits: Mapping[int, Fraction] = field(default_factory=dict)

    @cached_property
    def calls(self) -> tuple[str, ...]:
        """All calls."""
        return tuple(dict.fromkeys(call for call, _ in self.stages))

    def right(self, stage: int) -> str:
        """The call that the task needs next."""
        return self.stages[stage][0]

    def old(self, stage: int) -> dict[str, str]:
        """The last two calls done that are not the right one, newest first, with the answers that they get again."""
        found: dict[str, str] = {}
        for call, answer in reversed(self.stages[:stage]):
            if call != self.right(stage):
                found.setdefault(call, answer)
        return dict(list(found.items())[:2])

    def outcomes(self, stage: int, call: str) -> Iterator[tuple[int, str, Fraction]]:
        """(next stage, answer, probability) of a right or an old call."""
        if call != self.right(stage):
            yield stage, self.old(stage)[call], ONE
            return
        ready = self.waits.get(stage, ONE)
        yield stage + 1, self.stages[stage][1], ready
        if ready < 1:
            yield stage, PENDING, 1 - ready

    def model(self, counts: Counts = "success") -> POMDP:
        """As a POMDP whose reward counts: the task done, calls wasted on what is done, or all calls."""
        last, calls = len(self.stages), self.calls

        def step(stage: int, a: int) -> Iterator[Outcome]:
            if stage in (last, -1):
                yield stage, DONE if stage == last else BROKEN, ONE
            elif calls[a] == self.right(stage) or calls[a] in self.old(stage):
                yield from self.outcomes(stage, calls[a])
            else:
                yield -1, BROKEN, ONE

        def reward(stage: int, a: int) -> Fraction:
            if stage in (last, -1):
                return ZERO
            right = calls[a] == self.right(stage)
            counted = {
                "success": right and stage == last - 1,
                "waste": not right and calls[a] in self.old(stage),
                "calls": True,
            }[counts]
            return ONE if counted else ZERO

        return tabulate(
            Kernel(
                start={0: ONE}, actions=calls, observations=None, step=step, reward=reward, name=self.name,
                label=lambda stage: {last: DONE, -1: BROKEN}.get(stage, f"stage-{stage}"),
            )
        )  # fmt: skip


def _workflows() -> tuple[Workflow, ...]:
    edits = tuple((f"edit-{k}", "edited") for k in (1, 2, 3, 4))
    tests = tuple(("test", f"fails-{k}" if k else "passed") for k in (3, 2, 1, 0))
    polls = tuple(("poll", f"at-{k}") for k in (1, 2, 3, 4))
    return (
        Workflow("edits", (*edits, ("submit", "sent"))),
        Workflow("tests between", tuple(pair for pairs in zip(edits, tests) for pair in pairs)),
        Workflow(
            "waiting",
            (edits[0], ("submit", "sent"), ("poll", "ready"), ("fetch", "fetched"), ("report", "sent")),
            {2: Fraction(1, 3)},
        ),
        Workflow("progress", (edits[0], ("submit", "sent"), *polls, ("fetch", "fetched"))),
    )


WORKFLOWS = {workflow.name: workflow for workflow in _workflows()}
"""No call repeats; one call between the others; one call with the same answer; one call with rising answers."""


class Node(NamedTuple):
    """Where a model is: its stage, -1 or which of the old calls it is stuck in, warnings heard, one just now."""

    stage: int = 0
    stuck: int = -1
    heard: int = 0
    fresh: bool = False


@dataclass(frozen=True)
class StuckModel:
    """Getting stuck per step of work, recovering per stuck step, and right after a first and a later warning.

    circling: it alternates between two old calls instead of repeating one. A model that works ignores warnings.
    """

    name: str
    recover: float
    first: float
    later: float
    circling: bool = False

    def choices(self, flow: Workflow, node: Node, stuck: float) -> list[tuple[str, float]]:
        """Calls with their probabilities; `stuck` is how often a working model gets stuck."""
        right, old = flow.right(node.stage), list(flow.old(node.stage))
        if not old:
            return [(right, 1.0)]
        if node.stuck < 0:
            return [(right, 1 - stuck), (old[0], stuck)]
        p = (self.first if node.heard == 1 else self.later) if node.fresh else self.recover
        return [(right, p), (old[node.stuck % len(old)], 1 - p)]

    def follow(self, flow: Workflow, node: Node, call: str, answer: str, warned: bool) -> Node:
        """The node after a call."""
        if call == flow.right(node.stage):
            return Node(node.stage + (answer != PENDING))
        following = (max(node.stuck, 0) + 1) % 2 if self.circling else 0
        return Node(node.stage, following, min(2, node.heard + warned), warned)


MODELS = {
    model.name: model
    for model in (
        StuckModel("deaf", 0.0, 0.0, 0.0),
        StuckModel("slow", 0.25, 0.25, 0.25),
        StuckModel("listening", 0.05, 0.5, 0.75),
        StuckModel("circling", 0.05, 0.5, 0.75, circling=True),
    )
}


@dataclass(frozen=True)
class Rule:
    """A loop detector by mode, counts that are warned of, and the count that ends the run, None for none."""

    mode: Mode
    warn: tuple[int, ...]
    stop: int | None

    @property
    def highest(self) -> int:
        """Counts from here on are alike."""
        return self.stop or max(self.warn) + 1

    @property
    def heard_only(self) -> Rule:
        """The same warnings without the end."""
        return Rule(self.mode, self.warn, None)


def rule(name: str, first: int) -> Rule | None:
    """A rule of the study by its name and the count of its first warning; None for `none`."""
    if name == "none":
        return None
    if name == "escalate":
        return Rule("consecutive", (first, first + 1), first + 3)
    modes: dict[str, Mode] = {"terminate": "consecutive", "total": "total", "growth": "growth"}
    return Rule(modes[name], (first,), first + 1)


RULES = ("none", "terminate", "escalate", "total", "growth")
