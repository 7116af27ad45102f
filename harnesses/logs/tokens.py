"""Sizes in tokens: the one estimator of all formats, used wherever a log carries no counts; imports json alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

ESTIMATOR = "ceil(characters/4) of a message's content plus the JSON {name, arguments} of its tool calls"
UNLESS_COUNTED = ", or the counts of the log where it carries them"
CHARACTERS_A_TOKEN = 4

Source = Literal["log", "estimate"]


def estimate(*texts: str) -> int:
    """Tokens of the texts of one message together, at four characters each, rounded up."""
    return -(-sum(map(len, texts)) // CHARACTERS_A_TOKEN)


def call_json(name: str, arguments: Mapping[str, Any]) -> str:
    """A tool call as JSON with its keys sorted: the text that is measured, and equal for identical calls."""
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False, sort_keys=True)
