"""Killed by the system at every write and inside every tool, a run on LangGraph resumes as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harnesses.runtime.resume import UNKNOWN

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CHAINS = 8  # runs killed four times, at random


def runs_of(folder: Path, case: str, chains: int, *only: str) -> tuple[Any, list[Any]]:
    """The uninterrupted run, and one for every moment of its hook, killed there and resumed in other processes."""
    command = [sys.executable, str(HERE / "crash_worker.py"), str(folder), case, str(chains), *only]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    whole, *killed = [json.loads(line) for line in done.stdout.splitlines()]
    return whole, killed


def effects(run: Any) -> Counter[str]:
    return Counter(run["effects"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Any]]:
    return runs_of(tmp_path_factory.mktemp("right"), "right", CHAINS)


def test_every_write_and_every_tool_is_a_moment_of_death(runs: Any) -> None:
    whole, killed = runs
    met = Counter(whole["met"])
    print(f"\n{met.total()} moments, each killed once: {dict(met)}; and {CHAINS} chains")
    assert {"commit records", "commit checkpoints", "commit writes"} <= set(met)
    assert met["commit records"] >= 30 and met["commit checkpoints"] >= 10
    assert {f"{tool} {moment}" for tool in ("look", "pay", "send") for moment in ("start", "end")} <= set(met)
    assert len(killed) == met.total() + CHAINS


def test_no_effect_happens_twice_and_nothing_recorded_is_lost(runs: Any) -> None:
    whole, killed = runs
    assert effects(whole) == {"pay:3": 1, "pay:4": 1, "send:hello": 1}
    for run in killed:
        assert effects(run) <= effects(whole), run["kills"]
        assert effects(run)["pay:3"] == effects(run)["pay:4"] == 1, run["kills"]
        assert run["lost"] == 0, run["kills"]


def test_the_trajectory_is_that_of_the_uninterrupted_run(runs: Any) -> None:
    """But where it died between a call's start and its end, and only the tool could know what came of it."""
    whole, killed = runs
    unknown = 0
    for run in killed:
        if any(UNKNOWN == content for _, _, content in run["trajectory"][1]):
            unknown += 1
            results = {call: (status, content) for call, status, content in run["trajectory"][1]}
            assert results.pop("c6") == ("error", UNKNOWN)
            assert results == {c: (s, t) for c, s, t in whole["trajectory"][1] if c != "c6"}
            assert run["trajectory"][2] == "completed"
        else:
            assert run["trajectory"] == whole["trajectory"], run["kills"]
            assert run["contexts"] == whole["contexts"], run["kills"]
            assert effects(run) == effects(whole), run["kills"]
    # The start of the call of `send`, its end, and the write of its record.
    assert sum(UNKNOWN in str(run["trajectory"]) for run in killed if len(run["kills"]) == 1) == 3
    print(f"\n{len(killed)} runs; outcome unknown in {unknown}")


def test_no_recorded_reply_is_asked_for_again(runs: Any) -> None:
    whole, killed = runs
    assert whole["asked"] == ["0", "1", "2", "3", "4"]
    again = 0
    for run in killed:
        if len(run["kills"]) == 1 and run["asked"] != whole["asked"]:
            again += 1
            where = whole["met"][run["kills"][0] - 1]
            assert len(run["asked"]) == 6 and where in ("model end", "commit records"), run["kills"]
    assert again == 10  # killed after each of five replies was given, and at the write of its record


@pytest.mark.parametrize(
    ("mutant", "where"),
    [("no journal", "commit writes"), ("no journal", "send end"), ("no keys", "pay end")],
)
def test_mutants_do_something_twice(mutant: str, where: str, tmp_path: Path) -> None:
    whole, killed = runs_of(tmp_path, mutant, 0, where)
    twice = sum(max(effects(run).values()) > 1 for run in killed)
    print(f"\n{mutant}: {twice} of {len(killed)} kills at {where} do something twice")
    assert max(effects(whole).values()) == 1 and twice > 0
