"""Models: the protocol behind which any model stands, and a scripted one; imports records.

Source: M1 §1.2.2 (steps 3 and 4).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from harnesses.runtime.records import AgentError


class RawCall(NamedTuple):
    """A call as the model wrote it: `arguments` is text that should be a JSON object."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True)
class Reply:
    """What a model said. With calls it asks for tools, whatever the text; without, the text is its final answer.

    tokens, cost: as the provider counts them, None where it does not. fault: why a provider's answer cannot be
    read at all; such a reply counts as one that does not parse.
    """

    text: str = ""
    calls: tuple[RawCall, ...] = ()
    tokens: int | None = None
    cost: float | None = None
    fault: str | None = None


class ModelFailure(Exception):
    """A model that gave no reply; `transient` where asking again may help, as after a rate limit."""

    def __init__(self, message: str, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class Model(Protocol):
    """A function of the formatted context; `step` numbers the model calls of a run from 0.

    A model that draws at random must draw from (seed, episode, step), so that a run repeats and resumes exactly.
    """

    @property
    def name(self) -> str:
        """A short name for traces."""
        ...

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """The reply; ModelFailure where there is none."""
        ...


Line = Reply | Callable[[list[dict[str, Any]]], Reply]


@dataclass(frozen=True)
class ScriptedModel:
    """A model that replies by a script, the last line for ever; a line may look at the messages shown."""

    lines: Sequence[Line]
    name: str = "scripted"

    def __post_init__(self) -> None:
        """Refuse an empty script."""
        if not self.lines:
            raise AgentError('a script needs a line, such as Reply(text="done")')

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """The line of this step."""
        line = self.lines[min(step, len(self.lines) - 1)]
        return line if isinstance(line, Reply) else line(messages)


def call(name: str, **arguments: Any) -> Reply:
    """A reply that makes one call, for scripts."""
    return Reply(calls=(RawCall(name, json.dumps(arguments)),))


def say(text: str) -> Reply:
    """A reply that is a final answer, for scripts."""
    return Reply(text=text)
