"""kill -9 at every point of a run with two emails and two questions: one email an approval, and no answer lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("kill_points.py")
BODIES = {"c1": "First mail", "c2": "Second mail"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("killed")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder)], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_points_cover_every_node_checkpoint_commit_and_pause(runs: list[dict[str, Any]]) -> None:
    points = {run["point"] for run in runs}
    nodes = ("router", "agent", "tools", "guard", "human_review", "send")
    assert {f"{side} {node}" for side in ("before", "after") for node in nodes} <= points
    assert {"before the outbox commits", "after the outbox committed"} <= points
    assert {"before the answers commits", "after the answers committed", "while paused"} <= points
    assert {"before checkpoint", "after checkpoint", "before writes", "after writes", "none"} <= points
    assert len(runs) > 80


def test_every_killed_run_comes_to_its_end(runs: list[dict[str, Any]]) -> None:
    assert {run["kind"] for run in runs} == {"answer"}


def test_one_email_for_each_approved_call_and_none_for_another(runs: list[dict[str, Any]]) -> None:
    for run in runs:
        verdicts = dict(run["answers"])
        approved = [body for call, body in BODIES.items() if verdicts[call] == "approve"]
        assert run["sent"] == approved, run


def test_each_question_has_one_answer_and_acts_on_its_own(runs: list[dict[str, Any]]) -> None:
    for run in runs:
        assert sorted(call for call, _ in run["answers"]) == ["c1", "c2"], run
        for call, verdict in run["answers"]:
            done = {"approve": "approved", "reject": "rejected"}[verdict]
            assert run["actions"].count(f"{done}:{call}") == 1, run
        assert len([action for action in run["actions"] if ":" in action]) == 2 + len(run["sent"]), run


def test_an_answer_that_was_written_down_when_the_process_died_is_kept(runs: list[dict[str, Any]]) -> None:
    for run in runs:
        assert run["answers"][: len(run["before"])] == run["before"], run
    assert any(run["before"] == [["c1", "approve"]] for run in runs)
    assert any(run["before"] == [] and run["answers"][0] == ["c1", "reject"] for run in runs)


def test_no_step_stands_twice_in_the_record(runs: list[dict[str, Any]]) -> None:
    for run in runs:
        assert run["trace"].count("router") == 1 and run["trace"].count("human_review") == 2, run
