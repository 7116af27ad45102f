"""The catalogue: every text and table reads back, names what is wrong, and applies what it says."""

from __future__ import annotations

from typing import Any

import pytest

from harnesses.constructors import (
    Costs,
    call_budget,
    coarsen,
    deny,
    difference,
    garble,
    gate,
    guard,
    malformed,
    merge,
    mixture,
    retry,
    scratchpad,
    select,
    stall,
    step_limit,
    timeout,
)
from harnesses.constructors.catalogue import CONSTRUCTORS, KNOWN, joined, parse_part
from pomdp.library import task
from pomdp.model import POMDP, ModelError

TIGER = task("tiger").model
REPORT = {"tiger-left": {"1/10": "3/4", 0.9: "1/4"}, "tiger-right": "9/10"}
GARBLE = {"listen": {"tiger-left": {"tiger-left": "9/10", "tiger-right": 0.1}}}
CASES: list[tuple[Any, str | None, POMDP]] = [
    ("select:listen,open-left", "select:listen,open-left", select(TIGER, ["listen", "open-left"])),
    ({"name": "select", "actions": ["open-*"]}, "select:open-*", select(TIGER, "open-*")),
    (
        "merge:open=open-left|open-right",
        "merge:open=open-left|open-right",
        merge(TIGER, {"open": ["open-left", "open-right"]}),
    ),
    (
        {"name": "merge", "groups": {"open": {"open-left": "1/4", "open-right": 0.75}}},
        None,
        merge(TIGER, {"open": {"open-left": "1/4", "open-right": "3/4"}}),
    ),
    (
        "coarsen:listen>roar=tiger-left|tiger-right,x=*",
        "coarsen:listen>roar=tiger-left|tiger-right,*>x=*",
        coarsen(TIGER, {"listen": {"*": "roar"}, "*": {"*": "x"}}),
    ),
    (
        {"name": "coarsen", "map": {"listen": {"tiger-left": "a", "tiger-right": "b"}}},
        "coarsen:listen>a=tiger-left,listen>b=tiger-right",
        coarsen(TIGER, {"listen": {"tiger-left": "a", "tiger-right": "b"}}),
    ),
    ({"name": "garble", "kernel": GARBLE}, None, garble(TIGER, GARBLE)),
    ("scratchpad:a,b", "scratchpad:a,b", scratchpad(TIGER, ["a", "b"])),
    ("timeout:listen:0.1", "timeout:listen:1/10", timeout(TIGER, "listen", "1/10")),
    ("timeout:listen:1/10:0:1", "timeout:listen:1/10:0:1", timeout(TIGER, "listen", "1/10", 0, 1)),
    (
        {"name": "timeout", "action": ["listen", "open-left"], "p": "1/10", "effect": 0.5},
        "timeout:listen,open-left:1/10:1/2",
        timeout(TIGER, ["listen", "open-left"], "1/10", "1/2"),
    ),
    (
        "gate:open-left:tiger-left:1/2",
        "gate:open-left:tiger-left:1/2",
        gate(TIGER, "open-left", "tiger-left", "1/2"),
    ),
    (
        "gate:open-left:tiger-left:0:0:0:0:1/2:fresh",
        "gate:open-left:tiger-left:0:0:0:0:1/2:fresh",
        gate(TIGER, "open-left", "tiger-left", e1="1/2", fresh=True),
    ),
    (
        {
            "name": "guard",
            "action": "open-left",
            "allowed": "tiger-right",
            "report": REPORT,
            "tau_esc": "3/8",
            "tau-act": "31/32",
            "costs": {"ask": "1/2", "escalate": 3},
            "fresh": True,
        },
        None,
        guard(TIGER, "open-left", "tiger-right", REPORT, "3/8", "31/32", Costs("1/2", 0, 3), fresh=True),
    ),
    ("deny:open-left", "deny:open-left", deny(TIGER, "open-left")),
    ("deny:*:1/2", "deny:*:1/2", deny(TIGER, "*", "1/2")),
    ("call-budget:3", "call_budget:3", call_budget(TIGER, 3)),
    ("call_budget:3:listen", "call_budget:3:listen", call_budget(TIGER, 3, "listen")),
    ("malformed:0.1:0.05", "malformed:1/10:1/20", malformed(TIGER, "1/10", "1/20")),
    ("malformed:0.1:0:hidden", "malformed:1/10:0:hidden", malformed(TIGER, "1/10", visible=False)),
    (
        {"name": "malformed", "p": 0.1, "visible": False},
        "malformed:1/10:0:hidden",
        malformed(TIGER, 0.1, visible=False),
    ),
    ("stall:3:4", "stall:3:4", stall(TIGER, 3, 4)),
    (" stall:3-4 ", "stall:3:4", stall(TIGER, 3, 4)),
    ("stall:1-2:total", "stall:1:2:total", stall(TIGER, 1, 2, "total")),
    ("step-limit:6", "step_limit:6", step_limit(TIGER, 6)),
    ({"name": "step-limit", "n": 6}, "step_limit:6", step_limit(TIGER, 6)),
    (
        {"name": "mixture", "tasks": {"tiger:0.7": "1/3"}},
        None,
        mixture([(TIGER, 2), (task("tiger:0.7").model, 1)]),
    ),
]


