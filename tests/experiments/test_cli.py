"""The commands of the studies: options before and after the study's name, exit codes, one-line errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import experiments.cli
from experiments.__main__ import main

COIN = str(Path(__file__).with_name("coin_study.py"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hpomdp(*words: str) -> int:
    return main(words, [experiments.cli.add_commands])


def test_run_status_figures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hpomdp("status", COIN) == 0
    assert capsys.readouterr().out == "coin_study (small): 0 done, 12 missing, 0 failed\n"
    assert (
        hpomdp("run", "--json", COIN, "--items", "4,5,6", "--seeds", "1", "--fail", "idle", "--jobs", "2")
        == 1
    )
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["items"] == [4, 5, 6] and found["records"]["done"] == 6
    assert {row["arm"] for row in found["tables"]["coins"]} == {"biased", "fair"}
    assert len(found["failed"]) == 3 and found["folder"] == "runs/coin_study"
    assert hpomdp("status", COIN, "--json") == 0
    (status,) = json.loads(capsys.readouterr().out)
    assert (status["done"], status["missing"], status["failed"]) == (6, 0, 3)
    assert status["failures"][0] == (
        "{'arm': 'idle', 'fail': 'idle', 'flips': 20, 'item': 4, 'pause': 0.0, 'side': '', 'skip': ''}: "
        "RuntimeError: the coin rolled"
    )
    assert hpomdp("figures", COIN, "--width", "3.41", "--format", "svg") == 0
    assert capsys.readouterr().out == "runs/coin_study/figures/coin_study-3.41.svg\n"
    assert (here / "runs/coin_study/figures/coin_study-3.41.svg").is_file()
    assert (here / "runs/coin_study/figures/coin_study.pdf").is_file()


def test_an_interrupted_run_is_seen_in_the_status(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hpomdp("run", COIN, "--seeds", "1", "--jobs", "2") == 0
    next((here / "runs/coin_study/records").rglob("*.json")).unlink()
    capsys.readouterr()
    assert hpomdp("status", COIN) == 0
    assert capsys.readouterr().out == "coin_study (small): 5 done, 1 missing, 0 failed\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "nothing"), "no study 'nothing'"),
        (("run", COIN, "--preset", "huge"), "has no preset 'huge'; it has small, full"),
        (("run", COIN, "--flips", "many"), "argument --flips: invalid int value: 'many'"),
        (("run", COIN, "--items", "1,x"), "argument --items"),
        (("run", COIN, "--speed", "3"), "unrecognized arguments: --speed 3"),
        (("run", COIN, "--jobs", "0"), "--jobs is 0"),
        (("run", COIN, "--seeds", "0"), "at least one seed"),
        (("figures", COIN), "no tables in runs/coin_study or results/coin_study"),
        (("figures", COIN, "--from", "nowhere"), "no tables in nowhere"),
        (("status", "nothing"), "no study 'nothing'"),
        (("reproduce", "--study", "nothing"), "no study 'nothing'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert hpomdp(*words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert message in captured.err
    assert list(here.iterdir()) == []


def test_reproduce_leaves_a_foreign_folder_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "file").write_text("x")
    assert hpomdp("reproduce", "--study", COIN, "--out", "mine") == 2
    assert "was not made by hpomdp reproduce" in capsys.readouterr().err
    assert [path.name for path in (here / "mine").iterdir()] == ["file"]


def test_reproduce_without_results_is_a_finding(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hpomdp("reproduce", "--study", COIN, "--jobs", "2") == 1
    assert "no committed results" in capsys.readouterr().out
    assert hpomdp("reproduce", "--study", COIN, "--jobs", "2", "--update") == 0
    assert (here / "results/coin_study/manifest.json").is_file()


def test_help_of_a_study_lists_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        hpomdp("run", COIN, "--help")
    assert stop.value.code == 0
    output = capsys.readouterr().out
    assert "--flips" in output and "--loud, --no-loud" in output and "Does a bias change" in output
