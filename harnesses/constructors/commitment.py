"""Commitment: the loop asks for a plan of k actions and follows it before it asks again; imports base.

What is observed on the way is kept and handed over at the next decision, so between decisions a run is open loop. The
best value of the result is that of the best plans: V* for k = 1, and W where k reaches the horizon.
Source: M1 §1.6.5 (a plan kept by the harness, with an explicit rule for reconsidering it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from harnesses.constructors.base import Base, charge_of, chosen, count
from harnesses.kernel import Outcome
from pomdp.model import POMDP

PLANNED = "planned"
JOINER = "&"
# A state of the run, steps made of the plan, and what was observed since it was made.
_Held = tuple[int, int, tuple[str, ...]]


def commit(model: POMDP, k: Any, charge: Any = 0, reconsider: str | Sequence[str] = ()) -> POMDP:
    """The task in which only every k-th action is chosen from what was seen; `charge` is paid for each such decision.

    Within a plan `planned` is shown, at its end all results since it was made, such as `cue-left&-`. An observation
    that a pattern of `reconsider` matches ends the plan at once. Nothing is charged where the run is over. For j that
    divides k the best value at k is at most that at j, charges aside.
    Raises ModelError for a k below 1, a negative charge and a pattern that matches nothing.
    """
    length, cost = count(k, "commit k"), charge_of(charge, "commit charge")
    base = Base(model)
    given = [reconsider] if isinstance(reconsider, str) else reconsider
    triggers = {model.observations[o] for o in chosen(model.observations, given, "observation", "+")}
    waiting = planned(model)

    def step(state: _Held, action: int) -> Iterator[Outcome]:
        s, made, seen = state
        for t, o, p in base.kernel.step(s, action):
            if made + 1 == length or o in triggers:
                yield (t, 0, ()), JOINER.join((*seen, o)), p
            elif t in base.over:
                yield (t, 0, ()), waiting, p  # nothing is decided any more
            else:
                yield (t, made + 1, (*seen, o)), waiting, p

    def reward(state: _Held, action: int) -> Fraction:
        s, made, _ = state
        due = cost if made == 0 and s not in base.over else Fraction(0)
        return base.kernel.reward(s, action) - due

    def label(state: _Held) -> str:
        s, made, seen = state
        return model.states[s] if made == 0 else f"{model.states[s]}/after-{JOINER.join(seen)}"

    return base.build(
        step,
        reward,
        start={(s, 0, ()): p for s, p in base.kernel.start.items()},
        label=label,
        observations=(waiting,),
    )


def planned(model: POMDP) -> str:
    """What a run shows within a plan: a name that no observation of the model has."""
    name = PLANNED
    while name in model.observations:
        name += "-"
    return name
