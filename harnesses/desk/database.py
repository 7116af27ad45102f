"""Database: one SQLite file for checkpoints, emails and answers, opened alike by every process; imports sqlite3.

Writers wait for each other (write-ahead log, a wait of up to 30 s), so that many runs share a file. A connection
is used by one thread of a process at a time, and by no process but the one that opened it.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

WAIT = 30.0
"""Seconds that a writer waits for the others."""
MEMORY = ":memory:"
"""The name of a database that ends with its process."""


class DeskError(ValueError):
    """A file, thread, answer or setting of the desk that cannot be used, in one line with an example of a right one."""


def connect(path: str | Path) -> sqlite3.Connection:
    """A connection that several threads may hand on to each other. DeskError where the file is no database."""
    try:
        connection = sqlite3.connect(str(path), timeout=WAIT, check_same_thread=False)
        _use_write_ahead_log(connection)
    except sqlite3.Error as error:
        raise DeskError(
            f"{path} cannot be used as the desk's database ({error}); name one such as desk.db"
        ) from None
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file over, waiting for others that do the same: this one statement does not wait by itself."""
    end = time.monotonic() + WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


class Table:
    """One table on a connection of its own: whole transactions, one at a time."""

    busy: type[Exception] = sqlite3.OperationalError

    def __init__(self, path: str | Path, schema: str) -> None:
        self.connection = connect(path)
        self.lock = threading.Lock()
        with self.transaction() as cursor:
            cursor.execute(schema)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """A cursor whose writes all happen, once the block has ended, or none of them does.

        The lock on the file is taken at the start: what the block reads is still so when it writes.
        """
        with self.lock:
            cursor = self.connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
            except BaseException:
                self.connection.rollback()
                raise
            self.connection.commit()

    def rows(self, query: str, *values: object) -> list[tuple]:
        """All rows of a query."""
        with self.lock:
            return self.connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class Tabled(Protocol):
    """A table wherever it is kept. busy: what a database that is busy or gone raises."""

    @property
    def busy(self) -> type[Exception]:
        """As of `Table`."""
        ...

    def transaction(self) -> AbstractContextManager[Any]:
        """As of `Table`."""
        ...

    def rows(self, query: str, *values: object) -> list[tuple]:
        """As of `Table`."""
        ...

    def close(self) -> None:
        """As of `Table`."""
        ...


def on_server(path: str | Path) -> bool:
    """Whether a database's name is that of a server rather than a file."""
    return str(path).startswith(("postgresql://", "postgres://"))


def table(path: str | Path, schema: str) -> Tabled:
    """The table of this schema, made if it is not there, in a file or on a server. DeskError where it cannot be."""
    if on_server(path):
        from harnesses.desk.postgres import PostgresTable

        return PostgresTable(str(path), schema)
    return Table(path, schema)
