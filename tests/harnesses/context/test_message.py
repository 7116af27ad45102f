"""Sizes, contexts and their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Context, Event, Message, Removal, Sizes, total_tokens
from harnesses.context.message import LONGEST_TEXT
from pomdp.cassandra_tokens import MAX_NAME, name_fault
from pomdp.library import task
from pomdp.model import ModelError

CALL, RESULT = Message("call", "flip", 20), Message("result", "t2", 30)
STUB, NOTE = Message("stub", "~", 4), Message("note", "n=3", 4)
MESSAGES = st.builds(
    Message, st.sampled_from(["call", "result", "stub", "note"]), st.text(max_size=30), st.integers(0, 50)
)


def test_sizes_of_a_task_are_those_it_states() -> None:
    repair = task("repo_repair:2:2")
    sizes = Sizes.of_task(repair)
    for action, calls in zip(repair.model.actions, repair.call_tokens, strict=True):
        for observation, results in zip(repair.model.observations, repair.result_tokens, strict=True):
            event = sizes.event(action, observation)
            assert (event.action, event.observation) == (action, observation)
            assert (event.call.tokens, event.result.tokens) == (calls, results)
            assert (event.call.id, event.result.id) == (None, None)


@pytest.mark.parametrize(
    ("name", "tokens"),
    [("a", 3), ("b", 5), ("unknown", 20), ("a+b", 8), ("a+unknown", 23), ("b+known", 1), ("a+a+b", 11)],
)
def test_a_composite_name_has_the_sizes_of_its_parts_unless_it_has_its_own(name: str, tokens: int) -> None:
    sizes = Sizes({"a": 3, "b": 5, "b+known": 1}, {"a": 3, "b": 5, "b+known": 1})
    assert [message.tokens for message in sizes.event(name, name)] == [tokens, tokens]
    assert total_tokens([sizes.event(name, name)] * 2) == 4 * tokens


def test_a_size_that_is_no_count_is_refused_by_its_name() -> None:
    with pytest.raises(ModelError, match="the size of read is -1; give a whole number"):
        Sizes({"read": -1})
    with pytest.raises(ModelError, match="the size of default is True"):
        Sizes(default=True)


def test_contexts_are_equal_where_their_messages_are() -> None:
    gone = (Removal(CALL, 20, "last:0", "truncation"),)
    assert Context((RESULT,), gone) == Context((RESULT,))
    assert hash(Context((RESULT,), gone)) == hash(Context((RESULT,)))
    assert Context((RESULT,)) != Context((CALL,))
    assert Context((RESULT,)) != Context((RESULT._replace(id=1),))
    assert Context((CALL, RESULT, STUB, NOTE)).tokens == 58


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ((), "-"),
        ((CALL, RESULT), "flip=t2"),
        ((CALL, RESULT, CALL, STUB), "flip=t2;flip=~"),
        ((RESULT, CALL, RESULT), "=t2;flip=t2"),
        ((CALL, CALL), "flip=;flip="),
        ((NOTE, CALL, RESULT), "n=3;flip=t2"),
        ((NOTE, RESULT), "n=3;=t2"),
        ((Message("note", "a b:*#c", 1),), "a_b_c"),
    ],
)
def test_a_contexts_name_shows_its_messages(messages: tuple[Message, ...], text: str) -> None:
    assert Context(messages).text == text


@given(st.lists(MESSAGES, max_size=12))
def test_a_contexts_name_fits_a_model_file(messages: list[Message]) -> None:
    text = Context(tuple(messages)).text
    assert 1 <= len(text) <= LONGEST_TEXT < MAX_NAME
    assert not set(text) & set(" \t\n:*#")
    assert len(text.split()) == 1
    if all(message.text.isalpha() for message in messages) and any(m.role != "note" for m in messages):
        assert name_fault(text) is None


def test_long_contexts_that_differ_late_have_different_names() -> None:
    pairs = [Event(Message("call", "listen", 1), Message("result", "left", 1))] * 40
    one = Context(tuple(m for pair in pairs for m in pair))
    other = Context((*one.messages[:-1], Message("result", "right", 1)))
    assert one.text != other.text
    assert one.text[:80] == other.text[:80]
    assert len(one.text) == len(other.text) == LONGEST_TEXT
