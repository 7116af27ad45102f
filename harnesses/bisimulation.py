"""Bisimulation: states and beliefs that no future tells apart; imports pomdp and belief_graph.

Two beliefs are alike where every action sequence gives the same chances of observations and the same expected
rewards from both. Source: design of the formal core, section 3 (smallest sufficient map).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction

from harnesses.belief_graph import BeliefGraph, TooManyError
from pomdp.model import POMDP, ModelError

Vector = dict[int, Fraction]
# Exact elimination over so many blocks of states takes about a minute.
MAX_DIMENSION = 400


def alike(graph: BeliefGraph, beliefs: Sequence[int]) -> list[int]:
    """The class of each of `beliefs`: equal numbers for those that no future tells apart, by first appearance.

    By splitting classes where the beliefs that can follow are finitely many (`refined`), else by comparing the
    expectations of `observables`. Raises ModelError where neither is in reach.
    """
    closed = _closure(graph, beliefs, 2 * len(beliefs) + 64)
    if closed is not None:
        classes = dict(zip(closed, refined(graph, closed), strict=True))
        return _renumber([classes[i] for i in beliefs])
    block = merged_states(graph.model)
    basis = observables(graph.model, block)
    keys = []
    for i in beliefs:
        belief = graph.belief(i)
        measure = belief_over(belief, block)
        keys.append(tuple(_inner(measure, vector) for vector in basis))
    return _renumber(keys)


def refined(graph: BeliefGraph, beliefs: Sequence[int]) -> list[int]:
    """The classes of a set of beliefs that no move leaves: split by rewards, then by moves, until nothing splits."""
    actions = range(graph.model.num_actions)
    classes = _renumber([tuple(graph.reward(i, a) for a in actions) for i in beliefs])
    while True:
        kind = dict(zip(beliefs, classes, strict=True))
        finer = _renumber(
            [
                (
                    kind[i],
                    *(
                        tuple((m.observation, m.probability, kind[m.belief]) for m in graph.moves(i, a))
                        for a in actions
                    ),
                )
                for i in beliefs
            ]
        )
        if max(finer) == max(classes):
            return classes
        classes = finer


def observables(model: POMDP, block: Sequence[int]) -> list[Vector]:
    """A basis of the functions of the state, by block, whose expectations two beliefs share iff they are alike.

    The smallest space that holds 1 and every `R_a`, and with v also `s -> sum_s' T(s'|s,a) Z(o|s',a) v(s')` for all
    a and o. A belief's step is linear but for its mass, which 1 measures, so equal expectations stay equal.
    """
    size = max(block) + 1
    if size > MAX_DIMENSION:
        raise ModelError(
            f"{model.name or 'the model'} has {size} states that can be told apart and no finite set of beliefs; "
            f"its bisimulation is computed for at most {MAX_DIMENSION}"
        )
    first = {b: s for s, b in reversed(list(enumerate(block)))}
    rewards = [model.exact.R.row(a) for a in range(model.num_actions)]
    steps = _steps(model, block, first)
    waiting: list[Vector] = [{b: Fraction(1) for b in first}]
    waiting += [{b: row[s] for b, s in first.items() if s in row} for row in rewards]
    echelon: dict[int, Vector] = {}
    while waiting:
        vector = _reduced(waiting.pop(), echelon)
        if not vector:
            continue
        pivot = min(vector)
        vector = {b: value / vector[pivot] for b, value in vector.items()}
        echelon[pivot] = vector
        for step in steps:
            image = {b: _inner(row, vector) for b, row in step.items()}
            waiting.append({b: value for b, value in image.items() if value})
    return [echelon[pivot] for pivot in sorted(echelon)]


def merged_states(model: POMDP) -> list[int]:
    """The block of each state: two states share one iff no sequence of actions tells them apart.

    The coarsest partition with equal `R(s, a)` and equal `Pr(o, next block | s, a)` for every action, found by
    splitting until nothing splits. Blocks are numbered by their first state.
    """
    exact, S = model.exact, model.num_states
    rewards = [exact.R.row(a) for a in range(model.num_actions)]
    seen = [[exact.Z[a].row(s) for s in range(S)] for a in range(model.num_actions)]
    reached = [[exact.T[a].row(s) for s in range(S)] for a in range(model.num_actions)]
    block = _renumber([tuple(row.get(s, Fraction(0)) for row in rewards) for s in range(S)])
    while True:
        keys = []
        for s in range(S):
            outcomes = []
            for a in range(model.num_actions):
                joint: dict[tuple[int, int], Fraction] = {}
                for following, p in reached[a][s].items():
                    for o, q in seen[a][following].items():
                        key = (o, block[following])
                        joint[key] = joint.get(key, Fraction(0)) + p * q
                outcomes.append(tuple(sorted(joint.items())))
            keys.append((block[s], *outcomes))
        finer = _renumber(keys)
        if max(finer) == max(block):
            return block
        block = finer


def _closure(graph: BeliefGraph, beliefs: Sequence[int], limit: int) -> list[int] | None:
    """All beliefs that can follow, or None where they are more than `limit`."""
    seen, edge = set(beliefs), set(beliefs)
    try:
        while edge:
            edge = graph.successors(edge) - seen
            seen |= edge
            if len(seen) > limit:
                return None
    except TooManyError:
        return None
    return sorted(seen)


def _steps(model: POMDP, block: Sequence[int], first: dict[int, int]) -> list[dict[int, Vector]]:
    """For every action and observation, block -> {next block: probability of both}, blocks without any left out."""
    found: dict[tuple[int, int], dict[int, Vector]] = {}
    for a in range(model.num_actions):
        for b, s in first.items():
            for following, p in model.exact.T[a].row(s).items():
                for o, q in model.exact.Z[a].row(following).items():
                    row = found.setdefault((a, o), {}).setdefault(b, {})
                    row[block[following]] = row.get(block[following], Fraction(0)) + p * q
    return list(found.values())


def belief_over(belief: dict[int, Fraction], block: Sequence[int]) -> Vector:
    """The belief over blocks."""
    found: Vector = {}
    for s, p in belief.items():
        found[block[s]] = found.get(block[s], Fraction(0)) + p
    return found


def _reduced(vector: Vector, echelon: dict[int, Vector]) -> Vector:
    """What is left of a vector after the rows with a pivot in it, pivots ascending; empty where it is in their span."""
    left = dict(vector)
    done: Vector = {}
    while left:
        pivot = min(left)
        value = left.pop(pivot)
        row = echelon.get(pivot)
        if row is None:
            done[pivot] = value
            continue
        for b, entry in row.items():
            if b != pivot:
                rest = left.get(b, Fraction(0)) - value * entry
                if rest:
                    left[b] = rest
                else:
                    left.pop(b, None)
    return done


def _inner(one: Vector, other: Vector) -> Fraction:
    return sum((value * other[b] for b, value in one.items() if b in other), Fraction(0))


def _renumber(keys: Sequence[Hashable]) -> list[int]:
    """Equal keys get equal numbers, 0, 1, ... by first appearance."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
