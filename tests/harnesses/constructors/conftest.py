"""Oracles for constructors, as fixtures: processes and best values by enumeration, apart from the code tested."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import pytest

from pomdp.model import POMDP

Outcomes = Iterable[tuple[Hashable, str, Fraction]]
History = tuple[tuple[str, str], ...]
# Of each history of positive probability: its probability and, times it, the expected reward of each action.
Process = dict[History, tuple[Fraction, tuple[tuple[str, Fraction], ...]]]


@dataclass(frozen=True)
class Rules:
    """A process written down as in a definition: `step(s, action name)`, `reward(s, action name)`."""

    start: Mapping[Hashable, Fraction]
    actions: tuple[str, ...]
    step: Callable[[Hashable, str], Outcomes]
    reward: Callable[[Hashable, str], Fraction]


def rules_of(model: POMDP) -> Rules:
    """The rules of a model, read from its exact matrices."""
    T = {name: list(model.exact.T[a].rows()) for a, name in enumerate(model.actions)}
    Z = {name: list(model.exact.Z[a].rows()) for a, name in enumerate(model.actions)}
    R = {name: model.exact.R.row(a) for a, name in enumerate(model.actions)}

    def step(s: Hashable, action: str) -> Outcomes:
        assert isinstance(s, int)
        for t, p in T[action][s].items():
            for o, q in Z[action][t].items():
                yield t, model.observations[o], p * q

    return Rules(model.exact.start, model.actions, step, lambda s, action: R[action].get(s, Fraction(0)))


def enumerate_process(given: POMDP | Rules, length: int) -> Process:
    """Every history of up to `length` pairs; two models are the same process if these agree for every length."""
    rules = rules_of(given) if isinstance(given, POMDP) else given
    found: Process = {}
    level: dict[History, dict[Hashable, Fraction]] = {(): dict(rules.start)}
    for t in range(length + 1):
        following: dict[History, dict[Hashable, Fraction]] = {}
        for history, measure in level.items():
            rewards = {
                action: sum((m * rules.reward(s, action) for s, m in measure.items()), Fraction(0))
                for action in rules.actions
            }
            found[history] = sum(measure.values(), Fraction(0)), tuple(sorted(rewards.items()))
            for action in rules.actions if t < length else ():
                for s, m in measure.items():
                    for after, o, p in rules.step(s, action):
                        if p:
                            mass = following.setdefault((*history, (action, o)), {})
                            mass[after] = mass.get(after, Fraction(0)) + m * p
        level = following
    return found


def best_value(given: POMDP | Rules, discount: Fraction, steps: int) -> Fraction:
    """V* of `steps` steps, by recursion over unnormalised beliefs."""
    rules = rules_of(given) if isinstance(given, POMDP) else given

    def value(measure: dict[Hashable, Fraction], left: int) -> Fraction:
        if left == 0:
            return Fraction(0)
        return max(action_value(measure, action, left) for action in rules.actions)

    def action_value(measure: dict[Hashable, Fraction], action: str, left: int) -> Fraction:
        total = sum((m * rules.reward(s, action) for s, m in measure.items()), Fraction(0))
        if left == 1:
            return total
        children: dict[str, dict[Hashable, Fraction]] = {}
        for s, m in measure.items():
            for t, o, p in rules.step(s, action):
                if p:
                    child = children.setdefault(o, {})
                    child[t] = child.get(t, Fraction(0)) + m * p
        return total + discount * sum((value(child, left - 1) for child in children.values()), Fraction(0))

    return value(dict(rules.start), steps)


def absorbing(model: POMDP) -> set[int]:
    """The states in which a run is over."""
    rules = rules_of(model)
    return {
        s
        for s in range(model.num_states)
        if all({t for t, _, _ in rules.step(s, a)} == {s} and rules.reward(s, a) == 0 for a in model.actions)
    }


def nonnegative(model: POMDP) -> POMDP:
    """The model with the size of each reward for the reward."""
    return POMDP.build(
        states=model.states,
        actions=model.actions,
        observations=model.observations,
        T=model.exact.T,
        Z=model.exact.Z,
        R=[
            [abs(model.exact.R.row(a).get(s, 0)) for s in range(model.num_states)]
            for a in range(model.num_actions)
        ],
        start=model.exact.start,
        discount=model.exact.discount,
    )


def leavable(model: POMDP) -> POMDP:
    """The model with `wait` (nothing happens, nothing is shown, 0) and `finish` (to an absorbing `end`, 0)."""
    S, A, O = model.num_states, model.num_actions, model.num_observations
    end, one = {S: Fraction(1)}, Fraction(1)
    still = [{s: one} for s in range(S + 1)]
    T = [[*model.exact.T[a].rows(), end] for a in range(A)] + [still, [end] * (S + 1)]
    Z = [[*model.exact.Z[a].rows(), {O: one}] for a in range(A)] + [[{O: one}] * (S + 1)] * 2
    R = [[model.exact.R.row(a).get(s, 0) for s in range(S)] + [0] for a in range(A)] + [[0] * (S + 1)] * 2
    return POMDP.build(
        states=(*model.states, "end"),
        actions=(*model.actions, "wait", "finish"),
        observations=(*model.observations, "-"),
        T=T,
        Z=Z,
        R=R,
        start=model.exact.start,
        discount=model.exact.discount,
    )


@dataclass(frozen=True)
class Oracle:
    """What the fixtures hand out, so that a test asks for one thing."""

    rules = staticmethod(rules_of)
    Rules = Rules
    process = staticmethod(enumerate_process)
    best = staticmethod(best_value)
    absorbing = staticmethod(absorbing)
    nonnegative = staticmethod(nonnegative)
    leavable = staticmethod(leavable)


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Processes, best values and model variants by enumeration."""
    return Oracle()
