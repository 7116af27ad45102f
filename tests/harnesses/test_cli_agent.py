"""The command `agent` as a user runs it: real files, real pytest, traces, replays and resumed runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from experiments.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


def agent(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = main(["agent", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def data(capsys: Any, *arguments: str) -> Any:
    code, out, err = agent(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_the_calc_task_is_repaired_by_a_real_run_of_pytest(capsys: Any, tmp_path: Path) -> None:
    found = data(capsys, "run", "calc", "--folder", str(tmp_path / "calc"))
    assert found["reason"] == "completed" and found["results"] == {"ok": 4}
    check = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "calc")]
    assert subprocess.run(check, capture_output=True, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("script", "reason", "results"),
    [
        ("malformed", "completed", {"error": 1, "ok": 4}),
        ("denied", "completed", {"denied": 1, "ok": 4}),
        ("stall", "stalled", {"denied": 1, "ok": 3}),
        ("trimming", "completed", {"ok": 20}),
    ],
)
def test_perturbations_run_in_memory(capsys: Any, script: str, reason: str, results: Any) -> None:
    found = data(capsys, "run", "calc", "--script", script, "--virtual")
    assert (found["reason"], found["results"]) == (reason, results)
    assert (found["dropped_tokens"] > 0) == (script == "trimming") and found["fired"]


def test_a_wide_window_saves_the_answer_that_trimming_loses(capsys: Any) -> None:
    run = ("run", "calc", "--script", "trimming", "--virtual", "--context")
    assert "no longer" in data(capsys, *run, "oldest_first:8000:4")["answer"]
    assert "1111" in data(capsys, *run, "last:30")["answer"]


def test_a_trace_is_replayed_and_its_contexts_recomputed(capsys: Any, tmp_path: Path) -> None:
    trace = str(tmp_path / "run.jsonl")
    ran = data(
        capsys, "run", "calc", "--script", "malformed", "--context", "last:2", "--virtual", "--trace", trace
    )
    again = data(capsys, "replay", trace)
    assert again.pop("contexts_recomputed") == 6 and again == ran
    code, out, _ = agent(capsys, "replay", trace)
    assert code == 0 and "6 contexts recomputed" in out and "missing required argument: content" in out


@pytest.mark.parametrize("kept", [8, 15, 23, 30])
def test_a_run_in_memory_resumes_from_a_prefix(capsys: Any, tmp_path: Path, kept: int) -> None:
    trace = tmp_path / "run.jsonl"
    whole = data(capsys, "run", "calc", "--virtual", "--trace", str(trace))
    lines = trace.read_text().splitlines(keepends=True)
    trace.write_text("".join(lines[:kept]) + lines[kept][:10])
    assert data(capsys, "replay", str(trace))["torn"]
    assert data(capsys, "resume", str(trace)) == whole
    assert data(capsys, "resume", str(trace)) == whole


def test_a_real_run_killed_midway_resumes_in_its_folder(capsys: Any, tmp_path: Path) -> None:
    trace, folder = tmp_path / "run.jsonl", tmp_path / "calc"
    command = [sys.executable, "-m", "experiments", "agent", "run", "calc", "--trace", str(trace)]
    child = subprocess.Popen([*command, "--folder", str(folder)], cwd=ROOT, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while time.monotonic() < end and not (trace.exists() and '"run_tests","arguments"' in trace.read_text()):
        time.sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    found = data(capsys, "resume", str(trace))
    assert found["reason"] == "completed" and found["steps"] == 5
    assert "return a + b" in (folder / "calc.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "cook"], "no task 'cook'"),
        (
            ["run", "calc", "--script", "sing"],
            "no script 'sing'; known: fix, malformed, denied, stall, trimming",
        ),
        (["run", "find", "--script", "fix"], "one script only"),
        (["run", "calc", "--context", "belief_grid:4"], "needs a model of the task"),
        (["run", "calc", "--context", "full"], "full:50"),
        (["run", "calc", "--virtual", "--folder", "x"], "leave --folder out"),
        (["replay", "/nonexistent.jsonl"], "No such file"),
    ],
)
def test_mistakes_are_told_in_one_line(capsys: Any, arguments: list[str], says: str) -> None:
    code, out, err = agent(capsys, *arguments)
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and says in err


def test_a_full_folder_and_a_present_trace_are_refused(capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    assert agent(capsys, "run", "calc", "--folder", str(tmp_path))[0] == 2
    assert agent(capsys, "run", "calc", "--virtual", "--trace", str(tmp_path / "x"))[0] == 2
    assert (tmp_path / "x").read_text() == "mine"


def test_no_folder_is_left_behind(capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data(capsys, "run", "copy")
    assert list(tmp_path.iterdir()) == []
