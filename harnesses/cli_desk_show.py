"""What `desk` prints of a run: its steps as they happen, where it ended, a question, in text and in JSON.

Imports what it needs inside its functions. A request and an email are anybody's text: nothing of them reaches the
terminal but printable characters.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harnesses.cli_desk_settings import DEFAULT_DB, Settings

if TYPE_CHECKING:
    from harnesses.desk.driver import Standing

DONE, FINDING = 0, 1
FAILED = "failed"
_NAMED = ("p_route", "tau_route", "p_allow", "tau_esc", "tau_act", "p_verify", "tau_verify")


class Steps:
    """Prints each step of a run as it happens, numbered from `first`; says nothing in JSON."""

    def __init__(self, args: argparse.Namespace, first: int = 1) -> None:
        self.silent, self.number = args.json, first

    def __call__(self, line: Mapping[str, Any]) -> None:
        """One line."""
        if not self.silent:
            print(step(self.number, line), flush=True)
        self.number += 1


def step(number: int, line: Mapping[str, Any]) -> str:
    """A step as a line: the node, what it says, every number that it does not say, who gave them."""
    from harnesses.desk.reviewer import printable

    says = " ".join(str(line["says"]).split())
    more = [f"{name} {_number(line[name])}" for name in _NAMED if name in line]
    more = [text for text in more if text not in says]
    if "k" in line:
        more.append(f"k {line['k']} of {line['k_max']}")
    if "tokens" in line:
        more.append(f"{line['tokens']} tokens")
    if line.get("stopped"):
        more.append(f"stopped by {', '.join(line['stopped'])}")
    who = line.get("decider") or (f"model {line['model']}" if "model" in line else "")
    text = "; ".join([says, *more]) + (f"  [{who}]" if who else "")
    return printable(f"{number:>2} {line['node']:<12}  {text}")


def lines_of(text: str) -> list[str]:
    """The lines of anybody's text, as they may be printed."""
    from harnesses.desk.reviewer import printable

    return [printable(line) for line in text.splitlines()] or [""]


def this_request(trace: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The steps since the router last ran: an earlier request of the thread came before."""
    starts = [place for place, line in enumerate(trace) if line["node"] == "router"]
    return list(trace[starts[-1] :] if starts else trace)


def counts(trace: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What a request took, from its steps: calls of the model and of the decider, questions to a person, emails."""
    return {
        "model_calls": sum(line["node"] == "agent" for line in trace),
        "decision_calls": sum("decider" in line and _asked(line) for line in trace),
        "questions": sum(line["node"] == "human_review" for line in trace),
        "emails": sum(line.get("first") is True for line in trace),
    }


def finish(args: argparse.Namespace, found: Standing, settings: Settings) -> int:
    """Print where a run is, and give its exit code: 1 where it failed."""
    if args.json:
        print(json.dumps(as_data(found, settings), allow_nan=False))
    else:
        for line in ending(args, found):
            print(line)
    return FINDING if found.kind == FAILED else DONE


def as_data(found: Standing, settings: Settings) -> dict[str, Any]:
    """Where a run is, as plain data; `steps` are those of its newest request."""
    trace = this_request(found.state.get("trace", ()))
    return {
        "thread": found.thread,
        "kind": found.kind,
        "outcome": found.state.get("outcome"),
        "next": found.next,
        "pending": pending(found),
        **counts(trace),
        "taus": found.state.get("taus"),
        "settings": vars(settings),
        "steps": trace,
    }


def pending(found: Standing) -> dict[str, Any] | None:
    """The question that a run waits with, as plain data."""
    if found.question is None:
        return None
    return {"thread": found.thread, "question": found.question.id, **found.question.shown}


def ending(args: argparse.Namespace, found: Standing) -> list[str]:
    """Where a run is, in lines."""
    from harnesses.desk.handoff import as_text as handoff_text
    from harnesses.desk.reviewer import as_text

    outcome: Mapping[str, Any] = found.state.get("outcome") or {}
    if found.question is not None:
        said = f"paused; approve or reject with: {command(args, 'review', found.thread)}"
        told = [*as_text(found.question).splitlines(), said]
    elif found.kind == "stopped":
        told = [f"stopped before {found.next}; go on with: {command(args, 'resume', found.thread)}"]
    elif found.kind == "handoff":
        told = lines_of(handoff_text({name: value for name, value in outcome.items() if name != "kind"}))
        told[0] = f"handoff: {told[0]}"
    else:
        told = lines_of(str(outcome.get("text") or outcome.get("reason")))
        told[0] = f"{found.kind}: {told[0]}"
        if "delivered" in outcome:
            told.append(f"delivered: {outcome['delivered']}")
    return [*told, summed(counts(this_request(found.state.get("trace", ()))))]


def summed(took: Mapping[str, int]) -> str:
    """The counts in words."""
    names = {
        "model_calls": "model call",
        "decision_calls": "decision call",
        "questions": "answer of a person",
    }
    names["emails"] = "email sent"
    return ", ".join(_plural(took[key], name) for key, name in names.items())


def command(args: argparse.Namespace, verb: str, thread: str) -> str:
    """The command that goes on with a thread."""
    where = f" --db {shlex.quote(str(args.db))}" if args.db != DEFAULT_DB else ""
    return f"hpomdp desk {verb} --thread {shlex.quote(thread)}{where}"


def note(text: str) -> None:
    """A word beside the results."""
    print(text, file=sys.stderr)


def when(at: float) -> str:
    """A time in seconds since 1970, to the minute, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%MZ")


def _asked(line: Mapping[str, Any]) -> bool:
    """Whether the decider was asked at this step: the verifier asks nothing where no passage was read."""
    return not (line["node"] == "verify" and line["says"].startswith("no-sources"))


def _plural(number: int, name: str) -> str:
    head, _, rest = name.partition(" ")
    many = f"{head}s {rest}".strip() if head in ("answer", "email") else f"{name}s"
    return f"{number} {name if number == 1 else many}"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
