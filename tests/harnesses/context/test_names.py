"""Names read back to themselves, and errors say what was meant."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import KNOWN, Full, Last, Parity, Pattern, Pin, Sizes, Summary, parse_map
from pomdp.library import task
from pomdp.model import ModelError

MODEL = task("flip:3").model
LEAVES = (
    *(
        "last:0",
        "last:12",
        "last_messages:3",
        "full:6",
        "null",
        "oldest_first:3000",
        "oldest_first:30:partial",
    ),
    *("oldest_first:30:4", "oldest_first:30:partial:4", "summary:count", "summary:count:3", "summary:pairs"),
    *("summary:latest", "summary:first:2", "summary:parity:*/*", "summary:parity:flip/t2", "belief_grid:4"),
    *(
        "summary:count:3:error=1/10",
        "summary:pairs:error=1/2",
        "belief_grid:4:uniform",
        "belief_grid:2:predict",
    ),
)
WRAPPERS = (
    *("pin:flip/t2", "pin:flip/*,read/flag-*", "counter", "counter:5", "retrieve:read/*>flip/t2"),
    *("retrieve:read/*>flip/t2,*/t3>wait/u0", "compose:results", "compose:calls", "compose:unordered"),
    *("compose:rename:t2>t,t3>t", "held:3", "held:2|u0,u1"),
)


@given(st.sampled_from(LEAVES), st.lists(st.sampled_from(WRAPPERS), max_size=3))
def test_names_read_back_to_themselves(leaf: str, wrappers: list[str]) -> None:
    text = ":".join([*reversed(wrappers), leaf])
    recipe = parse_map(text)
    phi = recipe.bind(MODEL, 5, Sizes())
    assert recipe.name == phi.name == text
    assert parse_map([leaf, *wrappers]) == recipe
    assert parse_map(phi.name).bind(MODEL, 5, Sizes()) == phi


def test_every_known_name_was_read() -> None:
    assert {name.split(":")[0] for name in (*LEAVES, *WRAPPERS)} == set(KNOWN)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Last-Messages:3", "last_messages:3"),
        (" last : 02 ", "last:2"),
        ("oldest-first:30:whole", "oldest_first:30"),
        ("belief-grid:4:prior", "belief_grid:4"),
        ("pin:flip:last:1", "pin:flip/*:last:1"),
        ("summary:parity", "summary:parity:*/*"),
        ("summary:count:error=0.1", "summary:count:error=1/10"),
        ("summary:count:error=0", "summary:count"),
        ("retrieve:read>flip/t2:null", "retrieve:read/*>flip/t2:null"),
        (["last:1", "counter:4", "pin:flip"], "pin:flip/*:counter:4:last:1"),
        (("last:1",), "last:1"),
    ],
)
def test_other_spellings_have_one_canonical_name(text: str | list[str], canonical: str) -> None:
    assert parse_map(text).name == canonical
    assert parse_map(text).bind(MODEL).name == canonical


def test_a_name_builds_the_map_it_says() -> None:
    assert parse_map("pin:flip/t2:last:1").bind(MODEL) == Pin(
        (Pattern("flip", "t2"),), Last(1), recurring=False
    )
    assert parse_map("summary:parity:flip:error=1/3").bind(MODEL) == Summary(
        Parity(Pattern("flip", "*")), Fraction(1, 3)
    )


def test_full_takes_the_horizon_unless_it_has_a_number() -> None:
    assert parse_map("full").name == "full"
    assert parse_map("full").bind(MODEL, 5) == parse_map("full:5").bind(MODEL, 9) == Full(5)
    assert parse_map("counter:full").bind(MODEL, 4).name == "counter:full:4"
    with pytest.raises(
        ModelError, match="full needs a number of pairs without a horizon; give full:6 or --horizon N"
    ):
        parse_map("full").bind(MODEL)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("lst:2", "no context map 'lst' in 'lst:2' (last?); known: full, last, last_messages, "),
        ("", "no context map '' in ''; known: "),
        ("counter:window:2", "no context map 'window' in 'counter:window:2'; known: "),
        ("last:x", "last needs a number of pairs, a whole number such as last:2; got 'x'"),
        ("last", "last needs a number of pairs, a whole number such as last:2; got ''"),
        ("last:-1", "last needs a number of pairs, a whole number such as last:2; got '-1'"),
        ("last:2:3", "'3' is too much in 'last:2:3'; a right one is last:2"),
        ("null:counter", "'counter' is too much in 'null:counter'; a right one is null"),
        ("full:0", "full needs a number of pairs, a whole number from 1, such as full:2; got 0"),
        (
            "last_messages:two",
            "last_messages needs a number of messages, a whole number such as last_messages:3",
        ),
        (
            "oldest_first",
            "oldest_first needs a budget in tokens, a whole number such as oldest_first:3000; got ''",
        ),
        (
            "oldest_first:3:half",
            "oldest_first keeps a number of messages, a whole number such as oldest_first:3000:pa",
        ),
        (
            "pin:flip/t2",
            "pin in 'pin:flip/t2' lacks the map that it wraps; a right one is pin:flip/t2:last:1",
        ),
        ("pin", "pin in 'pin' lacks the map that it wraps"),
        ("pin:/t2:last:1", "the pattern '/t2' lacks a name; write ACTION/OBSERVATION, such as flip/*"),
        (
            "counter",
            "counter in 'counter' lacks the map that it wraps; a right one is counter:last:2 or counter:5:",
        ),
        ("held:x:last:1", "held needs a number of steps, a whole number such as held:3:last:2 or held:3|u0"),
        ("held:2", "held in 'held:2' lacks the map that it wraps; a right one is held:3:last:2"),
        ("counter:0:null", "counter needs a limit from 1, such as counter:5:last:2; got 0"),
        (
            "retrieve:read:last:1",
            "the register 'read' lacks '>'; write TRIGGER>STORED, such as read/*>flip/t2",
        ),
        (
            "summary:cont",
            "summary has no statistic 'cont' (count?); known: count, pairs, latest, first, parity; such as",
        ),
        (
            "summary:first",
            "summary:first needs a number of pairs, a whole number such as summary:first:2; got ''",
        ),
        (
            "summary:count:error=x",
            "the error probability 'x' is no number; a right one is summary:count:3:error=1/10",
        ),
        (
            "summary:count:error=2",
            "summary needs an error probability in [0, 1], such as summary:count:3:error=1/10",
        ),
        ("belief_grid:0", "belief_grid needs a resolution from 1, such as belief_grid:4; got 0"),
        (
            "belief_grid:4:none",
            "belief_grid has no fallback 'none'; known: prior, uniform, predict; such as belief_gr",
        ),
        (
            "compose:last:2",
            "compose has no psi 'last'; known: results, calls, unordered, rename; such as compose:resu",
        ),
        (
            "compose:calls",
            "compose:calls in 'compose:calls' lacks the map that it wraps; a right one is compose:calls:",
        ),
        ("compose:rename:a:last:1", "rename cannot read 'a'; write OLD>NEW,OLD>NEW, such as t2>t,t3>t"),
    ],
)
def test_an_error_is_one_line_with_a_right_example(text: str, error: str) -> None:
    with pytest.raises(ModelError) as found:
        parse_map(text)
    assert str(found.value).startswith(error)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("pin:flop/t2:null", "pattern flop/t2: no action 'flop'; known: flip"),
        ("retrieve:red>flip:null", "pattern red/*: no action 'red'; known: read"),
        ("summary:parity:flip/t9", "pattern flip/t9: no observation 't9'; known: "),
        ("compose:rename:t9>t:null", "no observation 't9'; known: "),
        ("held:2|t9:null", "no observation 't9'; known: "),
    ],
)
def test_names_that_the_model_lacks_are_refused_when_it_is_known(text: str, error: str) -> None:
    with pytest.raises(ModelError) as found:
        parse_map(text).bind(MODEL, 5)
    assert str(found.value).startswith(error)


@pytest.mark.parametrize(
    "text",
    [
        "pin:read_file*/KEY*:last:2",
        "retrieve:write*>read*/*:null",
        "summary:parity:run/*",
        "compose:rename:a>b:null",
    ],
)
def test_a_running_agent_has_no_model_and_no_name_is_checked(text: str) -> None:
    assert parse_map(text).bind(None).name == parse_map(text).name
    assert not parse_map("pin:a/b:null").bind(None).bounded
    with pytest.raises(ModelError, match="belief_grid:4 needs a model of the task"):
        parse_map("belief_grid:4").bind(None)
