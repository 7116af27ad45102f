"""Sufficiency and recall: against all histories enumerated, and the theorems about them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.best_action import BestActions
from harnesses.context import (
    Branches,
    Context,
    ContextMap,
    Event,
    Full,
    Last,
    LastMessages,
    Memory,
    Message,
    Null,
    Removal,
    Sizes,
    fold,
    parse_map,
)
from harnesses.fibres import fibres
from harnesses.lossy import recovers, sufficient
from pomdp.belief import exact_measures
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

Pairs = tuple[tuple[str, str], ...]
Belief = dict[int, Fraction]
Histories = Callable[[POMDP, int], Iterator[tuple[Pairs, Belief]]]
ONE = Fraction(1)
MAPS: list[ContextMap] = [Null(), Last(1), Last(2), LastMessages(1), LastMessages(3), Full(4)]
small_models = pomdps(max_states=3, max_actions=2, max_observations=2)


def decaying() -> POMDP:
    """One action and observation: the state is left with chance 1/2 a step, so the belief moves for ever."""
    half = Fraction(1, 2)
    return POMDP.build(
        states=2,
        actions=1,
        observations=1,
        T=[[{0: half, 1: half}, {1: 1}]],
        Z=[[{0: 1}] * 2],
        R=[[0, 1]],
        start="0",
    )


def context_of(phi: ContextMap, pairs: Pairs) -> Context:
    return fold(phi, [Sizes().event(*pair) for pair in pairs])


@given(data=st.data())
def test_sufficiency_is_what_all_histories_say(enumerate_histories: Histories, data: st.DataObject) -> None:
    model = data.draw(small_models)
    phi = data.draw(st.sampled_from(MAPS))
    found = sufficient(model, phi, Criterion(ONE, 4))
    entries = [(pairs, context_of(phi, pairs), belief) for pairs, belief in enumerate_histories(model, 3)]
    first: int | None = None
    seen: dict[tuple[int, Context], Belief] = {}
    for pairs, context, belief in entries:
        if seen.setdefault((len(pairs), context), belief) != belief and first is None:
            first = len(pairs)
    assert found.sufficient == (first is None)
    assert (found.witness.length if found.witness else None) == first
    by_context: dict[Context, list[Belief]] = {}
    for _, context, belief in entries:
        by_context.setdefault(context, []).append(belief)
    assert found.determined == all(b == beliefs[0] for beliefs in by_context.values() for b in beliefs)
    assert found.injective == (len(by_context) == len(entries))
    assert (found.contexts, found.histories, found.depth) == (len(by_context), len(entries), 3)


@given(data=st.data())
def test_a_map_that_is_injective_on_histories_determines_the_belief(data: st.DataObject) -> None:
    """M1-E1.3: phi injective on reachable histories, then the belief is a function of the context."""
    model = data.draw(small_models)
    found = sufficient(model, data.draw(st.sampled_from(MAPS)), Criterion(ONE, 4))
    if found.injective:
        assert found.determined
        assert found.sufficient


def test_a_map_need_not_be_injective_to_determine_the_belief() -> None:
    """M1-E1.3, the converse fails: histories of one belief may share a context; a full map shows that some do not."""
    model = task("flip:2").model
    found = sufficient(model, Last(2), Criterion(ONE, 4))
    assert (found.sufficient, found.determined, found.injective) == (True, True, False)
    full = sufficient(model, Full(4), Criterion(ONE, 4))
    assert (full.sufficient, full.determined, full.injective) == (True, True, True)
    # Without the hypothesis the conclusion fails as well.
    null = sufficient(model, Null(), Criterion(ONE, 4))
    assert (null.determined, null.injective) == (False, False)


@pytest.mark.parametrize("k", range(5))
def test_one_task_confuses_every_window(k: int) -> None:
    """M1-T0.2.7: one POMDP, and for every k two histories with one last(k) and two beliefs."""
    model = task("tiger").model
    found = sufficient(model, Last(k), Criterion(ONE, k + 2))
    assert found.sufficient is False
    assert found.witness is not None
    assert found.witness.length == k + 1
    assert sufficient(model, Last(k), Criterion(ONE, k + 1)).sufficient is True


def test_the_windows_witnesses_are_histories_of_listening() -> None:
    """M1-T0.2.7: hear left, or right, then left k times: the windows agree, the odds differ by (17/3)^2, for any k."""
    model = task("tiger").model
    for k in (1, 7, 30):
        events = [
            [("listen", f"tiger-{side}"), *[("listen", "tiger-left")] * k] for side in ("left", "right")
        ]
        one, other = (context_of(Last(k), tuple(pairs)) for pairs in events)
        assert one == other
        beliefs = []
        for pairs in events:
            measure = dict(model.exact.start)
            for _, side in pairs:
                measure = exact_measures(model, measure, 0)[model.observation_index(side)]
            beliefs.append(measure[0] / measure[1])
        assert beliefs[0] == beliefs[1] * Fraction(17, 3) ** 2


@pytest.mark.parametrize("n", [2, 3, 4])
def test_flip_needs_a_window_back_to_the_flip_or_its_pin(n: int) -> None:
    flip = task(f"flip:{n}")
    criterion = Criterion(ONE, n + 2)
    for k in range(n):
        found = sufficient(flip.model, Last(k), criterion)
        assert found.sufficient is False
        # What is wrong is the answer: the best action differs once the flag was read.
        assert found.decisive is not None
        assert found.decisive.best_action_differs is True
        if k:
            assert set(found.decisive.best_actions or ()) == {("say-0",), ("say-1",)}
    assert sufficient(flip.model, Last(n), criterion).sufficient is True
    pinned = parse_map("pin:flip/t2:last:1").bind(flip.model, n + 2)
    assert sufficient(flip.model, pinned, criterion).witness is None


def test_without_a_horizon_the_same_is_found_and_what_has_no_end_is_undecided() -> None:
    flip = task("flip:3").model
    criterion = Criterion(Fraction(19, 20))
    assert sufficient(flip, Last(3), criterion).sufficient is True
    found = sufficient(flip, Last(1), criterion)
    assert (found.sufficient, found.injective, found.histories) == (False, False, None)
    assert found.decisive is not None and found.decisive.length == 4
    tiger = sufficient(task("tiger").model, Last(6), criterion, max_nodes=200)
    assert (tiger.sufficient, tiger.determined) == (None, None)
    assert "more than 200" in tiger.reason
    decay = sufficient(decaying(), Last(3), criterion, max_nodes=50)
    # One belief a length, ever new: no two of equal length are confused, and no end is in sight.
    assert (decay.sufficient, decay.determined, decay.injective) == (None, False, False)
    assert json.loads(json.dumps(decay.json()))["witness"] is None


def test_an_endless_map_is_refused_without_a_horizon() -> None:
    model = task("flip:2").model
    phi = parse_map("counter:last:1").bind(model, None)
    with pytest.raises(ModelError, match="horizon"):
        sufficient(model, phi, Criterion(Fraction(1, 2)))


def best_value(model: POMDP, measure: Belief, steps: int) -> Fraction:
    """V* from a measure by recursion, undiscounted."""
    if steps == 0:
        return Fraction(0)
    return max(
        sum((p * model.exact.R.row(a).get(s, Fraction(0)) for s, p in measure.items()), Fraction(0))
        + sum(best_value(model, m, steps - 1) for m in exact_measures(model, measure, a).values())
        for a in range(model.num_actions)
    )


def recalled_value(model: POMDP, phi: ContextMap, steps: int) -> Fraction:
    """V*(phi): the best policy that remembers every context, by recursion over measures on (state, memory)."""

    def value(measure: dict[tuple[int, object], Fraction], left: int) -> Fraction:
        if left == 0:
            return Fraction(0)
        found = []
        for a, action in enumerate(model.actions):
            row = model.exact.R.row(a)
            total = sum((p * row.get(s, Fraction(0)) for (s, _), p in measure.items()), Fraction(0))
            after: dict[Context, dict[tuple[int, object], Fraction]] = {}
            for (s, x), p in measure.items():
                for t, q in model.exact.T[a].row(s).items():
                    for o, z in model.exact.Z[a].row(t).items():
                        y, _ = phi.step(x, Sizes().event(action, model.observations[o]))
                        part = after.setdefault(phi.show(y), {})
                        part[t, y] = part.get((t, y), Fraction(0)) + p * q * z
            found.append(total + sum(value(part, left - 1) for part in after.values()))
        return max(found)

    return value({(s, phi.start()): p for s, p in model.exact.start.items()}, steps)


@given(data=st.data())
def test_where_contexts_recover_the_observations_recall_is_worth_the_optimum(data: st.DataObject) -> None:
    model = data.draw(small_models)
    compose = parse_map("compose:calls:last:1").bind(model, 3)
    phi = data.draw(st.sampled_from([*MAPS, compose]))
    recalled, best = recalled_value(model, phi, 3), best_value(model, dict(model.exact.start), 3)
    assert recalled <= best
    if recovers(fibres(model, phi, 3)):
        assert recalled == best


def test_windows_recover_every_observation_and_blind_maps_none() -> None:
    model = task("tiger").model
    for phi in (Last(1), Last(3), Full(4), LastMessages(1)):
        assert recovers(fibres(model, phi, 4)) is True
    for phi in (Null(), Last(0), parse_map("compose:calls:last:2").bind(model, 4)):
        assert recovers(fibres(model, phi, 4)) is False
    assert recovers(fibres(model, Last(2), None, max_entries=500)) is None
    assert recovers(fibres(task("flip:2").model, Last(1), None)) is True
    # A summary that errs shows now and then what it showed before.
    assert recovers(fibres(model, parse_map("summary:count:error=1/10").bind(model, 3), 3)) is False
    # What the last action shows comes too late to matter.
    assert recovers(fibres(model, Null(), 1)) is True


class HiddenCoin:
    """Shows the latest result, or its opposite if a coin, drawn at the first event and never shown, says so."""

    name, bounded = "hidden-coin", True

    def start(self) -> tuple[str, int | None]:
        return ("", None)

    def branches(self, memory: tuple[str, int | None], event: Event) -> Branches:
        if memory[1] is None:
            return tuple(((event.observation, coin), Fraction(1, 2)) for coin in (0, 1))
        swapped = {"tiger-left": "tiger-right", "tiger-right": "tiger-left"}[event.observation]
        return (((swapped if memory[1] else event.observation, memory[1]), ONE),)

    def step(self, memory: tuple[str, int | None], event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        return self.branches(memory, event)[0][0], ()

    def show(self, memory: tuple[str, int | None]) -> Context:
        return Context((Message("note", memory[0], 4),))


def test_a_memory_that_was_drawn_is_not_recovered_by_recall() -> None:
    assert recovers(fibres(task("tiger").model, HiddenCoin(), 3)) is False  # type: ignore[arg-type]


@given(data=st.data())
def test_a_belief_known_from_context_and_time_loses_nothing(data: st.DataObject) -> None:
    """no-loss: sufficient with the time in the context, then the best action per context earns V*."""
    model = data.draw(small_models)
    phi = parse_map("counter:" + data.draw(st.sampled_from(["null", "last:1", "last:2"]))).bind(model, 3)
    found = fibres(model, phi, 3)
    if not sufficient(model, phi, Criterion(ONE, 3)).sufficient:
        return
    graph = found.graph
    best = BestActions(graph.beliefs, Criterion(ONE, 3))
    policy: dict[int, int] = {}
    for length, level in enumerate(found.levels):
        for node in level:
            answer = best.at(graph.belief(node), length)
            assert answer is not None
            policy.setdefault(graph.context(node), min(answer.actions))
    masses, earned = {0: ONE}, Fraction(0)
    for left in (2, 1, 0):
        after: dict[int, Fraction] = {}
        for node, mass in masses.items():
            action = policy[graph.context(node)]
            earned += mass * graph.beliefs.reward(graph.belief(node), action)
            for edge in graph.edges(node) if left else ():
                if edge.action == action:
                    after[edge.node] = after.get(edge.node, Fraction(0)) + mass * edge.probability
        masses = after
    assert earned == best_value(model, dict(model.exact.start), 3)


def test_without_the_time_in_the_context_a_known_belief_can_lose() -> None:
    """no-loss needs the time: pay 1 and stay, or 2 and end; one context that is the state, horizon 2, V* = 3."""
    model = POMDP.build(
        states=["on", "over"],
        actions=["stay", "end"],
        observations=["on", "over"],
        T=[[{0: 1}, {1: 1}], [{1: 1}, {1: 1}]],
        Z=[[{0: 1}, {1: 1}]] * 2,
        R=[[1, 0], [2, 0]],
        start="on",
    )
    phi = parse_map("belief_grid:1").bind(model, 2)
    found = sufficient(model, phi, Criterion(ONE, 2))
    assert (found.determined, found.contexts) == (True, 2)
    assert best_value(model, {0: ONE}, 2) == 3

    def stationary(p: Fraction) -> Fraction:
        """J of staying with probability p whenever the run is on."""
        return p * (1 + p + (1 - p) * 2) + (1 - p) * 2

    grid = [stationary(Fraction(i, 8)) for i in range(9)]
    assert max(grid) == stationary(Fraction(1, 2)) == Fraction(9, 4) < 3


def test_where_no_history_says_anything_every_map_is_sufficient() -> None:
    for phi, n in itertools.product((Null(), Last(1)), (1, 5)):
        still = sufficient(task("tiger:1/2").model, phi, Criterion(ONE, n))
        assert (still.sufficient, still.determined) == (True, True)
        # Where the belief moves with the time alone, the context must say the time to determine it.
        moving = sufficient(decaying(), phi, Criterion(ONE, n))
        assert (moving.sufficient, moving.determined) == (True, n == 1)
