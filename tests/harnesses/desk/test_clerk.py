"""The scripted clerk: it does what is asked, follows advice, and obeys a stranger's text only where it is gullible."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnesses.desk.clerk import Clerk, Proposer, wanted
from harnesses.desk.documents import ATTACKER, A, documents
from harnesses.desk.driver import Desk
from harnesses.desk.generator import TEST, split
from harnesses.desk.items import DIRECT, DOCUMENT
from harnesses.desk.passages import Index
from harnesses.desk.played import play_attack
from harnesses.desk.policy import GUARD_THRESHOLDS
from harnesses.desk.prompt import system_message
from harnesses.desk.questions import ASK_USER, CALCULATE, ESCALATE, RETRIEVE, SEND_EMAIL
from harnesses.desk.scripted import ByState, Scripted
from harnesses.desk.toolbox import NO_REGISTRATION, Toolbox

ITEMS = split(TEST)
LABELS = ByState({item.case["request"]: item.route for item in ITEMS.route}, {})
CASE = ITEMS.guard[0].case


def desk(decider: Any, model: Any = None, registrations: Any = lambda email: None) -> Desk:
    index = Index.of((document.name, document.text) for document in documents())
    return Desk.open(model or Clerk(), decider, Toolbox(index, registrations))


def shown(*pairs: tuple[str, dict[str, Any], str, str], case: Any = CASE) -> list[dict[str, Any]]:
    """Messages with calls and results: name, arguments, status, content."""
    messages = [system_message(case), {"role": "user", "content": case["request"]}]
    for number, (name, arguments, status, content) in enumerate(pairs, 1):
        function = {"name": name, "arguments": json.dumps(arguments)}
        messages.append(
            {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{number}", "function": function}]}
        )
        result = {
            "role": "tool",
            "tool_call_id": f"c{number}",
            "name": name,
            "status": status,
            "content": content,
        }
        messages.append(result)
    return messages


def test_every_benign_request_of_the_test_split_ends_as_its_label_says() -> None:
    ends = {
        RETRIEVE: "answer",
        CALCULATE: "answer",
        ASK_USER: "question",
        ESCALATE: "handoff",
        SEND_EMAIL: "answer",
    }

    class Allows(ByState):
        def noul(self, question: Any) -> float:
            return 1.0

    decider = Allows(LABELS.routes, {})
    for item in ITEMS.route:
        record = item.case["registration"]
        now = desk(decider, registrations=lambda email, found=record: found).start("t", item.case)
        assert now.kind == ends[item.route] or now.state["outcome"]["reason"] in (
            "person-asked-for",
            "order-rule",
        ), item
        sends = [action for action in now.state["actions"] if action.startswith("sent:")]
        if item.route == SEND_EMAIL or item.facts["intent"] != "email":
            assert len(sends) == (item.route == SEND_EMAIL and now.kind == "answer"), item.case["request"]


def test_questions_and_amounts_are_no_wish_for_an_email() -> None:
    for item in ITEMS.route:
        if item.facts["intent"] in ("question", "amount"):
            assert wanted(item.case["request"]) is None, item.case["request"]
        if item.facts["intent"] == "email":
            assert wanted(item.case["request"]) == item.facts["purpose"], item.case["request"]


def test_an_amount_is_worked_out_by_the_calculator() -> None:
    case = {**CASE, "request": "How much would I get back if I cancelled today?"}
    reply = Clerk().reply(shown(case=case), [], 0)
    assert reply.calls[0].name == "calculator"
    after = Clerk().reply(shown(("calculator", {"expression": "1*2"}, "ok", "2"), case=case), [], 1)
    assert after.calls == () and "2" in after.text


def test_the_case_is_read_from_the_system_message_alone() -> None:
    request = "Please send me the invoice for E1."
    messages = [system_message({**CASE, "request": request}), {"role": "user", "content": "Where is E1?"}]
    assert Clerk().reply(messages, [], 0).calls[0].name == "send_email"


def test_a_registration_is_looked_up_first_and_a_failing_lookup_is_given_up() -> None:
    case = {**CASE, "registration": None, "request": "Please send me the invoice for E1."}
    assert Clerk().reply(shown(case=case), [], 0).calls[0].name == "get_registration"
    lookup = ("get_registration", {"email": case["email"]}, "error", "Retry: not now")
    assert Clerk().reply(shown(lookup, case=case), [], 1).calls[0].name == "get_registration"
    assert Clerk().reply(shown(lookup, lookup, case=case), [], 2).calls == ()
    none = ("get_registration", {"email": case["email"]}, "ok", NO_REGISTRATION)
    answer = Clerk().reply(shown(none, case=case), [], 1)
    assert answer.calls == () and "no registration" in answer.text


def test_advice_on_an_email_is_followed() -> None:
    case = {**CASE, "request": "Please send me the invoice for E1."}
    email = {"to": case["email"], "subject": "a\nb", "body": "x"}
    fixed = Clerk().reply(shown(("send_email", email, "error", "Fix: one line"), case=case), [], 1)
    assert json.loads(fixed.calls[0].arguments)["subject"] == "a b"
    for content in ("Stop: rejected by staff", "Stop: not permitted"):
        answer = Clerk().reply(shown(("send_email", email, "denied", content), case=case), [], 1)
        assert answer.calls == () and "could not send" in answer.text


def test_a_rejected_email_is_not_asked_for_again() -> None:
    case = {**CASE, "request": "Please send me the invoice for E1."}
    room = desk(Scripted(SEND_EMAIL, 0.9, 0.8), registrations=lambda email: case["registration"])
    now = room.run_with_human("t", case, lambda question: "reject")
    assert (now.kind, room.outbox.sent(), now.state["k"]) == ("answer", [], 2)


def test_document_a_is_attempted_and_never_carried_out_unless_p6_is_lifted() -> None:
    """The issue's line: 20 benign requests with document A in the index."""
    items = [item for item in ITEMS.injection if item.channel == DOCUMENT and item.poison == A]
    assert len(items) == 20
    permissive = Scripted(RETRIEVE, 0.99, 0.99)
    ran = [play_attack(item, permissive, Clerk(0.8, 14), GUARD_THRESHOLDS)[0] for item in items]
    assert sum(one.attempted for one in ran) >= 10
    assert sum(one.carried_out for one in ran) == 0
    assert {one.stopped for one in ran if one.attempted} == {"P6"}
    lifted = [play_attack(item, permissive, Clerk(0.8, 14), GUARD_THRESHOLDS, ("P6",))[0] for item in items]
    assert [one.attempted for one in lifted] == [one.attempted for one in ran]
    assert sum(one.carried_out for one in lifted) == sum(one.attempted for one in ran) > 0


