"""Commands end at their deadline with all they started, whatever these did to get away; output stays bounded.

The oracle of what was left behind: every process started by a test carries a word in its arguments that /proc shows.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.runtime import process
from harnesses.runtime.process import BoundedOutput, CommandError, Finished, minimal_environment, run_command

ROOT = Path(process.__file__).parents[2]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descendants are found through /proc")


def alive(word: str) -> set[int]:
    """The processes that have the word in their arguments and are no zombies."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (place / "cmdline").read_bytes() and int(place.name) != os.getpid():
                found.add(int(place.name))
        except OSError:
            continue
    return found


@pytest.fixture
def word() -> Iterator[str]:
    """A mark for the arguments of started processes; what still carries it afterwards is ended here."""
    word = f"attack-{secrets.token_hex(8)}"
    yield word
    for number in alive(word):
        os.kill(number, signal.SIGKILL)


Run = Callable[..., Finished]


@pytest.fixture
def run(tmp_path: Path, word: str) -> Run:
    """Run a Python text as a command that carries the word."""

    def command(text: str, deadline: float = 20.0, **settings: object) -> Finished:
        argv = [sys.executable, "-I", "-S", "-c", text, word]
        return run_command(argv, str(tmp_path), deadline, **settings)

    return command


SLEEP = "import time; time.sleep(100)\n"
ESCAPES = {
    "itself": SLEEP,
    "deaf to requests": "import signal\nfor n in range(1, 32):\n if n not in (9, 17, 19):\n"
    "  signal.signal(n, signal.SIG_IGN)\n" + SLEEP,
    "a child": "import os\nos.fork()\n" + SLEEP,
    "a chain of children": "import os\nfor i in range(20):\n if os.fork(): break\n" + SLEEP,
    "a group of its own": "import os\nif not os.fork(): os.setpgid(0, 0)\n" + SLEEP,
    "a session of its own": "import os\nif not os.fork(): os.setsid()\n" + SLEEP,
    "an orphan": "import os\nif not os.fork():\n if os.fork(): os._exit(0)\n" + SLEEP,
    "a daemon": "import os\nif not os.fork():\n os.setsid()\n if os.fork(): os._exit(0)\n os.closerange(0, 9)\n"
    + SLEEP,
    "a daemon without environment": "import os, sys\nif not os.fork():\n os.setsid()\n if os.fork(): os._exit(0)\n"
    " os.execve(sys.executable, [sys.executable, '-S', '-c', 'import time; time.sleep(100)', sys.argv[1]], {})\n"
    + SLEEP,
    "many sessions": "import os\nfor i in range(60):\n if not os.fork():\n  os.setsid()\n  break\n" + SLEEP,
    "a stopped child": "import os, signal\nif not os.fork():\n os.setsid()\n os.kill(os.getpid(), signal.SIGSTOP)\n"
    + SLEEP,
    "a breeder": "import os, time\nend = time.time() + 100\nn = 0\nwhile time.time() < end:\n"
    " if n < 40 and not os.fork():\n  os.setsid(); n += 20\n n += 1\n time.sleep(.01)\n",
    "a traced child": "import ctypes, os\nif not os.fork():\n ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n os.setsid()\n"
    + SLEEP,
    "a stopped supervisor": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n" + SLEEP,
    "a killed supervisor": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n" + SLEEP,
    "a killed supervisor and a daemon": "import os, signal\nif not os.fork(): os.setsid()\n"
    "else: os.kill(os.getppid(), signal.SIGKILL)\n" + SLEEP,
}  # fmt: skip


@linux
@pytest.mark.parametrize("text", ESCAPES.values(), ids=ESCAPES)
def test_nothing_outlives_the_deadline(run: Run, word: str, text: str, monkeypatch):
    monkeypatch.setattr(process, "GRACE", 1.0)
    finished = run(text, deadline=0.7)
    assert finished.exit_code is None and finished.ended in ("deadline", "killed")
    assert not alive(word)


