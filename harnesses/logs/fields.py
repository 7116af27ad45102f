"""Fields of a log's record, read with the entry named where it is wrong; imports json alone.

`place` is the path of the entry as an error shows it, such as `traj[3].content`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class LogError(ValueError):
    """A log, or one record of it, cannot be read; the message is one line that names the place."""


def need(data: Mapping[str, Any], key: str, place: str = "") -> Any:
    """The entry `key` of an object; LogError where it is missing."""
    if key not in data:
        raise LogError(f"{_at(place, key)} is missing")
    return data[key]


def as_object(value: Any, place: str) -> dict[str, Any]:
    """`value` if it is an object."""
    if not isinstance(value, dict):
        raise LogError(f"{place} is {kind(value)}, not an object")
    return value


def as_list(value: Any, place: str) -> list[Any]:
    """`value` if it is a list, none standing for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise LogError(f"{place} is {kind(value)}, not a list")
    return value


def as_text(value: Any, place: str) -> str:
    """The text of a message's content: a string, none, or a list of blocks with a `text` or `content` each."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_block(block, f"{place}[{i}]") for i, block in enumerate(value))
    raise LogError(f"{place} is {kind(value)}, not a text")


def as_name(value: Any, place: str) -> str:
    """A name or number that identifies something, as text."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return repr(value) if abs(value) < 1 << 64 else "large number"
    raise LogError(f"{place} is {kind(value)}, not a name such as 'task 7'")


def as_truth(value: Any, place: str) -> bool | None:
    """True, false, or None where the log has no verdict."""
    if value is None or isinstance(value, bool):
        return value
    raise LogError(f"{place} is {kind(value)}, not true, false or null")


def as_count(value: Any) -> int | None:
    """A whole number from 0, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def as_arguments(value: Any) -> dict[str, Any]:
    """Arguments of a call, given as an object or as its JSON; what is neither becomes `{"text": ...}`."""
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return {"text": value}
        return read if isinstance(read, dict) else {"text": value}
    return {"text": json.dumps(value)}


def kind(value: Any) -> str:
    """What sort of JSON value this is, in words."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _block(block: Any, place: str) -> str:
    if isinstance(block, str):
        return block
    fields = as_object(block, place)
    text = fields.get("text", fields.get("content"))
    return text if isinstance(text, str) else ""  # an image has no text


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
