"""Pins against sorting a list into two, and the remedy that they are for the scrolled-out flip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Calls, Compose, Last, Pattern, Pin, Sizes, fold, parse_map
from harnesses.context.compose import Messages
from pomdp.belief import exact_history
from pomdp.library import task

PAIRS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=8)
PATTERNS = st.lists(
    st.sampled_from(["a/x", "a/*", "*/y", "b/z"]).map(Pattern.parse), min_size=1, max_size=2
).map(tuple)


@given(PAIRS, PATTERNS, st.integers(0, 3))
def test_matching_pairs_survive_first_and_in_order_and_the_window_sees_the_others(
    pairs: list[tuple[str, str]], patterns: tuple[Pattern, ...], k: int
) -> None:
    history = [Sizes().event(*pair) for pair in pairs]

    def matches(action: str, observation: str) -> bool:
        return any(p.action in (action, "*") and p.observation in (observation, "*") for p in patterns)

    pinned = [event for event in history if matches(event.action, event.observation)]
    others = [event for event in history if not matches(event.action, event.observation)]
    window = others[len(others) - min(k, len(others)) :]
    context = fold(Pin(patterns, Last(k)), history)
    assert context.messages == tuple(m for event in (*pinned, *window) for m in event)
    assert [r.message for r in context.dropped] == [
        m for event in others[: len(others) - len(window)] for m in event
    ]


def conflict(model, phi, sizes, length, enumerate_histories):
    """Two histories of one length with one context and two beliefs, or None."""
    seen: dict = {}
    for pairs, belief in enumerate_histories(model, length):
        context = fold(phi, [sizes.event(*pair) for pair in pairs])
        other, known = seen.setdefault((len(pairs), context), (pairs, belief))
        if known != belief:
            return other, pairs
    return None


@pytest.mark.parametrize("n", [2, 3])
def test_the_pinned_flip_determines_the_belief_and_no_shorter_window_does(
    n: int, enumerate_histories
) -> None:
    """M1 §1.5.2, design section 7: last(k) confuses two histories for every k < n; a pin of (flip, t2) none."""
    flip = task(f"flip:{n}")
    sizes = Sizes.of_task(flip)

    def confused(name: str):
        phi = parse_map(name).bind(flip.model, n + 2, sizes)
        return conflict(flip.model, phi, sizes, n + 1, enumerate_histories)

    for k in range(n):
        assert confused(f"last:{k}") is not None
    assert confused(f"last:{n}") is None
    assert confused("pin:flip/t2:last:1") is None
    # Pins show their observation, here the stage; so pinning every flip is enough too, ...
    assert confused("pin:flip/*:last:1") is None


class PinnedCalls:
    """Memoryless: of the pinned flips only the call is shown."""

    name = "pinned-calls"

    def apply(self, messages: Messages) -> tuple[Messages, Messages]:
        """All but the results that directly follow a flip."""
        hidden = {i + 1 for i, m in enumerate(messages) if m.text == "flip"}
        kept = tuple(m for i, m in enumerate(messages) if i not in hidden)
        return kept, tuple(messages[i] for i in sorted(hidden))


@pytest.mark.parametrize("n", [2, 3])
def test_pinned_calls_without_their_results_do_not_determine_the_belief(n: int) -> None:
    """... unless pins keep the call alone: a harmless flip at stage 0 then looks like the decisive one."""
    model = task(f"flip:{n}").model
    phi = Compose(PinnedCalls(), parse_map("pin:flip/*:last:1").bind(model, n + 2))
    waits = [("wait", f"t{k}") for k in range(3, n + 1)]
    harmless = [("flip", "u0"), ("wait", "t2"), *waits, ("read", "flag-0")]
    decisive = [("wait", "u0"), ("flip", "t2"), *waits, ("read", "flag-0")]
    contexts = [fold(phi, [Sizes().event(*pair) for pair in pairs]) for pairs in (harmless, decisive)]
    assert contexts[0].text == contexts[1].text == "flip=;read=flag-0"
    assert contexts[0] == contexts[1]
    beliefs = [
        exact_history(model, [(model.action_index(a), model.observation_index(o)) for a, o in pairs])[0][-1]
        for pairs in (harmless, decisive)
    ]
    assert beliefs[0] != beliefs[1]


def test_a_pin_is_bounded_where_its_pairs_cannot_recur() -> None:
    model = task("flip:3").model
    assert parse_map("pin:flip/t2:last:1").bind(model).bounded
    assert not parse_map("pin:flip/*:last:1").bind(model).bounded
    assert not parse_map("pin:flip/t2:counter:last:1").bind(model).bounded
    assert parse_map("pin:flip/t2:counter:4:last:1").bind(model).bounded


def test_what_a_wrapped_map_hides_now_a_pin_passes_on() -> None:
    phi = Pin((Pattern("a", "x"),), Compose(Calls(), Last(1)))
    context = fold(phi, [Sizes().event("a", "x"), Sizes().event("b", "y")])
    assert context.text == "a=x;b="
    assert [(r.message.text, r.kind) for r in context.dropped] == [("y", "formatting")]
