"""Files that are written whole or not at all; imports nothing of the project."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write UTF-8 text through a temporary file beside `path`, flushed to the disk before it takes the name.

    A kill at any moment leaves the old file or the new one. A link stays and the file that it names is written. The
    folder must be there; what is there must be an ordinary file, for a device or a pipe would be replaced by one.
    OSError names what fails.
    """
    path = path.resolve() if path.is_symlink() else path
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", str(path))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder has this name; name a file in it", str(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is a device or pipe, not an ordinary file; name another", str(path))
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
