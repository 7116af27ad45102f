"""Hostile commands are denied and start nothing; code that tests run reaches no file, process or port outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnesses.runtime import commands, landlock, workspace
from harnesses.runtime.commands import PYTEST, AllowedCommands, Command
from harnesses.runtime.confinement import ConfinementError, Root
from harnesses.runtime.records import ToolCall
from harnesses.runtime.workspace import Workspace

SHELL = """pytest; rm canary|pytest ; rm canary|pytest;rm canary|;pytest|pytest && rm canary
pytest & rm canary|pytest &|pytest $(touch made)|pytest `touch made`|pytest > made|pytest >> made
pytest < canary|pytest 2>made|pytest $HOME|pytest ${IFS}x|pytest *|pytest ?.py|pytest {a,b}.py|pytest !!
pytest #x|pytest ~/x|pytest (x)|pytest x^y|(pytest)|{ pytest }|pytest <(touch made)|pytest \\; rm canary
pytest x\\ y|pytest 'x|pytest "x|pytest "$(touch made)" 'x"""
PIPES = ["pytest | tee made", "pytest || touch made", "pytest |& tee made", "pytest\nrm canary", "pytest\rrm canary",
         "pytest\0", "\0pytest", "pytest \x1b[2J", "pytest \u202egp.tset", "pytest \u2028 rm",
         "pytest\x0brm canary"]  # fmt: skip
PROGRAMS = """rm canary|/bin/rm canary|sh -c 'touch made'|bash|python -m pytest|python3 -c 'x'
/usr/bin/pytest|./pytest|../pytest|pytest/|pytest.exe|PYTEST|Pytest|py.test|pytest-3|xpytest|pytestx
sudo pytest|env pytest|exec pytest|-pytest|PYTHONPATH=/outside pytest|PYTEST_ADDOPTS=-x pytest|'pytest x'|''
pytest' ; rm canary'|p\u0443test|pytest\u200b|timeout 1 pytest|nohup pytest|command pytest|eval pytest
. pytest|source pytest|cd .. pytest|@pytest|cat canary|touch made|kill 1"""
OPTIONS = """-p evil|-pevil|-p=evil|-c /outside/x.ini|-c/outside/x.ini|-c x.ini|--config-file=x.ini
--rootdir=/outside|--rootdir /outside|--rootdir=..|--confcutdir=/|--confcutdir=..|--basetemp=/outside
--basetemp=..|--basetemp /outside|--import-mode=prepend|--import-mode=importlib|--pyargs os|--pyargs
-o addopts=-pevil|-oaddopts=x|--override-ini=pythonpath=/outside|--junit-xml=/outside/made|--junitxml=made
--log-file=/outside/made|--debug|--debug=/outside/made|--pdb|--trace|--pastebin=all|--pdbcls=os:system|-n 4
-n4|--tx=popen//python=sh|--dist=load|--cov=x|--cov-report=html:/outside|--doctest-glob=/outside/*
--doctest-modules|--ignore=x|--ignore-glob=*|--deselect=x|--cache-clear|--cache-show|--lf|--ff|--sw|--help
-h|--version|-V|--fixtures|--markers|--setup-plan|-W error::evil.Evil|-Werror|--pythonwarnings=x
--assert=plain|--noconftest|--strict|--log-cli-level=x|--capture=tee|--tb=evil|--tb|--tb --rootdir=/
--maxfail=x|--maxfail|--maxfail -p|--durations=-1|--|-- ../x|-k|-k -pevil|-k @file|-k __import__('os')
-k 'a=b'|-k 'a.b/c'|-m|-m @x|-m '$(x)'|-k=@x|-q=evil|-qp|-xc|-qpevil|--verb|--tb=short\u200b|@file
@/outside/options|@../options|'@file'|x.py @file|---|-|-r|-r evil|-rZ|--capture=no,evil|--rootdir
--color=yes|-0|-s/outside"""
PATHS = """../outside|..|../|sub/..|sub/../..|../outside/test_x.py|../outside/test_x.py::test_a
sub/../../outside|/outside|/|//|/etc|./../outside|link|link/test_x.py|dirlink|dirlink/test_x.py
dirlink/test_x.py::test_a|inside_link|fifo|hard.py|hard.py::test_a|::test_a|calc.py::|calc.py:test_a
calc.py::../x|calc.py::/etc|calc.py::a::|..::a|C:/x|'a b/../../x'|"../x"|'../'x|..''/x|.""./x|\u2025/outside
\uff0e\uff0e/outside|..\uff0foutside|calc.py\u202e|calc.py::test\u202e|file:///etc/passwd"""
LONG = ["pytest " + "a" * 3000, "pytest " + "x " * 100, "pytest " + "a" * 300, "pytest " + "a/" * 60 + "b", "", " ",
        "\t", "pytest " + "../" * 400 + "x", "'" * 1001]  # fmt: skip


