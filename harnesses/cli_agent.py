"""The command `agent`: run a task in the minimal harness, replay a trace, resume a killed run; heavy imports inside."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnesses.context import ContextMap
    from harnesses.runtime.loop import Harness
    from harnesses.runtime.models import Model
    from harnesses.runtime.records import Run
    from harnesses.runtime.scenarios import Scenario
    from harnesses.runtime.trace import Replay, Trace

DONE = 0
SCRIPTS = ("fix", "malformed", "denied", "stall", "trimming")


def add_agent(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "agent",
        help="a running agent: run a task in the minimal harness, replay or resume its trace",
        description="The minimal harness of M1 §1.2 with a scripted model, or any chat model by name: tools in a real "
        "folder that they are confined to, or in memory.",
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    one = verbs.add_parser("run", help="run a task: calc, find or copy")
    one.add_argument("task", metavar="TASK", help="calc (repair a module until pytest passes), find or copy")
    one.add_argument("--script", metavar="NAME", help=f"what the model does in calc: {', '.join(SCRIPTS)}")
    one.add_argument(
        "--model",
        metavar="NAME",
        help="a chat model instead of a script: openai:gpt-4o-mini, anthropic:NAME, ollama:NAME, package.module:Class",
    )
    one.add_argument(
        "--base-url",
        metavar="URL",
        help="the server to ask, such as http://localhost:8000/v1 for openai:NAME",
    )
    one.add_argument(
        "--context",
        metavar="NAME:ARGS",
        default="oldest_first:8000:4",
        help="a context map such as last:10 or oldest_first:8000:4, which is the default",
    )
    one.add_argument(
        "--trace", metavar="FILE", type=Path, help="write every record to a new file, line by line"
    )
    one.add_argument("--folder", metavar="DIR", type=Path, help="work in this new folder and keep it")
    one.add_argument(
        "--virtual",
        action="store_true",
        help="files in memory and a clock that stands still: no process is run",
    )
    one.set_defaults(handler=run)
    again = verbs.add_parser("replay", help="what a trace shows, its contexts recomputed from its history")
    again.set_defaults(handler=show)
    on = verbs.add_parser("resume", help="go on with a run that was killed, nothing recorded done again")
    on.set_defaults(handler=go_on)
    for verb in (again, on):
        verb.add_argument("trace", metavar="TRACE", type=Path, help="a file that agent run --trace wrote")
    for verb in (one, again, on):
        verb.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run a task from its start to its end."""
    from harnesses.runtime import loop
    from harnesses.runtime.records import AgentError
    from harnesses.runtime.scenarios import SYSTEM, scenario
    from harnesses.runtime.trace import FileTrace, MemoryTrace

    chosen, phi = scenario(args.task, args.script), _map(args.context)
    if args.virtual and args.folder is not None:
        raise AgentError("--virtual has no folder; leave --folder out")
    if args.model is None and args.base_url is not None:
        raise AgentError("--base-url needs the model to ask for there, such as --model openai:NAME")
    if args.model is not None and args.script is not None:
        raise AgentError("--model takes the place of a script; leave --script out")
    label: dict[str, Any] = {"task": args.task, "script": args.script, "folder": None}
    if args.model is not None:
        label |= {"model": args.model, "base_url": args.base_url}
    model = _model(chosen, label)
    trace: Any = MemoryTrace() if args.trace is None else FileTrace(args.trace)
    folder = None if args.virtual else _created(args.folder, chosen)
    label["folder"] = None if folder is None else str(folder)
    try:
        done = loop.run(_harness(chosen, model, phi, label, trace), chosen.request, SYSTEM)
    finally:
        # Kept after a kill, which runs nothing here: the run goes on in it.
        if folder is not None and args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return _print(args, _replay(args, trace), done)


def show(args: argparse.Namespace) -> int:
    """Replay a trace."""
    from harnesses.runtime.report import recomputed
    from harnesses.runtime.trace import read_trace

    past = read_trace(args.trace)
    return _print(args, past, past.run, recomputed(past, _map(past.head["map"])))


