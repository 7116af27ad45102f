"""mini-swe-agent: records with `trajectory_format`, `messages` and `info`; imports the conversation.

The exit status of a command is the result's. Where every reply tells its `usage`, sizes are those counts: a prompt
is longer than the last one by the reply and its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harnesses.logs.conversation import read_conversation
from harnesses.logs.fields import as_count, as_list, as_name, as_object, as_truth, need
from harnesses.logs.run import Head, Outcome, Run, Step
from harnesses.runtime.records import Status

NAME = "mini-swe-agent"
KEYS = ("trajectory_format", "messages")


def read(record: Mapping[str, Any], file: str) -> Run:
    """The run of one record. LogError names a wrong entry."""
    messages = as_list(need(record, "messages"), "messages")
    entries = [as_object(message, f"messages[{i}]") for i, message in enumerate(messages)]
    talk = [entry for entry in entries if entry.get("role") != "exit"]  # what the harness noted at the end
    head, steps = read_conversation(talk, "messages", _verdict)
    task = record.get("instance_id")
    task = None if task is None else as_name(task, "instance_id")
    part = record.get("run")
    identity = "/".join([task or file] + ([as_name(part, "run")] if part is not None else []))
    info = record.get("info")
    ended = info.get("exit_status") if isinstance(info, dict) else None
    outcome = Outcome(
        success=as_truth(record.get("resolved"), "resolved"),
        ended=ended if isinstance(ended, str) else None,
    )
    run = Run(NAME, identity, task, "", outcome, head, steps)
    counted = _counted(head, steps, [_usage(entry) for entry in talk if entry.get("role") == "assistant"])
    return run if counted is None else replace(run, head=counted[0], steps=counted[1], counted="log")


def _counted(
    head: Head, steps: Sequence[Step], usages: Sequence[tuple[int, int] | None]
) -> tuple[Head, tuple[Step, ...]] | None:
    """Head and steps sized by the log's counts; None where they do not tell the size of every part.

    The result after the last reply was never sent: its size stays an estimate.
    """
    known = [usage for usage in usages if usage is not None]
    if not known or not len(known) == len(usages) == len(steps):
        return None
    sized: list[Step] = []
    for i, (step, (prompt, completion)) in enumerate(zip(steps, known, strict=True)):
        if i + 1 < len(known):
            answer = known[i + 1][0] - prompt - completion
            if answer < 0:
                return None
            heard = min(step.heard_tokens, answer) if step.result is not None else answer
            step = replace(step, result_tokens=answer - heard, heard_tokens=heard)
        sized.append(replace(step, call_tokens=completion))
    return replace(head, tokens=known[0][0]), tuple(sized)


def _usage(reply: Mapping[str, Any]) -> tuple[int, int] | None:
    """Tokens of the prompt and of the reply."""
    extra = reply.get("extra")
    usage = extra.get("usage") if isinstance(extra, dict) else None
    if not isinstance(usage, dict):
        return None
    prompt, completion = as_count(usage.get("prompt_tokens")), as_count(usage.get("completion_tokens"))
    return None if prompt is None or completion is None else (prompt, completion)


def _verdict(message: Mapping[str, Any], text: str) -> tuple[Status, str]:
    extra = message.get("extra")
    extra = extra if isinstance(extra, dict) else {}
    if "timed out" in str(extra.get("exception_info") or ""):
        return "timeout", text
    code = extra.get("returncode")
    return ("ok" if code in (0, None) and not extra.get("exception_info") else "error"), text
