"""Kernel: a POMDP as a function from states of any kind, and its reachable part as a table; imports pomdp.

A constructor changes the joint kernel P(s',o|s,a) of a model and nothing else: it wraps `of_model` and hands the
result to `tabulate`, which explores what can be reached and writes it down as an ordinary POMDP.
Source: design of the formal core, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pomdp.model import POMDP, ModelError
from pomdp.rational import RationalMatrix

State = Hashable
Outcome = tuple[State, str, Fraction]

# Half a million states of four actions take some two gigabytes as exact rationals.
MAX_STATES = 500_000
OVER = "over"
_ONE = Fraction(1)
_BEYOND = -1  # stands for every state that is first reached when no action is left


@dataclass(frozen=True, eq=False)
class Kernel:
    """A POMDP before it is tabulated: its states are whatever hashable values `start` and `step` name.

    `step(state, action index)` gives (next state, observation name, probability), in any order, repeats added up;
    `reward` the expected immediate reward; `label` the unique name of a state. `observations` are listed first in
    the table, in this order and even if they never occur; others follow as they are found (None: all of them).
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
            found = []
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
    never acted in: all such are one absorbing state `over` with reward 0 and observation `over`, declared last.
    Raises ModelError beyond `max_states`, for names that are not unique and for rows that do not sum to 1.
    """
    found = _Exploration(kernel, horizon, max_states)
    emissions = [_emissions(rows) for rows in found.joint]
    places = _places(found, emissions)
    number = {place: i for i, place in enumerate(places)}
    observations = [*found.observations, _unused(OVER, found.observations)][: None if found.beyond else -1]
    absorbing = {len(places) - 1: _ONE}
    T = []
    for rows, (_, split) in zip(found.joint, emissions, strict=True):
        moves = [_moves(row, split, number) for row in rows]
        T.append(
            RationalMatrix.from_rows([moves[t] if t >= 0 else absorbing for t, _ in places], len(places))
        )
    R = [{i: rewards[t] for i, (t, _) in enumerate(places) if t in rewards} for rewards in found.rewards]
    return POMDP.build(
        states=_state_names(kernel, found, places),
        actions=kernel.actions,
        observations=observations,
        T=T,
        Z=_observation_matrices(places, emissions, len(observations)),
        R=RationalMatrix.from_rows(R, len(places)),
        start={number[found.index[s], None]: p for s, p in kernel.start.items() if p},
        discount=kernel.discount,
        name=kernel.name,
        cost=kernel.cost,
    )


# A conditional distribution of the observation given (action, state reached): the certain one, or all with shares.
_Emission = int | tuple[tuple[int, Fraction], ...]
_Joint = dict[tuple[int, int], Fraction]  # (state reached, observation) -> probability
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
    """What can be reached: joint rows `joint[a][s]`, nonzero rewards `rewards[a]`, states and observations by number.

    The first `started` states are those of the start; `beyond` says whether anything is first reached at the horizon.
    """

    def __init__(self, kernel: Kernel, horizon: int | None, max_states: int) -> None:
        if horizon is not None and horizon < 1:
            raise ModelError(f"horizon {horizon} is below 1; give one such as 10")
        self._limit, self._name = max_states, kernel.name or "the model"
        self._seen: dict[str, int] = {o: i for i, o in enumerate(kernel.observations or ())}
        self.index: dict[State, int] = {}
        self.states: list[State] = []
        self.joint: list[list[_Joint]] = [[] for _ in kernel.actions]
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
                for a, (rows, rewards) in enumerate(zip(self.joint, self.rewards, strict=True)):
                    rows.append(self._row(kernel.step(state, a), growing=depth != horizon))
                    reward = kernel.reward(state, a)
                    if reward:
                        rewards[s] = reward
            first = end
        self.observations = tuple(self._seen)

    def _row(self, outcomes: Iterable[Outcome], growing: bool) -> _Joint:
        row: _Joint = {}
        index, seen = self.index, self._seen
        for state, observation, p in outcomes:
            if not p:
                continue
            t = index.get(state)
            if t is None and growing:
                t = self._add(state)
            if t is None:
                self.beyond = True
                key = (_BEYOND, 0)
            else:
                o = seen.get(observation)
                if o is None:
                    o = seen[observation] = len(seen)
                key = (t, o)
            row[key] = row[key] + p if key in row else p
        return row

    def _add(self, state: State) -> int:
        t = self.index[state] = len(self.states)
        self.states.append(state)
        if t >= self._limit:
            raise ModelError(
                f"{self._name} reaches more than {self._limit} states; shorten the horizon, a limit or the context, "
                "or raise max_states"
            )
        return t


# Of one action: Pr(o|s') by s', and of each s' where that depends on the state before, the observations it needs.
_Emissions = tuple[dict[int, _Emission], dict[int, set[int]]]


def _emissions(rows: list[_Joint]) -> _Emissions:
    """How the observations of an action follow from the state reached."""
    emission: dict[int, _Emission] = {}
    split: dict[int, set[int]] = {}
    for row in rows:
        for t, seen in _by_state(row):
            if emission.setdefault(t, seen) != seen:
                split[t] = set()
    for row in rows if split else ():
        for t, o in row:
            if t in split:
                split[t].add(o)
    return emission, split


def _by_state(row: _Joint) -> Iterable[tuple[int, _Emission]]:
    """(state reached, conditional distribution of the observation) of a joint row, `_BEYOND` left out."""
    if len({t for t, _ in row}) == len(row):
        return [key for key in row if key[0] >= 0]
    parts: dict[int, list[tuple[int, Fraction]]] = {}
    for (t, o), p in row.items():
        if t >= 0:
            parts.setdefault(t, []).append((o, p))
    return [(t, _shares(part)) for t, part in parts.items()]


def _shares(part: list[tuple[int, Fraction]]) -> _Emission:
    """Probabilities divided by their sum, in one form for each distribution."""
    if len(part) == 1:
        return part[0][0]
    total = sum((p for _, p in part), Fraction(0))
    return tuple(sorted((o, p / total) for o, p in part))


def _places(found: _Exploration, emissions: list[_Emissions]) -> list[_Place]:
    """The states of the table in order: each as it is entered, without an observation or with one."""
    plain = set(range(found.started))
    remembering: dict[int, set[int]] = {}
    for emission, split in emissions:
        plain.update(t for t in emission if t not in split)
        for t, seen in split.items():
            remembering.setdefault(t, set()).update(seen)
    places: list[_Place] = []
    for t in range(len(found.states)):
        if t in plain:
            places.append((t, None))
        places.extend((t, o) for o in sorted(remembering.get(t, ())))
    return [*places, (_BEYOND, None)] if found.beyond else places


def _moves(row: _Joint, split: dict[int, set[int]], number: dict[_Place, int]) -> dict[int, Fraction]:
    """A row of T between the states of the table."""
    moves: dict[int, Fraction] = {}
    for (t, o), p in row.items():
        i = number[t, o if t in split else None]
        moves[i] = moves[i] + p if i in moves else p
    return moves


def _observation_matrices(
    places: list[_Place], emissions: list[_Emissions], observations: int
) -> list[RationalMatrix]:
    """Z; where an action never leads to a state, what another action shows there stands."""
    usual: dict[int, _Emission] = {_BEYOND: observations - 1}
    for emission, split in emissions:
        for t, seen in emission.items():
            if t not in split:
                usual.setdefault(t, seen)
    rows: dict[_Emission, dict[int, Fraction]] = {}

    def row(seen: _Emission) -> dict[int, Fraction]:
        if seen not in rows:
            rows[seen] = {seen: _ONE} if isinstance(seen, int) else dict(seen)
        return rows[seen]

    matrices = []
    for emission, split in emissions:
        shown = (
            usual.get(t, 0) if t in split else emission.get(t, usual.get(t, 0)) if o is None else o
            for t, o in places
        )
        matrices.append(RationalMatrix.from_rows([row(seen) for seen in shown], observations))
    return matrices


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
