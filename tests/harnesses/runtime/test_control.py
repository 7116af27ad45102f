"""Limits, loop detection and permission patterns, apart from the loop."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.runtime.control import Limits, Matches, StallRule
from harnesses.runtime.models import ModelFailure, Reply, call, say
from harnesses.runtime.records import AgentError, Message, ToolCall, ToolResult
from harnesses.runtime.retry import Retry


def history(calls: str, answers: str | None = None) -> list[Message]:
    """One step per letter, its answer the letter below it."""
    found = []
    for i, letter in enumerate(calls):
        made = ToolCall(f"c{i}", letter, {})
        found.append(Message("assistant", "", 2 * i + 1, calls=(made,)))
        text = answers[i] if answers else letter
        found.append(Message("tool", text, 2 * i + 2, result=ToolResult(f"c{i}", "ok", text, 0.0)))
    return found


@given(st.text("ab", min_size=1, max_size=12))
def test_consecutive_and_total_counts(calls: str) -> None:
    past = history(calls)
    for i in range(len(calls)):
        so_far = calls[: i + 1]
        runs = [len(list(group)) for _, group in groupby(so_far)]
        assert StallRule().count(past, f"c{i}") == runs[-1]
        assert StallRule("total").count(past, f"c{i}") == so_far.count(so_far[-1])


@given(st.text("ab", min_size=1, max_size=12), st.data())
def test_growth_counts_pairs_seen_before(calls: str, data: Any) -> None:
    answers = data.draw(st.text("xy", min_size=len(calls), max_size=len(calls)))
    past, pairs, stale = history(calls, answers), list(zip(calls, answers)), 0
    for i, pair in enumerate(pairs):
        stale = stale + 1 if pair in pairs[:i] else 0
        assert StallRule("growth").count(past, f"c{i}") == stale


def test_a_cycle_of_two_calls_is_seen_by_growth_alone(bench: Any) -> None:
    lines = [call("read", path="a.py"), call("read", path="b.py")] * 6 + [say("done")]
    done = bench.run(lines, stall=(StallRule(), StallRule("growth", (4,), 6)))
    assert done.state.termination_reason == "stalled" and done.state.step == 8
    assert [m.about for m in done.history if m.about] == ["c6"]


def test_replies_that_do_not_parse_stall_too(bench: Any) -> None:
    done = bench.run([Reply(text=" ")])
    assert done.state.termination_reason == "stalled" and done.state.step == 4


@pytest.mark.parametrize(
    ("value", "allowed"),
    [("calc.py", True), ("a-b_c.1.py", True), ("../calc.py", False), ("/calc.py", False), (".py", False)]
    + [("src/calc.py", False), ("a.py; rm b.py", False), ("a.py\n", False), ("calc.txt", False), (3, False)],
)
def test_patterns_let_through_plain_names_only(value: Any, allowed: bool) -> None:
    assert (Matches("path", ("*.py",))(ToolCall("c1", "read", {"path": value})) is None) == allowed


def test_a_pattern_without_its_argument_denies() -> None:
    assert Matches("path", ("*",))(ToolCall("c1", "read", {})) is not None


@pytest.mark.parametrize("bad", [{"steps": 0}, {"seconds": -1.0}, {"tokens": float("nan")}])
def test_limits_that_bound_nothing_are_refused(bad: Any) -> None:
    with pytest.raises(AgentError, match="bounds nothing"):
        Limits(**bad)


@pytest.mark.parametrize("bad", [{"warn": (4,), "stop": 4}, {"warn": (0,)}, {"mode": "often"}])
def test_stall_rules_out_of_order_are_refused(bad: Any) -> None:
    with pytest.raises(AgentError):
        StallRule(**bad)


@pytest.mark.parametrize("bad", [{"limit": -1}, {"first": 9.0, "longest": 1.0}])
def test_retries_that_cannot_be_are_refused(bad: Any) -> None:
    with pytest.raises(AgentError):
        Retry(**bad)


class Provider:
    """Fails some times, then replies."""

    name = "provider"

    def __init__(self, failures: list[Exception]) -> None:
        self.failures = failures

    def reply(self, messages: Any, tools: Any, step: int) -> Reply:
        if self.failures:
            raise self.failures.pop(0)
        return say("done")


def test_passing_failures_of_a_model_are_retried(bench: Any) -> None:
    done = bench.run(Provider([ModelFailure("429", True), ModelFailure("503", True)]))
    assert done.state.termination_reason == "completed" and done.state.step == 1 and bench.clock.now() == 3.0
    assert [r["wait"] for r in bench.replayed().records if r["kind"] == "model_failure"] == [1.0, 2.0]


@pytest.mark.parametrize(
    "failure", [ModelFailure("no such model"), RuntimeError("bug"), ModelFailure("429", True)]
)
def test_a_model_that_fails_for_good_ends_the_run(bench: Any, failure: Exception) -> None:
    done = bench.run(Provider([failure] * 9))
    assert done.state.termination_reason == "error" and str(failure) in done.state.detail
    assert bench.replayed().run == done
