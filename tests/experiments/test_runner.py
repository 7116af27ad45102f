"""The runner computes every cell once, survives kills and Ctrl-C, checks that arms changed something."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.records import read_records
from experiments.runner import MARKER, Run, applied, frame_of, not_applied, run_study, tasks_of
from experiments.sources import source_hash
from experiments.study import Study, StudyError, load_study

ROOT = Path(__file__).resolve().parents[2]
COIN = Path(__file__).with_name("coin_study.py")
PROGRAM = """
import argparse, sys
from experiments.cli import add_commands
parser = argparse.ArgumentParser()
add_commands(parser.add_subparsers())
arguments = parser.parse_args()
sys.exit(arguments.handler(arguments))
"""


@pytest.fixture(scope="module")
def coin() -> Study:
    return load_study(str(COIN))


def run_coin(folder: Path, reference: Path = COIN, jobs: int = 2, **changes: object) -> Run:
    """Run the coin study in `folder` with a side file beside it; keyword `options` go to run_study."""
    options: Any = changes.pop("options", {})
    small = load_study(str(COIN)).PRESETS["small"]
    parameters = replace(small, side=str(folder.parent / "side"), **changes)
    return run_study(str(reference), parameters, preset="small", folder=folder, jobs=jobs, **options)


def calls(folder: Path) -> Counter[str]:
    side = folder.parent / "side"
    return Counter(side.read_text().splitlines()) if side.exists() else Counter()


def test_every_cell_runs_once_with_every_seed_and_not_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = run_coin(folder)
    wanted = {
        f"{arm} {item} {seed}" for arm in ("fair", "idle", "biased") for item in (1, 2) for seed in (0, 1)
    }
    assert calls(folder) == Counter(wanted)
    assert first.computed == 12 and len(first.with_status("done")) == 12
    again = run_coin(folder)
    assert again.computed == 0 and calls(folder) == Counter(wanted)
    assert again.records == first.records
    assert run_coin(folder, options={"seeds": 3}).computed == 6
    assert run_coin(folder, options={"fresh": True}).computed == 12


def test_records_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    one = run_coin(tmp_path / "run", jobs=1)
    two = run_coin(tmp_path / "run", jobs=2, options={"fresh": True})
    assert two.computed == 12
    for left, right in zip(one.records, two.records, strict=True):
        assert (left.key, left.rows[0]["share_one"]) == (right.key, right.rows[0]["share_one"])
    processes = {record.rows[0]["process"] for record in (*one.records, *two.records)}
    assert os.getpid() not in processes


def test_failures_are_records_and_run_again_only_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = run_coin(folder, fail="idle")
    failed = run.with_status("failed")
    assert len(failed) == 4 and len(run.with_status("done")) == 8
    assert failed[0].message is not None and failed[0].message.startswith("RuntimeError: the coin rolled")
    assert set(frame_of(run)["arm"]) == {"fair", "biased"}
    assert run_coin(folder, fail="idle").computed == 0
    assert run_coin(folder, fail="idle", options={"retry": True}).computed == 4


def test_skipped_cells_are_tried_at_every_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = run_coin(folder, skip="idle")
    assert [record.message for record in run.with_status("skipped")] == [
        "no such coin; put one into the folder coins"
    ] * 4
    assert run_coin(folder, skip="idle").computed == 4


def test_a_study_of_which_nothing_finished_says_why(tmp_path: Path) -> None:
    run = run_coin(tmp_path / "run", fail="idle", options={"seeds": 1})
    only = replace(run, records=tuple(run.with_status("failed")))
    with pytest.raises(StudyError, match="the coin rolled"):
        frame_of(only)


def test_a_value_that_no_record_can_hold_is_a_failure(tmp_path: Path) -> None:
    study = tmp_path / "nan_study.py"
    study.write_text(COIN.read_text().replace('"share_one": heads', '"share_one": float("nan") * heads'))
    run = run_coin(tmp_path / "run", study, options={"seeds": 1})
    assert {record.status for record in run.records} == {"failed"}
    assert "row 0['share_one'] is nan" in str(run.records[0].message)


def test_records_of_changed_code_are_not_used_unless_asked(tmp_path: Path) -> None:
    folder, study = tmp_path / "run", tmp_path / "coin_study.py"
    text = COIN.read_text()
    study.write_text(text)
    old = run_coin(folder, study)
    study.write_text(text.replace('"biased": 0.8', '"biased": 0.9'))
    mixed = run_coin(folder, study, options={"mixed": True})
    assert mixed.computed == 0 and {record.source for record in mixed.records} == {old.source}
    new = run_coin(folder, study)
    assert new.source != old.source and new.computed == 12 and new.elsewhere == 12
    assert {record.source for record in new.records} == {new.source}
    assert max(frame_of(new)["share_one"]) > max(frame_of(old)["share_one"])
    study.write_text(text)
    assert run_coin(folder, study).computed == 0


def test_an_arm_equal_to_its_baseline_is_not_applied(tmp_path: Path) -> None:
    run = run_coin(tmp_path / "run")
    frame = frame_of(run)
    assert set(frame.loc[frame["arm"] == "biased", "applied"]) == {True}
    assert set(frame.loc[frame["arm"] == "idle", "applied"]) == {False}
    assert frame.loc[frame["arm"] == "fair", "applied"].isna().all()
    assert not_applied(run.study, run.records) == [
        "not applied: arm=idle equals its baseline in 4 of 4 cells"
    ]


def test_an_arm_without_a_finished_baseline_is_unknown(tmp_path: Path) -> None:
    run = run_coin(tmp_path / "run", fail="fair")
    assert set(applied(run.study, run.records).values()) == {None}


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / "run"
    folder.mkdir()
    with (folder / MARKER).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StudyError, match="in use by another run"):
            run_coin(folder)
    assert calls(folder) == Counter()


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    side = folder.parent / "side"
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        "run",
        str(COIN),
        "--out",
        str(folder),
        "--side",
        str(side),
        *words,
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def wait_for_records(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while len(list(folder.glob("records/*/*.json"))) < count and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_kill_and_resume_lose_no_finished_record_and_repeat_none(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ("--pause", "0.3", "--items", "1,2,3,4", "--jobs", "2")
    process = start(folder, *words)
    wait_for_records(folder, 5, process)
    # The main process alone, as an out-of-memory killer would.
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1.5)
    source = source_hash(COIN)
    kept = read_records(folder, source)
    begun = calls(folder)
    assert 5 <= len(kept) < 24 and max(begun.values()) == 1
    assert len(begun) - len(kept) <= 4
    finished = {f"{item.cell['arm']} {item.cell['item']} {item.seed}" for item in kept.values()}
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("records/*/*.json")}

    resumed = start(folder, *words)
    output, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
    assert f"24 cells, {24 - len(kept)} computed now" in output
    counted = calls(folder)
    assert len(counted) == 24
    assert all(counted[name] == 1 for name in finished)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert len(read_records(folder, source)) == 24


def test_workers_end_with_a_killed_parent_and_leave_their_cells(tmp_path: Path) -> None:
    """Otherwise a resumed run would compute the same cells beside them."""
    folder = tmp_path / "run"
    process = start(folder, "--pause", "6", "--seeds", "1", "--jobs", "2")
    deadline = time.monotonic() + 60
    while len(calls(folder)) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(7.5)
    assert len(calls(folder)) == 2
    assert list(folder.glob("records/*/*.json")) == []


def test_ctrl_c_ends_with_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ("--pause", "0.3", "--jobs", "2")
    process = start(folder, *words)
    wait_for_records(folder, 3, process)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.fullmatch(r"interrupted: \d+ of 12 records are kept; the same command goes on\n", errors)
    assert output == ""
    kept = len(read_records(folder, source_hash(COIN)))
    assert 3 <= kept < 12
    resumed = start(folder, *words)
    output, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
    assert f"12 cells, {12 - kept} computed now" in output


def test_seeds_vary_fastest_and_keys_are_distinct(coin: Study) -> None:
    tasks = tasks_of(coin, coin.PRESETS["small"], [0, 1])
    assert [task.seed for task in tasks[:4]] == [0, 1, 0, 1]
    assert len({task.key for task in tasks}) == len(tasks) == 12
