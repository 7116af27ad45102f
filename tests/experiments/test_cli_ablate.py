"""The command `ablate`: table, JSON, resume, a failed arm, one-line errors before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import experiments.cli
from experiments.__main__ import main

SPEC = """
task = "library:tiger"
horizon = 3
discount = 1
model = "naive"
context = "last:1"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def ablate(*words: str) -> int:
    return main(("ablate", "spec.toml", "--jobs", "1", *words), [experiments.cli.add_commands])


def test_runs_resumes_and_tells_of_failures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vary = ("--vary", "context=last:1,full", "--vary", "control.step_limit=none,9")
    assert ablate(*vary) == 0
    out = capsys.readouterr().out
    assert "baseline, spec itself: context=last:1, control.step_limit=none" in out
    assert "not applied: control.step_limit=9" in out and "exact: no error bar" in out
    (folder,) = (here / "runs").glob("ablate-*")
    assert (folder / "figures/ablation.pdf").is_file() and (folder / "tables/arms.tex").is_file()
    # What a kill leaves: some records whole, one that was never renamed.
    lost = next((folder / "records").rglob("*.json"))
    lost.rename(lost.with_name(".partial-x"))
    assert ablate(*vary, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["computed"] == 1 and len(found["arms"]) == 4 and found["failed"] == []
    assert found["baseline"] == {
        "is_the_spec": True,
        "settings": {"context": "last:1", "control.step_limit": "none"},
    }
    arms = {row["arm"]: row for row in found["arms"]}
    idle, base = arms["control.step_limit=9"], arms["baseline"]
    assert idle["returns"] == base["returns"] and idle["fingerprint"] == base["fingerprint"]
    shown = {row["arm"]: row for row in found["tables"]["arms"]}
    assert shown["control.step_limit=9"]["difference"] is None
    assert found["same_runs"] == ["the same runs: context=full; context=full, control.step_limit=9"]
    assert [row["kind"] for row in found["tables"]["contrasts"]] == ["main effect"] * 2 + ["interaction"]


def test_an_arm_that_fails_is_told_and_the_others_stand(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ablate("--vary", "control.deny=none,sing,listen", "--design", "one-at-a-time") == 1
    out = capsys.readouterr().out
    assert "failed: control.deny=sing: ModelError" in out and "control.deny=listen" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--vary", "context=last:1,nothing:2"), "no context map"),
        (("--vary", "control.stall=none,4-3", "--vary", "noise=1,2"), "'noise' is nothing to vary"),
        (("--vary", "context=last:1, full"), "holds a space"),
        (("--vary", "context=last:1,full", "--seeds", "0"), "repeats is 0"),
        ((), "nothing is varied"),
        (("--design", "leave-one-out"), "the spec has nothing that could be left out"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    if "leave-one-out" in words:
        (here / "spec.toml").write_text(SPEC.replace("last:1", "full"))
    assert ablate(*words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert not (here / "runs").exists()
