"""The twelve complaints that users of agent frameworks make, each on the runtime. Source: harness design, section 4."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Context, OldestFirst, parse_map
from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.control import Limits, StallRule
from harnesses.runtime.loop import Harness, model_step, run, start, tool_step
from harnesses.runtime.models import RawCall, Reply, ScriptedModel, call, say
from harnesses.runtime.records import Reason, Run
from harnesses.runtime.resume import resume
from harnesses.runtime.tools import Dispatcher, Tool
from harnesses.runtime.trace import MemoryTrace, replay

FREE = Limits(steps=None, tokens=None, tool_calls=None, seconds=None)


class Desk:
    """Tools with effects that can be counted, a person who is asked, and files of 1,000 tokens."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.trace = MemoryTrace()

    def send(self, text: str) -> str:
        """Send a message."""
        self.done[f"send {text}"] += 1
        return f"sent {text}"

    def ask(self, question: str) -> str:
        """Ask a person."""
        self.done[f"ask {question}"] += 1
        return f"the answer to {question}"

    def read(self, file: str) -> str:
        """Read a file."""
        self.done[f"read {file}"] += 1
        return f"begin {file} " + "x" * 4000 + f" end {file}"

    def broken(self) -> str:
        """Raise."""
        raise RuntimeError("out of order")

    def harness(self, lines: Any, phi: Any = None, **fields: Any) -> Harness:
        tools = [Tool.of(tool, inline=True) for tool in (self.send, self.ask, self.read, self.broken)]
        dispatcher = Dispatcher(tools, {tool.name: () for tool in tools}, VirtualClock())
        model = ScriptedModel(lines) if isinstance(lines, list) else lines
        fields = {"trace": self.trace, "limits": FREE, **fields}
        return Harness(model, dispatcher, phi or OldestFirst(10**6), **fields)

    def go_on(self, lines: Any, keep: int | None = None, phi: Any = None, **fields: Any) -> Run:
        """Resume from the first `keep` records, in what might be another process."""
        self.trace.lines = self.trace.lines[:keep]
        return resume(self.harness(lines, phi, **fields), replay(self.trace.lines))


def kinds(desk: Desk) -> list[tuple[str, str]]:
    """Kind and call of every record."""
    records = [json.loads(line) for line in desk.trace.lines]
    return [(record["kind"], record.get("call_id", "")) for record in records]


SENDS = [call("send", text="a"), call("ask", question="may I?"), call("send", text="b"), say("done")]


def test_1_side_effects_before_a_pause_are_not_repeated_on_resume() -> None:
    desk = Desk()
    harness = desk.harness(SENDS)
    paused = start(harness, "Go.")
    for _ in range(2):
        paused = tool_step(harness, model_step(harness, paused))
    for _ in range(5):  # resumed, and stopped again at the same place
        kept = list(desk.trace.lines)
        done = desk.go_on(SENDS)
        desk.trace.lines = kept
        assert done.state.termination_reason == Reason.COMPLETED
    assert desk.done["send a"] == desk.done["ask may I?"] == 1


def test_2_a_crash_between_a_result_and_its_message_does_not_run_the_tool_twice() -> None:
    desk = Desk()
    run(desk.harness(SENDS), "Go.")
    ended = kinds(desk).index(("ended", "c1"))
    done = desk.go_on(SENDS, keep=ended + 1)
    assert done.state.termination_reason == Reason.COMPLETED and done.results["c1"].content == "sent a"
    assert desk.done["send a"] == 1


def test_3_going_back_in_time_makes_no_call_before_the_fork_again() -> None:
    desk = Desk()
    run(desk.harness(SENDS), "Go.")
    fork = kinds(desk).index(("ended", "c2")) + 2
    other = [*SENDS[:2], call("send", text="other"), say("done")]
    before = desk.done.copy()
    done = desk.go_on(other, keep=fork)
    assert desk.done - before == Counter({"send other": 1})
    assert [c.arguments for c in done.calls if c.name == "send"] == [{"text": "a"}, {"text": "other"}]


@pytest.mark.parametrize("keep", range(4, 14))
def test_4_two_questions_in_one_reply_keep_their_answers(keep: int) -> None:
    """Killed after any record: an answer belongs to the call that asked, not to a place in a list."""
    lines = [
        Reply(calls=(RawCall("ask", '{"question":"left?"}'), RawCall("ask", '{"question":"right?"}'))),
        say("done"),
    ]
    desk = Desk()
    run(desk.harness(lines), "Go.")
    assert len(desk.trace.lines) >= 14
    done = desk.go_on(lines, keep=keep)
    told = {c.arguments["question"]: done.results[c.id].content for c in done.calls}
    for question, content in told.items():
        assert content == f"the answer to {question}" or "unknown" in content
    assert max(desk.done.values()) <= 2


MAPS = ("last:1", "last_messages:3", "oldest_first:900", "oldest_first:900:partial", "summary:count", "null",
        "compose:results:last:2", "counter:last_messages:1", "pin:read*:last:1", "held:2:last:1")  # fmt: skip
CALLS = st.lists(
    st.sampled_from([call("read", file="a"), call("send", text="x"), call("broken"), Reply()]), max_size=6
)