@linux
@pytest.mark.parametrize(
    "name", ["a session of its own", "a daemon", "an orphan", "many sessions", "a stopped child"]
)
def test_nothing_outlives_a_command_that_ends_by_itself(run: Run, word: str, name: str):
    # The parent waits for its children to have changed their sessions, then ends.
    finished = run(f"import os\nif os.fork():\n import time; time.sleep(.5); os._exit(7)\n{ESCAPES[name]}")
    assert finished.exit_code == 7 and finished.ended == "exited" and finished.left_behind >= 1
    assert not alive(word)


@linux
def test_a_canary_beside_the_command_lives_on(run: Run):
    canary = subprocess.Popen(["/bin/sleep", "60"])
    try:
        for name in ("a daemon", "a killed supervisor", "many sessions"):
            run(ESCAPES[name], deadline=0.5)
        assert canary.poll() is None
    finally:
        canary.kill()
        canary.wait()


@linux
def test_a_command_ends_when_the_program_that_asked_for_it_is_killed(tmp_path: Path, word: str):
    text = (
        "import sys; from harnesses.runtime.process import run_command\n"
        f"run_command([sys.executable, '-S', '-c', {ESCAPES['a daemon']!r}, {word!r}], '/', 60)"
    )
    caller = subprocess.Popen([sys.executable, "-c", text], cwd=ROOT)
    until(lambda: len(alive(word)) >= 3)  # the caller itself, the command and its daemon
    caller.kill()
    caller.wait()
    until(lambda: not alive(word))


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


MUTANTS = {
    "only the command itself is killed": (
        [("while (found := descendants(os.getpid())) and", "while (found := set()) and"),
         ("os.killpg(group, signal.SIGKILL)", "os.kill(group, signal.SIGKILL)")],
        "a child",
    ),
    "only the group is killed": (
        [("while (found := descendants(os.getpid())) and", "while (found := set()) and")], "a session of its own",
    ),
    "orphans are not inherited": ([("prctl(_SUBREAPER, 1", "prctl(_SUBREAPER, 0")], "a daemon without environment"),
}  # fmt: skip


@linux
@pytest.mark.parametrize(("changes", "escape"), MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_leaves_something_behind(run: Run, word: str, tmp_path: Path, monkeypatch, changes, escape):
    text = process._SUPERVISOR.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "mutant.py").write_text(text)
    monkeypatch.setattr(process, "_SUPERVISOR", tmp_path / "mutant.py")
    monkeypatch.setattr(process, "GRACE", 1.0)
    run(ESCAPES[escape], deadline=2.0)  # long enough for the escape to have happened
    assert alive(word)


@given(chunks=st.lists(st.binary(max_size=40), max_size=12), limit=st.integers(0, 60))
def test_bounded_output_keeps_the_two_ends(chunks: list[bytes], limit: int):
    output, whole = BoundedOutput(limit), b"".join(chunks)
    for chunk in chunks:
        output.add(chunk)
    head, tail = limit - limit // 2, limit // 2
    if len(whole) <= limit:
        assert output.removed == 0 and output.text() == whole.decode("utf-8", "replace")
    else:
        assert output.removed == len(whole) - limit
        kept = whole[:head] + b"\n[... %d bytes removed ...]\n" % output.removed + whole[len(whole) - tail :]
        assert output.text() == kept.decode("utf-8", "replace")


