"""Thread lock: one runner at a time for each thread of a database, among threads and processes; imports database.

Two runners of one thread would both go on from the same checkpoint. The lock is one byte of a file beside the
database, at a place that the thread's name gives; the system lets go of it when its process dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from harnesses.desk.database import MEMORY, DeskError

_guard = threading.Lock()
_held: set[tuple[str, str]] = set()
_files: dict[str, int] = {}


class ThreadLocks:
    """The locks of the threads of one database; in memory they hold within this object alone."""

    def __init__(self, path: str | Path) -> None:
        self.name = f"{MEMORY}{id(self)}" if str(path) == MEMORY else os.path.realpath(path)
        self.in_memory = str(path) == MEMORY

    @contextmanager
    def held(self, thread: str) -> Iterator[None]:
        """Hold the thread. DeskError where another runner does."""
        key = (self.name, thread)
        with _guard:
            if key in _held or not self._take(thread):
                raise DeskError(
                    f"thread {thread} is being run by someone else; wait for it, or name another thread"
                )
            _held.add(key)
        try:
            yield
        finally:
            with _guard:
                _held.discard(key)
                self._let_go(thread)

    def _take(self, thread: str) -> bool:
        if self.in_memory:
            return True
        try:
            fcntl.lockf(self._file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(thread))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _let_go(self, thread: str) -> None:
        if not self.in_memory:
            fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, _place(thread))

    def _file(self) -> int:
        """The lock file, opened once a process: closing one descriptor of it would give up all its locks."""
        if self.name not in _files:
            _files[self.name] = os.open(self.name + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return _files[self.name]


def _place(thread: str) -> int:
    """A byte of the file, below 2**56."""
    return int.from_bytes(sha256(thread.encode()).digest()[:7], "big")
