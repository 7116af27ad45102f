"""Oldest-first trimming against trimming the whole history at once, as lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Event, Message, OldestFirst, fold, total_tokens
from harnesses.context.message import STUB_TOKENS
from pomdp.model import ModelError

EVENTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), max_size=8).map(
    lambda sizes: [event(i, call, result) for i, (call, result) in enumerate(sizes)]
)


def event(i: int, call: int, result: int) -> Event:
    """An event with its position in its names."""
    return Event(Message("call", f"a{i}", call), Message("result", f"o{i}", result, f"id{i}"))


def trimmed(history: list[Event], budget: int, whole: bool, keep: int) -> list[tuple[str, int]]:
    """(text, tokens) of the context: the whole history first, then cut from the oldest result on."""
    texts = [text for e in history for text in (e.call.text, e.result.text)]
    sizes = [size for e in history for size in (e.call.tokens, e.result.tokens)]
    last = len(texts) - keep
    for i in range(1, max(last, 0), 2):
        excess = sum(sizes) - budget
        if excess > 0 and sizes[i] > STUB_TOKENS:
            if not whole and sizes[i] - excess > STUB_TOKENS:
                texts[i], sizes[i] = "~cut", sizes[i] - excess
            else:
                texts[i], sizes[i] = "~", STUB_TOKENS
    return list(zip(texts, sizes, strict=True))


@given(EVENTS, st.integers(0, 200), st.booleans(), st.integers(0, 5))
def test_trimming_step_by_step_is_trimming_the_whole_history(
    events: list[Event], budget: int, whole: bool, keep: int
) -> None:
    phi = OldestFirst(budget, whole, keep)
    context = fold(phi, events)
    assert [(m.text, m.tokens) for m in context.messages] == trimmed(events, budget, whole, keep)
    assert [m.text for m in context.messages if m.role == "call"] == [e.call.text for e in events]
    assert [m.id for m in context.messages[1::2]] == [e.result.id for e in events]
    newest = [message for e in events for message in e][max(0, 2 * len(events) - keep) :]
    assert list(context.messages)[2 * len(events) - len(newest) :] == newest
    assert {(r.rule, r.kind) for r in context.dropped} <= {(phi.name, "truncation")}
    if whole and context.dropped:
        without = context.dropped[-1].message.tokens
        assert context.tokens + without - STUB_TOKENS > budget, "the last removal was needed"
    if not whole and any(m.text == "~cut" for m in context.messages):
        assert context.tokens == budget, "no more is cut than needed"


def test_e1_2_drops_file_a_and_shows_its_stub() -> None:
    """M1 E1.2: 9,000 tokens against 8,000: file A goes whole, 7,000 stay, and the stub of A comes on top."""
    reads = [Event(Message("call", f"read-{x}", 0), Message("result", x, 2000)) for x in "ABC"]
    history = [*reads, Event(Message("call", "run", 0), Message("result", "output", 3000))]
    assert total_tokens(history) == 9000
    context = fold(OldestFirst(8000), history)
    assert context.text == "read-A=~;read-B=B;read-C=C;run=output"
    assert [(removal.message.text, removal.tokens) for removal in context.dropped] == [("A", 2000)]
    assert context.tokens == 7000 + STUB_TOKENS


def test_e1_2_with_parts_cuts_a_thousand_tokens_of_a_and_says_so() -> None:
    """M1 E1.2 as the source reads it; differs in that the cut is marked in the context itself."""
    reads = [Event(Message("call", f"read-{x}", 0), Message("result", x, 2000)) for x in "ABC"]
    history = [*reads, Event(Message("call", "run", 0), Message("result", "output", 3000))]
    context = fold(OldestFirst(8000, whole=False), history)
    assert context.text == "read-A=~cut;read-B=B;read-C=C;run=output"
    assert [(removal.message.text, removal.tokens) for removal in context.dropped] == [("A", 1000)]
    assert context.tokens == 8000


def test_histories_that_differ_in_a_cut_result_alone_look_alike() -> None:
    for whole in (True, False):
        phi = OldestFirst(60, whole)
        one, other = (
            [Event(Message("call", "a", 10), Message("result", text, 30)), event(1, 10, 30)] for text in "xy"
        )
        assert fold(phi, one) == fold(phi, other)
        assert fold(phi, one[:1]) != fold(phi, other[:1])


def test_a_budget_that_is_no_count_is_refused() -> None:
    with pytest.raises(
        ModelError, match="oldest_first needs a budget in tokens from 0, such as oldest_first:3000"
    ):
        OldestFirst(-1)
    with pytest.raises(ModelError, match="a number of messages to keep"):
        OldestFirst(10, keep=-1)
