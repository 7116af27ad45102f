"""Compiled loops: kept between processes, never stale, without touching numba's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pomdp
from pomdp.compiled import sources_hash

PROGRAM = """
import numba
{before}
from pomdp.compiled import compiled

@compiled
def cube(x):
    \"\"\"x to the third.\"\"\"
    return x * x * x

print(cube(3), numba.config.CACHE_DIR, sum(cube.stats.cache_hits.values()))
"""


def run(program: Path, environment: dict[str, str]) -> list[str]:
    """What the program prints, split; it must end well."""
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split(" ")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """This process's environment with a cache home of its own and the project importable."""
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return kept | {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(pomdp.__file__).parents[1]),
    }


def test_a_second_process_reads_what_the_first_compiled(tmp_path: Path, environment: dict[str, str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(before=""))
    assert run(program, environment) == ["27", "", "0\n"]
    assert run(program, environment) == ["27", "", "1\n"]
    assert list((tmp_path / "cache" / "hpomdp" / "numba").glob("*/*/*.nbc"))
    assert not list(tmp_path.glob("__pycache__/*.nbc")), "nothing is written beside the sources"


def test_the_users_own_numba_folder_is_used(tmp_path: Path, environment: dict[str, str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(before=""))
    mine = tmp_path / "mine"
    assert run(program, environment | {"NUMBA_CACHE_DIR": str(mine)})[:2] == ["27", str(mine)]
    assert list(mine.glob("*/*.nbc"))
    assert not (tmp_path / "cache").exists()


def test_without_a_writable_folder_the_loop_still_runs(tmp_path: Path, environment: dict[str, str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(before="import pomdp.cache_folder as c; c._bases = lambda: iter(())"))
    assert run(program, environment) == ["27", "", "0\n"]
    assert not list(tmp_path.rglob("*.nbc"))


def test_the_folder_changes_with_every_file_that_is_compiled_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    loop, other = tmp_path / "inner" / "loop.py", tmp_path / "other.py"
    loop.write_text("from pomdp.compiled import compiled\n")
    other.write_text("x = 1\n")
    before = sources_hash.__wrapped__(tmp_path)
    other.write_text("x = 2\n")
    assert sources_hash.__wrapped__(tmp_path) == before
    loop.write_text("from pomdp.compiled import compiled\n\n")
    assert sources_hash.__wrapped__(tmp_path) != before
