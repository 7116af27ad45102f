"""Savers: where a desk keeps its threads, by the name of its database: memory, a SQLite file, a Postgres server.

Checkpoints, emails, answers and the locks of threads go to one place, so that what is sent once per call and answered
once per question is so for all that run its threads. The driver package of a server is imported only when one is named.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from harnesses.desk.database import MEMORY, DeskError, on_server
from harnesses.desk.graph import Saver, sqlite_saver
from harnesses.desk.postgres import REMEDY, PostgresLocks, once, pool
from harnesses.desk.thread_lock import ThreadLocks


def saver_for(path: str | Path) -> Saver:
    """The saver of a database; a server's tables are made if they are missing.

    DeskError for a file that is no database, a server that cannot be reached, and without the extra that it needs.
    """
    if str(path) == MEMORY:
        return InMemorySaver()
    if not on_server(path):
        return sqlite_saver(path)
    try:
        module: Any = importlib.import_module("langgraph.checkpoint.postgres")
    except ImportError as error:
        raise DeskError(f"a Postgres database needs the extra postgres ({error}): {REMEDY}") from None
    saver = module.PostgresSaver(pool(str(path)))
    with once(str(path)):
        saver.setup()
    return saver


def locks_for(path: str | Path) -> ThreadLocks | PostgresLocks:
    """The locks of a database's threads."""
    return PostgresLocks(str(path)) if on_server(path) else ThreadLocks(path)
