"""Over random model scripts: what holds of every run, whatever the model does. Source: M1 §1.2.2, §1.2.4."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnesses.context import (
    Calls,
    Compose,
    ContextMap,
    Counter,
    Full,
    Last,
    LastMessages,
    Null,
    OldestFirst,
    Results,
    Summary,
    Unordered,
)
from harnesses.context.summary import Latest
from harnesses.runtime.assembly import Reading, head, history_tokens
from harnesses.runtime.control import Limits, StallRule
from harnesses.runtime.format import chat
from harnesses.runtime.models import RawCall, Reply
from harnesses.runtime.records import ToolCall

PATHS = ("a.py", "b.py", "src.py", "../a.py", "/a.py", "a.py; rm", "", ".a.py", "a/b.py")
ARGUMENTS = st.one_of(
    st.fixed_dictionaries(
        {"path": st.sampled_from(PATHS)}, optional={"mode": st.sampled_from(["text", "lines", "x"])}
    ),
    st.dictionaries(
        st.sampled_from(["path", "seconds", "other"]), st.one_of(st.text(max_size=3), st.integers(-9, 9))
    ),
    st.fixed_dictionaries({"seconds": st.sampled_from([0.0, 1.0, 7.5])}),
    st.just({}),
)
RAW = st.one_of(
    st.builds(
        lambda n, a: RawCall(n, json.dumps(a)),
        st.sampled_from(["read", "slow", "broken", "flaky"]),
        ARGUMENTS,
    ),
    st.just(RawCall("read", '{"path": "a.py"}')),
    st.builds(
        RawCall, st.sampled_from(["read", "write", ""]), st.sampled_from(["", "{", "[]", "null", "{}"])
    ),
)
REPLY = st.builds(
    Reply, text=st.sampled_from(["", "thinking", "\ud800"]), calls=st.lists(RAW, max_size=3).map(tuple)
)
SCRIPTS = st.lists(REPLY, min_size=1, max_size=9)
BUDGETS = st.builds(OldestFirst, st.integers(0, 400), st.booleans(), st.integers(0, 5))
MAPS: st.SearchStrategy[ContextMap] = st.one_of(
    BUDGETS,
    st.builds(Last, st.integers(0, 4)),
    st.builds(LastMessages, st.integers(0, 7)),
    st.sampled_from(
        [
            Full(3),
            Null(),
            Counter(OldestFirst(100)),
            Compose(Calls(), Last(3)),
            Compose(Results(), Last(3)),
            Compose(Unordered(), Last(4)),
            Summary(Latest()),
        ]
    ),
)
LIMITS = st.builds(
    Limits,
    steps=st.integers(1, 12),
    tokens=st.one_of(st.none(), st.integers(300, 5000)),
    tool_calls=st.one_of(st.none(), st.integers(1, 12)),
    seconds=st.one_of(st.none(), st.floats(1.0, 30.0)),
    consecutive_errors=st.one_of(st.none(), st.integers(1, 5)),
)
RULES = st.sampled_from([(StallRule(),), (StallRule("total"), StallRule("growth", (2,), 4)), ()])


def allowed(call: ToolCall) -> bool:
    """Whether a call is valid and permitted, said anew: by types and by the shape of the path."""
    a = dict(call.arguments)
    if call.name == "read":
        path, mode = a.pop("path", None), a.pop("mode", "text")
        plain = path in ("a.py", "b.py", "src.py")
        return plain and mode in ("text", "lines") and not a
    if call.name == "slow":
        return set(a) == {"seconds"} and type(a["seconds"]) in (int, float)
    return call.name in ("broken", "flaky") and not a


# The fixture is a class, of which each example makes its own.
FRESH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@FRESH
@given(SCRIPTS, MAPS, LIMITS, RULES)
def test_every_run(make_bench: Any, script: Any, phi: ContextMap, limits: Limits, rules: Any) -> None:
    bench = make_bench()
    bench.flaky_failures = 1
    done = bench.run(script, phi, limits=limits, stall=rules)
    past = bench.replayed()
    assert done.state.terminated
    check_only_allowed_calls_execute(bench, done, past)
    check_one_result_each(done)
    check_bounds(bench, done, past, limits)
    assert past.run == done
    for step, context in past.contexts.items():
        check_context(done, past, step, context, phi)


def check_only_allowed_calls_execute(bench: Any, done: Any, past: Any) -> None:
    calls = {call.id: call for call in done.calls}
    started = [r["call_id"] for r in past.records if r["kind"] == "started"]
    assert len(started) == bench.executed.total()
    assert all(allowed(calls[id]) for id in started)
    for id, result in done.results.items():
        if result.status == "denied" or not allowed(calls[id]):
            assert id not in started
            assert result.status in ("error", "denied")


def check_one_result_each(done: Any) -> None:
    assert [m.result.call_id for m in done.history if m.result] == [call.id for call in done.calls]
    marks = [m.timestamp for m in done.history]
    assert marks == sorted(set(marks))


def check_bounds(bench: Any, done: Any, past: Any, limits: Limits) -> None:
    replies = [r for r in past.records if r["kind"] == "reply"]
    assert len(replies) == done.state.step <= (limits.steps or 99)
    started = {r["call_id"] for r in past.records if r["kind"] == "started"}
    assert len(started) <= (limits.tool_calls or 99)
    if limits.tokens is not None:
        spent = sum(r["tokens"] for r in replies[:-1])
        if replies:
            assert spent + past.contexts[len(replies) - 1].token_estimate <= limits.tokens
    if limits.seconds is not None:
        assert all(r["at"] < limits.seconds for r in replies)
    errors = [r["state"]["consecutive_errors"] for r in past.records if r["kind"] == "context"]
    if limits.consecutive_errors is not None:
        assert max(errors[:-1], default=0) < limits.consecutive_errors


def check_context(done: Any, past: Any, step: int, context: Any, phi: ContextMap) -> None:
    replies = [i for i, m in enumerate(done.history) if m.role == "assistant"]
    history = done.history[: replies[step]] if step < len(replies) else done.history
    reading = Reading()
    gone = sum(removal.tokens for removal in context.dropped)
    shown = context.token_estimate - context.schema_tokens
    assert history_tokens(history, reading) - shown == gone - context.inserted_tokens
    pinned = head(done.history)
    assert context.messages[: len(pinned)] == pinned
    check_paired(context.messages)
    if isinstance(phi, OldestFirst):
        # Every call stays; and nothing is removed that did not have to be.
        assert [c.id for m in context.messages for c in m.calls] == [c.id for m in history for c in m.calls]
        events = shown - sum(reading.tokens(m.content) for m in pinned)
        if context.dropped:
            assert events + max(r.tokens for r in context.dropped) > phi.budget


def check_paired(messages: Any) -> None:
    """Each call is followed at once by its results, each result has its call: what chat models insist on."""
    waiting: list[str] = []
    for shown in chat(messages):
        if shown["role"] == "tool":
            assert shown["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call["id"] for call in shown.get("tool_calls", ())]
    assert not waiting


@FRESH
@given(SCRIPTS, MAPS)
def test_a_run_repeats_exactly(make_bench: Any, script: Any, phi: ContextMap) -> None:
    first, second = make_bench(), make_bench()
    first.run(script, phi), second.run(script, phi)
    assert first.trace.lines == second.trace.lines
