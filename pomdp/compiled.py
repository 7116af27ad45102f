"""The decorator of the inner loops: numba's njit with its results kept; imports pomdp.cache_folder and numba.

Numba looks for changes only in the file of the function itself. Loops here call one another across files, so
the results lie in a folder named by a hash of all of them: after an edit nothing stale is ever run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from pomdp.cache_folder import cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])

MARK = b"pomdp.compiled"


def compiled(function: Function) -> Function:
    """`function` compiled on its first call for the types it meets, and read from disk by later processes.

    It runs without the interpreter's lock. Numba's own settings stay as the user has them, NUMBA_CACHE_DIR
    included; where nothing can be written it compiles in every process.
    """
    settings: Any = numba.config
    folder = None if settings.CACHE_DIR else cache_folder("numba")
    if folder is None:
        return cast(Function, numba.njit(nogil=True, cache=bool(settings.CACHE_DIR))(function))
    # Numba fixes the place when it decorates; the setting is put back so that nobody else's functions move.
    settings.CACHE_DIR = str(folder / sources_hash(Path(__file__).parent))
    try:
        return cast(Function, numba.njit(nogil=True, cache=True)(function))
    finally:
        settings.CACHE_DIR = ""


@lru_cache
def sources_hash(package: Path) -> str:
    """16 hexadecimal digits for the text of every file under `package` that uses this decorator."""
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        text = file.read_bytes()
        if MARK in text:
            digest.update(file.relative_to(package).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()[:16]
