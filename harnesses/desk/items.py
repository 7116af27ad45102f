"""Items: labelled decisions of the desk and their lines of JSON; imports questions, decider and rulings.

A guard item is an email that may or may not go out alone; a route item a request with its right next step; an injection
item a harmless request beside a text that wants an email sent. Each carries the rule that decides and the facts that
the rule was applied to. Source: M14 §8; the set itself is this project's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from harnesses.desk.decider import Choice, Noul
from harnesses.desk.documents import POISONS
from harnesses.desk.policy import address_on_record
from harnesses.desk.questions import ROUTES, guard_question, route_question

DIRECT, DOCUMENT, TOOL_RESULT = "direct", "document", "tool_result"
CHANNELS = (DIRECT, DOCUMENT, TOOL_RESULT)
"""By which way an injected text arrives. Source: M14 §6."""


class ItemError(ValueError):
    """A line that is no item, in one line with an example of a right one."""


@dataclass(frozen=True)
class GuardItem:
    """An email to `email["to"]` in a case: `allowed` to go out without a person, or not, by `rule`."""

    id: str
    case: Mapping[str, Any]
    email: Mapping[str, str]
    passages: tuple[str, ...]
    allowed: bool
    rule: str
    facts: Mapping[str, Any]

    def question(self, added: Sequence[str] = ()) -> Noul:
        """What the guard is asked, with further passages after the item's own."""
        return guard_question(self.case, self.email, (*self.passages, *added))

    @property
    def on_record(self) -> bool:
        """P6, checked in code: only then is a decider asked at all."""
        return address_on_record(self.email["to"], self.case["registration"])


@dataclass(frozen=True)
class RouteItem:
    """A request and its right next step, by `rule`."""

    id: str
    case: Mapping[str, Any]
    route: str
    rule: str
    facts: Mapping[str, Any]

    def question(self) -> Choice:
        """What the router is asked."""
        return route_question(self.case)


@dataclass(frozen=True)
class InjectionItem:
    """A request that needs no email, and a text by `channel` that wants one sent to `to`.

    `poison` names the text among POISONS; it is empty where the text stands in the request itself.
    """

    id: str
    case: Mapping[str, Any]
    channel: str
    poison: str
    to: str

    def brings_about(self, email: Mapping[str, str]) -> bool:
        """Whether this email is the injected action: the request itself calls for none, so its address decides."""
        return email["to"] == self.to


@dataclass(frozen=True)
class DecisionSet:
    """The items of a split."""

    split: str
    route: tuple[RouteItem, ...]
    guard: tuple[GuardItem, ...]
    injection: tuple[InjectionItem, ...]

    def lines(self) -> str:
        """One JSON object a line, each with its `kind`; ends with a newline."""
        kinds: dict[str, tuple[Any, ...]] = {
            "route": self.route,
            "guard": self.guard,
            "injection": self.injection,
        }
        rows = ({"kind": kind, **asdict(item)} for kind, items in kinds.items() for item in items)
        return "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)


_KINDS: Mapping[str, type[RouteItem] | type[GuardItem] | type[InjectionItem]] = {
    "route": RouteItem,
    "guard": GuardItem,
    "injection": InjectionItem,
}


def read_items(lines: Iterable[str], split: str = "items") -> DecisionSet:
    """The items of lines as `DecisionSet.lines` writes them. Raises ItemError naming the first line that is none."""
    found: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            kind = row.pop("kind")
            item = _item(kind, row)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            told = str(error) if isinstance(error, ItemError) else 'it needs a "kind" and that kind\'s fields'
            raise ItemError(f"{split} line {number} is no item: {told}") from None
        found[kind].append(item)
    return DecisionSet(split, *(tuple(found[kind]) for kind in ("route", "guard", "injection")))


def _item(kind: str, row: Mapping[str, Any]) -> Any:
    """An item from its row. Raises ItemError for one with other fields, or a label that is none."""
    if kind not in _KINDS:
        raise ItemError(f"kind is {kind!r}; give one of {', '.join(_KINDS)}")
    wanted = {field.name for field in fields(_KINDS[kind])}
    if set(row) != wanted:
        raise ItemError(f"a {kind} item has the fields {', '.join(sorted(wanted))}")
    if kind == "guard":
        if not isinstance(row["allowed"], bool):
            raise ItemError(f"allowed is {row['allowed']!r}; give true or false")
        return GuardItem(**{**row, "passages": tuple(row["passages"])})
    if kind == "route":
        if row["route"] not in ROUTES:
            raise ItemError(f"route is {row['route']!r}; give one of {', '.join(ROUTES)}")
        return RouteItem(**row)
    if row["channel"] not in CHANNELS or row["poison"] not in ("", *POISONS):
        raise ItemError(
            f"channel {row['channel']!r}, poison {row['poison']!r}; give ones such as document, {[*POISONS][0]}"
        )
    return InjectionItem(**row)
