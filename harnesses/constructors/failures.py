"""Calls that fail: denied, timed out, tried again, or never parsed; imports base.

A failed attempt earns `-charge`, a constant, never R(s,a). Whether a call timed out is no function of the next
state, so these kernels are joint ones; `harnesses.kernel` puts the outcome into the state where it must.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from harnesses.constructors.base import (
    DENIED,
    ERROR,
    ONE,
    TIMEOUT,
    ZERO,
    Base,
    charge_of,
    chosen_actions,
    count,
    probability,
)
from harnesses.kernel import Outcome
from pomdp.model import POMDP, ModelError


def deny(model: POMDP, action: str | Sequence[str], charge: Any = 0) -> POMDP:
    """Every call of `action` is denied: the state stays, `denied` is shown, `charge` is paid."""
    base, denied = Base(model), frozenset(chosen_actions(model, action))
    cost = charge_of(charge, "deny charge")

    def step(s: int, a: int) -> Sequence[Outcome]:
        if a in denied and s not in base.over:
            return ((s, DENIED, ONE),)
        return tuple(base.kernel.step(s, a))

    def reward(s: int, a: int) -> Fraction:
        return -cost if a in denied and s not in base.over else base.kernel.reward(s, a)

    return base.build(step, reward)


def timeout(model: POMDP, action: str | Sequence[str], p: Any, effect: Any = 0, charge: Any = 0) -> POMDP:
    """A call of `action` times out with probability `p` and then shows `timeout`.

    The base transition still happens with probability `effect`, unseen: a call that timed out may have acted. The
    reward is `(1 - p + p effect) R(s,a) - p (1 - effect) charge`.
    Differs from the source: M1 Def 1.4.1 makes a timeout a self-transition, which is effect 0.
    """
    share, acted = probability(p, "timeout p"), probability(effect, "timeout effect")
    cost = share * (1 - acted) * charge_of(charge, "timeout charge")
    return _timed_out(Base(model), chosen_actions(model, action), share, acted, cost)


# Powers of exact probabilities grow with the attempts; no harness makes as many.
MAX_ATTEMPTS = 1_000


def retry(
    model: POMDP,
    action: str | Sequence[str],
    r: Any,
    *,
    p: Any,
    effect: Any = 0,
    timeout_charge: Any = 0,
    charge: Any = 0,
) -> POMDP:
    """A call that times out is made again, up to `r` further times, of an action that is idempotent.

    `p`, `effect` and `timeout_charge` are those of the timeout of one attempt: a model shows too little to read them
    off, so retry stands in the place of the timeout. Each further attempt pays `charge`; R(s,a) is earned once, and
    `timeout_charge` is paid once, if every attempt fails without effect. Free attempts are exactly
    `timeout(p^(r+1), 1 - (1 - effect)^(r+1))`. Raises ModelError where T_a T_a = T_a fails in a reachable state.
    """
    attempts, share = count(r, "retry r") + 1, probability(p, "retry p")
    if attempts > MAX_ATTEMPTS:
        raise ModelError(f"retry r is {r}; at most {MAX_ATTEMPTS - 1} further attempts are made, such as 3")
    acted = 1 - (1 - probability(effect, "retry effect")) ** attempts
    failed = share**attempts
    further = sum((share**k for k in range(1, attempts)), ZERO)
    cost = failed * (1 - acted) * charge_of(timeout_charge, "retry timeout_charge")
    cost += further * charge_of(charge, "retry charge")
    base = _Idempotent(model)
    return _timed_out(base, chosen_actions(model, action), failed, acted, cost)


def _timed_out(base: Base, actions: Sequence[int], p: Fraction, effect: Fraction, cost: Fraction) -> POMDP:
    """The kernel of `timeout`, with what it costs on average."""
    timed, kernel = frozenset(actions), base.kernel

    def step(s: int, a: int) -> Iterator[Outcome]:
        if a not in timed or s in base.over:
            yield from kernel.step(s, a)
            return
        moves = base.moves(s, a)
        for t, o, q in kernel.step(s, a):
            yield t, o, (1 - p) * q
        yield s, TIMEOUT, p * (1 - effect)
        if effect:
            for t, q in moves.items():
                yield t, TIMEOUT, p * effect * q

    def reward(s: int, a: int) -> Fraction:
        if a not in timed or s in base.over:
            return kernel.reward(s, a)
        return (1 - p + p * effect) * kernel.reward(s, a) - cost

    return base.build(step, reward)


class _Idempotent(Base):
    """A base whose moves are refused where doing the action twice is not the same as doing it once."""

    def moves(self, state: int, action: int) -> dict[int, Fraction]:
        """T(.|state, action), equal to T T(.|state, action)."""
        once = super().moves(state, action)
        twice: dict[int, Fraction] = {}
        for t, p in once.items():
            for u, q in super().moves(t, action).items():
                twice[u] = twice.get(u, ZERO) + p * q
        if once != twice:
            where = f"{self.model.actions[action]} in {self.model.states[state]}"
            raise ModelError(
                f"retry of {where}: doing it twice differs from doing it once, so it is not idempotent; retry only "
                "actions such as a read, whose second call changes nothing"
            )
        return once


def malformed(
    model: POMDP, p: Any, charge: Any = 0, visible: bool = True, shows: Mapping[str, str] | None = None
) -> POMDP:
    """With probability `p` the reply does not parse: the state stays, `error` is shown, `charge` is paid.

    `visible=False` shows a fixed observation of each action instead, which says nothing about the state: that of
    `shows` {action: observation}, by default the first of the model's observations that the action can show.
    """
    share, cost = probability(p, "malformed p"), charge_of(charge, "malformed charge")
    base = Base(model)
    given = dict(shows or {})
    for action, observation in given.items():
        model.action_index(action), model.observation_index(observation)
    hidden = [given.get(action) or _first_shown(base, a) for a, action in enumerate(model.actions)]
    symbols = [ERROR] * len(hidden) if visible else hidden

    def step(s: int, a: int) -> Iterator[Outcome]:
        if s in base.over:
            yield from base.kernel.step(s, a)
            return
        for t, o, q in base.kernel.step(s, a):
            yield t, o, (1 - share) * q
        yield s, symbols[a], share

    def reward(s: int, a: int) -> Fraction:
        return (
            base.kernel.reward(s, a)
            if s in base.over
            else (1 - share) * base.kernel.reward(s, a) - share * cost
        )

    return base.build(step, reward)


def _first_shown(base: Base, action: int) -> str:
    """The first observation, in the model's order, that the action can show while a run goes on."""
    model = base.model
    seen = {
        o for s in range(model.num_states) if s not in base.over for _, o, _ in base.kernel.step(s, action)
    }
    return next((o for o in model.observations if o in seen), model.observations[0])
