"""The command `conform`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.__main__ import main
from harnesses.conformance.served import Served


def conform(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["conform", *words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("name", ["tiger", "tmaze:4", "flip:3", "repo_repair", "ticket_routing", "drift"])
def test_every_library_task_conforms_with_the_defaults(name: str, capsys: Any) -> None:
    code, out, err = conform(capsys, "--task", f"library:{name}", "--episodes", "5", "--json")
    found = json.loads(out)
    assert (code, err, found["episodes"], found["differences"]) == (0, "", 10, 0)
    (cell,) = found["cells"]
    assert cell["steps"] > 0 and cell["engines"] == ["runtime", "langgraph"] and cell["first"] is None


def test_a_spec_is_compared_in_three_engines(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.toml").write_text(
        'task = "library:tiger"\nhorizon = 4\nmodel = "naive:5"\ncontext = "last:1"\ncontrol = ["stall:2-3"]\n'
    )
    code, out, _ = conform(capsys, str(tmp_path / "a.toml"), "--episodes", "4", "--sqlite")
    assert code == 0 and "stall:2:3" in out and "naive:5" in out
    assert out.endswith(
        "0 differences between the tabular simulator and runtime, langgraph, sqlite, seed 0\n"
    )
    code, out, _ = conform(
        capsys, str(tmp_path / "a.toml"), "--episodes", "2", "--policy", "random", "--json"
    )
    assert json.loads(out)["cells"][0]["model"] == "random"


def test_one_episode_is_shown_step_by_step_with_its_checkpoints(capsys: Any) -> None:
    words = ("--task", "library:flip:4", "--map", "last:2", "--episode", "731204")
    code, out, _ = conform(capsys, *words, "--json")
    found = json.loads(out)
    assert code == 0 and found["differences"] == []
    assert [moment["messages"] for moment in found["checkpoints"]] == [*range(1, 14), 13]
    assert [step["context"].count(";") + 1 for step in found["steps"]] == [1, 1, 2, 2, 2, 2]
    code, out, _ = conform(capsys, *words)
    assert code == 0 and "checkpoints of LangGraph" in out and "0 differences" in out


def test_a_difference_is_a_finding(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    act = Served.act
    monkeypatch.setattr(Served, "act", lambda self, a: act(self, 0))
    code, out, _ = conform(capsys, "--task", "library:tiger", "--episodes", "3")
    assert code == 1 and "\nfirst: runtime, episode " in out
    code, out, _ = conform(capsys, "--task", "library:tiger", "--episode", "1", "--json")
    assert code == 1 and json.loads(out)["differences"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name one of a SPEC.toml, --task and --preset"),
        (("a.toml", "--task", "library:tiger"), "name one of"),
        (("library:tiger",), "for a task write --task library:tiger"),
        (("--task", "library:tigger"), "tiger"),
        (("--task", "library:tiger", "--map", "lst:2"), "no context map 'lst'"),
        (("--task", "library:tiger", "--episodes", "0"), "--episodes 0 is below 1"),
        (("--task", "library:tiger", "--steps", "-1"), "--steps -1 is below 1"),
        (("--task", "library:tiger", "--seed", "-1"), "--seed -1 is not an integer from 0"),
        (("--task", "library:tiger", "--policy", "clever"), "no model 'clever'"),
        (("--preset", "cells", "--policy", "random"), "a preset has its own policies"),
        (("a.toml", "--map", "last:2"), "--map is for --task"),
        (("nowhere.toml",), "nowhere.toml"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], says: str, capsys: Any) -> None:
    code, out, err = conform(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1) and says in err