def words(table: str) -> list[str]:
    return [entry for line in table.splitlines() for entry in line.split("|")]


ATTACKS = words(SHELL) + PIPES + words(PROGRAMS) + LONG
ATTACKS += [f"pytest {entry}" for entry in words(OPTIONS) + words(PATHS)]
ATTACKS += ["pytest -q ../outside -x", "pytest test_calc.py --rootdir=/ -q", "pytest -k add -p evil"]
FINE = """pytest|pytest .|pytest -q|pytest -x -vv test_calc.py|pytest test_calc.py::test_add|pytest ./sub/
pytest sub//|pytest test_calc.py::TestX::test_add[1-2]|pytest -k 'add and not (sub or mul)'
pytest -k add -m "slow"|pytest --tb=short|pytest --tb short|pytest --maxfail=2|pytest --maxfail 2 -rA
pytest -qxs|pytest --collect-only|pytest missing.py| pytest  -q """


@pytest.fixture
def desk(tmp_path: Path) -> Workspace:
    ws, outside = tmp_path / "ws", tmp_path / "outside"
    for folder in (ws / "sub", outside):
        folder.mkdir(parents=True)
    (outside / "test_x.py").write_text("def test_a(): pass")
    (outside / "canary.txt").write_text("secret canary")
    (ws / "calc.py").write_text("")
    for name, target in {
        "link": "../outside/test_x.py",
        "dirlink": "../outside",
        "inside_link": "calc.py",
    }.items():
        (ws / name).symlink_to(target)
    os.link(outside / "test_x.py", ws / "hard.py")
    os.mkfifo(ws / "fifo")
    return Workspace.at(ws, deadline=45.0)


def call(command: object) -> ToolCall:
    return ToolCall("c1", "run_tests", {"command": command})


