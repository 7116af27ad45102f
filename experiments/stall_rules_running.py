"""Stuck models in the running harness under its own loop detectors; imports the runtime, served_task.

A run that a rule ended is run again with the same draws and the same warnings but without the end: had it succeeded,
the end was premature. All draws are of (seed, number, step).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.served_task import UNIT, ServedTask, tool_name
from experiments.stall_rules_tasks import Node, Rule, StuckModel, Workflow
from harnesses.context.window import Full
from harnesses.runtime.control import Limits, StallRule
from harnesses.runtime.loop import CORRECTION, Harness, end, model_step, start, tool_step
from harnesses.runtime.models import RawCall, Reply
from harnesses.runtime.records import Reason, Run
from pomdp.rng import ACTION, words

REQUEST = "Do the task."
MEASURES = ("success", "stalled", "waste", "calls", "premature")


@dataclass(frozen=True)
class Worker:
    """A stuck model that reads nothing but the messages it is shown; `draws` `[steps]` are its own, in [0, 1)."""

    flow: Workflow
    model: StuckModel
    stuck: float
    names: Mapping[str, str]
    draws: np.ndarray

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """One call, drawn at the node that the messages lead to."""
        node = self.node(messages)
        choices = self.model.choices(self.flow, node, self.stuck)
        u, total = float(self.draws[step]), 0.0
        for call, p in choices:
            total += p
            if u < total:
                return Reply(calls=(RawCall(tool_name(call)),))
        return Reply(calls=(RawCall(tool_name(choices[-1][0])),))

    def node(self, messages: list[dict[str, Any]]) -> Node:
        """Where these messages lead."""
        node, asked = Node(), ""
        pairs: list[tuple[str, str, bool]] = []
        for message in messages:
            if message["role"] == "assistant":
                asked = self.names[message["tool_calls"][0]["function"]["name"]]
            elif message["role"] == "tool":
                pairs.append((asked, message["content"], False))
            elif message["content"].startswith(CORRECTION):
                pairs[-1] = (*pairs[-1][:2], True)
        for call, answer, warned in pairs:
            node = self.model.follow(self.flow, node, call, answer, warned)
        return node


class Desk:
    """A workflow behind its tools, for any model and rule."""

    def __init__(self, flow: Workflow, budget: int) -> None:
        self.flow, self.budget = flow, budget
        self.served = ServedTask(flow.model())

    def run(self, model: StuckModel, stuck: float, rule: Rule | None, seed: int, number: int) -> Run:
        """One run until the task is done, the rule ends it, or the budget of replies is spent."""
        served = self.served
        served.begin(seed, number)
        rules: tuple[StallRule, ...] = ()
        if rule is not None:
            stop = rule.stop or self.budget + max(rule.warn) + 1
            rules = (StallRule(rule.mode, rule.warn, stop),)
        limits = Limits(
            steps=self.budget, tokens=None, tool_calls=None, seconds=None, consecutive_errors=None
        )
        draws = words(seed, ACTION, number, np.arange(self.budget))[0] * UNIT
        worker = Worker(self.flow, model, stuck, served.names, draws)
        harness = Harness(worker, served.dispatcher, Full(self.budget), limits, rules)
        run = start(harness, REQUEST)
        while not run.state.terminated:
            run = model_step(harness, run)
            if not run.state.terminated:
                run = tool_step(harness, run)
            if served.over and not run.state.terminated:
                run = end(harness, run, Reason.COMPLETED)
        return run

    def measured(
        self, model: StuckModel, stuck: float, rule: Rule | None, seed: int, number: int
    ) -> dict[str, float]:
        """MEASURES of one run."""
        run = self.run(model, stuck, rule, seed, number)
        reason = run.state.termination_reason
        executed = [run.results[call.id].status == "ok" for call in run.calls]
        calls = [self.served.names[call.name] for call in run.calls]
        right = self._right(run)
        premature = False
        if rule is not None and reason is Reason.STALLED:
            again = self.run(model, stuck, rule.heard_only, seed, number)
            premature = again.state.termination_reason is Reason.COMPLETED
        return {
            "success": float(reason is Reason.COMPLETED),
            "stalled": float(reason is Reason.STALLED),
            "waste": float(sum(ok and call != need for ok, call, need in zip(executed, calls, right))),
            "calls": float(sum(executed)),
            "premature": float(premature),
        }

    def _right(self, run: Run) -> list[str]:
        """The call that the task needed before each reply."""
        stage, found = 0, []
        for call in run.calls:
            need = self.flow.right(stage)
            found.append(need)
            result = run.results[call.id]
            moved = result.status == "ok" and result.content == self.flow.stages[stage][1]
            stage += self.served.names[call.name] == need and moved
        return found


def run_rules(
    flow: Workflow, model: StuckModel, stuck: float, rules: Mapping[str, Rule | None], budget: int,
    episodes: int, seed: int,
) -> dict[str, dict[str, np.ndarray]]:  # fmt: skip
    """Per rule `[E]` of each measure; run e of every rule has the same draws."""
    desk, found = Desk(flow, budget), {}
    for name, rule in rules.items():
        runs = [desk.measured(model, stuck, rule, seed, number) for number in range(episodes)]
        found[name] = {key: np.array([one[key] for one in runs]) for key in MEASURES}
    return found