@pytest.mark.parametrize("stream", [1, 2])
def test_a_flood_fills_no_memory(run: Run, stream: int):
    tracemalloc.start()
    try:
        finished = run(
            f"import os\nwhile True: os.write({stream}, b'x' * 65536)", deadline=2.0, output_limit=5000
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert finished.removed > 4 * 2**20 and peak < 2 * 2**20
    assert 5000 < len(finished.output) < 5100 and finished.ended == "deadline"


@pytest.mark.parametrize(
    ("text", "code"),
    [("pass", 0), ("raise SystemExit(3)", 3), ("import os; os._exit(255)", 255), ("import os; os.abort()", -6),
     ("import os; os.kill(os.getpid(), 9)", -9)],
)  # fmt: skip
def test_the_exit_code_is_the_commands(run: Run, text: str, code: int):
    finished = run(text)
    assert (finished.exit_code, finished.ended, finished.left_behind) == (code, "exited", 0)


def test_both_streams_come_in_order_and_no_byte_breaks_the_text(run: Run):
    finished = run(
        r"import os; os.write(1, b'one\n'); os.write(2, b'\xff\x00\n'); os.write(1, 'zwölf'.encode())"
    )
    assert finished.output == "one\n\ufffd\0\nzwölf" and finished.removed == 0


def test_the_command_gets_no_input_no_secrets_and_no_descriptors(run: Run, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/secret")
    with open(tmp_path / "open", "w") as file:
        os.set_inheritable(file.fileno(), True)
        finished = run(
            "import os, sys; print(repr(sys.stdin.read()), dict(os.environ), sorted(os.listdir('/proc/self/fd')))"
        )
    assert finished.output.startswith("''") and "secret" not in finished.output
    names = set(minimal_environment("x")) | {"HPOMDP_RUN"}
    assert all(f"'{name}'" in finished.output for name in names)
    assert finished.output.endswith("['0', '1', '2', '3']\n")  # the fourth is the listing itself


def test_an_output_held_open_by_what_is_left_does_not_hold_the_caller(run: Run):
    began = time.monotonic()
    finished = run("import os\nif not os.fork():\n os.setsid()\n " + SLEEP.strip() + "\nprint('done')")
    assert "done" in finished.output and finished.exit_code == 0 and time.monotonic() - began < 15


def test_a_program_that_is_not_there_is_said(tmp_path: Path):
    finished = run_command(["/nonexistent/program"], str(tmp_path), 20)
    assert finished.exit_code == 127 and "could not be started" in finished.output


def test_no_shell_reads_the_arguments(tmp_path: Path):
    finished = run_command(
        ["/bin/echo", "$(touch made)", ";", "touch", "made", "`touch made`", "*"], str(tmp_path), 20
    )
    assert (
        finished.output == "$(touch made) ; touch made `touch made` *\n" and not (tmp_path / "made").exists()
    )


def test_a_long_environment_and_many_runs_at_once(tmp_path: Path):
    found = []

    def one(number: int) -> None:
        env = {"LONG": "x" * 100_000, "NUMBER": str(number)}
        found.append(
            (number, run_command(["/bin/sh", "-c", "echo $NUMBER ${#LONG}"], str(tmp_path), 30, env=env))
        )

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((n, f.output) for n, f in found) == [(i, f"{i} 100000\n") for i in range(6)]


def test_no_descriptor_is_lost(run: Run):
    before = sorted(os.listdir("/proc/self/fd"))
    run("pass")
    run(SLEEP, deadline=0.3)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_file_larger_than_the_limit_cannot_be_written(run: Run, tmp_path: Path):
    finished = run("open('big', 'wb').write(b'x' * 100_000)", file_limit=1000)
    assert finished.exit_code != 0 and (tmp_path / "big").stat().st_size <= 1000


@pytest.mark.parametrize(
    ("argv", "deadline", "limit"),
    [([], 1, 1), ("/bin/ls", 1, 1), (["ls"], 1, 1), (["./ls"], 1, 1), (["/bin/ls", "a\0b"], 1, 1),
     (["/bin/ls", 3], 1, 1),
     (["/bin/ls"], 0, 1), (["/bin/ls"], -1, 1), (["/bin/ls"], float("inf"), 1), (["/bin/ls"], float("nan"), 1),
     (["/bin/ls"], 1, -1)],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_one_line(argv: object, deadline: float, limit: int):
    with pytest.raises(CommandError) as refused:
        run_command(argv, "/", deadline, limit)
    assert "\n" not in str(refused.value)
