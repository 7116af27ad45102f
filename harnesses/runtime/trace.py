"""Trace: every record of a run as one line of JSON, flushed as it is written, and read back; imports records.

A run killed midway leaves a readable prefix. Contexts are written as what changed since the one before: a message is
its timestamp where it stands in the history as it is, so that a trace grows with the run and not with its square.
Source: M1 §1.2.6, row 9.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from harnesses.runtime.models import RawCall, Reply
from harnesses.runtime.records import AgentError, Context, Dropped, Message, Run, State

if TYPE_CHECKING:
    from harnesses.runtime.loop import Harness

VERSION = 1
Record = dict[str, Any]
"""`t` the timestamp, `at` the clock, `kind`, and what belongs to the kind: begin, context, reply, message, started,
ended, model_failure, end."""


class Trace(Protocol):
    """Where records go; once `write` has returned, the record survives the process."""

    def write(self, record: Record) -> None:
        """Take one record."""
        ...


class NoTrace:
    """Nowhere."""

    def write(self, record: Record) -> None:
        """Forget it."""


class MemoryTrace:
    """A list of lines, for tests and for runs that are looked at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, record: Record) -> None:
        """Keep it as its line."""
        self.lines.append(as_line(record))


class FileTrace:
    """A file of lines. A new trace takes no file that exists; `append` goes on with one, without its torn last line."""

    def __init__(self, path: Path, append: bool = False) -> None:
        if append:
            keep_whole_lines(path)
        try:
            self._file: IO[str] = open(path, "a" if append else "x", encoding="ascii", newline="")
        except FileExistsError:
            raise AgentError(
                f"{path} is there already; name another file for the trace, such as run-2.jsonl"
            ) from None

    def write(self, record: Record) -> None:
        """Write the line and hand it to the system, so that it outlives the process."""
        self._file.write(as_line(record) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def as_line(record: Record) -> str:
    """One line without breaks, in ASCII: any text of a model or tool can be written and read back."""
    return json.dumps(record, allow_nan=False, separators=(",", ":"))


def keep_whole_lines(path: Path) -> None:
    """Cut off what a kill left of a last line."""
    with open(path, "r+b") as file:
        text = file.read()
        file.truncate(text.rfind(b"\n") + 1)
        os.fsync(file.fileno())


def head_record(harness: Harness) -> Record:
    """What a run was made with, for `begin`: enough to tell whether a resumed run goes on with the same."""
    rules = [{"mode": rule.mode, "warn": list(rule.warn), "stop": rule.stop} for rule in harness.stall]
    return {
        "version": VERSION,
        "model": harness.model.name,
        "map": harness.context_map.name,
        "limits": vars(harness.limits),
        "stall": rules,
        "tools": harness.dispatcher.schemas,
        "label": dict(harness.label),
    }


def context_record(run: Run, context: Context) -> Record:
    """A context as its difference from the run's last one."""
    before = run.context or Context((), 0)
    known = {message.timestamp: message for message in run.history}
    kept, kept_dropped = (
        _common(context.messages, before.messages),
        _common(context.dropped, before.dropped),
    )
    return {
        "step": run.state.step,
        "keep": kept,
        "messages": [
            m.timestamp if known.get(m.timestamp) == m else m.json() for m in context.messages[kept:]
        ],
        "keep_dropped": kept_dropped,
        "dropped": [list(vars(removal).values()) for removal in context.dropped[kept_dropped:]],
        "tokens": [context.token_estimate, context.schema_tokens, context.inserted_tokens],
        "state": run.state.json(),
    }


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


@dataclass(frozen=True)
class Replay:
    """What a trace says: `run` at its end, the contexts by step, the replies, and the attempts of each call.

    `torn` says whether a kill left a part of a last line; it is not read.
    """

    head: Record
    run: Run
    contexts: Mapping[int, Context] = field(default_factory=dict)
    replies: tuple[Reply, ...] = ()
    attempts: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    torn: bool = False


def read_trace(path: Path) -> Replay:
    """Replay of a file. AgentError with the number of a line that cannot be read."""
    text = path.read_bytes()
    whole, _, rest = text.rpartition(b"\n")
    return replay(whole.decode("utf-8", "replace").split("\n") if whole else [], str(path), torn=bool(rest))


def replay(lines: Iterable[str], place: str = "trace", torn: bool = False) -> Replay:
    """History, contexts, removals, state and reason, exactly as they were. AgentError naming a line at fault."""
    so_far = Replay({}, Run(()), torn=torn)
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            if record["t"] <= so_far.run.tick:
                raise AgentError(f"its timestamp {record['t']} does not follow {so_far.run.tick}")
            so_far = _after(so_far, record)
        except AgentError as error:
            raise AgentError(f"{place}, line {number}: {error}") from None
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise AgentError(
                f'{place}, line {number}: no record such as {{"t":1,"kind":"begin",...}} ({what})'
            ) from None
    if not so_far.head:
        raise AgentError(f"{place} is no trace: it has no first line of kind begin")
    return so_far


def _after(past: Replay, record: Record) -> Replay:
    """The replay with one more record."""
    kind, run = record["kind"], replace(past.run, tick=record["t"])
    if (kind == "begin") != (not past.head):
        raise AgentError("a trace has one line of kind begin, its first")
    if kind == "message":
        message = Message.of(record["message"])
        run = replace(run, history=(*run.history, message))
    if "state" in record:
        run = replace(run, state=State.of(record["state"]))
    past = replace(past, run=run, records=(*past.records, record))
    if kind == "begin":
        if record["version"] != VERSION:
            raise AgentError(f"it has version {record['version']!r}, this program reads {VERSION}")
        return replace(past, head=record)
    if kind == "context":
        context = _context(past, record)
        shown = {**past.contexts, record["step"]: context}
        return replace(past, run=replace(run, context=context), contexts=shown)
    if kind == "reply":
        calls = tuple(RawCall(*raw) for raw in record["calls"])
        reply = Reply(record["text"], calls, record["tokens"], record["cost"], record["fault"])
        return replace(past, replies=(*past.replies, reply))
    if kind in ("started", "ended"):
        made = past.attempts.get(record["call_id"], ())
        return replace(past, attempts={**past.attempts, record["call_id"]: (*made, record)})
    if kind not in ("message", "model_failure", "end"):
        raise AgentError(f"no kind {kind!r} of records is known")
    return past


def _context(past: Replay, record: Record) -> Context:
    """The context that a record and the one before it describe."""
    before = past.run.context or Context((), 0)
    known = {message.timestamp: message for message in past.run.history}
    changed = tuple(known[m] if isinstance(m, int) else Message.of(m) for m in record["messages"])
    dropped = tuple(Dropped(*removal) for removal in record["dropped"])
    total, schemas, inserted = record["tokens"]
    return Context(
        (*before.messages[: record["keep"]], *changed),
        total,
        (*before.dropped[: record["keep_dropped"]], *dropped),
        schemas,
        inserted,
    )
