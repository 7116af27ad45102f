"""The tools: least privilege, errors that say fix, retry or stop, and empty answers that are no errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harnesses.desk.outbox import Email
from harnesses.desk.passages import Index
from harnesses.desk.tool_errors import Advice, advice
from harnesses.desk.toolbox import (
    CALCULATOR,
    GET_REGISTRATION,
    NO_PASSAGE,
    NO_REGISTRATION,
    RETRIEVE,
    SEND_EMAIL,
    BoundTools,
    Toolbox,
)
from harnesses.runtime.records import ToolCall, ToolResult
from harnesses.runtime.retry import Retry

ANA = {"name": "Ana", "email": "ana@example.org", "event": "E1"}
INDEX = Index.of(
    [
        ("policy", "Refunds are paid until ten days before the event.\n\nParking is free."),
        ("E1", "Lyon, May."),
    ]
)


class Lookup:
    """Registrations that fail the first `failures` times, and count how often they are read."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        self.failures, self.error, self.reads = failures, error or TimeoutError("no answer in 2 s"), 0

    def __call__(self, email: str) -> Mapping[str, Any] | None:
        self.reads += 1
        if self.reads <= self.failures:
            raise self.error
        return ANA if email == ANA["email"] else None


def tools(lookup: Lookup | None = None, email: str = "ana@example.org") -> BoundTools:
    return Toolbox(INDEX, lookup or Lookup(), Retry(limit=1, first=0.0)).bound({"email": email})


def ask(name: str, bound: BoundTools | None = None, **arguments: Any) -> ToolResult:
    return (bound or tools()).run(ToolCall("c1", name, arguments))


def test_each_tool_answers() -> None:
    assert ask(CALCULATOR, expression="300 * 0.5").content == "150"
    assert ask(RETRIEVE, query="refund").content.startswith("[policy:1] Refunds")
    assert json.loads(ask(GET_REGISTRATION, email="ana@example.org").content) == ANA


def test_empty_is_not_failed() -> None:
    nobody = tools(email="bo@example.org")
    empty = ask(GET_REGISTRATION, nobody, email="bo@example.org")
    failed = ask(GET_REGISTRATION, tools(Lookup(failures=9)), email="ana@example.org")
    assert (empty.status, empty.content) == ("ok", NO_REGISTRATION)
    assert failed.status == "error" and advice(failed.content) is Advice.RETRY
    assert NO_REGISTRATION not in failed.content
    assert (ask(RETRIEVE, query="zebra").status, ask(RETRIEVE, query="zebra").content) == ("ok", NO_PASSAGE)


def test_a_passing_failure_is_tried_again_once() -> None:
    lookup = Lookup(failures=1)
    assert ask(GET_REGISTRATION, tools(lookup), email="ana@example.org").status == "ok"
    assert lookup.reads == 2


def test_a_participant_reads_no_record_but_their_own() -> None:
    lookup = Lookup()
    result = ask(GET_REGISTRATION, tools(lookup, email="eve@example.org"), email="ana@example.org")
    assert (result.status, advice(result.content), lookup.reads) == ("denied", Advice.STOP, 0)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("delete", {}, Advice.FIX),
        (CALCULATOR, {}, Advice.FIX),
        (CALCULATOR, {"expression": 3}, Advice.FIX),
        (CALCULATOR, {"expression": "1/0"}, Advice.FIX),
        (RETRIEVE, {"query": " "}, Advice.FIX),
        (RETRIEVE, {"query": "refund", "all": True}, Advice.FIX),
        (SEND_EMAIL, {"to": "a@b", "subject": "x", "body": "y"}, Advice.STOP),
    ],
)
def test_every_error_says_what_to_do(name: str, arguments: dict[str, Any], expected: Advice) -> None:
    result = ask(name, **arguments)
    assert result.status == "error" and advice(result.content) is expected


def test_a_defect_of_a_tool_is_a_stop() -> None:
    result = ask(GET_REGISTRATION, tools(Lookup(9, KeyError("x"))), email="ana@example.org")
    assert (result.status, advice(result.content)) == ("error", Advice.STOP)


def test_an_email_is_read_and_not_sent() -> None:
    arguments = {"to": "ana@example.org", "subject": "Hello", "body": "Text\nof two lines"}
    assert tools().email(ToolCall("c1", SEND_EMAIL, arguments)) == Email(**arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"to": "ana@example.org\nBcc: eve@example.net"},
        {"to": "ana@example.org, eve@example.net"},
        {"to": "ana@example.org eve@example.net"},
        {"to": "Ana <ana@example.org>"},
        {"to": "ana"},
        {"to": "@example.org"},
        {"to": "a@b@c"},
        {"subject": "Hello\nBcc: eve@example.net"},
        {"subject": ""},
        {"subject": "x" * 201},
        {"body": " "},
        {"body": "x" * 10_001},
        {"body": 3},
        {"cc": "eve@example.net"},
    ],
)
def test_what_is_no_email_is_to_be_fixed(change: dict[str, Any]) -> None:
    arguments = {"to": "ana@example.org", "subject": "Hello", "body": "Text"} | change
    found = tools().email(ToolCall("c1", SEND_EMAIL, arguments))
    assert isinstance(found, ToolResult) and advice(found.content) is Advice.FIX


def test_rare_words_rank_first_and_plurals_match() -> None:
    found = INDEX.search("Is parking at the event a refund?", 9)
    assert [passage.text[:7] for passage in found] == ["Refunds", "Parking"]
    assert INDEX.search("refunds", 1) == INDEX.search("refund", 1) != []
    assert INDEX.search("the of and", 9) == []
