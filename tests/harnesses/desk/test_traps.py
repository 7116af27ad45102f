"""LangGraph's traps on this graph: each is covered by a test here or by the one that is named for it.

What LangGraph 1.2 does was found by running it: an interrupted node runs again from its first line, resume values match
by position, and so on. The table says which test holds the desk to the safe side of each.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from harnesses.desk.database import DeskError
from harnesses.desk.driver import STEPS, config
from harnesses.desk.state import K_MAX
from harnesses.runtime.models import call, say

DESK = Path(__file__).resolve().parents[3] / "harnesses" / "desk"
GRAPH_FILES = [path for path in DESK.glob("*.py") if "langgraph" in path.read_text()]
Make = Callable[..., Any]

COVERED = {
    "an interrupted node runs again from its first line": (
        "test_driver",
        "test_the_guard_is_asked_once_a_pass_however_often_the_run_pauses",
    ),
    "the default recursion limit is 10,007": (
        "test_traps",
        "test_every_run_has_a_recursion_limit_of_its_own",
    ),
    "a replay runs side effects again": (
        "test_history",
        "test_a_replay_from_before_send_runs_send_again_without_effect",
    ),
    "update_state forks and leaves the originals": (
        "test_history",
        "test_a_fork_with_other_thresholds_changes_only_what_follows",
    ),
    "history is newest first": ("test_history", "test_history_is_newest_first_and_names_what_was_due"),
    "interrupts cross processes": ("test_driver", "test_another_desk_on_the_same_file_goes_on"),
    "a bare try/except swallows an interrupt": ("test_traps", "test_the_node_that_pauses_catches_nothing"),
    "resume values match by position": ("test_traps", "test_the_node_that_pauses_asks_one_question"),
    "a stale answer answers the next question": (
        "test_driver",
        "test_a_stale_answer_is_refused_and_the_next_question_still_waits",
    ),
    "a sibling of a failed node may run again": ("test_traps", "test_no_two_nodes_run_in_one_step"),
    "durability=exit loses an answer": (
        "test_kill_points",
        "test_an_answer_that_was_written_down_when_the_process_died_is_kept",
    ),
    "context= is not checkpointed": ("test_driver", "test_a_thread_keeps_the_thresholds_it_started_with"),
    "sync nodes cannot have a timeout": ("test_traps", "test_no_node_relies_on_a_timeout_of_the_graph"),
    "Command(goto=) beside an edge runs both": ("test_traps", "test_nodes_name_no_successor"),
    "an unknown state key is dropped": ("test_graph", "test_a_node_that_names_no_field_is_refused"),
    "new input on a paused thread starts again": (
        "test_driver",
        "test_a_new_request_on_a_paused_thread_is_refused",
    ),
    "saved writes of a killed node hide it from `next`": (
        "test_kill_points",
        "test_every_killed_run_comes_to_its_end",
    ),
    "create_agent's defaults": ("test_traps", "test_no_prebuilt_agent_and_no_trimming_of_messages_is_used"),
    "a list-reducer thread grows quadratically": (
        "test_traps",
        "test_a_long_thread_grows_and_a_fresh_start_does_not",
    ),
}


@pytest.mark.parametrize("trap", COVERED)
def test_every_trap_has_a_test_that_exists(trap: str) -> None:
    module, name = COVERED[trap]
    found = Path(__file__).with_name(f"{module}.py").read_text()
    assert re.search(rf"^def {name}\(", found, re.MULTILINE), name


def test_every_run_has_a_recursion_limit_of_its_own(room: Make) -> None:
    """A model that asks for the same search with another word each time, for ever, behind a k_max out of reach."""
    r = room([lambda messages: call("retrieve", query=f"refund {len(messages)}")] * 200, recursion_limit=30)
    now = r.start(k_max=150)
    assert now.kind == "failed" and "recursion limit: 30" in now.state["outcome"]["reason"]
    assert STEPS * K_MAX + STEPS < 100


def test_the_node_that_pauses_catches_nothing_and_langgraph_would_swallow_it() -> None:
    class State(TypedDict, total=False):
        answer: str

    def swallowing(state: State) -> State:
        try:
            return {"answer": interrupt("?")}
        except BaseException:  # what a node of ours must not do
            return {"answer": "nobody was asked"}

    graph = StateGraph(State)
    graph.add_node("ask", swallowing)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    made = graph.compile(checkpointer=InMemorySaver())
    assert made.invoke({}, {"configurable": {"thread_id": "t"}})["answer"] == "nobody was asked"


def _body(node: str) -> str:
    """The source of a node."""
    text = (DESK / "nodes.py").read_text()
    return text[text.index(f"    def {node}(") :].split("\n    def ", 1)[0]


def test_the_node_that_pauses_catches_nothing() -> None:
    assert "interrupt(" in _body("human_review") and "except" not in _body("human_review")


def test_the_node_that_pauses_asks_one_question() -> None:
    nodes = (DESK / "nodes.py").read_text()
    assert (
        _body("human_review").count("interrupt(")
        == 1
        == nodes.count(" = interrupt(") + nodes.count("(interrupt(")
    )


def test_no_two_nodes_run_in_one_step(room: Make) -> None:
    email = {"to": "ana@example.org", "subject": "s", "body": "b"}
    r = room([call("get_registration", email="ana@example.org"), call("send_email", **email), say("Done.")])
    question = r.start().question
    r.desk.answer("t", question.id, "approve")
    snapshots = list(r.desk.graph.get_state_history(config("t")))
    assert len(snapshots) > 8 and all(len(snapshot.tasks) <= 1 for snapshot in snapshots)


def test_no_node_relies_on_a_timeout_of_the_graph(room: Make) -> None:
    graph = room().desk.graph
    assert all(getattr(node, "timeout", None) is None for node in graph.nodes.values())


def test_nodes_name_no_successor() -> None:
    for path in GRAPH_FILES:
        assert "goto=" not in re.sub(r'"""[\s\S]*?"""', "", path.read_text()), path.name


def test_no_prebuilt_agent_and_no_trimming_of_messages_is_used() -> None:
    for path in GRAPH_FILES:
        text = re.sub(r'"""[\s\S]*?"""', "", path.read_text())
        assert not re.search(
            r"create_agent|create_react_agent|ToolNode|trim_messages|SummarizationMiddleware", text
        )


def test_a_tool_that_raises_ends_no_run(room: Make) -> None:
    """With create_agent a raising tool ends the run; here it is a result that the model reads."""

    def broken(email: str) -> None:
        raise RuntimeError("the server is on fire")

    r = room(
        [call("get_registration", email="ana@example.org"), say("I could not look you up.")],
        registrations=broken,
    )
    now = r.start(registration=None)
    assert now.kind == "answer"
    results = [message for message in now.state["messages"] if message["role"] == "tool"]
    assert results[0]["status"] == "error" and "on fire" in results[0]["content"]


def test_a_long_thread_grows_and_a_fresh_start_does_not(room: Make, tmp_path: Path) -> None:
    """Every checkpoint holds all messages of the thread: bytes grow with the square of its requests."""
    path = tmp_path / "desk.db"
    r = room([lambda messages: say("An answer. " * 100)], path=path)

    def size() -> int:
        r.desk.outbox._table.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size

    sizes = [size()]
    for _ in range(3):
        for _ in range(10):
            r.start()
        sizes.append(size())
    first, second, third = (after - before for before, after in zip(sizes, sizes[1:]))
    assert third > 1.5 * first and third > second > first
    before = size()
    history = importlib.import_module("harnesses.desk.history")
    for number in range(10):
        history.start_fresh(r.desk, "t", f"fresh {number}", r.case)
    assert size() - before < third


def test_an_answer_to_no_question_is_refused(room: Make) -> None:
    r = room()
    r.start()
    with pytest.raises(DeskError, match="does not wait"):
        r.desk.answer("t", "0" * 32, "approve")
    assert r.sent() == 0


def test_langgraph_would_take_a_bare_resume_for_the_question(room: Make) -> None:
    """Why an answer names its question and its content: a bare word resumes whatever is paused."""
    r = room()
    r.start()
    r.desk.graph.invoke(Command(resume="approve"), config("t"))
    now = r.desk.standing("t")
    assert (now.kind, now.state["actions"], r.sent()) == ("paused", [], 0)