def test_there_are_hundreds_of_attacks():
    assert len(set(ATTACKS)) == len(ATTACKS) >= 200


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would have been run."""
    seen: list[list[str]] = []
    monkeypatch.setattr(workspace, "run_command", lambda argv, *_, **__: seen.append(list(argv)))
    return seen


def test_no_command_attack_starts_anything(desk: Workspace, started: list):
    rule = desk.permissions["run_tests"]
    allowed = [command for command in ATTACKS if rule(call(command)) is None]
    assert allowed == []
    for command in ATTACKS:
        with pytest.raises(ConfinementError, match="denied by the rule"):
            desk.run(command)
    assert started == []


@pytest.mark.parametrize("command", [None, 3, ["pytest"], {"pytest": 1}, b"pytest", True])
def test_what_is_no_text_is_denied(desk: Workspace, command: object):
    assert "'text'" in desk.permissions["run_tests"](call(command))


def test_denials_are_one_printable_line(desk: Workspace):
    for command in ATTACKS:
        said = desk.permissions["run_tests"](call(command))
        assert said.isprintable() and len(said) < 400


@pytest.mark.parametrize("command", words(FINE))
def test_ordinary_commands_pass(desk: Workspace, started: list, command: str):
    assert desk.permissions["run_tests"](call(command)) is None
    desk.run(command)
    assert started[0][0] == sys.executable and started[0][-1] != "pytest"


MUTANTS = {
    "any option passes": Command("pytest", flags=r"-.*", values=PYTEST.values),
    "any value passes": Command("pytest", flags=PYTEST.flags, values=dict.fromkeys(PYTEST.values, ".*")),
    "any program passes": Command("rm", flags=PYTEST.flags),
}


@pytest.mark.parametrize("command", MUTANTS.values(), ids=MUTANTS)
def test_a_laxer_list_lets_attacks_through(desk: Workspace, command: Command):
    rule = AllowedCommands(desk.root, (PYTEST, command) if command.name == "rm" else (command,))
    assert any(rule(call(attack)) is None for attack in ATTACKS)


@pytest.mark.parametrize("name", ["_SHELL", "check"])
def test_a_copy_without_a_check_lets_attacks_through(desk: Workspace, monkeypatch, name: str):
    import re

    monkeypatch.setattr(commands, name, re.compile("(?!)") if name == "_SHELL" else lambda *_: None)
    assert any(desk.permissions["run_tests"](call(attack)) is None for attack in ATTACKS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(
    parts=st.lists(
        st.sampled_from([*words(OPTIONS), *words(PATHS), *words(FINE), "-q", "'", ";"]) | st.text(max_size=4)
    )
)
def test_a_random_command_that_passes_has_only_allowed_words(tmp_path_factory, parts: list[str]):
    rule = AllowedCommands(Root.of(tmp_path_factory.getbasetemp()))
    try:
        found = rule.split(" ".join(["pytest", *parts]))
    except ConfinementError:
        return
    assert found[0] == "pytest"
    for word in found[1:]:
        assert not word.startswith(
            ("/", "@", "~", "--root", "--base", "-p", "-c", "-o", "--conf", "--import", "--py")
        )
        assert ".." not in word.partition("::")[0].split("/") and "\0" not in word


# ---- code that the tests run, which no rule of arguments can hold

INNER = """
import ctypes, os, pathlib, shutil, signal, socket, subprocess, sys
import pytest
OUT, PID, PORT = pathlib.Path({outside!r}), {pid}, {port}
CANARY = OUT / "canary.txt"
WS = pathlib.Path.cwd()
ATTACKS = dict(
    read=lambda: CANARY.read_text(),
    read_by_link=lambda: ((WS / "a").symlink_to(CANARY), (WS / "a").read_text()),
    read_by_climb=lambda: open("../outside/canary.txt").read(),
    read_by_descriptor_folder=lambda: os.open("canary.txt", os.O_RDONLY, dir_fd=os.open(OUT, os.O_RDONLY)),
    read_by_process_root=lambda: open("/proc/self/root" + str(CANARY)).read(),
    read_by_child=lambda: subprocess.run(["/bin/cat", CANARY], check=True, stderr=2),
    listing=lambda: os.listdir(OUT),
    write=lambda: CANARY.write_text("x"),
    append=lambda: open(CANARY, "a"),
    truncate=lambda: os.truncate(CANARY, 0),
    create=lambda: (OUT / "made").write_text("x"),
    create_in_temp=lambda: pathlib.Path("/tmp/made-by-an-attack").write_text("x"),
    folder=lambda: (OUT / "made").mkdir(),
    link_there=lambda: (OUT / "made").symlink_to("x"),
    second_name=lambda: os.link(CANARY, WS / "b"),
    move_in=lambda: os.rename(CANARY, WS / "b"),
    move_out=lambda: os.rename(WS / "calc.py", OUT / "made"),
    over=lambda: os.replace(WS / "calc.py", CANARY),
    remove=lambda: CANARY.unlink(),
    remove_all=lambda: os.rmdir(OUT / "empty"),
    pipe_there=lambda: os.mkfifo(OUT / "made"),
    device=lambda: os.mknod(WS / "device", 0o600 | 0o060000, os.makedev(254, 0)),
    memory=lambda: open(f"/proc/{{PID}}/mem", "rb"),
    secrets=lambda: open(f"/proc/{{os.getppid()}}/environ", "rb").read(),
    passwords=lambda: open("/etc/shadow").read(),
    run_there=lambda: subprocess.run([OUT / "script"], check=True),
)
if {version} >= 4:
    ATTACKS.update(
        connect=lambda: socket.create_connection(("127.0.0.1", PORT), 5),
        listen=lambda: socket.create_server(("127.0.0.1", 0)),
    )
