"""Traces: readable after a kill, exact, linear in the run, and refused with the line where they are broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harnesses.context import Last, OldestFirst
from harnesses.runtime.loop import run
from harnesses.runtime.models import RawCall, Reply, call, say
from harnesses.runtime.records import AgentError
from harnesses.runtime.report import fired, recomputed
from harnesses.runtime.scenarios import CALC, OTHERS, SYSTEM, scenario, virtual
from harnesses.runtime.trace import FileTrace, MemoryTrace, read_trace, replay

ROOT = Path(__file__).resolve().parents[3]
STORED = ROOT / "results" / "runtime"
ENDLESS = """
import sys
from pathlib import Path
from harnesses.runtime.models import call
from harnesses.runtime.scenarios import VirtualFiles, harness_of
from harnesses.runtime.control import Limits
from harnesses.runtime.loop import run
from harnesses.runtime.trace import FileTrace
from dataclasses import replace

class Endless:
    name = "endless"
    def reply(self, messages, tools, step):
        return call("write_file", path="a.py", content=str(step))

harness = harness_of(VirtualFiles(), Endless(), trace=FileTrace(Path(sys.argv[1])))
print("ready", flush=True)
run(replace(harness, limits=Limits(None, None, None, None)), "Go on.")
"""


def test_a_run_killed_by_the_system_leaves_a_readable_prefix(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    child = subprocess.Popen([sys.executable, "-c", ENDLESS, str(path)], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        while path.stat().st_size < 100_000:
            assert child.poll() is None
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    past = read_trace(path)
    assert past.run.state.step > 10 and not past.run.state.terminated
    whole = path.read_bytes().count(b"\n")
    assert len(past.records) == whole == past.run.tick


def test_a_torn_last_line_is_told_and_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    chosen = scenario("calc")
    run(virtual(chosen, trace=FileTrace(path)), chosen.request, SYSTEM)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    past = read_trace(path)
    assert past.torn and not past.run.state.terminated
    FileTrace(path, append=True).close()
    assert whole.startswith(path.read_bytes()) and not read_trace(path).torn
    assert read_trace(path).run == past.run


def test_a_trace_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("precious")
    with pytest.raises(AgentError, match="is there already"):
        FileTrace(path)
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda lines: [*lines[:4], "{", *lines[5:]], "line 5"),
        (lambda lines: [*lines[:4], lines[3], *lines[4:]], "line 5: its timestamp"),
        (lambda lines: lines[1:], "line 1: a trace has one line of kind begin"),
        (lambda lines: [*lines[:3], '{"t":4,"kind":"dream"}'], "no kind 'dream'"),
        (lambda lines: [*lines[:3], lines[3].replace('"messages":[2,3]', '"messages":[2,77]')], "line 4"),
        (lambda lines: [], "no trace"),
        (lambda lines: ["[]"], "line 1"),
        (lambda lines: [lines[0].replace('"version":1', '"version":9')], "version 9"),
    ],
)
def test_a_broken_trace_is_refused_with_its_line(damage: Any, says: str) -> None:
    trace, chosen = MemoryTrace(), scenario("calc")
    run(virtual(chosen, trace=trace), chosen.request, SYSTEM)
    with pytest.raises(AgentError, match=says):
        replay(damage(trace.lines))


def test_any_text_survives(bench: Any) -> None:
    wild = 'line\n"quote" \u2028 \x00 \ud83d\ude00 {json}'
    done = bench.run([call("read", path=wild), say(wild + "\ud800")])
    assert bench.replayed().run == done
    assert all("\n" not in line and line.isascii() for line in bench.trace.lines)


@pytest.mark.parametrize("phi", [OldestFirst(3000, keep=4), Last(5)])
def test_a_trace_grows_with_the_run_and_not_with_its_square(make_bench: Any, phi: Any) -> None:
    def size(steps: int) -> int:
        bench = make_bench()
        bench.run(
            [*(call("read", path=f"f{n:04d}.py") for n in range(steps)), say("done")], phi, limits=unlimited()
        )
        return sum(map(len, bench.trace.lines))

    assert (size(160) - size(80)) < 1.2 * (size(80) - size(40)) * 2


def unlimited() -> Any:
    from harnesses.runtime.control import Limits

    return Limits(None, None, None, None)


SCENARIOS = [("calc", name) for name in CALC] + [(name, None) for name in OTHERS]


@pytest.mark.parametrize(("task", "script"), SCENARIOS)
def test_the_stored_traces_are_those_of_the_scenarios(task: str, script: str | None) -> None:
    chosen, trace = scenario(task, script), MemoryTrace()
    run(virtual(chosen, trace=trace), chosen.request, SYSTEM)
    stored = STORED / f"{script or task}.jsonl"
    mine, theirs = map(json.loads, trace.lines), map(json.loads, stored.read_text().splitlines())
    assert [r | {"label": None} for r in mine] == [r | {"label": None} for r in theirs]


@pytest.mark.parametrize(("task", "script"), SCENARIOS)
def test_the_note_of_a_scenario_says_where_a_control_fired(task: str, script: str | None) -> None:
    chosen, past = scenario(task, script), read_trace(STORED / f"{script or task}.jsonl")
    lines = fired(past)
    assert recomputed(past, virtual(chosen).context_map) == len(past.contexts)
    if not lines:
        assert chosen.says.startswith("no control fires")
    else:
        assert lines[0].startswith(chosen.says.partition(":")[0])
    assert chosen.says in (STORED / "README.md").read_text()


def test_a_reply_that_does_not_parse_is_one_firing_and_its_own_words_are_none(bench: Any) -> None:
    bench.run([Reply(calls=(RawCall("read", "{"),)), say("done")])
    (line,) = fired(bench.replayed())
    assert line.startswith("step 1: corrective message: [harness] Your reply could not be read")