def go_on(args: argparse.Namespace) -> int:
    """Resume a run, appending to its trace."""
    from harnesses.runtime.records import AgentError
    from harnesses.runtime.resume import resume
    from harnesses.runtime.scenarios import scenario
    from harnesses.runtime.trace import FileTrace, read_trace

    past = read_trace(args.trace)
    label = past.head["label"]
    if label.get("task") is None:
        raise AgentError(f"{args.trace} does not name its task; resume it from the program that began it")
    chosen, phi = scenario(label["task"], label["script"]), _map(past.head["map"])
    if past.run.state.terminated:
        return _print(args, past, past.run)
    model = _model(chosen, label)
    trace = FileTrace(args.trace, append=True)
    done = resume(_harness(chosen, model, phi, label, trace, past), past)
    return _print(args, read_trace(args.trace), done)


def _map(text: str) -> ContextMap:
    """A context map by name; the one that needs a POMDP is refused."""
    from harnesses.context import parse_map
    from harnesses.runtime.records import AgentError

    recipe = parse_map(text)
    if recipe.name == "full":
        raise AgentError("full needs a number of pairs here, such as full:50")
    return recipe.bind(None)


def _model(chosen: Scenario, label: dict[str, Any]) -> Model:
    """The model that a label names, else the one that follows the script."""
    if label.get("model") is None:
        return chosen.model
    from harnesses.providers import model_named

    return model_named(label["model"], label.get("base_url"))


def _harness(
    chosen: Scenario,
    model: Model,
    phi: ContextMap,
    label: dict[str, Any],
    trace: Trace,
    past: Replay | None = None,
) -> Harness:
    """The harness that a label describes; files in memory are as the recorded writes of `past` left them."""
    from harnesses.runtime.clock import VirtualClock
    from harnesses.runtime.scenarios import VirtualFiles, harness_of
    from harnesses.runtime.workspace import Workspace

    if label["folder"] is not None:
        return harness_of(Workspace.at(label["folder"]), model, phi, trace=trace, label=label)
    files = VirtualFiles(dict(chosen.files))
    for call in past.run.calls if past is not None else ():
        result = past.run.results.get(call.id) if past is not None else None
        if call.name == "write_file" and result is not None and result.status == "ok":
            files.write_file(**call.arguments)
    # A provider is waited for, also where the files are in memory.
    clock = VirtualClock() if label.get("model") is None else None
    return harness_of(files, model, phi, clock=clock, trace=trace, label=label)


def _created(folder: Path | None, chosen: Scenario) -> Path:
    """A folder with the scenario's files: the one named, which must be new or empty, or a temporary one."""
    from harnesses.runtime.records import AgentError

    place = Path(tempfile.mkdtemp(prefix="agent-")) if folder is None else folder.resolve()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise AgentError(f"{folder} is not empty; name a new folder, such as --folder calc")
    place.mkdir(parents=True, exist_ok=True)
    for name, text in chosen.files.items():
        (place / name).write_text(text, encoding="utf-8")
    return place


def _replay(args: argparse.Namespace, trace: Any) -> Replay:
    from harnesses.runtime.trace import read_trace, replay

    return replay(trace.lines) if args.trace is None else read_trace(args.trace)


def _print(args: argparse.Namespace, past: Replay, done: Run, contexts: int | None = None) -> int:
    """The run as JSON or text."""
    from harnesses.runtime.report import summary, transcript

    found = summary(past)
    if contexts is not None:
        found["contexts_recomputed"] = contexts
    if args.json:
        print(json.dumps(found, allow_nan=False))
        return DONE
    print(transcript(past))
    if found["answer"] is not None:
        print(f"answer: {found['answer']}")
    if contexts is not None:
        print(f"{contexts} contexts recomputed from the history: all as recorded")
    if past.torn:
        print("the last line was torn by a kill and is not read")
    return DONE
