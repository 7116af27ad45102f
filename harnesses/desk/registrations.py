"""Registrations: the participants' bookings, and the lookup that the desk's tool calls; imports events.

A lookup that finds nobody gives None: that is an answer, and a failure of the lookup is an exception. All people here
are invented, their addresses under the names that are reserved for examples (RFC 2606).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harnesses.desk.events import EVENTS

PAID, PENDING, CANCELLED, DISPUTED = "paid", "pending", "cancelled", "disputed"
STATUSES = (PAID, PENDING, CANCELLED, DISPUTED)
"""The states of a booking that the policy knows; one in dispute is paid, but the participant contests it."""

STANDARD, STUDENT = "standard", "student"
STUDENT_SHARE = 0.6
"""What a student pays of the fee."""


class RegistrationError(ValueError):
    """A booking that cannot be, in one line with an example of a right one."""


@dataclass(frozen=True)
class Registration:
    """A booking of `party` seats; `paid` in EUR; `moved`: it came from another event; `attended`: was there.

    Raises RegistrationError for an unknown event or status, and for a party below 1.
    """

    email: str
    name: str
    event: str
    status: str = PAID
    rate: str = STANDARD
    party: int = 1
    moved: bool = False
    attended: bool = False

    def __post_init__(self) -> None:
        if self.event not in EVENTS:
            raise RegistrationError(f"no event {self.event!r}; name one of {', '.join(EVENTS)}")
        if self.status not in STATUSES:
            raise RegistrationError(f"no status {self.status!r}; name one of {', '.join(STATUSES)}")
        if self.rate not in (STANDARD, STUDENT) or self.party < 1:
            raise RegistrationError(
                f"rate {self.rate!r}, party {self.party}; give standard or student, and 1 or more"
            )

    @property
    def price(self) -> int:
        """EUR for all its seats."""
        share = STUDENT_SHARE if self.rate == STUDENT else 1
        return round(EVENTS[self.event].fee * share * self.party)

    @property
    def paid(self) -> int:
        """EUR that the desk holds of it."""
        return self.price if self.status in (PAID, DISPUTED) else 0

    def record(self) -> dict[str, Any]:
        """As plain data: the `registration` of a case."""
        return {**vars(self), "paid": self.paid}


class Registry:
    """Bookings by address. Raises RegistrationError where two have one address."""

    def __init__(self, registrations: Iterable[Registration]) -> None:
        self._by_email: dict[str, Registration] = {}
        for one in registrations:
            if one.email in self._by_email:
                raise RegistrationError(f"two bookings under {one.email}; an address has one")
            self._by_email[one.email] = one

    def __call__(self, email: str) -> Mapping[str, Any] | None:
        """The record under exactly this address, None where there is none."""
        found = self._by_email.get(email)
        return None if found is None else found.record()

    def __iter__(self) -> Iterator[Registration]:
        return iter(self._by_email.values())


REGISTRATIONS = (
    Registration("ana@example.org", "Ana Duarte", "E1"),
    Registration("bo.lindqvist@example.com", "Bo Lindqvist", "E2"),
    Registration("chidi@example.org", "Chidi Okafor", "E4", rate=STUDENT),
    Registration("dana.weiss@example.com", "Dana Weiss", "E3", attended=True),
    Registration("emeka@example.net", "Emeka Obi", "E1", status=PENDING),
    Registration("fatima.z@example.org", "Fatima Zahra", "E2", status=DISPUTED),
    Registration("giulia@example.com", "Giulia Conti", "E2", party=6),
    Registration("hana.sato@example.net", "Hana Sato", "E4", moved=True),
    Registration("ivo@example.org", "Ivo Maric", "E3", status=CANCELLED),
    Registration("jonas.keller@example.com", "Jonas Keller", "E1", rate=STUDENT),
)
"""The desk's participants outside the drawn items. Ana is the participant of M14 §4's worked example."""

registry = Registry(REGISTRATIONS)
"""The lookup over them, as the toolbox takes it."""
