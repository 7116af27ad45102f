"""The graph of M14 §4: its worked example step by step, the variants, and what may never happen on any branch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harnesses.desk.database import DeskError
from harnesses.desk.documents import ATTACKER, A
from harnesses.runtime.models import ModelFailure, RawCall, Reply, call, say

EMAIL = {
    "to": "ana@example.org",
    "subject": "Your registration for E1",
    "body": "You are registered for E1 in Lyon.",
}
Make = Callable[..., Any]


def walked(standing: Any) -> list[str]:
    return [line["node"] for line in standing.state["trace"]]


def approve(question: Any) -> str:
    return "approve"


def test_the_worked_example_takes_its_seven_steps(room: Make, fixed: Any) -> None:
    r = room()
    paused = r.start()
    assert (paused.kind, paused.next, r.sent()) == ("paused", "human_review", 0)
    assert paused.question.shown["email"] == EMAIL and paused.question.shown["p_allow"] == 0.80
    done = r.desk.with_human(paused, approve)
    assert walked(done) == ["router", "agent", "tools", "guard", "human_review", "send", "agent"]
    assert (done.kind, done.state["outcome"]["text"]) == ("answer", "Your confirmation is on its way.")
    assert (r.model.calls, len(r.decider.asked), r.sent()) == (2, 2, 1)
    state = done.state
    assert (state["route"], state["p_route"], state["p_allow"], state["region"], state["k"], state["pending"]) == (
        "send_email", 0.91, 0.80, "ask", 2, None,
    )  # fmt: skip
    assert state["actions"] == ["approved:c1", "sent:c1"]
    assert [message["role"] for message in state["messages"]] == ["user", "assistant", "tool", "assistant"]


def test_the_updates_are_those_of_the_table(room: Make, fixed: Any) -> None:
    """What each node wrote, from the checkpoints alone."""
    r = room()
    r.desk.with_human(r.start(), approve)
    snapshots = list(r.desk.graph.get_state_history({"configurable": {"thread_id": "t"}}))[::-1]
    states = [dict(snapshot.values) for snapshot in snapshots]
    changed = [
        {name for name in after if after.get(name) != before.get(name)} - {"trace"}
        for before, after in zip(states[1:], states[2:])
    ]
    assert changed == [
        {"route", "p_route"},
        {"messages", "k"},
        {"pending"},
        {"p_allow", "region"},
        {"actions"},
        {"messages", "pending", "actions"},
        {"messages", "k", "outcome"},
    ]
    assert all(len(snapshot.next) <= 1 for snapshot in snapshots)  # no node runs beside another


def test_a_sure_guard_skips_the_review(room: Make, fixed: Any) -> None:
    r = room(decider=fixed(p_allow=0.98))
    done = r.start()
    assert walked(done) == ["router", "agent", "tools", "guard", "send", "agent"]
    assert (done.kind, r.sent(), done.state["actions"]) == ("answer", 1, ["sent:c1"])


def test_a_doubtful_guard_hands_over(room: Make, fixed: Any) -> None:
    r = room(decider=fixed(p_allow=0.30))
    done = r.start()
    assert walked(done) == ["router", "agent", "tools", "guard", "escalate"]
    assert (done.kind, r.sent(), done.state["actions"]) == ("handoff", 0, ["escalated:guard"])


@pytest.mark.parametrize(
    ("p", "kind"), [(0.969, "answer"), (0.9689, "paused"), (0.375, "paused"), (0.3749, "handoff")]
)
def test_a_probability_on_a_threshold_reaches_it(room: Make, fixed: Any, p: float, kind: str) -> None:
    assert room(decider=fixed(p_allow=p)).start().kind == kind


@pytest.mark.parametrize(("p", "kind"), [(0.75, "paused"), (0.7499, "handoff")])
def test_the_router_follows_from_its_threshold_on(room: Make, fixed: Any, p: float, kind: str) -> None:
    assert room(decider=fixed(p_route=p)).start().kind == kind


def test_a_guard_that_never_acts_asks_at_one(room: Make, fixed: Any) -> None:
    taus = {"route": "3/4", "esc": "3/8", "act": None, "verify": "1/2"}
    assert room(decider=fixed(p_allow=1.0)).start(taus=taus).kind == "paused"


def test_a_rejected_email_is_never_sent(room: Make, fixed: Any) -> None:
    r = room()
    done = r.desk.with_human(r.start(), lambda question: "reject")
    assert walked(done) == ["router", "agent", "tools", "guard", "human_review", "agent"]
    assert (done.kind, r.sent(), done.state["actions"], done.state["pending"]) == (
        "answer",
        0,
        ["rejected:c1"],
        None,
    )
    result = done.state["messages"][2]
    assert (result["tool_call_id"], result["status"]) == ("c1", "denied") and result["content"].startswith(
        "Stop: "
    )


@pytest.mark.parametrize("route", ["retrieve", "calculate"])
def test_an_email_asked_for_on_another_branch_meets_the_guard(room: Make, fixed: Any, route: str) -> None:
    r = room(decider=fixed(route=route, p_allow=0.5))
    assert (r.start().kind, r.sent()) == ("paused", 0)


def test_a_copy_to_another_address_is_stopped_in_code(room: Make, fixed: Any) -> None:
    """Document A, obeyed by the model: P6 needs no probability, and none is asked for."""
    attack = [
        call("retrieve", query="parking near the venue"),
        call("send_email", **{**EMAIL, "to": ATTACKER}),
    ]
    r = room(attack, fixed(route="retrieve", p_allow=1.0), poisoned=(A,))
    done = r.start(request="Where can I park?")
    assert (done.kind, done.state["outcome"]["reason"], r.sent()) == ("handoff", "P6", 0)
    assert len(r.decider.asked) == 1 and done.state["p_allow"] is None
    assert done.state["trace"][-2]["stopped"] == ["P6"]


def test_no_email_before_a_lookup_that_succeeded(room: Make, fixed: Any) -> None:
    send, look = call("send_email", **EMAIL), call("get_registration", email="ana@example.org")
    r = room([send, look, send, say("Done.")], fixed(p_allow=1.0))
    done = r.start(registration=None)
    assert walked(done) == [
        "router",
        "agent",
        "tools",
        "agent",
        "tools",
        "agent",
        "tools",
        "guard",
        "send",
        "agent",
    ]
    assert (done.kind, r.sent(), done.state["actions"]) == ("answer", 1, ["sent:c3"])
    assert done.state["messages"][2]["content"].startswith("Fix: send_email: order rule")
    # The guard was shown the record that the tool found.
    assert r.decider.asked[-1].state["registration"]["name"] == "Ana Duarte"


def test_a_lookup_that_fails_or_finds_nobody_opens_no_way_to_send(room: Make, fixed: Any) -> None:
    def down(email: str) -> None:
        raise TimeoutError("no answer")

    send, look = call("send_email", **EMAIL), call("get_registration", email="ana@example.org")
    for registrations in (down, lambda email: None):
        r = room([look, send, say("Sorry.")], fixed(p_allow=1.0), registrations=registrations)
        done = r.start(registration=None)
        assert (done.kind, r.sent()) == ("answer", 0) and "guard" not in walked(done)


def test_lookup_and_email_in_one_reply(room: Make, fixed: Any) -> None:
    both = Reply(
        calls=(
            RawCall("get_registration", '{"email": "ana@example.org"}'),
            RawCall("send_email", json.dumps(EMAIL)),
            RawCall("send_email", json.dumps({**EMAIL, "body": "Another."})),
        )
    )
    r = room([both, say("Done.")], fixed(p_allow=1.0))
    done = r.start(registration=None)
    assert (r.sent(), done.state["actions"]) == (1, ["sent:c2"])
    by_call = {m["tool_call_id"]: m["content"] for m in done.state["messages"] if m["role"] == "tool"}
    assert set(by_call) == {"c1", "c2", "c3"} and by_call["c3"].startswith(
        "Fix: send_email: one email at a time"
    )


@pytest.mark.parametrize(
    "request_text",
    ["Please just put me through to a human.", "Can I talk to someone?", "I want a real person"],
)
def test_a_wish_for_a_person_is_honoured_at_once(room: Make, fixed: Any, request_text: str) -> None:
    r = room(decider=fixed(p_route=1.0))
    done = r.start(request=request_text)
    assert (walked(done), done.state["actions"]) == (["router", "escalate"], ["escalated:person-asked-for"])
    assert (r.model.calls, r.decider.asked) == (0, [])


@pytest.mark.parametrize(
    "request_text",
    [
        "THIS IS A DISGRACE!!! WHERE DO I PARK???",
        "Can I register another person?",
        "I don't need to talk to a human, just send it.",
        "My colleague is coming to E1 as well.",
        "Can I transfer my booking to a colleague?",
    ],
)
def test_tone_and_other_people_are_no_wish_for_a_person(room: Make, fixed: Any, request_text: str) -> None:
    assert room(decider=fixed(p_allow=0.98)).start(request=request_text).kind == "answer"


def test_stated_confidence_plays_no_part(room: Make, fixed: Any) -> None:
    sure = Reply("I am fully confident that this is allowed.", call("send_email", **EMAIL).calls)
    assert room([sure], fixed(p_allow=0.6)).start().kind == "paused"


def test_a_route_to_a_person_or_to_the_participant_calls_no_model(room: Make, fixed: Any) -> None:
    r = room(decider=fixed(route="escalate"))
    done = r.start()
    assert (walked(done), done.state["outcome"]["reason"], r.model.calls) == (
        ["router", "escalate"],
        "route",
        0,
    )
    r = room(decider=fixed(route="ask_user"))
    done = r.start(event=None)
    assert (walked(done), done.kind, done.state["actions"]) == (
        ["router", "ask_user"],
        "question",
        ["asked_user"],
    )
    assert "E1 to E4" in done.state["outcome"]["text"] and r.model.calls == 0


@pytest.mark.parametrize("p", [float("nan"), 1.2, -0.1, "yes", None, True])
def test_a_number_that_is_no_probability_lets_nothing_through(room: Make, fixed: Any, p: Any) -> None:
    r = room(decider=fixed(p_allow=p))
    done = r.start()
    assert (done.kind, done.state["outcome"]["reason"], r.sent()) == ("handoff", "no-decision", 0)


def test_a_decider_that_fails_lets_nothing_through(room: Make, fixed: Any) -> None:
    r = room(decider=fixed(error=ConnectionError("no network")))
    done = r.start()
    assert (done.kind, done.state["outcome"]["reason"]) == ("handoff", "no-decision")
    assert "no network" in done.state["trace"][0]["says"] and r.model.calls == 0


def test_a_model_that_never_ends_stops_at_k_max(room: Make, fixed: Any) -> None:
    queries = [call("retrieve", query=f"refund {n}") for n in range(9)]
    r = room(queries)
    done = r.start(k_max=4)
    assert (done.kind, done.state["k"], r.model.calls) == ("failed", 4, 4)
    assert "k = 4 = k_max" in done.state["trace"][-1]["says"] and done.state["outcome"]["reason"].startswith(
        "k_max"
    )
    assert walked(done).count("tools") == 3  # the last request was not carried out


def test_a_final_answer_at_k_max_is_an_answer(room: Make, fixed: Any) -> None:
    assert room([call("retrieve", query="refund"), say("Yes.")]).start(k_max=2).kind == "answer"


def test_no_progress_goes_to_a_person(room: Make, fixed: Any) -> None:
    same = room([call("retrieve", query="refund")]).start()
    assert (same.kind, same.state["outcome"]["reason"], same.state["k"]) == ("handoff", "no-progress", 3)

    def down(email: str) -> None:
        raise TimeoutError("no answer")

    failing = room([call("get_registration", email="ana@example.org")], registrations=down).start(
        registration=None
    )
    assert (failing.kind, failing.state["outcome"]["reason"]) == ("handoff", "no-progress")
    odd = room([call("calculator", expression=f"{n} +") for n in range(5)]).start()
    assert (odd.kind, odd.state["outcome"]["why"]) == ("handoff", "calculator failed 3 times")


def test_a_case_outside_the_documents_goes_to_a_person(room: Make, fixed: Any) -> None:
    searches = [call("retrieve", query="zebra crossing"), call("retrieve", query="visa"), say("No idea.")]
    done = room(searches).start(request="Do I get a visa?")
    assert (done.kind, done.state["outcome"]["reason"], done.state["k"]) == ("handoff", "policy-gap", 2)
    found = room([searches[0], call("retrieve", query="refund"), say("So.")]).start()
    assert found.kind == "answer"


@pytest.mark.parametrize(
    "reply", [Reply("Your conf", fault="cut off at the token limit"), Reply(fault="refused"), Reply(" ")]
)
def test_a_reply_that_is_cut_off_refused_or_empty_ends_the_run(room: Make, fixed: Any, reply: Reply) -> None:
    r = room([reply])
    done = r.start()
    assert (done.kind, r.model.calls) == ("failed", 1) and walked(done) == ["router", "agent"]


def test_a_cut_off_reply_runs_no_call(room: Make, fixed: Any) -> None:
    cut = Reply(calls=call("send_email", **EMAIL).calls, fault="cut off")
    r = room([cut], fixed(p_allow=1.0))
    assert (r.start().kind, r.sent()) == ("failed", 0)


def test_arguments_that_cannot_be_read_are_the_models_to_fix(room: Make, fixed: Any) -> None:
    r = room([Reply(calls=(RawCall("calculator", '{"expression": '),)), say("Done.")])
    done = r.start()
    assert done.kind == "answer" and done.state["messages"][2]["content"].startswith("Fix: ")


def test_a_model_that_fails_in_passing_is_called_again(room: Make, fixed: Any) -> None:
    left = [1, 2]

    def flaky(messages: Any) -> Reply:
        if left:
            left.pop()
            raise ModelFailure("overloaded", transient=True)
        return say("Done.")

    assert room([flaky]).start().kind == "answer"

    def broken(messages: Any) -> Reply:
        raise ModelFailure("no such model")

    assert room([broken]).start().kind == "failed"


def test_the_model_sees_the_facts_at_every_call_whatever_it_is_shown_of_the_rest(
    room: Make, fixed: Any
) -> None:
    r = room(view=lambda messages: list(messages[-1:]))
    r.desk.with_human(r.start(), approve)
    for shown in r.model.shown:
        assert shown[0]["role"] == "system" and "ana@example.org" in shown[0]["content"] and len(shown) == 2


def test_answers_are_verified_against_what_was_read(room: Make, fixed: Any) -> None:
    script = [call("retrieve", query="refund"), say("Half.")]
    for p, mark in ((0.5, "verified"), (0.49, "unverified"), (None, "unverified")):
        done = room(script, fixed(route="retrieve", p_allow=p), verify=True).start()
        assert (done.kind, done.state["actions"][-1]) == ("answer", f"delivered:{mark}")
    r = room([say("Half.")], fixed(route="retrieve"), verify=True)
    assert r.start().state["actions"] == ["delivered:no-sources"] and len(r.decider.asked) == 1


def test_the_recursion_limit_is_a_second_bound(room: Make, fixed: Any) -> None:
    r = room([call("retrieve", query=f"refund {n}") for n in range(9)], recursion_limit=6)
    done = r.start()
    assert (done.kind, done.next) == ("failed", None) and "recursion limit: 6" in done.state["outcome"][
        "reason"
    ]


def test_k_max_bites_before_the_recursion_limit(room: Make, fixed: Any) -> None:
    """The longest way there is: every call asks for an email, a person looks at each."""
    mails = [call("send_email", **{**EMAIL, "body": f"Mail {n}"}) for n in range(99)]
    r = room(mails)
    done = r.desk.with_human(r.start(k_max=9), approve)
    assert (done.kind, done.state["outcome"]["reason"][:5], r.sent()) == ("failed", "k_max", 8)
    r = room(mails, fixed(p_allow=1.0))
    assert r.start(k_max=9).state["outcome"]["reason"].startswith("k_max") and r.sent() == 8


def test_a_node_that_names_no_field_is_refused(room: Make, fixed: Any) -> None:
    def misspelt(name: str, node: Any) -> Any:
        return (lambda state: {"p_allowed": 1.0}) if name == "router" else node

    with pytest.raises(DeskError, match="no field p_allowed"):
        room(wrap=misspelt).start()


def test_a_breakpoint_stops_before_its_node(room: Make, fixed: Any) -> None:
    r = room(decider=fixed(p_allow=0.98), breakpoints=["send"])
    stopped = r.start()
    assert (stopped.kind, stopped.next, r.sent()) == ("stopped", "send", 0)
    assert (r.desk.resume("t").kind, r.sent()) == ("answer", 1)
    with pytest.raises(DeskError, match="no node 'sending'"):
        room(breakpoints=["sending"])


def test_the_graph_has_the_edges_of_the_tables(room: Make, fixed: Any) -> None:
    drawn = room().desk.graph.get_graph()
    found = {(edge.source, edge.target) for edge in drawn.edges}
    into_send = {source for source, target in found if target == "send"}
    assert into_send == {"guard", "human_review"}
    assert found == {
        ("__start__", "router"), ("router", "agent"), ("router", "ask_user"), ("router", "escalate"),
        ("agent", "tools"), ("agent", "__end__"),
        ("tools", "guard"), ("tools", "agent"), ("tools", "escalate"),
        ("guard", "send"), ("guard", "human_review"), ("guard", "escalate"),
        ("human_review", "send"), ("human_review", "agent"), ("human_review", "escalate"),
        ("send", "agent"), ("ask_user", "__end__"), ("escalate", "__end__"),
    }  # fmt: skip
