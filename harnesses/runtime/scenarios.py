"""Scenarios: the calc task with its perturbations, and two more tasks, scripted and in memory; imports loop, models.

Tools have the names and types of `workspace.Workspace`, whose methods take their place in a real folder. Nothing
here depends on time or chance, so that a scenario gives the same trace everywhere. Source: M1 §1.3, Lab 1a.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harnesses.context import ContextMap, OldestFirst
from harnesses.runtime.assembly import Reading
from harnesses.runtime.calc_task import COMMAND, FILES, REQUEST, RIGHT
from harnesses.runtime.clock import Clock, VirtualClock
from harnesses.runtime.control import Limits, Matches
from harnesses.runtime.loop import Harness
from harnesses.runtime.models import Line, Model, Reply, ScriptedModel, call, say
from harnesses.runtime.records import AgentError
from harnesses.runtime.tools import Dispatcher, Rule, Tool
from harnesses.runtime.trace import NoTrace, Trace

SYSTEM = "You repair a small repository. Use the tools; answer in words when you are done."
THRESHOLD = 8_000  # tokens of history at which the oldest results go. Source: M1 §1.3, perturbation D
KEEP = 4  # newest messages that trimming leaves alone
MAP = OldestFirst(THRESHOLD, keep=KEEP)
IDEMPOTENT = ("read_file", "write_file", "run_tests")  # each can be made twice as well as once
MODULES = 20


@dataclass
class VirtualFiles:
    """Files in memory with the three tools of M1 §1.3; `run_tests` compares `add` with a right one, runs nothing."""

    files: dict[str, str] = field(default_factory=lambda: dict(FILES))

    def read_file(self, path: str) -> str:
        """The text of a file; the path is relative, as in calc.py."""
        if path not in self.files:
            raise FileNotFoundError(f"there is no file {path}")
        return self.files[path]

    def write_file(self, path: str, content: str) -> str:
        """Write a file whole, over what was there."""
        self.files[path] = content
        return f"wrote {len(content.encode())} bytes to {path}"

    def run_tests(self, command: str) -> dict[str, int | str]:
        """Run the tests, as in `pytest test_calc.py`; gives exit_code and stdout."""
        right = _body(self.files.get("calc.py", "")) == _body(RIGHT)
        return {
            "exit_code": 0 if right else 1,
            "stdout": "3 passed" if right else "3 failed: add gave a text",
        }

    @property
    def permissions(self) -> dict[str, Rule]:
        """Python and text files beside each other, and one command."""
        paths = Matches("path", ("*.py", "*.txt"))
        return {"read_file": paths, "write_file": paths, "run_tests": Matches("command", (COMMAND,))}


def _body(text: str) -> str:
    """The definition of `add`, whatever its layout; the text itself where it is not Python."""
    try:
        found = [node for node in ast.parse(text).body if getattr(node, "name", None) == "add"]
    except SyntaxError:
        return text
    return ast.dump(found[0]) if found else ""


@dataclass(frozen=True)
class Scenario:
    """A request, the files that are there, and a script; `says` is one line on where a control fires."""

    request: str
    lines: Sequence[Line]
    says: str
    files: Mapping[str, str] = field(default_factory=lambda: dict(FILES))

    @property
    def model(self) -> ScriptedModel:
        """The model that follows the script."""
        return ScriptedModel(self.lines)


def harness_of(
    tools: Any,
    model: Model,
    phi: ContextMap = MAP,
    *,
    clock: Clock | None = None,
    trace: Trace | None = None,
    label: Mapping[str, Any] | None = None,
) -> Harness:
    """A harness over the three tools of `tools`, a VirtualFiles or a Workspace.

    With trimming by a budget, a context whose preserved part alone is larger ends the run: the window is the budget
    with room for the head and the schemas.
    """
    named = [tools.read_file, tools.write_file, tools.run_tests]
    given = [Tool.of(f, inline=True, timeout=90.0, idempotent=f.__name__ in IDEMPOTENT) for f in named]
    rules = {name: (rule,) for name, rule in tools.permissions.items()}
    dispatcher = Dispatcher(given, rules, clock)
    room = 0
    if isinstance(phi, OldestFirst):
        room = phi.budget + dispatcher.schema_tokens(Reading().tokens) + 200
    limits = Limits(context_tokens=room or None)
    return Harness(model, dispatcher, phi, limits, trace=trace or NoTrace(), label=label or {})


def virtual(scenario: Scenario, phi: ContextMap = MAP, trace: Trace | None = None) -> Harness:
    """The harness of a scenario in memory, on a clock that stands still."""
    return harness_of(
        VirtualFiles(dict(scenario.files)), scenario.model, phi, clock=VirtualClock(), trace=trace
    )


def scenario(task: str, script: str | None = None) -> Scenario:
    """By name: calc with its scripts, find, copy. AgentError for any other."""
    if task == "calc":
        name = script or "fix"
        if name not in CALC:
            raise AgentError(f"calc has no script {name!r}; known: {', '.join(CALC)}")
        return CALC[name]
    if task not in OTHERS:
        raise AgentError(f"there is no task {task!r}; known: {', '.join(TASKS)}")
    if script is not None:
        raise AgentError(f"{task} has one script only; leave --script {script} out")
    return OTHERS[task]


def _module(number: int) -> str:
    """A long file with one line that matters."""
    filler = "\n".join(f"# line {line:03d} of module {number:02d}: nothing to see" for line in range(72))
    return f"KEY = {1000 + 37 * number}\n{filler}\n"


def _name(number: int) -> str:
    return f"module_{number:02d}.py"


MODULE_FILES = {_name(number): _module(number) for number in range(1, MODULES + 1)}


def _key_of_third(messages: list[dict[str, Any]]) -> Reply:
    """The key in module_03.py, if the context still shows it."""
    shown = "\n".join(str(message["content"]) for message in messages)
    key = f"KEY = {1000 + 37 * 3}"
    return say(f"The key of module_03.py is {key[6:]}." if key in shown else "I no longer see module_03.py.")


def _copy(messages: list[dict[str, Any]]) -> Reply:
    """Write what the newest result says to another file."""
    return call("write_file", path="copy.txt", content=str(messages[-1]["content"]))


def _found(messages: list[dict[str, Any]]) -> Reply:
    """The number in the newest result."""
    number = re.search(r"\d+", str(messages[-1]["content"]))
    return say(f"The port is {number.group() if number else 'not given'}.")


_READ = [call("read_file", path="test_calc.py"), call("read_file", path="calc.py")]
_WRITE, _TEST = call("write_file", path="calc.py", content=RIGHT), call("run_tests", command=COMMAND)
_DONE = say("calc.add now gives the sum; the tests pass.")

CALC: dict[str, Scenario] = {
    "fix": Scenario(REQUEST, [*_READ, _WRITE, _TEST, _DONE], "no control fires; the run completes"),
    "malformed": Scenario(
        REQUEST,
        [*_READ, call("write_file", path="calc.py"), _WRITE, _TEST, _DONE],
        "step 3: validation refuses write_file without content; the model sees why and repeats it rightly",
    ),
    "denied": Scenario(
        REQUEST,
        [call("read_file", path="../secrets.env"), *_READ, _WRITE, _TEST, _DONE],
        "step 1: the permission rule denies a path outside of the workspace; the model reads what is inside",
    ),
    "stall": Scenario(
        REQUEST,
        [_TEST],
        "step 3: a corrective message at the third identical call; step 4: the fourth is not executed, stalled",
    ),
    "trimming": Scenario(
        "Read all twenty modules, then tell me the KEY of module_03.py.",
        [*(call("read_file", path=_name(number)) for number in range(1, MODULES + 1)), _key_of_third],
        "step 12: the first context over 8,000 tokens loses module_01; step 14 loses the third, and the answer",
        {**FILES, **MODULE_FILES},
    ),
}
OTHERS: dict[str, Scenario] = {
    "find": Scenario(
        "Which port does settings.py set?",
        [call("read_file", path="settings.txt"), call("read_file", path="settings.py"), _found],
        "step 1: the file is not there, the exception is an observation; step 2 reads the right one",
        {"settings.py": "port = 8765\n"},
    ),
    "copy": Scenario(
        "Copy notes.txt to copy.txt.",
        [call("read_file", path="notes.txt"), _copy, say("Copied.")],
        "no control fires; the run completes",
        {"notes.txt": "Measure twice, cut once.\n"},
    ),
}
TASKS = ("calc", *OTHERS)
