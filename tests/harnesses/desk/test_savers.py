"""A desk on a Postgres server: one email a call, one answer a question, one runner a thread; without one, its errors.

The server is a process of the tests, behind a socket in a folder of its own; without the extra `postgres` or without
the server's programs these tests are skipped.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harnesses.desk.database import DeskError
from harnesses.desk.driver import Desk
from harnesses.desk.history import fork, replay
from harnesses.desk.outbox import Email, Outbox
from harnesses.desk.postgres import close, pool
from harnesses.desk.reviews import Review, Reviews, Verdict
from harnesses.desk.savers import saver_for
from harnesses.desk.tool_errors import Retry, Stop

PACKAGE = all(importlib.util.find_spec(name) for name in ("psycopg", "psycopg_pool")) and (
    importlib.util.find_spec("langgraph.checkpoint.postgres") is not None
)
needs_package = pytest.mark.skipif(not PACKAGE, reason="needs the extra `postgres`")
Make = Callable[..., Any]
EMAIL = Email("ana@example.org", "Your registration", "You are registered.")


def program(name: str) -> str | None:
    """A program of the server: on the path, or where Debian keeps it."""
    return shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))), None)


class Server:
    """A server in a folder; it runs under no root, so that a root's tests lend it to another user."""

    def __init__(self, folder: str) -> None:
        self.folder, self.data = folder, f"{folder}/data"
        self.url = f"postgresql://desk@/postgres?host={folder}"
        self.user: Any = None
        if os.getuid() == 0:
            self.user = "nobody"
            shutil.chown(folder, self.user)
        self._run("initdb", "-D", self.data, "-U", "desk", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._run("pg_ctl", "-D", self.data, "-w", "-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def _run(self, name: str, *arguments: str) -> None:
        environment = {**os.environ, "LC_ALL": "C"}
        subprocess.run(
            [str(program(name)), *arguments], check=True, user=self.user, cwd=self.folder, env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A running server, ended with the tests."""
    if not (program("initdb") and program("pg_ctl")):
        pytest.skip("needs PostgreSQL's initdb and pg_ctl")
    folder = tempfile.mkdtemp(prefix="hpomdp-pg-")  # short: a socket's path has at most 107 bytes
    made = Server(folder)
    made.start()
    try:
        yield made
    finally:
        close(made.url)
        made.stop()
        shutil.rmtree(folder)


def approve(question: Any) -> str:
    return "approve"


@needs_package
def test_a_run_pauses_in_one_desk_and_goes_on_in_another(server: Server, room: Make) -> None:
    question = room(path=server.url).start("paused").question
    other = room(path=server.url)
    assert other.desk.standing("paused").question.id == question.id
    done = other.desk.answer("paused", question.id, "approve")
    in_memory = room()
    expected = in_memory.desk.with_human(in_memory.start("paused"), approve)
    assert (done.kind, done.state) == (expected.kind, expected.state)
    assert len(other.desk.outbox.sent("paused")) == 1
    with pytest.raises(DeskError, match="does not wait"):
        other.desk.answer("paused", question.id, "reject")


@needs_package
def test_replays_and_forks_send_nothing_twice(server: Server, room: Make) -> None:
    r = room(path=server.url)
    r.desk.with_human(r.start("again"), approve)
    replay(r.desk, "again", "send")
    r.desk.with_human(fork(r.desk, "again", "guard", taus={"act": "0.7"}), approve)
    assert len(r.desk.outbox.sent("again")) == 1


@needs_package
def test_one_email_a_call_whoever_sends_it(server: Server) -> None:
    boxes = [Outbox(server.url) for _ in range(6)]
    first: list[bool] = []
    gate = threading.Barrier(len(boxes))

    def send(box: Outbox) -> None:
        gate.wait()
        first.extend(box.send("race", f"c{n}", EMAIL) for n in range(5))

    threads = [threading.Thread(target=send, args=(box,)) for box in boxes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (first.count(True), len(first), len(boxes[0].sent("race"))) == (5, 30, 5)
    with pytest.raises(Stop, match="another email"):
        boxes[0].send("race", "c0", Email("bo@example.org", "s", "b"))
    at = boxes[0].sent("race")[0].at
    assert at > 1e9 and at % 1 > 0  # kept to fractions of a second, not rounded to four bytes


@needs_package
def test_the_first_answer_stands(server: Server) -> None:
    reviews = Reviews(server.url)
    reviews.record(Review("q1", "t", "c1", Verdict.APPROVE, "ana"))
    with pytest.raises(DeskError, match="answered already: approve, by ana"):
        Reviews(server.url).record(Review("q1", "t", "c1", Verdict.REJECT))
    found = Reviews(server.url).of("q1")
    assert found is not None and found.verdict is Verdict.APPROVE and reviews.of("q2") is None


@needs_package
def test_a_thread_has_one_runner(server: Server, room: Make) -> None:
    one, two = room(path=server.url).desk, room(path=server.url).desk
    with one.locks.held("t"):
        with pytest.raises(DeskError, match="run by someone else"):
            with two.locks.held("t"):
                pass
        with two.locks.held("u"):
            pass
    with two.locks.held("t"):
        pass


HOLDER = """
import sys, time
from harnesses.desk.postgres import PostgresLocks
with PostgresLocks(sys.argv[1]).held("t-killed"):
    print("held", flush=True)
    time.sleep(60)
"""


@needs_package
def test_a_runner_that_is_killed_lets_go(server: Server, room: Make) -> None:
    held = subprocess.Popen([sys.executable, "-c", HOLDER, server.url], stdout=subprocess.PIPE, text=True)
    assert held.stdout is not None and held.stdout.readline() == "held\n"
    locks = room(path=server.url).desk.locks
    with pytest.raises(DeskError, match="someone else"), locks.held("t-killed"):
        pass
    held.kill()
    held.wait()
    held.stdout.close()
    for _ in range(100):
        try:
            with locks.held("t-killed"):
                return
        except DeskError:
            threading.Event().wait(0.05)
    raise AssertionError("the server kept a dead process's lock")


@needs_package
def test_tables_are_made_by_many_at_once(server: Server) -> None:
    """Two connections that make the same table or index at the same moment get in each other's way."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE fresh")
    url = server.url.replace("/postgres?", "/fresh?")
    made: list[Any] = []
    gate = threading.Barrier(4)

    def make() -> None:
        gate.wait()
        made.extend([Outbox(url), saver_for(url)])

    pool(url)
    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close(url)
    assert len(made) == 8


@needs_package
def test_a_server_that_comes_back_is_used_again(server: Server, room: Make) -> None:
    r = room(path=server.url)
    question = r.start("over a restart").question
    server.stop()
    server.start()
    done = r.desk.answer("over a restart", question.id, "approve")
    assert done.kind == "answer" and len(r.desk.outbox.sent("over a restart")) == 1


@needs_package
def test_a_server_that_is_gone_is_a_failure_that_may_pass(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harnesses.desk.postgres.WAIT", 0.3)
    close(server.url)
    box = Outbox(server.url)
    server.stop()
    try:
        with pytest.raises(Retry, match="the outbox did not take the email"):
            box.send("gone", "c1", EMAIL)
    finally:
        server.start()
        close(server.url)


@needs_package
def test_a_database_in_which_text_is_bytes_is_refused(server: Server) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(DeskError, match="in SQL_ASCII; make one with createdb --encoding UTF8"):
        Outbox(server.url.replace("/postgres?", "/plain?"))


@needs_package
def test_a_server_that_is_away_is_told_in_one_line() -> None:
    with pytest.raises(DeskError, match="the Postgres server cannot be used .*such as postgresql://") as told:
        Outbox("postgresql://nobody:secret@127.0.0.1:1/desk?connect_timeout=2")
    assert "\n" not in str(told.value) and "secret" not in str(told.value)


def test_a_missing_package_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    nobody: Any = None
    with pytest.raises(DeskError, match=r"pip install 'hpomdp\[postgres\]'"):
        Desk.open(nobody, nobody, nobody, "postgresql://nobody@localhost/desk")
    assert not Path("postgresql:").exists()
