"""The three tools do what a file system and pytest do, and say in words what went wrong; calc is repaired for real."""

from __future__ import annotations

import inspect
import os
import pickle
import stat
import sys
import typing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnesses.runtime import workspace
from harnesses.runtime.calc_task import COMMAND, FILES, REQUEST, RIGHT, create_calc
from harnesses.runtime.confinement import ConfinementError, PathsUnder, Root
from harnesses.runtime.records import ToolCall
from harnesses.runtime.workspace import Workspace, WorkspaceError


@pytest.fixture
def desk(tmp_path: Path) -> Workspace:
    (tmp_path / "ws").mkdir()
    return Workspace.at(tmp_path / "ws", deadline=40.0)


def place(desk: Workspace) -> Path:
    return Path(desk.root.path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_what_is_written_is_read_and_lies_on_the_disk(tmp_path: Path, text: str):
    desk = Workspace.at(tmp_path)
    said = desk.write_file("sub/a.txt", text)
    assert desk.read_file("sub/a.txt") == text
    assert (tmp_path / "sub" / "a.txt").read_bytes() == text.encode()
    assert said == f"wrote {len(text.encode())} bytes to sub/a.txt"
    assert os.listdir(tmp_path / "sub") == ["a.txt"]  # no temporary file stays


def test_line_ends_are_left_as_they_are(desk: Workspace):
    (place(desk) / "a").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert desk.read_file("a") == "\ufeffa\r\nb\rc\n"


def test_a_write_keeps_the_mode_but_no_special_bits(desk: Workspace):
    script = place(desk) / "run.sh"
    script.write_text("old")
    script.chmod(0o4755)
    desk.write_file("run.sh", "new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o755


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(desk: Workspace, monkeypatch):
    desk.write_file("a.txt", "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(workspace.os, "fsync", full)
    with pytest.raises(WorkspaceError, match="No space left on device; retry once, then stop"):
        desk.write_file("a.txt", "new")
    assert os.listdir(place(desk)) == ["a.txt"] and desk.read_file("a.txt") == "old"


def test_readers_see_the_old_file_or_the_new(desk: Workspace):
    desk.write_file("a.txt", "old")
    with open(place(desk) / "a.txt") as before:
        desk.write_file("a.txt", "new")
        assert before.read() == "old" and desk.read_file("a.txt") == "new"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("read_file", ["missing.py"], "there is no file 'missing.py'; check the name"),
        ("read_file", ["none/missing.py"], "there is no file"),
        ("read_file", ["sub"], "is a folder; name a file"),
        ("read_file", ["sub/"], "names a folder; name a file"),
        ("read_file", ["."], "names a folder; name a file"),
        ("read_file", ["a.txt/"], "names a folder; name a file"),
        ("read_file", ["a.txt/b"], "'a.txt' is a file; correct the path"),
        ("read_file", ["latin"], "is no UTF-8 text .byte 1.; read a text file"),
        ("read_file", ["long"], "is larger than 100 bytes; read a smaller file"),
        ("write_file", ["sub", "x"], "is a folder; name a file"),
        ("write_file", ["a.txt/b", "x"], "'a.txt' is a file; correct the path"),
        ("write_file", ["b", "x" * 101], "has 101 bytes; write at most 100"),
        ("write_file", ["b", "\u00e9" * 51], "has 102 bytes; write at most 100"),
        ("write_file", ["b", "ab\ud800"], "character 2 of the content is half a pair"),
    ],
)
def test_ordinary_failures_say_what_to_do(tmp_path: Path, tool: str, arguments: list[str], words: str):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "latin").write_bytes(b"a\xe9")
    (tmp_path / "long").write_bytes(b"x" * 101)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(WorkspaceError, match=words) as failed:
        getattr(Workspace.at(tmp_path, largest_file=100), tool)(*arguments)
    assert "\n" not in str(failed.value) and str(tmp_path) not in str(failed.value)
    assert sorted(os.listdir(tmp_path)) == before


