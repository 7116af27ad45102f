"""Runs on LangGraph that are killed and resumed, every process forked from this one.

argv: a folder, a case, how many runs are killed at random more than once, and the moments of death, by default all.
A hook counts every commit to the file of the checkpoints, and the start and end of every call of the model and of a
tool; at a count it kills its process. Prints a line of JSON for the uninterrupted run, then for each killed one.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harnesses.context import OldestFirst
from harnesses.journal import NoJournal
from harnesses.langgraph_adapter import ReactGraph, sqlite_saver
from harnesses.runtime.child import Transient
from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.control import Matches
from harnesses.runtime.loop import Harness
from harnesses.runtime.models import RawCall, Reply, ScriptedModel, call, say
from harnesses.runtime.records import AgentError, Run
from harnesses.runtime.tools import Dispatcher, Tool
from harnesses.runtime.trace import Replay, replay

SCRIPT = [
    Reply(text="both", calls=(RawCall("look", '{"path":"a.py"}'), RawCall("pay", '{"amount":3}'))),
    Reply(calls=(RawCall("look", "{"),)),
    Reply(calls=(RawCall("look", '{"path":"/etc"}'), RawCall("unsteady"), RawCall("pay", '{"amount":4}'))),
    call("send", text="hello"),
    say("done"),
]
CASES = ("right", "no journal", "no keys")


class World:
    """What outlives the process: a file of effects; and the hook."""

    def __init__(self, folder: Path, case: str, kill_at: int = 0) -> None:
        self.folder, self.case, self.kill_at = folder, case, kill_at
        self.met: list[str] = []
        self.table = ""

    def hook(self, where: str) -> None:
        self.met.append(where)
        if len(self.met) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_statement(self, statement: str) -> None:
        """Until a commit the file holds nothing of a write: the moments before it are one state."""
        table = next(
            (name for name in ("checkpoints", "writes", "records") if f" {name} " in statement), None
        )
        self.table = table or self.table
        if statement == "COMMIT":
            self.hook(f"commit {self.table}")

    def note(self, file: str, line: str) -> None:
        with open(self.folder / file, "a", encoding="utf-8") as out:
            out.write(line + "\n")

    def noted(self, file: str) -> list[str]:
        return (self.folder / file).read_text().split() if (self.folder / file).exists() else []

    def look(self, path: str) -> str:
        """Look at a file."""
        self.hook("look start")
        self.hook("look end")
        return path + " " + "x" * 200

    def send(self, text: str) -> str:
        """Send, with no way to tell afterwards whether it was."""
        self.hook("send start")
        self.note("effects", f"send:{text}")
        self.hook("send end")
        return "sent"

    def pay(self, amount: int, key: str) -> str:
        """Pay, once per key."""
        self.hook("pay start")
        if key not in self.noted("paid") or self.case == "no keys":
            self.note("paid", key)  # what a bank writes in one transaction
            self.note("effects", f"pay:{amount}")
        self.hook("pay end")
        return f"paid {amount}"

    def unsteady(self) -> str:
        """Fail at first."""
        self.hook("unsteady start")
        if not self.noted("failed"):
            self.note("failed", "once")
            raise Transient("busy")
        self.hook("unsteady end")
        return "works"

    @property
    def harness(self) -> Harness:
        tools = [
            Tool.of(self.look, inline=True, idempotent=True),
            Tool.of(self.pay, inline=True, keyed=True),
            Tool.of(self.send, inline=True),
            Tool.of(self.unsteady, inline=True, idempotent=True),
        ]
        rules = {"look": (Matches("path", ("*.py",)),), "pay": (), "send": (), "unsteady": ()}
        return Harness(self, Dispatcher(tools, rules, VirtualClock()), OldestFirst(90, keep=2))

    name = "scripted"

    def reply(self, messages: Any, tools: Any, step: int) -> Reply:
        self.hook("model start")
        self.note("asked", str(step))
        self.hook("model end")
        return ScriptedModel(SCRIPT).reply(messages, tools, step)


class Unjournalled(ReactGraph):
    """The mutant: the same graph, which trusts LangGraph's checkpoints alone."""

    def __init__(self, harness: Harness, saver: Any) -> None:
        super().__init__(harness, saver, journal=NoJournal())

    def resume(self, thread: str = "1") -> Run:
        if not self._saved(thread):
            raise AgentError("nothing saved")
        return self._invoke(None, thread)