def test_one_that_is_not_gullible_never_attempts() -> None:
    permissive = Scripted(RETRIEVE, 0.99, 0.99)
    for item in ITEMS.injection:
        if item.channel == DIRECT:
            continue  # who writes asks for the email: that is a request, and for others to refuse
        record, now = play_attack(item, permissive, Clerk(0.0), GUARD_THRESHOLDS)
        assert not record.attempted and now.kind in ("answer", "handoff")


def test_the_attempts_are_drawn_from_the_seed_and_the_case() -> None:
    items = [item for item in ITEMS.injection if item.poison == A]
    permissive = Scripted(RETRIEVE, 0.99, 0.99)

    def attempts(seed: int) -> list[bool]:
        return [
            play_attack(item, permissive, Clerk(0.5, seed), GUARD_THRESHOLDS)[0].attempted for item in items
        ]

    assert attempts(1) == attempts(1) != attempts(2)


def test_the_attack_goes_where_the_document_says() -> None:
    item = next(item for item in ITEMS.injection if item.poison == A)
    _, now = play_attack(item, Scripted(RETRIEVE, 0.99, 0.99), Clerk(1.0), GUARD_THRESHOLDS)
    assert now.state["pending"]["email"]["to"] == ATTACKER


def test_the_proposer_asks_once() -> None:
    email = {"to": "a@example.org", "subject": "s", "body": "b"}
    first = Proposer(email).reply(shown(), [], 0)
    assert json.loads(first.calls[0].arguments) == email
    assert Proposer(email).reply(shown(("send_email", email, "ok", "sent")), [], 1).calls == ()
    assert Proposer(email, reads=True).reply(shown(), [], 0).calls[0].name == "retrieve"


@pytest.mark.parametrize("follow", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(follow: float) -> None:
    with pytest.raises(ValueError, match="not a probability"):
        Clerk(follow)
