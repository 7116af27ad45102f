"""SWE-agent: `.traj` files with `history` and `trajectory`; imports the conversation.

The steps are those of `history`, which is what the model saw; the last observation, which it no longer saw, comes
from `trajectory`. A reply without structured calls names its command in `action`: the JSON of that call is not
counted, for the reply's text holds it. An observation has no exit status: only what the harness itself says in it
is a failure, not what a program printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harnesses.logs.conversation import read_calls, role_of
from harnesses.logs.fields import LogError, as_list, as_object, as_text
from harnesses.logs.run import Head, Outcome, Run, Step, untimed
from harnesses.logs.tokens import estimate, reply_tokens
from harnesses.runtime.records import Status, ToolCall

NAME = "SWE-agent"
TIMEOUTS = ("EXECUTION TIMED OUT", "COMMAND TIMED OUT", "was cancelled because it took more than")
DENIALS = ("is not supported by this environment",)
ERRORS = ("Your proposed edit has introduced new syntax error", "Your edit was not applied")
OPENING = 400  # characters of an observation in which the harness speaks first


def matches(record: Mapping[str, Any]) -> bool:
    """Whether the record's shape is this one: its entries name the acting agent, or are trajectory steps."""
    history, trajectory = record.get("history"), record.get("trajectory")
    if isinstance(history, list) and history and isinstance(history[0], dict):
        return "role" in history[0] and "agent" in history[0]
    steps = trajectory if isinstance(trajectory, list) else []
    return bool(steps) and isinstance(steps[0], dict) and {"action", "observation"} <= set(steps[0])


def read(record: Mapping[str, Any], file: str) -> Run:
    """The run of one file. LogError names a wrong entry."""
    trajectory = [
        as_object(step, f"trajectory[{i}]")
        for i, step in enumerate(as_list(record.get("trajectory"), "trajectory"))
    ]
    head, steps = _history(as_list(record.get("history"), "history"))
    if not steps:
        steps = [_step(entry, i) for i, entry in enumerate(trajectory)]
    elif steps[-1].result is None and len(trajectory) == len(steps):
        steps[-1] = _answered(steps[-1], _observation(trajectory[-1], len(trajectory) - 1))
    info = record.get("info")
    ended = info.get("exit_status") if isinstance(info, dict) else None
    outcome = Outcome(ended=ended if isinstance(ended, str) else None)
    return Run(NAME, file, None, "", outcome, head, tuple(steps))


def _history(history: Sequence[Any]) -> tuple[Head, list[Step]]:
    """The head, demonstrations included, and the steps with their answers."""
    texts: dict[str, list[str]] = {"system": [], "user": []}
    head_tokens = 0
    steps: list[Step] = []
    for i, value in enumerate(history):
        place = f"history[{i}]"
        entry = as_object(value, place)
        role, text = role_of(entry, place), as_text(entry.get("content"), f"{place}.content")
        if entry.get("is_demo") or (not steps and role != "assistant"):
            texts["system" if role == "system" else "user"].append(text)
            head_tokens += estimate(text)
        elif role == "assistant":
            steps += _reply(entry, text, place, len(steps))
        else:
            _take(steps, entry, text)
    return Head("\n".join(texts["system"]), "\n".join(texts["user"]), head_tokens), steps


def _reply(entry: Mapping[str, Any], text: str, place: str, number: int) -> list[Step]:
    """A step for each structured call, one for an action in the text, one of talk otherwise."""
    calls = read_calls(entry.get("tool_calls"), f"{place}.tool_calls")
    if calls:
        said = [text] + [""] * (len(calls) - 1)
        return [Step(s, call, call_tokens=reply_tokens(s, call)) for s, call in zip(said, calls, strict=True)]
    action = as_text(entry.get("action"), f"{place}.action")
    return [Step(text, _command(action, number), call_tokens=estimate(text))]


def _take(steps: list[Step], entry: Mapping[str, Any], text: str) -> None:
    """An observation answers the oldest open call of the last reply that it may; otherwise it was heard."""
    ids = entry.get("tool_call_ids")
    wanted = ids if isinstance(ids, list) and ids else None
    open_calls = [i for i, step in enumerate(steps) if step.call is not None and step.result is None]
    named = [i for i in open_calls if wanted is None or steps[i].call.id in wanted]  # type: ignore[union-attr]
    if named:
        place = named[-1] if wanted is None else named[0]
        steps[place] = _answered(steps[place], text)
        return
    last = steps[-1]
    heard = f"{last.heard}\n{text}" if last.heard else text
    steps[-1] = replace(last, heard=heard, heard_tokens=last.heard_tokens + estimate(text))


def _step(entry: Mapping[str, Any], number: int) -> Step:
    """A step of `trajectory`, for files that hold nothing else."""
    place = f"trajectory[{number}]"
    said = as_text(entry.get("response"), f"{place}.response")
    call = _command(as_text(entry.get("action"), f"{place}.action"), number)
    step = Step(said, call, call_tokens=reply_tokens(said, None if said else call))
    return step if call is None else _answered(step, _observation(entry, number))


def _observation(entry: Mapping[str, Any], number: int) -> str:
    return as_text(entry.get("observation"), f"trajectory[{number}].observation")


def _command(action: str, number: int) -> ToolCall | None:
    """The call that a command in the text is: named by its first word."""
    words = action.split(None, 1)
    if not words:
        return None
    return ToolCall(id=f"step{number}", name=words[0], arguments={"command": action.strip()})


def _answered(step: Step, text: str) -> Step:
    """The step with its observation."""
    if step.call is None:
        raise LogError("an observation answers a reply without a call")
    result = untimed(step.call.id, _status(text), text)
    return replace(step, result=result, result_tokens=estimate(text))


def _status(text: str) -> Status:
    opening = text[:OPENING]
    if any(mark in opening for mark in TIMEOUTS):
        return "timeout"
    if any(mark in opening for mark in DENIALS):
        return "denied"
    return "error" if any(mark in opening for mark in ERRORS) else "ok"
