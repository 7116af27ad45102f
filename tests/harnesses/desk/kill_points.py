"""A program: run the desk again and again, killed at one point after the other, and say what came of each run.

`python kill_points.py FOLDER` prints one JSON object a line. Points are before and after each node, before and after
each write of a checkpoint, and before and after each commit of the outbox and of the answers. The killed run and the
one that recovers it are processes of their own, forked from here so that nothing is imported twice; every other
recovery is killed once too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harnesses.desk.database import Table, connect
from harnesses.desk.decider import Answer, Choice, Noul
from harnesses.desk.driver import Desk, Question
from harnesses.desk.graph import SqliteSaver
from harnesses.desk.outbox import Outbox
from harnesses.desk.passages import Index
from harnesses.desk.registrations import registry
from harnesses.desk.reviews import Reviews
from harnesses.desk.toolbox import Toolbox
from harnesses.runtime.models import Reply, ScriptedModel, call, say

THREAD = "t"
CASE = {
    "today": "2026-03-02",
    "event": {"id": "E1"},
    "registration": registry("ana@example.org"),
    "request": "Send me both.",
    "email": "ana@example.org",
}
BODIES = ("First mail", "Second mail")


class Points:
    """Counts the points that a process passes by their names, and kills it where `fatal` is passed the nth time.

    By name, because checkpoints are written beside the nodes: the order of all points differs from run to run.
    """

    def __init__(self, fatal: tuple[str, int] | None = None) -> None:
        self.fatal = fatal
        self.passed: Counter[str] = Counter()
        self.lock = threading.Lock()

    def __call__(self, name: str) -> None:
        with self.lock:
            self.passed[name] += 1
            if (name, self.passed[name]) == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)


class Saver(SqliteSaver):
    """The saver, with a point on either side of each write."""

    points = Points()

    def put(self, *args: Any, **kwargs: Any) -> Any:
        self.points("before checkpoint")
        found = super().put(*args, **kwargs)
        self.points("after checkpoint")
        return found

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        self.points("before writes")
        super().put_writes(*args, **kwargs)
        self.points("after writes")


class Numbers:
    """The router is sure, the guard asks a person."""

    name, model = "scripted", "fixed numbers"

    def choose(self, question: Choice) -> Answer:
        others = [option for option in question.options if option != "send_email"]
        return Answer("send_email", {"send_email": 0.92, **dict.fromkeys(others, 0.02)})

    def noul(self, question: Noul) -> float:
        return 0.8


def reply(messages: list[dict[str, Any]]) -> Reply:
    """Ask for the emails in turn, then answer."""
    done = sum(message["role"] == "tool" for message in messages)
    if done == len(BODIES):
        return say("Done.")
    return call("send_email", to="ana@example.org", subject="Hello", body=BODIES[done])


def desk(path: Path, points: Points) -> Desk:
    """A desk on the file, with points in it."""

    def wrap(name: str, node: Any) -> Any:
        def around(state: Any, config: Any = None) -> Any:
            points(f"before {name}")
            update = node(state, config) if name == "send" else node(state)
            points(f"after {name}")
            return update

        def alone(state: Any) -> Any:
            return around(state)

        # LangGraph gives the configuration to a node whose argument has its type.
        around.__annotations__ = node.__annotations__
        return around if name == "send" else alone

    saver = Saver(connect(path))
    saver.points = points
    toolbox = Toolbox(Index.of([("policy", "Nothing.")]), registry)
    made = Desk.open(ScriptedModel([reply]), Numbers(), toolbox, path, saver=saver, wrap=wrap)
    for store, name in ((made.outbox, "the outbox"), (made.reviews, "the answers")):
        around_commits(store._table, name, points)
    return made


def around_commits(table: Table, name: str, points: Points) -> None:
    """Points before and after each commit of the table."""
    plain = table.transaction

    @contextmanager
    def transaction() -> Iterator[Any]:
        with plain() as cursor:
            yield cursor
            points(f"before {name} commits")
        points(f"after {name} committed")

    table.transaction = transaction  # type: ignore[method-assign]


def drive(path: Path, verdicts: dict[str, str], points: Points) -> None:
    """What a process does with the thread: start it or go on, and answer whatever is asked."""
    made = desk(path, points)
    points("opened")
    now = made.start(THREAD, CASE) if made.standing(THREAD) is None else made.resume(THREAD)

    def human(question: Question) -> str:
        points("while paused")
        return verdicts[question.shown["email"]["body"]]

    made.with_human(now, human)


def forked(path: Path, verdicts: dict[str, str], points: Points, note: Path | None = None) -> bool:
    """Whether a process of its own came to the end of the run; what it passed is written to `note`."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            drive(path, verdicts, points)
            if note is not None:
                note.write_text(json.dumps(points.passed))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit("a run failed by itself; its traceback is above")
    return not os.WIFSIGNALED(status)


def answers(path: Path) -> list[list[str]]:
    """The answers that are written down."""
    Reviews(path).close()
    return [list(row) for row in connect(path).execute("SELECT call, verdict FROM reviews ORDER BY at")]


def apart(path: Path) -> list[list[str]]:
    """`answers`, read by a process of its own: SQLite must not be opened on a file before others are forked for it."""
    note = path.with_suffix(".answers")
    child = os.fork()
    if child == 0:
        try:
            note.write_text(json.dumps(answers(path)))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return json.loads(note.read_text())


def found(path: Path, name: str, before: list[list[str]]) -> dict[str, Any]:
    """What is in the file after the recovery; `before`: the answers that were there when the process died."""
    outbox = Outbox(path)
    made = desk(path, Points())
    standing = made.standing(THREAD)
    assert standing is not None
    return {
        "point": name,
        "kind": standing.kind,
        "actions": standing.state["actions"],
        "trace": [line["node"] for line in standing.state["trace"]],
        "sent": [sent.email.body for sent in outbox.sent()],
        "before": before,
        "answers": answers(path),
    }


def main(folder: Path) -> None:
    """Kill at each point that an undisturbed run passes."""
    first = dict(zip(BODIES, ("approve", "reject")))
    # Whoever is asked after the recovery says the opposite: an answer that was lost, or swapped, would show.
    second = dict(zip(BODIES, ("reject", "approve")))
    note = folder / "points.json"
    assert forked(folder / "plain.db", first, Points(), note)
    print(json.dumps(found(folder / "plain.db", "none", [])), flush=True)
    passed = json.loads(note.read_text())
    points = [(name, n + 1) for name in sorted(passed) for n in range(passed[name])]
    for number, point in enumerate(points):
        path = folder / f"{number}.db"
        if forked(path, first, Points(point)):
            raise SystemExit(f"a run came to its end past {point}")
        before = apart(path)
        again = Points(points[7 * number % len(points)]) if number % 2 else Points()
        if not forked(path, second, again):
            assert forked(path, second, Points())
        print(json.dumps(found(path, point[0], before)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