def test_sizes_at_the_limit_pass(tmp_path: Path):
    desk = Workspace.at(tmp_path, largest_file=100)
    desk.write_file("a", "x" * 100)
    assert desk.read_file("a") == "x" * 100


@pytest.mark.parametrize("folder", ["missing", "file", "/"])
def test_a_workspace_is_a_folder_that_is_there_and_not_everything(tmp_path: Path, folder: str):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="folder"):
        Workspace.at(tmp_path / folder)


def test_links_above_the_workspace_are_its_owners(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "name").symlink_to("real")
    desk = Workspace.at(tmp_path / "name")
    desk.write_file("a.txt", "text")
    assert (tmp_path / "real" / "a.txt").read_text() == "text"


def test_signatures_are_the_schemas_and_tools_travel_to_other_processes(desk: Workspace):
    expected = {
        "read_file": {"path": str},
        "write_file": {"path": str, "content": str},
        "run_tests": {"command": str},
    }
    assert set(desk.permissions) == set(expected)
    for name, arguments in expected.items():
        hints = typing.get_type_hints(getattr(desk, name))
        assert hints.pop("return") is not None and hints == arguments
        assert len(inspect.getdoc(getattr(desk, name)).splitlines()) == 1
    assert pickle.loads(pickle.dumps(desk.write_file))("a", "text") and desk.read_file("a") == "text"


def test_a_rule_reads_the_argument_that_it_is_given(desk: Workspace):
    rule = PathsUnder(Root.of(place(desk)), "target")
    assert rule(ToolCall("c1", "copy", {"path": "../x", "target": "a"})) is None
    assert "no .." in rule(ToolCall("c1", "copy", {"path": "a", "target": "../x"}))
    assert "text" in rule(ToolCall("c1", "copy", {"path": "a"}))


def test_calc_is_broken_and_a_correction_repairs_it(tmp_path: Path):
    desk = create_calc(tmp_path / "calc", deadline=40.0)
    first = desk.run_tests(COMMAND)
    assert first["exit_code"] == 1 and "3 failed" in first["stdout"] and "'23' == 5" in first["stdout"]
    assert desk.read_file("calc.py") == FILES["calc.py"] != RIGHT
    # At once after the failing run: a compiled file of the same second would still be wrong.
    desk.write_file("calc.py", RIGHT)
    second = desk.run_tests(COMMAND)
    assert second["exit_code"] == 0 and "3 passed" in second["stdout"]
    assert sorted(os.listdir(tmp_path / "calc")) == sorted(FILES)
    assert "sum" in REQUEST


def test_calc_overwrites_nothing(tmp_path: Path):
    (tmp_path / "calc.py").write_text("mine")
    with pytest.raises(WorkspaceError, match="not empty"):
        create_calc(tmp_path)
    assert (tmp_path / "calc.py").read_text() == "mine"


def test_tests_that_do_not_end_are_a_timeout_with_their_last_words(tmp_path: Path):
    desk = create_calc(tmp_path / "calc", deadline=6.0)
    desk.write_file(
        "test_slow.py",
        "import sys, time\ndef test_slow():\n    print('here', flush=True)\n    time.sleep(99)\n",
    )
    with pytest.raises(TimeoutError, match=r"(?s)longer than 6 s.*here"):
        desk.run_tests("pytest -s test_slow.py")


def test_a_denied_command_starts_nothing(desk: Workspace, monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("started")

    monkeypatch.setattr(workspace, "run_command", never)
    with pytest.raises(ConfinementError, match="no shell"):
        desk.run_tests("pytest; rm calc.py")


def test_the_tests_run_under_this_interpreter_without_its_plugins(tmp_path: Path):
    desk = create_calc(tmp_path / "calc", deadline=40.0)
    desk.write_file("test_calc.py", f"import sys\ndef test_it(request):\n    assert sys.prefix == {sys.prefix!r}\n"
                    "    assert not request.config.pluginmanager.hasplugin('xdist')\n")  # fmt: skip
    assert desk.run_tests("pytest -q")["exit_code"] == 0
