"""LangGraph adapter: the loop of the runtime as a graph of two nodes, with savers; imports langgraph, the runtime.

The model node is `model_step`, the tools node `tool_step`, and one conditional edge after the model ends the graph:
the ReAct loop as LangGraph's users write it, with nothing of the harness left out. Source: M1 §1.2.2, LG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from harnesses.langgraph_messages import Values, of_values, to_values
from harnesses.runtime.loop import Harness, end, model_step, start, tool_step
from harnesses.runtime.records import AgentError, Reason, Run

# LangGraph's own limit counts nodes and ends a run with an exception; the limits of the harness end it with a reason.
RECURSION = 10**9
MODEL, TOOLS = "model", "tools"


def never() -> bool:
    """No: the user's side does not end the run."""
    return False


class Checkpoint(NamedTuple):
    """A moment of a thread: super-steps so far, the node that led there (`start` for the first), the run then."""

    step: int
    node: str
    run: Run


class ReactGraph:
    """A harness as a LangGraph graph; every thread of it is one run.

    saver: where the state is kept after every node, None for nowhere. ended: asked after every tools node; true ends
    the run as completed, unless it has ended already.
    """

    def __init__(
        self,
        harness: Harness,
        saver: BaseCheckpointSaver[Any] | None = None,
        ended: Callable[[], bool] = never,
    ) -> None:
        self.harness, self._saver, self._ended = harness, saver, ended
        graph = StateGraph(Values)
        graph.add_node(MODEL, self._model)
        graph.add_node(TOOLS, self._tools)
        graph.add_edge(START, MODEL)
        graph.add_conditional_edges(MODEL, _onward, {TOOLS: TOOLS, END: END})
        graph.add_edge(TOOLS, MODEL)
        self.graph = graph.compile(checkpointer=saver)

    def run(self, request: str, system: str = "", thread: str = "1") -> Run:
        """A whole run from a user's request to its end. AgentError where the thread is there already."""
        if self._saver is not None and self._saver.get_tuple(_config(thread)) is not None:
            raise AgentError(f"thread {thread!r} is there already; resume it, or name another")
        return self._invoke(to_values(start(self.harness, request, system)), thread)

    def resume(self, thread: str = "1") -> Run:
        """The run of a thread to its end, from its newest checkpoint. AgentError where there is no such thread."""
        self._newest(thread)
        return self._invoke(None, thread)

    def checkpoints(self, thread: str = "1") -> list[Checkpoint]:
        """Every checkpoint of a thread, oldest first. AgentError where there is no such thread."""
        self._newest(thread)
        found: list[Checkpoint] = []
        node = "start"
        for moment in reversed(list(self.graph.get_state_history(_config(thread)))):
            if "state" in moment.values:  # not so in the checkpoint of the input alone
                step = (moment.metadata or {}).get("step", len(found))
                found.append(Checkpoint(step, node, of_values(moment.values)))
                node = moment.next[0] if moment.next else END
        return found

    def _newest(self, thread: str) -> None:
        if self._saver is None:
            raise AgentError("a graph without a saver keeps no thread; pass saver=memory_saver()")
        if self._saver.get_tuple(_config(thread)) is None:
            raise AgentError(f"there is no thread {thread!r}; begin it with run")

    def _invoke(self, values: Values | None, thread: str) -> Run:
        # "sync": a node begins only when what came before it is kept; the other ways may lose it in a crash.
        durability: Any = None if self._saver is None else "sync"
        return of_values(self.graph.invoke(values, _config(thread), durability=durability))

    def _model(self, state: Values) -> Any:
        run = of_values(state)
        return {} if run.state.terminated else to_values(model_step(self.harness, run), len(run.history))

    def _tools(self, state: Values) -> Any:
        run = of_values(state)
        done = tool_step(self.harness, run)
        if self._ended() and not done.state.terminated:
            done = end(self.harness, done, Reason.COMPLETED)
        return to_values(done, len(run.history))


def _onward(values: Values) -> str:
    return TOOLS if values["state"]["termination_reason"] is None else END


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION}


@contextmanager
def memory_saver() -> Iterator[InMemorySaver]:
    """Checkpoints in this process, gone with it."""
    yield InMemorySaver()


@contextmanager
def sqlite_saver(path: str | PathLike[str]) -> Iterator[SqliteSaver]:
    """Checkpoints in a file, which another process can resume from."""
    with SqliteSaver.from_conn_string(str(path)) as saver:
        yield saver
