"""Events: the four workshops of the desk, E1 to E4, as records; imports nothing.

M14 names E1 to E4 and what a record holds (dates, city, seats, fee); every value here is this project's invention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Event:
    """A workshop from `first` to `last` day; `fee` in EUR for one seat; `taken` of its `seats` are booked."""

    id: str
    title: str
    city: str
    venue: str
    first: date
    last: date
    fee: int
    seats: int
    taken: int

    @property
    def seats_left(self) -> int:
        """Seats that nobody has booked."""
        return self.seats - self.taken

    def record(self) -> dict[str, Any]:
        """As plain data, dates as ISO text: the `event` of a case."""
        return {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in vars(self).items()
        }


_ALL = (
    Event(
        "E1",
        "Calibrated Decisions",
        "Lyon",
        "Halle Girard",
        date(2026, 5, 18),
        date(2026, 5, 19),
        300,
        40,
        31,
    ),
    Event(
        "E2",
        "Learning from Feedback",
        "Turin",
        "Palazzo Nuovo",
        date(2026, 6, 8),
        date(2026, 6, 10),
        450,
        60,
        48,
    ),
    Event("E3", "Reading Model Cards", "Ghent", "De Krook", date(2026, 4, 13), date(2026, 4, 13), 90, 25, 25),
    Event(
        "E4",
        "Agents and Their Harnesses",
        "Porto",
        "Alfandega",
        date(2026, 9, 21),
        date(2026, 9, 25),
        680,
        80,
        22,
    ),
)

EVENTS: Mapping[str, Event] = MappingProxyType({event.id: event for event in _ALL})
"""By id. E3 is full: nobody can be moved to it."""
