"""Replay, fork and a fresh start: what runs again, what stays, and one email whatever is run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harnesses.desk.database import DeskError
from harnesses.desk.history import branch, fork, history, replay, snapshot_before, start_fresh
from harnesses.runtime.models import call, say

EMAIL = {
    "to": "ana@example.org",
    "subject": "Your registration for E1",
    "body": "You are registered for E1 in Lyon.",
}
Make = Callable[..., Any]
NODES = ["router", "agent", "tools", "guard", "human_review", "send", "agent"]


def finished(room: Make, **settings: Any) -> Any:
    r = room(**settings)
    r.desk.with_human(r.start(), approve)
    return r


def approve(question: Any) -> str:
    return "approve"


def ids(r: Any) -> list[str]:
    return [moment.id for moment in history(r.desk, "t")]


def test_history_is_newest_first_and_names_what_was_due(room: Make) -> None:
    moments = history(finished(room).desk, "t")
    assert [moment.next for moment in moments][::-1] == ["__start__", *NODES, None]
    assert [moment.parent for moment in moments] == [*(moment.id for moment in moments[1:]), None]
    assert all(moment.current for moment in moments)


@pytest.mark.parametrize("at", ["router", "tools", "guard", "human_review", "send"])
def test_a_replay_from_anywhere_sends_no_second_email(room: Make, at: str) -> None:
    r = finished(room)
    before = ids(r)
    again = r.desk.with_human(replay(r.desk, "t", at), approve)
    assert (again.kind, r.sent()) == ("answer", 1)
    assert [line["node"] for line in again.state["trace"]] == NODES
    assert again.state["actions"] == ["approved:c1", "sent:c1"]
    assert ids(r)[-len(before) :] == before  # the old snapshots are there still


def test_a_replay_from_before_send_runs_send_again_without_effect(room: Make) -> None:
    r = finished(room)
    again = replay(r.desk, "t", "send")
    assert [line.get("first") for line in again.state["trace"] if line["node"] == "send"] == [False]
    assert (len(r.decider.asked), r.sent()) == (2, 1)


def test_a_replay_asks_a_person_anew_and_the_old_answer_does_not_count(room: Make) -> None:
    r = room()
    first = r.start().question
    r.desk.answer("t", first.id, "approve")
    waiting = replay(r.desk, "t", "human_review")
    assert waiting.kind == "paused" and waiting.question.id != first.id
    assert r.desk.resume("t").kind == "paused"
    with pytest.raises(DeskError, match="does not wait"):
        r.desk.answer("t", first.id, "approve")


def test_a_fork_with_other_thresholds_changes_only_what_follows(room: Make) -> None:
    r = room()
    question = r.start().question
    before = history(r.desk, "t")
    done = fork(r.desk, "t", "human_review", taus={"act": "0.7"})
    assert (done.kind, r.sent(), done.state["region"]) == ("answer", 1, "act")
    assert [line["node"] for line in done.state["trace"]] == [
        "router",
        "agent",
        "tools",
        "guard",
        "send",
        "agent",
    ]
    assert len(r.decider.asked) == 2  # the guard's number stood in the state
    after = history(r.desk, "t")
    old = {moment.id: moment for moment in after}
    assert all((old[m.id].next, old[m.id].taus, old[m.id].line) == (m.next, m.taus, m.line) for m in before)
    assert not old[before[0].id].current or old[before[0].id].next == "human_review"
    with pytest.raises(DeskError, match="does not wait"):
        r.desk.answer("t", question.id, "approve")


@pytest.mark.parametrize(
    ("taus", "kind", "sent"),
    [
        ({"act": "0.7"}, "answer", 1),
        ({"esc": "0.9", "act": "0.95"}, "handoff", 0),
        ({"act": "0.99"}, "paused", 0),
    ],
)
@pytest.mark.parametrize("at", ["router", "guard", "human_review"])
def test_the_forks_thresholds_decide(room: Make, at: str, taus: dict[str, str], kind: str, sent: int) -> None:
    r = room()
    r.start()
    forked = fork(r.desk, "t", at, taus=taus)
    assert (forked.kind, r.sent()) == (kind, sent)
    assert forked.state["taus"] == {"route": "0.75", "esc": "0.375", "act": "0.969", "verify": "0.5"} | taus
    region = {"answer": "act", "handoff": "escalate", "paused": "ask"}[kind]
    assert forked.state["region"] == region


def test_a_fork_at_the_router_reads_its_own_threshold(room: Make) -> None:
    r = room()
    r.start()
    assert fork(r.desk, "t", "router", taus={"route": "0.95"}).state["outcome"]["reason"] == "route-unsure"


def test_a_fork_of_a_finished_run_sends_no_second_email(room: Make) -> None:
    r = finished(room)
    assert (fork(r.desk, "t", "guard", taus={"act": "0.5"}).kind, r.sent()) == ("answer", 1)


def test_a_replay_in_which_the_model_writes_another_email_sends_none(room: Make) -> None:
    texts = iter(["One.", "Two."])

    def model(messages: Any) -> Any:
        return (
            say("Done.")
            if messages[-1]["role"] == "tool"
            else call("send_email", **{**EMAIL, "body": next(texts)})
        )

    r = finished(room, script=[model])
    again = r.desk.with_human(_from_first_agent(r), approve)
    assert r.sent() == 1 and again.state["actions"] == ["approved:c1"]
    assert "another email already" in json.dumps(again.state["messages"])


def _from_first_agent(r: Any) -> Any:
    first = [snapshot for snapshot in branch(r.desk, "t") if snapshot.next == ("agent",)][-1]
    return replay(r.desk, "t", first.config["configurable"]["checkpoint_id"])


def test_facts_and_bounds_may_be_forked_and_nothing_else(room: Make) -> None:
    r = room()
    r.start()
    gone = fork(r.desk, "t", "guard", case={"registration": None})
    assert (gone.kind, gone.state["outcome"]["reason"]) == ("handoff", "order-rule")
    assert fork(r.desk, "t", "router", k_max=1).state["outcome"]["reason"].startswith("k_max")
    for changes in ({"p_allow": 1.0}, {"actions": ["approved:c1"]}, {"taus_": {}}, {}):
        with pytest.raises(DeskError, match="a fork changes taus, case, k_max"):
            fork(r.desk, "t", "router", **changes)
    with pytest.raises(DeskError, match="keeps its request"):
        fork(r.desk, "t", "router", case={"request": "Another"})
    for taus in ({"act": "2"}, {"acts": "0.5"}, {"esc": "0.99"}):
        with pytest.raises(DeskError):
            fork(r.desk, "t", "router", taus=taus)


def test_nothing_changes_between_a_verdict_and_its_email(room: Make) -> None:
    r = finished(room)
    with pytest.raises(DeskError, match="nothing can be changed before send"):
        fork(r.desk, "t", "send", case={"registration": None})


def test_a_snapshot_that_is_not_there_is_named(room: Make) -> None:
    r = room()
    r.start()
    with pytest.raises(
        DeskError, match="no snapshot before 'send'; it came past router, agent, tools, guard"
    ):
        snapshot_before(r.desk, "t", "send")
    for step in (history, lambda desk, thread: replay(desk, thread, "router")):
        with pytest.raises(DeskError, match="there is no thread 'nobody'"):
            list(step(r.desk, "nobody"))


def test_the_current_branch_is_the_newest_one(room: Make) -> None:
    r = room()
    r.start()
    fork(r.desk, "t", "guard", taus={"act": "0.7"})
    moments = history(r.desk, "t")
    line = [moment.next for moment in moments if moment.current][::-1]
    assert [name for name in line if name] == [
        "__start__",
        "router",
        "agent",
        "tools",
        "guard",
        "guard",
        "send",
        "agent",
    ]
    assert sum(not moment.current for moment in moments) == 1  # the pause that was left


def test_a_fresh_start_knows_what_was_decided_and_nothing_that_was_read(room: Make, fixed: Any) -> None:
    script = [call("retrieve", query="seats parking"), call("send_email", **EMAIL), say("Done.")]
    r = room(script, fixed(p_allow=0.98))
    r.start()
    r.model.__dict__["lines"] = [say("Welcome back.")]
    done = start_fresh(r.desk, "t", "u", {**r.case, "request": "And the fee?"})
    told = r.model.shown[-1]
    assert done.kind == "answer" and [m["role"] for m in told] == ["system", "user", "user"]
    assert "sent:c2" in told[1]["content"] and "Ana Duarte" in told[1]["content"]
    assert "[E" not in told[1]["content"] and told[2]["content"] == "And the fee?"
    with pytest.raises(DeskError, match="is there already"):
        start_fresh(r.desk, "t", "u", r.case)
    with pytest.raises(DeskError, match="there is no thread 'x'"):
        start_fresh(r.desk, "x", "y", r.case)
