"""People: drawn participants and their bookings, and drawn days, for the decision set; imports draw, registrations.

Names are common first and last names put together by chance; addresses are under the names reserved for examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple

from harnesses.desk.draw import Draw
from harnesses.desk.events import Event
from harnesses.desk.registrations import CANCELLED, DISPUTED, PAID, PENDING, STANDARD, STUDENT, Registration

FIRST = (
    "Ada", "Amir", "Anneke", "Aylin", "Bela", "Carla", "Dario", "Deniz", "Elif", "Enzo", "Farah", "Greta", "Hugo",
    "Ivana", "Jamal", "Joana", "Kofi", "Lena", "Luca", "Maja", "Marta", "Mei", "Nadia", "Nils", "Noor", "Olga", "Pavel",
    "Priya", "Rana", "Rui", "Samir", "Sofia", "Tariq", "Tessa", "Uma", "Victor", "Wanda", "Yara", "Zoe", "Ines",
)  # fmt: skip
LAST = (
    "Abebe", "Almeida", "Andersen", "Bakker", "Bauer", "Bianchi", "Castro", "Diallo", "Dubois", "Eriksen", "Fischer",
    "Garcia", "Haddad", "Horvat", "Ibrahim", "Jansen", "Kaya", "Kim", "Kowalski", "Lopez", "Mensah", "Moreau",
    "Nakamura", "Novak", "Osei", "Peeters", "Petrov", "Rossi", "Sato", "Silva", "Singh", "Tanaka", "Varga",
    "Weber", "Yilmaz",
)  # fmt: skip
DOMAINS = ("example.org", "example.com", "example.net")

STATUS_WEIGHTS: Mapping[str, float] = {PAID: 0.90, PENDING: 0.05, DISPUTED: 0.03, CANCELLED: 0.02}
PARTY_WEIGHTS: Mapping[int, float] = {1: 0.74, 2: 0.12, 3: 0.07, 4: 0.04, 5: 0.01, 6: 0.01, 8: 0.01}
STUDENTS, MOVED, ATTENDED = 0.25, 0.08, 0.9
"""Shares of bookings at the student rate, of moved ones, and, of those whose event is over, of attended ones."""


class Person(NamedTuple):
    """Somebody with an address."""

    name: str
    address: str


def person(draw: Draw) -> Person:
    """Somebody."""
    first, last, domain = draw.pick(FIRST), draw.pick(LAST), draw.pick(DOMAINS)
    local = draw.pick(
        (f"{first}.{last}", f"{first}{last}", f"{first[0]}.{last}", f"{first}_{last}", f"{last}.{first}")
    )
    return Person(
        f"{first} {last}", f"{local}{draw.pick(('', '', str(draw.between(2, 99))))}@{domain}".lower()
    )


def booking(draw: Draw, who: Person, event: Event, today: date) -> Registration:
    """A booking of the event by this person, as of `today`."""
    drawn = Registration(
        who.address,
        who.name,
        event.id,
        draw.weighted(STATUS_WEIGHTS),
        STUDENT if draw.happens(STUDENTS) else STANDARD,
        draw.weighted(PARTY_WEIGHTS),
        draw.happens(MOVED),
    )
    came = draw.happens(ATTENDED)
    return replace(drawn, attended=came and today > event.last and drawn.status in (PAID, DISPUTED))


def before(draw: Draw, event: Event, days: int) -> date:
    """A day from 1 to `days` days before the first day."""
    return event.first - timedelta(days=draw.between(1, days))


def after(draw: Draw, event: Event, days: int) -> date:
    """A day from 1 to `days` days after the last day."""
    return event.last + timedelta(days=draw.between(1, days))


def mistyped(draw: Draw, address: str) -> str:
    """The same address with another domain, or with one letter of its first part doubled or left out."""
    local, _, domain = address.partition("@")
    if draw.happens(0.4):
        return f"{local}@{draw.pick([other for other in DOMAINS if other != domain])}"
    letters = [place for place, letter in enumerate(local) if letter.isalpha()]
    place = draw.pick(letters)
    changed = local[place] * 2 if draw.happens(0.5) or len(letters) < 2 else ""
    return f"{local[:place]}{changed}{local[place + 1 :]}@{domain}"
