"""Driver: runs of the desk from a request to its end, with pauses for a person in between; imports graph and reviews.

Every checkpoint is on disk before the next node runs. A person's answer is written down first and then given to the
question it names, so that a process that dies at any moment loses none; `resume` goes on from wherever it died.
Source: M14 §5, Exercise 3. Differs from the source: a new request on a paused thread is refused, where LangGraph would
drop the question and start from the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from harnesses.desk.database import MEMORY, DeskError
from harnesses.desk.decider import Decider
from harnesses.desk.edges import ESCALATE
from harnesses.desk.graph import Saver, Wrap, build_graph
from harnesses.desk.nodes import Nodes, View, everything
from harnesses.desk.outbox import Outbox
from harnesses.desk.postgres import PostgresLocks
from harnesses.desk.reviews import Review, Reviews, Verdict, review_answer
from harnesses.desk.savers import locks_for, saver_for
from harnesses.desk.state import K_MAX, DeskState, Line, request_input
from harnesses.desk.thread_lock import ThreadLocks
from harnesses.desk.toolbox import Toolbox
from harnesses.desk.transcript import closing
from harnesses.runtime.models import Model

STEPS = 5
"""Graph steps for one model call, at most: agent, tools, guard, human_review, send. The recursion limit follows."""

Watch = Callable[[Line], None]
"""Told of every step's line as it happens."""


@dataclass(frozen=True)
class Question:
    """A pending email that waits for a person: `id` names this pause alone; `shown` is what the person is to see."""

    id: str
    thread: str
    shown: Mapping[str, Any]

    @property
    def call(self) -> str:
        """The call whose email it is."""
        return str(self.shown["call"])


Human = Callable[[Question], object]
"""A person, or what stands in for one: `approve` or `reject` for a question."""


@dataclass(frozen=True)
class Standing:
    """Where a thread is: its state, the node due next, the question that it waits with.

    kind: `paused` with a question; `answer`, `question`, `handoff` or `failed` at its end; `stopped` before `next`,
    at a breakpoint or where its process died.
    """

    thread: str
    state: DeskState
    next: str | None = None
    question: Question | None = None

    @property
    def kind(self) -> str:
        """One word for it."""
        if self.question is not None:
            return "paused"
        outcome = self.state.get("outcome")
        return "stopped" if self.next is not None or outcome is None else str(outcome["kind"])


