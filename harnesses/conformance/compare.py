"""Compare: episodes of one spec in every engine, step by step, and what was met on the way; imports episode.

The reference is the tabular simulator: `Conformance.reference` gives any episode of `Conformance.simulate` by its
number, so that one of a million can be run again in LangGraph.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from harnesses.case import Case, Effort
from harnesses.conformance.episode import Engine, Episode, engine, running, tabular
from harnesses.conformance.policy_model import PolicyModel, rows_by_text
from harnesses.conformance.served import Served
from harnesses.conformance.split import Split, split
from harnesses.conformance.table import Table, table
from harnesses.runtime.records import AgentError, Reason
from harnesses.spec import Spec
from pomdp.criterion import Criterion
from pomdp.simulate import Simulation, simulate, trajectories
from pomdp.value import evaluate

# The policy is part of the question, not of the answer: a better search would only change which one is compared.
EFFORT = Effort(gap=1e-3, seconds=2.0, certify=False)
MET = ("timeout", "denied", "malformed", "unknown", "warning", "stalled", "tool_call_budget", "step_limit")
"""What can be met: statuses of calls, replies that do not parse, calls of no tool, warnings, and ends of runs."""


@dataclass(frozen=True)
class Difference:
    """Where an engine left the tabular simulator: at which step, in what, and both values in words."""

    engine: Engine
    episode: int
    step: int | None
    what: str
    expected: str
    found: str

    @property
    def text(self) -> str:
        """One line."""
        where = "at the end" if self.step is None else f"step {self.step}"
        return (
            f"{self.engine}, episode {self.episode}, {where}: {self.what} {self.found}, not {self.expected}"
        )


@dataclass(frozen=True, eq=False)
class Compared:
    """What the comparison of one spec found; `met` counts over the reference episodes, `steps` over all engines."""

    spec: Spec
    engines: tuple[Engine, ...]
    episodes: int
    steps: int
    differences: int
    first: Difference | None
    met: Counter[str]

    def json(self) -> dict[str, Any]:
        """As data."""
        return {
            **self.spec.json(),
            "engines": list(self.engines),
            "episodes": self.episodes,
            "steps": self.steps,
            "differences": self.differences,
            "first": None if self.first is None else vars(self.first),
            "met": {name: self.met[name] for name in MET},
        }


@dataclass(frozen=True, eq=False)
class Conformance:
    """A spec ready to run in every engine. AgentError, ModelError where it cannot."""

    spec: Spec
    split: Split
    table: Table
    formal: float = field(repr=False)

    @classmethod
    def of(cls, spec: Spec, steps: int | None = None) -> Conformance:
        """The policy of the spec's model, and its table. steps: of a run at most; by default the horizon."""
        asked = spec if steps is None else spec.asked(None, min(steps, spec.criterion.horizon or steps))
        parts = split(asked, steps)
        case = Case(asked, EFFORT)
        made = table(parts, case.induced, case.pi)
        rows_by_text(made)
        found = cls(asked, parts, made, case.returned)
        if abs(found.tabled - found.formal) > 1e-9 * max(1.0, abs(found.formal)):
            raise AgentError(
                f"the order of the parts matters to the law (J {found.formal:.9g} against {found.tabled:.9g}), and a "
                "running harness has one order; write tools, timeouts, deny, call_budget, stall, step_limit"
            )
        return found

    @cached_property
    def tabled(self) -> float:
        """J of the table's agent, exact but for rounding; `formal` is J of the policy on the induced POMDP."""
        criterion = Criterion.of(self.table.model, self.spec.criterion.discount, self.split.steps)
        return evaluate(self.table.model, self.table.controller, criterion)

    @cached_property
    def served(self) -> Served:
        """The world behind its tools."""
        return Served(self.table)

    def simulate(self, episodes: int, seed: int = 0, **options: Any) -> Simulation:
        """Monte Carlo of the table, `pomdp.simulate`; its episodes are those of `reference` with the same seed."""
        criterion = Criterion.of(self.table.model, self.spec.criterion.discount, self.split.steps)
        return simulate(
            self.table.model, self.table.agent, criterion, episodes=episodes, seed=seed, **options
        )

    def reference(self, episodes: Iterable[int], seed: int = 0) -> dict[int, Episode]:
        """The steps of episodes by number, in the tabular simulator."""
        paths = trajectories(self.table.model, self.table.agent, episodes, steps=self.split.steps, seed=seed)
        return {number: tabular(self.table, path) for number, path in paths.items()}

    def policy(self, seed: int, episode: int) -> PolicyModel:
        """The model of one episode."""
        return PolicyModel.of(self.table, self.served.names, seed, episode)

    def compare(
        self,
        engines: Sequence[Engine],
        episodes: Sequence[int],
        seed: int = 0,
        progress: Callable[[], object] = lambda: None,
        react: Any = None,
    ) -> Compared:
        """The episodes in every engine against the reference; `progress` is called after each run.

        react: a class in place of `ReactGraph`, for tests that plant a fault in it.
        """
        expected = self.reference(episodes, seed)
        met: Counter[str] = Counter()
        for reference in expected.values():
            met.update(_met(self.table, reference))
        count, steps, first = 0, 0, None
        for name in engines:
            with tempfile.TemporaryDirectory(prefix="conform-") as folder, engine(name, folder) as saver:
                for number, reference in expected.items():
                    try:
                        found = running(self.served, self.policy(seed, number), saver, react)
                    except Exception as error:  # an engine that breaks has left the reference too
                        words = f"{type(error).__name__}: {error}"
                        apart = [Difference(name, number, None, "the run", "a run to its end", words)]
                    else:
                        steps += len(found.steps)
                        apart = differences(name, number, reference, found)
                    count, first = count + len(apart), first or next(iter(apart), None)
                    progress()
        return Compared(self.spec, tuple(engines), len(expected), steps, count, first, met)


def differences(name: Engine, number: int, expected: Episode, found: Episode) -> list[Difference]:
    """Everything in which a run is not the reference: fields of steps, missing or further steps, the reason."""
    apart = []
    for t, (a, b) in enumerate(zip(expected.steps, found.steps)):
        for entry in fields(a):
            one, other = getattr(a, entry.name), getattr(b, entry.name)
            if one != other:
                apart.append(Difference(name, number, t, entry.name, repr(one), repr(other)))
    if len(expected.steps) != len(found.steps):
        lengths = str(len(expected.steps)), str(len(found.steps))
        apart.append(Difference(name, number, None, "number of steps", *lengths))
    if expected.reason != found.reason:
        apart.append(Difference(name, number, None, "reason", expected.reason, found.reason))
    return apart


def _met(made: Table, episode: Episode) -> Counter[str]:
    """What an episode met."""
    found: Counter[str] = Counter()
    for step in episode.steps:
        name, *warnings = step.observation.split("+")
        found["warning"] += len(warnings) if warnings == ["warning"] else 0
        if step.executed is None:
            unknown = name == "error" and step.action in made.split.unexposed
            found["denied"] += name == "denied"
            found["unknown"] += unknown
            found["malformed"] += name == "error" and not unknown
        else:
            found["timeout"] += name == "timeout"
    found["stalled"] += episode.reason is Reason.STALLED
    found["tool_call_budget"] += episode.reason is Reason.TOOL_CALL_BUDGET
    found["step_limit"] += episode.reason is Reason.STEP_LIMIT
    return found
