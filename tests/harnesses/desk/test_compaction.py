"""Views of a thread: the typed case survives every one, the request in hand is whole, and no pair is broken."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.desk.clerk import Clerk
from harnesses.desk.compaction import (
    Compaction,
    Requests,
    Stubs,
    Summary,
    decisions,
    newest,
    tokens,
    told_by_code,
)
from harnesses.desk.documents import documents
from harnesses.desk.driver import Desk
from harnesses.desk.nodes import everything
from harnesses.desk.passages import Index
from harnesses.desk.prompt import system_message
from harnesses.desk.registrations import registry
from harnesses.desk.scripted import Scripted
from harnesses.desk.toolbox import Toolbox
from harnesses.runtime.models import Reply


def broken(messages: Any) -> str:
    raise TimeoutError("the summariser is away")


VIEWS: dict[str, Compaction] = {
    "one request": Requests(1),
    "two requests": Requests(2),
    "stubs": Stubs(),
    "summary": Summary(told_by_code),
    "short summary": Summary(lambda messages: "They talked."),
    "summary that fails": Summary(broken),
    "summary without words": Summary(lambda messages: "  "),
}


@st.composite
def threads(draw: Callable[..., Any]) -> list[dict[str, Any]]:
    """Messages of some requests: searches, lookups, emails, each with its result, then an answer or none."""
    messages: list[dict[str, Any]] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(st.text(min_size=1, max_size=30))})
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            name = draw(st.sampled_from(["retrieve", "get_registration", "send_email"]))
            function = {"name": name, "arguments": json.dumps({"x": draw(st.text(max_size=10))})}
            made = {"id": f"c{number}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [made]})
            result = {"role": "tool", "tool_call_id": f"c{number}", "name": name, "status": "ok"}
            messages.append({**result, "content": draw(st.text(max_size=400))})
        if draw(st.booleans()):
            messages.append({"role": "assistant", "content": draw(st.text(min_size=1, max_size=60))})
    return messages


@pytest.mark.parametrize("name", VIEWS)
@given(messages=threads())
def test_every_view_keeps_the_request_in_hand_and_its_pairs(
    name: str, messages: list[dict[str, Any]]
) -> None:
    before = copy.deepcopy(messages)
    view = VIEWS[name]
    shown = view(messages)
    assert messages == before
    assert shown[-(len(messages) - newest(messages)) :] == messages[newest(messages) :]
    made = [call["id"] for message in shown for call in message.get("tool_calls", ())]
    came = [message["tool_call_id"] for message in shown if message["role"] == "tool"]
    assert made == came
    # What is not shown is written down, and nothing else is.
    gone = view.removals(messages)
    assert all(removal.tokens > 0 and removal.place < newest(messages) for removal in gone)
    if not gone:
        assert shown == messages


@given(messages=threads())
def test_emails_survive_every_summary(messages: list[dict[str, Any]]) -> None:
    shown = Summary(lambda old: "They talked.")(messages)
    old = messages[: newest(messages)]
    for call in (c for message in old for c in message.get("tool_calls", ())):
        if call["function"]["name"] == "send_email":
            assert call["function"]["arguments"] in shown[0]["content"]
    assert "No email" in decisions([]) and "No email" in decisions([{"role": "user", "content": "x"}])


def test_a_summariser_that_fails_or_says_nothing_loses_nothing() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    for name in ("summary that fails", "summary without words"):
        assert VIEWS[name](messages) == messages and VIEWS[name].removals(messages) == []
    assert Summary(lambda old: None)(messages) == messages  # type: ignore[arg-type, return-value]


def test_stubs_shorten_old_results_and_count_what_they_cut() -> None:
    old = {"role": "tool", "tool_call_id": "c1", "name": "retrieve", "status": "ok", "content": "x" * 400}
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "retrieve", "arguments": "{}"}}]}, old,
        {"role": "user", "content": "b"}]  # fmt: skip
    shown = Stubs()(messages)
    assert shown[2]["content"] == f"[retrieve ok: {tokens(old)} tokens left out]"
    (gone,) = Stubs().removals(messages)
    assert gone.place == 2 and gone.tokens == tokens(old) - tokens(shown[2])


def test_no_request_to_keep_is_refused() -> None:
    with pytest.raises(ValueError, match="keep 1 or more"):
        Requests(0)


class Watching(Clerk):
    """The clerk, keeping what it was shown."""

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        SHOWN.append(copy.deepcopy(messages))
        return super().reply(messages, tools, step)


SHOWN: list[list[dict[str, Any]]] = []
REQUESTS = (
    "Is there parking near the venue?",
    "Please email me a confirmation of my registration.",
    "How much would I get back if I cancelled today?",
    "Please send me the invoice for E1.",
)
EVENT = {"id": "E1", "title": "T", "city": "Lyon", "first": "2026-05-18", "last": "2026-05-19", "fee": 300}


def run(view: Any) -> list[Any]:
    index = Index.of((document.name, document.text) for document in documents())
    desk = Desk.open(Watching(), Scripted("send_email", 0.9, 0.99), Toolbox(index, registry), view=view)
    ended = []
    for request in REQUESTS:
        case = {"today": "2026-03-02", "event": EVENT, "email": "ana@example.org", "request": request}
        now = desk.start("t", {**case, "registration": registry("ana@example.org")})
        ended.append((now.kind, now.state["outcome"], now.state["actions"][-2:], len(desk.outbox.sent())))
    return ended


@pytest.mark.parametrize("name", VIEWS)
def test_the_typed_case_survives_every_view_and_runs_end_alike(name: str) -> None:
    SHOWN.clear()
    assert run(VIEWS[name]) == run(everything)
    for messages in SHOWN:
        head = messages[0]
        assert head["role"] == "system"
        for fact in ("Lyon", "2026-05-18", "300", "ana@example.org", "2026-03-02"):
            assert fact in head["content"]
        request = next(message for message in reversed(messages) if message["role"] == "user")
        assert json.dumps(request["content"], ensure_ascii=False) in head["content"]


@pytest.mark.parametrize("kept", [slice(0, 0), slice(-1, None), slice(None, None, 2), slice(None, None, -1)])
def test_no_view_at_all_can_touch_the_typed_case(kept: slice) -> None:
    """Even one that shows nothing, every other message, or all of them backwards."""
    SHOWN.clear()
    index = Index.of((document.name, document.text) for document in documents())
    toolbox = Toolbox(index, registry)
    desk = Desk.open(
        Watching(), Scripted("send_email", 0.9, 0.99), toolbox, view=lambda messages: list(messages[kept])
    )
    case = {"today": "2026-03-02", "event": EVENT, "email": "ana@example.org", "request": REQUESTS[1]}
    desk.start("t", {**case, "registration": registry("ana@example.org")}, k_max=3)
    assert SHOWN
    for messages in SHOWN:
        assert messages[0] == system_message({**case, "registration": registry("ana@example.org")})
