"""A model that plans: it answers with k calls at once, which the harness keeps and makes; imports served_task.

The calls of one reply that have no result yet are the plan, kept in the state of the running harness, and the model
is not asked again before the last of them. Source: M1 §1.6.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.served_task import ServedTask, episode, shown_pairs, tool_name
from harnesses.constructors.commitment import JOINER, planned
from harnesses.context.window import Full
from harnesses.runtime.models import RawCall, Reply
from pomdp.model import POMDP
from pomdp.policy import Controller

SEED = 20261201


@dataclass(frozen=True)
class Planner:
    """The controller of a committed task as a model that reads nothing but the messages it is shown.

    committed: what the controller was found for, with plans of `k` steps of a run of `horizon`; names: tools to
    actions. `horizon` steps being planned at once, results of the last plan are never read.
    """

    committed: POMDP
    controller: Controller
    k: int
    horizon: int
    names: Mapping[str, str]
    waiting: str
    name: str = "planner"

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """The plan for what comes next: k calls, fewer at the end."""
        seen = shown_pairs(messages, self.names)
        node = self.controller.start
        for begin in range(0, len(seen), self.k):
            plan = [result for _, result in seen[begin : begin + self.k]]
            for _ in plan[1:]:
                node = self._next(node, self.waiting)
            node = self._next(node, JOINER.join(plan))
        calls = []
        for _ in range(min(self.k, self.horizon - len(seen))):
            calls.append(RawCall(tool_name(self.committed.actions[self._action(node)])))
            node = self._next(node, self.waiting)
        return Reply(calls=tuple(calls))

    def _action(self, node: int) -> int:
        return int(np.argmax(self.controller.act[node]))

    def _next(self, node: int, shown: str) -> int:
        if shown not in self.committed.observations:
            return node  # nothing is decided after what this model never shows
        o = self.committed.observation_index(shown)
        return int(self.controller.successor[node, self._action(node), o])


def run_plans(
    model: POMDP, committed: POMDP, controller: Controller, k: int, horizon: int, episodes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """`[E]` what the runs earned, and `[E]` how often the model was asked in each."""
    served = ServedTask(model)
    planner = Planner(committed, controller, k, horizon, served.names, planned(model))
    runs = [episode(served, planner, Full(horizon), horizon, seed, e) for e in range(episodes)]
    return np.array([run.earned for run in runs]), np.array([float(run.replies) for run in runs])
