"""Outbox: messages to send, each once, in a SQLite file; a keyed tool; imports nothing of the project.

The message and its key are written in one transaction, so that whatever the moment of a crash the message is there
once or not at all. Source: design of the running harness, section 4 (a crash between a tool's result and its record).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_TABLE = (
    "CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, receiver TEXT NOT NULL, "
    "text TEXT NOT NULL)"
)


class Outbox:
    """The messages of one file. Its folder must be there."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with closing(self._open()) as file, file:
            file.execute(_TABLE)

    def send(self, receiver: str, text: str, key: str) -> str:
        """Send a message, once; a second time with the same key says the same and sends nothing."""
        with closing(self._open()) as file, file:
            file.execute("BEGIN IMMEDIATE")
            known = file.execute("SELECT number, receiver, text FROM outbox WHERE key = ?", (key,)).fetchone()
            if known is None:
                row = file.execute(
                    "INSERT INTO outbox (key, receiver, text) VALUES (?, ?, ?)", (key, receiver, text)
                )
                known = (row.lastrowid, receiver, text)
        if known[1:] != (receiver, text):
            raise ValueError(f"message {known[0]} was sent with this key and is another one; stop")
        return f"message {known[0]} sent to {receiver}"

    def sent(self) -> list[tuple[str, str]]:
        """Receiver and text of every message, in order."""
        with closing(self._open()) as file:
            return file.execute("SELECT receiver, text FROM outbox ORDER BY number").fetchall()

    def _open(self) -> sqlite3.Connection:
        file = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
        file.execute("PRAGMA synchronous=FULL")
        return file
