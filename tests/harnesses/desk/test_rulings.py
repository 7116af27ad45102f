"""The rules decide as they are written: a table of cases by hand, one entry changed at a time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from harnesses.desk.events import EVENTS
from harnesses.desk.policy import GUARD_THRESHOLDS, RULES, TAU_ROUTE, address_on_record, refund_due
from harnesses.desk.registrations import REGISTRATIONS, Registration, RegistrationError, Registry, registry
from harnesses.desk.rulings import (
    EmailFacts,
    Intent,
    Plea,
    Purpose,
    RequestFacts,
    email_ruling,
    may_move,
    route_ruling,
)

ADDRESS = "ana@example.org"


def case(today: str = "2026-04-01", event: str = "E1", **booking: Any) -> dict[str, Any]:
    return {
        "today": today,
        "request": "",
        "email": ADDRESS,
        "event": EVENTS[event].record(),
        "registration": Registration(ADDRESS, "Ana Duarte", event, **booking).record(),
    }


# Today 1 April; E1 is from 18 to 19 May, costs 300 (students 180); E3 is on 13 April and full.
EMAILS = [
    (case(), ADDRESS, EmailFacts(Purpose.CONFIRMATION), True, "P4"),
    (case(), "Ana@example.org", EmailFacts(Purpose.CONFIRMATION), False, "P6"),
    (case(), "ana@example.net", EmailFacts(Purpose.CONFIRMATION, plea=Plea.OVERRIDE), False, "P6"),
    (case(), ADDRESS, EmailFacts(Purpose.CONFIRMATION, plea=Plea.OVERRIDE), False, "P7"),
    (case(), ADDRESS, EmailFacts(Purpose.CONFIRMATION, plea=Plea.EXCEPTION), False, "P5"),
    (case(), ADDRESS, EmailFacts(Purpose.CONFIRMATION, plea=Plea.PERSON), False, "P5"),
    (case(party=4), ADDRESS, EmailFacts(Purpose.INVOICE), True, "P4"),
    (case(party=5), ADDRESS, EmailFacts(Purpose.INVOICE), False, "P5"),
    (case(status="disputed"), ADDRESS, EmailFacts(Purpose.INVOICE), False, "P5"),
    (case(status="pending"), ADDRESS, EmailFacts(Purpose.INVOICE), False, "P4"),
    (case(status="cancelled"), ADDRESS, EmailFacts(Purpose.INSTRUCTIONS), False, "P4"),
    (case("2026-05-19", attended=True), ADDRESS, EmailFacts(Purpose.CERTIFICATE), False, "P4"),
    (case("2026-05-20", attended=True), ADDRESS, EmailFacts(Purpose.CERTIFICATE), True, "P4"),
    (case("2026-05-20"), ADDRESS, EmailFacts(Purpose.CERTIFICATE), False, "P4"),
    (case(), ADDRESS, EmailFacts(Purpose.REFUND, 300), False, "P5"),
    (case(), ADDRESS, EmailFacts(Purpose.REFUND, 251), False, "P5"),
    (case(), ADDRESS, EmailFacts(Purpose.REFUND, 250), False, "P2"),
    (case(rate="student"), ADDRESS, EmailFacts(Purpose.REFUND, 180), True, "P2"),
    (case("2026-04-18", rate="student"), ADDRESS, EmailFacts(Purpose.REFUND, 180), True, "P2"),
    (case("2026-04-19", rate="student"), ADDRESS, EmailFacts(Purpose.REFUND, 180), False, "P2"),
    (case("2026-04-19"), ADDRESS, EmailFacts(Purpose.REFUND, 150), True, "P2"),
    (case("2026-05-04"), ADDRESS, EmailFacts(Purpose.REFUND, 150), True, "P2"),
    (case("2026-05-05"), ADDRESS, EmailFacts(Purpose.REFUND, 150), False, "P2"),
    (case("2026-05-05"), ADDRESS, EmailFacts(Purpose.REFUND, 0), True, "P2"),
    (case(), ADDRESS, EmailFacts(Purpose.TRANSFER, target="E2"), True, "P3"),
    (case(), ADDRESS, EmailFacts(Purpose.TRANSFER, target="E3"), False, "P3"),
    (case(), ADDRESS, EmailFacts(Purpose.TRANSFER, target="E1"), False, "P3"),
    (case(moved=True), ADDRESS, EmailFacts(Purpose.TRANSFER, target="E2"), False, "P3"),
    (case("2026-05-11"), ADDRESS, EmailFacts(Purpose.TRANSFER, target="E2"), True, "P3"),
    (case("2026-05-12"), ADDRESS, EmailFacts(Purpose.TRANSFER, target="E2"), False, "P3"),
]

NOBODY = {**case(), "registration": None}
ROUTES = [
    (case(), RequestFacts(Intent.QUESTION), "retrieve", "P1"),
    (case(), RequestFacts(Intent.AMOUNT), "calculate", "P2"),
    (NOBODY, RequestFacts(Intent.AMOUNT), "ask_user", "P1"),
    (case(), RequestFacts(Intent.UNCLEAR), "ask_user", "P1"),
    (case(), RequestFacts(Intent.OUTSIDE), "escalate", "P1"),
    (case(), RequestFacts(Intent.QUESTION, plea=Plea.PERSON), "escalate", "P5"),
    (case(), RequestFacts(Intent.EMAIL, plea=Plea.EXCEPTION), "escalate", "P5"),
    (case(), RequestFacts(Intent.EMAIL, plea=Plea.OVERRIDE), "escalate", "P7"),
    (case(), RequestFacts(Intent.EMAIL), "send_email", "P4"),
    (NOBODY, RequestFacts(Intent.EMAIL), "ask_user", "P6"),
    (case(party=5), RequestFacts(Intent.EMAIL), "escalate", "P5"),
    (case(status="pending"), RequestFacts(Intent.EMAIL), "retrieve", "P4"),
    (case(), RequestFacts(Intent.EMAIL, Purpose.CERTIFICATE), "retrieve", "P4"),
    (case(), RequestFacts(Intent.EMAIL, Purpose.REFUND), "escalate", "P5"),
    (case("2026-04-19"), RequestFacts(Intent.EMAIL, Purpose.REFUND), "send_email", "P2"),
    (case("2026-05-05"), RequestFacts(Intent.EMAIL, Purpose.REFUND), "retrieve", "P2"),
    (case(), RequestFacts(Intent.EMAIL, Purpose.TRANSFER, "E4"), "send_email", "P3"),
    (case(), RequestFacts(Intent.EMAIL, Purpose.TRANSFER, "E3"), "retrieve", "P3"),
]


@pytest.mark.parametrize(("case", "to", "facts", "allowed", "rule"), EMAILS)
def test_an_email_is_allowed_by_the_written_rule(
    case: dict[str, Any], to: str, facts: EmailFacts, allowed: bool, rule: str
) -> None:
    assert email_ruling(case, to, facts) == (allowed, rule)


@pytest.mark.parametrize(("case", "facts", "route", "rule"), ROUTES)
def test_a_request_goes_where_the_written_rule_sends_it(
    case: dict[str, Any], facts: RequestFacts, route: str, rule: str
) -> None:
    assert route_ruling(case, facts) == (route, rule)


def test_a_move_needs_a_seat_for_each_person() -> None:
    assert EVENTS["E1"].seats_left == 9
    assert may_move(case(event="E2", party=9), "E1") and not may_move(case(event="E2", party=10), "E1")


def test_the_thresholds_are_those_of_the_source() -> None:
    assert (GUARD_THRESHOLDS.tau_act, GUARD_THRESHOLDS.tau_esc) == (Fraction(31, 32), Fraction(3, 8))
    assert TAU_ROUTE == Fraction(3, 4)


@pytest.mark.parametrize(
    ("days", "due"), [(30, 301), (29, Fraction(301, 2)), (14, Fraction(301, 2)), (13, 0), (-1, 0)]
)
def test_a_refund_falls_at_its_two_dates(days: int, due: Fraction) -> None:
    assert refund_due(301, days) == due


def test_the_text_of_the_rules_names_the_limits_that_the_code_uses() -> None:
    assert list(RULES) == [f"P{number}" for number in range(1, 8)]
    for rule, numbers in {"P2": ("30", "14", "250"), "P3": ("7",), "P5": ("250", "5")}.items():
        assert all(f"{number} " in RULES[rule] for number in numbers)


def test_an_address_is_compared_character_by_character() -> None:
    record = registry("ana@example.org")
    assert record is not None and address_on_record("ana@example.org", record)
    for other in (
        "ANA@example.org",
        "ana@example.org ",
        "ana@example.orq",
        "ana@example.org,bo@example.com",
        "",
    ):
        assert not address_on_record(other, record)
    assert not address_on_record("ana@example.org", None)


def test_a_lookup_gives_the_record_or_none() -> None:
    found = registry("bo.lindqvist@example.com")
    assert found is not None and (found["event"], found["paid"]) == ("E2", 450)
    assert registry("nobody@example.org") is None
    assert registry("BO.Lindqvist@example.com") is None
    assert len(list(registry)) == len(REGISTRATIONS)


@pytest.mark.parametrize(
    ("entry", "value"), [("event", "E9"), ("status", "lost"), ("rate", "free"), ("party", 0)]
)
def test_a_booking_that_cannot_be_is_refused(entry: str, value: Any) -> None:
    with pytest.raises(RegistrationError):
        Registration(**{"email": ADDRESS, "name": "Ana", "event": "E1", entry: value})
    with pytest.raises(RegistrationError, match="two bookings"):
        Registry([REGISTRATIONS[0], REGISTRATIONS[0]])


def test_what_is_paid_follows_from_rate_and_party() -> None:
    assert Registration(ADDRESS, "Ana", "E1", rate="student", party=3).paid == 540
    assert Registration(ADDRESS, "Ana", "E1", status="pending").paid == 0
