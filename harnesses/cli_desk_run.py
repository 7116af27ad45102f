"""The verbs `run`, `resume` and `review` of `desk`: a request, a run that goes on, a person's answer to a paused one.

Heavy imports stand inside the handlers. What can be refused is refused before the database is made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harnesses.cli_desk_open import TODAY, case_given, minds, new_name, opened, reading
from harnesses.cli_desk_options import (
    POISONS,
    add_db,
    add_decider,
    add_taus,
    add_thread,
    name_given,
    plainly,
    probabilities_given,
    taus_given,
)
from harnesses.cli_desk_settings import Settings, Threads, present, usable
from harnesses.cli_desk_show import DONE, Steps, command, finish, note, this_request, when
from harnesses.cli_effort import table

if TYPE_CHECKING:
    from harnesses.desk.driver import Desk, Question, Standing

REVIEWER = "reviewer"


def add_run(verbs: Any) -> None:
    """`run`."""
    parser = verbs.add_parser(
        "run",
        help="run a request: its steps as they happen, then an answer, a question, a hand-off or a pause",
        description="Runs a request through the desk's graph. Participants and events are invented; ana@example.org "
        "has a booking of E1. Exit code 1 where the run failed.",
    )
    parser.add_argument("--request", metavar="TEXT", required=True, help="what the participant writes")
    parser.add_argument("--email", metavar="ADDR", help="the address written from, such as ana@example.org")
    parser.add_argument("--event", metavar="E1..E4", help="the event; the one of the booking unless named")
    parser.add_argument(
        "--today",
        metavar="DATE",
        default=TODAY,
        help=f"the desk's day, by default {TODAY}, before all events",
    )
    add_decider(parser)
    add_thread(parser, required=False)
    add_taus(parser)
    parser.add_argument("--verify", action="store_true", help="check an answer against the passages read")
    parser.add_argument("--stop-before", metavar="NODE", help="stop there; desk resume goes on")
    parser.add_argument(
        "--poison",
        choices=POISONS,
        default="",
        help="among the documents one that strangers wrote: a, b, or a note in the registration",
    )
    add_db(parser)
    parser.set_defaults(handler=run)


def add_resume(verbs: Any) -> None:
    """`resume`."""
    parser = verbs.add_parser(
        "resume",
        help="go on with a run that stopped at a breakpoint, or whose process died",
        description="Goes on with the decider, model and documents that the thread was started with. A recorded "
        "answer is taken up; nothing that was done is done again.",
    )
    add_thread(parser)
    parser.add_argument("--stop-before", metavar="NODE", help="stop again before this node")
    add_db(parser)
    parser.set_defaults(handler=resume)


def add_review(verbs: Any) -> None:
    """`review`."""
    parser = verbs.add_parser(
        "review",
        help="show an email that waits, with its probability and thresholds, and approve or reject it",
        description="Shows the email of a paused run and takes the answer at the terminal, in any process, at any "
        "later time; the run then goes on. The first answer to a question stands.",
    )
    add_thread(parser, required=False)
    parser.add_argument("--answer", choices=("approve", "reject"), help="answer without being asked")
    parser.add_argument("--list", action="store_true", help="list every email that waits, and answer none")
    parser.add_argument("--by", metavar="NAME", default=REVIEWER, help="who answers")
    add_db(parser)
    parser.set_defaults(handler=review)


def run(args: argparse.Namespace) -> int:
    """Run a new request."""
    with plainly(args):
        from harnesses.desk.state import K_MAX, request_input, thresholds_of

        thread = new_name() if args.thread is None else name_given(args.thread, "--thread")
        settings = Settings(args.decider, *probabilities_given(args), args.model, args.verify, args.poison)
        case, taus = case_given(args), {**thresholds_of(), **taus_given(args)}
        k_max = K_MAX if args.k_max is None else args.k_max
        request_input(case, taus, k_max)
        stops = breakpoints(args.stop_before, args.verify)
        path = usable(args.db)
        ready = minds(settings)
        steps = Steps(args)
        desk = opened(path, settings, ready, steps, stops)
        with _held(desk, thread) as alone:
            now = desk.standing(thread)
            if now is None or now.question is None and now.next is None:
                Threads(path).record(thread, settings)
                if not args.json:
                    print(f"thread {thread}", flush=True)
            found = alone.start(thread, case, taus, k_max)
        return finish(args, found, settings)


def resume(args: argparse.Namespace) -> int:
    """Go on with a run that stopped."""
    with plainly(args):
        thread = name_given(args.thread, "--thread")
        path = present(args.db)
        settings = Threads(path).of(thread)
        stops = breakpoints(args.stop_before, settings.verify)
        desk = opened(path, settings, minds(settings), steps := Steps(args), stops)
        steps.number = first_number(desk.standing(thread))
        return finish(args, desk.resume(thread), settings)


def review(args: argparse.Namespace) -> int:
    """List what waits, or answer one question and run on."""
    with plainly(args):
        from harnesses.desk.database import DeskError
        from harnesses.desk.reviewer import AtTerminal, as_text

        if args.list and args.answer is not None:
            raise DeskError("--list answers nothing; leave --answer out")
        by = name_given(args.by, "--by")
        path = present(args.db)
        desk, threads = reading(path), Threads(path)
        if args.list:
            return _list(args, desk, threads)
        question = _chosen(args, desk, threads)
        settings = threads.of(question.thread)
        steps = Steps(args, first_number(desk.standing(question.thread)))
        running = opened(path, settings, minds(settings), steps)
        if args.answer is None:
            shown = sys.stderr if args.json else sys.stdout
            verdict = AtTerminal(sys.stdin, shown)(question).value
            if not sys.stdin.isatty():
                print(file=shown)  # nobody has pressed Enter here
        else:
            verdict = args.answer
            if not args.json:
                print(as_text(question))
        return finish(args, running.answer(question.thread, question.id, verdict, by), settings)


def breakpoints(node: str | None, verify: bool) -> tuple[str, ...]:
    """The node to stop before. DeskError, before anything is written, where it is none."""
    from harnesses.desk.database import DeskError
    from harnesses.desk.edges import VERIFY
    from harnesses.desk.graph import NODES

    names = (*NODES, VERIFY) if verify else NODES
    if node is not None and node not in names:
        raise DeskError(f"--stop-before: no node {node!r}; the nodes are {', '.join(names)}")
    return () if node is None else (node,)


def first_number(found: Standing | None) -> int:
    """The number of the next step of a run."""
    return 1 + len(this_request(found.state.get("trace", ()))) if found is not None else 1


@contextmanager
def _held(desk: Desk, thread: str) -> Iterator[Desk]:
    """The thread is held, so that its settings are those of the run that starts; the desk given runs inside."""
    from dataclasses import replace

    from harnesses.desk.database import MEMORY
    from harnesses.desk.thread_lock import ThreadLocks

    with desk.locks.held(thread):
        yield replace(desk, locks=ThreadLocks(MEMORY))


def _waiting(desk: Desk, threads: Threads) -> list[tuple[Question, float]]:
    """Questions without an answer, each with the time of its request, oldest first."""
    found = []
    for one in threads.all():
        now = desk.standing(one.thread)
        if now is not None and now.question is not None and desk.reviews.of(now.question.id) is None:
            found.append((now.question, one.at))
    return found


def _chosen(args: argparse.Namespace, desk: Desk, threads: Threads) -> Question:
    """The question of the thread that was named, or the only one. DeskError with what to do instead."""
    from harnesses.desk.database import DeskError

    if args.thread is None:
        waiting = [question for question, _ in _waiting(desk, threads)]
        if len(waiting) != 1:
            names = ", ".join(question.thread for question in waiting[:5])
            told = f"{len(waiting)} emails wait: {names}{', ...' if len(waiting) > 5 else ''}"
            raise DeskError(
                f"{told}; name one with --thread" if waiting else f"no email waits for an answer in {args.db}"
            )
        return waiting[0]
    thread = name_given(args.thread, "--thread")
    threads.of(thread)
    now = desk.standing(thread)
    if now is None or now.question is None:
        raise DeskError(f"thread {thread} waits for no answer; it {_told(now)}")
    said = desk.reviews.of(now.question.id)
    if said is not None:
        told = f"its email has been answered: {said.verdict.value}, by {said.by}"
        raise DeskError(f"thread {thread}: {told}; {command(args, 'resume', thread)} takes it up")
    return now.question


def _told(now: Standing | None) -> str:
    """Where a thread is that does not wait."""
    if now is None:
        return "has not begun"
    return f"stopped before {now.next}" if now.kind == "stopped" else f"ended with: {now.kind}"


def _list(args: argparse.Namespace, desk: Desk, threads: Threads) -> int:
    """Every email that waits, as a table or as JSON."""
    from harnesses.desk.reviewer import printable

    waiting = _waiting(desk, threads)
    if args.json:
        rows = [
            {"thread": question.thread, "question": question.id, "since": at, **question.shown}
            for question, at in waiting
        ]
        print(json.dumps(rows, allow_nan=False))
        return DONE
    if not waiting:
        note("no email waits for an answer")
        return DONE
    cells: list[list[Any]] = [["thread", "asked", "p_allow", "tau_esc", "tau_act", "to", "subject"]]
    for question, at in waiting:
        shown, email = question.shown, question.shown["email"]
        numbers = [f"{shown['p_allow']:.4g}", shown["tau_esc"], shown["tau_act"] or "never"]
        cells.append(
            [question.thread, when(at), *numbers, printable(email["to"]), printable(email["subject"])]
        )
    print(table(cells))
    return DONE
