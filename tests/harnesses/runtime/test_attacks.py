"""Hostile paths: whatever is named, nothing outside the workspace is read, changed or made; mutants are caught.

Every attack is tried with both tools, without asking the permission rule first, in a fresh arena with canaries around
the workspace. The oracle is the state of everything outside, and a secret that no answer may hold.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harnesses.runtime import confinement, workspace
from harnesses.runtime.records import ToolCall

PLANTED = "planted by an attack"
TOOLS = ("read_file", "write_file")

CLIMBS = """../outside/canary.txt|sub/../../outside/canary.txt|./../outside/canary.txt|.//..//outside//canary.txt|..|../
sub/..|../ws/calc.py|../ws-evil/canary.txt|../outside|../outside/new.txt|../new.txt|sub/../calc.py|sub/./../../new.txt
../../../../../../../../../../etc/passwd|./sub/inner/../../../outside/canary.txt|.. /outside/canary.txt
 ../outside/canary.txt|..;/outside/canary.txt|....//outside/canary.txt|.../outside/canary.txt|..../new.txt
%2e%2e/outside/canary.txt|..%2foutside%2fcanary.txt|%2e%2e%2foutside%2fcanary.txt|%252e%252e/outside/canary.txt
..%c0%afoutside/canary.txt|..%00/outside/canary.txt|..\\outside\\canary.txt|sub\\..\\..\\outside\\canary.txt
..\\/outside/canary.txt|nothing/../../outside/canary.txt|calc.py/../../outside/canary.txt|*/../outside/canary.txt"""
ABSOLUTES = """{outside}/canary.txt|/{outside}/canary.txt|//{outside}/canary.txt|/./{outside}/canary.txt
{outside}/new.txt|{ws}/calc.py|{ws}/../outside/canary.txt|/proc/self/root{outside}/canary.txt|/proc/self/cwd/calc.py|/proc/self/environ
/dev/fd/0|/dev/null|/dev/zero|/dev/stdin|/etc/passwd|/etc/shadow|/|//|///|file://{outside}/canary.txt
file:{outside}/canary.txt|C:/outside/canary.txt|C:\\outside\\canary.txt|c:canary.txt|\\\\host\\share\\canary.txt
~/canary.txt|~root/canary.txt|~|~+/calc.py|$HOME/canary.txt|${{HOME}}/canary.txt|$(cat {outside}/canary.txt)
`cat {outside}/canary.txt`|\\{outside}/canary.txt| {outside}/canary.txt|.{outside}/canary.txt"""
LINKS = """link|./link|link/|link/.|sub/../link|dirlink|dirlink/|dirlink/.|dirlink/canary.txt|dirlink//canary.txt
dirlink/./canary.txt|dirlink/new.txt|dirlink/new/new.txt|dirlink/sub/canary.txt|dirlink/../calc.py|absolute|absolute_dir/canary.txt
absolute_dir/new.txt|inside_link|inside_dir/inner.py|dangling|dangling_dir/new.txt|chain|chain_dir/canary.txt
chain_dir/new.txt|loop|loop/x|sub/up/outside/canary.txt|sub/up/ws/calc.py|sub/up/new.txt|process_root{outside}/canary.txt
process_folder/calc.py|descriptors/0|hard|./hard|sub/hard|fifo|./fifo|fifo/|fifo/x|socket|socket/x|device|sub/fifo
dirlink/fifo|dirlink/../../outside/canary.txt|link/canary.txt|./dirlink/canary.txt|sub/self/sub/self/calc.py"""
TEXTS = [
    "", " ", ".", "./", "./.", "\0", "calc.py\0", "calc.py\0.txt", "\0../outside/canary.txt", "..\0/outside/canary.txt",
    "../outside/canary.txt\0", "sub/\0/calc.py", "a" * 256, "a" * 5000, "a/" * 40 + "b", "a/" * 3000 + "b",
    "\u00e9" * 200, "../" * 1000 + "outside/canary.txt", "./" * 600 + "../outside/canary.txt", "/" * 5000,
    "sub/" + "x" * 300 + "/../../../outside/canary.txt", "\u2024\u2024/outside/canary.txt", "\u2025/outside/canary.txt",
    "\uff0e\uff0e/outside/canary.txt", "..\uff0foutside/canary.txt", "..\u2215outside/canary.txt",
    "..\u2044outside/canary.txt", "..\u29f8outside/canary.txt", "..\uff3coutside\uff3ccanary.txt",
    "\u202e../outside/canary.txt", "..\u200b/outside/canary.txt", "\ufeff../outside/canary.txt", "calc.py\u202e",
    "..\u00a0/outside/canary.txt", ".\u2024/outside/canary.txt", "\udcc0\udcae\udcc0\udcae/outside/canary.txt",
    "..\udcaf/outside/canary.txt", "\ud800", "\udc2e\udc2e/outside/canary.txt", "\U0010ffff", "\ue000", "a\nb", "a\rb",
    "\x1b[2J", "..\n/outside/canary.txt", "\n../outside/canary.txt", "..\t/outside/canary.txt", "\x7f", "\x85",
    "\u2028", "cal\u0441.py", "sub/.\u0338./canary.txt", "\u3002\u3002/outside/canary.txt",
    "\ufe52\ufe52/outside/canary.txt",
]  # fmt: skip
ATTACKS = [
    path for table in (CLIMBS, ABSOLUTES, LINKS) for line in table.splitlines() for path in line.split("|")
] + TEXTS
CASES = [(tool, path) for path in ATTACKS for tool in TOOLS]


@dataclass(frozen=True)
class Arena:
    """A workspace `ws` with traps in it, and canaries around it that hold a secret."""

    top: Path
    secret: str

    @property
    def ws(self) -> Path:
        return self.top / "ws"

    @property
    def outside(self) -> Path:
        return self.top / "outside"

    def filled(self, path: str) -> str:
        return path.format(outside=self.outside, ws=self.ws) if "{" in path else path

    def around(self) -> dict[str, tuple]:
        """Everything beside the workspace: kinds, modes, contents."""
        found = {}
        for place, folders, files in os.walk(self.top):
            folders[:] = [name for name in folders if Path(place, name) != self.ws]
            for name in [*folders, *files]:
                path = Path(place, name)
                status = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
                found[str(path)] = (status.st_mode, status.st_ino, content)
        return found


def build(top: Path) -> Arena:
    arena = Arena(top, secrets.token_hex(12))
    ws, outside = arena.ws, arena.outside
    for folder in (ws / "sub" / "inner", outside / "sub", top / "ws-evil"):
        folder.mkdir(parents=True)
    for canary in ("outside/canary.txt", "outside/sub/canary.txt", "outside/twice.txt", "ws-evil/canary.txt"):
        (top / canary).write_text(arena.secret)
    (ws / "calc.py").write_text("inside")
    (ws / "sub" / "inner.py").write_text("inside")
    links = {
        "link": "../outside/canary.txt", "dirlink": "../outside", "absolute": str(outside / "canary.txt"),
        "absolute_dir": str(outside), "inside_link": "calc.py", "inside_dir": "sub", "dangling": "../outside/new.txt",
        "dangling_dir": "../outside/made", "chain": "chain2", "chain2": "link", "chain_dir": "chain_dir2",
        "chain_dir2": "dirlink", "loop": "loop", "sub/up": "../..", "process_root": "/proc/self/root", "sub/self": "..",
        "process_folder": "/proc/self/cwd", "descriptors": "/dev/fd",
    }  # fmt: skip
    for name, target in links.items():
        (ws / name).symlink_to(target)
    for name in ("hard", "sub/hard"):
        os.link(outside / "twice.txt", ws / name)
    for place in (ws / "fifo", ws / "sub" / "fifo", outside / "fifo"):
        os.mkfifo(place)
    with suppress(PermissionError):  # only the superuser may make one: zeros without end
        os.mknod(ws / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    back = os.open(ws, os.O_RDONLY)  # by a descriptor: the full path may be too long for a socket's name
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(f"/proc/self/fd/{back}/socket")
    os.close(back)
    return arena


def act(module: ModuleType, arena: Arena, tool: str, path: str) -> str:
    """The answer of the tool, called directly, or its refusal in words."""
    desk = module.Workspace.at(arena.ws)
    try:
        return desk.read_file(path) if tool == "read_file" else desk.write_file(path, PLANTED)
    except (ValueError, OSError) as error:
        return str(error)


def evidence(module: ModuleType, arena: Arena, tool: str, path: str) -> str | None:
    """What shows that the attack escaped; None if it did not."""
    before = arena.around()
    answer = act(module, arena, tool, arena.filled(path))
    after = arena.around()
    if arena.secret in answer:
        return f"{tool}({path!r}) read a canary"
    if changed := {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}:
        return f"{tool}({path!r}) changed {sorted(changed)}"
    return None


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return build(tmp_path / "arena")


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    """One arena for all attacks that cannot change it."""
    return build(tmp_path_factory.mktemp("read") / "arena")


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    """A tool that waits, as for a pipe's other end, fails its test instead of stopping the suite."""

    def fail(*_: object) -> None:
        raise AssertionError("a tool waits")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.alarm(50)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def test_there_are_hundreds_of_attacks():
    assert len(set(CASES)) == len(CASES) >= 300


