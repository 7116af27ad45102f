"""Fibres: against all histories, enumerated one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import ContextMap, Full, Last, LastMessages, Null, Sizes, fold, parse_map
from harnesses.fibres import Fibres, fibres, first_shared
from pomdp.belief import exact_history
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

Pairs = tuple[tuple[str, str], ...]
Histories = Callable[[POMDP, int], Iterator[tuple[Pairs, dict[int, Fraction]]]]
MAPS: list[ContextMap] = [Null(), Last(1), Last(2), LastMessages(1), LastMessages(3), Full(4)]


def shown(phi: ContextMap, pairs: Pairs) -> str:
    """The context of a history, folded from its start."""
    return str(fold(phi, [Sizes().event(*pair) for pair in pairs]).messages)


@given(st.data())
def test_each_length_holds_the_beliefs_and_counts_of_all_histories(
    enumerate_histories: Histories, data: st.DataObject
) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    phi = data.draw(st.sampled_from(MAPS))
    found = fibres(model, phi, 4)
    assert found.decided
    graph = found.graph
    expected = Counter(
        (len(pairs), shown(phi, pairs), tuple(belief.items()))
        for pairs, belief in enumerate_histories(model, 3)
    )
    counted: Counter[tuple[int, str, tuple[tuple[int, Fraction], ...]]] = Counter()
    for length, level in enumerate(found.levels):
        for node, count in level.items():
            belief = graph.beliefs.belief(graph.belief(node))
            counted[length, str(graph.contexts[graph.context(node)].messages), tuple(belief.items())] += count
    assert counted == expected


@given(st.data())
def test_the_history_of_a_node_leads_to_its_belief_and_context(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    phi = data.draw(st.sampled_from(MAPS))
    found = fibres(model, phi, 4)
    graph = found.graph
    for length, level in enumerate(found.levels):
        for node in level:
            pairs = found.history(length, node)
            assert len(pairs) == length
            assert exact_history(model, pairs)[0][-1] == graph.beliefs.belief(graph.belief(node))
            named = tuple((model.actions[a], model.observations[o]) for a, o in pairs)
            assert shown(phi, named) == str(graph.contexts[graph.context(node)].messages)


def test_millions_of_histories_are_counted_without_being_listed() -> None:
    found = fibres(task("flip:8").model, Last(1), 10)
    assert found.histories() == 5_664_061 == sum(found.histories_by_context().values())
    assert len(found.graph) < 100


@pytest.mark.parametrize(
    ("name", "phi"), [("flip:3", Last(2)), ("tmaze:2", Last(1)), ("repo_repair", Null())]
)
def test_without_a_horizon_enough_is_walked_to_know_every_length(name: str, phi: ContextMap) -> None:
    model = task(name).model
    endless, long = fibres(model, phi, None), fibres(model, phi, 14)
    assert endless.end == "repeats"
    assert len(endless.levels) < 14

    def seen(found: Fibres) -> set[tuple[str, str]]:
        graph, nodes = found.graph, found.reached()
        return {
            (graph.contexts[graph.context(n)].text, str(graph.beliefs.belief(graph.belief(n)))) for n in nodes
        }

    assert seen(endless) == seen(long)


def test_what_never_recurs_is_said_to_be_undecided() -> None:
    found = fibres(task("tiger").model, Last(1), None, max_entries=200)
    assert found.end == "too many"
    assert not found.decided
    with pytest.raises(
        ModelError, match="beliefs and memories of last:1 still change after .* give a horizon"
    ):
        found.require()


def test_too_many_nodes_end_the_walk_with_the_lengths_that_fitted() -> None:
    found = fibres(task("flip:3").model, Full(5), 5, max_nodes=300)
    assert (found.end, len(found.levels)) == ("too many", 3)
    with pytest.raises(
        ModelError, match="more than 300 pairs of belief and memory .* full:5; give a shorter"
    ):
        found.require()


def test_a_map_without_end_needs_a_horizon() -> None:
    phi = parse_map("counter:last:1").bind(task("flip:2").model, None)
    with pytest.raises(ModelError, match="horizon"):
        fibres(task("flip:2").model, phi, None)
    with pytest.raises(ModelError, match="horizon 0 has no decisions"):
        fibres(task("flip:2").model, Null(), 0)


def test_a_map_that_draws_shares_its_histories_out_over_memories() -> None:
    model = task("tiger").model
    sure = parse_map("summary:count").bind(model, 4)
    drawn = parse_map("summary:count:error=1/4").bind(model, 4)
    one, other = fibres(model, sure, 4), fibres(model, drawn, 4)
    assert other.histories() > one.histories()
    edges = other.graph.edges(0)
    assert sum(edge.probability for edge in edges) == model.num_actions
    assert {edge.node for edge in edges} > {edge.node for edge in edges if edge.action == 0}
    # A draw that fails hides what came: some context stands for more beliefs.
    assert sum(1 for _ in first_shared(other)) > sum(1 for _ in first_shared(one)) > 0


def test_shared_contexts_come_shortest_first() -> None:
    lengths = [length for length, _, _ in first_shared(fibres(task("flip:3").model, Last(1), 5))]
    assert lengths == sorted(lengths)
    assert lengths[0] == 3
