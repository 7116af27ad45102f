"""The twelve complaints of users of agent frameworks on plain LangGraph, at which rate each holds; imports langgraph.

    python benchmarks/langgraph_complaints.py [--repeats 20] [--json]

Each line is a small graph as LangGraph's users write one (StateGraph, the prebuilt ToolNode, its savers, trim_messages
of langchain-core), run `repeats` times; a failure is what the complaint says. No project code runs here: the same
twelve on our runtime are tests/harnesses/runtime/test_complaints.py, and the graph of harnesses/langgraph_adapter.py
has its own tests. Source: design of the running harness, sections 2 and 4.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

PACKAGES = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langgraph-prebuilt",
    "langchain-core",
)
LIMIT = 40  # of super-steps, where a run has no other end
DIED = 9  # exit code of a process that a saver ended


class State(TypedDict):
    """A history that only grows, and one number."""

    messages: Annotated[list[AnyMessage], add_messages]
    count: int


class Complaint(NamedTuple):
    """A complaint, how it is measured, and one run of it: whether it holds, None where LangGraph has no such thing."""

    name: str
    how: str
    run: Callable[[int], bool] | None


def asks(name: str, number: int = 0, **arguments: Any) -> AIMessage:
    """A model's reply with one call."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c{number}"}])


def react(
    reply: Callable[[list[AnyMessage]], AIMessage], tools: list[Any], saver: Any = None, **named: Any
) -> Any:
    """The ReAct loop of LangGraph's documentation around a scripted model."""
    graph = StateGraph(State)
    graph.add_node("model", lambda state: {"messages": [reply(state["messages"])]})
    graph.add_node("tools", ToolNode(tools, **named))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def thread(number: int, limit: int = LIMIT) -> Any:
    """The configuration of one thread."""
    return {"configurable": {"thread_id": str(number)}, "recursion_limit": limit}


def effect_before_a_pause(number: int) -> bool:
    """A node sends, then asks a person; the person answers once."""
    sent = []

    def node(state: State) -> Any:
        sent.append("message")
        interrupt("may I?")
        return {"count": 1}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"messages": [], "count": 0}, thread(number))
    compiled.invoke(Command(resume="yes"), thread(number))
    return len(sent) > 1


