"""SIGKILL at every write and inside every tool: nothing recorded is lost, nothing done twice, the run is the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harnesses.runtime.resume import UNKNOWN

ROOT = Path(__file__).resolve().parents[3]
WORKER = Path(__file__).with_name("kill_worker.py")
EFFECTS = sorted(
    ["send:first", "book:7", "send:first", "wipe:a.py"]
)  # two calls with one text are two messages


def killed(folder: Path, case: str) -> Any:
    command = [sys.executable, str(WORKER), str(folder), case]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_run_killed_at_any_moment_ends_as_if_uninterrupted(tmp_path: Path) -> None:
    found = killed(tmp_path, "right")
    whole, runs = found["whole"], found["killed"]
    print(f"{len(runs)} kill points: {whole['met']}")
    assert whole["effects"] == EFFECTS and len(runs) > 100
    assert {"before ended", "within ended", "after ended", "send start", "send end"} <= whole["met"].keys()
    unknown = [run for run in runs if any(result[2] == UNKNOWN for result in run["trajectory"][1])]
    for run in runs:
        assert not run["lost"], run["where"]
        if run not in unknown:
            assert run["effects"] == EFFECTS, run["where"]
            assert run["trajectory"] == whole["trajectory"], run["where"]
            assert run["contexts"] == whole["contexts"], run["where"]
    # Only a tool without key and recovery is ever unknown, and it is not called twice.
    names = {call[0]: call[1] for said in whole["trajectory"][0] for call in said[2]}
    for run in unknown:
        assert {names[r[0]] for r in run["trajectory"][1] if r[2] == UNKNOWN} == {"wipe"}
        assert run["effects"].count("wipe:a.py") <= 1
    # From the record of its start on, up to that of its end.
    assert {run["where"] for run in unknown} == {
        "after started", "wipe start", "wipe end", "before ended", "within ended"
    }  # fmt: skip


@pytest.mark.parametrize(("case", "twice"), [("no keys", "send:first"), ("no recovery", "book:7")])
def test_a_mutant_is_seen_to_do_something_twice(case: str, twice: str, tmp_path: Path) -> None:
    found = killed(tmp_path, case)
    assert found["whole"]["effects"] == EFFECTS
    doubled = [run for run in found["killed"] if run["effects"].count(twice) > EFFECTS.count(twice)]
    assert {run["where"] for run in doubled} == {
        f"{twice.partition(':')[0]} end", "before ended", "within ended"
    }  # fmt: skip
