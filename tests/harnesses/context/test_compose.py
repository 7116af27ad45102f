"""Memoryless functions of contexts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import (
    Calls,
    Compose,
    Context,
    Counter,
    Full,
    Last,
    LastMessages,
    OldestFirst,
    Rename,
    Results,
    Sizes,
    Table,
    Unordered,
    fold,
)
from pomdp.model import ModelError

PAIRS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=6)
SIZES = Sizes({}, {"x": 7})


def context(phi, pairs) -> Context:
    """The context after a history."""
    return fold(phi, [SIZES.event(*pair) for pair in pairs])


@given(PAIRS)
def test_hiding_calls_or_results_leaves_the_others_and_records_formatting(
    pairs: list[tuple[str, str]],
) -> None:
    for psi, shown, hidden in ((Results(), 1, 0), (Calls(), 0, 1)):
        found = context(Compose(psi, Full(9)), pairs)
        assert [m.text for m in found.messages] == [pair[shown] for pair in pairs]
        assert [r.message.text for r in found.dropped] == [pair[hidden] for pair in pairs]
        assert {(r.rule, r.kind) for r in found.dropped} <= {(f"compose:{psi.name}", "formatting")}


@given(PAIRS, st.randoms(use_true_random=False))
def test_unordered_contexts_are_equal_where_their_pairs_are(pairs: list[tuple[str, str]], random) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)
    phi = Compose(Unordered(), Full(9))
    found = context(phi, pairs)
    assert context(phi, shuffled) == found
    assert found.text == (";".join(f"{a}={o}" for a, o in sorted(pairs)) or "-")
    assert found.dropped == ()


def test_unordered_keeps_halves_of_pairs_apart() -> None:
    pairs = [("b", "y"), ("a", "x")]
    assert context(Compose(Unordered(), LastMessages(3)), pairs).text == "a=x;=y"
    assert context(Compose(Unordered(), OldestFirst(55)), pairs).text == "a=x;b=~"
    assert context(Compose(Unordered(), Compose(Calls(), Last(2))), pairs).text == "a=;b="


def test_renamed_results_read_alike_whatever_their_size() -> None:
    phi = Compose(Rename.parse("x>w, y>w"), Last(1))
    one, other = context(phi, [("a", "x")]), context(phi, [("a", "y")])
    assert one == other != context(phi, [("a", "z")])
    assert one.text == "a=w"
    assert [(r.message.text, r.tokens, r.kind) for r in one.dropped] == [("x", 7, "formatting")]
    assert phi.name == "compose:rename:x>w,y>w:last:1"


def test_a_call_of_a_renamed_results_name_keeps_its_own() -> None:
    assert context(Compose(Rename.parse("x>w"), Last(1)), [("x", "x")]).text == "x=w"


def test_calls_hides_stubs_too_and_both_keep_notes() -> None:
    pairs = [("a", "z"), ("b", "z")]
    assert context(Compose(Calls(), Counter(OldestFirst(50))), pairs).text == "n=2;a=;b="
    assert context(Compose(Results(), Counter(OldestFirst(70))), pairs).text == "n=2;=~;=z"


def test_a_table_sends_its_contexts_to_notes_and_leaves_the_others() -> None:
    ax, ay = context(Last(1), [("a", "x")]), context(Last(1), [("a", "y")])
    phi = Compose(Table({ax: "early", ay: "early"}), Last(1))
    assert context(phi, [("a", "x")]) == context(phi, [("a", "y")])
    assert context(phi, [("a", "y")]).text == "early"
    assert context(phi, [("a", "z")]).text == "a=z"
    assert [(r.message.text, r.kind) for r in context(phi, [("a", "y")]).dropped] == [
        ("a", "formatting"),
        ("y", "formatting"),
    ]


def test_a_table_records_no_note_as_removed() -> None:
    pairs = [("a", "z"), ("b", "z")]
    inner = Counter(OldestFirst(70))
    found = context(Compose(Table({context(inner, pairs): "late"}), inner), pairs)
    assert found.text == "late"
    assert [(r.message.text, r.kind) for r in found.dropped] == [
        ("z", "truncation"),
        ("a", "formatting"),
        ("b", "formatting"),
        ("z", "formatting"),
    ]


@pytest.mark.parametrize("text", ["x", "x>", ">y", "x>y>z", "", "x>y,"])
def test_what_is_no_renaming_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match="rename cannot read .*; write OLD>NEW,OLD>NEW, such as t2>t,t3>t"):
        Rename.parse(text)
