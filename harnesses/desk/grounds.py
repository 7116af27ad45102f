"""Grounds: why a case goes to a person, as functions of the state; imports policy, transcript, wishes.

A probability below its threshold is one ground of several. An explicit wish for a person, a case that the documents do
not cover, and a run that makes no progress are the others, whatever the probabilities say; the participant's tone and
what the language model says of its own confidence are none. A decision that could not be had is a ground too: the desk
fails to the side of asking. Source: M14 §4 (router, guard), §7 (escalation is not only a threshold).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from harnesses.desk.policy import address_on_record
from harnesses.desk.questions import ESCALATE
from harnesses.desk.state import ROUTE, guard_thresholds
from harnesses.desk.transcript import no_progress, policy_gap, record
from harnesses.desk.wishes import person_asked_for
from harnesses.guard.region import GuardError, Region, probability, region


class Kind(StrEnum):
    """The reason of a hand-off, in the word that `actions` holds."""

    PERSON = "person-asked-for"
    NO_DECISION = "no-decision"
    ROUTE_UNSURE = "route-unsure"
    ROUTE = "route"
    GAP = "policy-gap"
    NO_PROGRESS = "no-progress"
    ORDER = "order-rule"
    ADDRESS = "P6"
    GUARD = "guard"


class Ground(NamedTuple):
    """A reason and, in words with its numbers, what it rests on."""

    kind: Kind
    detail: str


def router_ground(state: Mapping[str, Any]) -> Ground | None:
    """Why the router hands over; None where its route is followed. Source: M14 Eq. 3."""
    wish = person_asked_for(state["case"]["request"])
    if wish is not None:
        return Ground(Kind.PERSON, f"the participant asked for a person: {wish!r}")
    route, p, tau = state.get("route"), state.get("p_route"), state["taus"][ROUTE]
    if route is None or not _reaches(p, 0):
        return Ground(Kind.NO_DECISION, "the router has no decision")
    if not _reaches(p, tau):
        return Ground(Kind.ROUTE_UNSURE, f"p_route {p:.4g} < tau_route {tau} for {route}")
    if route == ESCALATE:
        return Ground(Kind.ROUTE, f"the router chose to hand over, p_route {p:.4g} >= tau_route {tau}")
    return None


def tools_ground(state: Mapping[str, Any]) -> Ground | None:
    """Why a run is handed over after its tools have run; None where it goes on."""
    if state.get("pending") is not None:
        return None if looked_up(state) else _ORDER
    stuck = no_progress(state["messages"])
    if stuck is not None:
        return Ground(Kind.NO_PROGRESS, stuck)
    gap = policy_gap(state["messages"])
    return None if gap is None else Ground(Kind.GAP, gap)


def guard_ground(state: Mapping[str, Any]) -> Ground | None:
    """Why the pending email goes to staff; None where it is sent, or a person is asked. Source: M14 Eq. 4 and P6."""
    broken = hard_ground(state)
    if broken is not None:
        return broken
    p = state.get("p_allow")
    if not _reaches(p, 0):
        return Ground(Kind.NO_DECISION, "the guard has no decision")
    limits = guard_thresholds(state["taus"])
    if region(p, limits) is Region.ESCALATE:
        return Ground(Kind.GUARD, f"p_allow {p:.4g} < tau_esc {limits.tau_esc}")
    return None


def hard_ground(state: Mapping[str, Any]) -> Ground | None:
    """The rule in code that the pending email breaks, None where it breaks none: no model is asked about it."""
    if not looked_up(state):
        return _ORDER
    if Kind.ADDRESS in state.get("lifted", ()) or address_allowed(state):
        return None
    return Ground(Kind.ADDRESS, "the email's address is not the one on the record")


def ground(state: Mapping[str, Any]) -> Ground:
    """Why a run that has come to `escalate` is there: the ground of the edge that led to it."""
    if state.get("pending") is not None:
        found = guard_ground(state)
    else:
        found = tools_ground(state) if state["k"] else router_ground(state)
    return found or Ground(Kind.NO_DECISION, "the state holds no decision that leads on")


def guard_region(state: Mapping[str, Any]) -> Region:
    """What becomes of the pending email: the hard rules first, then Eq. 4."""
    if guard_ground(state) is not None:
        return Region.ESCALATE
    return region(state["p_allow"], guard_thresholds(state["taus"]))


def looked_up(state: Mapping[str, Any]) -> bool:
    """The order rule: whether the participant's registration has been found, at intake or by the tool."""
    return record(state["case"], state["messages"]) is not None


def address_allowed(state: Mapping[str, Any]) -> bool:
    """P6: whether the pending email goes to exactly the address on the record."""
    pending = state.get("pending")
    found = record(state["case"], state["messages"])
    return pending is not None and address_on_record(pending["email"]["to"], found)


_ORDER = Ground(Kind.ORDER, "no registration has been found, so no email may be sent")


def _reaches(p: Any, tau: Any) -> bool:
    """Whether p is a probability that reaches tau, exactly; what is no probability reaches nothing."""
    try:
        return probability(p, "p") >= probability(tau, "tau")
    except (GuardError, TypeError):
        return False
