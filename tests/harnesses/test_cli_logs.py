"""The command `logs`: exit codes, one line for bad input, JSON that is whole, text safe for a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.__main__ import main


def line(task: Any, reward: float, answer: str = "fine", times: int = 1) -> str:
    call = {"id": "k", "function": {"name": "look", "arguments": "{}"}}
    pair = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "k", "content": answer},
    ]
    return json.dumps(
        {"task_id": task, "reward": reward, "traj": [{"role": "user", "content": "u"}, *pair * times]}
    )


def logged(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["logs", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_log_is_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep").mkdir()
    text = "\n".join([line(1, 1.0), line(1, 0.0, "Error: no", 3), line(2, 1.0, "x" * 400)])
    (tmp_path / "deep" / "a.log").write_text(text)
    (tmp_path / "notes.md").write_text("# nothing")
    code, out, _ = logged(capsys, str(tmp_path), "--json", "--map", "oldest_first:50", "--map", "last:1")
    found = json.loads(out)
    assert (code, found["broken"], len(found["runs"]), len(found["no_logs"])) == (0, 0, 3, 1)
    (group,) = found["groups"]
    assert (group["folder"], group["format"], group["runs"], group["tasks"]) == ("deep", "tau-bench", 3, 2)
    assert (group["successes"], group["failures"]["error"], group["runs_with"]["error"]) == (2, 3, 1)
    assert group["runs_stalled"] == {"consecutive": 1, "total": 1, "growth": 0}
    assert [m["results_dropped"] for m in group["maps"]] == [1, 2]
    assert found["runs"][1]["stalled_at"] == {"consecutive": 3, "total": 3, "growth": None}
    assert found["runs"][1]["maps"][1]["gone"] == [[2, 1, 11], [3, 2, 22]]
    assert "ceil(characters/4)" in found["estimator"]
    code, out, _ = logged(capsys, str(tmp_path), "--runs", "--map", "last:1")
    assert code == 0 and "last:1 drops 2 of 3 results" in out and "ceil(characters/4)" in out


def test_broken_lines_are_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes("\n".join([line(1, 1.0), '{"task_id": 1', line(2, 0.0)]).encode() + b'\n{"a": "\xff"}\n')
    code, out, _ = logged(capsys, str(file))
    assert code == 1 and f"{file}, line 2: not JSON" in out and f"{file}, line 4: not UTF-8" in out
    code, out, _ = logged(capsys, str(file), "--json")
    found = json.loads(out)
    assert (code, found["broken"], len(found["runs"])) == (1, 2, 2)
    assert [entry["line"] for entry in found["first_broken"]] == [2, 4]


def test_only_the_first_broken_records_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join([line(1, 1.0)] + ["{"] * 500))
    code, out, _ = logged(capsys, str(file))
    assert code == 1 and "broken records: 500, the first 20:" in out and out.count("not JSON") == 20


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b"hello", "unknown log format, not JSON"),
        (b'{"x": 1}', "unknown log format, an object with x; known: tau-bench"),
        (b"[1, 2]", "unknown log format, a number; known: tau-bench"),
        (b"\xff\xfe\x00", "unknown log format, not UTF-8"),
    ],
)
def test_a_file_that_is_no_log_is_bad_input_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, problem: str
) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    code, out, err = logged(capsys, str(file))
    assert (code, out, err.count("\n")) == (2, "", 1) and problem in err
    code, out, err = logged(capsys, str(tmp_path))
    assert (code, out, err.count("\n")) == (2, "", 1) and "holds no log of a known format" in err


@pytest.mark.parametrize("words", [["nowhere"], [".", "--map", "lst:2"], [".", "--map", "belief_grid:2"]])
def test_bad_input_is_one_line_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (tmp_path / "a.jsonl").write_text(line(1, 1.0))
    monkeypatch.chdir(tmp_path)
    code, out, err = logged(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_names_from_a_log_cannot_command_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(line("\x1b]0;owned\x07\ud800", 1.0))
    code, out, _ = logged(capsys, str(file), "--runs")
    assert code == 0 and "\\x1b]0;owned\\x07\\ud800" in out and "\x1b" not in out


def test_one_file_may_hold_several_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {"thread_id": "t", "history_newest_first": [{"values": {"messages": []}}]}
    file = tmp_path / "a.jsonl"
    file.write_text(line(1, 1.0) + "\n" + json.dumps(other) + "\n" + json.dumps({"x": 1}))
    code, out, _ = logged(capsys, str(file), "--json")
    found = json.loads(out)
    assert code == 1 and {group["format"] for group in found["groups"]} == {
        "tau-bench",
        "LangGraph checkpoints",
    }
    assert found["first_broken"][0]["problem"].startswith("unknown log format, an object with x")
