"""Split: a spec's harness as a world that draws at random and what a running harness does itself; imports spec.

World: the task behind the tools, and the failures of calls (timeout, retry, gate, guard). Running: denials, budgets,
the loop detector, replies that do not parse, and calls of tools that are not there. The running parts are functions of
the visible history, so that they can stand beside the policy. Source: design of the running harness, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from harnesses.constructors.base import chosen_actions
from harnesses.constructors.catalogue import Part
from harnesses.runtime.records import AgentError
from harnesses.spec import Spec
from pomdp.model import POMDP

RUNNING = ("deny", "call_budget", "malformed", "stall", "step_limit")


@dataclass(frozen=True)
class Stall:
    """The loop detector: warned at the `warn`-th identical call, ended at the `stop`-th."""

    warn: int
    stop: int
    mode: Literal["consecutive", "total"]


@dataclass(frozen=True, eq=False)
class Split:
    """`world` M_w, and the running parts; None and empty where there is none.

    denied: action -> what a denied call is charged. unexposed: actions of the task that a model may try although no
    tool has their name. malformed: the probability and the charge of a reply that does not parse. steps: model calls
    of a run at most, the horizon among the reasons. retries: action -> how often a call that timed out is made again.
    """

    spec: Spec
    world: POMDP
    denied: Mapping[str, Fraction]
    unexposed: tuple[str, ...]
    calls: int | None
    malformed: tuple[Fraction, Fraction]
    stall: Stall | None
    retries: Mapping[str, int]
    steps: int

    @property
    def actions(self) -> tuple[str, ...]:
        """What a model may try, in the order of M_0."""
        return (*self.world.actions, *self.unexposed)


def split(spec: Spec, steps: int | None = None) -> Split:
    """The two sides of a spec. AgentError where a running harness has no equal for a part of it.

    steps: how many model calls a run has at most; by default the horizon.
    """
    parts = spec.harness.parts()
    for part, following in zip(parts, parts[1:]):
        if part.rank > following.rank and part.name in RUNNING:
            raise AgentError(
                f"{part.text} stands inside {following.text}, which no running harness can do; write it after it"
            )
    running = [part for part in parts if part.name in RUNNING]
    for name in RUNNING:
        found = [part for part in running if part.name == name]
        if len(found) > 1 and name not in ("deny", "step_limit", "call_budget"):
            raise AgentError(
                f"{found[0].text} and {found[1].text}: a running harness has one {name}; keep one"
            )
    world = _world(spec)
    also = spec.task.actions if spec.model.fixed else ()
    length = spec.criterion.horizon if steps is None else min(steps, spec.criterion.horizon or steps)
    if length is None:
        raise AgentError("a run without a horizon needs a number of steps; give --steps 20")
    limits = [part.arguments["n"] for part in running if part.name == "step_limit"]
    return Split(
        spec,
        world,
        _denied(world, running),
        tuple(name for name in also if name not in world.actions),
        min((_calls(part) for part in running if part.name == "call_budget"), default=None),
        next((_malformed(part) for part in running if part.name == "malformed"), (Fraction(0), Fraction(0))),
        next((_stall(part) for part in running if part.name == "stall"), None),
        _retries(world, parts),
        min([length, *(int(n) for n in limits)]),
    )


def _world(spec: Spec) -> POMDP:
    kept: dict[str, Any] = {
        name: tuple(part for part in getattr(spec.harness, name) if part.name not in RUNNING)
        for name in ("tools", "control", "loop")
    }
    return replace(spec.harness, **kept).inner(spec.task)


def _denied(world: POMDP, running: list[Part]) -> dict[str, Fraction]:
    found = {}
    for part in running:
        if part.name == "deny":
            for a in chosen_actions(world, part.arguments["action"]):
                found[world.actions[a]] = Fraction(part.arguments["charge"])
    return found


def _retries(world: POMDP, parts: tuple[Part, ...]) -> dict[str, int]:
    found = {}
    for part in parts:
        if part.name == "retry":
            again = int(part.arguments["r"])
            found.update({world.actions[a]: again for a in chosen_actions(world, part.arguments["action"])})
    return found


def _calls(part: Part) -> int:
    if tuple(part.arguments["actions"]) != ("*",):
        raise AgentError(f"{part.text} counts some calls only; a running harness counts all: call_budget:6")
    return int(part.arguments["n"])


def _malformed(part: Part) -> tuple[Fraction, Fraction]:
    if not part.arguments["visible"]:
        raise AgentError(f"{part.text}: a running harness shows every failure; leave `hidden` out")
    return Fraction(part.arguments["p"]), Fraction(part.arguments["charge"])


def _stall(part: Part) -> Stall:
    return Stall(int(part.arguments["warn"]), int(part.arguments["stop"]), part.arguments["mode"])