class DyingSaver(SqliteSaver):
    """Its process dies when it is to keep what the tools node gave: its writes, or the checkpoint after them."""

    at = ""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Keep a checkpoint."""
        self._die("checkpoint", checkpoint["channel_values"].get("messages", [])[-1:])
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """Keep what a node gave."""
        self._die("writes", [m for channel, found in writes if channel == "messages" for m in found])
        super().put_writes(config, writes, task_id, task_path)

    def _die(self, at: str, messages: list[Any]) -> None:
        if self.at == at and any(isinstance(m, ToolMessage) for m in messages):
            os._exit(DIED)


def crash_before_the_writes(number: int) -> bool:
    """The tool has answered; the process dies before that is kept, and another one resumes the thread."""
    return _made_twice_after("writes", number)


def crash_before_the_checkpoint(number: int) -> bool:
    """The same, killed when the answer is kept and the checkpoint after it is not."""
    return _made_twice_after("checkpoint", number)


def _made_twice_after(at: str, number: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            _send_once(Path(folder), number, at)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != DIED:
            raise SystemExit(f"the saver did not die at {at}")
        _send_once(Path(folder), number, "")
        return (Path(folder) / "sent").read_text() != "a"


def _send_once(folder: Path, number: int, at: str) -> None:
    """A run with one call of a tool whose effects are in a file, begun or, without `at`, resumed."""

    def send(text: str) -> str:
        """Send."""
        with open(folder / "sent", "a") as file:
            file.write(text)
        return "sent"

    replied = [asks("send", text="a"), AIMessage("done")]
    with DyingSaver.from_conn_string(str(folder / "threads")) as saver:
        saver.at = at  # type: ignore[attr-defined]
        graph = react(lambda messages: replied[len(messages) > 1], [send], saver)
        begin = {"messages": [HumanMessage("go")], "count": 0} if at else None
        graph.invoke(begin, thread(number), durability="sync")


def fork_repeats_what_was_before(number: int) -> bool:
    """A run of two calls, forked from the checkpoint between them."""
    done: Counter[str] = Counter()

    def send(text: str) -> str:
        """Send."""
        done[text] += 1
        return "sent"

    def reply(messages: list[AnyMessage]) -> AIMessage:
        calls = sum(isinstance(m, ToolMessage) for m in messages)
        return AIMessage("done") if calls == 2 else asks("send", calls, text="ab"[calls])

    graph = react(reply, [send], InMemorySaver())
    graph.invoke({"messages": [HumanMessage("go")], "count": 0}, thread(number))
    between = next(s for s in graph.get_state_history(thread(number)) if len(s.values["messages"]) == 3)
    graph.invoke(None, between.config)
    return done["a"] > 1


def replay_repeats_what_is_after(number: int) -> bool:
    """The same run, replayed from the checkpoint before its second call, which was made already."""
    done: Counter[str] = Counter()

    def send(text: str) -> str:
        """Send."""
        done[text] += 1
        return "sent"

    replied = [asks("send", text="a"), AIMessage("done")]
    graph = react(lambda messages: replied[len(messages) > 1], [send], InMemorySaver())
    graph.invoke({"messages": [HumanMessage("go")], "count": 0}, thread(number))
    before = next(s for s in graph.get_state_history(thread(number)) if s.next == ("tools",))
    graph.invoke(None, before.config)
    return done["a"] > 1


def answers_swapped(number: int) -> bool:
    """A node asks two questions in the order of a set-like source, which may differ when it runs again."""
    order = random.Random(number)
    heard: dict[str, str] = {}

    def node(state: State) -> Any:
        questions = ["left?", "right?"]
        order.shuffle(questions)
        for question in questions:
            heard[question] = interrupt(question)
        return {"count": 1}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    compiled = graph.compile(checkpointer=InMemorySaver())
    found = compiled.invoke({"messages": [], "count": 0}, thread(number))
    while "__interrupt__" in found:
        asked = found["__interrupt__"][0].value
        found = compiled.invoke(Command(resume=f"the answer to {asked}"), thread(number))
    return any(answer != f"the answer to {question}" for question, answer in heard.items())


def history(pairs: int) -> list[AnyMessage]:
    """A system prompt, a request, and so many calls with results."""
    found: list[AnyMessage] = [SystemMessage("never send"), HumanMessage("read the files")]
    for i in range(pairs):
        found += [asks("read", i, file=str(i)), ToolMessage("text", tool_call_id=f"c{i}")]
    return found


def result_without_its_call(number: int) -> bool:
    """trim_messages as it is by default, keeping the last 1, 2, 3, ... messages."""
    kept = trim_messages(history(12), strategy="last", max_tokens=1 + number % 20, token_counter=len)
    called = {call["id"] for m in kept if isinstance(m, AIMessage) for call in m.tool_calls}
    return any(isinstance(m, ToolMessage) and m.tool_call_id not in called for m in kept)


def summariser_that_returns_nothing(number: int) -> bool:
    """The recipe of deleting what a summary stands for, with a model whose summary is empty."""
    graph = StateGraph(State)

    def summarise(state: State) -> Any:
        summary = AIMessage("")
        return {"messages": [summary, *(RemoveMessage(id=str(m.id)) for m in state["messages"][:-2])]}

    graph.add_node("summarise", summarise)
    graph.add_edge(START, "summarise")
    compiled = graph.compile(checkpointer=InMemorySaver())
    found = compiled.invoke({"messages": history(5), "count": 0}, thread(number))
    return not any(isinstance(m, HumanMessage) for m in found["messages"])


def death_spiral(number: int) -> bool:
    """A model that needs two files in a window of one: whether the run ends by the recursion limit alone."""

    def read(file: str) -> str:
        """Read."""
        return f"end {file}"

    def reply(messages: list[AnyMessage]) -> AIMessage:
        window = "".join(str(m.content) for m in messages[-2:])
        missing = [name for name in ("a", "b") if f"end {name}" not in window]
        return asks("read", len(messages), file=missing[0]) if missing else AIMessage("done")

    return _ends_by_the_limit(react(reply, [read]))


def same_call_for_ever(number: int) -> bool:
    """A model that makes one call again and again: whether anything but the recursion limit ends the run."""

    def read(file: str) -> str:
        """Read."""
        return "text"

    return _ends_by_the_limit(react(lambda messages: asks("read", len(messages), file="a"), [read]))


def _ends_by_the_limit(graph: Any) -> bool:
    try:
        graph.invoke({"messages": [HumanMessage("go")], "count": 0}, {"recursion_limit": LIMIT})
    except GraphRecursionError:
        return True
    return False


def checkpoints_grow_with_the_square(number: int) -> bool:
    """Twice the steps make more than three times the file."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = [_bytes_of(Path(folder) / str(steps), steps) for steps in (40, 80)]
    return sizes[1] > 3 * sizes[0]


