"""The desk of a command: its case, its documents, its model and decider, on a database; heavy imports inside.

A model or decider that cannot be had is told before any file is made.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnesses.cli_desk_options import decider_with
from harnesses.cli_desk_settings import SCRIPTED, Settings

if TYPE_CHECKING:
    from harnesses.desk.decider import Decider
    from harnesses.desk.driver import Desk
    from harnesses.desk.toolbox import Toolbox
    from harnesses.runtime.models import Model, Reply

TODAY = "2026-03-02"
"""The desk's day unless another is given: before all four invented events, so that a run repeats."""
LONGEST = 10_000
"""Characters of a request."""

Watch = Callable[[dict[str, Any]], None]


def new_name() -> str:
    """A name for a thread that was given none."""
    return f"case-{secrets.token_hex(4)}"


def case_given(args: argparse.Namespace) -> dict[str, Any]:
    """The case that the options describe; the registration is looked up under the address, and names the event.

    With the poisoned note the intake leaves the registration out, so that the agent has to look it up and reads it.
    DeskError, before anything is written, for a request, address, event or day that is none.
    """
    from harnesses.desk.database import DeskError
    from harnesses.desk.events import EVENTS
    from harnesses.desk.outbox import Email
    from harnesses.desk.registrations import registry
    from harnesses.desk.tool_errors import Fix

    request = args.request
    if not request.strip() or len(request) > LONGEST:
        raise DeskError(f"--request takes words, {LONGEST} characters at most, such as 'Where is E1?'")
    try:
        request.encode("utf-8")
    except UnicodeEncodeError:
        raise DeskError("--request is not UTF-8 text; write it in the terminal's encoding") from None
    if args.email is not None:
        try:
            Email.of({"to": args.email, "subject": "an address", "body": "to check"})
        except Fix as error:
            raise DeskError(f"--email: {error}") from None
    if args.event is not None and args.event.upper() not in EVENTS:
        raise DeskError(f"--event: no event {args.event!r}; name one of {', '.join(EVENTS)}")
    try:
        today = date.fromisoformat(args.today).isoformat()
    except ValueError:
        raise DeskError(f"--today: {args.today!r} is no date; give one such as {TODAY}") from None
    found = registry(args.email) if args.email else None
    event = args.event.upper() if args.event else (found["event"] if found else None)
    return {
        "today": today,
        "event": EVENTS[event].record() if event else None,
        "registration": None if args.poison == "note" else found,
        "request": request,
        "email": args.email,
    }


def toolbox_of(poison: str) -> Toolbox:
    """The tools over the documents and registrations, with the poison of that name among them."""
    from harnesses.desk.documents import NOTE, POISONS, A, B, documents, noted
    from harnesses.desk.passages import Index
    from harnesses.desk.registrations import registry
    from harnesses.desk.toolbox import Toolbox

    name = {"a": A, "b": B, "note": NOTE}.get(poison)

    def with_note(email: str) -> Mapping[str, Any] | None:
        found = registry(email)
        return None if found is None else noted(found, POISONS[NOTE])

    texts = documents([name] if name in (A, B) else [])
    index = Index.of((document.name, document.text) for document in texts)
    return Toolbox(index, with_note if name == NOTE else registry)


@dataclass(frozen=True)
class Minds:
    """A decider and a language model, ready to be asked."""

    decider: Decider
    model: Model


def minds(settings: Settings) -> Minds:
    """Those that settings name. A project's ValueError with the remedy where one cannot be had."""
    model = model_with(settings.model)
    return Minds(decider_with(settings.decider, settings.p_route, settings.p_allow), model)


def model_with(name: str) -> Model:
    """The language model of this name; whatever another than the scripted one raises is a failure to reply."""
    from harnesses.desk.language_models import language_model

    model = language_model(name)
    return model if name == SCRIPTED else AnyModel(model)


def opened(path: Path, settings: Settings, ready: Minds, watch: Watch, stops: tuple[str, ...] = ()) -> Desk:
    """A desk that can run threads with these settings."""
    from harnesses.desk.driver import Desk

    toolbox = toolbox_of(settings.poison)
    return Desk.open(
        ready.model, ready.decider, toolbox, path, verify=settings.verify, breakpoints=stops, watch=watch
    )


def reading(path: Path | None = None, verify: bool = True) -> Desk:
    """A desk to look at threads with: it has the nodes, and nothing that they would ask. In memory without a path.

    With the node `verify`, which a thread without it never comes to.
    """
    from harnesses.desk.database import MEMORY
    from harnesses.desk.driver import Desk

    nobody: Any = None
    return Desk.open(nobody, nobody, nobody, MEMORY if path is None else path, verify=verify)


class AnyModel:
    """A model of anybody's: whatever it raises is a failure to reply."""

    def __init__(self, model: Model) -> None:
        self.model, self.name = model, model.name

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """The model's reply. ModelFailure where it gave none."""
        from harnesses.runtime.models import ModelFailure, Reply

        try:
            reply = self.model.reply(messages, tools, step)
        except ModelFailure:
            raise
        except Exception as error:
            raise ModelFailure(f"{type(error).__name__}: {error}") from error
        if not isinstance(reply, Reply):
            raise ModelFailure(f"it gave a {type(reply).__name__}, no Reply")
        return reply
