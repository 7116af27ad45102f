"""Patterns against plain comparison, and recurrence against counting matches along walks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Pattern, Sizes
from harnesses.context.pattern import can_recur, parse_patterns, require_names
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps


@pytest.mark.parametrize(
    ("pattern", "pair", "matches"),
    [
        ("flip/t2", ("flip", "t2"), True),
        ("flip/t2", ("flip", "t3"), False),
        ("flip/t2", ("wait", "t2"), False),
        ("flip", ("flip", "t3"), True),
        ("*/t2", ("wait", "t2"), True),
        ("flip/t*", ("flip", "t12"), True),
        ("flip/t*", ("flip", "none"), False),
        ("flip/*+warning", ("flip", "t2+warning"), True),
        ("f*p/t.", ("flip", "t2"), False),
        ("flip/[t]2", ("flip", "t2"), False),
    ],
)
def test_a_star_stands_for_any_text_and_nothing_else_is_special(
    pattern: str, pair: tuple[str, str], matches: bool
) -> None:
    assert Pattern.parse(pattern).matches(Sizes().event(*pair)) is matches


def test_patterns_are_read_from_a_list_and_print_canonically() -> None:
    assert [p.text for p in parse_patterns("flip, read/flag-*")] == ["flip/*", "read/flag-*"]
    with pytest.raises(ModelError, match="the pattern '/t2' lacks a name; write ACTION/OBSERVATION"):
        parse_patterns("flip,/t2")


def test_a_pattern_of_unknown_names_is_refused_with_near_ones() -> None:
    model = task("flip:3").model
    require_names(model, parse_patterns("flip/t2,*/flag-*"))
    with pytest.raises(ModelError, match="pattern flop/t2: no action 'flop'; known: flip"):
        require_names(model, parse_patterns("flop/t2"))
    with pytest.raises(ModelError, match="pattern flip/x9: no observation 'x9'; known: u0, u1"):
        require_names(model, parse_patterns("flip/x9"))


def most_matches(model: POMDP, pattern: Pattern, length: int) -> int:
    """The most matching pairs in any run of `length` steps."""
    S, event = model.num_states, Sizes().event
    moves = [
        (s, t, int(any(pattern.matches(event(model.actions[a], model.observations[o])) for o in shown)))
        for a in range(model.num_actions)
        for s in range(S)
        for t in model.exact.T[a].row(s)
        for shown in [model.exact.Z[a].row(t)]
    ]
    best = dict.fromkeys(model.exact.start, 0)
    for _ in range(length):
        following: dict[int, int] = {}
        for s, t, match in moves:
            if s in best:
                following[t] = max(following.get(t, 0), best[s] + match)
        best = following
    return max(best.values())


@given(st.data())
def test_pairs_recur_where_long_runs_make_more_of_them_than_there_are_states(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=4, density="sparse", terminal=data.draw(st.booleans())))
    pattern = Pattern(
        data.draw(st.sampled_from([*model.actions, "*"])),
        data.draw(st.sampled_from([*model.observations, "*"])),
    )
    S = model.num_states
    assert can_recur(model, [pattern]) is (most_matches(model, pattern, S * (S + 1)) >= S)


def test_cycles_that_no_run_reaches_do_not_count() -> None:
    model = POMDP.build(
        states=2, actions=1, observations=2, T=[[[1, 0], [0, 1]]], Z=[[[1, 0], [0, 1]]], R=[[0, 0]], start="0"
    )
    assert can_recur(model, parse_patterns("0/0"))
    assert not can_recur(model, parse_patterns("0/1"))
    assert can_recur(model.with_start("1"), parse_patterns("0/1"))


def test_the_decisive_flip_happens_once_and_listening_for_ever() -> None:
    assert not can_recur(task("flip:4").model, parse_patterns("flip/t2"))
    assert can_recur(task("flip:4").model, parse_patterns("flip/*"))
    assert can_recur(task("tiger").model, parse_patterns("listen/*"))
