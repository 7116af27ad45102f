"""The command `simulate`: what it prints, and what it refuses before anything runs."""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pomdp.cli_simulate import add_simulate
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.policy import Controller
from pomdp.rollout import batch

# By name, because the package also has a function `simulate`.
MODULE = import_module("pomdp.simulate")

TIGER = ["library:tiger", "--steps", "20", "--episodes", "2e4"]
# Listening costs 1, a door at random 45 on average.
RANDOM_REWARD = -(1 + 45 + 45) / 3


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_simulate(parser.add_subparsers())
    args = parser.parse_args(["simulate", *arguments])
    return args.handler(args)


def test_json_has_the_estimate_beside_the_exact_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*TIGER, "--policy", "random", "--seed", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exact"] == pytest.approx(RANDOM_REWARD / 0.05)
    cut = RANDOM_REWARD * (1 - 0.95**20) / 0.05
    assert abs(found["mean"] - cut) < 4 * found["standard_error"]
    assert found["truncation"] == pytest.approx(100 * 0.95**20 / 0.05)
    assert {k: found[k] for k in ("episodes", "steps", "seed", "interrupted", "horizon", "discount")} == {
        "episodes": 20_000, "steps": 20, "seed": 3, "interrupted": False, "horizon": None, "discount": 0.95,
    }  # fmt: skip


def test_the_table_names_mean_error_bound_and_exact_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*TIGER, "--policy", "random", "--seed", "3") == 0
    shown = capsys.readouterr().out
    for part in ("mean", "standard error", "cut off  at most 717", "exact J  -606.66667", "seed 3"):
        assert part in shown


def test_steps_are_the_horizon_where_the_discount_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*TIGER, "--policy", "random", "--discount", "1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exact"] == pytest.approx(20 * RANDOM_REWARD)
    assert (found["truncation"], found["horizon"]) == (0.0, 20)
    assert abs(found["mean"] - found["exact"]) < 4 * found["standard_error"]


def test_a_policy_file_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "listen.json"
    file.write_text('{"kind": "open_loop", "prefix": [], "cycle": ["listen"]}')
    assert run("library:tiger", "--policy", str(file), "--episodes", "10", "--horizon", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mean"] == pytest.approx(found["exact"]) == pytest.approx(-(1 + 0.95 + 0.95**2))
    assert found["standard_error"] == 0.0


def test_greedy_runs_the_controller_of_the_solver(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}

    def solve(model: POMDP, criterion: Criterion, **options: Any) -> SimpleNamespace:
        asked.update(options, criterion=criterion)
        listen = Controller(np.eye(3)[[0]], np.zeros((1, 3, 2), dtype=np.int64), 0)
        return SimpleNamespace(ended="gap", controller=listen)

    monkeypatch.setattr("pomdp.bounds.solve", solve)
    arguments = ("--policy", "greedy", "--discount", "1", "--time", "2", "--json")
    assert run(*TIGER, *arguments) == 0
    assert json.loads(capsys.readouterr().out)["mean"] == -20
    assert asked["time_limit"] == 2 and asked["criterion"] == Criterion(Fraction(1), 20)


def test_an_interrupt_prints_what_is_finished(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def interrupted(*arguments: Any, **sizes: int) -> Any:
        calls.append(sizes)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return batch(*arguments, **sizes)

    monkeypatch.setattr(MODULE, "batch", interrupted)
    monkeypatch.setattr(MODULE, "BATCH_STEPS", 20 * 1024)
    assert run(*TIGER, "--policy", "random", "--json") == 130
    found = json.loads(capsys.readouterr().out)
    assert found["interrupted"] and found["episodes"] in (1024, 2048)


WRONG = {
    "no_such_file": ("no_such_file", "--policy", "random"),
    "no/such": ("library:tiger", "--policy", "no/such"),
    "0 episodes": ("library:tiger", "--policy", "random", "--episodes", "0"),
    "seed 4294967296": ("library:tiger", "--policy", "random", "--seed", "4294967296"),
    "0 steps": ("library:tiger", "--policy", "random", "--steps", "0"),
    "--horizon N or --steps N": ("library:tiger", "--policy", "random", "--discount", "1"),
    "horizon 0": ("library:tiger", "--policy", "random", "--horizon", "0"),
    "discount 3/2": ("library:tiger", "--policy", "random", "--discount", "1.5"),
    "discount: 'x'": ("library:tiger", "--policy", "random", "--discount", "x"),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_input_is_refused_before_anything_runs(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "simulate", None)
    with pytest.raises((ModelError, OSError), match=what):
        run(*WRONG[what])


@pytest.mark.parametrize("value", ["1.5", "x", "inf", "nan", "1e300"])
def test_counts_are_whole_numbers(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run("library:tiger", "--policy", "random", "--episodes", value)
    assert stop.value.code == 2 and "--episodes" in capsys.readouterr().err


def test_a_policy_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="not a text file"):
        run("library:tiger", "--policy", str(file))
