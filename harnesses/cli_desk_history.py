"""The verbs `history`, `replay`, `fork`, `handoff` and `outbox` of `desk`: what happened, and running it again.

Heavy imports stand inside the handlers.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from harnesses.cli_desk_open import minds, opened, reading
from harnesses.cli_desk_options import add_db, add_taus, add_thread, name_given, plainly, taus_given
from harnesses.cli_desk_settings import Threads, present
from harnesses.cli_desk_show import DONE, Steps, finish, lines_of, note, this_request, when
from harnesses.cli_effort import table

if TYPE_CHECKING:
    from harnesses.desk.driver import Desk, Standing
    from harnesses.desk.history import Moment

SHOWN = 18
"""Characters of a snapshot's id in a table: its time to 100 ns."""


def add_history(verbs: Any) -> None:
    """`history`."""
    parser = verbs.add_parser(
        "history",
        help="the snapshots of a thread, newest first, branches that a fork or replay left among them",
        description="Each row is a snapshot: the node due next, and the step before it. Those of the current branch "
        "have a star.",
    )
    add_thread(parser)
    add_db(parser)
    parser.set_defaults(handler=show_history)


def add_replay(verbs: Any) -> None:
    """`replay`."""
    parser = verbs.add_parser(
        "replay",
        help="run again from a snapshot, as it was; no email goes out twice",
        description="Runs every node from the snapshot on again, the model and the decider too. A call that has sent "
        "its email sends none, and a pause on the way asks anew.",
    )
    _add_at(parser)
    add_thread(parser)
    add_db(parser)
    parser.set_defaults(handler=run_again)


def add_fork(verbs: Any) -> None:
    """`fork`."""
    parser = verbs.add_parser(
        "fork",
        help="run on from a snapshot with other thresholds: a new branch of the same thread",
        description="The branch that is left stays as it was, and desk history shows it. Between an approval and its "
        "email nothing can be changed.",
    )
    _add_at(parser)
    add_thread(parser)
    add_taus(parser)
    add_db(parser)
    parser.set_defaults(handler=branch_off)


def add_handoff(verbs: Any) -> None:
    """`handoff`."""
    parser = verbs.add_parser(
        "handoff",
        help="the record of a case that went to staff",
        description="What staff need to go on with a case that the desk handed over, without the transcript.",
    )
    add_thread(parser)
    add_db(parser)
    parser.set_defaults(handler=show_handoff)


def add_outbox(verbs: Any) -> None:
    """`outbox`."""
    parser = verbs.add_parser(
        "outbox",
        help="the emails that went out",
        description="Every email that went out, in order, with the thread and the call that sent it.",
    )
    add_thread(parser, required=False)
    add_db(parser)
    parser.set_defaults(handler=show_outbox)


def show_history(args: argparse.Namespace) -> int:
    """Print the snapshots."""
    with plainly(args):
        from harnesses.desk.history import history

        desk, thread = _known(args)
        moments = history(desk, thread)
        if args.json:
            print(json.dumps([vars(moment) for moment in moments], allow_nan=False))
            return DONE
        rows: list[list[Any]] = [["", "id", "step", "next", "after"]]
        rows += [_row(moment) for moment in moments]
        print(table(rows))
        return DONE


def run_again(args: argparse.Namespace) -> int:
    """Run again."""
    with plainly(args):
        from harnesses.desk.history import replay

        desk, thread, at = _from(args)
        return _again(args, desk, thread, at, lambda running: replay(running, thread, at))


def branch_off(args: argparse.Namespace) -> int:
    """Run on with other thresholds."""
    with plainly(args):
        from harnesses.desk.database import DeskError
        from harnesses.desk.history import fork

        changes: dict[str, Any] = {}
        if taus := taus_given(args):
            changes["taus"] = taus
        if args.k_max is not None:
            changes["k_max"] = args.k_max
        if not changes:
            raise DeskError("a fork changes something, such as --tau-act 0.7; desk replay changes nothing")
        desk, thread, at = _from(args)
        return _again(args, desk, thread, at, lambda running: fork(running, thread, at, **changes))


def show_handoff(args: argparse.Namespace) -> int:
    """Print the record."""
    with plainly(args):
        from harnesses.desk.database import DeskError
        from harnesses.desk.handoff import as_text

        desk, thread = _known(args)
        now = desk.standing(thread)
        if now is None or now.kind != "handoff":
            kind = "has not begun" if now is None else f"is at: {now.kind}"
            raise DeskError(f"thread {thread} was not handed over; it {kind}")
        record = {name: value for name, value in (now.state["outcome"] or {}).items() if name != "kind"}
        print(json.dumps(record, allow_nan=False) if args.json else "\n".join(lines_of(as_text(record))))
        return DONE


def show_outbox(args: argparse.Namespace) -> int:
    """Print the emails."""
    with plainly(args):
        from harnesses.desk.outbox import Outbox
        from harnesses.desk.reviewer import printable

        thread = None if args.thread is None else name_given(args.thread, "--thread")
        path = present(args.db)
        if thread is not None:
            Threads(path).of(thread)
        sent = Outbox(path).sent(thread)
        if args.json:
            rows = [{**vars(one), "email": one.email.json()} for one in sent]
            print(json.dumps(rows, allow_nan=False))
        elif not sent:
            note("no email went out")
        else:
            cells: list[list[Any]] = [["sent", "thread", "call", "to", "subject"]]
            for one in sent:
                texts = [printable(text) for text in (one.call, one.email.to, one.email.subject)]
                cells.append([when(one.at), one.thread, *texts])
            print(table(cells))
        return DONE


def _add_at(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--at",
        metavar="NODE",
        default="router",
        help="from before this node, by default router, or from a snapshot by its id in desk history",
    )


def _known(args: argparse.Namespace) -> tuple[Desk, str]:
    """A desk to look at the thread with, and its name. DeskError for no such thread."""
    thread = name_given(args.thread, "--thread")
    path = present(args.db)
    Threads(path).of(thread)
    return reading(path), thread


def _from(args: argparse.Namespace) -> tuple[Desk, str, str]:
    """The same, with the snapshot to start from: a node, or the whole id of what was abbreviated."""
    from harnesses.desk.database import DeskError
    from harnesses.desk.history import history, snapshot_before

    desk, thread = _known(args)
    at = name_given(args.at, "--at")
    like = [moment for moment in history(desk, thread) if moment.id.startswith(at)]
    if len(like) > 1:
        raise DeskError(f"--at {at} is the beginning of {len(like)} ids; give more of it")
    at = like[0].id if like else at
    snapshot_before(desk, thread, at)
    return desk, thread, at


def _again(args: argparse.Namespace, desk: Desk, thread: str, at: str, go: Any) -> int:
    """Run with the thread's settings, and print."""
    from harnesses.desk.history import snapshot_before

    settings = Threads(args.db).of(thread)
    before = snapshot_before(desk, thread, at).values.get("trace", ())
    steps = Steps(args, 1 + len(this_request(before)) if before else 1)
    running = opened(args.db, settings, minds(settings), steps)
    found: Standing = go(running)
    return finish(args, found, settings)


def _row(moment: Moment) -> list[Any]:
    """A snapshot as cells."""
    line = moment.line
    after = "" if line is None else f"{line['node']}: {' '.join(str(line['says']).split())}"
    star = "*" if moment.current else ""
    return [star, moment.id[:SHOWN], moment.step, moment.next or "end", *lines_of(after)[:1]]
