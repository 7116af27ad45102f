"""Windows against slices of lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import ContextMap, Event, Full, Last, LastMessages, Message, Null, fold
from pomdp.model import ModelError

EVENTS = st.lists(
    st.builds(
        lambda action, observation, i: Event(
            Message("call", action, 3, i and f"call-{i}"),
            Message("result", observation, 7, i and f"result-{i}"),
        ),
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
        st.one_of(st.none(), st.integers(1, 9)),
    ),
    max_size=8,
)


def flat(events: list[Event]) -> list[Message]:
    """The history as one list of messages."""
    return [message for event in events for message in event]


def check(phi: ContextMap, history: list[Message], kept: int) -> None:
    """The context is the newest `kept` messages and the rest was truncated, oldest first."""
    split = max(0, len(history) - kept)
    context = fold(phi, [Event(*history[i : i + 2]) for i in range(0, len(history), 2)])
    assert list(context.messages) == history[split:]
    assert [removal.message for removal in context.dropped] == history[:split]
    assert {(r.tokens == r.message.tokens, r.rule, r.kind) for r in context.dropped} <= {
        (True, phi.name, "truncation")
    }


@given(EVENTS, st.integers(0, 9))
def test_last_shows_exactly_the_last_pairs(events: list[Event], k: int) -> None:
    check(Last(k), flat(events), 2 * k)


@given(EVENTS, st.integers(0, 17))
def test_last_messages_shows_exactly_the_last_messages(events: list[Event], k: int) -> None:
    check(LastMessages(k), flat(events), k)


@given(EVENTS, st.integers(1, 9))
def test_full_shows_all_up_to_its_horizon_and_then_the_newest(events: list[Event], horizon: int) -> None:
    check(Full(horizon), flat(events), 2 * horizon)


@given(EVENTS)
def test_null_shows_nothing(events: list[Event]) -> None:
    check(Null(), flat(events), 0)


def test_an_odd_number_of_messages_shows_a_result_without_its_call() -> None:
    pair = Event(Message("call", "a", 1), Message("result", "x", 1))
    assert fold(LastMessages(3), [pair, pair]).text == "=x;a=x"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Last(-1), "last needs a number of pairs, a whole number from 0, such as last:2; got -1"),
        (lambda: LastMessages(-1), "last_messages needs a number of messages, a whole number from 0"),
        (lambda: Full(0), "full needs a number of pairs, a whole number from 1"),
        (lambda: Last(True), "got True"),
    ],
)
def test_a_window_that_is_no_count_is_refused(make, error: str) -> None:
    with pytest.raises(ModelError, match=error):
        make()
