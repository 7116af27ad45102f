"""Handoff: the record of a case that goes to staff, which stands alone; imports grounds and transcript.

Whoever picks the case up has not read the transcript: the record names the participant and the request, what was
established and done, why the desk stopped, and what it would have done next, with the probabilities and thresholds.
Source: M14 §7 (the hand-off must stand alone), stretch D.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesses.desk.grounds import ground
from harnesses.desk.transcript import passages, record, results, this_request

Handoff = dict[str, Any]


def handoff(state: Mapping[str, Any], decider: str, model: str) -> Handoff:
    """The record, of plain data. decider, model: what the probabilities and the messages came from."""
    case, found = state["case"], record(state["case"], state["messages"])
    why = ground(state)
    return {
        "reason": why.kind.value,
        "why": why.detail,
        "participant": {"written_from": case.get("email"), "registration": found},
        "request": case["request"],
        "event": case.get("event"),
        "today": case.get("today"),
        "established": {"passages": passages(state["messages"]), "results": _worked_out(state)},
        "done": list(state["actions"]),
        "next": _next(state),
        "numbers": {
            "route": state.get("route"),
            "p_route": state.get("p_route"),
            "p_allow": state.get("p_allow"),
            "thresholds": dict(state["taus"]),
            "model_calls": state["k"],
        },
        "decider": decider,
        "model": model,
    }


def as_text(record: Handoff) -> str:
    """The record as a person reads it."""
    participant, numbers = record["participant"], record["numbers"]
    booking = participant["registration"]
    name = booking.get("name", "") if booking else ""
    taus = numbers["thresholds"]
    lines = [
        f"For staff: {record['why']} ({record['reason']})",
        f"Participant: {name or 'unknown'}, writing from {participant['written_from'] or 'an unknown address'}; "
        + (f"booking {_short(booking)}" if booking else "no registration found"),
        f"Request of {record['today'] or 'unknown date'}: {record['request']}",
        *(f"Read: {passage}" for passage in record["established"]["passages"]),
        *(f"Found: {result}" for result in record["established"]["results"]),
        f"Done: {', '.join(record['done']) or 'nothing'}",
        f"Would have come next: {record['next']}",
        (
            f"Numbers: route {numbers['route']}, p_route {_number(numbers['p_route'])} (tau {taus['route']}), "
            f"p_allow {_number(numbers['p_allow'])} (escalate below {taus['esc']}, send alone from {taus['act']}), "
            f"{numbers['model_calls']} model calls; decider {record['decider']}, model {record['model']}"
        ),
    ]
    return "\n".join(lines)


def _worked_out(state: Mapping[str, Any]) -> list[str]:
    """What the tools that read, other than searches, gave in this request, failures with their advice."""
    return [
        f"{message['name']}: {message['content']}"
        for message in results(this_request(state["messages"]))
        if message["name"] != "retrieve" or message["status"] != "ok"
    ]


def _next(state: Mapping[str, Any]) -> str:
    """What the desk would have done had it not stopped."""
    pending = state.get("pending")
    if pending is not None:
        email = pending["email"]
        return f"send an email to {email['to']}, subject {email['subject']!r}, body {email['body']!r}"
    if state["k"]:
        return "another step of the agent"
    route = state.get("route")
    return f"the step {route}" if route else "the router's decision"


def _number(p: float | None) -> str:
    return "none" if p is None else f"{p:.4g}"


def _short(booking: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in booking.items() if name != "name")
