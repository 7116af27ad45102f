"""Kernel: a POMDP as a function from states of any kind, and its reachable part as a table; imports pomdp.

A constructor changes the joint kernel P(s',o|s,a) of a model and nothing else: it wraps `of_model` and hands the
result to `tabulate`, which explores what can be reached and writes it down as an ordinary POMDP.
Source: design of the formal core, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pomdp.model import POMDP, ModelError
from pomdp.rational import RationalMatrix

State = Any  # hashable
Outcome = tuple[State, str, Fraction]

# Half a million states of four actions take some two gigabytes as exact rationals.
MAX_STATES = 500_000
OVER = "over"
_ONE = Fraction(1)
_BEYOND = -1  # stands for every state that is first reached when no action is left


class TooManyStates(ModelError):
    """A model whose reachable part is larger than was allowed."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A POMDP before it is tabulated: its states are whatever hashable values `start` and `step` name.

    `step(state, action index)` gives (next state, observation name, probability), in any order, repeats added up;
    `reward` the expected immediate reward; `label` the unique name of a state. `observations` are listed first in
    the table, in this order and even if they never occur; others follow as they are found (None: all of them).
    `ended` says of a state whether the run is over there, for whoever wants all such states tabulated as one.
    """

    start: Mapping[Any, Fraction]
    actions: tuple[str, ...]
    observations: tuple[str, ...] | None
    step: Callable[[Any, int], Iterable[Outcome]]
    reward: Callable[[Any, int], Fraction]
    label: Callable[[Any], str]
    discount: Fraction | None = None
    name: str = ""
    cost: bool = False
    ended: Callable[[Any], bool] = lambda state: False


def of_model(model: POMDP) -> Kernel:
    """The joint kernel P(s',o|s,a) of a POMDP; its states are the model's indices, each row computed once."""
    T, Z = [_Rows(m) for m in model.exact.T], [_Rows(m) for m in model.exact.Z]
    rewards = [model.exact.R.row(a) for a in range(model.num_actions)]
    names, zero = model.observations, Fraction(0)
    numbers: dict[tuple[int, int], Fraction] = {(1, 1): _ONE}  # models repeat few distinct numbers
    known: list[dict[int, tuple[Outcome, ...]]] = [{} for _ in model.actions]

    def number(n: int, d: int) -> Fraction:
        found = numbers.get((n, d))
        if found is None:
            found = numbers[n, d] = Fraction(n, d)
        return found

    def step(state: int, action: int) -> tuple[Outcome, ...]:
        row = known[action].get(state)
        if row is None:
            moves, bottom = T[action].entries(state)
            found: list[Outcome] = []
            for reached, n in moves:
                seen, below = Z[action].entries(reached)
                found.extend((reached, names[o], number(n * m, bottom * below)) for o, m in seen)
            row = known[action][state] = tuple(found)
        return row

    return Kernel(
        start=model.exact.start,
        actions=model.actions,
        observations=model.observations,
        step=step,
        reward=lambda state, action: rewards[action].get(state, zero),
        label=lambda state: model.states[state],
        discount=model.exact.discount,
        name=model.name,
        cost=model.cost,
    )


def tabulate(kernel: Kernel, *, horizon: int | None = None, max_states: int = MAX_STATES) -> POMDP:
    """The reachable part of `kernel` as a POMDP, exact, states in the order of first reach.

    Where P(s',o|s,a) is not T(s'|s,a) Z(o|s',a), the observation enters the state: s' stands as `s'/o`, once for
    each observation, for the actions that need it. With a horizon h a state that is first reached at depth h is
    never acted in: all such are one absorbing state `over` with reward 0 and observation `over`, declared last; so
    are states that have `ended`, unless a run starts there.
    Raises ModelError beyond `max_states`, for names that are not unique and for rows that do not sum to 1.
    """
    found = _Exploration(kernel, horizon, max_states)
    split = [found.split(a) for a in range(len(kernel.actions))]
    places = _places(found, split)
    observations = [*found.observations, _unused(OVER, found.observations)][: None if found.beyond else -1]
    R = [{i: rewards[t] for i, (t, _) in enumerate(places) if t in rewards} for rewards in found.rewards]
    return POMDP.build(
        states=_state_names(kernel, found, places),
        actions=kernel.actions,
        observations=observations,
        T=_transition_matrices(found, places, split),
        Z=_observation_matrices(found, places, len(observations)),
        R=RationalMatrix.from_rows(R, len(places)),
        start={places.index((found.index[s], None)): p for s, p in kernel.start.items() if p},
        discount=kernel.discount,
        name=kernel.name,
        cost=kernel.cost,
    )


# A conditional distribution of the observation given (action, state reached): the certain one, or all with shares.
_Emission = int | tuple[tuple[int, Fraction], ...]
# A state of the table: the number of a state of the kernel, and the observation where that has entered it.
_Place = tuple[int, int | None]


class _Rows:
    """The rows of a RationalMatrix as Python integers, which are read one at a time much faster than arrays."""

    def __init__(self, matrix: RationalMatrix) -> None:
        self._indptr, self._indices = matrix.indptr.tolist(), matrix.indices.tolist()
        self._numerators, self._denominators = matrix.numerators.tolist(), matrix.denominators.tolist()

    def entries(self, i: int) -> tuple[list[tuple[int, int]], int]:
        """(column, numerator) of row i, and its denominator."""
        span = slice(self._indptr[i], self._indptr[i + 1])
        return list(zip(self._indices[span], self._numerators[span], strict=True)), self._denominators[i]


class _Exploration:
    """What can be reached, by number: `moves[a][s]` a row of T, `emission[a][t]` the observation's distribution.

    `varying[a]` are the states in which that also depends on the state before; `rewards[a]` leaves zeros out. The
    first `started` states are those of the start; `beyond` says whether any is first reached at the horizon.
    """

    def __init__(self, kernel: Kernel, horizon: int | None, max_states: int) -> None:
        if horizon is not None and horizon < 1:
            raise ModelError(f"horizon {horizon} is below 1; give one such as 10")
        self._kernel, self._limit, self._ended = kernel, max_states, kernel.ended
        self._seen: dict[str, int] = {o: i for i, o in enumerate(kernel.observations or ())}
        self.index: dict[State, int] = {}
        self.states: list[State] = []
        self.moves: list[list[dict[int, Fraction]]] = [[] for _ in kernel.actions]
        self.emission: list[dict[int, _Emission]] = [{} for _ in kernel.actions]
        self.varying: list[set[int]] = [set() for _ in kernel.actions]
        self.rewards: list[dict[int, Fraction]] = [{} for _ in kernel.actions]
        self.beyond = False
        for state in (s for s, p in kernel.start.items() if p):
            self._add(state)
        self.started = len(self.states)
        depth, first = 0, 0
        while first < len(self.states):
            end, depth = len(self.states), depth + 1
            for s in range(first, end):
                state = self.states[s]
                for a in range(len(kernel.actions)):
                    self._expand(kernel.step(state, a), a, growing=depth != horizon)
                    reward = kernel.reward(state, a)
                    if reward:
                        self.rewards[a][s] = reward
            first = end
        self.observations = tuple(self._seen)

    def split(self, action: int) -> _Split:
        """The rows {s: {s': {observation: probability}}} of an action, where one of its s' needs the observation."""
        varying, index, seen = self.varying[action], self.index, self._seen
        found: _Split = {}
        for s, moves in enumerate(self.moves[action] if varying else ()):
            if varying.isdisjoint(moves):
                continue
            row = found[s] = {}
            for state, observation, p in self._kernel.step(self.states[s], action):
                t = index.get(state, _BEYOND)
                if p and t in varying:
                    part, o = row.setdefault(t, {}), seen[observation]
                    part[o] = part[o] + p if o in part else p
        return found

    def _expand(self, outcomes: Iterable[Outcome], action: int, growing: bool) -> None:
        """Append a row to `moves` and hold its observations against what the action showed there before."""
        index, seen = self.index, self._seen
        row: dict[int, Fraction] = {}
        shown: dict[int, int | dict[int, Fraction]] = {}
        for state, observation, p in outcomes:
            if not p:
                continue
            t = index.get(state)
            if t is None:
                t = self._add(state) if growing and not self._ended(state) else _BEYOND
            if t == _BEYOND:
                self.beyond = True
                row[t] = row.get(t, 0) + p
                continue
            o = seen.get(observation)
            if o is None:
                o = seen[observation] = len(seen)
            if t not in row:
                row[t], shown[t] = p, o
                continue
            part = shown[t]
            if isinstance(part, dict):
                part[o] = part.get(o, 0) + p
            elif part != o:
                shown[t] = {part: row[t], o: p}
            row[t] += p
        self.moves[action].append(row)
        emission = self.emission[action]
        for t, part in shown.items():
            now = part if isinstance(part, int) else tuple(sorted((o, p / row[t]) for o, p in part.items()))
            if emission.setdefault(t, now) != now:
                self.varying[action].add(t)

    def _add(self, state: State) -> int:
        t = self.index[state] = len(self.states)
        self.states.append(state)
        if t >= self._limit:
            raise TooManyStates(
                f"{self._kernel.name or 'the model'} reaches more than {self._limit} states; shorten the horizon, "
                "a limit or the context, or raise max_states"
            )
        return t


# Rows of an action that the observation has to enter: {s: {s': {observation: probability}}}.
_Split = dict[int, dict[int, dict[int, Fraction]]]


def _places(found: _Exploration, split: list[_Split]) -> list[_Place]:
    """The states of the table in order: each as it is entered, without an observation or with one."""
    plain = set(range(found.started))
    remembering: dict[int, set[int]] = {}
    for emission, varying, rows in zip(found.emission, found.varying, split, strict=True):
        plain.update(t for t in emission if t not in varying)
        for row in rows.values():
            for t, part in row.items():
                remembering.setdefault(t, set()).update(part)
    places: list[_Place] = []
    for t in range(len(found.states)):
        if t in plain:
            places.append((t, None))
        places.extend((t, o) for o in sorted(remembering.get(t, ())))
    return [*places, (_BEYOND, None)] if found.beyond else places


def _transition_matrices(
    found: _Exploration, places: list[_Place], split: list[_Split]
) -> list[RationalMatrix]:
    """T between the states of the table; one with an observation goes where the same one without it goes."""
    number = {place: i for i, place in enumerate(places)}
    plain = [number.get((t, None), 0) for t in range(len(found.states))]
    unmoved = plain == list(range(len(places)))
    origin = np.array([t if t >= 0 else len(plain) for t, _ in places])
    plain.append(len(places) - 1)  # what _BEYOND finds at the end of the list
    matrices = []
    for moves, varying, parts in zip(found.moves, found.varying, split, strict=True):
        rows = moves
        if not unmoved:
            rows = [{plain[t]: p for t, p in move.items() if t not in varying} for move in moves]
            for s, part in parts.items():
                rows[s].update((number[t, o], p) for t, shares in part.items() for o, p in shares.items())
        absorbing = {len(places) - 1: _ONE}
        matrix = RationalMatrix.from_rows([*rows, absorbing], len(places))
        matrices.append(matrix.take(origin))
    return matrices


def _observation_matrices(
    found: _Exploration, places: list[_Place], observations: int
) -> list[RationalMatrix]:
    """Z; where an action never leads to a state, what another action shows there stands."""
    usual: dict[int, _Emission] = {_BEYOND: observations - 1}
    for emission, varying in zip(found.emission, found.varying, strict=True):
        for t, seen in emission.items():
            if t not in varying:
                usual.setdefault(t, seen)
    rows: list[dict[int, Fraction]] = [{o: _ONE} for o in range(observations)]
    line: dict[_Emission, int] = {o: o for o in range(observations)}
    which = []
    for emission, varying in zip(found.emission, found.varying, strict=True):
        for t, o in places:
            seen = (
                o if o is not None else usual.get(t, 0) if t in varying else emission.get(t, usual.get(t, 0))
            )
            if seen not in line:
                line[seen] = len(rows)
                rows.append({seen: _ONE} if isinstance(seen, int) else dict(seen))
            which.append(line[seen])
    distinct = RationalMatrix.from_rows(rows, observations)
    return [distinct.take(part) for part in np.array(which).reshape(len(found.emission), len(places))]


def _state_names(kernel: Kernel, found: _Exploration, places: list[_Place]) -> list[str]:
    """A name for each state of the table; those with an observation avoid the names of the others."""
    labels = [kernel.label(state) for state in found.states]
    taken = set(labels)
    if len(taken) < len(labels):
        twice = next(name for i, name in enumerate(labels) if name in labels[:i])
        raise ModelError(
            f"two states of {kernel.name or 'the kernel'} are labelled {twice!r}; labels must be unique"
        )
    names = []
    for t, o in places:
        if o is None and t >= 0:
            names.append(labels[t])
            continue
        names.append(_unused(OVER if o is None else f"{labels[t]}/{found.observations[o]}", taken))
        taken.add(names[-1])
    return names


def _unused(name: str, taken: Collection[str]) -> str:
    """The name, or the first of `name-2`, `name-3`, ... that is not taken."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate
