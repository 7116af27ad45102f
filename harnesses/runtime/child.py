"""Child: one call of a Python function in a process that can be killed; imports process, confinement.

A thread cannot be stopped, a process can. The function travels by its name, so that it must be importable, and its
arguments by pickle; the outcome comes back as JSON. Start-up costs a few hundredths of a second and the import of
the function's module. Source: M1 §1.2.3 (a hard deadline).
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harnesses.runtime.confinement import ConfinementError

Kind = Literal["ok", "error", "timeout", "denied", "transient"]
_SERVE = "import sys; from harnesses.runtime.child import serve; serve(sys.argv[1])"


class Transient(Exception):
    """Raised by a tool whose failure may pass by itself, such as a rate limit: an idempotent tool is tried again."""


class Outcome(NamedTuple):
    """How a call ended, before it becomes a result: `content` is the answer or the fault in words."""

    kind: Kind
    content: str


def call_here(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Outcome:
    """Call the function in this process; whatever it raises, but for an interrupt by the user, is an outcome.

    A tool that is confined denies by itself what only shows when a path is opened.
    """
    try:
        return Outcome("ok", as_text(function(**arguments)))
    except TimeoutError as error:
        return Outcome("timeout", str(error) or "timed out")
    except Transient as error:
        return Outcome("transient", _words(error))
    except ConfinementError as error:
        return Outcome("denied", str(error))
    except (Exception, SystemExit) as error:
        return Outcome("error", _words(error))


def call_in_child(function: Callable[..., Any], arguments: Mapping[str, Any], deadline: float) -> Outcome:
    """Call the function in a process of its own, killed with all it started after `deadline` seconds."""
    from harnesses.runtime.process import run_command

    with tempfile.TemporaryDirectory(prefix="tool-call-") as folder:
        Path(folder, "call").write_bytes(pickle.dumps((function, dict(arguments))))
        # The child finds modules where this process does.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))}
        argv = [sys.executable, "-c", _SERVE, folder]
        finished = run_command(argv, os.getcwd(), deadline, env=environment)
        answer = Path(folder, "outcome")
        if finished.ended == "deadline":
            return Outcome("timeout", f"killed after {deadline:g} s")
        if not answer.exists():
            last = finished.output.strip().splitlines()[-1:] or ["no output"]
            return Outcome(
                "error", f"its process ended without an answer (exit code {finished.exit_code}): {last[0]}"
            )
        return Outcome(*json.loads(answer.read_text(encoding="utf-8")))


def serve(folder: str) -> None:
    """What the child does: read the call, make it, leave the outcome in a file that appears whole."""
    function, arguments = pickle.loads(Path(folder, "call").read_bytes())
    outcome = call_here(function, arguments)
    Path(folder, "part").write_text(json.dumps(outcome), encoding="utf-8")
    os.replace(Path(folder, "part"), Path(folder, "outcome"))


def as_text(value: Any) -> str:
    """A tool's answer as the model reads it: texts as they are, anything else as JSON; TypeError where it has none."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
