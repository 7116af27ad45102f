"""Tool errors: what a failed call tells the model to do next: fix it, retry it, or stop; imports runtime.

An error's text begins with its advice (`Fix: ...`), so that whatever reads the message list, a model or a program, can
act on it. An empty answer is no error: a tool that found nothing says so in words. Source: M14 §3.
"""

from __future__ import annotations

from enum import StrEnum

from harnesses.runtime.child import Transient
from harnesses.runtime.records import ToolCall, ToolResult


class Advice(StrEnum):
    """What to do after an error. Source: M14 §3 (fix the arguments, retry later, not permitted)."""

    FIX = "fix"
    RETRY = "retry"
    STOP = "stop"


class Fix(ValueError):
    """Raised by a tool whose arguments were wrong: the same call cannot succeed, another one may."""


class Retry(Transient):
    """Raised by a tool whose failure may pass: the same call may succeed later."""


class Stop(Exception):
    """Raised by a tool that must not be called like this again: not permitted, or broken for good."""


def advice(content: str) -> Advice | None:
    """The advice of an error's text; None of a text that begins with none."""
    return next((kind for kind in Advice if content.startswith(f"{kind.value.capitalize()}: ")), None)


def advised(call: ToolCall, result: ToolResult, known: bool) -> ToolResult:
    """The result with an error's text beginning with its advice.

    `known`: whether the call reached the tool. A call that is unknown or malformed is to be fixed, a denied one
    stopped, a timeout retried; an exception without advice of its own is the tool's defect: stop.
    """
    if result.status == "ok" or advice(result.content) is not None:
        return result
    if result.status == "denied":
        kind = Advice.STOP
    elif result.status == "timeout":
        kind = Advice.RETRY
    else:
        kind = Advice.STOP if known else Advice.FIX
    text = f"{kind.value.capitalize()}: {call.name}: {result.content}"
    return ToolResult(result.call_id, result.status, text, result.duration)
