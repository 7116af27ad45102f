"""Statistics against plain lists, and the erring summariser against enumerating what it missed."""

from __future__ import annotations

from collections import Counter as Tally
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import (
    Compose,
    Count,
    Counter,
    First,
    Last,
    Latest,
    Pairs,
    Parity,
    Pattern,
    Pin,
    Register,
    Retrieve,
    Sizes,
    Statistic,
    Summary,
    Unordered,
    branches,
    fold,
    parse_map,
)
from harnesses.context.context_map import ContextMap, Memory
from pomdp.model import ModelError

PAIRS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=7)


def shown(statistic: Statistic, pairs: list[tuple[str, str]]) -> str:
    """The note after a history."""
    return fold(Summary(statistic), [Sizes().event(*pair) for pair in pairs]).text


@given(PAIRS, st.integers(1, 4))
def test_statistics_say_what_a_list_says(pairs: list[tuple[str, str]], k: int) -> None:
    counts = sorted(Tally(observation for _, observation in pairs).items())
    empty = "-" if not pairs else None
    assert shown(Count(), pairs) == (empty or f"count({','.join(f'{o}={n}' for o, n in counts)})")
    assert shown(Count(k), pairs) == (empty or f"count({','.join(f'{o}={min(n, k)}' for o, n in counts)})")
    assert shown(Pairs(), pairs) == (empty or f"pairs({','.join(f'{a}/{o}' for a, o in sorted(set(pairs)))})")
    latest = sorted(dict(pairs).items())
    assert shown(Latest(), pairs) == (empty or f"latest({','.join(f'{a}/{o}' for a, o in latest)})")
    assert shown(First(k), pairs) == (empty or f"first({','.join(f'{a}/{o}' for a, o in pairs[:k])})")
    assert shown(Parity(Pattern("a")), pairs) == f"parity({sum(a == 'a' for a, _ in pairs) % 2})"


@given(PAIRS)
def test_counts_forget_the_order_and_their_memory_too(pairs: list[tuple[str, str]]) -> None:
    events = [Sizes().event(*pair) for pair in pairs]
    for statistic in (Count(), Count(2), Pairs()):
        memories = []
        for history in (events, sorted(events, reverse=True)):
            memory = Summary(statistic).start()
            for event in history:
                memory, _ = Summary(statistic).step(memory, event)
            memories.append(memory)
        assert memories[0] == memories[1]


def distribution(phi: ContextMap, pairs: list[tuple[str, str]]) -> dict[Memory, Fraction]:
    """Memories after a history with their probabilities."""
    found: dict[Memory, Fraction] = {phi.start(): Fraction(1)}
    for pair in pairs:
        following: dict[Memory, Fraction] = {}
        for memory, p in found.items():
            for after, q in branches(phi, memory, Sizes().event(*pair)):
                following[after] = following.get(after, Fraction(0)) + p * q
        found = following
    return found


@given(PAIRS.map(lambda pairs: pairs[:5]), st.sampled_from([Count(), Count(1), Latest(), First(2), Parity()]))
def test_an_erring_summariser_misses_each_event_with_its_probability(
    pairs: list[tuple[str, str]], statistic: Statistic
) -> None:
    error = Fraction(1, 5)
    expected: dict[Memory, Fraction] = {}
    for missed in product([False, True], repeat=len(pairs)):
        value = statistic.start()
        for pair, miss in zip(pairs, missed, strict=True):
            value = value if miss else statistic.add(value, Sizes().event(*pair))
        weight = error ** sum(missed) * (1 - error) ** (len(pairs) - sum(missed))
        expected[value] = expected.get(value, Fraction(0)) + weight
    assert distribution(Summary(statistic, error), pairs) == expected


@pytest.mark.parametrize("error", [0, 1])
def test_certain_errors_and_certain_successes_have_one_branch(error: int) -> None:
    phi = Summary(Count(), Fraction(error))
    assert distribution(phi, [("a", "x")]) == {(() if error else (("x", 1),)): 1}


@given(PAIRS.map(lambda pairs: pairs[:4]))
def test_wrappers_pass_the_branches_on(pairs: list[tuple[str, str]]) -> None:
    inner = Summary(Count(), Fraction(1, 5))
    pattern = Pattern("a", "x")
    plain = distribution(inner, pairs)
    assert distribution(Compose(Unordered(), inner), pairs) == plain
    assert distribution(Counter(inner), pairs) == {(len(pairs), m): p for m, p in plain.items()}
    others = distribution(inner, [pair for pair in pairs if pair != ("a", "x")])
    pinned = tuple(Sizes().event(*pair) for pair in pairs if pair == ("a", "x"))
    assert distribution(Pin((pattern,), inner), pairs) == {(pinned, m): p for m, p in others.items()}
    phi = Retrieve((Register(Pattern("b"), pattern),), inner)
    assert {memory[2]: p for memory, p in distribution(phi, pairs).items()} == plain
    for memory in distribution(phi, pairs):
        texts = [m.text for m in phi.show(memory).messages if m.role != "note"]
        assert texts == (["a", "x"] * len(pinned) if pairs and pairs[-1][0] == "b" else [])


def test_a_summary_sizes_its_note_and_records_what_it_replaced() -> None:
    context = fold(Summary(Count()), [Sizes().event("a", "x"), Sizes().event("a", "y")])
    assert (context.text, context.tokens) == ("count(x=1,y=1)", 8)
    assert [(r.message.text, r.tokens, r.rule, r.kind) for r in context.dropped] == [
        (text, 20, "summary:count", "summarisation") for text in ("a", "x", "a", "y")
    ]


def test_what_is_no_statistic_is_refused() -> None:
    with pytest.raises(ModelError, match="summary:count needs a clip from 1"):
        Count(0)
    with pytest.raises(ModelError, match=r"an error probability in \[0, 1\]"):
        Summary(Count(), Fraction(3, 2))
    assert parse_map("summary:count").name == Summary(Count()).name
    assert Last(1).bounded and Summary(Count(2)).bounded and not Summary(Count()).bounded
