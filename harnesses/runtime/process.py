"""Process: a command run without a shell, ended at its deadline with all it started; imports runtime.supervisor's path.

Output is read as it comes and only its two ends are kept, so that a flood fills no memory. Input is empty, the
environment minimal, the session its own.

What ends with the command: its group; on Linux every descendant, also those that changed group or session, forked
twice or lost their parent; and whatever still carries the run's mark in its environment if the supervisor itself was
killed. What can get away: on Linux, a process that first kills the supervisor (same user, no Landlock of version 6)
and has replaced its environment; elsewhere, a process that made a session of its own.
Source: M1 §1.2.3 (a hard deadline), §1.2.5 (commands from an allow-list).
"""

from __future__ import annotations

import json
import math
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

OUTPUT_LIMIT = 20_000
GRACE = 8.0  # seconds for the supervisor to end a run before it is ended from here
_CHUNK = 65536
_MARK = "HPOMDP_RUN"
_SUPERVISOR = Path(__file__).with_name("supervisor.py")


class CommandError(ValueError):
    """A command that cannot be run as asked: no absolute program, no deadline, a limit out of range."""


@dataclass(frozen=True)
class Finished:
    """How a command ended: by itself, at the `deadline`, or `killed` where it took its supervisor with it.

    `exit_code` is minus the signal's number after a signal, and None unless it ended by itself.
    `output` is what it wrote to both streams, its middle replaced by a marker where it was longer than the limit;
    `removed` counts the bytes taken out; `left_behind` the processes that it had started and that were still alive.
    """

    exit_code: int | None
    output: str
    seconds: float
    ended: Literal["exited", "deadline", "killed"] = "exited"
    removed: int = 0
    left_behind: int = 0


