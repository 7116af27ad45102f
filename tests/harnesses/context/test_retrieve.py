"""Retrieval against a list: what the window lost of stored pairs comes back when a trigger comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import (
    Last,
    LastMessages,
    OldestFirst,
    Pattern,
    Pin,
    Register,
    Retrieve,
    Sizes,
    fold,
    parse_map,
)
from harnesses.context.message import Event, Message
from pomdp.library import task
from pomdp.model import ModelError

PAIRS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=8)
NAMES = st.tuples(st.sampled_from("ab*"), st.sampled_from("xyz*"))
REGISTERS = st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=3)


def fits(names: tuple[str, str], pair: tuple[str, str]) -> bool:
    """Whether a pair matches names of which * matches all."""
    return all(name in ("*", part) for name, part in zip(names, pair, strict=True))


@given(PAIRS, REGISTERS, st.integers(0, 7))
def test_lost_messages_of_stored_pairs_come_back_with_their_trigger(
    pairs: list[tuple[str, str]], registers: list[tuple[tuple[str, str], tuple[str, str]]], k: int
) -> None:
    phi = Retrieve(
        tuple(Register(Pattern(*trigger), Pattern(*stored)) for trigger, stored in registers), LastMessages(k)
    )
    lost = max(0, 2 * len(pairs) - k)
    recalled, dropped = [], []
    for i in range(lost):
        pair = pairs[i // 2]
        wanted = any(fits(trigger, pairs[-1]) and fits(stored, pair) for trigger, stored in registers)
        (recalled if wanted else dropped).append(pair[i % 2])
    window = [text for pair in pairs for text in pair][lost:]
    context = fold(phi, [Sizes().event(*pair) for pair in pairs])
    assert [message.text for message in context.messages] == recalled + window
    assert sorted(removal.message.text for removal in context.dropped) == sorted(dropped)


def test_a_register_not_recalled_is_truncation_that_the_memory_still_holds() -> None:
    phi = Retrieve((Register.parse("read>flip/t2"),), Last(1))
    history = [
        Sizes().event(*pair) for pair in [("flip", "t2"), ("wait", "t3"), ("wait", "t4"), ("read", "flag-1")]
    ]
    away, back = fold(phi, history[:3]), fold(phi, history)
    assert away.text == "wait=t4"
    assert [(r.message.text, r.rule, r.kind) for r in away.dropped if r.message.text in ("flip", "t2")] == [
        ("flip", "retrieve:read/*>flip/t2:last:1", "truncation"),
        ("t2", "retrieve:read/*>flip/t2:last:1", "truncation"),
    ]
    assert back.text == "flip=t2;read=flag-1"
    assert "t2" not in [r.message.text for r in back.dropped]


def test_a_pair_still_in_the_window_is_not_shown_twice() -> None:
    phi = Retrieve((Register.parse("*>a/x"),), Last(2))
    events = [Sizes().event(*pair) for pair in [("a", "x"), ("a", "x"), ("b", "y")]]
    assert fold(phi, events[:2]).text == "a=x;a=x"
    assert fold(phi, events).text == "a=x;a=x;b=y"


def test_a_result_that_a_budget_trimmed_comes_back_and_a_cut_one_does_not() -> None:
    history = [
        Event(Message("call", "read", 5, f"c{i}"), Message("result", text, 40, f"r{i}"))
        for i, text in enumerate("xy")
    ]
    whole = fold(Retrieve((Register.parse("*>read"),), OldestFirst(70)), history)
    assert whole.text == "=x;read=~;read=y"
    assert [m.id for m in whole.messages] == ["r0", "c0", "r0", "c1", "r1"]
    assert whole.dropped == ()
    cut = fold(Retrieve((Register.parse("*>read"),), OldestFirst(70, whole=False)), history)
    assert cut.text == "read=~cut;read=y"
    assert [(r.message.text, r.tokens) for r in cut.dropped] == [("x", 20)]


def test_registers_in_registers_keep_what_each_stored() -> None:
    phi = Retrieve((Register.parse("b>a/x"),), Retrieve((Register.parse("b>a/y"),), Last(1)))
    events = [Sizes().event(*pair) for pair in [("a", "x"), ("a", "y"), ("a", "z"), ("b", "z")]]
    assert fold(phi, events).text == "a=x;a=y;b=z"
    assert fold(phi, events[:3]).text == "a=z"


def test_a_pair_that_the_wrapped_map_keeps_is_not_taken_for_a_later_one_that_it_lost() -> None:
    phi = Retrieve((Register.parse("*>a"),), Pin((Pattern("a", "x"),), Last(0)))
    events = [Sizes().event(*pair) for pair in [("a", "x"), ("a", "y"), ("b", "y")]]
    assert fold(phi, events).text == "a=y;a=x"


def test_the_flip_comes_back_when_it_decides() -> None:
    """M1 §1.5.2: the flag's meaning is known again at the read, though the window is one pair."""
    model = task("flip:4").model
    phi = parse_map("retrieve:read>flip/t2:last:1").bind(model)
    assert phi.bounded
    assert not parse_map("retrieve:read>flip/*:last:1").bind(model).bounded


def test_a_register_without_its_arrow_is_refused() -> None:
    with pytest.raises(ModelError, match="the register 'read/x' lacks '>'; write TRIGGER>STORED"):
        Register.parse("read/x")
