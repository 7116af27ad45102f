"""tau-bench: records with `task_id`, `trial`, `reward` and the messages `traj`; imports the conversation.

A failed call is a tool message that starts with `Error`; a run succeeded where its reward is 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesses.logs.conversation import read_conversation
from harnesses.logs.fields import as_name, need
from harnesses.logs.run import Outcome, Run
from harnesses.runtime.records import Status

NAME = "tau-bench"
KEYS = ("traj", "task_id")


def read(record: Mapping[str, Any], file: str) -> Run:
    """The run of one record. LogError names a wrong entry."""
    head, steps = read_conversation(need(record, "traj"), "traj", _verdict)
    task = as_name(need(record, "task_id"), "task_id")
    trial = record.get("trial")
    identity = task if trial is None else f"{task}/{as_name(trial, 'trial')}"
    return Run(NAME, identity, task, "", Outcome(_success(record.get("reward"))), head, steps)


def _success(reward: Any) -> bool | None:
    if isinstance(reward, bool) or not isinstance(reward, (int, float)) or reward != reward:
        return None
    return abs(reward - 1) < 1e-6


def _verdict(message: Mapping[str, Any], text: str) -> tuple[Status, str]:
    return ("error" if text.startswith("Error") else "ok"), text
