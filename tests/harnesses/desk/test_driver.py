"""Pauses, answers, threads: each question gets its own answer once, and nothing runs twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnesses.desk.database import DeskError
from harnesses.desk.thread_lock import ThreadLocks
from harnesses.runtime.models import ModelFailure, call, say

EMAIL = {
    "to": "ana@example.org",
    "subject": "Your registration for E1",
    "body": "You are registered for E1 in Lyon.",
}
Make = Callable[..., Any]


def emails(count: int) -> list[Any]:
    """A model that asks for that many emails, one after the other, and answers."""
    return [
        *(call("send_email", **{**EMAIL, "body": f"Mail {n}"}) for n in range(1, count + 1)),
        say("Done."),
    ]


def test_the_guard_is_asked_once_a_pass_however_often_the_run_pauses(room: Make) -> None:
    r = room()
    paused = r.start()
    for _ in range(3):
        assert r.desk.resume("t").question.id == paused.question.id
    r.desk.answer("t", paused.question.id, "approve")
    assert (len(r.decider.asked), r.model.calls, r.sent()) == (2, 2, 1)


def test_a_stale_answer_is_refused_and_the_next_question_still_waits(room: Make) -> None:
    r = room(emails(2))
    first = r.start().question
    second = r.desk.answer("t", first.id, "approve").question
    assert (first.call, second.call) == ("c1", "c2") and first.id != second.id
    with pytest.raises(DeskError, match="does not wait in thread t; its answer was approve"):
        r.desk.answer("t", first.id, "approve")
    assert r.sent() == 1 and r.desk.standing("t").question.id == second.id
    done = r.desk.answer("t", second.id, "reject")
    assert (done.kind, r.sent(), done.state["actions"]) == (
        "answer",
        1,
        ["approved:c1", "sent:c1", "rejected:c2"],
    )


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_duplicate_answer_is_refused(room: Make, verdict: str) -> None:
    r = room()
    question = r.start().question
    r.desk.answer("t", question.id, "reject")
    with pytest.raises(DeskError, match="its answer was reject"):
        r.desk.answer("t", question.id, verdict)
    assert r.sent() == 0


@pytest.mark.parametrize("said", ["yes", "APPROVE", "", None, True, {"verdict": "approve"}])
def test_what_is_no_verdict_is_refused_and_the_question_waits(room: Make, said: Any) -> None:
    r = room()
    question = r.start().question
    with pytest.raises(DeskError, match="answer approve or reject"):
        r.desk.answer("t", question.id, said)
    assert r.desk.answer("t", question.id, "approve").kind == "answer"


def test_an_answer_goes_to_the_thread_it_was_asked_in(room: Make) -> None:
    r = room()
    ours, theirs = r.start("t").question, r.start("u").question
    assert ours.id != theirs.id
    with pytest.raises(DeskError, match="does not wait in thread u"):
        r.desk.answer("u", ours.id, "approve")
    assert r.sent() == 0


def test_a_new_request_on_a_paused_thread_is_refused(room: Make) -> None:
    r = room()
    question = r.start().question
    with pytest.raises(DeskError, match="waits for an answer"):
        r.start()
    assert r.desk.answer("t", question.id, "approve").kind == "answer"


def test_a_thread_is_memory_and_its_requests_do_not_mix(room: Make, fixed: Any) -> None:
    script = [
        call("send_email", **EMAIL),
        say("First."),
        call("send_email", **{**EMAIL, "body": "B"}),
        say("Second."),
    ]
    r = room(None, fixed(p_allow=0.3))
    r.start()
    r.decider.p_allow = 0.98
    r.model.__dict__["lines"] = [
        lambda messages: script[2 * (len(messages) > 3) + (messages[-1]["role"] == "tool")]
    ]
    done = r.start()
    shown = r.model.shown[-1]
    assert [m["content"] for m in shown if m["role"] == "user"] == [r.case["request"]] * 2
    # The first request's call went to staff; before the second it has got its result.
    calls = [c["id"] for m in done.state["messages"] for c in m.get("tool_calls", ())]
    results = [m["tool_call_id"] for m in done.state["messages"] if m["role"] == "tool"]
    assert calls == results == ["c1", "c2"]
    assert (done.state["k"], done.state["actions"], r.sent()) == (2, ["escalated:guard", "sent:c2"], 1)
    assert r.desk.standing("other") is None


def test_an_earlier_lookup_does_not_count_for_a_later_request(room: Make, fixed: Any) -> None:
    look = call("get_registration", email="ana@example.org")
    lines = [look, say("Found."), call("send_email", **EMAIL), say("No.")]
    turns = iter(lines)
    r = room([lambda messages: next(turns)], fixed(p_allow=1.0))
    assert r.start(registration=None).kind == "answer"
    assert (r.start(registration=None).kind, r.sent()) == ("answer", 0)


def test_a_run_with_a_human_asks_each_question_once(room: Make) -> None:
    r, asked = room(emails(3)), []

    def human(question: Any) -> str:
        asked.append(question.call)
        return "reject" if question.call == "c2" else "approve"

    done = r.desk.run_with_human("t", r.case, human)
    assert (done.kind, asked, r.sent()) == ("answer", ["c1", "c2", "c3"], 2)


def test_a_run_that_failed_in_passing_goes_on_where_it_stood(room: Make, tmp_path: Path) -> None:
    down = [True]

    def model(messages: Any) -> Any:
        if down and messages[-1]["role"] == "tool":
            raise ModelFailure("overloaded", transient=True)
        return say("Done.") if messages[-1]["role"] == "tool" else call("send_email", **EMAIL)

    r = room([model], path=tmp_path / "desk.db")
    question = r.start().question
    with pytest.raises(ModelFailure):
        r.desk.answer("t", question.id, "approve")
    stopped = r.desk.standing("t")
    assert (stopped.kind, stopped.next, r.sent()) == ("stopped", "agent", 1)
    with pytest.raises(DeskError, match="stopped before agent; resume it"):
        r.start()
    down.clear()
    assert (r.desk.resume("t").kind, r.sent(), len(r.decider.asked)) == ("answer", 1, 2)


def test_another_desk_on_the_same_file_goes_on(room: Make, tmp_path: Path) -> None:
    question = room(path=tmp_path / "desk.db").start().question
    later = room(path=tmp_path / "desk.db")
    waiting = later.desk.standing("t").question
    assert (waiting.id, waiting.shown) == (question.id, question.shown)
    assert later.desk.answer("t", waiting.id, "approve").kind == "answer"
    assert (later.sent(), len(later.decider.asked), later.model.calls) == (1, 0, 1)


def test_a_thread_keeps_the_thresholds_it_started_with(room: Make, tmp_path: Path) -> None:
    """They are in the state: what is given to a graph beside it is in no checkpoint."""
    taus = {"route": "0.5", "esc": "0.1", "act": "0.9", "verify": "0.5"}
    room(path=tmp_path / "desk.db").start(taus=taus)
    later = room(path=tmp_path / "desk.db").desk.standing("t")
    assert later.state["taus"] == taus and later.question.shown["tau_act"] == "0.9"


def test_one_runner_a_thread(room: Make, tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def slow(messages: Any) -> Any:
        inside.set()
        assert leave.wait(20)
        return say("Done.")

    r, other = room([slow], path=tmp_path / "desk.db"), room(path=tmp_path / "desk.db")
    running = threading.Thread(target=r.start)
    running.start()
    assert inside.wait(20)
    for step in (lambda: other.start(), lambda: other.desk.resume("t")):
        with pytest.raises(DeskError, match="being run by someone else"):
            step()
    assert other.start("u").kind == "paused"
    leave.set()
    running.join()
    assert other.desk.resume("t").kind == "answer"


def test_a_lock_is_given_back(tmp_path: Path) -> None:
    locks = ThreadLocks(tmp_path / "desk.db")
    for _ in range(2):
        with pytest.raises(KeyError):
            with locks.held("t"):
                raise KeyError
    with locks.held("t"), locks.held("u"), pytest.raises(DeskError), locks.held("t"):
        pass


def test_steps_are_told_as_they_happen(room: Make) -> None:
    seen: list[Any] = []
    r = room(watch=lambda line: seen.append((line["node"], r.sent())))
    r.desk.with_human(r.start(), lambda question: "approve")
    nodes = ["router", "agent", "tools", "guard", "human_review", "send", "agent"]
    assert seen == list(zip(nodes, [0, 0, 0, 0, 0, 1, 1]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"request": ""}, "a case has a `request`"),
        ({"registration": {"name": "Ana"}}, "a record with an address"),
        ({"k_max": 0}, "whole number of model calls"),
        ({"taus": {"route": "0.75"}}, "thresholds are route, esc, act and verify"),
        ({"taus": {"route": "2", "esc": "0", "act": "1", "verify": "1"}}, "not a probability"),
        ({"taus": {"route": "1", "esc": "0.9", "act": "0.8", "verify": "1"}}, "above tau_act"),
    ],
)
def test_a_request_that_cannot_be_run_leaves_no_thread(
    room: Make, changes: dict[str, Any], message: str
) -> None:
    r = room()
    with pytest.raises(DeskError, match=message):
        r.start(**changes)
    assert r.desk.standing("t") is None


def test_unknown_threads_and_names(room: Make) -> None:
    r = room()
    for step in (lambda: r.desk.resume("nobody"), lambda: r.desk.answer("nobody", "q", "approve")):
        with pytest.raises(DeskError, match="there is no thread 'nobody'"):
            step()
    with pytest.raises(DeskError, match="a thread has a name"):
        r.start(" ")
