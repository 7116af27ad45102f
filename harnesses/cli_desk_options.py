"""Options that several verbs of `desk` share, and what they stand for; imports what it needs inside its functions."""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnesses.cli_desk_settings import DEFAULT_DB, SCRIPTED

if TYPE_CHECKING:
    from harnesses.desk.decider import Decider

DECIDERS = ("toy", "lm", "jev", SCRIPTED)
POISONS = ("a", "b", "note")
WORKED = {"p_route": 0.91, "p_allow": 0.80}
"""The scripted decider's numbers unless others are given: those of M14's worked example."""
NAMES = 100
"""Longest name of a thread, and of who answers, in characters."""
TAUS = {
    "act": "sent alone from here on",
    "esc": "handed over below",
    "route": "the router's choice is followed",
}


def add_db(parser: argparse.ArgumentParser) -> None:
    """`--db` and `--json`."""
    parser.add_argument(
        "--db",
        metavar="FILE",
        type=Path,
        default=DEFAULT_DB,
        help=f"the database of runs, emails and answers, by default {DEFAULT_DB} in the current folder",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_thread(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """`--thread`."""
    parser.add_argument("--thread", metavar="ID", required=required, help="the thread's name")


def add_decider(parser: argparse.ArgumentParser, scripted: str = "a clerk that follows the rules") -> None:
    """`--decider` with the scripted one's numbers, and `--model`; `scripted` says what its default is."""
    parser.add_argument(
        "--decider",
        choices=DECIDERS,
        default="toy",
        help="who gives the probabilities: toy (trained here, the default), lm (SmolLM2), jev (needs a key), scripted",
    )
    for name, what in (("route", "its route, send_email"), ("allow", "allowing an email")):
        usual = WORKED[f"p_{name}"]
        parser.add_argument(
            f"--p-{name}", metavar="P", help=f"with scripted: its probability of {what} ({usual})"
        )
    parser.add_argument(
        "--model",
        metavar="NAME",
        default=SCRIPTED,
        help=f"the language model: scripted (the default, {scripted}), smollm2, openai:NAME, package.module:Class",
    )


def add_taus(parser: argparse.ArgumentParser) -> None:
    """The thresholds, and the bound on model calls."""
    add_guard_taus(parser)
    _add_tau(parser, "route")
    parser.add_argument("--k-max", metavar="N", type=int, help="model calls of a request at most")


def add_guard_taus(parser: argparse.ArgumentParser) -> None:
    """The guard's two thresholds."""
    _add_tau(parser, "act")
    _add_tau(parser, "esc")


def _add_tau(parser: argparse.ArgumentParser, name: str) -> None:
    never = ", or never" if name == "act" else ""
    parser.add_argument(
        f"--tau-{name}", metavar="X", help=f"threshold, such as 0.7 or 31/32{never}: {TAUS[name]}"
    )


def taus_given(args: argparse.Namespace) -> dict[str, Any]:
    """The thresholds that the options name, by name; `never` is None. GuardError for what is no probability."""
    from harnesses.guard.region import probability

    found: dict[str, Any] = {}
    for name in TAUS:
        text = getattr(args, f"tau_{name}", None)
        if name == "act" and text == "never":
            found[name] = None
        elif text is not None:
            found[name] = str(probability(text, f"--tau-{name}"))
    return found


def probabilities_given(args: argparse.Namespace) -> tuple[float | None, float | None]:
    """p_route and p_allow of the scripted decider, None for another. GuardError for what is no probability.

    DeskError where they stand beside another decider, which has its own.
    """
    from harnesses.desk.database import DeskError
    from harnesses.guard.region import probability

    given = {f"--{name.replace('_', '-')}": getattr(args, name) for name in WORKED}
    if args.decider != SCRIPTED:
        for option in (option for option, text in given.items() if text is not None):
            raise DeskError(f"{option} is for --decider scripted; {args.decider} has its own numbers")
        return None, None
    route, allow = (
        float(probability(text if text is not None else usual, option))
        for (option, text), usual in zip(given.items(), WORKED.values())
    )
    return route, allow


def decider_with(name: str, p_route: float | None, p_allow: float | None) -> Decider:
    """The decider of this name, with its numbers where it is the scripted one."""
    from harnesses.desk.deciders import decider_named

    if p_route is None or p_allow is None:
        return decider_named(name)
    return decider_named(name, p_route=p_route, p_allow=p_allow)


def name_given(text: str, option: str) -> str:
    """A name as it is. DeskError for an empty one, a long one, and one that a terminal would act on."""
    from harnesses.desk.database import DeskError

    if not text.strip() or len(text) > NAMES or not text.isprintable():
        raise DeskError(f"{option} takes a name of 1 to {NAMES} printable characters, such as case-0042")
    return text


@contextmanager
def plainly(args: argparse.Namespace) -> Iterator[None]:
    """What goes wrong in here for a reason outside this program becomes a DeskError, in one line without controls."""
    for stream in (sys.stdout, sys.stderr):
        # A letter that the terminal's encoding lacks is shown as its escape.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    except sqlite3.Error as error:
        from harnesses.desk.database import DeskError
        from harnesses.desk.reviewer import printable

        told = (
            f"{args.db} could not be read or written ({error}); a run that had begun goes on with desk resume"
        )
        raise DeskError(printable(told)) from None
    except Exception as error:
        if not _told(error):
            raise
        from harnesses.desk.database import DeskError
        from harnesses.desk.reviewer import printable

        raise DeskError(printable(" ".join(str(error).split()))) from None


def _told(error: Exception) -> bool:
    """Whether an error is one that the project raises for its user, or a model's or tool's failure."""
    from harnesses.desk.tool_errors import Retry
    from harnesses.runtime.models import ModelFailure

    ours = type(error).__module__.partition(".")[0] in ("pomdp", "harnesses")
    return isinstance(error, ModelFailure | Retry) or (isinstance(error, ValueError) and ours)
