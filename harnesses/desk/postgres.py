"""Postgres: the desk's tables and thread locks on a server in place of a file; imports database, psycopg when used.

A desk that is opened on a server keeps all there: checkpoints, emails and answers. Two machines that share checkpoints
but not the outbox would each send an email once, and an answer given on one would be lost on the other. A table is
written under a lock of its own, taken at the start as in SQLite, and a thread is held by an advisory lock of a session,
which the server lets go of when its process dies. Source: M14 §5 (databases are available for production).
"""

from __future__ import annotations

import importlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from harnesses.desk.database import WAIT, DeskError

REMEDY = "pip install 'hpomdp[postgres]'"
EXAMPLE = "postgresql://user@host/desk"
CONNECTIONS = 3
"""Of one process to one server, beside one for each thread that is being run. Few: after a restart of the server the
pool finds out about each of them in turn, and waits 1 s, 2 s, 4 s in between."""
MAKING = "the desk's tables"
"""The lock under which tables are made: two processes that make one at the same moment would fail."""

_pools: dict[str, Any] = {}
_opening = threading.RLock()


def pool(url: str) -> Any:
    """The connections of this process to a server, opened at the first use; broken ones are replaced.

    DeskError without the package, and where the server cannot be reached or has another password.
    """
    with _opening:
        if url not in _pools:
            _pools[url] = _opened(url)
        return _pools[url]


def _opened(url: str) -> Any:
    psycopg, pools = _package("psycopg"), _package("psycopg_pool")
    try:  # a pool would try for half a minute and say less
        with psycopg.connect(url, connect_timeout=10) as connection:
            encoding = connection.info.parameter_status("server_encoding")
    except psycopg.Error as error:
        raise DeskError(
            f"the Postgres server cannot be used ({_line(error)}); name one such as {EXAMPLE}"
        ) from None
    if encoding != "UTF8":
        raise DeskError(f"the Postgres database is in {encoding}; make one with createdb --encoding UTF8")
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": psycopg.rows.dict_row}
    return pools.ConnectionPool(
        url, min_size=0, max_size=CONNECTIONS, timeout=WAIT, kwargs=settings, open=True, num_workers=1,
        check=pools.ConnectionPool.check_connection,
    )  # fmt: skip


def close(url: str) -> None:
    """Close this process's connections to a server."""
    if url in _pools:
        _pools.pop(url).close()


class PostgresTable:
    """`database.Table` on a server: whole transactions, one writer at a time."""

    def __init__(self, url: str, schema: str) -> None:
        found = re.search(r"CREATE TABLE IF NOT EXISTS (\w+)", schema)
        if found is None:
            raise DeskError("a table's schema begins with CREATE TABLE IF NOT EXISTS and its name")
        self.name, self.url = found.group(1), url
        self.busy: type[Exception] = _package("psycopg").OperationalError
        made = schema.replace(" WITHOUT ROWID", "").replace(" REAL", " DOUBLE PRECISION")
        connections = pool(url)
        with once(url), connections.connection() as connection:
            connection.execute(made)

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        """A cursor whose writes all happen, once the block has ended, or none of them does.

        Other writers of this table wait from the start: what the block reads is still so when it writes.
        """
        with pool(self.url).connection() as connection, connection.transaction():
            connection.execute(f"LOCK TABLE {self.name} IN SHARE ROW EXCLUSIVE MODE")
            yield Cursor(connection)

    def rows(self, query: str, *values: object) -> list[tuple]:
        """All rows of a query."""
        with pool(self.url).connection() as connection:
            return [tuple(row.values()) for row in connection.execute(_marked(query), values)]

    def close(self) -> None:
        """Nothing: the connections are the process's."""


class Cursor:
    """A connection that takes SQLite's marks for values."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.last: Any = None

    def execute(self, query: str, values: tuple = ()) -> Cursor:
        """Run a statement."""
        self.last = self.connection.execute(_marked(query), values)
        return self

    def fetchone(self) -> tuple | None:
        """The next row of the last statement, None at their end."""
        row = self.last.fetchone()
        return None if row is None else tuple(row.values())


class PostgresLocks:
    """`thread_lock.ThreadLocks` on a server: one runner of a thread among all its machines."""

    def __init__(self, url: str) -> None:
        pool(url)
        self.url = url

    @contextmanager
    def held(self, thread: str) -> Iterator[None]:
        """Hold the thread, on a connection of its own. DeskError where another runner does."""
        with _package("psycopg").connect(self.url, autocommit=True) as connection:
            if not _taken(connection, f"thread {thread}"):
                raise DeskError(
                    f"thread {thread} is being run by someone else; wait for it, or name another thread"
                )
            yield


@contextmanager
def once(url: str) -> Iterator[None]:
    """Tables are made while no other process makes any.

    It asks again and again instead of waiting in the server: an index that is made beside writers waits for all
    statements, that of a waiting process among them, and the two would wait for each other.
    """
    end = time.monotonic() + WAIT
    with _package("psycopg").connect(url, autocommit=True) as connection:
        while not _taken(connection, MAKING):
            if time.monotonic() > end:
                raise DeskError(f"another process has been making {MAKING} for {WAIT:g} s; end it")
            time.sleep(0.02)
        yield


def _taken(connection: Any, name: str) -> bool:
    """Whether the lock of this name is the connection's now; it ends with the connection."""
    return bool(connection.execute("SELECT pg_try_advisory_lock(%s)", (_key(name),)).fetchone()[0])


def _key(name: str) -> int:
    """A lock's number: of the desk and this name, 63 bits."""
    return int.from_bytes(sha256(f"hpomdp desk {name}".encode()).digest()[:8], "big") >> 1


def _marked(query: str) -> str:
    """A statement with psycopg's marks for values."""
    return query.replace("%", "%%").replace("?", "%s")


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DeskError(f"a Postgres database needs the extra postgres ({error}): {REMEDY}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
