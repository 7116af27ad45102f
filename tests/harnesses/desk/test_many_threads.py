"""A thousand threads in one SQLite file, written by several processes at once; and races for one thread."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harnesses.desk.clerk import Proposer
from harnesses.desk.database import DeskError
from harnesses.desk.driver import Desk
from harnesses.desk.outbox import Outbox
from harnesses.desk.passages import Index
from harnesses.desk.registrations import registry
from harnesses.desk.scripted import Scripted
from harnesses.desk.toolbox import Toolbox

PROGRAM = Path(__file__).with_name("many_threads.py")
THREADS, PROCESSES = 1000, 4
EMAIL = {"to": "ana@example.org", "subject": "Hello", "body": "One mail."}
CASE = {"today": "2026-03-02", "event": {"id": "E1"}, "registration": registry("ana@example.org"),
        "request": "Send it.", "email": "ana@example.org"}  # fmt: skip


def desk(path: Path) -> Desk:
    toolbox = Toolbox(Index.of([("policy", "Nothing.")]), registry)
    return Desk.open(Proposer(EMAIL), Scripted("send_email", 0.9, 0.8), toolbox, path)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    path = tmp_path_factory.mktemp("threads") / "desk.db"
    share = THREADS // PROCESSES
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(path), str(k * share), str((k + 1) * share)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for k in range(PROCESSES)
    ]  # fmt: skip
    return path, [(process.communicate(timeout=500), process.returncode) for process in running]


def test_every_thread_comes_to_its_end_and_no_writer_is_turned_away(database: tuple[Path, list[Any]]) -> None:
    ended: Counter[str] = Counter()
    for (out, err), code in database[1]:
        assert code == 0 and "locked" not in err, err
        ended.update(json.loads(out))
    assert ended == {"answer approve": THREADS // 2, "answer reject": THREADS // 2}


def test_each_approved_email_went_out_once_and_no_other(database: tuple[Path, list[Any]]) -> None:
    sent = Outbox(database[0]).sent()
    assert Counter(one.thread for one in sent) == {f"t{n}": 1 for n in range(0, THREADS, 2)}


def test_threads_do_not_mix(database: tuple[Path, list[Any]]) -> None:
    made = desk(database[0])
    for number in (0, 1, 499, 998, 999):
        now = made.standing(f"t{number}")
        assert now is not None and now.state["case"]["request"] == f"Send me mail {number}."
        assert now.state["actions"] == (["rejected:c1"] if number % 2 else ["approved:c1", "sent:c1"])


def test_of_two_answers_at_once_one_stands_and_the_other_is_told(tmp_path: Path) -> None:
    for trial in range(10):
        path = tmp_path / f"{trial}.db"
        question = desk(path).start("t", CASE).question
        assert question is not None

        def answer(verdict: str, path: Path = path, asked: str = question.id) -> str:
            try:
                return desk(path).answer("t", asked, verdict).kind
            except DeskError as error:
                return str(error)

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(answer, ["approve", "reject"]))
        assert sorted(kind == "answer" for kind in found) == [False, True], found
        other = next(text for text in found if text != "answer")
        assert "being run by someone else" in other or "does not wait" in other or "answered already" in other
        approved = found[0] == "answer"
        assert len(Outbox(path).sent()) == approved


def test_of_two_starts_at_once_one_runs(tmp_path: Path) -> None:
    for trial in range(10):
        path = tmp_path / f"{trial}.db"
        made = [desk(path), desk(path)]

        def start(one: Desk) -> str:
            try:
                return one.start("t", CASE).kind
            except DeskError as error:
                return str(error)

        with ThreadPoolExecutor(2) as pool:
            found = sorted(pool.map(start, made))
        assert found.count("paused") == 1, found
        standing = made[0].standing("t")
        assert (
            standing is not None and [line["node"] for line in standing.state["trace"]].count("router") == 1
        )