if {version} >= 6:
    ATTACKS.update(
        kill=lambda: os.kill(PID, signal.SIGKILL),
        kill_group=lambda: os.killpg(os.getpgid(PID), signal.SIGKILL),
        kill_supervisor=lambda: os.kill(os.getppid(), signal.SIGKILL),
        stop=lambda: os.kill(PID, signal.SIGSTOP),
    )

@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_attack(attack):
    with pytest.raises((OSError, subprocess.CalledProcessError)):
        attack()

def test_the_workspace_is_there(tmp_path):
    (WS / "made.txt").write_text("inside")
    (tmp_path / "made.txt").write_text("inside")
"""


@pytest.mark.skipif(
    not landlock.version(), reason="this kernel has no Landlock: tests run with the user's rights"
)
def test_code_that_tests_run_reaches_nothing_outside(desk: Workspace, tmp_path: Path):
    outside = tmp_path / "outside"
    (outside / "empty").mkdir()
    (outside / "script").write_text("#!/bin/sh\necho ran > made\n")
    (outside / "script").chmod(0o755)
    before = sorted((p.name, p.read_bytes() if p.is_file() else b"") for p in outside.iterdir())
    canary = subprocess.Popen(["/bin/sleep", "100"], start_new_session=True)
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            facts = {"outside": str(outside), "pid": canary.pid, "port": port, "version": landlock.version()}
            desk.write_file("test_inner.py", INNER.format(**facts))
            finished = desk.run("pytest -q test_inner.py --tb=line")
        assert finished.exit_code == 0, finished.output
        assert canary.poll() is None
    finally:
        canary.kill()
        canary.wait()
    after = sorted((p.name, p.read_bytes() if p.is_file() else b"") for p in outside.iterdir())
    assert before == after and not Path("/tmp/made-by-an-attack").exists()


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
def test_without_landlock_the_same_code_reaches_the_canary(desk: Workspace, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(landlock, "ruleset", lambda *_: None)
    desk.write_file(
        "test_inner.py", "def test_a(): assert open('../outside/canary.txt').read() == 'secret canary'"
    )
    assert desk.run("pytest -q").exit_code == 0


def test_settings_of_the_workspace_and_of_folders_above_are_not_read(
    desk: Workspace, tmp_path: Path, monkeypatch
):
    mark = "import pathlib; pathlib.Path('loaded-{}').touch()\n"
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "outside"))
    monkeypatch.setenv("PYTEST_PLUGINS", "evil")
    (tmp_path / "conftest.py").write_text(mark.format("above"))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    for name in ("pytest", "sitecustomize", "usercustomize", "evil", "os", "_pytest"):
        desk.write_file(f"{name}.py", mark.format(name))
    desk.write_file("pytest.ini", f"[pytest]\naddopts = -p evil --basetemp={tmp_path / 'outside'}\n")
    desk.write_file("tox.ini", "[pytest]\naddopts = --no-such-option\n")
    desk.write_file("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--no-such-option'\n")
    desk.write_file("test_a.py", "def test_a(): pass")
    assert desk.run_tests("pytest -q test_a.py")["exit_code"] == 0
    assert [name for name in os.listdir(desk.root.path) if name.startswith("loaded")] == []
    assert (tmp_path / "outside" / "canary.txt").exists()
