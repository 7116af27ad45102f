"""The smallest sufficient map: counts of the design, and the map against all histories."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Sizes, fold
from harnesses.fibres import fibres
from harnesses.lossy import sufficient
from harnesses.smallest import BlockMap, frontier, smallest, value_contexts
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

Pairs = tuple[tuple[str, str], ...]
Histories = Callable[[POMDP, int], Iterator[tuple[Pairs, dict[int, Fraction]]]]


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_flip_has_2n_plus_5_contexts_by_both_counts(n: int) -> None:
    found = smallest(task(f"flip:{n}").model, n + 2)
    assert (found.belief_contexts, found.bisimulation_contexts) == (2 * n + 5, 2 * n + 5)
    # Three more beliefs differ only in whether a flag that no one can read any more was flipped.
    assert found.beliefs == 2 * n + 8


@pytest.mark.parametrize(
    ("name", "horizon", "count"),
    [
        *((("tiger", h, 2 * h + 1)) for h in (1, 4, 7)),
        ("tiger:1/2", 4, 1),
        *(((f"tmaze:{n}", n + 1, 2 * n + 2)) for n in (2, 3, 6)),
        ("repo_repair:2:2", 4, 14),
        ("repo_repair:2:2", None, 14),
        ("flip:3", None, 11),
        ("drift", 5, 6),
    ],
)
def test_the_counts_are_those_of_the_design(name: str, horizon: int | None, count: int) -> None:
    found = smallest(task(name).model, horizon)
    assert (found.belief_contexts, found.bisimulation_contexts) == (count, count)


@given(data=st.data())
def test_the_map_keeps_all_that_matters_and_nothing_else(
    enumerate_histories: Histories, data: st.DataObject
) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    found = smallest(model, 3)
    phi = found.phi
    by_belief: dict[tuple[tuple[int, Fraction], ...], set[str]] = {}
    contexts = set()
    for pairs, belief in enumerate_histories(model, 3):
        text = fold(phi, [Sizes().event(*pair) for pair in pairs]).text
        by_belief.setdefault(tuple(belief.items()), set()).add(text)
        contexts.add(text)
    assert found.beliefs == len(by_belief)
    assert found.bisimulation_contexts == len(contexts) == phi.contexts
    assert found.bisimulation_contexts <= found.belief_contexts <= found.beliefs
    # Histories of one belief share their context: the map is coarser than the belief, never finer.
    assert all(len(texts) == 1 for texts in by_belief.values())
    for x, example in enumerate(phi.examples):
        assert fold(phi, [Sizes().event(*pair) for pair in example]).text == f"c{x}"


def test_a_map_of_beliefs_is_sufficient_without_being_injective() -> None:
    """M1-E1.3, the converse fails: 14 contexts for 610 histories of a repair, and each gives the exact belief."""
    repair = task("repo_repair").model
    found = sufficient(repair, smallest(repair, 4).phi, Criterion(Fraction(1), 4))
    assert (found.sufficient, found.determined, found.injective) == (True, True, False)
    assert (found.contexts, found.histories) == (14, 610)


def test_what_leaves_the_message_list_is_recorded_and_other_events_are_refused() -> None:
    phi = smallest(task("tiger").model, 2).phi
    event = Sizes().event("listen", "tiger-left")
    context = fold(phi, [event, event])
    assert [gone.message for gone in context.dropped] == [*event, *event]
    assert {gone.kind for gone in context.dropped} == {"summarisation"}
    with pytest.raises(
        ModelError, match="listen/tiger-left cannot follow context .* make it for a longer one"
    ):
        fold(phi, [event] * 4)


def test_without_a_horizon_endless_beliefs_are_refused() -> None:
    with pytest.raises(ModelError, match="more than 50 beliefs of tiger"):
        smallest(task("tiger").model, None, max_beliefs=50)


def best_deterministic(model: POMDP, steps: int) -> Callable[[BlockMap], Interval]:
    """The best undiscounted return of a deterministic stateless policy, all of them tried."""

    def vo(phi: BlockMap) -> Interval:
        graph = fibres(model, phi, steps).graph

        def best(masses: dict[int, Fraction], left: int, chosen: dict[int, int]) -> Fraction:
            open_contexts = sorted({graph.context(node) for node in masses} - set(chosen))
            found = []
            for choice in itertools.product(range(model.num_actions), repeat=len(open_contexts)):
                policy = chosen | dict(zip(open_contexts, choice, strict=True))
                total, after = Fraction(0), {}
                for node, mass in masses.items():
                    action = policy[graph.context(node)]
                    total += mass * graph.beliefs.reward(graph.belief(node), action)
                    for edge in graph.edges(node) if left > 1 else ():
                        if edge.action == action:
                            after[edge.node] = after.get(edge.node, Fraction(0)) + mass * edge.probability
                found.append(total + (best(after, left - 1, policy) if left > 1 else 0))
            return max(found)

        value = best({0: Fraction(1)}, steps, {})
        return Interval.of(value, value)

    return vo


def coarser(phi: BlockMap) -> Iterator[BlockMap]:
    """Every map that some partition of the blocks makes of `phi` and that is still a map."""
    for labels in itertools.product(range(phi.contexts), repeat=phi.contexts):
        if any(label > max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            continue
        delta: dict[tuple[int, str, str], int] = {}
        items = [((labels[x], a, o), labels[y]) for (x, a, o), y in phi.delta.items()]
        if all(delta.setdefault(key, y) == y for key, y in items):
            examples = [phi.examples[labels.index(label)] for label in range(max(labels) + 1)]
            yield BlockMap(delta, tuple(examples))


@pytest.mark.parametrize(("name", "horizon"), [("tmaze:2", 3), ("tiger", 2), ("drift", 4)])
def test_merging_keeps_the_value_and_never_beats_the_fewest(name: str, horizon: int) -> None:
    model = task(name).model
    phi, vo = smallest(model, horizon).phi, best_deterministic(task(name).model, horizon)
    found = value_contexts(phi, vo)
    full = vo(phi)
    assert found.value == full == vo(found.phi)
    fewest = min(one.contexts for one in coarser(phi) if vo(one).lower >= full.lower)
    assert fewest <= found.contexts < phi.contexts
    # No further merge of two blocks keeps the value.
    for one, other in itertools.combinations(range(found.contexts), 2):
        assert vo(found.phi.merged(one, other)).lower < full.lower


def test_a_maze_needs_four_contexts_for_its_value() -> None:
    # The start acts as the left corridor does, and the left junction may be over: each cue and its junction stay.
    model = task("tmaze:2").model
    assert value_contexts(smallest(model, 3).phi, best_deterministic(model, 3)).contexts == 4


@given(data=st.data())
def test_a_merge_is_the_finest_map_that_merges(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=2, max_actions=2, max_observations=2))
    phi = smallest(model, 2).phi
    if not 2 <= phi.contexts <= 5:
        return
    one, other = sorted(data.draw(st.permutations(range(phi.contexts)))[:2])
    merged = phi.merged(one, other)
    joining = []
    for candidate in coarser(phi):
        place = {example: fold_block(candidate, example) for example in phi.examples}
        if place[phi.examples[one]] == place[phi.examples[other]]:
            joining.append(candidate.contexts)
    assert merged.contexts == max(joining)
    assert fold_block(merged, phi.examples[one]) == fold_block(merged, phi.examples[other])


def fold_block(phi: BlockMap, pairs: Pairs) -> str:
    return fold(phi, [Sizes().event(*pair) for pair in pairs]).text


@pytest.mark.parametrize(("name", "horizon"), [("tmaze:2", 3), ("tiger", 3)])
def test_the_frontier_falls_from_the_sufficient_map_to_one_context(name: str, horizon: int) -> None:
    model = task(name).model
    phi, vo = smallest(model, horizon).phi, best_deterministic(model, horizon)
    points = frontier(phi, vo)
    assert points[0].phi == phi
    assert points[-1].contexts == 1
    sizes = [point.contexts for point in points]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes)
    values = [point.value.lower for point in points]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    # Each step is the best single merge, as trying all of them shows.
    for before, after in itertools.pairwise(points):
        pairs = itertools.combinations(range(before.contexts), 2)
        assert after.value.lower == max(vo(before.phi.merged(*pair)).lower for pair in pairs)
