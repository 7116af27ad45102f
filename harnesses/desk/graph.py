"""Graph: the desk's nodes and edges as one LangGraph graph, and the savers of its checkpoints; imports nodes, edges.

Built from the two tables of M14 §4. Every node returns fields and names no successor, so that an edge alone decides
(`Command(goto=)` beside an edge runs both); no two nodes run in one step, so that a failure repeats no sibling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import RetryPolicy

from harnesses.desk import edges
from harnesses.desk.database import DeskError, connect
from harnesses.desk.edges import (
    AGENT,
    ANSWERED,
    ASK,
    ESCALATE,
    GUARD,
    REVIEW,
    ROUTER,
    SEND,
    STOPPED,
    TOOLS,
    VERIFY,
)
from harnesses.desk.nodes import Nodes
from harnesses.desk.state import DeskState, checked_update
from harnesses.desk.tool_errors import Retry
from harnesses.runtime.models import ModelFailure

Saver = BaseCheckpointSaver[Any]
Node = Callable[..., Any]
Wrap = Callable[[str, Node], Node]
"""What is put around each node, by its name: a counter, a fault."""

NODES = (ROUTER, AGENT, TOOLS, GUARD, REVIEW, SEND, ASK, ESCALATE)

RECURSION_LIMIT = 60
"""Graph steps of one request: three nodes and a review for each of K_MAX model calls, and room. LangGraph's own is
10,007 in 1.2.12."""
TRIES = 3
"""Calls of a node that failed in passing: of a model that is overloaded, of a busy database."""


def build_graph(
    nodes: Nodes,
    saver: Saver | None = None,
    *,
    verify: bool = False,
    breakpoints: Iterable[str] = (),
    wrap: Wrap = lambda name, node: node,
) -> CompiledStateGraph:
    """The compiled graph; it forgets when the process ends unless a saver is given.

    verify: whether answers are checked against the passages (stretch A). breakpoints: nodes before which a run stops
    until it is resumed. Raises DeskError for a node that is none. Source: M14 §4.
    """
    names = (*NODES, VERIFY) if verify else NODES
    stops = list(breakpoints)
    for name in stops:
        if name not in names:
            raise DeskError(f"no node {name!r} to stop before; the nodes are {', '.join(names)}")
    graph = StateGraph(DeskState)
    for name in names:
        node: Any = _checking(name, wrap(name, getattr(nodes, name)))
        graph.add_node(name, node, retry_policy=_RETRIES.get(name))
    answered = VERIFY if verify else END
    graph.add_edge(START, ROUTER)
    graph.add_conditional_edges(ROUTER, edges.after_router, [AGENT, ASK, ESCALATE])
    graph.add_conditional_edges(AGENT, edges.after_agent, {TOOLS: TOOLS, ANSWERED: answered, STOPPED: END})
    graph.add_conditional_edges(TOOLS, edges.after_tools, [GUARD, AGENT, ESCALATE])
    graph.add_conditional_edges(GUARD, edges.after_guard, [SEND, REVIEW, ESCALATE])
    graph.add_conditional_edges(REVIEW, edges.after_review, [SEND, AGENT, ESCALATE])
    graph.add_edge(SEND, AGENT)
    for last in (ASK, ESCALATE, *([VERIFY] if verify else [])):
        graph.add_edge(last, END)
    return graph.compile(checkpointer=InMemorySaver() if saver is None else saver, interrupt_before=stops)


def sqlite_saver(path: str | Path) -> SqliteSaver:
    """A saver on a connection of its own to a database file, which other processes may write to at the same time."""
    return SqliteSaver(connect(path))


def _checking(name: str, node: Node) -> Node:
    """The node, its update checked: LangGraph drops a field that the state has not. What it raises passes through.

    The node's signature is kept, from which LangGraph reads whether it takes the configuration.
    """

    @wraps(node)
    def checking(*args: Any, **kwargs: Any) -> Any:
        return checked_update(node(*args, **kwargs), name)

    return checking


def _passing(error: Exception) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(error, Retry) or (isinstance(error, ModelFailure) and error.transient)


_RETRIES = {
    name: RetryPolicy(initial_interval=0.1, max_attempts=TRIES, jitter=False, retry_on=_passing)
    for name in (AGENT, SEND)
}
