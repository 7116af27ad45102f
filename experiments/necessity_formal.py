"""The four elements removed, on the formal side: one harness per arm, and what a model does in it; imports harnesses.

What a property counts is a reward of the task, so that every constructor treats it as it treats rewards: a call that
is denied, does not parse or ends a stalled run was not executed. Source: M1 §1.1.3, Def 1.4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from harnesses.constructors.base import DENIED, ERROR, ONE, ZERO, Base
from harnesses.constructors.catalogue import Part, parse_part
from harnesses.context import Sizes, parse_map
from harnesses.harness import Harness, Induced
from harnesses.kernel import Outcome
from harnesses.lookahead import Lookahead
from harnesses.models import naive_scores, policy
from pomdp.bounds import solve
from pomdp.criterion import Criterion
from pomdp.library import task as library_task
from pomdp.model import POMDP

FORBIDDEN, DELETED, OWN_ERROR = "delete", "deleted", "import-error"
SIZE = 100
SIZES = Sizes(results={"warning": 0}, default=SIZE)
"""Every call and every result has the same size, so that a full window holds a fixed number of pairs."""
STALL = (3, 4)

INTACT = "intact"
ELEMENTS = ("loop", "tools", "context", "control")
PARTS_OF_CONTROL = ("limits", "permissions", "errors")
ARMS = (INTACT, *ELEMENTS, *PARTS_OF_CONTROL)
"""Each arm but the first is named by what is removed; a removed control has none of its three parts."""


@dataclass(frozen=True)
class Setting:
    """A task with its horizon, the pairs that fit the model's window, the model's error rate, and the arm.

    error: how often a reply does not parse, and how often one that does is any call at all, the forbidden one among
    them. cap: the replies after which the experiment stops a run that no limit ends.
    """

    task: str
    horizon: int
    pairs: int
    error: Fraction
    arm: str
    cap: int

    def lacks(self, *elements: str) -> bool:
        """Whether the arm is without one of these."""
        return self.arm in elements

    @property
    def steps(self) -> int:
        """Model calls of a run at most, whatever ends it earlier: a full window ends it before the next call."""
        if self.lacks("loop", "tools"):
            return 1
        if self.lacks("context"):
            return min(self.horizon, self.pairs + 1)
        return self.cap if self.lacks("control", "limits") else self.horizon

    def harness(self, counts: str = "return") -> Harness:
        """The arm's constructors; its limit on steps is the criterion's horizon, which is what `step_limit` is."""
        denied = "*" if self.lacks("tools") else None if self.lacks("control", "permissions") else FORBIDDEN
        control = [] if denied is None else [f"deny:{denied}"]
        if not self.lacks("control", "limits"):
            control.append(f"stall:{STALL[0]}:{STALL[1]}")
        loop = [parse_part(f"malformed:{self.error}")] if self.error else []
        if self.lacks("control", "errors"):
            loop.append(Part("loop", "fatal", "fatal", 95, partial(fatal, counted=counts == "fatal")))
        parts = tuple(parse_part(text) for text in control)
        return Harness((), parts, tuple(loop), parse_map(f"last:{self.pairs}"))


def fatal(model: POMDP, counted: bool = False) -> POMDP:
    """No error handling: a reply that does not parse and a call that is denied end the run.

    counted: the reward is 1 for such an end and nothing else.
    """
    base = Base(model)
    lost = base.unused_state("crashed")

    def step(s: int, a: int) -> Iterator[Outcome]:
        for t, o, p in base.kernel.step(max(s, 0), a):
            crashed = s < 0 or (o in (ERROR, DENIED) and s not in base.over)
            yield (-1 if crashed else t), o, p

    def reward(s: int, a: int) -> Fraction:
        if s < 0 or not counted:
            return ZERO if s < 0 else base.kernel.reward(s, a)
        return sum((p for t, _, p in step(s, a) if t < 0), ZERO)

    return base.build(step, reward, label=lambda s: lost if s < 0 else model.states[s])


def hazardous(task: POMDP, counts: str = "return") -> POMDP:
    """The task with one more call, `delete`, which ends the run and costs as much as the largest reward or cost.

    counts: the reward, or what stands in its place: 1 for each `executed` call, or for each `forbidden` one.
    """
    renamed = tuple(OWN_ERROR if o == ERROR else o for o in task.observations)
    base = Base(replace(task, observations=renamed))
    gone, last = base.unused_state("gone"), task.num_actions
    harm = max(abs(base.kernel.reward(s, a)) for s in range(task.num_states) for a in range(last))

    def step(s: int, a: int) -> Iterator[Outcome]:
        if s < 0 or a == last:
            yield (s if s in base.over else -1), DELETED, ONE
        else:
            yield from base.kernel.step(s, a)

    def reward(s: int, a: int) -> Fraction:
        if s < 0 or s in base.over:
            return ZERO
        if counts != "return":
            return ONE if counts != "forbidden" or a == last else ZERO
        return -harm if a == last else base.kernel.reward(s, a)

    return base.build(
        step, reward, label=lambda s: gone if s < 0 else task.states[s], actions=(*task.actions, FORBIDDEN),
        observations=(*renamed, DELETED),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Formal:
    """A setting as an induced POMDP with the model's policy `pi` `[C, A]`, and the task without its harness."""

    setting: Setting
    task: POMDP
    induced: Induced
    pi: np.ndarray

    @classmethod
    def of(cls, setting: Setting) -> Formal:
        """The naive reader of the window, which at the error rate does anything instead."""
        task, lookahead = _solved(setting.task, setting.horizon)
        induced = _induced(setting, task)
        # The same model in every arm: it counts on the horizon of the intact harness.
        asked = replace(induced, criterion=lookahead.criterion)
        best = policy(naive_scores(asked, lookahead), 0.0)
        e = float(setting.error)
        return cls(setting, task, induced, (1 - e) * best + e / best.shape[1])

    def exact(self) -> dict[str, float]:
        """Expected return, executed and forbidden calls and replies of a run, and how it ends: exact but for rounding.

        overflow, cap, fatal: the chances that a full window, the experiment's cap or a failing step ended the run.
        """
        setting, steps, induced = self.setting, self.setting.steps, self.induced
        on = induced.shown >= 0
        visits = np.array([mass[on] for mass in induced.occupancy(self.pi, steps + 1)])
        live, met = visits.sum(axis=1), visits[:steps].sum(axis=0)
        found = {"replies": float(live[:steps].sum()), "overflow": 0.0, "cap": 0.0}
        if setting.lacks("context") and steps < setting.horizon:
            found["overflow"] = float(live[steps])
        if setting.lacks("control", "limits"):
            found["cap"] = float(live[steps])
        chosen = self.pi[induced.shown[on]]
        for counts in ("return", "executed", "forbidden", "fatal"):
            rewards = self._rewards(counts)
            found[counts] = (
                0.0
                if rewards is None
                else float(np.einsum("n,na,an->", met, chosen, rewards[:, induced.origin[on]]))
            )
        return found

    def _rewards(self, counts: str) -> np.ndarray | None:
        """`[A, S]` of M_0 with another reward; None where it is 0, as what counts is denied or never tried."""
        setting, inner = self.setting, self.induced.inner
        if counts == "return":
            return inner.R
        if setting.lacks("tools") or (counts == "forbidden" and not setting.lacks("control", "permissions")):
            return None
        if counts == "fatal" and not (setting.lacks("control", "errors") and setting.error):
            return None  # a model without errors does not try what is forbidden
        other = setting.harness(counts).inner(hazardous(library_task(setting.task).model, counts))
        assert other.states == inner.states
        return other.R


@lru_cache(maxsize=8)
def _solved(name: str, horizon: int) -> tuple[POMDP, Lookahead]:
    task = hazardous(library_task(name).model)
    criterion = Criterion.of(task, 1, horizon)
    return task, Lookahead.of(solve(task, criterion, gap=1e-9, time_limit=20.0, certify=False))


def _induced(setting: Setting, task: POMDP) -> Induced:
    """One step more than a run has, to see whether it would have gone on."""
    criterion = Criterion.of(task, 1, setting.steps + 1)
    return setting.harness().induce(task, criterion, SIZES)
