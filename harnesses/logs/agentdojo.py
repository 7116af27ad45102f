"""AgentDojo: records with `suite_name`, `user_task_id`, `injection_task_id`, `messages`; imports the conversation.

`security: true` means that the attack succeeded. A record without an injection task attempted none: its `security`
says nothing about attacks. The model saw the `error` of a failed call in place of its content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesses.logs.conversation import read_conversation
from harnesses.logs.fields import as_name, as_text, as_truth, need
from harnesses.logs.run import Outcome, Run
from harnesses.runtime.records import Status

NAME = "AgentDojo"
KEYS = ("suite_name", "user_task_id", "messages")


def read(record: Mapping[str, Any], file: str) -> Run:
    """The run of one record. LogError names a wrong entry."""
    head, steps = read_conversation(need(record, "messages"), "messages", _verdict)
    suite = as_name(need(record, "suite_name"), "suite_name")
    task = as_name(need(record, "user_task_id"), "user_task_id")
    pipeline = record.get("pipeline_name")
    injection = record.get("injection_task_id")
    attempted = injection is not None
    outcome = Outcome(
        success=as_truth(record.get("utility"), "utility"),
        attempted=attempted,
        carried_out=as_truth(record.get("security"), "security") if attempted else None,
    )
    words = [suite] + ([as_name(pipeline, "pipeline_name")] if pipeline is not None else [])
    identity = "/".join([task, as_name(injection, "injection_task_id") if attempted else "none"])
    return Run(NAME, identity, f"{suite}/{task}", " ".join(words), outcome, head, steps)


def _verdict(message: Mapping[str, Any], text: str) -> tuple[Status, str]:
    error = as_text(message.get("error"), "error")
    if not error:
        return "ok", text
    return ("denied" if error.startswith("denied") else "error"), error
