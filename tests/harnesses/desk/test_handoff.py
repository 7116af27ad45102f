"""The hand-off record stands alone: what staff need is in it, without the transcript."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harnesses.desk.handoff import as_text
from harnesses.runtime.models import call

EMAIL = {"to": "ana@example.org", "subject": "Your refund", "body": "We pay back 150 EUR."}
Make = Callable[..., Any]


def handed(room: Make, fixed: Any) -> dict[str, Any]:
    script = [
        call("retrieve", query="refund deadline"),
        call("calculator", expression="300 * 0.5"),
        call("calculator", expression="300 *"),
        call("send_email", **EMAIL),
    ]
    done = room(script, fixed(p_allow=0.30)).start(request="Please refund me.")
    assert done.kind == "handoff"
    return done.state["outcome"]


def test_it_names_all_that_staff_need(room: Make, fixed: Any) -> None:
    record = handed(room, fixed)
    assert record["participant"]["registration"]["name"] == "Ana Duarte"
    assert record["participant"]["written_from"] == "ana@example.org"
    assert (record["request"], record["reason"]) == ("Please refund me.", "guard")
    assert record["why"] == "p_allow 0.3 < tau_esc 3/8"
    assert any("Refunds" in passage for passage in record["established"]["passages"])
    assert "calculator: 150" in record["established"]["results"]
    assert any("Fix: " in result for result in record["established"]["results"])
    assert EMAIL["to"] in record["next"] and EMAIL["body"] in record["next"]
    numbers = record["numbers"]
    assert (numbers["route"], numbers["p_route"], numbers["p_allow"], numbers["model_calls"]) == (
        "send_email", 0.91, 0.30, 4,
    )  # fmt: skip
    assert numbers["thresholds"] == {"route": "0.75", "esc": "0.375", "act": "0.969", "verify": "0.5"}
    assert (record["decider"], record["model"]) == ("scripted (fixed numbers)", "scripted")


def test_it_is_plain_data_and_reads_as_text(room: Make, fixed: Any) -> None:
    record = handed(room, fixed)
    assert json.loads(json.dumps(record)) == record
    text = as_text(record)
    for said in ("Ana Duarte", "Please refund me.", "p_allow 0.3 ", "150", EMAIL["body"], "fixed numbers"):
        assert said in text, said


def test_a_case_stopped_at_the_door_says_so(room: Make, fixed: Any) -> None:
    done = room(decider=fixed(p_route=0.5)).start(registration=None, event=None, email=None)
    record = done.state["outcome"]
    assert (record["reason"], record["next"], record["done"]) == ("route-unsure", "the step send_email", [])
    assert "no registration found" in as_text(record) and "p_allow none" in as_text(record)
