"""The four elements removed from the running harness, each by its own parts; imports the runtime and the formal arms.

No loop: one reply and what it asks for. No tools: a dispatcher without any, to which the model can only write text. No
context management: the map that keeps everything, until the window is full. No control: no limit, no loop detector, no
permission rule, and an end at the first failing step, up to the cap of the experiment. Source: M1 §1.1.3.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from experiments.necessity_formal import FORBIDDEN, INTACT, SIZE, SIZES, STALL, Formal, Setting
from experiments.served_task import UNIT, ServedTask, tool_name
from harnesses.conformance.reading import BROKEN, TaskReading, intended, read
from harnesses.context.window import Full
from harnesses.runtime.control import Limits, StallRule, Subject
from harnesses.runtime.loop import Harness, end, model_step, start, tool_step
from harnesses.runtime.models import RawCall, Reply
from harnesses.runtime.records import AgentError, Reason, Run, ToolCall
from harnesses.runtime.tools import Dispatcher
from pomdp.rng import ACTION, words

REQUEST = "Earn as much as you can."
FAILING = "failing steps in a row"  # how the runtime says why it ended such a run
MEASURED = ("return", "executed", "forbidden", "replies", "overflow", "cap", "fatal")


class CountedTask(ServedTask):
    """A served task that keeps which actions reached the world."""

    def begin(self, seed: int, episode: int) -> None:
        """The first state; nothing executed."""
        super().begin(seed, episode)
        self.executed: list[str] = []

    def act(self, action: int) -> str:
        """One step."""
        self.executed.append(self.model.actions[action])
        return super().act(action)


@dataclass(frozen=True)
class Reader:
    """The policy of a formal arm as a model that reads nothing but the messages; all draws are of (seed, number, step).

    Where it has no tools it says in words what it would do.
    """

    formal: Formal
    rows: Mapping[str, int]
    names: Mapping[str, str]
    seed: int
    number: int
    name: str = "reader"

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """One call, one that does not parse, or words."""
        row = self.formal.pi[self.rows[read(messages, self.names)]]
        first, second = (float(word) * UNIT for word in words(self.seed, ACTION, self.number, step))
        shares = np.cumsum(row)
        a = min(int(np.searchsorted(shares, first * shares[-1], side="right")), len(row) - 1)
        action = self.formal.task.actions[a]
        if not tools:
            return Reply(text=f"I would now do this: {action}.")
        broken = second < float(self.formal.setting.error)
        return Reply(calls=(RawCall(tool_name(action), BROKEN if broken else "{}"),))


def rows_of(formal: Formal) -> dict[str, int]:
    """The row of each context by its text. AgentError where two that read alike are acted on differently."""
    found: dict[str, int] = {}
    for c, context in enumerate(formal.induced.contexts):
        before = found.setdefault(context.text, c)
        if not np.array_equal(formal.pi[before], formal.pi[c]):
            raise AgentError(f"context {context.text} reads like another one, in which the policy differs")
    return found


@dataclass(frozen=True)
class Ran:
    """What one run came to, by the names of MEASURED, and all that its model was shown and did."""

    measured: Mapping[str, float]
    transcript: tuple[tuple[str, str, str], ...]
    run: Run


class Arm:
    """One arm, ready to run any episode."""

    def __init__(self, formal: Formal) -> None:
        self.formal, self.setting = formal, formal.setting
        dispatcher = partial(_dispatcher, self.setting)
        self.served = CountedTask(formal.task, dispatcher)
        self.rows = rows_of(formal)

    def harness(self, model: Reader) -> Harness:
        """The running harness without what the arm lacks."""
        setting = self.setting
        free = setting.lacks("control", "limits")
        limits = Limits(
            steps=None if free else setting.horizon, tokens=None, tool_calls=None, seconds=None,
            consecutive_errors=1 if setting.lacks("control", "errors") else None,
            context_tokens=2 * SIZE * setting.pairs,
        )  # fmt: skip
        phi = Full(setting.cap) if setting.lacks("context") else self.formal.induced.phi
        rules = () if free else (StallRule("consecutive", STALL[:1], STALL[1], self._key),)
        return Harness(
            model, self.served.dispatcher, phi, limits, rules, TaskReading(SIZES, self.served.names)
        )

    def run(self, seed: int, number: int) -> Ran:
        """One run to its end, or to the cap. AgentError where the model broke: it has no row for what it was shown."""
        self.served.begin(seed, number)
        harness = self.harness(Reader(self.formal, self.rows, self.served.names, seed, number))
        run = start(harness, REQUEST)
        while not run.state.terminated and run.state.step < self.setting.cap:
            run = model_step(harness, run)
            if not run.state.terminated:
                run = tool_step(harness, run)
            if self.served.over and not run.state.terminated:
                run = end(harness, run, Reason.COMPLETED)
            if self.setting.lacks("loop"):
                break
        crashed = self.setting.lacks("control", "errors") and run.state.consecutive_errors > 0
        if crashed and not run.state.terminated:
            run = end(harness, run, Reason.ERROR, f"{run.state.consecutive_errors} {FAILING}")
        reason, executed = run.state.termination_reason, self.served.executed
        if reason is Reason.ERROR and run.state.detail != f"1 {FAILING}":
            raise AgentError(
                f"a run of the arm {self.setting.arm} broke instead of ending: {run.state.detail}"
            )
        measured = {
            "return": self.served.earned,
            "executed": float(len(executed)),
            "forbidden": float(executed.count(FORBIDDEN)),
            "replies": float(run.state.step),
            "overflow": float(reason is Reason.CONTEXT_OVERFLOW),
            "cap": float(reason is None and not self.setting.lacks("loop")),
            "fatal": float(reason is Reason.ERROR),
        }
        return Ran(measured, tuple((m.role, m.content, str(m.calls)) for m in run.history), run)

    def _key(self, subject: Subject) -> str:
        """Which action is repeated: that of a call, or that of a reply that does not parse."""
        return subject.name if isinstance(subject, ToolCall) else intended(subject)


def _dispatcher(setting: Setting, tools: Any, permissions: Any, clock: Any) -> Dispatcher:
    if setting.lacks("tools"):
        return Dispatcher((), {}, clock=clock)
    if not setting.lacks("control", "permissions"):
        permissions = {**permissions, tool_name(FORBIDDEN): (_denied,)}
    return Dispatcher(tools, permissions, clock=clock)


def _denied(call: ToolCall) -> str:
    return f"{call.name} is not permitted"


def seed_of(setting: Setting, seed: int) -> int:
    """One world for all arms of a task and error rate: their differences are paired."""
    return (zlib.crc32(f"necessity {setting.task} {setting.error}".encode()) + seed) % 2**32


def run_arms(formals: Mapping[str, Formal], episodes: int, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Per arm, `[E]` of each measure, and `changed`: whether the run was another one than the intact harness's."""
    found: dict[str, dict[str, np.ndarray]] = {}
    intact: list[tuple[tuple[str, str, str], ...]] = []
    for name in (INTACT, *(arm for arm in formals if arm != INTACT)):
        arm = Arm(formals[name])
        runs = [arm.run(seed_of(arm.setting, seed), number) for number in range(episodes)]
        intact = intact or [run.transcript for run in runs]
        found[name] = {key: np.array([run.measured[key] for run in runs]) for key in MEASURED}
        found[name]["changed"] = np.array([float(a.transcript != b) for a, b in zip(runs, intact)])
    return found