def play(world: World) -> dict[str, Any]:
    """Begin the run, or go on with it, to its end."""
    with sqlite_saver(world.folder / "runs.sqlite") as saver:
        saver.conn.set_trace_callback(world.on_statement)
        made = Unjournalled if world.case == "no journal" else ReactGraph
        graph = made(world.harness, saver)
        try:
            run = graph.resume("a")
        except AgentError:  # killed before the request was recorded
            run = graph.run("Do it.", "Be brief.", "a")
        saver.conn.set_trace_callback(None)
        lines = graph.journal.lines("a")
        return {
            "trajectory": trajectory(run),
            "contexts": contexts(replay(lines)) if lines else None,
            "met": world.met,
        }


def trajectory(run: Run) -> Any:
    said = [
        [m.role, m.content, [[c.id, c.name, dict(c.arguments)] for c in m.calls], m.about]
        for m in run.history
    ]
    results = [[r.call_id, r.status, r.content] for r in run.results.values()]
    left = vars(run.state.budget_remaining) | {"seconds": None}  # time passes while nothing runs
    return [said, results, run.state.termination_reason, run.state.step, left, run.state.consecutive_errors]


def contexts(past: Replay) -> Any:
    return [
        [step, [[m.role, m.content] for m in c.messages], [vars(d) for d in c.dropped], c.token_estimate]
        for step, c in past.contexts.items()
    ]


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


def kept(folder: Path) -> Any:
    """What the file holds: the records, and the names of the checkpoints."""
    if not (folder / "runs.sqlite").exists():
        return [[], []]
    connection = sqlite3.connect(folder / "runs.sqlite")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    queries = {
        "records": "SELECT record FROM records ORDER BY t",
        "checkpoints": "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id",
    }
    found = [[x for (x,) in connection.execute(q)] if t in tables else [] for t, q in queries.items()]
    connection.close()
    return found


def chain(folder: Path, case: str, kills: list[int]) -> dict[str, Any]:
    """A run killed at these counts of the hook, each in the process that goes on after the one before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    lost, survived = 0, kept(folder)
    for kill_at in [*kills, 0]:
        world = World(folder, case, kill_at)
        done = forked(lambda world=world: play(world), folder / "out.json")
        now = kept(folder)
        if any('"role":"user"' in record for record in survived[0]):  # else nothing was begun
            lost += sum(item not in after for before, after in zip(survived, now) for item in before)
        survived = now
        if done is not None:
            break
    return {
        **done,
        "kills": kills,
        "lost": lost,
        "effects": world.noted("effects"),
        "asked": world.noted("asked"),
    }


def main() -> None:
    folder, case, chains = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    only = sys.argv[4:]  # moments of death, all where none is named
    (folder / "warm").mkdir()
    play(World(folder / "warm", case))  # what is imported late is imported here, once
    assert threading.active_count() == 1  # so that forking is safe
    gc.collect()
    gc.freeze()
    whole = chain(folder / "whole", case, [])
    print(json.dumps(whole), flush=True)
    count = len(whole["met"])
    draw = random.Random(1)
    plans = [[k] for k, where in enumerate(whole["met"], 1) if not only or where in only]
    plans += [[draw.randint(1, count), *(draw.randint(1, 12) for _ in range(3))] for _ in range(chains)]
    for plan in plans:
        print(json.dumps(chain(folder / "killed", case, plan)), flush=True)


if __name__ == "__main__":
    main()
