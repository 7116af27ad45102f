"""Savers: where checkpoints of the desk's graph are kept besides memory and SQLite: a PostgreSQL server; imports graph.

The outbox and the answers stay in the desk's SQLite file, whose transactions they need: one machine runs the desk, and
the server keeps the states of its threads. The driver package is imported only when a server is named.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harnesses.desk.database import DeskError
from harnesses.desk.graph import Saver

REMEDY = "pip install 'hpomdp[postgres]'"


@contextmanager
def postgres_saver(url: str) -> Iterator[Saver]:
    """A saver on a PostgreSQL server, such as postgresql://user@host/desk; its tables are made if they are missing.

    Give it to `Desk.open(..., saver=saver)`. Raises DeskError where the package is missing, and for a server that
    cannot be reached; the connection is closed at the end of the block.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise DeskError(f"{url!r} names no PostgreSQL server; give one such as postgresql://user@host/desk")
    try:
        psycopg: Any = importlib.import_module("psycopg")
        made: Any = importlib.import_module("langgraph.checkpoint.postgres")
    except ImportError as error:
        raise DeskError(f"PostgreSQL needs a package that is not installed ({error}): {REMEDY}") from None
    try:
        with made.PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            yield saver
    except psycopg.OperationalError as error:
        raise DeskError(f"the PostgreSQL server cannot be used: {' '.join(str(error).split())}") from None