@dataclass(frozen=True, eq=False)
class Desk:
    """A graph with its database: what runs the threads of the desk. From `Desk.open`.

    recursion_limit: graph steps of one run, None for what k_max model calls can need.
    """

    graph: CompiledStateGraph
    outbox: Outbox
    reviews: Reviews
    locks: ThreadLocks | PostgresLocks
    recursion_limit: int | None = None
    watch: Watch = field(default=lambda line: None)

    @classmethod
    def open(
        cls,
        model: Model,
        decider: Decider,
        toolbox: Toolbox,
        path: str | Path = MEMORY,
        *,
        view: View = everything,
        verify: bool = False,
        breakpoints: Iterable[str] = (),
        recursion_limit: int | None = None,
        watch: Watch = lambda line: None,
        saver: Saver | None = None,
        wrap: Wrap = lambda name, node: node,
    ) -> Desk:
        """A desk on a database file, made if it is not there, or a server (postgresql://...); else in memory.

        saver: another saver of checkpoints alone. wrap: put around each node. Raises DeskError for a file that is no
        database, a server that cannot be reached and a breakpoint that is no node.
        """
        outbox, reviews = Outbox(path), Reviews(path)
        if saver is None:
            saver = saver_for(path)
        nodes = Nodes(model, decider, toolbox, outbox, view)
        graph = build_graph(nodes, saver, verify=verify, breakpoints=breakpoints, wrap=wrap)
        return cls(graph, outbox, reviews, locks_for(path), recursion_limit, watch)

    def start(
        self,
        thread: str,
        case: Mapping[str, Any],
        taus: Mapping[str, Any] | None = None,
        k_max: int = K_MAX,
        lifted: Sequence[str] = (),
    ) -> Standing:
        """Run a new request until it ends or pauses; earlier requests of the thread are its memory.

        lifted: rules in code that an experiment leaves unchecked, such as P6 to see what it stops. Raises DeskError
        where the thread waits for an answer, or stopped on the way: its run is to be ended first.
        """
        with self.locks.held(named(thread)):
            now = self.standing(thread)
            if now is not None and now.question is not None:
                raise DeskError(f"thread {thread} waits for an answer; review it, or name another thread")
            if now is not None and now.next is not None:
                raise DeskError(
                    f"thread {thread} stopped before {now.next}; resume it, or name another thread"
                )
            before = closing(now.state["messages"]) if now is not None else ()
            return self._run(thread, request_input(case, taus, k_max, before, lifted), k_max)

    def answer(self, thread: str, question: str, verdict: object, by: str = "reviewer") -> Standing:
        """Give a person's verdict to the question of that id, and run on.

        Raises DeskError for a verdict that is none, for a question that does not wait (it was settled, or belongs to
        another branch of the thread), and for a second answer.
        """
        said = Verdict.of(verdict)
        with self.locks.held(named(thread)):
            waiting = self._known(thread).question
            if waiting is None or waiting.id != question:
                earlier = self.reviews.of(question)
                was = f"; its answer was {earlier.verdict.value}, by {earlier.by}" if earlier else ""
                raise DeskError(f"question {question[:8]} does not wait in thread {thread}{was}")
            self.reviews.record(Review(question, thread, waiting.call, said, by))
            return self._go_on(thread)

    def resume(self, thread: str) -> Standing:
        """Go on from a breakpoint, or from where a process died; an answer that it left behind is taken up.

        A thread that waits for an answer still waits, and one that has ended stays as it is.
        """
        with self.locks.held(named(thread)):
            return self._go_on(thread)

    def run_with_human(
        self,
        thread: str,
        case: Mapping[str, Any],
        human: Human,
        taus: Mapping[str, Any] | None = None,
        k_max: int = K_MAX,
        by: str = "reviewer",
        lifted: Sequence[str] = (),
    ) -> Standing:
        """Run a request to its end, with every question answered by `human`. Source: M14 Exercise 3."""
        return self.with_human(self.start(thread, case, taus, k_max, lifted), human, by)

    def with_human(self, standing: Standing, human: Human, by: str = "reviewer") -> Standing:
        """Run on from a pause to the end, with every question answered by `human`."""
        while standing.question is not None:
            question = standing.question
            standing = self.answer(question.thread, question.id, human(question), by)
        return standing

    def standing(self, thread: str) -> Standing | None:
        """Where a thread is, None where there is no such thread."""
        snapshot = self.graph.get_state(config(thread))
        return standing_of(thread, snapshot) if snapshot.created_at is not None else None

    def _known(self, thread: str) -> Standing:
        now = self.standing(thread)
        if now is None:
            raise DeskError(f"there is no thread {thread!r}; start it with a request")
        return now

    def _go_on(self, thread: str) -> Standing:
        now = self._known(thread)
        k_max = int(now.state.get("k_max", K_MAX))
        if now.question is None:
            return now if now.next is None else self._run(thread, None, k_max)
        review = self.reviews.of(now.question.id)
        if review is None:
            return now
        answer = review_answer(now.question.shown, review.verdict, review.by)
        return self._run(thread, Command(resume={now.question.id: answer}), k_max)

    def _run(self, thread: str, what: Any, k_max: int) -> Standing:
        """Run until the graph ends or pauses; called with the thread held."""
        return self.run_from(config(thread), what, k_max)

    def run_from(self, place: RunnableConfig, what: Any, k_max: int) -> Standing:
        """Run the graph from a configuration, telling `watch` of each step. A run out of steps has failed."""
        thread = str(place["configurable"]["thread_id"])
        limit = self.recursion_limit or STEPS * k_max + STEPS
        settings: RunnableConfig = {**place, "recursion_limit": limit}
        try:
            for chunk in self.graph.stream(what, settings, stream_mode="updates", durability="sync"):
                for update in chunk.values():
                    for line in update.get("trace", ()) if isinstance(update, dict) else ():
                        self.watch(line)
        except GraphRecursionError:
            outcome = {"kind": "failed", "reason": f"recursion limit: {limit} graph steps"}
            self.graph.update_state(config(thread), {"outcome": outcome}, as_node=ESCALATE)
        return self._known(thread)


def config(thread: str) -> RunnableConfig:
    """The configuration that names a thread's newest checkpoint."""
    return {"configurable": {"thread_id": thread}}


def named(thread: str) -> str:
    """The thread's name as it is. Raises DeskError for none."""
    if not isinstance(thread, str) or not thread.strip():
        raise DeskError("a thread has a name, such as case-0042")
    return thread


def standing_of(thread: str, snapshot: StateSnapshot) -> Standing:
    """Where a snapshot leaves the thread."""
    state = DeskState(**snapshot.values)  # type: ignore[typeddict-item]
    asked = [Question(one.id, thread, one.value) for one in snapshot.interrupts]
    return Standing(thread, state, due(snapshot), asked[0] if asked else None)


def due(snapshot: StateSnapshot) -> str | None:
    """The node that comes next, None at an end.

    Not `snapshot.next`, which leaves out a node whose writes were saved before its process died: its step is not over.
    """
    return snapshot.tasks[0].name if snapshot.tasks else None
