"""Toy cache: the fitted toy decider on disk, so that a new process need not fit it again; imports pomdp.cache_folder.

The file's name holds a hash of every source that the fit depends on, and the seed: a changed source never meets an old
fit. What cannot be read is ignored, and where nothing can be written the fit is made each time.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from pomdp.cache_folder import cache_folder

SOURCES = (
    "draw", "drafts", "documents", "events", "generator", "items", "people", "policy", "questions", "regression",
    "registrations", "rulings", "text_features", "toy", "wording",
)  # fmt: skip
"""The modules of this folder that a fit depends on."""

Arrays = Mapping[str, np.ndarray]


@cache
def digest() -> str:
    """Of the sources, and of numpy's version, whose last digits may differ."""
    folder = Path(__file__).parent
    found = sha256(np.__version__.encode())
    for name in SOURCES:
        found.update((folder / f"{name}.py").read_bytes())
    return found.hexdigest()[:20]


def find(seed: int) -> tuple[Arrays, Any] | None:
    """The arrays and the plain data of a stored fit; None where there is none that can be read."""
    path = _path(seed)
    if path is None:
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return arrays, json.loads(str(arrays.pop("data")))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def store(seed: int, arrays: Arrays, data: Any) -> None:
    """Keep a fit, whole or not at all."""
    path = _path(seed)
    if path is None:
        return
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".npz")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **{**arrays, "data": np.array(json.dumps(data))})  # type: ignore[arg-type]
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError:
        return  # a full or read-only disk costs the next process its time, nothing else


def _path(seed: int) -> Path | None:
    folder = cache_folder("toy")
    return None if folder is None else folder / f"{digest()}-{seed}.npz"
