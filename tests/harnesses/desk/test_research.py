"""A coordinator and its subagents: constraints travel, failures come back, gaps are named, an empty result is none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harnesses.desk.passages import words
from harnesses.desk.research import Kind, Report, Task, research, run_subagent, uncovered
from harnesses.runtime.models import ModelFailure, Reply, ScriptedModel, call, say

SOURCES = {
    "reward": "[a:1] Reward hacking: the proxy is gamed.",
    "rlhf": "[b:1] RLHF trains on preferences.",
    "language": "[c:1] All sessions are in English.",
}


def search(query: str) -> list[str]:
    return [text for word, text in SOURCES.items() if word in words(query)]


class Flaky:
    """A source that times out on some words, a number of times each, or for ever."""

    def __init__(self, **times: int) -> None:
        self.left = Counter(times)
        self.asked: list[str] = []

    def __call__(self, query: str) -> list[str]:
        self.asked.append(query)
        for word in words(query):
            if self.left[word]:
                self.left[word] -= 1
                raise TimeoutError(f"no answer for {word} in 10 s")
        return search(query)


def whole(question: str) -> list[str]:
    return [question]


def test_a_subagent_sees_its_description_and_nothing_else() -> None:
    seen: list[Any] = []

    class Watching:
        name = "watching"

        def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
            seen.append((messages, tools))
            return say("done")

    task = Task("Find reward hacking", ("peer-reviewed, 2022 or later",), ("RLHF is known",))
    run_subagent(task, search, Watching())
    messages, tools = seen[0]
    assert [message["content"] for message in messages] == [task.text()]
    assert [tool["function"]["name"] for tool in tools] == ["retrieve"]
    for part in ("Find reward hacking", "peer-reviewed, 2022 or later", "RLHF is known", "Answer: "):
        assert part in task.text()


def test_constraints_of_the_participant_travel_to_every_part() -> None:
    found = research("reward and language", lambda q: ["reward", "language"], search, ["2022 or later"])
    assert all("2022 or later" in part.task.text() for part in found.parts)


def test_a_timeout_is_a_failure_and_an_empty_result_is_none() -> None:
    """M14 §3 and §9: both look alike to a model that is told nothing."""
    failed = run_subagent(Task("reward"), Flaky(reward=9))
    empty = run_subagent(Task("zeppelin"), search)
    assert failed.found == empty.found == ()
    (failure,) = failed.failures
    assert (failure.kind, failure.query, failure.meant_for) == (Kind.RETRY, "reward", "reward")
    assert "no answer for reward" in failure.detail
    assert empty.failures == () and empty.empty == ("zeppelin",)


def test_two_of_five_queries_time_out_and_the_other_summaries_are_kept() -> None:
    """M14 §9, check yourself (2)."""
    plan = ["reward", "rlhf", "language", "tides", "moons"]
    found = research("reward rlhf language tides moons", lambda q: plan, Flaky(tide=9, moon=9), retries=1)
    assert [len(part.found) for part in found.parts] == [1, 1, 1, 0, 0]
    assert [gap.query for gap in found.gaps] == ["tides", "moons"]
    assert not found.complete
    text = found.text()
    assert (
        "Not searched: 'tides'" in text
        and "a retry may work" in text
        and text.endswith("This answer is partial.")
    )
    assert "Reward hacking" in text


@pytest.mark.parametrize(("times", "retries", "gaps"), [(1, 1, 0), (2, 1, 1), (2, 2, 0), (1, 0, 1)])
def test_retries_are_bounded(times: int, retries: int, gaps: int) -> None:
    source = Flaky(reward=times)
    found = research("reward", whole, source, retries=retries)
    assert len(found.gaps) == gaps
    assert len(source.asked) == 1 + min(times, retries)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(PermissionError("the journal is closed"), Kind.DENIED), (KeyError("index"), Kind.BROKEN)],
)
def test_what_cannot_succeed_later_is_not_tried_again(error: Exception, kind: Kind) -> None:
    asked = []

    def broken(query: str) -> list[str]:
        asked.append(query)
        raise error

    found = research("reward", whole, broken, retries=3)
    assert len(asked) == 1 and [gap.kind for gap in found.gaps] == [kind]


def test_a_split_that_misses_the_question_is_seen() -> None:
    """M14 §9, rule 5: three parts about RLHF, an answer that never mentions calibration."""
    parts = ["What RLHF is", "How RLHF is trained", "RLHF and reward hacking"]
    found = research("the effect of RLHF on calibration", lambda q: parts, search)
    assert not found.gaps and "calibration" in found.uncovered and "rlhf" not in found.uncovered
    assert "No part covers: " in found.text() and not found.complete
    assert (
        uncovered(
            "the effect of RLHF on calibration",
            [*found.parts, run_subagent(Task("effect on calibration"), search)],
        )
        == ()
    )


def test_a_passage_covers_a_word_too() -> None:
    found = research("English sessions", lambda q: ["language"], search)
    assert found.uncovered == () and found.complete
    assert found.text().endswith("This answer is complete.")


def test_a_model_that_never_ends_uses_up_its_budget_and_says_so() -> None:
    found = run_subagent(
        Task("reward"), search, ScriptedModel([call("retrieve", query="reward")] * 9), budget=3
    )
    assert [failure.kind for failure in found.failures] == [Kind.BUDGET] and found.found == (
        SOURCES["reward"],
    )


def test_a_model_that_fails_is_a_failure_record() -> None:
    class Away:
        name = "away"

        def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
            raise ModelFailure("overloaded", transient=True)

    (failure,) = run_subagent(Task("reward"), search, Away()).failures
    assert failure.kind is Kind.RETRY and "overloaded" in failure.detail


def test_calls_of_other_tools_and_without_words_find_nothing_and_break_nothing() -> None:
    script = [
        call("send_email", to="x"),
        call("retrieve", query=" "),
        call("retrieve", query="reward"),
        say("done"),
    ]
    found = run_subagent(Task("reward"), search, ScriptedModel(script))
    assert (found.found, found.failures, found.words) == ((SOURCES["reward"],), (), "done")


def test_the_price_of_subagents_is_seen() -> None:
    """Every call sends the context again, so that subagents cost several times what the coordinator reads."""
    found = research("reward and language", lambda q: ["reward", "language"], search, ["2022 or later"])
    assert found.subagent_tokens > 2 * found.tokens > 0


def test_a_summary_is_no_transcript() -> None:
    found = run_subagent(Task("reward"), search)
    assert not hasattr(found, "messages")
    assert found.found == (SOURCES["reward"],)


def test_a_plan_without_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="at least the question itself"):
        research("reward", lambda question: [], search)


def test_the_desk_s_own_documents_can_be_searched() -> None:
    from harnesses.desk.documents import documents
    from harnesses.desk.passages import Index

    index = Index.of((document.name, document.text) for document in documents())
    found: Report = research(
        "refund deadline and parking in Lyon",
        lambda question: question.split(" and "),
        lambda query: [passage.shown for passage in index.search(query, 2)],
    )
    assert all(part.found for part in found.parts) and not found.gaps
