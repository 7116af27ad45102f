"""The calc task: a module whose sum is wrong, its tests, and the file that mends it; imports workspace.

Source: M1 §1.3.
"""

from __future__ import annotations

import os
from pathlib import Path

from harnesses.runtime.workspace import Workspace, WorkspaceError

REQUEST = "Make the tests of this workspace pass: calc.add should give the sum of two integers."
COMMAND = "pytest test_calc.py"

WRONG = '''"""Arithmetic."""


def add(a, b):
    return str(a) + str(b)
'''

RIGHT = WRONG.replace("str(a) + str(b)", "a + b")

TESTS = """from calc import add


def test_two_digits():
    assert add(2, 3) == 5


def test_negative():
    assert add(-2, 2) == 0


def test_type():
    assert isinstance(add(1, 1), int)
"""

FILES = {"calc.py": WRONG, "test_calc.py": TESTS}


def create_calc(folder: str | os.PathLike[str], **settings: object) -> Workspace:
    """The workspace of the task in a new or empty folder; WorkspaceError if something is there already."""
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise WorkspaceError(f"{folder} is not empty; name a new folder, as in ./calc")
    place.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (place / name).write_text(text, encoding="utf-8")
    return Workspace.at(place, **settings)
