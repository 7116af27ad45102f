"""Runs that are killed and resumed, every process forked from this one: argv is a folder and a case.

A hook counts every moment before, within and after the writing of a record, and every start and end of a tool; at a
count it kills its process with SIGKILL. Prints JSON: the uninterrupted run, and each killed and resumed one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from harnesses.context import OldestFirst
from harnesses.runtime import loop
from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.control import Limits, Matches
from harnesses.runtime.loop import Harness
from harnesses.runtime.models import RawCall, Reply, ScriptedModel, call, say
from harnesses.runtime.outbox import Outbox
from harnesses.runtime.records import AgentError
from harnesses.runtime.resume import resume
from harnesses.runtime.tools import Dispatcher, Tool
from harnesses.runtime.trace import FileTrace, as_line, read_trace

SCRIPT = [
    Reply(text="both", calls=(RawCall("read", '{"path":"a.py"}'), RawCall("send", '{"text":"first"}'))),
    Reply(calls=(RawCall("read", "{"),)),
    Reply(calls=(RawCall("read", '{"path":"/etc"}'), RawCall("book", '{"seat":7}'))),
    call("send", text="first"),
    call("wipe", path="a.py"),
    say("done"),
]
CASES = ("right", "no keys", "no recovery")


class World:
    """What outlives the process: an outbox, booked seats, and a file of effects; and the hook."""

    def __init__(self, folder: Path, case: str, kill_at: int = 0) -> None:
        self.folder, self.case, self.kill_at = folder, case, kill_at
        self.met: list[str] = []
        self.outbox = Outbox(folder / "outbox.sqlite")

    def hook(self, where: str) -> None:
        self.met.append(where)
        if len(self.met) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def note(self, line: str) -> None:
        with open(self.folder / "effects", "a", encoding="utf-8") as out:
            out.write(line + "\n")

    def effects(self) -> list[str]:
        path = self.folder / "effects"
        told = path.read_text().split() if path.exists() else []
        return sorted([*told, *(f"send:{text}" for _, text in self.outbox.sent())])

    def read(self, path: str) -> str:
        """Read."""
        self.hook("read")
        return path + " " + "x" * 200

    def send(self, text: str, key: str) -> str:
        """Send, once a key; the mutant makes up a key of its own."""
        self.hook("send start")
        answer = self.outbox.send("you", text, f"{key}{os.getpid()}" if self.case == "no keys" else key)
        self.hook("send end")
        return answer.partition(" ")[0]

    def book(self, seat: int) -> str:
        """Book a seat: nothing stops a second booking, but what is booked can be looked up."""
        self.hook("book start")
        self.note(f"book:{seat}")
        self.hook("book end")
        return f"seat {seat}"

    def booked(self, seat: int) -> str | None:
        """What became of a booking; the mutant never finds one."""
        found = f"book:{seat}" in self.effects() and self.case != "no recovery"
        return f"seat {seat}" if found else None

    def wipe(self, path: str) -> str:
        """Wipe, with no way to tell afterwards whether it was."""
        self.hook("wipe start")
        self.note(f"wipe:{path}")
        self.hook("wipe end")
        return "wiped"

    def harness(self, trace: Any) -> Harness:
        tools = [
            Tool.of(self.read, inline=True, idempotent=True),
            Tool.of(self.send, inline=True, keyed=True),
            Tool.of(self.book, inline=True, recover=self.booked),
            Tool.of(self.wipe, inline=True),
        ]
        rules = {"read": (Matches("path", ("*.py",)),), "send": (), "book": (), "wipe": ()}
        limits = Limits(consecutive_errors=None)
        model = ScriptedModel(SCRIPT)
        return Harness(
            model, Dispatcher(tools, rules, VirtualClock()), OldestFirst(90, keep=2), limits, trace=trace
        )


class HookedTrace(FileTrace):
    """A trace whose every write is three moments: before it, in the middle of the line, and after it."""

    def __init__(self, world: World, append: bool) -> None:
        super().__init__(world.folder / "trace.jsonl", append)
        self.world = world

    def write(self, record: dict[str, Any]) -> None:
        self.world.hook(f"before {record['kind']}")
        line = as_line(record) + "\n"
        self._file.write(line[: len(line) // 2])
        self._file.flush()
        self.world.hook(f"within {record['kind']}")
        self._file.write(line[len(line) // 2 :])
        self._file.flush()
        self.world.hook(f"after {record['kind']}")


def play(world: World) -> dict[str, Any]:
    """Begin the run, or go on with it, to its end."""
    path = world.folder / "trace.jsonl"
    try:
        past = read_trace(path)
        run = resume(world.harness(HookedTrace(world, append=True)), past)
    except (FileNotFoundError, AgentError):  # killed before the request was recorded
        path.unlink(missing_ok=True)
        run = loop.run(world.harness(HookedTrace(world, append=False)), "Do it.", "Be brief.")
    again = read_trace(path)
    assert again.run == run, "the trace is the run"
    said = [
        [m.role, m.content, [[c.id, c.name, dict(c.arguments)] for c in m.calls], m.about]
        for m in run.history
    ]
    results = [[r.call_id, r.status, r.content] for r in run.results.values()]
    left = vars(run.state.budget_remaining)
    contexts = [
        [step, [[m.role, m.content] for m in c.messages], [vars(d) for d in c.dropped], c.token_estimate]
        for step, c in again.contexts.items()
    ]
    return {
        "trajectory": [said, results, run.state.termination_reason, run.state.step, left],
        "contexts": contexts,
        "effects": world.effects(),
        "met": world.met,
    }


def _played(folder: Path, case: str, kill_at: int = 0) -> dict[str, Any]:
    return play(World(folder, case, kill_at))


def forked(act: Callable[[], Any], out: Path) -> Any:
    """What the function gives in a process of its own; None where that was killed."""
    child = os.fork()
    if child == 0:
        try:
            out.write_text(json.dumps(act()))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit("a run failed; see above")
    return json.loads(out.read_text())


def kept(folder: Path) -> list[str]:
    """The whole lines of a trace that a kill left."""
    path = folder / "trace.jsonl"
    return path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []


def main(place: Path, case: str) -> None:
    """Kill at every moment in turn, and resume."""
    (place / "whole").mkdir()
    whole = forked(partial(_played, place / "whole", case), place / "out")
    killed = []
    for n in range(1, len(whole["met"]) + 1):
        folder = place / str(n)
        folder.mkdir()
        assert forked(partial(_played, folder, case, n), place / "out") is None
        before = kept(folder)
        found = forked(partial(_played, folder, case), place / "out")
        lines = kept(folder)
        found["lost"] = len(before) > 2 and lines[: len(before)] != before
        found["where"] = whole["met"][n - 1]
        found["met"] = None
        killed.append(found)
    print(json.dumps({"whole": {**whole, "met": Counter(whole["met"])}, "killed": killed}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
