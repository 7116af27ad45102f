"""Checkpoints on a PostgreSQL server, where one and its driver are installed; else its errors alone."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harnesses.desk.database import DeskError
from harnesses.desk.savers import postgres_saver

PACKAGE = importlib.util.find_spec("psycopg") and importlib.util.find_spec("langgraph.checkpoint.postgres")
needs_package = pytest.mark.skipif(not PACKAGE, reason="needs the extra `postgres`")
Make = Callable[..., Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own behind a socket in a folder of the test, ended afterwards."""
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        pytest.skip("needs PostgreSQL's initdb and pg_ctl")
    if os.getuid() == 0:
        pytest.skip("PostgreSQL runs under no root")
    folder = tmp_path_factory.mktemp("pg")
    data = folder / "data"
    subprocess.run(["initdb", "-D", str(data), "-U", "desk", "-A", "trust"], check=True, capture_output=True)
    options = f"-k {folder} -c listen_addresses=''"
    subprocess.run(
        ["pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start"], check=True
    )
    try:
        yield f"postgresql://desk@/postgres?host={folder}"
    finally:
        subprocess.run(["pg_ctl", "-D", str(data), "-m", "immediate", "stop"], check=True)


@needs_package
def test_a_run_pauses_and_goes_on_through_another_connection(server: str, room: Make, tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with postgres_saver(server) as saver:
        question = room(path=path, saver=saver).start("t").question
    with postgres_saver(server) as saver:
        r = room(path=path, saver=saver)
        assert r.desk.standing("t").question.id == question.id
        now = r.desk.answer("t", question.id, "approve")
        assert (now.kind, r.sent(), len(now.state["trace"])) == ("answer", 1, 7)


def test_what_names_no_server_is_refused() -> None:
    with pytest.raises(DeskError, match="names no PostgreSQL server; give one such as postgresql://"):
        with postgres_saver("desk.db"):
            pass


@pytest.mark.skipif(bool(PACKAGE), reason="the package is there")
def test_a_missing_package_is_told_with_its_remedy() -> None:
    with pytest.raises(DeskError, match=r"pip install 'hpomdp\[postgres\]'"):
        with postgres_saver("postgresql://nobody@localhost/desk"):
            pass


@needs_package
def test_a_server_that_is_away_is_told_in_one_line() -> None:
    with pytest.raises(DeskError, match="the PostgreSQL server cannot be used: ") as told:
        with postgres_saver("postgresql://nobody@127.0.0.1:1/desk?connect_timeout=2"):
            pass
    assert "\n" not in str(told.value)