def _bytes_of(path: Path, steps: int) -> int:
    def read(file: str) -> str:
        """Read."""
        return "text " * 100

    def reply(messages: list[AnyMessage]) -> AIMessage:
        return asks("read", len(messages), file="a") if len(messages) < 2 * steps else AIMessage("done")

    with SqliteSaver.from_conn_string(str(path)) as saver:
        react(reply, [read], saver).invoke(
            {"messages": [HumanMessage("go")], "count": 0}, thread(0, 10 * steps)
        )
        saver.conn.execute("VACUUM")
    return path.stat().st_size


def rules_lost(number: int) -> bool:
    """trim_messages as it is by default: whether the system prompt or the request is gone."""
    kept = trim_messages(history(12), strategy="last", max_tokens=1 + number % 20, token_counter=len)
    return not (isinstance(kept[0], SystemMessage) and any(isinstance(m, HumanMessage) for m in kept))


def exception_ends_the_run(number: int) -> bool:
    """A tool raises under ToolNode as it is by default."""

    def broken(file: str) -> str:
        """Raise."""
        raise RuntimeError("out of order")

    replied = [asks("broken", file="a"), AIMessage("done")]
    graph = react(lambda messages: replied[len(messages) > 1], [broken])
    try:
        graph.invoke({"messages": [HumanMessage("go")], "count": 0}, {"recursion_limit": LIMIT})
    except RuntimeError:
        return True
    return False


COMPLAINTS = (
    Complaint("1 effects before a pause are repeated", "sends, then interrupts", effect_before_a_pause),
    Complaint("2 a crash before an answer is kept calls twice", "ToolNode, resumed", crash_before_the_writes),
    Complaint("2b a crash after it is kept calls twice", "ToolNode, resumed", crash_before_the_checkpoint),
    Complaint("3 a fork repeats calls before it", "between two calls", fork_repeats_what_was_before),
    Complaint("3b a replay repeats calls after it", "from before a call", replay_repeats_what_is_after),
    Complaint("4 answers to two questions are swapped", "in an order that may change", answers_swapped),
    Complaint("5 a result without its call", "trim_messages by default", result_without_its_call),
    Complaint(
        "6 an empty summary deletes the request", "with RemoveMessage", summariser_that_returns_nothing
    ),
    Complaint("7 a death spiral ends by the limit alone", "two files, window of one", death_spiral),
    Complaint("8 the same call until the limit", "a model that repeats itself", same_call_for_ever),
    Complaint(
        "9 checkpoints grow with the square", "SQLite, 40 and 80 steps", checkpoints_grow_with_the_square
    ),
    Complaint("10 `unchanged` for what was trimmed", "users' tools do, not LangGraph", None),
    Complaint("11 rules or request are trimmed away", "trim_messages by default", rules_lost),
    Complaint("12 a tool's exception ends the run", "ToolNode by default", exception_ends_the_run),
)


def measured(repeats: int) -> list[dict[str, Any]]:
    """For each complaint in how many of the runs it held; None where there is nothing to run."""
    found = []
    for complaint in COMPLAINTS:
        fails = None if complaint.run is None else sum(complaint.run(number) for number in range(repeats))
        entry = {"complaint": complaint.name, "measured_on": complaint.how}
        found.append({**entry, "fails": fails, "of": None if fails is None else repeats})
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The twelve complaints on plain LangGraph.")
    parser.add_argument("--repeats", type=int, default=20, help="runs of each, by default 20")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    rows, versions = measured(args.repeats), {name: version(name) for name in PACKAGES}
    if args.json:
        print(json.dumps({"versions": versions, "complaints": rows}, indent=1))
        return
    print(", ".join(f"{name} {number}" for name, number in versions.items()))
    for row in rows:
        rate = "no equal" if row["fails"] is None else f"{row['fails']}/{row['of']}"
        print(f"{row['complaint']:<54}{rate:>9}  {row['measured_on']}")


if __name__ == "__main__":
    main()
