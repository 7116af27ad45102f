"""Base: what a constructor reads of the model that it wraps, and its arguments at the door; imports kernel.

A state in which the run is over (nothing is earned or lost any more, whatever is done) is never wrapped: nobody calls
a tool there, so it times out, counts, warns and charges no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from harnesses.kernel import Kernel, Outcome, of_model, tabulate
from pomdp.model import POMDP, ModelError
from pomdp.rational import read_rational

ZERO, ONE = Fraction(0), Fraction(1)
ERROR, TIMEOUT, DENIED, STOPPED = "error", "timeout", "denied", "stopped"


class Base:
    """The model under a constructor: its kernel, whose states are indices, and the states in which runs are over."""

    def __init__(self, model: POMDP) -> None:
        self.model = model
        self.kernel = of_model(model)

    @cached_property
    def over(self) -> frozenset[int]:
        """The states from which on nothing is earned or lost whatever is done, decided exactly.

        An absorbing end is one; where its last result has entered the state, so are all its copies.
        """
        exact, S = self.model.exact, self.model.num_states
        over = np.ones(S, dtype=bool)
        over[exact.R.indices] = False
        while True:
            before = over.copy()
            for matrix in exact.T:
                leaves = np.zeros(S, dtype=bool)
                rows = np.repeat(np.arange(S), np.diff(matrix.indptr))
                leaves[rows[~before[matrix.indices]]] = True
                over &= ~leaves
            if np.array_equal(over, before):
                return frozenset(np.flatnonzero(over).tolist())

    def moves(self, state: int, action: int) -> dict[int, Fraction]:
        """T(.|state, action)."""
        row: dict[int, Fraction] = {}
        for t, _, p in self.kernel.step(state, action):
            row[t] = row.get(t, ZERO) + p
        return row

    def build(
        self,
        step: Callable[[Any, int], Iterable[Outcome]],
        reward: Callable[[Any, int], Fraction],
        *,
        start: Mapping[Any, Fraction] | None = None,
        label: Callable[[Any], str] | None = None,
        actions: tuple[str, ...] | None = None,
        observations: tuple[str, ...] | None = None,
    ) -> POMDP:
        """The reachable part of a kernel that keeps whatever is not given."""
        kernel = self.kernel
        return tabulate(
            Kernel(
                start=kernel.start if start is None else start,
                actions=kernel.actions if actions is None else actions,
                observations=kernel.observations if observations is None else observations,
                step=step,
                reward=reward,
                label=label or kernel.label,
                discount=kernel.discount,
                name=kernel.name,
                cost=kernel.cost,
            )
        )

    def unused_state(self, name: str) -> str:
        """The name, or with a number where a state of the model has it, alone or before bookkeeping."""
        taken, candidate, number = {s.partition("/")[0] for s in self.model.states}, name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}-{number}"
        return candidate


def chosen(names: Sequence[str], patterns: str | Sequence[str], noun: str, joiner: str) -> tuple[int, ...]:
    """Indices of the names that a pattern with `*` matches, whole or up to the joiner of a composite name.

    `listen` stands for `listen+write-a` too, `tiger-left` for `tiger-left/timeout`. Raises ModelError for a pattern
    that matches nothing.
    """
    found: set[int] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        hits = {i for i, name in enumerate(names) if _matches(name, pattern, joiner)}
        if not hits:
            shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
            raise ModelError(f"no {noun} matches {pattern!r}; known: {shown}")
        found |= hits
    return tuple(sorted(found))


def chosen_actions(model: POMDP, patterns: str | Sequence[str]) -> tuple[int, ...]:
    """Indices of actions by name or pattern; ModelError where one matches nothing."""
    return chosen(model.actions, patterns, "action", "+")


def chosen_states(model: POMDP, patterns: str | Sequence[str]) -> tuple[int, ...]:
    """Indices of states by name or pattern, with every bookkeeping of theirs; ModelError where one matches nothing."""
    return chosen(model.states, patterns, "state", "/")


def _matches(name: str, pattern: str, joiner: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name.partition(joiner)[0], pattern)


def number(value: Any, where: str) -> Fraction:
    """An exact number; ModelError naming the place."""
    try:
        return read_rational(value)
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from None


def probability(value: Any, where: str) -> Fraction:
    """An exact number from 0 to 1."""
    found = number(value, where)
    if not 0 <= found <= 1:
        raise ModelError(f"{where} is {value}, not a probability; give one from 0 to 1, such as 1/10")
    return found


def charge_of(value: Any, where: str) -> Fraction:
    """An exact cost, at least 0: it is subtracted from the reward."""
    found = number(value, where)
    if found < 0:
        raise ModelError(
            f"{where} is {value}; it is subtracted from the reward, so give 0 or more, such as 1/20"
        )
    return found


def count(value: Any, where: str, least: int = 1) -> int:
    """A whole number of at least `least`."""
    found = number(value, where)
    if found.denominator != 1 or found < least:
        raise ModelError(
            f"{where} is {value}; give a whole number of at least {least}, such as {max(least, 3)}"
        )
    return int(found)


def distribution(given: Mapping[Any, Any], where: str) -> dict[Any, Fraction]:
    """Exact probabilities that sum to 1, zeros left out."""
    row = {key: probability(p, f"{where}[{key}]") for key, p in given.items()}
    total = sum(row.values(), ZERO)
    if total != 1:
        raise ModelError(f"{where} sums to {total}, not 1; write thirds as 1/3")
    return {key: p for key, p in row.items() if p}
