"""Budgets and the loop detector: what ends a run from outside; imports base.

The count is part of the state, written after its name: `tiger-left/call-2`. Where a run ends, `stop` follows: every
further call shows `stopped` and earns 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from harnesses.constructors.base import ONE, STOPPED, ZERO, Base, chosen_actions, count
from harnesses.kernel import Outcome
from pomdp.model import POMDP, ModelError

CONSECUTIVE, TOTAL = "consecutive", "total"
WARNING = "warning"
_STOP = (-1, ())


def step_limit(model: POMDP, n: Any) -> POMDP:
    """The n-th iteration still happens; then `stop`. Every iteration counts, whatever came of it."""
    return _budget(model, count(n, "step_limit n"), range(model.num_actions), "step")


def call_budget(model: POMDP, n: Any, actions: str | Sequence[str] = "*") -> POMDP:
    """The n-th call of `actions`, executed or merely attempted, still happens; then `stop`."""
    return _budget(model, count(n, "call_budget n"), chosen_actions(model, actions), "call")


def _budget(model: POMDP, n: int, counted: Sequence[int], noun: str) -> POMDP:
    """States are (base state, calls so far); those in which the run is over count nothing."""
    base, counts, stop = Base(model), frozenset(counted), Base(model).unused_state("stop")

    def step(state: tuple[int, int], a: int) -> Iterator[Outcome]:
        s, k = state
        if s < 0:
            yield state, STOPPED, ONE
            return
        after = k + 1 if a in counts else k
        for t, o, p in base.kernel.step(s, a):
            if t in base.over:
                yield (t, -1), o, p
            else:
                yield (-1, -1) if after == n else (t, after), o, p

    def label(state: tuple[int, int]) -> str:
        s, k = state
        return stop if s < 0 else model.states[s] if k < 0 else f"{model.states[s]}/{noun}-{k}"

    return base.build(
        step,
        lambda state, a: ZERO if state[0] < 0 else base.kernel.reward(state[0], a),
        start={(s, -1 if s in base.over else 0): p for s, p in base.kernel.start.items()},
        label=label,
    )


def stall(model: POMDP, warn: Any, stop: Any, mode: str = CONSECUTIVE) -> POMDP:
    """A loop detector: the `warn`-th identical call shows `o+warning`, the `stop`-th is not executed and ends the run.

    mode "consecutive": another call in between starts the count anew, and the last call with its run length enters
    the state; "total": every call of the same action counts, and all counts enter the state. The stopping call earns
    0 and shows `stopped`. Raises ModelError unless 1 <= warn < stop. Source: M1 §1.2.5.
    """
    first, last = count(warn, "stall warn"), count(stop, "stall stop")
    if first >= last:
        raise ModelError(
            f"stall warns at call {first} and stops at {last}; give warn < stop, such as stall:3:4"
        )
    if mode not in (CONSECUTIVE, TOTAL):
        raise ModelError(f"stall mode {mode!r} is neither {CONSECUTIVE} nor {TOTAL}")
    base, end = Base(model), Base(model).unused_state("stop")

    def counted(seen: tuple[int, ...], a: int) -> tuple[int, tuple[int, ...]]:
        """The number of this call among identical ones, and the record after it."""
        if mode == CONSECUTIVE:
            run = seen[1] + 1 if seen and seen[0] == a else 1
            return run, (a, run)
        counts = list(seen or (0,) * model.num_actions)
        counts[a] += 1
        return counts[a], tuple(counts)

    def step(state: tuple[int, tuple[int, ...]], a: int) -> Iterator[Outcome]:
        s, seen = state
        if s < 0:
            yield state, STOPPED, ONE
        elif s in base.over:
            yield from ((((t, ()), o, p)) for t, o, p in base.kernel.step(s, a))
        else:
            run, after = counted(seen, a)
            if run >= last:
                yield _STOP, STOPPED, ONE
                return
            for t, o, p in base.kernel.step(s, a):
                shown = f"{o}+{WARNING}" if run == first else o
                yield (t, () if t in base.over else after), shown, p

    def reward(state: tuple[int, tuple[int, ...]], a: int) -> Fraction:
        s, seen = state
        if s < 0 or (s not in base.over and counted(seen, a)[0] >= last):
            return ZERO
        return base.kernel.reward(s, a)

    def label(state: tuple[int, tuple[int, ...]]) -> str:
        s, seen = state
        if s < 0:
            return end
        calls = [seen] if mode == CONSECUTIVE and seen else [(a, k) for a, k in enumerate(seen) if k]
        marks = "/".join(f"{model.actions[a]}-{k}" for a, k in calls)
        return f"{model.states[s]}/{marks}" if marks else model.states[s]

    return base.build(step, reward, start={(s, ()): p for s, p in base.kernel.start.items()}, label=label)
