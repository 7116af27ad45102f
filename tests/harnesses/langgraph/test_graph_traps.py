"""Where LangGraph lets its users fall, and this graph does not. Source: design of the running harness, section 2."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError

from harnesses import langgraph_adapter
from harnesses.context import Last
from harnesses.journal import MemoryJournal, SqliteJournal
from harnesses.langgraph_adapter import ReactGraph, memory_saver, sqlite_saver
from harnesses.runtime import loop
from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.control import Limits
from harnesses.runtime.format import chat
from harnesses.runtime.loop import Harness
from harnesses.runtime.models import Reply, ScriptedModel, call, say
from harnesses.runtime.records import AgentError
from harnesses.runtime.report import recomputed
from harnesses.runtime.resume import UNKNOWN
from harnesses.runtime.tools import Dispatcher, Tool
from harnesses.runtime.trace import MemoryTrace, replay

SCRIPT = [
    call("pay", amount=1),
    Reply(calls=(*call("look").calls, *call("pay", amount=2).calls)),
    say("done"),
]


class Shop:
    """Two tools that count, and whatever a test wants done inside of them."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.inside: Any = lambda name: None

    def look(self) -> str:
        """Look around."""
        self.made["look"] += 1
        self.inside("look")
        return "shelves"

    def pay(self, amount: int) -> str:
        """Pay."""
        self.made[f"pay {amount}"] += 1
        self.inside(f"pay {amount}")
        return f"paid {amount}"

    def harness(self, lines: Any = SCRIPT, **fields: Any) -> Harness:
        """The harness of a script."""
        tools = [Tool.of(self.look, inline=True, idempotent=True), Tool.of(self.pay, inline=True)]
        dispatcher = Dispatcher(tools, {"look": (), "pay": ()}, VirtualClock())
        return Harness(ScriptedModel(lines), dispatcher, **{"context_map": Last(9), **fields})


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_control_ends_a_long_run_and_no_recursion_limit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [call("pay", amount=n) for n in range(30)]
    limits = Limits(steps=25)
    found = ReactGraph(shop.harness(lines, limits=limits)).run("Pay.")
    assert (found.state.termination_reason, found.state.step) == ("step_limit", 25)
    assert langgraph_adapter.RECURSION > 10**6  # nodes; a run of as many steps takes longer than anyone waits
    monkeypatch.setattr(langgraph_adapter, "RECURSION", 20)  # how LangGraph would have ended it
    with pytest.raises(GraphRecursionError):
        ReactGraph(shop.harness(lines, limits=limits)).run("Pay.")


def test_before_a_node_begins_the_one_before_it_is_in_the_file(shop: Shop, tmp_path: Path) -> None:
    file, seen = tmp_path / "runs.sqlite", []
    with sqlite_saver(file) as saver:
        put = saver.put
        saver.put = lambda *given: sleep(0.03) or put(*given)  # type: ignore[func-returns-value,method-assign]
        graph = ReactGraph(shop.harness(), saver)

        def look_into(name: str) -> None:
            other = sqlite3.connect(file)
            seen.append(other.execute("SELECT count(*), max(metadata) FROM checkpoints").fetchone()[0])
            kinds = [r for (r,) in other.execute("SELECT record FROM records ORDER BY t DESC LIMIT 1")]
            assert '"kind":"started"' in kinds[0]
            other.close()

        shop.inside = look_into
        graph.run("Pay.")
    assert seen == [3, 5, 5]  # of the input, the start, the model's reply; and after the next two nodes


def test_thresholds_are_kept_and_another_harness_is_refused(shop: Shop) -> None:
    with memory_saver() as saver:
        whole = ReactGraph(shop.harness(), saver)
        shop.inside = crash_at("pay 2")
        with pytest.raises(KeyboardInterrupt):
            whole.run("Pay.")
        with pytest.raises(AgentError, match="begun with another limits"):
            ReactGraph(shop.harness(limits=Limits(steps=3)), saver).resume()
        with pytest.raises(AgentError, match="begun with another map"):
            ReactGraph(shop.harness(context_map=Last(1)), saver).resume()
        done = ReactGraph(shop.harness(), saver).resume()
    assert done.state.budget_remaining.steps == 47 and done.state.budget_remaining.tool_calls == 97


def crash_at(place: str) -> Any:
    """An interrupt that no part of a harness handles, once."""
    left = [place]

    def inside(name: str) -> None:
        if name in left:
            left.remove(name)
            raise KeyboardInterrupt

    return inside


@pytest.mark.parametrize("sqlite", [False, True])
def test_an_interrupted_node_makes_no_call_again(shop: Shop, tmp_path: Path, sqlite: bool) -> None:
    with sqlite_saver(tmp_path / "runs.sqlite") if sqlite else memory_saver() as saver:
        shop.inside = crash_at("pay 2")
        with pytest.raises(KeyboardInterrupt):
            ReactGraph(shop.harness(), saver).run("Pay.")
        trace = MemoryTrace()
        graph = ReactGraph(shop.harness(trace=trace), saver)
        run = graph.resume()
        assert shop.made == {"look": 1, "pay 1": 1, "pay 2": 1}
        assert run.results["c2"].content == "shelves" and run.results["c3"].content == UNKNOWN
        # The records of the thread are one trace, of which the new harness was told all.
        assert trace.lines == graph.journal.lines("1")
        past = replay(trace.lines)
        assert past.run == run and recomputed(past, Last(9)) == 3
        assert graph.checkpoints()[-1].run == run


