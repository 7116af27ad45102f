"""What loop detectors do to models that get stuck, without runs: a forward sum, and the constructor `stall`.

`forward` follows the pairs of a model's node and a detector's memory that a run can reach, for every mode. `formal`
evaluates the model as a controller on `stall` of the workflow: the oracle where that constructor applies, for calls
counted in a row or in total. Escalation is two detectors, one in the other. Imports harnesses.constructors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from experiments.stall_rules_tasks import Counts, Node, Rule, StuckModel, Workflow
from harnesses.constructors.limits import WARNING, stall
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import Controller
from pomdp.value import evaluate

MEASURES = ("success", "stalled", "waste", "calls")


class Verdict(NamedTuple):
    """A detector on a call: its memory after it, whether it warns, and whether the run ends."""

    memory: Hashable
    warns: bool
    ends: bool


def before(rule: Rule | None, memory: Any, call: str) -> Verdict:
    """Of a detector that counts calls, before the call is executed; counts beyond its last threshold are alike."""
    if rule is None or rule.mode == "growth":
        return Verdict(memory, False, False)
    counts = dict(memory or ())
    times = counts.get(call, 0) + 1
    if rule.mode == "consecutive":
        counts = {}
    return _verdict(rule, times, frozenset({**counts, call: min(times, rule.highest)}.items()))


def after(rule: Rule | None, memory: Any, call: str, answer: str) -> Verdict:
    """Of a detector that looks for growth, after the answer."""
    if rule is None or rule.mode != "growth":
        return Verdict(memory, False, False)
    seen, stale = memory or (frozenset(), 0)
    times = stale + 1 if (call, answer) in seen else 0
    return _verdict(rule, times, (seen | {(call, answer)}, min(times, rule.highest)))


def _verdict(rule: Rule, times: int, memory: Hashable) -> Verdict:
    return Verdict(memory, times in rule.warn, rule.stop is not None and times >= rule.stop)


def forward(
    flow: Workflow, model: StuckModel, stuck: float, rule: Rule | None, budget: int
) -> dict[str, float]:
    """MEASURES a run of at most `budget` replies: the chance of success and of an end by the rule; means of calls."""
    found = dict.fromkeys(MEASURES, 0.0)
    places: dict[tuple[Node, Hashable], float] = {(Node(), None): 1.0}
    for _ in range(budget):
        following: dict[tuple[Node, Hashable], float] = defaultdict(float)
        for (node, memory), mass in places.items():
            for call, p in model.choices(flow, node, stuck):
                if not p:
                    continue
                asked = before(rule, memory, call)
                if asked.ends:
                    found["stalled"] += mass * p
                    continue
                found["calls"] += mass * p
                found["waste"] += mass * p * (call != flow.right(node.stage))
                for _, answer, q in flow.outcomes(node.stage, call):
                    share = mass * p * float(q)
                    done = after(rule, asked.memory, call, answer)
                    reached = model.follow(flow, node, call, answer, asked.warns or done.warns)
                    if reached.stage == len(flow.stages):
                        found["success"] += share
                    elif done.ends:
                        found["stalled"] += share
                    else:
                        following[reached, done.memory] += share
        places = following
    return found


def premature(flow: Workflow, model: StuckModel, stuck: float, rule: Rule, budget: int) -> float:
    """The chance that the rule ends a run that would have succeeded after the same warnings.

    With the same draws a run is the same one up to its end, so this is a difference of two chances of success.
    """
    going_on = forward(flow, model, stuck, rule.heard_only, budget)
    return going_on["success"] - forward(flow, model, stuck, rule, budget)["success"]


def formal(
    flow: Workflow, model: StuckModel, stuck: float, rule: Rule | None, budget: int, counts: Counts
) -> float | None:
    """Success or mean calls by the constructor `stall`; None where it does not apply, as to growth."""
    if rule is not None and (rule.mode == "growth" or rule.stop is None):
        return None
    detected = flow.model(counts)
    for warn in () if rule is None else rule.warn:
        assert rule is not None
        detected = stall(detected, warn, rule.stop, rule.mode)
    return evaluate(detected, controller(flow, model, stuck, detected), Criterion.of(detected, 1, budget))


def controller(flow: Workflow, model: StuckModel, stuck: float, detected: POMDP) -> Controller:
    """The model as a finite-state controller that reads what the detected task shows; ended runs lead nowhere."""
    nodes, number = [Node()], {Node(): 0}
    rows, moves = [], []
    for node in nodes:  # grows while it is read
        row = np.zeros(detected.num_actions)
        move = np.full((detected.num_actions, detected.num_observations), number[node])
        for call, p in model.choices(flow, node, stuck):
            a = detected.action_index(call)
            row[a] += p
            for o, shown in enumerate(detected.observations):
                answer, *warnings = shown.split("+")
                if answer not in {text for _, text, _ in flow.outcomes(node.stage, call)}:
                    continue
                reached = model.follow(flow, node, call, answer, WARNING in warnings)
                if reached.stage == len(flow.stages):
                    continue
                if reached not in number:
                    number[reached] = len(nodes)
                    nodes.append(reached)
                move[a, o] = number[reached]
        rows.append(row)
        moves.append(move)
    return Controller(np.array(rows), np.array(moves))
