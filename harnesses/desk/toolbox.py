"""Toolbox: the four tools of the desk's agent, bound to one case; imports runtime, calculator, passages, outbox.

Least privilege: three of them only read, a registration is given out to the participant it belongs to and to nobody
else, and `send_email` is never run from here: a valid call is handed on to the guard. Source: M14 §3, §6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harnesses.desk.calculator import calculator
from harnesses.desk.outbox import Email
from harnesses.desk.passages import Index
from harnesses.desk.tool_errors import Fix, Retry, Stop, advised
from harnesses.runtime.records import ToolCall, ToolResult
from harnesses.runtime.retry import Retry as Retries
from harnesses.runtime.tools import Dispatcher, Rule, Tool, refusal

Registrations = Callable[[str], Mapping[str, Any] | None]
"""The participants' registrations: the record of an email address, None where there is none. May raise."""

CALCULATOR, RETRIEVE, GET_REGISTRATION, SEND_EMAIL = (
    "calculator",
    "retrieve",
    "get_registration",
    "send_email",
)
PASSAGES = 3
"""Passages that a search gives."""

NO_REGISTRATION = "There is no registration for this email address."
NO_PASSAGE = "No passage matches these words. The search worked; the documents say nothing under them."

_DESCRIPTIONS = {
    RETRIEVE: (
        "Search the workshop's policy and event documents by words, such as 'refund deadline E2'. Returns up to "
        f"{PASSAGES} passages, each after its source in brackets. Not for a participant's own booking: use "
        "get_registration."
    ),
    GET_REGISTRATION: (
        "Look up the booking of the participant who writes, by the email address they write from, such as "
        "ana@example.org. Returns the record as JSON, or says that there is none. Not for events: use retrieve."
    ),
    SEND_EMAIL: (
        "Ask for an email to be sent to the participant: `to` is the address on their registration, `subject` one "
        "line, `body` plain text. Look the registration up first. The desk may hold the email back or ask staff."
    ),
}


def send_email(to: str, subject: str, body: str) -> str:
    """Described to the model alone: a call is handed to the guard, and carried out by the node `send`."""
    raise Stop(f"send_email to {to} reached a tool's function; only the node send may send")


@dataclass(frozen=True)
class Toolbox:
    """What the tools work on: the index of documents and the registrations; `retries` where a lookup fails."""

    index: Index
    registrations: Registrations
    retries: Retries = Retries(limit=1, first=0.1)

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The four tools, built once: their schemas take milliseconds."""
        return (
            Tool.of(calculator, inline=True),
            self._tool(RETRIEVE, self.retrieve),
            self._tool(GET_REGISTRATION, self.get_registration),
            self._tool(SEND_EMAIL, send_email),
        )

    @cached_property
    def schemas(self) -> list[dict[str, Any]]:
        """What the model is shown of the tools."""
        return [tool.schema for tool in self.tools]

    @staticmethod
    def _tool(name: str, function: Callable[..., Any]) -> Tool:
        reads = name != SEND_EMAIL
        return Tool.of(
            function, name=name, description=_DESCRIPTIONS[name], inline=True, idempotent=reads, timeout=10.0
        )

    def retrieve(self, query: str) -> str:
        """The best passages, or the sentence that says there are none. Raises Fix for a query without words."""
        if not query.strip():
            raise Fix("the query is empty; give words such as 'refund deadline'")
        found = self.index.search(query, PASSAGES)
        return "\n".join(passage.shown for passage in found) or NO_PASSAGE

    def get_registration(self, email: str) -> Mapping[str, Any] | str:
        """The record, or the sentence that says there is none. Raises Retry where the lookup itself failed."""
        try:
            record = self.registrations(email)
        except (TimeoutError, ConnectionError) as error:
            raise Retry(f"the registrations could not be read ({error or type(error).__name__})") from None
        return NO_REGISTRATION if record is None else dict(record)

    def bound(self, case: Mapping[str, Any]) -> BoundTools:
        """The tools for one case."""
        return BoundTools(self, str(case.get("email") or ""))


class BoundTools:
    """The tools as one participant's agent may use them."""

    def __init__(self, toolbox: Toolbox, participant: str) -> None:
        self.participant = participant
        rules: dict[str, tuple[Rule, ...]] = {tool.name: () for tool in toolbox.tools}
        rules[GET_REGISTRATION] = (self._own,)
        self.dispatcher = Dispatcher(toolbox.tools, rules, retry=toolbox.retries)

    def run(self, call: ToolCall) -> ToolResult:
        """The result of a call that reads; every error begins with its advice."""
        attempts: list[str] = []
        result = self.dispatcher.dispatch(call, lambda kind, data: attempts.append(kind))
        return advised(call, result, known=bool(attempts))

    def email(self, call: ToolCall) -> Email | ToolResult:
        """The email that a call of `send_email` asks for, or the error of one that asks for none."""
        checked = self.dispatcher.check(call)
        if isinstance(checked, ToolResult):
            return advised(call, checked, known=False)
        try:
            return Email.of(checked)
        except Fix as error:
            return refusal(call, "error", f"Fix: {error}")

    def _own(self, call: ToolCall) -> str | None:
        if call.arguments.get("email") == self.participant:
            return None
        return "rule own-record: a registration is given only to the participant who writes, by their own address"