def test_an_exception_in_a_node_leaves_the_thread_as_it_was(shop: Shop) -> None:
    def broken(messages: Any) -> Any:
        if any(message.content == "paid 2" for message in messages):
            raise ArithmeticError("a bug in a formatter")
        return chat(messages)

    with memory_saver() as saver:
        with pytest.raises(ArithmeticError, match="a bug in a formatter"):
            ReactGraph(shop.harness(formatter=broken), saver).run("Pay.")
        run, whole = ReactGraph(shop.harness(), saver).resume(), loop.run(Shop().harness(), "Pay.")
        # One more record, of the context that was shown again, stands between the timestamps.
        assert [replace(m, timestamp=0) for m in run.history] == [
            replace(m, timestamp=0) for m in whole.history
        ]
        assert run.state == whole.state
        assert shop.made == {"look": 1, "pay 1": 1, "pay 2": 1}


@pytest.mark.parametrize("sqlite", [False, True])
def test_going_back_to_a_checkpoint_makes_no_call_again(shop: Shop, tmp_path: Path, sqlite: bool) -> None:
    with sqlite_saver(tmp_path / "runs.sqlite") if sqlite else memory_saver() as saver:
        graph = ReactGraph(shop.harness(), saver)
        run = graph.run("Pay.")
        lines = graph.journal.lines("1")
        for moment in list(graph.graph.get_state_history({"configurable": {"thread_id": "1"}}))[:-1]:
            values = graph.graph.invoke(None, moment.config)
            assert langgraph_adapter.of_values(values) == run
        assert shop.made == {"look": 1, "pay 1": 1, "pay 2": 1} and graph.journal.lines("1") == lines


def test_a_history_that_was_edited_does_not_take_the_records_of_another(shop: Shop) -> None:
    with memory_saver() as saver:
        graph = ReactGraph(shop.harness(), saver)
        graph.run("Pay.")
        first = graph.checkpoints()[1].run
        moment = list(graph.graph.get_state_history({"configurable": {"thread_id": "1"}}))[-3]
        assert moment.next == ("tools",)
        edited = replace(
            first.history[-1], calls=(replace(first.history[-1].calls[0], arguments={"amount": 9}),)
        )
        values = langgraph_adapter.to_values(replace(first, history=(*first.history[:-1], edited)))
        config = graph.graph.update_state(moment.config, values, as_node="model")
        with pytest.raises(AgentError, match="another history; begin a new thread"):
            graph.graph.invoke(None, config)
        assert "pay 9" not in shop.made


def test_a_run_that_ends_otherwise_than_before_is_refused(shop: Shop) -> None:
    over = [False]
    with memory_saver() as saver:
        graph = ReactGraph(shop.harness(), saver, lambda: over[0])
        graph.run("Pay.")
        over[0] = True
        config = list(graph.graph.get_state_history({"configurable": {"thread_id": "1"}}))[-3].config
        with pytest.raises(AgentError, match="needs a thread of its own"):
            graph.graph.invoke(None, config)


def test_the_users_side_ends_a_run_after_tools(shop: Shop) -> None:
    graph = ReactGraph(shop.harness(), ended=lambda: shop.made["pay 1"] == 1)
    found = graph.run("Pay.")
    assert found.state.termination_reason == "completed" and found.state.step == 1
    assert shop.made == {"pay 1": 1}
    lines = [call("look")] * 4
    done = ReactGraph(shop.harness(lines), ended=lambda: shop.made["look"] == 3).run("Look.")
    assert done.state.termination_reason == "completed" and done.state.step == 3
    asked = iter([False, False, False, True])
    both = ReactGraph(shop.harness(lines), ended=lambda: next(asked)).run("Look.")
    assert both.state.termination_reason == "stalled"


def test_a_saver_of_another_kind_needs_a_journal(shop: Shop) -> None:
    class Elsewhere(BaseCheckpointSaver[str]):
        pass

    with pytest.raises(AgentError, match="Elsewhere keeps no records of calls; pass journal="):
        ReactGraph(shop.harness(), Elsewhere())
    assert ReactGraph(shop.harness(), InMemorySaver(), journal=MemoryJournal()).run("Pay.").state.step == 3


def test_journals_agree(tmp_path: Path) -> None:
    with sqlite_saver(tmp_path / "runs.sqlite", power_cuts=True) as saver:
        assert saver.conn.execute("PRAGMA synchronous").fetchone() == (2,)
        for journal in (MemoryJournal(), SqliteJournal(saver.conn, saver.lock)):
            assert journal.newest("a") == 0 and journal.lines("a") == []
            for t in (1, 3):
                journal.write("a", {"t": t, "text": "\ud800"})
                journal.write("b", {"t": t})
            with pytest.raises(AgentError, match="thread 'a' went on from record 3 before"):
                journal.write("a", {"t": 3})
            journal.forget("b")
            assert journal.newest("a") == 3 and journal.newest("b") == 0
            assert journal.lines("a") == ['{"t":1,"text":"\\ud800"}', '{"t":3,"text":"\\ud800"}']


def test_a_thread_killed_before_its_request_begins_anew(shop: Shop) -> None:
    with memory_saver() as saver:
        graph = ReactGraph(shop.harness(), saver)
        graph.journal.write("1", {"t": 1, "kind": "begin"})
        with pytest.raises(AgentError, match="no thread '1'"):
            graph.resume()
        assert graph.run("Pay.").state.termination_reason == "completed"
