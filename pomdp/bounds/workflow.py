"""W_N: the best workflow that may branch at named observations only; imports pomdp.bounds.solver.

A workflow's control flow is drawn at design time, and an engineer may draw branches (M1 Def 1.7.1): it sees the
observations N as they are and every other one as the same symbol. W <= W_N <= V*, with equality where N is empty and
where it is everything. Source: design of the formal core, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from pomdp.bounds.solver import Solution, solve
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.rational import RationalMatrix

REST = "other"


def branching(model: POMDP, observations: Iterable[str]) -> POMDP:
    """The model in which every observation but the named ones is one symbol, `other`.

    Raises ModelError for an unknown observation, listing near names.
    """
    named = {model.observation_index(name) for name in observations}
    kept = sorted(named)
    place = {o: i for i, o in enumerate(kept)}
    names = tuple(model.observations[o] for o in kept)
    rest = len(kept)  # the column of what is not named; none is left over where all are
    width = rest + (rest < model.num_observations)
    merged: dict[int, RationalMatrix] = {}

    def merge(Z: RationalMatrix) -> RationalMatrix:
        if id(Z) not in merged:
            rows = []
            for row in Z.rows():
                new: dict[int, Fraction] = {}
                for o, p in row.items():
                    i = place.get(o, rest)
                    new[i] = new.get(i, Fraction(0)) + p
                rows.append(new)
            merged[id(Z)] = RationalMatrix.from_rows(rows, width)
        return merged[id(Z)]

    symbol = REST
    while symbol in names:
        symbol += "-"
    exact = model.exact
    return POMDP.build(
        states=model.states,
        actions=model.actions,
        observations=(*names, symbol)[:width],
        T=exact.T,
        Z=[merge(Z) for Z in exact.Z],
        R=exact.R,
        start=exact.start,
        discount=exact.discount,
        name=f"{model.name} branching on {', '.join(names) or 'nothing'}",
        cost=model.cost,
    )


def solve_workflow(
    model: POMDP, criterion: Criterion, observations: Iterable[str], **effort: Any
) -> Solution:
    """Bounds on W_N; `effort` is what `solve` takes."""
    return solve(branching(model, observations), criterion, **effort)
