"""Edges: which node comes next, as plain functions of the state; imports grounds and transcript.

No edge calls a model, and each reads the numbers and thresholds in the state anew: after a fork with other thresholds
it is the new ones that decide. Whatever asked for an email, `send` is reached from `guard` and `human_review` alone,
and from neither unless the registration was found. Source: M14 §4 (the table of nodes and edges), Eq. 3, Eq. 4.
Differs from the source: `tools` and `human_review` may lead to `escalate` (no progress, policy gap, order rule).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesses.desk.grounds import guard_region, looked_up, router_ground, tools_ground
from harnesses.desk.questions import ASK_USER
from harnesses.desk.transcript import calls
from harnesses.guard.region import Region

ROUTER, AGENT, TOOLS, GUARD, REVIEW, SEND, ASK, ESCALATE, VERIFY = (
    "router", "agent", "tools", "guard", "human_review", "send", "ask_user", "escalate", "verify",
)  # fmt: skip
"""The nodes. Source: M14 §4."""

ANSWERED, STOPPED = "answered", "stopped"
"""Where `agent` leads when it does not lead to `tools`: a final answer, which `verify` may look at, or a failure."""

State = Mapping[str, Any]


def after_router(state: State) -> str:
    """Source: M14 Eq. 3."""
    if router_ground(state) is not None:
        return ESCALATE
    return ASK if state["route"] == ASK_USER else AGENT


def after_agent(state: State) -> str:
    """Tools while calls are left; at k = k_max a run with calls still requested has failed. Source: M14 §4, §6."""
    outcome = state.get("outcome")
    if outcome is not None:
        return ANSWERED if outcome["kind"] == "answer" else STOPPED
    return TOOLS if calls(state["messages"][-1]) and state["k"] < state["k_max"] else STOPPED


def after_tools(state: State) -> str:
    """The guard, for every email that is asked for, on whatever branch."""
    if tools_ground(state) is not None:
        return ESCALATE
    return GUARD if state.get("pending") is not None else AGENT


def after_guard(state: State) -> str:
    """Source: M14 Eq. 4, after P6 and the order rule."""
    return {Region.ACT: SEND, Region.ASK: REVIEW, Region.ESCALATE: ESCALATE}[guard_region(state)]


def after_review(state: State) -> str:
    """Send what a person approved; what they rejected is back with the agent, as an error result of its call."""
    pending = state.get("pending")
    if pending is None or state["actions"][-1:] != [f"approved:{pending['id']}"]:
        return AGENT
    return SEND if looked_up(state) else ESCALATE
