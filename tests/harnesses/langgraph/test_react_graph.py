"""The graph takes the same run as the loop, record for record, with any saver, and its state loses nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import parse_map
from harnesses.langchain_model import AsChatModel, LangChainModel
from harnesses.langgraph_adapter import ReactGraph, memory_saver, sqlite_saver
from harnesses.langgraph_messages import of_langchain, of_values, to_langchain, to_values
from harnesses.runtime import loop
from harnesses.runtime.models import RawCall, Reply, say
from harnesses.runtime.records import (
    AgentError,
    Budget,
    Context,
    Dropped,
    Message,
    Reason,
    Run,
    State,
    ToolCall,
    ToolResult,
)
from harnesses.runtime.scenarios import CALC, MAP, OTHERS, SYSTEM, virtual
from harnesses.runtime.trace import MemoryTrace, replay

SCENARIOS = CALC | OTHERS
MAPS = [MAP, parse_map("last:2").bind(None), parse_map("oldest_first:300:2").bind(None)]
ALL = [(name, phi) for name in SCENARIOS for phi in MAPS]
each = pytest.mark.parametrize(("name", "phi"), ALL, ids=lambda value: getattr(value, "name", value))


def of_the_loop(name: str, phi: Any) -> tuple[Run, list[str]]:
    trace = MemoryTrace()
    return loop.run(virtual(SCENARIOS[name], phi, trace), SCENARIOS[name].request, SYSTEM), trace.lines


@each
def test_the_graph_takes_the_run_of_the_loop(name: str, phi: Any) -> None:
    run, lines = of_the_loop(name, phi)
    trace = MemoryTrace()
    graph = ReactGraph(virtual(SCENARIOS[name], phi, trace))
    assert graph.run(SCENARIOS[name].request, SYSTEM) == run
    assert trace.lines == lines  # every context and removal of every step among them


@pytest.mark.parametrize("name", SCENARIOS)
def test_savers_change_nothing_and_checkpoints_are_the_runs_at_their_steps(name: str, tmp_path: Path) -> None:
    run, lines = of_the_loop(name, MAPS[1])
    whole = replay(lines)
    for saver in (memory_saver(), sqlite_saver(tmp_path / "runs.sqlite")):
        with saver as kept:
            graph = ReactGraph(virtual(SCENARIOS[name], MAPS[1]), kept)
            assert graph.run(SCENARIOS[name].request, SYSTEM, "a") == run
            found = graph.checkpoints("a")
            assert [point.step for point in found] == list(range(len(found)))
            assert [point.node for point in found[:3]] == ["start", "model", "tools"]
            for point in found[1:]:
                at = point.run
                assert at.history == run.history[: len(at.history)]
                assert at.context == whole.contexts[max(whole.contexts) if at == run else at.state.step - 1]
            assert found[-1].run == run
            assert graph.resume("a") == run


def test_a_policy_behind_langchain_both_ways_takes_the_same_run() -> None:
    for name in SCENARIOS:
        run, _ = of_the_loop(name, MAP)
        harness = virtual(SCENARIOS[name])
        model = LangChainModel(AsChatModel(harness.model))
        assert ReactGraph(replace(harness, model=model)).run(SCENARIOS[name].request, SYSTEM) == run


TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["\ud800", "", "[1]", "\x00", "é\u2028"]))
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
CALLS = st.builds(
    ToolCall,
    st.integers(1, 99).map(lambda n: f"c{n}"),
    st.one_of(st.sampled_from(["read_file", ""]), TEXTS),
    st.dictionaries(TEXTS, JSON, max_size=3),
)
RESULTS = st.builds(
    ToolResult,
    st.integers(1, 99).map(lambda n: f"c{n}"),
    st.sampled_from(["ok", "error", "timeout", "denied"]),
    TEXTS,
    st.one_of(st.just(0), st.floats(0, 1e9)),
)
ABOUT = st.one_of(st.none(), st.sampled_from(["c1", "m2"]))
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["system", "user"]), TEXTS, st.just(0), about=ABOUT),
    st.builds(
        Message, st.just("assistant"), TEXTS, st.just(0), st.lists(CALLS, max_size=3).map(tuple), about=ABOUT
    ),
    RESULTS.map(lambda result: Message("tool", result.content, 0, result=result)),
    st.builds(lambda text, result: Message("tool", text, 0, result=result), TEXTS, RESULTS),
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any history, with timestamps that rise, and a context of some of it and of what no history holds."""
    found = draw(st.lists(MESSAGES, min_size=1, max_size=6))
    history = tuple(replace(message, timestamp=3 * place + 1) for place, message in enumerate(found))
    shown = draw(st.lists(st.one_of(st.sampled_from(history), MESSAGES), max_size=4))
    dropped = draw(
        st.lists(st.builds(Dropped, TEXTS, st.integers(0, 99), TEXTS, st.just("whole")), max_size=2)
    )
    context = draw(st.one_of(st.none(), st.just(Context(tuple(shown), 70, tuple(dropped), 20, 3))))
    budget = Budget(draw(st.integers(0, 9)), None, 3, draw(st.floats(-9, 9)), None)
    reason = draw(st.one_of(st.none(), st.sampled_from(list(Reason))))
    return Run(history, State(budget, 3, 1, reason, "why", draw(st.floats(0, 9))), 99, context)


def exactly(run: Run) -> str:
    """With the types of numbers, which == does not see."""
    return repr(run)


@given(runs())
def test_any_history_becomes_langchain_messages_and_itself_again(run: Run) -> None:
    for message in run.history:
        assert of_langchain(to_langchain(message)) == message
    assert exactly(of_values(to_values(run))) == exactly(run)


def test_any_run_comes_back_from_sqlite(tmp_path: Path) -> None:
    with sqlite_saver(tmp_path / "runs.sqlite") as saver:
        graph = ReactGraph(virtual(CALC["fix"]), saver).graph

        threads = count()

        @given(runs())
        def check(run: Run) -> None:
            config: Any = {"configurable": {"thread_id": str(next(threads))}}
            graph.update_state(config, to_values(run), as_node="model")
            assert exactly(of_values(graph.get_state(config).values)) == exactly(run)

        check()


def test_what_msgpack_cannot_hold_is_kept_all_the_same(tmp_path: Path) -> None:
    odd = ('{"path": "\\ud800"}', '{"path": 18446744073709551616}', '{"path": -9223372036854775809}')
    lines = [Reply(calls=(RawCall("read_file", arguments),)) for arguments in odd]
    lines += [Reply(calls=(RawCall("\ud800"),)), say("done")]
    scenario = replace(CALC["fix"], lines=lines)
    with sqlite_saver(tmp_path / "runs.sqlite") as saver:
        run = ReactGraph(virtual(scenario, MAPS[1]), saver).run("Do it.")
        assert ReactGraph(virtual(scenario, MAPS[1]), saver).checkpoints()[-1].run == run
    assert run == loop.run(virtual(scenario, MAPS[1]), "Do it.")


def test_a_thread_begins_once_and_unknown_ones_are_told() -> None:
    with memory_saver() as saver:
        graph = ReactGraph(virtual(OTHERS["copy"]), saver)
        graph.run("Copy.", thread="a")
        with pytest.raises(AgentError, match="'a' is there already; resume it"):
            graph.run("Copy.", thread="a")
        with pytest.raises(AgentError, match="no thread 'b'"):
            graph.resume("b")
        assert ReactGraph(virtual(OTHERS["copy"])).run("Copy.").state.termination_reason == "completed"
        with pytest.raises(AgentError, match="saver=memory_saver"):
            ReactGraph(virtual(OTHERS["copy"])).checkpoints()
