"""Dropping: what a context map would have taken out of the context at each step of a run; imports the maps.

The map is folded over the run's steps as the running harness does it: no map sees the system prompt and the user's
request, and a token budget is for what follows them unless they are to count. Source: M1 §1.2.4, §1.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from typing import Any

from harnesses.context import (
    Compose,
    ContextMap,
    Counter,
    Event,
    MapRecipe,
    Message,
    OldestFirst,
    Pin,
    Removal,
    Retrieve,
)
from harnesses.logs.run import Run
from harnesses.logs.tokens import READING

TALK = "talk"  # the name of a step without a call


@dataclass(frozen=True)
class Gone:
    """What is missing from the context after a step (from 1): results, whole or in part, and tokens of anything."""

    step: int
    results: int
    tokens: int


@dataclass(frozen=True)
class Dropped:
    """What a map takes out of a run: `gone` at every step where that changes, and the state after the last one.

    `results` of the run's `of_results` are then missing, and `result_tokens` of `of_result_tokens`; `tokens` of any
    message, calls included. Sizes in tokens.
    """

    map: str
    gone: tuple[Gone, ...]
    results: int
    of_results: int
    result_tokens: int
    of_result_tokens: int
    tokens: int

    @property
    def touched(self) -> bool:
        """Whether anything was missing from the context at any step."""
        return any(gone.tokens > 0 or gone.results > 0 for gone in self.gone)


def bind(recipe: MapRecipe) -> ContextMap:
    """The map of a recipe, for logs. ModelError where it needs a model of the task or a horizon."""
    return recipe.bind(None)


def events(run: Run) -> Iterator[Event]:
    """The steps as events with ids: what a user says counts with the call, for no map may take it for a result."""
    for number, step in enumerate(run.steps):
        name = TALK if step.call is None else READING.call(step.call)[0]
        answer = "" if step.result is None else READING.result(step.result)[0]
        yield Event(
            Message("call", name, step.call_tokens + step.heard_tokens, (number, "call")),
            Message("result", answer, step.result_tokens, (number, "result")),
        )


def dropped(phi: ContextMap, run: Run, count_head: bool = False) -> Dropped:
    """What the map takes out of the run, step by step; with `count_head` its budget is for the head too."""
    within = beside(phi, run.head.tokens) if count_head else phi
    answers = {(number, "result") for number, step in enumerate(run.steps) if step.result is not None}
    memory = within.start()
    lost: list[Removal] = []
    missing: set[Any] = set()
    tokens = 0
    hidden: tuple[Removal, ...] = ()
    steps: list[Gone] = []
    for number, event in enumerate(events(run), 1):
        memory, removals = within.step(memory, event)
        lost.extend(removals)
        missing.update(_results(removals, answers))
        tokens += sum(removal.tokens for removal in removals)
        hidden = within.show(memory).dropped
        results = len(missing.union(_results(hidden, answers))) if hidden else len(missing)
        now = Gone(number, results, tokens + sum(removal.tokens for removal in hidden))
        if (now.results, now.tokens) != ((steps[-1].results, steps[-1].tokens) if steps else (0, 0)):
            steps.append(now)
    everything = [*lost, *hidden]
    return Dropped(
        map=phi.name,
        gone=tuple(steps),
        results=len(set(_results(everything, answers))),
        of_results=len(answers),
        result_tokens=sum(removal.tokens for removal in everything if removal.message.role == "result"),
        of_result_tokens=sum(step.result_tokens for step in run.steps),
        tokens=sum(removal.tokens for removal in everything),
    )


def beside(phi: ContextMap, tokens: int) -> ContextMap:
    """The map with every token budget in it smaller by `tokens`, which something else takes; 0 at the least."""
    if isinstance(phi, OldestFirst):
        return replace(phi, budget=max(0, phi.budget - tokens))
    if isinstance(phi, (Compose, Counter, Pin, Retrieve)):
        return replace(phi, inner=beside(phi.inner, tokens))
    return phi


def _results(removals: Iterable[Removal], answers: Set[Any]) -> Iterator[Any]:
    """The ids of the results among what was removed, a talk step's empty one left out."""
    return (removal.message.id for removal in removals if removal.message.id in answers)
