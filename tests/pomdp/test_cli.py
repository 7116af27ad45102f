"""Commands `solve`, `feedback`, `check`: their JSON, their exit codes, and one line for bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pomdp.cli
from experiments.__main__ import main

TIGER = """discount: 0.95
values: reward
states: left right
actions: listen open-left open-right
observations: hear-left hear-right
T: listen identity
T: open-left uniform
T: open-right uniform
O: listen
0.85 0.15
0.15 0.85
O: open-left uniform
O: open-right uniform
R: listen : * : * : * -1
R: open-left : left : * : * -100
R: open-left : right : * : * 10
R: open-right : left : * : * 10
R: open-right : right : * : * -100
"""
NO_DISCOUNT = TIGER.replace("discount: 0.95\n", "")
UNDISCOUNTED = TIGER.replace("discount: 0.95", "discount: 1")
THREE = ["--horizon", "3", "--discount", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A working folder with three models; solved models are kept in a cache of its own."""
    for name, text in (("tiger", TIGER), ("bare", NO_DISCOUNT), ("one", UNDISCOUNTED)):
        (tmp_path / f"{name}.pomdp").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pomdp.bounds.solved_before.cache_folder", lambda part: None)
    return tmp_path


@pytest.fixture
def ask(folder, capfd):
    """Run a command; gives its exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def answer(ask, *arguments: str) -> dict:
    """The JSON of a command that must succeed and print nothing else."""
    code, out, err = ask(*arguments, "--json")
    assert (code, err) == (0, "") and out.count("\n") == 1
    return json.loads(out)


def is_interval(entry: object) -> bool:
    return isinstance(entry, dict) and list(entry) == ["lower", "upper"] and entry["lower"] <= entry["upper"]


# ---- what is printed


def test_solve_answers_in_json(ask):
    found = answer(ask, "solve", "tiger.pomdp", *THREE, "--gap", "1e-6")
    assert found["model"] == "tiger.pomdp" and (found["discount"], found["horizon"]) == (1.0, 3)
    assert is_interval(found["optimal"]) and found["optimal"]["lower"] <= 2.72 <= found["optimal"]["upper"]
    assert found["optimal"]["upper"] - found["optimal"]["lower"] < 2e-6
    assert found["seconds"] >= 0 and found["certified"] is True and found["ended"] == "gap"


def test_feedback_answers_in_json(ask):
    found = answer(ask, "feedback", "tiger.pomdp", *THREE, "--gap", "1e-6")
    assert (found["model"], found["discount"], found["horizon"]) == ("tiger.pomdp", 1.0, 3)
    for name, value in (("optimal", 2.72), ("open_loop", -3.0), ("value_of_feedback", 5.72)):
        assert is_interval(found[name])
        assert found[name]["lower"] <= value <= found[name]["upper"] < value + 1e-5
    assert found["seconds"] >= 0 and found["certified"] is True
    assert found["plan"] == {"prefix": ["listen"] * 3, "cycle": []}


def test_feedback_answers_for_the_workflow_that_branches_at_named_observations(ask):
    repair = ["feedback", "library:repo_repair", "--gap", "1e-6"]
    found = answer(ask, *repair, "--branch-on", "fails-in-0, fails-in-1")
    assert is_interval(found["workflow"])
    assert found["workflow"]["lower"] <= 0.4 <= found["workflow"]["upper"] < 0.40001
    assert found["ended"]["workflow"] == "gap" and found["open_loop"]["lower"] <= 0.2
    assert "workflow" not in answer(ask, *repair)
    code, out, _ = ask(*repair, "--branch-on", "fails-in-0")
    assert code == 0 and "  W_N, on fails-in-0 " in out


@pytest.mark.parametrize(("names", "same"), [("", "open_loop"), ("hear-left", "optimal")])
def test_branching_at_nothing_is_the_open_loop_and_at_one_of_two_the_closed(ask, names, same):
    found = answer(ask, "feedback", "tiger.pomdp", *THREE, "--gap", "1e-6", "--branch-on", names)
    assert found["workflow"]["lower"] <= found[same]["upper"] + 1e-12
    assert found[same]["lower"] <= found["workflow"]["upper"] + 1e-12


def test_an_unknown_observation_is_refused_with_near_names_before_any_work(ask, monkeypatch):
    monkeypatch.setattr("pomdp.bounds.feedback", None)
    code, out, err = ask("feedback", "tiger.pomdp", "--branch-on", "hear-lef")
    assert (code, out) == (2, "") and "hear-lef" in err and "hear-left" in err and err.count("\n") == 1


def test_a_horizon_keeps_the_files_discount(ask):
    found = answer(ask, "solve", "tiger.pomdp", "--horizon", "3", "--gap", "1e-6")
    assert found["discount"] == 0.95
    assert found["optimal"]["lower"] <= 2.3098 <= found["optimal"]["upper"] < 2.30981
    assert answer(ask, "solve", "bare.pomdp", "--horizon", "3")["discount"] == 1.0


def test_a_discount_given_is_the_one_taken(ask):
    found = answer(ask, "solve", "tiger.pomdp", "--discount", "0", "--gap", "1e-9")
    assert found["discount"] == 0.0 and found["horizon"] is None
    assert found["optimal"]["lower"] <= -1.0 <= found["optimal"]["upper"]


def test_models_of_the_library_have_names(ask):
    found = answer(ask, "solve", "library:tiger", *THREE)
    assert (
        found["model"] == "library:tiger" and found["optimal"]["lower"] <= 2.72 <= found["optimal"]["upper"]
    )


def test_a_person_sees_a_table(ask):
    code, out, err = ask("feedback", "tiger.pomdp", *THREE)
    assert code == 0 and err == ""
    assert out.startswith("tiger.pomdp   discount 1, horizon 3\n")
    for words in ("V*, best closed loop", "W, best open loop", "V_f = V* - W", "certified; gap reached"):
        assert words in out


# ---- certificates


def test_a_certificate_is_written_and_checked(ask, folder):
    answer(ask, "solve", "tiger.pomdp", *THREE, "--certificate", "c.json")
    found = answer(ask, "check", "c.json", "tiger.pomdp")
    assert found["valid"] is True and found["fault"] is None
    assert (found["quantity"], found["discount"], found["horizon"]) == ("optimal", 1.0, 3)
    assert is_interval(found["claim"]) and found["claim"]["lower"] <= 2.72 <= found["claim"]["upper"]
    code, out, err = ask("check", "c.json", "tiger.pomdp")
    assert (
        code == 0
        and err == ""
        and out.startswith("valid: V* of tiger.pomdp at discount 1, horizon 3 is in [2.7")
    )


def test_feedback_writes_both_certificates(ask, folder):
    answer(ask, "feedback", "tiger.pomdp", *THREE, "--certificate", "c.json")
    assert answer(ask, "check", "c.json", "tiger.pomdp")["quantity"] == "optimal"
    assert answer(ask, "check", "c.open-loop.json", "tiger.pomdp")["quantity"] == "open_loop"


@pytest.mark.parametrize("end", ["lower", "upper"])
def test_a_false_claim_is_found_and_the_exit_code_says_so(ask, folder, end):
    ask("solve", "tiger.pomdp", *THREE, "--certificate", "c.json")
    data = json.loads(Path("c.json").read_text())
    data[end]["claim"] = "2.8" if end == "lower" else "2.6"
    Path("c.json").write_text(json.dumps(data))
    code, out, err = ask("check", "c.json", "tiger.pomdp")
    assert (code, err) == (1, "") and out.startswith(f"not valid for tiger.pomdp: {end} end: the claim is 0.")
    code, out, err = ask("check", "c.json", "tiger.pomdp", "--json")
    found = json.loads(out)
    assert code == 1 and found["valid"] is False and f"{end} end" in found["fault"] and found["claim"] is None


def test_a_certificate_of_another_model_is_not_valid(ask, folder):
    ask("solve", "tiger.pomdp", *THREE, "--certificate", "c.json")
    Path("worse.pomdp").write_text(TIGER.replace("0.85 0.15", "0.8 0.2").replace("0.15 0.85", "0.2 0.8"))
    assert ask("check", "c.json", "worse.pomdp")[0] == 1
    assert ask("check", "c.json", "library:tmaze-5")[0] in (1, 2)


@pytest.mark.parametrize(
    ("end", "claim"), [("lower", "-1" + "0" * 300), ("upper", "1" + "0" * 300), ("upper", f"{10**40}/3")]
)
def test_a_weak_but_true_claim_is_valid(ask, folder, end, claim):
    ask("solve", "tiger.pomdp", *THREE, "--certificate", "c.json")
    data = json.loads(Path("c.json").read_text())
    data[end]["claim"] = claim
    Path("c.json").write_text(json.dumps(data))
    assert answer(ask, "check", "c.json", "tiger.pomdp")["valid"] is True


# ---- bad input

SOLVE = ["solve", "tiger.pomdp"]
BAD = {
    "no such file": ["solve", "absent.pomdp"],
    "a folder": ["solve", "."],
    "no such task": ["solve", "library:absent"],
    "no task": ["solve", "library:"],
    "no model": ["solve"],
    "not a model": ["solve", "rubbish.pomdp"],
    "discount above 1": [*SOLVE, "--discount", "1.5"],
    "negative discount": [*SOLVE, "--discount=-0.5"],
    "discount nan": [*SOLVE, "--discount", "nan"],
    "discount a word": [*SOLVE, "--discount", "high"],
    "discount 1 for ever": [*SOLVE, "--discount", "1"],
    "discount 1 in the file": ["solve", "one.pomdp"],
    "no discount": ["feedback", "bare.pomdp"],
    "horizon 0": [*SOLVE, "--horizon", "0"],
    "negative horizon": [*SOLVE, "--horizon", "-3"],
    "absurd horizon": [*SOLVE, "--horizon", "1000000000000"],
    "horizon a fraction": [*SOLVE, "--horizon", "2.5"],
    "negative gap": [*SOLVE, "--gap=-1e-3"],
    "gap nan": [*SOLVE, "--gap", "nan"],
    "gap infinite": [*SOLVE, "--gap", "inf"],
    "gap a word": [*SOLVE, "--gap", "small"],
    "time 0": [*SOLVE, "--time", "0"],
    "time nan": [*SOLVE, "--time", "nan"],
    "negative time": [*SOLVE, "--time=-1"],
    "no folder for the certificate": [*SOLVE, "--certificate", "absent/c.json"],
    "a folder for the certificate": [*SOLVE, "--certificate", "."],
    "feedback without a folder": ["feedback", "tiger.pomdp", "--certificate", "absent/c.json"],
    "branching at nothing known": ["feedback", "tiger.pomdp", "--branch-on", "hear-nothing"],
    "unknown option": [*SOLVE, "--speed", "3"],
    "check without a file": ["check", "absent.json", "tiger.pomdp"],
    "check of a folder": ["check", ".", "tiger.pomdp"],
    "check of a model": ["check", "tiger.pomdp", "tiger.pomdp"],
    "check of bytes": ["check", "rubbish.pomdp", "tiger.pomdp"],
    "check of other json": ["check", "other.json", "tiger.pomdp"],
    "check against nothing": ["check", "other.json", "absent.pomdp"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_nothing_else(ask, folder, arguments):
    (folder / "rubbish.pomdp").write_bytes(b"\xff\x00\xfe states")
    (folder / "other.json").write_text('{"format": "hpomdp certificate 1", "checksum": 7}')
    before = sorted(os.listdir(folder))
    code, out, err = ask(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n") and len(err) < 400
    assert sorted(os.listdir(folder)) == before


def test_a_defect_keeps_its_traceback(folder, monkeypatch):
    """A bare ValueError is ours to mend, not the user's."""

    def broken(text: str) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(pomdp.cli, "load_model", broken)
    with pytest.raises(ValueError, match="a defect"):
        main(["solve", "tiger.pomdp"])


# ---- processes


def start(*arguments: str) -> subprocess.Popen:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "experiments", *arguments]
    root = Path(pomdp.cli.__file__).parents[1]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_in_mid_search_prints_the_best_interval_so_far(benchmarks, tmp_path):
    """Sent again until the search has begun: what comes earlier ends the process without an answer."""
    file, certificate = benchmarks / "hallway.pomdp", tmp_path / "c.json"
    wait = 8.0
    for _ in range(4):
        process = start(
            "solve",
            str(file),
            "--gap",
            "0",
            "--time",
            "60",
            "--json",
            "--no-cache",
            "--certificate",
            str(certificate),
        )
        try:
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        if out:
            break
        assert process.returncode == 130 and err == "interrupted\n"
        wait *= 2
    found = json.loads(out)
    assert process.returncode == 130 and err == "" and found["ended"] == "interrupt"
    assert is_interval(found["optimal"])
    assert found["optimal"]["lower"] <= 1.23 and found["optimal"]["upper"] >= 0.95
    assert 0 < found["seconds"] < 60
    assert certificate.exists() == found["certified"]
