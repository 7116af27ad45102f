"""The folder of what can be made again: compiled code, solved intervals; imports nothing of the project.

It is `$XDG_CACHE_HOME/hpomdp`, else `~/.cache/hpomdp`, never the place of the sources: an installation may be
read-only or shared. Deleting it costs time and nothing else.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def cache_folder(part: str) -> Path | None:
    """The folder for `part` ("numba", "jax", ...), made and writable; None where no place can be written.

    A home that cannot be written (a container, a batch job) is replaced by a folder of the user's own among
    the temporary files.
    """
    for base in _bases():
        folder = base / part
        try:
            base.parent.mkdir(parents=True, exist_ok=True)
            base.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(exist_ok=True)
            if _is_ours(base) and os.access(folder, os.W_OK | os.X_OK):
                return folder
        except OSError:
            continue
    return None


def _bases() -> Iterator[Path]:
    """The candidates, best first."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")
    if os.path.isabs(named):  # the XDG rules ignore a relative one
        yield Path(named) / "hpomdp"
    elif os.path.isabs(home):
        yield Path(home) / ".cache" / "hpomdp"
    yield Path(tempfile.gettempdir()) / f"hpomdp-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_ours(base: Path) -> bool:
    """Whether nobody else made `base`: what lies in a cache is run, so another user's must not be taken."""
    return not hasattr(os, "getuid") or base.stat().st_uid == _user()
