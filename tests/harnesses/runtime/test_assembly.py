"""Contexts: what maps do to a running history, and that the pinned head, pairs and sizes are right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import (
    Calls,
    Compose,
    Counter,
    Last,
    LastMessages,
    Null,
    OldestFirst,
    Pattern,
    Pin,
    Rename,
    Results,
    Summary,
)
from harnesses.context.summary import Latest
from harnesses.runtime.assembly import ALONE, CUT_MARK, STUB, Folding, Reading, assemble, history_tokens
from harnesses.runtime.models import RawCall, Reply, call, say
from harnesses.runtime.records import AgentError, Message, ToolCall, ToolResult

READING = Reading()


def read(id: int, name: str, text: str) -> list[Message]:
    """A step that reads a file."""
    made = ToolCall(f"c{id}", "read", {"path": name})
    result = ToolResult(made.id, "ok", text, 0.0)
    return [
        Message("assistant", "", 2 * id + 1, calls=(made,)),
        Message("tool", text, 2 * id + 2, result=result),
    ]


HEAD = [Message("system", "s" * 40, 1), Message("user", "u" * 40, 2)]


def contents(context: Any) -> list[str]:
    return [m.content for m in context.messages[2:] if m.content]


def test_exercise_1_2_whole_results_go_from_9000_to_7000() -> None:
    """E1.2: A, B, C of 2,000 tokens each and an output of 3,000; A alone is dropped. Calls are free here."""
    free = FreeCalls()
    sizes = [("A", 2000), ("B", 2000), ("C", 2000), ("out", 3000)]
    history = HEAD + [m for i, (n, size) in enumerate(sizes, 1) for m in read(i, n, n[0] * (4 * size))]
    before = history_tokens(history, free) - 20
    context = assemble(history, OldestFirst(8000), free)
    assert before == 9000 and context.token_estimate - 20 - context.inserted_tokens == 7000
    assert [(r.message, r.tokens, r.rule, r.kind) for r in context.dropped] == [
        ("c1=", 2000, "oldest_first:8000", "truncation")
    ]
    assert contents(context)[0] == STUB


class FreeCalls(Reading):
    def call(self, call: ToolCall) -> tuple[str, int]:
        return call.name, 0


def test_a_part_cut_is_marked_in_band_and_keeps_the_end() -> None:
    text = "".join(f"{n:04d}" for n in range(1000))
    context = assemble(HEAD + read(1, "A", text), OldestFirst(600, whole=False), READING)
    (shown,) = contents(context)
    assert shown.startswith(CUT_MARK) and text.endswith(shown.removeprefix(CUT_MARK)) and len(shown) > 2000
    (removal,) = context.dropped
    assert READING.tokens(shown) == READING.tokens(text) - removal.tokens


def test_a_reply_with_two_calls_stays_one_message_and_may_lose_one() -> None:
    calls = (ToolCall("c1", "read", {"path": "a"}), ToolCall("c2", "read", {"path": "b"}))
    answers = [
        Message("tool", t, 4 + i, result=ToolResult(f"c{i + 1}", "ok", t, 0.0)) for i, t in enumerate("xy")
    ]
    history = [*HEAD, Message("assistant", "both", 3, calls=calls), *answers]
    assert list(assemble(history, Last(5), READING).messages) == history
    lost = assemble(history, Last(1), READING).messages[2:]
    assert [m.role for m in lost] == ["assistant", "tool"]
    assert lost[0].calls == calls[1:] and lost[0].content == ""


def test_half_a_pair_is_shown_as_text() -> None:
    history = HEAD + read(1, "a", "first") + read(2, "b", "second")
    odd = assemble(history, LastMessages(3), READING)
    assert [(m.role, m.content) for m in odd.messages[2:3]] == [("user", ALONE + "first")]
    assert contents(assemble(history, Compose(Results(), Last(2)), READING)) == [
        ALONE + "first",
        ALONE + "second",
    ]
    only = assemble(history, Compose(Calls(), Last(2)), READING)
    assert contents(only) == ['read(path="a")', 'read(path="b")'] and not any(m.calls for m in only.messages)


def test_notes_and_renamed_results_are_shown_and_counted() -> None:
    history = HEAD + read(1, "a", "first") + read(2, "b", "second")
    assert contents(assemble(history, Counter(Last(1)), READING)) == ["n=2", "second"]
    assert contents(assemble(history, Summary(Latest()), READING)) != []
    renamed = assemble(history, Compose(Rename((("first", "1st"),)), Last(2)), READING)
    assert contents(renamed) == ["1st", "second"] and renamed.messages[3].result.content == "1st"
    assert renamed.inserted_tokens == 1


def test_a_pinned_pair_survives_and_comes_first() -> None:
    history = [*HEAD]
    for i in range(1, 6):
        history += read(i, f"{i}.py", f"text {i}")
    phi = Pin((Pattern('read(path="2.py")'),), Last(1))
    assert contents(assemble(history, phi, READING)) == ["text 2", "text 5"]


def test_the_blind_map_shows_the_head_alone() -> None:
    assert list(assemble(HEAD + read(1, "a", "x"), Null(), READING).messages) == HEAD


def test_corrections_go_with_the_result_that_they_are_about(bench: Any) -> None:
    same = call("read", path="a.py")
    done = bench.run([same, same, same, call("broken"), say("done")])
    (advice,) = [m for m in done.history if m.about]
    harness = bench.harness([say("")])
    whole = harness.context(done.history[:-1])
    assert advice in whole.messages
    trimmed = assemble(done.history[:-1], OldestFirst(0), READING)
    assert advice not in trimmed.messages
    sizes = {r.message: r.tokens for r in trimmed.dropped}
    assert sizes["c3="] == sizes["c2="] + READING.tokens(advice.content)


def test_failures_have_the_names_of_the_formal_side(bench: Any) -> None:
    bench.run([call("read", path="/x"), Reply(calls=(RawCall("read", "{"),)), call("broken"), say("done")])
    done = bench.replayed().run
    phi = Pin((Pattern("read*", "denied"), Pattern("malformed", "error")), Null())
    context = assemble(done.history[:-1], phi, READING)
    assert [m.role for m in context.messages[2:]] == ["assistant", "tool", "assistant", "user"]


def test_a_context_is_a_pure_function_of_the_history(bench: Any) -> None:
    done = bench.run(
        [call("read", path=f"{c}.py") for c in "abcdef"] + [say("done")], OldestFirst(60, keep=2)
    )
    harness = bench.harness([say("")], OldestFirst(60, keep=2))
    for end in range(2, len(done.history), 2):
        history = done.history[:end]
        assert harness.context(history) == harness.context(list(history))
        assert history == done.history[:end]


def test_a_call_without_a_result_is_refused() -> None:
    with pytest.raises(AgentError, match="c1 has no result"):
        assemble([*HEAD, replace(read(1, "a", "x")[0])], Last(1), READING)


@given(
    st.lists(st.integers(0, 12), max_size=8), st.sampled_from([OldestFirst(90), Last(2), Counter(Last(3))])
)
def test_folding_on_is_folding_anew(ends: list[int], phi: Any) -> None:
    """Whatever histories come after each other: longer, shorter, the same, another."""
    folding = Folding()
    for turn, end in enumerate(ends):
        other = turn % 3 == 2
        history = [*HEAD]
        for i in range(end):
            history += read(i, f"{i}.py", ("y" if other else "x") * 40 * i)
        assert assemble(history, phi, READING, 0, folding) == assemble(history, phi, READING)
