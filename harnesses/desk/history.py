"""History: the snapshots of a thread, and running again from one of them: replay, fork, a fresh start; imports driver.

A replay runs every node after its snapshot again, the sending of an email too, which does nothing for a call that has
sent it. A fork changes what decides, the thresholds or the facts, and is a new branch of the same thread: the thread's
newest checkpoint is the fork's from then on, and the old branch stays as it was. Source: M14 §5, Exercise 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from harnesses.desk.database import DeskError
from harnesses.desk.driver import Desk, Standing, config, due, named
from harnesses.desk.edges import GUARD, REVIEW, ROUTER, SEND
from harnesses.desk.grounds import guard_region
from harnesses.desk.state import K_MAX, DeskState, checked_taus, request_input

CHANGED = ("taus", "case", "k_max")
"""What a fork may change: thresholds, facts, the bound. A number of the decider or a verdict is not made up."""


@dataclass(frozen=True)
class Moment:
    """A snapshot of a thread: `next` is the node due then, None at an end; `line` is the last step's.

    current: whether the newest checkpoint came from here; others belong to branches that a fork or replay left.
    """

    id: str
    parent: str | None
    step: int
    next: str | None
    line: Mapping[str, Any] | None
    taus: Mapping[str, Any]
    current: bool


def history(desk: Desk, thread: str) -> list[Moment]:
    """The snapshots of a thread, newest first, those of left branches among them. DeskError for no such thread."""
    current = {_id(snapshot.config) for snapshot in branch(desk, thread)}
    found = []
    for snapshot in desk.graph.get_state_history(config(thread)):
        parent = snapshot.parent_config
        trace = snapshot.values.get("trace", ())
        found.append(
            Moment(
                _id(snapshot.config),
                None if parent is None else _id(parent),
                int((snapshot.metadata or {}).get("step", 0)),
                due(snapshot),
                trace[-1] if trace else None,
                snapshot.values.get("taus", {}),
                _id(snapshot.config) in current,
            )
        )
    return found


def branch(desk: Desk, thread: str) -> Iterator[StateSnapshot]:
    """The snapshots that led to the newest one, which comes first. DeskError for no such thread."""
    by_id = {_id(snapshot.config): snapshot for snapshot in desk.graph.get_state_history(config(thread))}
    newest = desk.graph.get_state(config(named(thread)))
    if newest.created_at is None:
        raise DeskError(f"there is no thread {thread!r}; start it with a request")
    now: StateSnapshot | None = newest
    while now is not None:
        yield now
        parent = now.parent_config
        now = None if parent is None else by_id.get(_id(parent))


def snapshot_before(desk: Desk, thread: str, at: str) -> StateSnapshot:
    """The newest snapshot of the current branch with node `at` due, or the one whose id begins with `at`.

    DeskError where there is none. Source: M14 Exercise 4.
    """
    nodes: list[str] = []
    for snapshot in branch(desk, thread):
        node = due(snapshot)
        if node == at:
            return snapshot
        nodes += [] if node is None else [node]
    if len(at) >= 8:
        for snapshot in desk.graph.get_state_history(config(thread)):
            if _id(snapshot.config).startswith(at) and due(snapshot):
                return snapshot
    passed = ", ".join(dict.fromkeys(name for name in nodes[::-1] if name != "__start__"))
    raise DeskError(f"thread {thread} has no snapshot before {at!r}; it came past {passed}")


def replay(desk: Desk, thread: str, at: str) -> Standing:
    """Run again from the snapshot before `at`, with what it held. A pause on the way asks anew."""
    with desk.locks.held(named(thread)):
        snapshot = snapshot_before(desk, thread, at)
        return desk.run_from(_place(snapshot.config), None, int(snapshot.values.get("k_max", K_MAX)))


def fork(desk: Desk, thread: str, at: str = ROUTER, **changes: Any) -> Standing:
    """Run on from the snapshot before `at` with other `taus`, `case` or `k_max`; those not given stay.

    taus: the thresholds that change, by name. DeskError for anything else, and between a verdict and its email: what
    a person approved goes out as it was shown, or not at all.
    """
    with desk.locks.held(named(thread)):
        snapshot = snapshot_before(desk, thread, at)
        if due(snapshot) == SEND:
            raise DeskError(f"nothing can be changed before {SEND}; fork before {GUARD} or {REVIEW}")
        place = desk.graph.update_state(_place(snapshot.config), _changed(snapshot, changes))
        return desk.run_from(
            _place(place), None, int(changes.get("k_max", snapshot.values.get("k_max", K_MAX)))
        )


def start_fresh(
    desk: Desk, old: str, new: str, case: Mapping[str, Any], taus: Mapping[str, Any] | None = None
) -> Standing:
    """Start `new` with a summary of what `old` established, and none of what it observed, which may be stale.

    case: the new request with records fetched anew. DeskError where `old` is not there, or `new` is.
    Source: M14 §5 (resume, or start fresh?).
    """
    with desk.locks.held(named(new)):
        if desk.standing(new) is not None:
            raise DeskError(f"thread {new} is there already; name another for the fresh start")
        before = desk.standing(named(old))
        if before is None:
            raise DeskError(f"there is no thread {old!r} to sum up")
        told = {"role": "user", "content": summary(before.state, old)}
        made = request_input(case, before.state["taus"] if taus is None else taus, before=[told])
        return desk.run_from(config(new), made, made["k_max"])


def summary(state: Mapping[str, Any], thread: str) -> str:
    """Who asked for what and what was decided, in one paragraph; nothing observed that may have moved."""
    case, outcome = state["case"], state.get("outcome") or {}
    ended = {"answer": "the desk answered", "question": "the desk asked the participant something"}
    ended |= {"handoff": f"it went to staff ({outcome.get('reason')})", "failed": "the run failed"}
    booking = case.get("registration") or {}
    return (
        f"[Summary of thread {thread} of {case.get('today') or 'unknown date'}] The participant "
        f"{booking.get('name', '')} <{case.get('email')}> asked: {case['request']!r}. Decided: "
        f"{', '.join(state['actions']) or 'nothing'}; {ended.get(str(outcome.get('kind')), 'it has not ended')}. "
        "Anything that may have changed since has to be looked up again."
    )


def _changed(snapshot: StateSnapshot, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The update of a fork, checked as a new request is; the guard's region follows its thresholds."""
    odd = ", ".join(sorted(set(changes) - set(CHANGED)))
    if odd or not changes:
        raise DeskError(
            f"a fork changes {', '.join(CHANGED)}, such as taus={{'act': '0.7'}}; got {odd or 'none'}"
        )
    if "request" in changes.get("case", {}):
        raise DeskError("a fork keeps its request, which is among the messages; start another thread")
    state = DeskState(**snapshot.values)  # type: ignore[typeddict-item]
    taus = checked_taus({**state["taus"], **changes.get("taus", {})})
    case = {**state["case"], **changes.get("case", {})}
    k_max = changes.get("k_max", state["k_max"])
    checked = request_input(case, taus, k_max)
    update = {"taus": checked["taus"], "case": checked["case"], "k_max": checked["k_max"]}
    if state.get("pending") is not None and state.get("p_allow") is not None:
        update["region"] = guard_region({**state, **update}).value
    return update


def _place(given: RunnableConfig) -> RunnableConfig:
    """The configuration of a checkpoint, by its names alone."""
    return {
        "configurable": {k: given["configurable"][k] for k in ("thread_id", "checkpoint_ns", "checkpoint_id")}
    }


def _id(given: RunnableConfig) -> str:
    return str(given["configurable"]["checkpoint_id"])
