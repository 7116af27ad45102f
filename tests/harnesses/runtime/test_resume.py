"""A run killed after any record of its trace goes on to the same end, and does nothing recorded twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnesses.context import OldestFirst
from harnesses.runtime.models import RawCall, Reply, call, say
from harnesses.runtime.records import AgentError
from harnesses.runtime.resume import UNKNOWN, resume
from harnesses.runtime.trace import replay

SCRIPT = [
    Reply(text="two", calls=(RawCall("read", '{"path":"a.py"}'), RawCall("flaky"))),
    Reply(calls=(RawCall("read", "{"),)),
    Reply(text="  "),
    call("read", path="/x"),
    call("read", path="b.py"),
    call("read", path="b.py"),
    Reply(calls=(RawCall("read", '{"path":"b.py"}'), RawCall("broken"))),
    say("done"),
]
PHI = OldestFirst(120, keep=2)


class Killed(BaseException):
    """Not an Exception, so that nothing on the way handles it."""


class DyingTrace:
    """Takes so many records, then the process dies."""

    def __init__(self, lives: int) -> None:
        self.lives, self.lines = lives, []

    def write(self, record: dict[str, Any]) -> None:
        if len(self.lines) == self.lives:
            raise Killed
        self.lines.append(json.dumps(record))


def whole(make_bench: Any, script: Any = SCRIPT) -> Any:
    bench = make_bench()
    bench.flaky_failures = 1
    return bench, bench.run(script, PHI)


def killed_and_resumed(make_bench: Any, lives: int, **fields: Any) -> Any:
    """The bench, whose tools keep their state as a world outside of the process would, and the resumed run."""
    bench = make_bench()
    bench.flaky_failures = 1
    trace = DyingTrace(lives)
    with pytest.raises(Killed):
        bench.run(SCRIPT, PHI, trace=trace, **fields)
    bench.trace.lines = list(trace.lines)
    return bench, resume(bench.harness(SCRIPT, PHI, **fields), replay(trace.lines))


def trajectory(run: Any) -> Any:
    return [(m.role, m.content, m.calls, m.about) for m in run.history], run.state.termination_reason


def test_a_run_killed_after_any_record_ends_as_if_uninterrupted(make_bench: Any) -> None:
    bench, done = whole(make_bench)
    count = len(bench.trace.lines)
    assert count > 40
    for lives in range(3, count):
        again, resumed = killed_and_resumed(make_bench, lives)
        past = again.replayed()
        assert trajectory(resumed) == trajectory(done), f"killed after record {lives}"
        assert resumed.state.step == done.state.step
        assert resumed.state.budget_remaining.tool_calls == done.state.budget_remaining.tool_calls
        assert past.run == resumed
        assert {s: c.messages for s, c in past.contexts.items()}.keys() == bench.replayed().contexts.keys()


def test_a_non_idempotent_call_is_never_made_twice(make_bench: Any) -> None:
    bench = make_bench()
    bench.run(SCRIPT, PHI, idempotent=False)
    unknown = 0
    for lives in range(3, len(bench.trace.lines)):
        again = make_bench()
        trace = DyingTrace(lives)
        with pytest.raises(Killed):
            again.run(SCRIPT, PHI, trace=trace, idempotent=False)
        again.trace.lines = list(trace.lines)
        resumed = resume(again.harness(SCRIPT, PHI, idempotent=False), replay(trace.lines))
        assert again.executed["flaky"] <= 1
        if again.executed["flaky"] == 0 or resumed.results["c2"].content == UNKNOWN:
            unknown += 1
            assert resumed.results["c2"].status == "error"
        assert resumed.state.termination_reason == "completed"
    assert unknown == 1  # killed between the call and the record of its end, and nowhere else


def test_a_finished_run_stays_as_it_is(make_bench: Any) -> None:
    bench, done = whole(make_bench)
    lines = list(bench.trace.lines)
    assert resume(bench.harness(SCRIPT, PHI), replay(lines)) == done
    assert bench.trace.lines == lines


def test_another_harness_is_refused(make_bench: Any) -> None:
    bench, _ = whole(make_bench)
    with pytest.raises(AgentError, match="another map"):
        resume(bench.harness(SCRIPT, OldestFirst(5)), replay(bench.trace.lines[:9]))


def test_a_trace_without_a_request_is_refused(make_bench: Any) -> None:
    bench, _ = whole(make_bench)
    with pytest.raises(AgentError, match="start the run anew"):
        resume(bench.harness(SCRIPT, PHI), replay(bench.trace.lines[:2]))
