"""Rulings: what the policy says of an email and of a request, from facts, with the rule that decides; imports policy.

Facts are what a careful reader takes from the text: which document, which amount, whether it asks for an exception.
From them and the records each label follows in code. Nothing that runs the desk knows the facts; it reads the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from harnesses.desk.events import EVENTS
from harnesses.desk.policy import (
    GROUP,
    P1,
    P2,
    P3,
    P4,
    P5,
    P6,
    P7,
    REFUND_LIMIT,
    TRANSFER_DAYS,
    address_on_record,
    days_until,
    refund_due,
)
from harnesses.desk.questions import ASK_USER, CALCULATE, ESCALATE, RETRIEVE, SEND_EMAIL
from harnesses.desk.registrations import DISPUTED, PAID


class Purpose(StrEnum):
    """What an email is for."""

    CONFIRMATION = "confirmation"
    INVOICE = "invoice"
    INSTRUCTIONS = "instructions"
    CERTIFICATE = "certificate"
    REFUND = "refund"
    TRANSFER = "transfer"


class Plea(StrEnum):
    """What a request asks for that the desk may not settle alone: a departure from the rules, staff, other rules."""

    NONE = "none"
    EXCEPTION = "exception"
    PERSON = "person"
    OVERRIDE = "override"


class Intent(StrEnum):
    """What a request wants: an answer, a sum, an email, something it does not say, something outside the policy."""

    QUESTION = "question"
    AMOUNT = "amount"
    EMAIL = "email"
    UNCLEAR = "unclear"
    OUTSIDE = "outside"


@dataclass(frozen=True)
class EmailFacts:
    """What an email says: `amount` in EUR of a refund, `target` of a move; `plea` of the request behind it."""

    purpose: Purpose
    amount: float = 0
    target: str = ""
    plea: Plea = Plea.NONE


@dataclass(frozen=True)
class RequestFacts:
    """What a request says; `purpose` and `target` of the email that it asks for."""

    intent: Intent
    purpose: Purpose = Purpose.CONFIRMATION
    target: str = ""
    plea: Plea = Plea.NONE


class EmailRuling(NamedTuple):
    """Whether an email may go out alone, and the rule that decides."""

    allowed: bool
    rule: str


class RouteRuling(NamedTuple):
    """The step that comes next, and the rule that decides."""

    route: str
    rule: str


def email_ruling(case: Mapping[str, Any], to: str, facts: EmailFacts) -> EmailRuling:
    """Whether the email may be sent to `to` without a person, by the first rule that forbids it.

    The address is looked at first, then what P7 and P5 hand to staff, then what P2 to P4 allow.
    """
    registration = case["registration"]
    if not address_on_record(to, registration):
        return EmailRuling(False, P6)
    if facts.plea is Plea.OVERRIDE:
        return EmailRuling(False, P7)
    refund = facts.purpose is Purpose.REFUND
    if facts.plea is not Plea.NONE or _needs_staff(registration) or (refund and facts.amount > REFUND_LIMIT):
        return EmailRuling(False, P5)
    if refund:
        due = refund_due(registration["paid"], days_until(case["today"], case["event"]["first"]))
        return EmailRuling(facts.amount == due, P2)
    if facts.purpose is Purpose.TRANSFER:
        return EmailRuling(may_move(case, facts.target), P3)
    return EmailRuling(may_send(case, facts.purpose), P4)


def route_ruling(case: Mapping[str, Any], facts: RequestFacts) -> RouteRuling:
    """The next step for a request, by the first rule that settles it."""
    registration = case["registration"]
    if facts.plea is not Plea.NONE:
        return RouteRuling(ESCALATE, P7 if facts.plea is Plea.OVERRIDE else P5)
    if facts.intent is Intent.OUTSIDE:
        return RouteRuling(ESCALATE, P1)
    if facts.intent is Intent.UNCLEAR:
        return RouteRuling(ASK_USER, P1)
    if facts.intent is Intent.QUESTION:
        return RouteRuling(RETRIEVE, P1)
    if facts.intent is Intent.AMOUNT:
        return RouteRuling(CALCULATE, P2) if registration is not None else RouteRuling(ASK_USER, P1)
    if registration is None:
        return RouteRuling(ASK_USER, P6)
    if _needs_staff(registration):
        return RouteRuling(ESCALATE, P5)
    if facts.purpose is Purpose.REFUND:
        due = refund_due(registration["paid"], days_until(case["today"], case["event"]["first"]))
        if due > REFUND_LIMIT:
            return RouteRuling(ESCALATE, P5)
        return RouteRuling(SEND_EMAIL if due else RETRIEVE, P2)
    if facts.purpose is Purpose.TRANSFER:
        return RouteRuling(SEND_EMAIL if may_move(case, facts.target) else RETRIEVE, P3)
    return RouteRuling(SEND_EMAIL if may_send(case, facts.purpose) else RETRIEVE, P4)


def may_move(case: Mapping[str, Any], target: str) -> bool:
    """P3: whether the booking may move to the event `target`; there, seats are counted as they are now."""
    registration = case["registration"]
    return (
        registration["status"] == PAID
        and not registration["moved"]
        and target in EVENTS
        and target != registration["event"]
        and EVENTS[target].seats_left >= registration["party"]
        and days_until(case["today"], case["event"]["first"]) >= TRANSFER_DAYS
    )


def may_send(case: Mapping[str, Any], purpose: Purpose) -> bool:
    """P4: whether the booking gives a right to this document today."""
    registration = case["registration"]
    if registration["status"] != PAID:
        return False
    over = days_until(case["today"], case["event"]["last"]) < 0
    return (over and registration["attended"]) if purpose is Purpose.CERTIFICATE else True


def _needs_staff(registration: Mapping[str, Any]) -> bool:
    """P5: a group's booking, or one in dispute."""
    return registration["party"] >= GROUP or registration["status"] == DISPUTED
