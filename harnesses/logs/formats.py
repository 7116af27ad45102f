"""Formats: which log a record is, told by its content, and its reader; imports the readers of all formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harnesses.logs import agentdojo, langgraph_checkpoints, mini_swe_agent, swe_agent, tau_bench
from harnesses.logs.fields import LogError, kind
from harnesses.logs.run import Run


class Format(NamedTuple):
    """A kind of log: its name, whether a record is of it, and what reads one (with the name of the record's file)."""

    name: str
    matches: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any], str], Run]


def _has(*keys: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda record: all(key in record for key in keys)


FORMATS = (
    Format(tau_bench.NAME, _has(*tau_bench.KEYS), tau_bench.read),
    Format(agentdojo.NAME, _has(*agentdojo.KEYS), agentdojo.read),
    Format(mini_swe_agent.NAME, _has(*mini_swe_agent.KEYS), mini_swe_agent.read),
    Format(langgraph_checkpoints.NAME, _has(*langgraph_checkpoints.KEYS), langgraph_checkpoints.read),
    Format(swe_agent.NAME, swe_agent.matches, swe_agent.read),
)
KNOWN = ", ".join(format.name for format in FORMATS)


def recognise(record: Any) -> Format | None:
    """The format of a record, or None."""
    if not isinstance(record, dict):
        return None
    return next((format for format in FORMATS if format.matches(record)), None)


def read_run(record: Any, file: str) -> Run:
    """The run that a record tells; `file` is the name of its file without the suffix. LogError where it is none."""
    found = recognise(record)
    if found is None:
        raise LogError(f"unknown log format, {shape(record)}; known: {KNOWN}")
    return found.read(record, file)


def shape(record: Any) -> str:
    """What a record looks like, in a few words."""
    if not isinstance(record, dict):
        return kind(record)
    names = [key[:24] for key in list(record)[:5]]
    return f"an object with {', '.join(names)}" if names else "an empty object"
