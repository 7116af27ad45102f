"""The process above a command: starts it, waits, and leaves nothing of it behind; standard library only.

Run as a script by `process.run_command`, with a bare interpreter, so that start-up costs milliseconds. It becomes the
parent of every orphan below it (Linux: a child subreaper), so that a descendant that left its group and session, or
forked twice, is still found under it and killed. It ends the command at the deadline, and also when the program that
asked for it dies: that program holds the other end of a pipe. Elsewhere than on Linux only the process group is killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time

SWEEP_SECONDS = 5.0  # a process in an uninterruptible sleep ends only when its device answers
_SUBREAPER, _NO_NEW_PRIVILEGES, _RESTRICT = 36, 38, 446


def descendants(ancestor: int) -> set[int]:
    """Every live process below `ancestor`, by /proc; empty where there is none. Zombies do not count."""
    children: dict[int, list[int]] = {}
    dead = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The command's name stands in brackets and may hold anything, brackets too.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(name))
        if state in (b"Z", b"X"):
            dead.add(int(name))
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting.extend(below)
    return found - dead


def sweep(group: int) -> int:
    """Kill the group and every descendant of this process; how many besides the group's leader were found alive."""
    seen: set[int] = set()
    end = time.monotonic() + SWEEP_SECONDS
    while (found := descendants(os.getpid())) and time.monotonic() < end:
        seen |= found
        _signal_group(group)
        # Stopped first, so that none starts another while its neighbours are killed.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in found:
                _signal(process, number)
        _reap()
    _signal_group(group)  # where there is no /proc
    _reap()
    return len(seen - {group})


def _signal_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except OSError:
        pass


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def start(task: dict) -> int:
    """Fork and become the command: own session, no input, limits, confinement; the child's number."""
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        os.fchdir(task["folder"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if task["file_limit"] is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (task["file_limit"], task["file_limit"]))
        if task["rules"] is not None:
            _restrict(task["rules"])
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.closerange(
            3, 1 + max(task["folder"], task["lifeline"], task["report"], task["rules"] or 0, _WAKE + 1)
        )
        os.execve(task["argv"][0], task["argv"], task["env"])
    except BaseException as error:
        os.write(2, f"the command could not be started: {error}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def _restrict(rules: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(_RESTRICT, rules, 0):
        raise OSError(ctypes.get_errno(), "not confined by Landlock")


def wait(process: int, lifeline: int, deadline: float) -> str:
    """How it ended: `exited` (not reaped yet), `deadline`, or `abandoned` where the caller died."""
    end = time.monotonic() + deadline
    while True:
        # The number is kept, as a zombie, until the group has been killed: else it could name another process.
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if ended.si_pid == process:
                return "exited"
            os.waitpid(ended.si_pid, 0)  # an orphan that came to us
        left = end - time.monotonic()
        if left <= 0:
            return "deadline"
        ready, _, _ = select.select([lifeline, _WAKE], [], [], left)
        if lifeline in ready:
            return "abandoned"
        if _WAKE in ready:
            os.read(_WAKE, 4096)


_WAKE = -1


def main() -> None:
    """Run the task given as JSON on standard input and write how it ended, as JSON, to its report descriptor."""
    global _WAKE
    task = json.load(sys.stdin)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    _WAKE, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    process = start(task)
    how = wait(process, task["lifeline"], task["deadline"])
    code = None
    if how == "exited":
        if status := os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT):
            code = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
    left = sweep(process)
    try:
        os.write(task["report"], json.dumps({"how": how, "code": code, "left": left}).encode())
    except OSError:
        pass  # nobody is left to read it


if __name__ == "__main__":
    main()