@pytest.mark.parametrize("path", ATTACKS)
def test_no_read_escapes(read_only: Arena, path: str):
    assert evidence(workspace, read_only, "read_file", path) is None


@pytest.mark.parametrize("path", ATTACKS)
def test_no_write_escapes(arena: Arena, path: str):
    assert evidence(workspace, arena, "write_file", path) is None


@pytest.mark.parametrize("path", ATTACKS)
def test_the_permission_rule_denies_what_the_tool_refuses(read_only: Arena, path: str):
    # Denied before execution exactly where the tool would refuse for confinement's sake, and never by an exception.
    path = read_only.filled(path)
    desk = workspace.Workspace.at(read_only.ws)
    said = desk.permissions["read_file"](ToolCall("c1", "read_file", {"path": path}))
    try:
        desk.read_file(path)
        refused = None
    except confinement.ConfinementError as error:
        refused = str(error)
    except confinement.WorkspaceError:
        refused = None
    folder = path.rstrip("/.") != path  # a name for a folder: the tool stops at the text, the rule looks
    assert said == refused or (folder and refused is None)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("../x", "no .."), ("/etc/passwd", "relative"), ("link", "no links"), ("inside_link", "no links"),
        ("dirlink/canary.txt", "no links"), ("fifo", "regular files"), ("socket", "regular files"),
        ("hard", "one name"), ("a\0b", "no NUL"), ("", "empty"), ("a" * 300, "length"), ("a\\b", "no backslash"),
        ("~/x", "no home"), ("\u2025/x", "no look-alike"), ("a\u202eb", "printable"), (None, "text"), (7, "text"),
        (["calc.py"], "text"),
    ],
)  # fmt: skip
def test_a_denial_names_its_rule(read_only: Arena, path: object, rule: str):
    for tool in TOOLS:
        said = workspace.Workspace.at(read_only.ws).permissions[tool](ToolCall("c1", tool, {"path": path}))
        assert said is not None and said.startswith(f"denied by the rule '{rule}'") and "\n" not in said


