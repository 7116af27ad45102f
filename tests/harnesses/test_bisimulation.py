"""Bisimulation: against partitions and futures enumerated one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.belief_graph import BeliefGraph
from harnesses.bisimulation import alike, belief_over, merged_states, observables, refined
from pomdp.belief import exact_step
from pomdp.library import task
from pomdp.model import POMDP
from pomdp.testing import pomdps


def partitions(size: int) -> Iterator[tuple[int, ...]]:
    """Every partition of 0..size-1, blocks numbered by first appearance."""
    for labels in itertools.product(range(size), repeat=size):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield labels


def stable(model: POMDP, block: tuple[int, ...]) -> bool:
    """Whether states of one block earn alike and reach each block with each observation alike."""

    def signature(s: int) -> object:
        rows: list[object] = [block[s]]
        for a in range(model.num_actions):
            joint: dict[tuple[int, int], Fraction] = {}
            for t, p in model.exact.T[a].row(s).items():
                for o, q in model.exact.Z[a].row(t).items():
                    joint[o, block[t]] = joint.get((o, block[t]), Fraction(0)) + p * q
            rows.append((model.exact.R.row(a).get(s, 0), frozenset(joint.items())))
        return tuple(rows)

    kinds = {}
    return all(kinds.setdefault(block[s], signature(s)) == signature(s) for s in range(model.num_states))


def copied(model: POMDP) -> POMDP:
    """The model with a twin of its last state, entered half of the time: the two behave alike."""
    S, last = model.num_states, model.num_states - 1
    T, Z, R = [], [], []
    for a in range(model.num_actions):
        rows = []
        for s in [*range(S), last]:
            row = model.exact.T[a].row(s)
            half = row.pop(last, Fraction(0)) / 2
            rows.append(row | ({last: half, S: half} if half else {}))
        T.append(rows)
        Z.append([model.exact.Z[a].row(s) for s in [*range(S), last]])
        R.append([model.exact.R.row(a).get(s, Fraction(0)) for s in [*range(S), last]])
    return POMDP.build(
        states=S + 1, actions=model.num_actions, observations=model.num_observations, T=T, Z=Z, R=R,
        start=dict(model.exact.start),
    )  # fmt: skip


@given(st.data())
def test_merged_states_are_the_coarsest_stable_partition(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    model = copied(model) if data.draw(st.booleans()) else model
    found = merged_states(model)
    fewest = min((b for b in partitions(model.num_states) if stable(model, b)), key=lambda b: max(b))
    assert tuple(found) == fewest


def future(model: POMDP, belief: dict[int, Fraction], length: int) -> object:
    """Chances and expected rewards of every sequence of up to `length` pairs, from one belief."""
    rewards = [model.exact.R.row(a) for a in range(model.num_actions)]
    earned = tuple(sum((p * row.get(s, 0) for s, p in belief.items()), Fraction(0)) for row in rewards)
    here = (sum(belief.values(), Fraction(0)), earned)
    if length == 0:
        return here
    pairs = itertools.product(range(model.num_actions), range(model.num_observations))
    return (here, *(future(model, exact_step(model, belief, a, o), length - 1) for a, o in pairs))


@given(st.data())
def test_beliefs_are_alike_iff_no_sequence_of_pairs_tells_them_apart(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    model = copied(model) if data.draw(st.booleans()) else model
    graph = BeliefGraph(model)
    beliefs = graph.within(2)[:8]
    # Sequences as long as there are states tell all that any can: each longer one adds a dimension or nothing.
    futures = [future(model, graph.belief(i), model.num_states) for i in beliefs]
    expected = [futures.index(entry) for entry in futures]
    found = alike(graph, beliefs)
    assert [found.index(entry) for entry in found] == expected


@pytest.mark.parametrize("name", ["flip:2", "flip:3", "repo_repair", "tmaze:3", "tiger:1"])
def test_splitting_and_observables_agree_where_beliefs_are_finitely_many(name: str) -> None:
    model = task(name).model
    graph = BeliefGraph(model)
    beliefs = graph.within(None)
    block = merged_states(model)
    basis = observables(model, block)
    over = [belief_over(graph.belief(i), block) for i in beliefs]
    values = [tuple(sum(p * v.get(b, 0) for b, p in belief.items()) for v in basis) for belief in over]
    split = refined(graph, beliefs)
    assert [values.index(v) for v in values] == [split.index(c) for c in split]


def test_flip_has_two_states_that_only_the_past_tells_apart() -> None:
    # After the reading, whether the flag was flipped no longer matters: two answers are left of four states.
    for n in (2, 4):
        model = task(f"flip:{n}").model
        block = merged_states(model)
        assert max(block) + 1 == model.num_states - 2
        ends = [s for s, name in enumerate(model.states) if name.startswith(f"stage-{n + 1}-")]
        assert len({block[s] for s in ends}) == 2
