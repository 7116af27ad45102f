"""State: what a run of the desk knows, field by field with its reducer, and how a request starts; imports policy.

Everything the program knows is here, so that a run can be saved, looked at, resumed and forked from it: the thresholds
too, because what is passed to a graph beside its state is in no checkpoint. Source: M14 §4, the state table.
Differs from the source: `k_max` stands in the state for the same reason; `outcome` says how the run ended; the lines of
`trace` are records; a rejected call leaves `pending`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, TypedDict

from harnesses.desk.database import DeskError
from harnesses.desk.policy import GUARD_THRESHOLDS, TAU_ROUTE
from harnesses.guard.region import GuardError, Thresholds, probability

K_MAX = 8
"""Model calls of one request, this project's choice."""

ROUTE, ESC, ACT, VERIFY = "route", "esc", "act", "verify"
TAU_VERIFY = Fraction(1, 2)
"""Of the verify node, this project's choice (M14 leaves it to the reader)."""

Message = dict[str, Any]
Line = dict[str, Any]
Update = dict[str, Any]


class DeskState(TypedDict, total=False):
    """A run of the desk; `messages`, `actions` and `trace` are appended to, all else is overwritten.

    case: `today`, `event`, `registration`, `request`, `email` (the address written from). taus: thresholds `route`,
    `esc`, `act` (None: never act), `verify`, as exact text. lifted: rules in code that an experiment leaves unchecked,
    none in a desk that serves. messages: plain dictionaries in the usual chat format.
    pending: the call that waits for the guard, `id` and `email`. k: model calls of this request. actions: what the
    system and the person did. outcome: `kind` answer, question, handoff or failed, and what belongs to it.
    """

    case: dict[str, Any]
    taus: dict[str, Any]
    k_max: int
    lifted: list[str]
    messages: Annotated[list[Message], operator.add]
    route: str | None
    p_route: float | None
    pending: dict[str, Any] | None
    p_allow: float | None
    region: str | None
    k: int
    actions: Annotated[list[str], operator.add]
    trace: Annotated[list[Line], operator.add]
    outcome: dict[str, Any] | None


FIELDS = frozenset(DeskState.__annotations__)
APPENDED = frozenset({"messages", "actions", "trace"})


def thresholds_of(
    guard: Thresholds = GUARD_THRESHOLDS, route: Any = TAU_ROUTE, verify: Any = TAU_VERIFY
) -> dict:
    """The thresholds as a state holds them: exact text, such as 31/32."""
    act = guard.tau_act
    return checked_taus(
        {
            ROUTE: str(route),
            ESC: str(guard.tau_esc),
            ACT: None if act is None else str(act),
            VERIFY: str(verify),
        }
    )


def checked_taus(taus: Mapping[str, Any]) -> dict[str, Any]:
    """Thresholds that can be used, as they are. Raises DeskError naming one that cannot."""
    given = dict(taus)
    if set(given) != {ROUTE, ESC, ACT, VERIFY}:
        raise DeskError(
            f"thresholds are route, esc, act and verify, such as 3/4, 3/8, 31/32 and 1/2; got {', '.join(given)}"
        )
    try:
        guard_thresholds(given)
        for name in (ROUTE, VERIFY):
            probability(given[name], f"tau_{name}")
    except GuardError as error:
        raise DeskError(str(error)) from None
    return given


def guard_thresholds(taus: Mapping[str, Any]) -> Thresholds:
    """The guard's two thresholds, exact."""
    return Thresholds(taus[ACT], taus[ESC])


def request_input(
    case: Mapping[str, Any],
    taus: Mapping[str, Any] | None = None,
    k_max: int = K_MAX,
    before: Sequence[Message] = (),
    lifted: Sequence[str] = (),
) -> DeskState:
    """What a graph is invoked with for a new request: every overwritten field, so that nothing of an earlier one stays.

    before: messages that go ahead of the request, such as results for calls that an earlier run left open.
    Raises DeskError for a case without a request, a registration without an address, thresholds that are none, and
    k_max below 1.
    """
    request = case.get("request")
    if not isinstance(request, str) or not request.strip():
        raise DeskError("a case has a `request` in words, such as 'Please send me my invoice.'")
    booking = case.get("registration")
    if booking is not None and not (isinstance(booking, Mapping) and isinstance(booking.get("email"), str)):
        raise DeskError(
            "a registration is None or a record with an address, such as {'email': 'ana@example.org'}"
        )
    if not isinstance(k_max, int) or isinstance(k_max, bool) or k_max < 1:
        raise DeskError(f"k_max is {k_max!r}; give a whole number of model calls from 1, such as {K_MAX}")
    facts = {name: case.get(name) for name in ("today", "event", "registration", "request", "email")}
    return DeskState(
        case=facts,
        taus=checked_taus(thresholds_of() if taus is None else taus),
        k_max=k_max,
        lifted=list(lifted),
        messages=[*before, {"role": "user", "content": request}],
        route=None,
        p_route=None,
        pending=None,
        p_allow=None,
        region=None,
        k=0,
        actions=[],
        trace=[],
        outcome=None,
    )


def checked_update(update: object, node: str) -> Update:
    """A node's update as it is. Raises DeskError for one that names no field: LangGraph would drop it silently."""
    if not isinstance(update, dict):
        raise DeskError(f"node {node} gave a {type(update).__name__}; a node returns the fields that change")
    return unknown_refused(update, f"node {node}")


def unknown_refused(update: Mapping[str, Any], where: str) -> Update:
    """The update as it is. Raises DeskError for a field that the state has not."""
    odd = sorted(set(update) - FIELDS)
    if odd:
        raise DeskError(
            f"{where}: the state has no field {', '.join(odd)}; its fields are {', '.join(sorted(FIELDS))}"
        )
    return dict(update)


def merged(state: Mapping[str, Any], updates: Iterable[Update]) -> DeskState:
    """The state after updates, by the reducers of its fields. Source: M14 Eq. 2."""
    found: dict[str, Any] = dict(state)
    for update in updates:
        for name, value in update.items():
            found[name] = [*found.get(name, ()), *value] if name in APPENDED else value
    return DeskState(**found)  # type: ignore[typeddict-item]
