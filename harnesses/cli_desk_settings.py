"""Settings: with which decider, model and documents a thread of the desk was started; imports database when used.

A run that pauses goes on in another process, days later, with the same ones: they stand in a table of the desk's
database, one row a thread. The thresholds do not: they are in the state of the run, where a fork can change them.
"""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

DEFAULT_DB = Path("desk.db")
SCRIPTED = "scripted"
"""The name of the language model that follows a script, and of the decider with given numbers."""

_SCHEMA = """CREATE TABLE IF NOT EXISTS settings (
    thread TEXT PRIMARY KEY, settings TEXT NOT NULL, at REAL NOT NULL
) WITHOUT ROWID"""
_EMAILS = ("thread", "call", "email", "at")
"""The columns of the outbox: a database with tables but not this one is somebody else's."""


@dataclass(frozen=True)
class Settings:
    """What a thread runs with. p_route, p_allow: of the scripted decider alone. poison: `a`, `b`, `note` or empty."""

    decider: str = "toy"
    p_route: float | None = None
    p_allow: float | None = None
    model: str = SCRIPTED
    verify: bool = False
    poison: str = ""


@dataclass(frozen=True)
class Started:
    """A thread with its settings, and when its newest request came (seconds since 1970)."""

    thread: str
    settings: Settings
    at: float


class Threads:
    """The settings of a database's threads."""

    def __init__(self, path: Path) -> None:
        from harnesses.desk.database import Table

        self._table = Table(path, _SCHEMA)

    def record(self, thread: str, settings: Settings) -> None:
        """Write them down; those of the thread's earlier request go."""
        with self._table.transaction() as cursor:
            row = (thread, json.dumps(asdict(settings)), time.time())
            cursor.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", row)

    def of(self, thread: str) -> Settings:
        """The settings of a thread. DeskError where this command did not start it."""
        from harnesses.desk.database import DeskError

        rows = self._table.rows("SELECT settings FROM settings WHERE thread = ?", thread)
        if not rows:
            known = [one.thread for one in self.all()]
            told = f"; there are {', '.join(known[:5])}{', ...' if len(known) > 5 else ''}" if known else ""
            raise DeskError(f"there is no thread {thread!r}{told}; desk run starts one")
        return _settings(thread, rows[0][0])

    def all(self) -> list[Started]:
        """Every thread, the oldest request first."""
        rows = self._table.rows("SELECT thread, settings, at FROM settings ORDER BY at, thread")
        return [Started(thread, _settings(thread, text), at) for thread, text, at in rows]

    def close(self) -> None:
        """Close the database."""
        self._table.close()


def _settings(thread: str, text: str) -> Settings:
    """A row's settings. DeskError for one that another version wrote."""
    from harnesses.desk.database import DeskError

    try:
        found: dict[str, Any] = json.loads(text)
        unknown = set(found) - {field.name for field in fields(Settings)}
        if unknown:
            raise KeyError(*unknown)
        return Settings(**found)
    except (ValueError, TypeError, KeyError):
        raise DeskError(
            f"thread {thread} was started by another version of desk run; start a new thread"
        ) from None


def present(path: Path) -> Path:
    """The database that an earlier run left. DeskError where there is none."""
    from harnesses.desk.database import DeskError

    if not path.exists():
        raise DeskError(f"there is no database {path}; desk run makes one, and --db names another")
    if not _tables(path):
        raise DeskError(f"{path} holds no runs; desk run starts one, and --db names another database")
    return path


def usable(path: Path) -> Path:
    """A file for a new run: the desk's database, or none yet. DeskError for any other file; nothing is written."""
    from harnesses.desk.database import MEMORY, DeskError

    if str(path) == MEMORY:
        raise DeskError(f"{path} would be forgotten with this process; name a file such as {DEFAULT_DB}")
    if path.exists():
        _tables(path)
    elif not path.absolute().parent.is_dir():
        raise DeskError(f"{path} is in a folder that is not there; name a file such as {DEFAULT_DB}")
    return path


def _tables(path: Path) -> list[str]:
    """The tables of a database of the desk, empty for an empty file. DeskError for another file; writes nothing."""
    from harnesses.desk.database import DeskError

    if not path.is_file():
        what = "a folder" if path.is_dir() else "a device or pipe"
        raise DeskError(f"{path} is {what}; name a file such as {DEFAULT_DB}")
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=10.0)
        try:
            found = [
                row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            columns = tuple(row[1] for row in connection.execute("PRAGMA table_info(emails)"))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise DeskError(
            f"{path} cannot be used as the desk's database ({error}); name another file"
        ) from None
    if found and columns != _EMAILS:
        raise DeskError(f"{path} is a database, but not the desk's; name another file such as {DEFAULT_DB}")
    return found
