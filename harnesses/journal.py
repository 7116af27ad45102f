"""Journal: the records of a thread's run, each kept before what it tells of goes on; imports sqlite3, the trace.

LangGraph keeps the state after a node and runs an interrupted node from its first line. The journal says what such a
node had done already: it is the run's trace, record by record, in the file of the checkpoints.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import AbstractContextManager
from typing import Protocol

from harnesses.runtime.records import AgentError
from harnesses.runtime.trace import Record, as_line

CREATE = (
    "CREATE TABLE IF NOT EXISTS records (thread_id TEXT NOT NULL, t INTEGER NOT NULL, record TEXT NOT NULL,"
    " PRIMARY KEY (thread_id, t)) WITHOUT ROWID"
)


class Journal(Protocol):
    """Records by thread; once `write` has returned, a record survives as long as the checkpoints do."""

    def write(self, thread: str, record: Record) -> None:
        """Take one record. AgentError where the thread has one of its time."""
        ...

    def newest(self, thread: str) -> int:
        """The time of the newest record, 0 where there is none."""
        ...

    def lines(self, thread: str) -> list[str]:
        """All records of a thread, as the lines of a trace."""
        ...

    def forget(self, thread: str) -> None:
        """Drop a thread's records."""
        ...


class NoJournal:
    """Nothing kept, for graphs without a saver."""

    def write(self, thread: str, record: Record) -> None:
        """Forget it."""

    def newest(self, thread: str) -> int:
        """None."""
        return 0

    def lines(self, thread: str) -> list[str]:
        """None."""
        return []

    def forget(self, thread: str) -> None:
        """Nothing to do."""


class MemoryJournal:
    """In this process, beside checkpoints in memory."""

    def __init__(self) -> None:
        self._records: defaultdict[str, dict[int, Record]] = defaultdict(dict)
        self._newest: defaultdict[str, int] = defaultdict(int)

    def write(self, thread: str, record: Record) -> None:
        """Keep it."""
        if record["t"] <= self._newest[thread]:
            raise _taken(thread, record)
        self._records[thread][record["t"]] = record
        self._newest[thread] = record["t"]

    def newest(self, thread: str) -> int:
        """The time of the newest record."""
        return self._newest[thread]

    def lines(self, thread: str) -> list[str]:
        """All records of a thread."""
        return [as_line(record) for record in self._records[thread].values()]

    def forget(self, thread: str) -> None:
        """Drop a thread's records."""
        self._records.pop(thread, None)
        self._newest.pop(thread, None)


class SqliteJournal:
    """A table `records` in a SQLite file; `lock` guards the connection, which others may use too."""

    def __init__(self, connection: sqlite3.Connection, lock: AbstractContextManager[object]) -> None:
        self._connection, self._lock = connection, lock
        with lock:
            connection.execute(CREATE)
            connection.commit()

    def write(self, thread: str, record: Record) -> None:
        """Commit it."""
        with self._lock, self._connection:
            try:
                self._connection.execute(
                    "INSERT INTO records VALUES (?, ?, ?)", (thread, record["t"], as_line(record))
                )
            except sqlite3.IntegrityError:
                raise _taken(thread, record) from None

    def newest(self, thread: str) -> int:
        """The time of the newest record."""
        with self._lock:
            asked = self._connection.execute("SELECT max(t) FROM records WHERE thread_id = ?", (thread,))
            return asked.fetchone()[0] or 0

    def lines(self, thread: str) -> list[str]:
        """All records of a thread."""
        with self._lock:
            asked = self._connection.execute(
                "SELECT record FROM records WHERE thread_id = ? ORDER BY t", (thread,)
            )
            return [line for (line,) in asked]

    def forget(self, thread: str) -> None:
        """Drop a thread's records."""
        with self._lock, self._connection:
            self._connection.execute("DELETE FROM records WHERE thread_id = ?", (thread,))


def _taken(thread: str, record: Record) -> AgentError:
    return AgentError(
        f"thread {thread!r} went on from record {record['t']} before; what goes on otherwise needs a thread of its own"
    )