@pytest.mark.parametrize(
    "path", ["calc.py", "./calc.py", "sub//inner.py", "sub/./inner.py", "new.txt", "new/deep.txt"]
)
def test_paths_inside_are_allowed(arena: Arena, path: str):
    desk = workspace.Workspace.at(arena.ws)
    for tool in TOOLS:
        assert desk.permissions[tool](ToolCall("c1", tool, {"path": path})) is None
    desk.write_file(path, "text")
    assert desk.read_file(path) == "text"


PIECES = ["..", ".", "/", "//", "\\", "\0", "~", "link", "dirlink", "sub", "up", "inside_dir", "canary.txt", "calc.py",
          "outside", "ws", "hard", "fifo", "\u2025", "\uff0f", " ", "new"]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(
    tool=st.sampled_from(TOOLS),
    path=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("/".join),
)
@example(tool="read_file", path="sub/up/outside/canary.txt")
def test_no_random_path_escapes(tmp_path: Path, tool: str, path: str):
    assert evidence(workspace, build(tmp_path / secrets.token_hex(4)), tool, path.replace("{", "")) is None


# ---- exchanges between the check and the use


def exchanging(monkeypatch: pytest.MonkeyPatch, module: ModuleType, exchange: Callable[[], None]) -> None:
    """Make the exchange at the worst moment: just after the name was looked at and found good."""
    look = module.look

    def then_exchange(parent: int, name: str) -> os.stat_result | None:
        found = look(parent, name)
        exchange()
        return found

    monkeypatch.setattr(module, "look", then_exchange)


def to_link(path: Path, target: Path) -> Callable[[], None]:
    def exchange() -> None:
        if not path.is_symlink():
            path.rename(path.with_name("moved"))
            path.symlink_to(target)

    return exchange


@pytest.mark.parametrize("tool", TOOLS)
def test_a_file_exchanged_for_a_link_after_the_check_is_not_followed(arena: Arena, tool: str, monkeypatch):
    exchanging(monkeypatch, confinement, to_link(arena.ws / "calc.py", arena.outside / "canary.txt"))
    assert evidence(workspace, arena, tool, "calc.py") is None
    assert (arena.ws / "moved").exists()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_folder_exchanged_for_a_link_after_the_permission_is_not_entered(arena: Arena, tool: str):
    desk = workspace.Workspace.at(arena.ws)
    (arena.ws / "sub" / "canary.txt").write_text("inside")
    assert desk.permissions[tool](ToolCall("c1", tool, {"path": "sub/canary.txt"})) is None
    to_link(arena.ws / "sub", arena.outside)()
    assert evidence(workspace, arena, tool, "sub/canary.txt") is None


