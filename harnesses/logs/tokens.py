"""Sizes in tokens: the running harness's own estimator, for all formats; imports the runtime's reading of records.

A reply's text and each of its calls are measured apart, as the running harness measures its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from harnesses.runtime.assembly import Reading
from harnesses.runtime.records import ToolCall

ESTIMATOR = (
    "ceil(characters/4) of a message's content plus that of the JSON {name, arguments} of each tool call"
)
UNLESS_COUNTED = ", or the counts of the log where it carries them"
READING = Reading()

Source = Literal["log", "estimate"]


def estimate(text: str) -> int:
    """Tokens of a text, at four characters each, rounded up."""
    return READING.tokens(text)


def reply_tokens(text: str, call: ToolCall | None) -> int:
    """Tokens of what a model said together with one call."""
    return estimate(text) + (0 if call is None else READING.call(call)[1])


def call_key(name: str, arguments: Mapping[str, Any]) -> str:
    """A text that is equal for identical calls, whatever the order of their arguments."""
    return json.dumps([name, arguments], sort_keys=True)
