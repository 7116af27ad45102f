"""Each format is recognised by its content and read into the records of a run; wrong entries are named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.logs import LogError, read_run, recognise
from harnesses.logs.run import Run

SIZE = len('{"name":"look","arguments":{"at":"a"}}')
EXPECTED = {
    "tau-bench": ("3/1", "3", "error", True),
    "AgentDojo": ("user_task_0/injection_task_1", "banking/user_task_0", "denied", True),
    "mini-swe-agent": ("a__b-1/first", "a__b-1", "error", False),
    "SWE-agent": ("the-file", None, "timeout", None),
    "LangGraph checkpoints": ("e0", "0", "denied", None),
}
every_format = pytest.mark.parametrize("name", EXPECTED)


@every_format
def test_a_record_becomes_a_run(small_logs: dict[str, Any], name: str) -> None:
    run = read_run(small_logs[name], "the-file")
    identity, task, status, success = EXPECTED[name]
    step = run.steps[0]
    assert (run.source, run.id, run.task, run.outcome.success) == (name, identity, task, success)
    assert (run.head.system, run.head.user, run.head.tokens) == ("s" * 40, "u" * 20, 15)
    assert step.call is not None and step.result is not None
    assert (step.call.name, step.result.status, step.result.call_id) == ("look", status, step.call.id)
    assert step.result_tokens == -(-len(step.result.content) // 4)
    if name != "SWE-agent":  # whose call is part of the text
        assert step.call.arguments == {"at": "a"}
        assert step.call_tokens == 2 + -(-SIZE // 4)
    assert run.tokens == run.head.tokens + sum(step.tokens for step in run.steps)


@every_format
def test_the_format_is_told_by_content(small_logs: dict[str, Any], name: str) -> None:
    found = recognise(small_logs[name])
    assert found is not None and found.name == name


@pytest.mark.parametrize("record", [{}, {"messages": []}, [], 3, None, "x", {"history": [{"role": "user"}]}])
def test_an_unknown_format_is_refused_with_the_known_ones(record: Any) -> None:
    with pytest.raises(LogError, match="unknown log format.*known: tau-bench, AgentDojo, mini-swe-agent"):
        read_run(record, "file")


def test_an_injection_that_was_carried_out_is_told_from_one_that_was_not(small_logs: dict[str, Any]) -> None:
    record = small_logs["AgentDojo"]
    assert read_run(record, "f").outcome.carried_out is False
    assert read_run(record | {"security": True}, "f").outcome.carried_out is True
    alone = read_run(record | {"security": True, "injection_task_id": None}, "f").outcome
    assert (alone.attempted, alone.carried_out) == (False, None)


def test_the_last_observation_of_a_trajectory_is_added(small_logs: dict[str, Any]) -> None:
    last = read_run(small_logs["SWE-agent"], "f").steps[-1]
    assert last.result is not None and last.result.content == "diff --git"


def test_a_trajectory_without_a_history_is_read(small_logs: dict[str, Any]) -> None:
    record = small_logs["SWE-agent"]
    del record["history"]
    steps = read_run(record, "f").steps
    assert [step.call.name for step in steps if step.call] == ["look", "submit"]
    assert [step.result.status for step in steps if step.result] == ["timeout", "ok"]


def test_a_demonstration_belongs_to_the_head(small_logs: dict[str, Any]) -> None:
    record = small_logs["SWE-agent"]
    demo = {"role": "assistant", "content": "d" * 8, "action": "x", "agent": "main", "is_demo": True}
    record["history"].insert(1, demo)
    run = read_run(record, "f")
    assert run.head.tokens == 17 and len(run.steps) == 2


def with_usage(record: dict[str, Any], counts: list[tuple[int, int]]) -> Run:
    replies = [message for message in record["messages"] if message["role"] == "assistant"]
    for reply, (prompt, completion) in zip(replies, counts, strict=True):
        reply["extra"] = {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}}
    return read_run(record, "f")


def test_counts_of_the_log_are_used_where_they_tell_every_size(small_logs: dict[str, Any]) -> None:
    record = small_logs["mini-swe-agent"]
    plain = read_run(copy.deepcopy(record), "f")
    run = with_usage(record, [(100, 20), (150, 7)])
    assert run.counted == "log"
    assert (run.head.tokens, [step.tokens for step in run.steps]) == (100, [50, 7])
    assert run.steps[0].result_tokens == 30
    assert run.estimated() == plain


def test_counts_that_cannot_be_are_not_used(small_logs: dict[str, Any]) -> None:
    assert with_usage(small_logs["mini-swe-agent"], [(100, 20), (110, 7)]).counted == "estimate"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("tau-bench", "reward"),
        ("tau-bench", "trial"),
        ("AgentDojo", "utility"),
        ("mini-swe-agent", "resolved"),
        ("mini-swe-agent", "info"),
        ("mini-swe-agent", "instance_id"),
        ("SWE-agent", "info"),
        ("LangGraph checkpoints", "case"),
    ],
)
def test_a_missing_verdict_is_none(small_logs: dict[str, Any], name: str, key: str) -> None:
    record = small_logs[name]
    del record[key]
    run = read_run(record, "f")
    assert len(run.steps) == 2
    if key in ("reward", "utility", "resolved"):
        assert run.outcome.success is None


def test_two_calls_of_one_reply_get_their_answers_by_id(small_logs: dict[str, Any]) -> None:
    record = small_logs["tau-bench"]
    messages = record["traj"]
    other = copy.deepcopy(messages[2]["tool_calls"][0]) | {"id": "k2"}
    messages[2]["tool_calls"].append(other)
    messages.insert(3, {"role": "tool", "tool_call_id": "k2", "content": "second"})
    steps = read_run(record, "f").steps
    assert [(s.call.id, s.result.content, s.said) for s in steps if s.call and s.result] == [
        ("k1", "Error: nothing there", "think"),
        ("k2", "second", ""),
    ]


def test_an_id_used_again_answers_the_newest_call(small_logs: dict[str, Any]) -> None:
    record = small_logs["tau-bench"]
    record["traj"][4:] = copy.deepcopy(record["traj"][2:4])
    record["traj"][5]["content"] = "fine"
    assert [s.result.status for s in read_run(record, "f").steps if s.result] == ["error", "ok"]
    del record["traj"][3]  # the first call was never answered
    assert [s.result and s.result.status for s in read_run(record, "f").steps] == [None, "ok"]


def test_an_answer_without_its_call_stays_a_result(small_logs: dict[str, Any]) -> None:
    record = small_logs["tau-bench"]
    del record["traj"][2]
    step = read_run(record, "f").steps[0]
    assert step.call is None and step.result is not None and step.result.status == "error"


def test_what_a_user_says_later_is_kept_with_the_step(small_logs: dict[str, Any]) -> None:
    record = small_logs["tau-bench"]
    record["traj"] += [{"role": "user", "content": "h" * 9}, {"role": "assistant", "content": "bye"}]
    steps = read_run(record, "f").steps
    assert (steps[1].heard, steps[1].heard_tokens, len(steps)) == ("h" * 9, 3, 3)


@pytest.mark.parametrize(
    ("name", "path", "value", "place"),
    [
        ("tau-bench", ["traj"], 7, r"traj is a number, not a list"),
        ("tau-bench", ["traj", 2], "x", r"traj\[2\] is a text, not an object"),
        ("tau-bench", ["traj", 2, "role"], "robot", r"traj\[2\].role is 'robot'; known: system"),
        ("tau-bench", ["traj", 2, "content"], 5, r"traj\[2\].content is a number, not a text"),
        ("tau-bench", ["traj", 2, "tool_calls", 0], None, r"traj\[2\].tool_calls\[0\] is null"),
        ("AgentDojo", ["utility"], "yes", r"utility is a text, not true, false or null"),
        ("LangGraph checkpoints", ["history_newest_first"], [], "holds no checkpoint"),
        ("SWE-agent", ["history", 2, "content"], {}, r"history\[2\].content is an object"),
    ],
)
def test_a_wrong_entry_is_named(
    small_logs: dict[str, Any], name: str, path: list[Any], value: Any, place: str
) -> None:
    target = small_logs[name]
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(LogError, match=place) as caught:
        read_run(small_logs[name], "f")
    assert "\n" not in str(caught.value)


def places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every entry of a record."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, value in inner for place in [(*at, key), *places(value, (*at, key))]]


WRONG = [
    None,
    True,
    -1,
    1e300,
    float("nan"),
    "",
    "x",
    "Error\ud800",
    [],
    [None],
    [[]],
    {},
    {"id": 1},
    ["a", {}],
]


@every_format
@given(data=st.data())
def test_damage_anywhere_gives_a_run_or_one_clear_line(
    make_logs: Callable[[], dict[str, Any]], name: str, data: st.DataObject
) -> None:
    record = make_logs()[name]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(record)))
        target = record
        for key in path[:-1]:
            target = target[key]
        if data.draw(st.booleans()):
            target[path[-1]] = copy.deepcopy(data.draw(st.sampled_from(WRONG)))
        else:
            del target[path[-1]]
    try:
        run = read_run(record, "f")
    except LogError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert run.tokens == run.head.tokens + sum(step.tokens for step in run.steps)
        assert all(step.key is None or json.loads(step.key) for step in run.steps)
