"""LangGraph adapter: the loop of the runtime as a graph of two nodes, with savers; imports langgraph, the runtime.

The model node is `model_step`, the tools node `tool_step`, and one conditional edge after the model ends the graph:
the ReAct loop as LangGraph's users write it, with nothing of the harness left out. LangGraph keeps the state after a
node and runs an interrupted node from its first line; a journal of the run's records beside the checkpoints says what
the node had done already, so that no reply is asked for and no call is made again. Source: M1 §1.2.2, §1.2.6, LG.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from harnesses.journal import Journal, MemoryJournal, NoJournal, SqliteJournal
from harnesses.langgraph_messages import Values, of_values, to_values
from harnesses.runtime.loop import Harness, end, model_step, start, tool_step
from harnesses.runtime.records import AgentError, Reason, Run
from harnesses.runtime.resume import finish_calls, finish_reply, require_same
from harnesses.runtime.trace import Record, Replay, Trace, replay

# LangGraph's own limit counts nodes and ends a run with an exception; the limits of the harness end it with a reason.
RECURSION = 10**9
MODEL, TOOLS = "model", "tools"
_BESIDE: WeakKeyDictionary[InMemorySaver, MemoryJournal] = WeakKeyDictionary()


def never() -> bool:
    """No: the user's side does not end the run."""
    return False


class Checkpoint(NamedTuple):
    """A moment of a thread: super-steps so far, the node that led there (`start` for the first), the run then."""

    step: int
    node: str
    run: Run


class ReactGraph:
    """A harness as a LangGraph graph; every thread of it is one run, and runs go one after the other.

    saver: where the state is kept after every node, None for nowhere. ended: asked after every tools node; true ends
    the run as completed, unless it has ended already. journal: where records are kept, by default with the
    checkpoints; AgentError for a saver of which only its owner knows where that is. The harness's own trace is told
    every record too, and on `resume` all that were made before.
    """

    def __init__(
        self,
        harness: Harness,
        saver: BaseCheckpointSaver[Any] | None = None,
        ended: Callable[[], bool] = never,
        journal: Journal | None = None,
    ) -> None:
        self._saver, self._ended = saver, ended
        self.journal = _journal(saver) if journal is None else journal
        self._trace = _Journalled(self.journal, harness.trace)
        self.harness = replace(harness, trace=self._trace)
        self._resumed = False
        graph = StateGraph(Values)
        graph.add_node(MODEL, self._model)
        graph.add_node(TOOLS, self._tools)
        graph.add_edge(START, MODEL)
        graph.add_conditional_edges(MODEL, _onward, {TOOLS: TOOLS, END: END})
        graph.add_edge(TOOLS, MODEL)
        self.graph = graph.compile(checkpointer=saver)

    def run(self, request: str, system: str = "", thread: str = "1") -> Run:
        """A whole run from a user's request to its end. AgentError where the thread is there already."""
        if self._saved(thread) or _asked(self.journal.lines(thread)):
            raise AgentError(f"thread {thread!r} is there already; resume it, or name another")
        self.journal.forget(thread)  # of a run that was killed before its request
        self._trace.thread, self._resumed = thread, False
        return self._invoke(to_values(start(self.harness, request, system)), thread)

    def resume(self, thread: str = "1") -> Run:
        """The run of a thread to its end, from where its records end.

        AgentError where there is no such thread, or where the harness is not the one that began it.
        """
        past = self._past(thread)
        require_same(self.harness, past)
        for record in past.records:
            self._trace.copy.write(record)
        self._trace.thread, self._resumed = thread, True
        # Killed before its first checkpoint, a thread begins with what its records say.
        return self._invoke(None if self._saved(thread) else to_values(past.run), thread)

    def checkpoints(self, thread: str = "1") -> list[Checkpoint]:
        """Every checkpoint of a thread, oldest first. AgentError where there is no such thread."""
        self._past(thread)
        found: list[Checkpoint] = []
        node = "start"
        for moment in reversed(list(self.graph.get_state_history(_config(thread)))):
            if "state" in moment.values:  # not so in the checkpoint of the input alone
                step = (moment.metadata or {}).get("step", len(found))
                found.append(Checkpoint(step, node, of_values(moment.values)))
                node = moment.next[0] if moment.next else END
        return found

    def _saved(self, thread: str) -> bool:
        return self._saver is not None and self._saver.get_tuple(_config(thread)) is not None

    def _past(self, thread: str) -> Replay:
        """What the records of a thread say."""
        if self._saver is None:
            raise AgentError("a graph without a saver keeps no thread; pass saver=memory_saver()")
        lines = self.journal.lines(thread)
        if not _asked(lines):
            raise AgentError(f"there is no thread {thread!r}; begin it with run")
        return replay(lines, f"thread {thread!r}")

    def _invoke(self, values: Values | None, thread: str) -> Run:
        # "sync": a node begins only when what came before it is kept; the other ways may lose it in a crash.
        durability: Any = None if self._saver is None else "sync"
        return of_values(self.graph.invoke(values, _config(thread), durability=durability))

    def _model(self, state: Values, config: RunnableConfig) -> Any:
        """The node of the model; nothing where the tools node has ended the run."""
        run, past = self._begun(MODEL, state, config)
        if run.state.terminated:
            done = run
        elif past is None or len(past.replies) == state["state"]["step"]:
            done = model_step(self.harness, run)
        else:
            done = finish_reply(self.harness, run, past)
        return to_values(done, len(state["messages"]))

    def _tools(self, state: Values, config: RunnableConfig) -> Any:
        """The node of the tools, and of the user's side after them."""
        run, past = self._begun(TOOLS, state, config)
        if past is None:
            done = tool_step(self.harness, run)
        else:
            done = run if run.state.terminated else finish_calls(self.harness, run, past)
        if self._ended() and not done.state.terminated:
            done = end(self.harness, done, Reason.COMPLETED)
        return to_values(done, len(state["messages"]))

    def _begun(self, node: str, state: Values, config: RunnableConfig) -> tuple[Run, Replay | None]:
        """The run from which a node goes on, and what is recorded of the node where it was begun before."""
        run, past, thread = of_values(state), None, config["configurable"]["thread_id"]
        self._trace.thread = thread
        if self.journal.newest(thread) > run.tick:
            past = replay(_lines_of(node, run, self.journal.lines(thread)), f"thread {thread!r}")
            if past.run.history[: len(run.history)] != run.history:
                raise AgentError(
                    f"the records of thread {thread!r} tell of another history; begin a new thread"
                )
            run = past.run
        if self._resumed:  # the time in between is not the run's
            run = replace(run, state=replace(run.state, at=self.harness.dispatcher.clock.now()))
            self._resumed = False
        return run, past


