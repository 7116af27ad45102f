"""The stall rules on logs fire where the running harness's own rules reach their third count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.logs import Step, stalls
from harnesses.logs.run import untimed
from harnesses.runtime.control import StallRule
from harnesses.runtime.records import Message, ToolCall

calls = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.sampled_from("xy")), max_size=12)


def step(number: int, name: str, argument: int, answer: str) -> Step:
    return Step(
        call=ToolCall(f"c{number}", name, {"n": argument}), result=untimed(f"c{number}", "ok", answer)
    )


@pytest.mark.parametrize("mode", ["consecutive", "total", "growth"])
@given(made=calls)
def test_a_rule_fires_where_the_running_one_counts_three(mode: str, made: list[tuple[str, int, str]]) -> None:
    steps = [step(number, *parts) for number, parts in enumerate(made)]
    rule, history, fired = StallRule(mode), [], None  # type: ignore[arg-type]
    for number, one in enumerate(steps, 1):
        assert one.call is not None
        history.append(Message("assistant", "", 2 * number, calls=(one.call,)))
        history.append(Message("tool", "", 2 * number + 1, result=one.result))
        if fired is None and rule.count(history, one.call.id) >= 3:
            fired = number
    assert getattr(stalls(steps), mode) == fired


def test_talk_between_calls_does_not_interrupt() -> None:
    one, talk = step(0, "a", 0, "x"), Step(said="still trying")
    assert stalls([one, talk, one, talk, one]).consecutive == 5


def test_another_call_in_between_resets_the_row_but_not_the_total() -> None:
    one, other = step(0, "a", 0, "x"), step(0, "b", 0, "x")
    found = stalls([one, one, other, one])
    assert (found.consecutive, found.total, found.growth) == (None, 4, None)


def test_the_order_of_arguments_does_not_matter() -> None:
    orders = ({"p": 1, "q": 2}, {"q": 2, "p": 1}, {"p": 1, "q": 2})
    assert stalls([Step(call=ToolCall("c", "a", given)) for given in orders]).consecutive == 3
