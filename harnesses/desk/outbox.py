"""Outbox: the mock `send_email`: a row in the database, once for each call of each thread; imports database, errors.

A row is the email going out: it is written whole or not at all, so that a process killed at any moment has sent it once
or never. With a mail server in its place, a kill between the server's receipt and the row would leave the two apart;
only a server that refuses a message id twice closes that gap. Source: M14 §5 (once per call id).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesses.desk.database import MEMORY, table
from harnesses.desk.tool_errors import Fix, Retry, Stop

SUBJECT, BODY = 200, 10_000
"""Longest subject and body, in characters."""

_SCHEMA = """CREATE TABLE IF NOT EXISTS emails (
    thread TEXT NOT NULL, call TEXT NOT NULL, email TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (thread, call)
) WITHOUT ROWID"""


@dataclass(frozen=True)
class Email:
    """One address, a subject of one line, a body."""

    to: str
    subject: str
    body: str

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Email:
        """From a call's arguments. Raises Fix for what is no email.

        A line break in an address or subject could add a header, and so a recipient that no check has seen.
        """
        to, subject, body = (arguments.get(name) for name in ("to", "subject", "body"))
        if not (isinstance(to, str) and isinstance(subject, str) and isinstance(body, str)):
            raise Fix("an email has texts `to`, `subject` and `body`")
        name, at, domain = to.partition("@")
        if (
            not (name and at and domain)
            or not to.isprintable()
            or any(c in to for c in " ,;<>")
            or "@" in domain
        ):
            raise Fix(f"{to!r} is not one address; give one such as ana@example.org")
        if not subject.strip() or len(subject) > SUBJECT or not subject.isprintable():
            raise Fix(f"a subject is one line of 1 to {SUBJECT} characters, such as Your registration for E1")
        if not body.strip() or len(body) > BODY:
            raise Fix(f"a body has 1 to {BODY} characters")
        return cls(to, subject, body)

    def json(self) -> dict[str, str]:
        """As data."""
        return {"to": self.to, "subject": self.subject, "body": self.body}


@dataclass(frozen=True)
class Sent:
    """An email that went out: by which call of which thread, and when (seconds since 1970)."""

    thread: str
    call: str
    email: Email
    at: float


class Outbox:
    """The emails of a database; in memory unless a file is named."""

    def __init__(self, path: str | Path = MEMORY) -> None:
        self._table = table(path, _SCHEMA)

    def send(self, thread: str, call: str, email: Email) -> bool:
        """Send the email of this call, and say whether it went out just now; a second time does nothing.

        Raises Stop where the call has sent another email (a replay in which the model wrote something else), and
        Retry where the database is busy or gone.
        """
        content = json.dumps(email.json())
        try:
            with self._table.transaction() as cursor:
                found = cursor.execute(
                    "SELECT email FROM emails WHERE thread = ? AND call = ?", (thread, call)
                )
                row = found.fetchone()
                if row is None:
                    cursor.execute(
                        "INSERT INTO emails VALUES (?, ?, ?, ?)", (thread, call, content, time.time())
                    )
        except self._table.busy as error:
            raise Retry(f"the outbox did not take the email ({error})") from None
        if row is not None and row[0] != content:
            raise Stop(f"call {call} has sent another email already; nothing was sent now")
        return row is None

    def sent(self, thread: str | None = None) -> list[Sent]:
        """The emails of a thread, or of all, in the order in which they went out."""
        where = "WHERE thread = ?" if thread is not None else ""
        values = () if thread is None else (thread,)
        rows = self._table.rows(f"SELECT * FROM emails {where} ORDER BY at, thread, call", *values)
        return [Sent(thread, call, Email(**json.loads(email)), at) for thread, call, email, at in rows]

    def close(self) -> None:
        """Close the database."""
        self._table.close()