class _Journalled:
    """The trace of a graph's harness: the journal of the thread that runs, then the trace that was given."""

    def __init__(self, journal: Journal, copy: Trace) -> None:
        self.journal, self.copy, self.thread = journal, copy, ""

    def write(self, record: Record) -> None:
        """Take one record."""
        self.journal.write(self.thread, record)
        self.copy.write(record)


def _journal(saver: BaseCheckpointSaver[Any] | None) -> Journal:
    """Where records are kept beside the checkpoints of a saver."""
    if saver is None:
        return NoJournal()
    if isinstance(saver, SqliteSaver):
        saver.setup()
        return SqliteJournal(saver.conn, saver.lock)
    if isinstance(saver, InMemorySaver):
        return _BESIDE.setdefault(saver, MemoryJournal())
    raise AgentError(
        f"a {type(saver).__name__} keeps no records of calls; pass journal= too, such as a SqliteJournal"
    )


def _asked(lines: list[str]) -> bool:
    """Whether a thread's records come as far as the user's request."""
    return any(
        record["kind"] == "message" and record["message"]["role"] == "user"
        for record in map(json.loads, lines)
    )


def _lines_of(node: str, run: Run, lines: list[str]) -> Iterator[str]:
    """The records up to where the node that began with this run ended, or was interrupted."""
    for line in lines:
        record = json.loads(line)
        if record["t"] > run.tick:
            kind = record["kind"]
            calls = kind == "started" or (kind == "message" and record["message"]["role"] == "tool")
            later = kind == "context" and (node == TOOLS or record["step"] > run.state.step)
            if later or (node == MODEL and calls):
                return
        yield line


def _onward(state: Values) -> str:
    return TOOLS if state["state"]["termination_reason"] is None else END


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION}


@contextmanager
def memory_saver() -> Iterator[InMemorySaver]:
    """Checkpoints in this process, gone with it."""
    yield InMemorySaver()


@contextmanager
def sqlite_saver(path: str | PathLike[str], power_cuts: bool = False) -> Iterator[SqliteSaver]:
    """Checkpoints in a file, which another process can resume from; with `power_cuts` also after one, at more cost.

    Otherwise what is kept survives the end of the process, but a power cut may lose the last records.
    """
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        saver.conn.execute(f"PRAGMA synchronous={'FULL' if power_cuts else 'NORMAL'}")
        yield saver
