"""A desk with a scripted model and a decider of fixed numbers, and the case of M14 §4's worked example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harnesses.desk.decider import Answer, Choice, Noul
from harnesses.desk.documents import documents
from harnesses.desk.driver import Desk
from harnesses.desk.passages import Index
from harnesses.desk.registrations import registry
from harnesses.desk.toolbox import Toolbox
from harnesses.runtime.models import Reply, ScriptedModel, call, say
from harnesses.runtime.retry import Retry

ADDRESS = "ana@example.org"
CASE = {
    "today": "2026-03-02",
    "event": {"id": "E1", "city": "Lyon"},
    "registration": registry(ADDRESS),
    "request": "Please email me a confirmation of my registration.",
    "email": ADDRESS,
}
EMAIL = {"to": ADDRESS, "subject": "Your registration for E1", "body": "You are registered for E1 in Lyon."}
# M14 prints tau_act rounded; with the exact 31/32 its example takes the same way.
TAUS = {"route": "0.75", "esc": "0.375", "act": "0.969", "verify": "0.5"}


@dataclass
class Fixed:
    """Gives every Choice one route and every Noul one number, or raises; counts what it is asked."""

    route: str = "send_email"
    p_route: Any = 0.91
    p_allow: Any = 0.80
    error: Exception | None = None
    name: str = "scripted"
    model: str = "fixed numbers"
    asked: list[Choice | Noul] = field(default_factory=list)

    def choose(self, question: Choice) -> Answer:
        self.asked.append(question)
        if self.error is not None:
            raise self.error
        others = [option for option in question.options if option != self.route]
        rest = {option: (1 - self.p_route) / len(others) for option in others}
        return Answer(self.route, {self.route: self.p_route, **rest})

    def noul(self, question: Noul) -> float:
        self.asked.append(question)
        if self.error is not None:
            raise self.error
        return self.p_allow.pop(0) if isinstance(self.p_allow, list) else self.p_allow


class Counted(ScriptedModel):
    """The scripted model, counting its calls and keeping what it was shown."""

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        self.__dict__.setdefault("shown", []).append([dict(message) for message in messages])
        return super().reply(messages, tools, step)

    @property
    def calls(self) -> int:
        return len(self.__dict__.get("shown", ()))


def worked_example() -> list[Reply]:
    """The two replies of the worked example."""
    return [call("send_email", **EMAIL), say("Your confirmation is on its way.")]


@dataclass
class Room:
    """A desk with its doubles."""

    desk: Desk
    model: Counted
    decider: Fixed
    case: dict[str, Any]

    def start(self, thread: str = "t", **changes: Any) -> Any:
        """Start the worked example's request, with M14's thresholds unless others are given."""
        taus, k_max = changes.pop("taus", TAUS), changes.pop("k_max", 8)
        return self.desk.start(thread, {**self.case, **changes}, taus, k_max)

    def sent(self) -> int:
        """Emails in the outbox."""
        return len(self.desk.outbox.sent())


@pytest.fixture
def room() -> Callable[..., Room]:
    """`room(script, decider, path=..., ...)`: a desk; in memory unless a path is given."""

    def make(
        script: list[Any] | None = None,
        decider: Fixed | None = None,
        path: str | Path = ":memory:",
        registrations: Any = registry,
        poisoned: tuple[str, ...] = (),
        **settings: Any,
    ) -> Room:
        model, asked = Counted(worked_example() if script is None else script), decider or Fixed()
        index = Index.of((document.name, document.text) for document in documents(poisoned))
        toolbox = Toolbox(index, registrations, Retry(limit=0))
        desk = Desk.open(model, asked, toolbox, path, **settings)
        return Room(desk, model, asked, dict(CASE))

    return make


@pytest.fixture
def fixed() -> type[Fixed]:
    """The decider of fixed numbers, to be made with others than the worked example's."""
    return Fixed
