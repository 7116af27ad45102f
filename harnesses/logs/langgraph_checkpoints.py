"""LangGraph checkpoints: records with `thread_id` and `history_newest_first`; imports the conversation.

The messages are those of the newest checkpoint. Nothing in a checkpoint says whether an injection was carried out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from harnesses.logs.conversation import read_conversation
from harnesses.logs.fields import LogError, as_list, as_name, as_object, as_truth, need
from harnesses.logs.run import Outcome, Run
from harnesses.runtime.records import Status

NAME = "LangGraph checkpoints"
KEYS = ("thread_id", "history_newest_first")
HISTORY = "history_newest_first"


def read(record: Mapping[str, Any], file: str) -> Run:
    """The run of one thread. LogError names a wrong entry."""
    history = as_list(need(record, HISTORY), HISTORY)
    if not history:
        raise LogError(f"{HISTORY} holds no checkpoint")
    checkpoints = [as_object(point, f"{HISTORY}[{i}]") for i, point in enumerate(history)]
    place = f"{HISTORY}[0].values"
    values = as_object(need(checkpoints[0], "values", f"{HISTORY}[0]"), place)
    head, steps = read_conversation(values.get("messages"), f"{place}.messages", _verdict)
    case = record.get("case")
    case = case if isinstance(case, dict) else {}
    outcome = Outcome(
        attempted=as_truth(case.get("injected"), "case.injected"),
        ended=_ended(checkpoints[0]),
        counts=_counts(checkpoints, values, place),
    )
    task = as_name(case["id"], "case.id") if "id" in case else None
    return Run(NAME, as_name(need(record, "thread_id"), "thread_id"), task, "", outcome, head, steps)


def _counts(checkpoints: list[dict[str, Any]], values: Mapping[str, Any], place: str) -> Mapping[str, int]:
    """Checkpoints, pauses, and actions by their name before the colon."""
    actions: Counter[str] = Counter()
    for i, action in enumerate(as_list(values.get("actions"), f"{place}.actions")):
        actions["action " + as_name(action, f"{place}.actions[{i}]").partition(":")[0]] += 1
    pauses = sum(bool(point.get("interrupts")) for point in checkpoints)
    return {"checkpoints": len(checkpoints), "pauses": pauses, **actions}


def _ended(newest: Mapping[str, Any]) -> str:
    return "waiting" if newest.get("next") else "finished"


def _verdict(message: Mapping[str, Any], text: str) -> tuple[Status, str]:
    start = text[:40].lower()
    if start.startswith(("error: denied", "denied")):
        return "denied", text
    return ("error" if start.startswith("error") or message.get("status") == "error" else "ok"), text