@pytest.mark.parametrize(("given", "text", "expected"), CASES, ids=[str(case[0])[:40] for case in CASES])
def test_a_text_or_table_applies_what_it_says_and_reads_back(
    given: Any, text: str | None, expected: POMDP
) -> None:
    part = parse_part(given)
    if text is not None:
        assert part.text == text
    assert parse_part(part.text) == part
    for found in (part.apply(TIGER), parse_part(part.text).apply(TIGER)):
        assert found.digest == expected.digest
        assert (found.states, found.actions, found.observations) == (
            expected.states,
            expected.actions,
            expected.observations,
        )


def test_every_constructor_is_among_the_cases_and_its_part_known() -> None:
    tried = {parse_part(given).name for given, _, _ in CASES} | {"retry"}
    assert (
        tried == {line.name for line in CONSTRUCTORS} == {name for names in KNOWN.values() for name in names}
    )
    for line in CONSTRUCTORS:
        if not line.example.startswith("{"):
            part = parse_part(line.example)
            assert (part.name, part.part, part.rank) == (line.name, line.part, line.rank)
            assert part.name in KNOWN[part.part]


def test_ranks_follow_the_nesting_of_the_design() -> None:
    order = [
        "select",
        "merge",
        "coarsen",
        "timeout",
        "retry",
        "gate",
        "deny",
        "call_budget",
        "malformed",
        "stall",
    ]
    ranks = {line.name: line.rank for line in CONSTRUCTORS}
    assert sorted(order, key=lambda name: ranks[name]) == order and len(
        {ranks[name] for name in order}
    ) == len(order)
    assert ranks["coarsen"] == ranks["garble"] and ranks["gate"] == ranks["guard"]
    assert ranks["stall"] == ranks["step_limit"] == max(ranks.values()) and ranks["mixture"] == min(
        ranks.values()
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("stal:3:4", r"no constructor 'stal'; did you mean stall\? known: mixture, select, .*, step_limit"),
        ("timeout:listen", "timeout p is missing; an example is timeout:listen:1/10"),
        ("timeout:listen:2", "timeout p is 2, not a probability"),
        ("stall:3:4:x:y", "stall:3:4:x:y has 4 arguments, at most 3; see stall:3:4"),
        ("step_limit:many", "step_limit n: 'many' is not a number"),
        ("malformed:0.1:0:maybe", "malformed visible is 'maybe'; give visible or hidden"),
        ("merge:open", "'open' is no NAME=ONE|OTHER, such as ok=flag-0"),
        ({"name": "deny", "act": "x"}, "deny has no argument 'act'; known: action, charge"),
        ({"n": 6}, 'a constructor table needs a name, such as {name = "step_limit", n = 6}'),
        ("{no json", "is no JSON"),
        (6, "a constructor is a text or a table, not 6; an example is step_limit:6"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(given: Any, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_part(given)
    assert "\n" not in str(caught.value)
    caught.match(message)


def applied(*texts: str, model: POMDP = TIGER) -> POMDP:
    """The parts of these texts, joined and applied in order."""
    for part in joined([parse_part(text) for text in texts]):
        model = part.apply(model)
    return model


def test_a_retry_takes_the_place_of_the_timeout_before_it() -> None:
    expected = retry(TIGER, "listen", 2, p="1/10", effect="1/2", timeout_charge=1, charge=3)
    assert applied("timeout:listen:1/10:1/2:1", "retry:listen:2:3").digest == expected.digest
    with_budget = applied("timeout:listen:1/10", "timeout:open-left:1/5", "retry:listen:2", "call_budget:2")
    by_hand = call_budget(timeout(retry(TIGER, "listen", 2, p="1/10"), "open-left", "1/5"), 2)
    assert difference(with_budget, by_hand) is None


def test_a_retry_of_some_actions_leaves_the_timeout_of_the_others() -> None:
    expected = timeout(retry(TIGER, "listen", 2, p="1/10"), "open-*", "1/10")
    assert difference(applied("timeout:*:1/10", "retry:listen:2"), expected) is None
    both = applied("timeout:*:1/10", "retry:listen:2", "retry:open-left:1")
    by_hand = timeout(
        retry(retry(TIGER, "listen", 2, p="1/10"), "open-left", 1, p="1/10"), "open-right", "1/10"
    )
    assert difference(both, by_hand) is None


def test_a_retry_of_what_never_times_out_does_nothing() -> None:
    assert applied("retry:listen:2") is TIGER
    assert (
        difference(applied("timeout:open-left:1/5", "retry:listen:2"), timeout(TIGER, "open-left", "1/5"))
        is None
    )


def test_a_retry_before_its_timeout_or_alone_is_refused() -> None:
    with pytest.raises(
        ModelError, match="retry:listen:2 stands before timeout:listen:1/10; write the timeout first"
    ):
        joined([parse_part("retry:listen:2"), parse_part("timeout:listen:1/10")])
    with pytest.raises(ModelError, match=r'needs its timeout: write control = \["timeout:listen:1/10"'):
        parse_part("retry:listen:2").apply(TIGER)
    with pytest.raises(ModelError, match=r"retry:\*:2 repeats open-left, which has no timeout"):
        applied("timeout:listen:1/10", "retry:*:2")
