"""The eleven acceptance criteria of the minimal harness, one test or more each. Source: M1 §1.2.6, Lab 1a."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnesses.context import Last, OldestFirst
from harnesses.runtime.assembly import Reading, head, history_tokens
from harnesses.runtime.control import Limits, StallRule
from harnesses.runtime.loop import run
from harnesses.runtime.models import RawCall, Reply, ScriptedModel, call, say
from harnesses.runtime.records import ToolCall
from harnesses.runtime.retry import Retry
from harnesses.runtime.scenarios import CALC, SYSTEM, VirtualFiles, harness_of, scenario, virtual
from harnesses.runtime.trace import MemoryTrace, replay
from harnesses.runtime.workspace import Workspace

READ, DONE = call("read", path="a.py"), say("done")


def statuses(run: Any) -> list[str]:
    return [m.result.status for m in run.history if m.result]


def contents(run: Any) -> list[str]:
    return [m.result.content for m in run.history if m.result]


# Row 1


def test_row_1_a_task_of_several_steps_completes() -> None:
    tools = VirtualFiles()
    chosen = scenario("calc", "fix")
    done = run(harness_of(tools, chosen.model), chosen.request, SYSTEM)
    assert done.state.termination_reason == "completed"
    answered = [m.result.call_id for m in done.history if m.result]
    assert answered == [c.id for c in done.calls] and len(set(answered)) == len(answered) == 4
    assert json.loads(done.results["c4"].content)["exit_code"] == 0
    assert {c.name for c in done.calls} == {"read_file", "write_file", "run_tests"}


@pytest.mark.parametrize("task", ["calc", "find", "copy"])
def test_row_1_three_tasks_complete(task: str) -> None:
    chosen = scenario(task)
    assert run(virtual(chosen), chosen.request, SYSTEM).state.termination_reason == "completed"


# Row 2

MALFORMED = [
    (call("read"), "path"),
    (call("read", path="a.py", much=1), "much"),
    (call("read", path=3), "path"),
    (call("read", path="a.py", mode="bytes"), "mode"),
    (call("slow", seconds="3"), "seconds"),
    (call("write", path="a.py"), "write"),
    (call("read", path=["/etc/passwd"]), "path"),
]


@pytest.mark.parametrize(("reply", "named"), MALFORMED)
def test_row_2_a_malformed_call_never_executes(bench: Any, reply: Reply, named: str) -> None:
    done = bench.run([reply, DONE])
    assert statuses(done) == ["error"] and named in contents(done)[0]
    assert not bench.executed


def test_row_2_invalid_and_forbidden_is_error_not_denied(bench: Any) -> None:
    done = bench.run([call("read", path="/etc/passwd", much=1), call("read", path="/etc/passwd"), DONE])
    assert statuses(done) == ["error", "denied"] and not bench.executed


@pytest.mark.parametrize(
    "arguments", ['{"path": "a.py"', "[1]", '{"path":"a.py","path":"b.py"}', '{"path":NaN}']
)
def test_row_2_a_reply_that_does_not_parse_never_executes(bench: Any, arguments: str) -> None:
    broken = Reply(calls=(RawCall("read", '{"path":"a.py"}'), RawCall("read", arguments)))
    done = bench.run([broken, DONE])
    assert not bench.executed and not done.calls
    correction = done.history[3]
    assert correction.role == "user" and "call 2, read: " in correction.content


# Row 3


@pytest.mark.parametrize("path", ["../secrets.env", "/etc/passwd", "link/secrets.env", "secrets.link"])
def test_row_3_a_denied_path_never_executes(tmp_path: Path, path: str) -> None:
    outside, inside = tmp_path / "out", tmp_path / "in"
    outside.mkdir(), inside.mkdir()
    (outside / "secrets.env").write_text("secret")
    (tmp_path / "secrets.env").write_text("secret")
    (inside / "link").symlink_to(outside)
    (inside / "secrets.link").symlink_to(outside / "secrets.env")
    check_denied(Workspace.at(inside), call("read_file", path=path))
    check_denied(Workspace.at(inside), call("write_file", path=path, content="x"))
    assert (outside / "secrets.env").read_text() == "secret"


@pytest.mark.parametrize(
    "command", ["pytest; rm -rf .", "rm -rf .", "pytest && rm x", "pytest $(rm x)", "pytest\nrm x"]
)
def test_row_3_a_denied_command_never_executes(tmp_path: Path, command: str) -> None:
    check_denied(Workspace.at(tmp_path), call("run_tests", command=command))
    check_denied(VirtualFiles(), call("run_tests", command=command))


def check_denied(tools: Any, reply: Reply) -> None:
    trace = MemoryTrace()
    done = run(harness_of(tools, ScriptedModel([reply, DONE]), trace=trace), "Try it.")
    assert statuses(done) == ["denied"]
    assert len(contents(done)[0]) > 20  # the rule and what it forbids, in words
    assert not any('"kind":"started"' in line for line in trace.lines)


# Row 4


def test_row_4_a_slow_tool_times_out_and_the_loop_goes_on(bench: Any) -> None:
    done = bench.run([call("slow", seconds=60.0), READ, DONE])
    assert statuses(done) == ["timeout", "ok"] and done.state.termination_reason == "completed"


def test_row_4_an_exception_is_an_error_with_its_message(bench: Any) -> None:
    done = bench.run([call("broken"), READ, DONE])
    assert statuses(done) == ["error", "ok"] and "a part is missing" in contents(done)[0]


def test_row_4_every_outcome_has_the_same_shape(bench: Any) -> None:
    lines = [
        call("slow", seconds=9.0),
        call("broken"),
        READ,
        call("read", path="/x"),
        call("read"),
        call("no"),
    ]
    done = bench.run([*lines, DONE])
    results = [m.result for m in done.history if m.result]
    assert [r.status for r in results] == ["timeout", "error", "ok", "denied", "error", "error"]
    assert all(isinstance(r.content, str) and r.content and r.duration >= 0 for r in results)
    assert results[0].duration == 9.0


# Row 5


def test_row_5_trimming_is_recorded_at_every_step(bench: Any) -> None:
    lines = [call("read", path=f"{'f' * n}.py") for n in range(1, 12)] + [call("broken"), Reply(), DONE]
    keep = 4
    done = bench.run(lines, OldestFirst(700, keep=keep))
    reading, past = Reading(), bench.replayed()
    assert any(context.dropped for context in past.contexts.values())
    for step, context in past.contexts.items():
        replies = [i for i, m in enumerate(done.history) if m.role == "assistant"]
        history = done.history[: replies[step]] if step < len(replies) else done.history
        shown = context.token_estimate - context.schema_tokens
        gone = sum(removal.tokens for removal in context.dropped)
        assert history_tokens(history, reading) - shown == gone - context.inserted_tokens
        assert all(r.message and r.tokens > 0 and r.rule == "oldest_first:700:4" for r in context.dropped)
        assert context.messages[:2] == head(done.history)
        assert context.messages[-keep:] == history[-keep:] or len(history) <= keep + 2
        # Nothing but a recorded removal changes a message.
        touched = {removal.message.removesuffix("=") for removal in context.dropped}
        for message in context.messages:
            assert message in history or (message.result and message.result.call_id in touched)


def test_row_5_a_preserved_part_over_the_threshold_is_context_overflow(bench: Any) -> None:
    limits = Limits(context_tokens=500)
    done = bench.run([call("read", path="f" * 20 + ".py"), DONE], OldestFirst(300, keep=2), limits=limits)
    assert done.state.termination_reason == "context_overflow" and done.state.step == 1


# Row 6

BOUNDS = [
    (Limits(steps=3, tokens=None, tool_calls=None, seconds=None), "step_limit"),
    (Limits(steps=None, tokens=1500, tool_calls=None, seconds=None), "token_budget"),
    (Limits(steps=None, tokens=None, tool_calls=4, seconds=None), "tool_call_budget"),
    (Limits(steps=None, tokens=None, tool_calls=None, seconds=10.0), "wall_clock"),
    (Limits(steps=None, tokens=None, tool_calls=None, seconds=None, cost=0.5), "cost_budget"),
]


@pytest.mark.parametrize(("limits", "reason"), BOUNDS)
def test_row_6_each_bound_bites_alone_before_the_call(bench: Any, limits: Limits, reason: str) -> None:
    asked = []

    class Endless:
        name = "endless"

        def reply(self, messages: Any, tools: Any, step: int) -> Reply:
            asked.append(step)
            waits = RawCall("slow", json.dumps({"seconds": 2.0 + step % 2}))
            return Reply(calls=(waits, RawCall("read", '{"path":"a.py"}')), cost=0.125)

    done = bench.run(Endless(), limits=limits)
    assert done.state.termination_reason == reason
    assert len(asked) == done.state.step > 0
    replies = [r for r in bench.replayed().records if r["kind"] == "reply"]
    before = replies[-1]["state"]["budget_remaining"]
    if reason == "step_limit":
        assert len(asked) == 3
    if reason == "tool_call_budget":
        assert bench.executed.total() == 4
    if reason == "token_budget":
        last = replies[-2]["state"]["budget_remaining"]["tokens"] if len(replies) > 1 else 1500
        context = bench.replayed().contexts[len(asked) - 1]
        assert last >= context.token_estimate and before["tokens"] < done.context.token_estimate
    if reason == "wall_clock":
        assert 10.0 <= bench.clock.now() < 15.0
    if reason == "cost_budget":
        assert len(asked) == 4


def test_row_6_the_tool_call_budget_holds_within_one_reply(bench: Any) -> None:
    many = Reply(calls=tuple(RawCall("read", '{"path":"a.py"}') for _ in range(3)))
    rule = StallRule(stop=9)
    done = bench.run([many], limits=Limits(tool_calls=2), stall=(rule,))
    assert statuses(done) == ["ok", "ok", "denied"] and bench.executed.total() == 2
    assert done.state.termination_reason == "tool_call_budget" and done.state.step == 1


# Row 7


def corrections(run: Any) -> list[str]:
    return [m.about for m in run.history if m.about]


def test_row_7_three_identical_calls_warn_once_and_a_fourth_stalls(bench: Any) -> None:
    done = bench.run([READ])
    assert done.state.termination_reason == "stalled" and corrections(done) == ["c3"]
    assert bench.executed["read"] == 3 and statuses(done) == ["ok", "ok", "ok", "denied"]


def test_row_7_a_different_call_in_between_resets(bench: Any) -> None:
    other = call("read", path="b.py")
    done = bench.run([READ, READ, other, READ, READ, other, READ, READ, READ, other, DONE])
    assert done.state.termination_reason == "completed" and corrections(done) == ["c9"]


def test_row_7_order_of_arguments_does_not_make_calls_differ(bench: Any) -> None:
    a = Reply(calls=(RawCall("read", '{"path":"a.py","mode":"text"}'),))
    b = Reply(calls=(RawCall("read", '{"mode":"text", "path":"a.py"}'),))
    assert bench.run([a, b, a, b]).state.termination_reason == "stalled"


def test_row_7_trimming_alone_never_triggers_it(bench: Any) -> None:
    lines = [call("read", path=f"{letter}{n}.py") for letter in "abc" for n in range(10)]
    rules = (StallRule(), StallRule("total"), StallRule("growth", (2,), 3))
    done = bench.run([*lines, DONE], OldestFirst(50), stall=rules)
    assert done.state.termination_reason == "completed" and not corrections(done)
    sizes = [c.token_estimate for c in bench.replayed().contexts.values()]
    assert max(b - a for a, b in zip(sizes[10:], sizes[11:])) < 30  # the context hardly grows


def test_row_7_escalation_warns_again_before_it_ends_the_run(bench: Any) -> None:
    done = bench.run([READ], stall=(StallRule(warn=(3, 4), stop=6),))
    assert corrections(done) == ["c3", "c4"] and bench.executed["read"] == 5
    assert done.state.termination_reason == "stalled"


# Row 8


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(calls=(RawCall("read", "{"),)), "could not be read"),
        (Reply(text="  "), "the reply is empty"),
        (call("read"), "[error] missing required argument: path"),
        (call("read", path="/x"), "[denied] path '/x'"),
        (call("slow", seconds=6.0), "[timeout] took 6 s"),
        (call("broken"), "[error] KeyError"),
    ],
)
def test_row_8_every_failure_is_an_observation_in_the_next_context(
    bench: Any, reply: Reply, says: str
) -> None:
    seen: list[Any] = []

    def look(messages: Any) -> Reply:
        seen.append([m["content"] for m in messages])
        return READ

    def look_again(messages: Any) -> Reply:
        seen.append([m["content"] for m in messages])
        return DONE

    bench.run([reply, look, look_again], Last(5))
    assert sum(says in content for content in seen[0]) == 1
    errors = [r["state"]["consecutive_errors"] for r in bench.replayed().records if r["kind"] == "context"]
    assert errors == [0, 1, 0]


def test_row_8_failing_steps_in_a_row_are_counted_and_bounded(bench: Any) -> None:
    lines = [call("broken"), call("read"), Reply(), call("read", path="/x")]
    done = bench.run([*lines, *lines], limits=Limits(consecutive_errors=4))
    assert done.state.termination_reason == "error" and done.state.step == 4


# Row 9


@pytest.mark.parametrize("script", CALC)
def test_row_9_a_trace_replays_to_the_same_run(script: str) -> None:
    trace, chosen = MemoryTrace(), scenario("calc", script)
    harness = virtual(chosen, trace=trace)
    done = run(harness, chosen.request, SYSTEM)
    past = replay(trace.lines)
    assert past.run == done
    times = [json.loads(line)["t"] for line in trace.lines]
    assert times == sorted(set(times))
    marks = [m.timestamp for m in done.history]
    assert marks == sorted(set(marks)) and marks[0] > 0
    for step, context in past.contexts.items():
        replies = [i for i, m in enumerate(done.history) if m.role == "assistant"]
        end = replies[step] if step < len(replies) else len(done.history)
        assert harness.context(done.history[:end]) == context


# Row 10


@pytest.mark.parametrize(
    ("failures", "status", "waits"), [(0, "ok", []), (2, "ok", [1, 2]), (9, "error", [1, 2, 4])]
)
def test_row_10_retry_is_bounded_with_doubling_waits(
    bench: Any, failures: int, status: str, waits: Any
) -> None:
    bench.flaky_failures = failures
    done = bench.run([call("flaky"), DONE], retry=Retry(limit=3, first=1.0))
    assert statuses(done) == [status] and bench.clock.now() == sum(waits)
    assert bench.executed["flaky"] == len(waits) + 1
    ended = [r for r in bench.replayed().records if r["kind"] == "ended"]
    assert [r["wait"] for r in ended] == [*waits, None] and [r["attempt"] for r in ended] == [
        *range(1, len(waits) + 2)
    ]


def test_row_10_only_idempotent_tools_are_retried(bench: Any) -> None:
    bench.flaky_failures = 1
    assert statuses(bench.run([call("flaky"), DONE], idempotent=False)) == ["error"]
    assert bench.executed["flaky"] == 1 and bench.clock.now() == 0


@pytest.mark.parametrize(
    "reply", [call("broken"), call("read"), call("read", path="/x"), call("slow", seconds=7.0)]
)
def test_row_10_no_other_failure_is_retried(bench: Any, reply: Reply) -> None:
    bench.run([reply, DONE])
    assert bench.executed.total() <= 1
    assert not [r for r in bench.replayed().records if r["kind"] == "ended" and r["wait"]]


# Row 11


def test_row_11_the_formatter_is_one_replaceable_function(make_bench: Any) -> None:
    def plain(messages: Any) -> list[dict[str, Any]]:
        return [{"role": "user", "content": "\n".join(m.content for m in messages)}]

    lines = [READ, Reply(calls=(RawCall("read", "{"),)), call("broken"), READ, READ, READ, READ]
    one, other = make_bench(), make_bench()
    assert one.run(lines).history == other.run(lines, formatter=plain).history


def test_a_call_has_an_id_of_the_harness(bench: Any) -> None:
    two = Reply(text="both", calls=(RawCall("read", '{"path":"a.py"}'), RawCall("broken")))
    done = bench.run([two, READ, DONE])
    assert done.calls[:2] == (ToolCall("c1", "read", {"path": "a.py"}), ToolCall("c2", "broken", {}))
    assert [c.id for c in done.calls] == ["c1", "c2", "c3"] and done.state.termination_reason == "completed"