def test_a_workspace_exchanged_for_another_folder_is_refused(arena: Arena):
    desk = workspace.Workspace.at(arena.ws)
    arena.ws.rename(arena.top / "old")
    arena.outside.rename(arena.ws)
    with pytest.raises(confinement.ConfinementError, match="replaced"):
        desk.read_file("canary.txt")
    assert "replaced" in desk.permissions["read_file"](ToolCall("c1", "read_file", {"path": "canary.txt"}))


def swapping(arena: Arena, stop: threading.Event) -> None:
    """The name calc.py is a file and a link to a canary by turns, each put in place in one step."""
    turn = arena.ws / "turn"
    while not stop.is_set():
        turn.write_text("inside")
        turn.rename(arena.ws / "calc.py")
        turn.symlink_to(arena.outside / "canary.txt")
        turn.rename(arena.ws / "calc.py")


def race(module: ModuleType, arena: Arena, tries: int, seconds: float) -> tuple[int, set[str]]:
    """Read while another thread swaps: how often the canary came out, and what came out otherwise."""
    stop, end, escapes, answers = threading.Event(), time.monotonic() + seconds, 0, set()
    thread = threading.Thread(target=swapping, args=(arena, stop))
    thread.start()
    try:
        for _ in range(tries):
            answer = act(module, arena, "read_file", "calc.py")
            escapes += arena.secret in answer
            answers.add(answer[:40])
            if time.monotonic() > end or (escapes and module is not workspace):
                break
    finally:
        stop.set()
        thread.join()
    return escapes, answers


def test_reads_raced_by_a_thread_never_follow_the_link(arena: Arena):
    escapes, answers = race(workspace, arena, 3000, 6.0)
    assert escapes == 0
    assert "inside" in answers and len(answers) > 1  # both sides of the swap were met


# ---- mutants: the same attacks see them


@pytest.fixture
def mutant(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """The workspace module over a copy of confinement in which texts are replaced."""

    def load(name: str, text: str) -> ModuleType:
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader=None))
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, name, "exec"), module.__dict__)
        return module

    def build_mutant(*changes: tuple[str, str]) -> ModuleType:
        text = Path(confinement.__file__).read_text()
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        load("mutant_confinement", text)
        text = (
            Path(workspace.__file__)
            .read_text()
            .replace("harnesses.runtime.confinement", "mutant_confinement")
        )
        direct = "from harnesses.runtime import confinement, landlock"
        assert direct in text
        copied = "import mutant_confinement as confinement\nfrom harnesses.runtime import landlock"
        return load("mutant_workspace", text.replace(direct, copied))

    return build_mutant


NO_FOLLOW = ('getattr(os, "O_NOFOLLOW", 0)', "0")
NO_FOLLOW_OF_FILES = ('_FILE = _READ | getattr(os, "O_NOFOLLOW", 0)', "_FILE = _READ")
MUTANTS = {
    "links are resolved nowhere": [("follow_symlinks=False", "follow_symlinks=True"), NO_FOLLOW],
    "folders are not checked again at use": [NO_FOLLOW],
    "climbs pass": [('if ".." in parts', "if False")],
    "second names pass": [("found.st_nlink > 1", "False")],
}


@pytest.mark.parametrize("changes", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_caught_by_the_same_attacks(tmp_path: Path, mutant, changes):
    module = mutant(*changes)
    found = (evidence(module, build(tmp_path / str(i)), *case) for i, case in enumerate(CASES))
    assert any(found)


def test_a_mutant_that_follows_what_it_has_checked_is_caught_by_an_exchange(
    arena: Arena, mutant, monkeypatch
):
    module = mutant(NO_FOLLOW_OF_FILES)
    assert evidence(module, arena, "read_file", "link") is None  # the check alone stops what stands still
    exchanging(
        monkeypatch,
        sys.modules["mutant_confinement"],
        to_link(arena.ws / "calc.py", arena.outside / "canary.txt"),
    )
    assert "read a canary" in (evidence(module, arena, "read_file", "calc.py") or "")


def test_a_mutant_that_follows_what_it_has_checked_is_caught_by_the_race(arena: Arena, mutant):
    escapes, _ = race(mutant(NO_FOLLOW_OF_FILES), arena, 10**6, 20.0)
    assert escapes
