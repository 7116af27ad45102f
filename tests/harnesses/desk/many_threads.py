"""A program: run a share of many threads on one database, as one of several processes; prints what became of them.

`python many_threads.py DATABASE FIRST LAST` starts threads t<FIRST> to t<LAST - 1>, four at a time, and answers each by
its number: even ones are approved.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harnesses.desk.clerk import Proposer
from harnesses.desk.driver import Desk
from harnesses.desk.passages import Index
from harnesses.desk.registrations import registry
from harnesses.desk.scripted import Scripted
from harnesses.desk.toolbox import Toolbox

ADDRESS = "ana@example.org"


def one(path: Path, number: int, desk: Desk) -> str:
    """A thread from its request to its end."""
    case = {
        "today": "2026-03-02",
        "event": {"id": "E1"},
        "registration": registry(ADDRESS),
        "request": f"Send me mail {number}.",
        "email": ADDRESS,
    }
    thread = f"t{number}"
    now = desk.start(thread, case)
    assert now.question is not None and now.question.shown["email"]["body"] == "One mail."
    assert now.question.shown["request"] == case["request"]
    verdict = "reject" if number % 2 else "approve"
    now = desk.answer(thread, now.question.id, verdict)
    return f"{now.kind} {verdict}"


def main(path: Path, first: int, last: int) -> None:
    """Four workers, each with a desk of its own."""
    email = {"to": ADDRESS, "subject": "Hello", "body": "One mail."}

    def work(numbers: range) -> list[str]:
        toolbox = Toolbox(Index.of([("policy", "Nothing.")]), registry)
        desk = Desk.open(Proposer(email), Scripted("send_email", 0.9, 0.8), toolbox, path)
        return [one(path, number, desk) for number in numbers]

    with ThreadPoolExecutor(4) as pool:
        found = [
            ended for part in pool.map(work, [range(first + k, last, 4) for k in range(4)]) for ended in part
        ]
    print(json.dumps(Counter(found)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
