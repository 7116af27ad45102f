"""Files that are written whole or not at all; imports nothing of the project."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write UTF-8 text through a temporary file beside `path`, flushed to the disk before it takes the name.

    A kill at any moment leaves the old file or the new one. The folder must be there; OSError names what fails.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(2, "its folder does not exist", str(path))
    handle, temporary = tempfile.mkstemp(prefix=".partial-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # The rename itself reaches the disk only with its folder; where a platform cannot open folders that
    # is all one can do.
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
