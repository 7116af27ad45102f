"""What holds of every map: each token is accounted for, ids change nothing, a fold is its steps."""

from __future__ import annotations

from collections import Counter as Tally
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.context import Context, ContextMap, Event, Message, branches, fold, parse_map, require_horizon
from harnesses.context.context_map import Memory
from harnesses.testing import context_maps
from pomdp.belief import exact_measures
from pomdp.model import POMDP, ModelError

ACTIONS, OBSERVATIONS = ("a", "b"), ("x", "y", "z")
SIZES = {"a": 2, "b": 11, "x": 3, "y": 25, "z": 30}
MODEL = POMDP.build(
    states=2,
    actions=ACTIONS,
    observations=OBSERVATIONS,
    T=[[["2/3", "1/3"], [0, 1]], [[1, 0], [1, 0]]],
    Z=[[["1/2", "1/2", 0], [0, "1/4", "3/4"]]] * 2,
    R=[[0, 0]] * 2,
    start=["1/3", "2/3"],
)
PAIRS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(OBSERVATIONS)), max_size=8)
MAPS = context_maps(MODEL).map(lambda name: parse_map(name).bind(MODEL, 8))


def events(pairs: list[tuple[str, str]], ids: bool) -> list[Event]:
    """The history, its messages numbered where `ids`."""
    return [
        Event(
            Message("call", action, SIZES[action], 2 * i if ids else None),
            Message("result", observation, SIZES[observation], 2 * i + 1 if ids else None),
        )
        for i, (action, observation) in enumerate(pairs)
    ]


def tokens(messages) -> int:
    """The size of some messages."""
    return sum(message.tokens for message in messages)


@settings(max_examples=400)
@given(MAPS, PAIRS, st.booleans())
def test_tokens_of_the_history_are_shown_or_recorded_as_dropped(
    phi: ContextMap, pairs: list[tuple[str, str]], ids: bool
) -> None:
    """harness.md section 1, criterion 5: tokens(history) - tokens(context) = dropped, net of stubs and notes."""
    history = events(pairs, ids)
    context = fold(phi, history)
    extra = tokens(m for m in context.messages if m.role in ("stub", "note"))
    dropped = sum(removal.tokens for removal in context.dropped)
    assert tokens(m for event in history for m in event) - context.tokens == dropped - extra
    assert all(0 <= removal.tokens <= removal.message.tokens for removal in context.dropped)
    assert {removal.message.role for removal in context.dropped} <= {"call", "result"}
    assert {removal.kind for removal in context.dropped} <= {"truncation", "summarisation", "formatting"}


@settings(max_examples=400)
@given(MAPS, PAIRS)
def test_each_message_is_shown_or_removed_and_never_both(
    phi: ContextMap, pairs: list[tuple[str, str]]
) -> None:
    """The identity message by message: shown and removed tokens add up to the message's own."""
    context = fold(phi, events(pairs, ids=True))
    found: Tally[int] = Tally()
    for message in context.messages:
        if message.role in ("call", "result"):
            found[message.id] += message.tokens
        elif message.role == "note":
            assert message.id is None
    for removal in context.dropped:
        found[removal.message.id] += removal.tokens
    assert found == {m.id: m.tokens for event in events(pairs, ids=True) for m in event}


@settings(max_examples=300)
@given(MAPS, PAIRS)
def test_ids_change_nothing_but_themselves(phi: ContextMap, pairs: list[tuple[str, str]]) -> None:
    without, context = fold(phi, events(pairs, ids=False)), fold(phi, events(pairs, ids=True))
    assert without == Context(tuple(m._replace(id=None) for m in context.messages))
    assert without.dropped == tuple(r._replace(message=r.message._replace(id=None)) for r in context.dropped)
    assert without.text == context.text


@settings(max_examples=300)
@given(MAPS, PAIRS)
def test_a_fold_is_its_steps_and_what_is_gone_for_good_stays_gone(
    phi: ContextMap, pairs: list[tuple[str, str]]
) -> None:
    memory: Memory = phi.start()
    gone: list = []
    for i, event in enumerate(events(pairs, ids=True)):
        before = hash(memory)
        following, removals = phi.step(memory, event)
        assert (following, removals) == phi.step(memory, event), "a step is a pure function"
        assert hash(memory) == before
        assert branches(phi, memory, event)[0][0] == following, "the first branch is the step"
        assert sum(p for _, p in branches(phi, memory, event)) == 1
        memory, gone = following, [*gone, *removals]
        context, shown = fold(phi, events(pairs[: i + 1], ids=True)), phi.show(memory)
        assert context == shown
        assert context.dropped == (*gone, *shown.dropped)
    ids = {removal.message.id for removal in gone if removal.message.tokens == removal.tokens}
    assert not ids & {m.id for m in phi.show(memory).messages if m.role in ("call", "result")}


@given(MAPS, st.sampled_from(ACTIONS))
def test_a_bounded_map_has_finitely_many_memories(phi: ContextMap, action: str) -> None:
    """Where it claims so, the memories of ever longer histories of one action come to an end."""
    if not phi.bounded:
        return
    a = MODEL.action_index(action)
    start = (frozenset(MODEL.exact.start), phi.start())
    seen, level = {start}, [start]
    while level and len(seen) < 5000:  # a window of six pairs has 1 + 3 + ... + 3**6 of them
        reached = {
            (frozenset(measure), phi.step(memory, events([(action, OBSERVATIONS[o])], ids=False)[0])[0])
            for support, memory in level
            for o, measure in exact_measures(MODEL, dict.fromkeys(support, Fraction(1)), a).items()
        }
        level = list(reached - seen)
        seen |= reached
    assert not level


def test_what_a_map_needs_a_horizon_for_is_said_in_one_line() -> None:
    for name in ("oldest_first:3000", "counter:last:1", "summary:count", "pin:a/x:null", "retrieve:a>b:null"):
        phi = parse_map(name).bind(MODEL)
        with pytest.raises(
            ModelError, match=f"{phi.name.replace('*', '.')} has infinitely .* give --horizon N"
        ):
            require_horizon(phi, None)
        require_horizon(phi, 4)
    require_horizon(parse_map("counter:4:last:1").bind(MODEL), None)


def test_a_deterministic_map_has_one_branch() -> None:
    phi = parse_map("last:1").bind(MODEL)
    event = events([("a", "x")], ids=False)[0]
    assert branches(phi, phi.start(), event) == ((phi.step(phi.start(), event)[0], Fraction(1)),)