@given(st.sampled_from(MAPS), CALLS)
def test_5_trimming_leaves_no_result_without_its_call(phi: str, calls: list[Reply]) -> None:
    shown: list[Any] = []

    class Watching:
        name = "watching"

        def reply(self, messages: Any, tools: Any, step: int) -> Reply:
            shown.append(messages)
            return [*calls, say("done")][step]

    limits = Limits(consecutive_errors=None)
    run(Desk().harness(Watching(), parse_map(phi).bind(None), limits=limits, stall=()), "Go.")
    for messages in shown:
        asked: list[str] = []
        for message in messages:
            if message["role"] == "tool":
                assert message["tool_call_id"] in asked
                asked.remove(message["tool_call_id"])
            else:
                assert asked == [], "every call is answered before anything else is said"
                asked = [c["id"] for c in message.get("tool_calls", ())]
        assert asked == []


class Summariser:
    """A map that fails, or keeps nothing, once it has seen two events."""

    name, bounded = "summariser", True

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    def start(self) -> Any:
        return 0

    def step(self, memory: Any, event: Any) -> Any:
        if self.fails and memory == 1:
            raise ConnectionError("the summariser is not there")
        return memory + 1, ()

    def show(self, memory: Any) -> Context:
        return Context(())


@pytest.mark.parametrize("fails", [True, False])
def test_6_a_summariser_that_fails_or_returns_nothing_deletes_no_history(fails: bool) -> None:
    desk = Desk()
    done = run(desk.harness(SENDS, Summariser(fails)), "Go.")
    assert done.state.termination_reason == (Reason.ERROR if fails else Reason.COMPLETED)
    assert [m.content for m in done.history if m.result][:2] == ["sent a", "the answer to may I?"]
    assert replay(desk.trace.lines).run.history == done.history
    if fails:
        assert "summariser failed: ConnectionError: the summariser is not there" in done.state.detail


class Reader:
    """Needs two files at once in a window that holds one: reads whichever it does not see."""

    name = "reader"

    def reply(self, messages: Any, tools: Any, step: int) -> Reply:
        text = "".join(str(message["content"]) for message in messages)
        missing = [name for name in ("a", "b") if f"end {name}" not in text]
        return call("read", file=missing[0]) if missing else say("I have seen both.")


def test_7_a_death_spiral_of_compaction_is_stalled_and_no_budget_is_spent() -> None:
    limits = Limits(steps=50)
    growth = (StallRule(), StallRule("growth", warn=(2,), stop=4))
    done = run(Desk().harness(Reader(), OldestFirst(1500), limits=limits, stall=growth), "Go.")
    assert done.state.termination_reason == Reason.STALLED and done.state.step <= 8
    assert (
        run(Desk().harness(Reader(), OldestFirst(3000), limits=limits, stall=growth), "Go.").state.step == 3
    )
    # Without the rule on growth the files are read in turn until the calls themselves fill the window.
    blind = run(Desk().harness(Reader(), OldestFirst(1500), limits=limits), "Go.")
    assert blind.state.step > 3 * done.state.step


def test_8_the_same_call_for_ever_is_stalled_at_the_fourth() -> None:
    desk = Desk()
    done = run(desk.harness([call("send", text="a")]), "Go.")
    assert done.state.termination_reason == Reason.STALLED and done.state.step == 4
    assert desk.done["send a"] == 3


def test_9_a_trace_grows_with_the_run_and_not_with_its_square() -> None:
    def size(steps: int) -> int:
        desk = Desk()
        run(desk.harness([*(call("send", text=str(i)) for i in range(steps)), say("done")]), "Go.")
        return sum(map(len, desk.trace.lines))

    assert size(200) < 2.2 * size(100) < 4.6 * size(50)


def test_10_what_was_trimmed_is_read_again_whole() -> None:
    """No tool answers `unchanged` for what the model no longer sees: the belief is as if the text was only trimmed."""
    desk = Desk()
    lines = [call("read", file="a"), call("read", file="b"), call("read", file="a"), say("done")]
    done = run(desk.harness(lines, OldestFirst(1500)), "Go.")
    past = replay(desk.trace.lines)
    assert "end a" not in "".join(m.content for m in past.contexts[2].messages)
    assert "end a" in "".join(m.content for m in past.contexts[3].messages)
    assert done.results["c1"].content == done.results["c3"].content


@pytest.mark.parametrize("phi", MAPS)
def test_11_rules_and_request_survive_every_compaction(phi: str) -> None:
    desk = Desk()
    lines = [*(call("read", file=str(i)) for i in range(6)), say("done")]
    done = run(desk.harness(lines, parse_map(phi).bind(None)), "Read six files.", "Never send anything.")
    for context in replay(desk.trace.lines).contexts.values():
        head = [(m.role, m.content) for m in context.messages[:2]]
        assert head == [("system", "Never send anything."), ("user", "Read six files.")]
        assert sum(m.content == "Read six files." for m in context.messages) == 1
    assert done.state.termination_reason == Reason.COMPLETED


def test_12_a_tool_s_exception_is_an_observation_and_the_run_goes_on() -> None:
    done = run(Desk().harness([call("broken"), call("send", text="a"), say("done")]), "Go.")
    assert done.state.termination_reason == Reason.COMPLETED
    assert done.results["c1"].status == "error" and "out of order" in done.results["c1"].content