class BoundedOutput:
    """The two ends of a stream: its first and its last limit // 2 bytes, whatever its length."""

    def __init__(self, limit: int) -> None:
        self._head_room, self._tail_room = limit - limit // 2, limit // 2
        self._head, self._tail, self._total = bytearray(), bytearray(), 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream; memory stays within the limit and one chunk."""
        self._total += len(chunk)
        room = self._head_room - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > self._tail_room:
            del self._tail[: len(self._tail) - self._tail_room]

    @property
    def removed(self) -> int:
        """How many bytes of the middle are gone."""
        return self._total - len(self._head) - len(self._tail)

    def text(self) -> str:
        """What was kept, as text; bytes that are no UTF-8 become the replacement character."""
        marker = f"\n[... {self.removed} bytes removed ...]\n".encode() if self.removed else b""
        return bytes(self._head + marker + self._tail).decode("utf-8", "replace")


def minimal_environment(home: str) -> dict[str, str]:
    """What a command sees: a path of system folders, UTF-8, and `home` as home and temporary folder; no secrets."""
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home}


def run_command(
    argv: Sequence[str],
    cwd: str | int,
    deadline: float,
    output_limit: int = OUTPUT_LIMIT,
    env: Mapping[str, str] | None = None,
    *,
    rules: int | None = None,
    file_limit: int | None = None,
) -> Finished:
    """Run `argv` (an absolute program) in the folder `cwd` (a path or a descriptor) for at most `deadline` seconds.

    `output_limit` in bytes; `rules`: a Landlock ruleset; `file_limit`: bytes of the largest file that it may write.
    CommandError for arguments that cannot be meant, OSError if the folder cannot be opened.
    """
    _check(argv, deadline, output_limit)
    began = time.monotonic()
    folder = os.dup(cwd) if isinstance(cwd, int) else os.open(cwd, os.O_RDONLY | os.O_DIRECTORY)
    mark = secrets.token_hex(16)
    environment = {**(minimal_environment("/nonexistent") if env is None else env), _MARK: mark}
    task = {"argv": list(argv), "env": environment, "deadline": float(deadline), "file_limit": file_limit}
    output = BoundedOutput(output_limit)
    try:
        report = _supervised(task, folder, rules, output, began + deadline + GRACE, mark)
    finally:
        os.close(folder)
    return Finished(
        exit_code=report["code"],
        output=output.text(),
        seconds=time.monotonic() - began,
        ended=report["how"],
        removed=output.removed,
        left_behind=report["left"],
    )


def _check(argv: Sequence[str], deadline: float, output_limit: int) -> None:
    if isinstance(argv, str) or not argv or not all(isinstance(a, str) and "\0" not in a for a in argv):
        raise CommandError('a command is a list of texts without NUL, as in ["/usr/bin/env", "true"]')
    if not hasattr(os, "waitid"):
        raise CommandError(
            "commands need Linux, or macOS with Python 3.13 or later: this system has no waitid"
        )
    if not os.path.isabs(argv[0]):
        raise CommandError(f"the program {argv[0]!r} is not absolute; name its file, as in /usr/bin/env")
    if not (0 < deadline < math.inf):
        raise CommandError(f"the deadline {deadline!r} is not a positive number of seconds, such as 60")
    if output_limit < 0:
        raise CommandError(f"the output limit {output_limit!r} is negative; write bytes, such as 20000")


def _supervised(
    task: dict, folder: int, rules: int | None, output: BoundedOutput, end: float, mark: str
) -> dict:
    """Start the supervisor, read until it and the command are gone, return its report; never longer than `end`."""
    (lifeline, hold), (out, out_end), (report, report_end) = os.pipe(), os.pipe(), os.pipe()
    opened = {lifeline, hold, out, out_end, report, report_end}
    passed = [lifeline, report_end, folder] + ([] if rules is None else [rules])
    task = {**task, "folder": folder, "rules": rules, "lifeline": lifeline, "report": report_end}
    command = [sys.executable, "-I", "-S", "-B", str(_SUPERVISOR)]
    supervisor = None
    try:
        # A file, not an argument: environments can be longer than a system's arguments may be.
        with tempfile.TemporaryFile() as order:
            order.write(json.dumps(task).encode())
            order.seek(0)
            supervisor = _start(command, order, out_end, passed, mark)
        for descriptor in (lifeline, out_end, report_end):
            os.close(descriptor)
            opened.discard(descriptor)
        text = _read(out, report, output, end)
        return json.loads(text) if text else {"how": "killed", "code": None, "left": sweep_marked(mark)}
    finally:
        for descriptor in opened:
            os.close(descriptor)  # the lifeline among them: a supervisor that still runs ends its command now
        if supervisor is not None:
            _end(supervisor)


def _start(command: list[str], order: IO[bytes], out: int, passed: list[int], mark: str) -> subprocess.Popen:
    environment = {"PATH": "/usr/bin:/bin", _MARK: mark}
    return subprocess.Popen(
        command,
        stdin=order,
        stdout=out,
        stderr=out,
        pass_fds=passed,
        cwd="/",
        env=environment,
        start_new_session=True,
    )


def _read(out: int, report: int, output: BoundedOutput, end: float) -> str:
    text = b""
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        selector.register(report, selectors.EVENT_READ)
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                    # Without a supervisor nobody else will end what holds the output open.
                    end = min(end, time.monotonic() + 1.0)
                elif key.fd == out:
                    output.add(chunk)
                else:
                    text += chunk
    return text.decode()


def _end(supervisor: subprocess.Popen) -> None:
    with suppress(subprocess.TimeoutExpired):
        supervisor.wait(GRACE)
        return
    with suppress(ProcessLookupError):
        os.killpg(supervisor.pid, signal.SIGKILL)
    supervisor.wait()


def sweep_marked(mark: str) -> int:
    """Kill every process whose environment carries the run's mark; how many were found. Linux only, else 0."""
    needle = f"{_MARK}={mark}".encode()
    seen: set[int] = set()
    end = time.monotonic() + GRACE
    while (found := _marked(needle)) and time.monotonic() < end:
        seen |= found
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in found:
                with suppress(OSError):
                    os.kill(process, number)
        time.sleep(0.01)
    return len(seen)


def _marked(needle: bytes) -> set[int]:
    found = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):
                if needle in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    found.add(int(name))
    return found
