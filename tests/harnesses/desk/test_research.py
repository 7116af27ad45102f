"""Research by subagents: what a task carries, failures told from empty answers, retries, coverage, and the price."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.desk.documents import documents
from harnesses.desk.passages import Index
from harnesses.desk.research import BUDGET, CLAIMS, LONGEST, Cause, Query, Report, Researcher, Task, searching
from harnesses.desk.research_coordinator import Coordinator, Part
from harnesses.desk.research_coverage import stated, terms, uncovered
from harnesses.desk.research_scripted import SPLIT, ScriptedCoordinator, ScriptedResearcher
from harnesses.desk.tool_errors import Retry as Passing
from harnesses.desk.tool_errors import Stop
from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.control import Limits
from harnesses.runtime.models import ModelFailure, Reply, ScriptedModel, call, say
from harnesses.runtime.retry import Retry

SECONDS = 10.0


@dataclass
class Readings:
    """A search that fails in every way: by its words it is late, raises, is not permitted, broken, or finds nothing.

    `slow`: gives [] when its time is over, as a careless tool does. `late`: gives passages then. heals: from this
    attempt of a search on, it is in time.
    """

    clock: VirtualClock
    slow: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    heals: int = 10**6
    over: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)

    def __call__(self, words: str) -> Sequence[str]:
        self.asked[words] += 1
        if self.asked[words] < self.heals:
            if words in self.slow:
                self.clock.sleep(SECONDS + self.over)
                return []
            if words in self.raises:
                raise TimeoutError("the index did not respond")
        if words in self.late:
            self.clock.sleep(SECONDS + self.over)
        if words in self.broken:
            raise RuntimeError("the index is corrupt")
        if words in self.denied:
            raise PermissionError("the archive is closed")
        return [] if words in self.empty else [f"[reading-{len(words)}:1] What is said about {words}."]


def researcher(model: Any = None, limits: Limits = BUDGET, retries: int = 0, **ways: Any) -> Researcher:
    clock = VirtualClock()
    search = Readings(clock, **ways)
    return Researcher(model or ScriptedResearcher(), search, limits, SECONDS, Retry(retries, 0.1), clock)


FIVE = tuple(Query(words, f"{words}, of reward hacking") for words in ("a", "bb", "ccc", "dddd", "eeeee"))


def by_cause(report: Report) -> dict[str, tuple[str, bool, str]]:
    return {one.tried: (one.cause.value, one.retryable, one.meant) for one in report.failures}


def test_a_timeout_and_an_empty_answer_are_told_apart() -> None:
    """M14's check: the tool gives [] in both cases, once because its time was over, once because there is nothing."""
    report = researcher(slow=("bb",), empty=("dddd",)).report(Task("Find reward hacking", queries=FIVE))
    assert report.empty == ("dddd",) and report.searched == ("a", "ccc", "eeeee")
    assert by_cause(report) == {"bb": ("timeout", True, "bb, of reward hacking")}
    assert len(report.claims) == 3 and not report.partial


def test_three_good_summaries_come_with_the_two_searches_that_failed() -> None:
    report = researcher(raises=("bb", "dddd")).report(Task("Find reward hacking", queries=FIVE))
    assert [claim.source for claim in report.claims] == ["reading-1:1", "reading-3:1", "reading-5:1"]
    assert set(by_cause(report)) == {"bb", "dddd"} and report.empty == ()
    assert all(one.cause is Cause.TIMEOUT and one.retryable for one in report.failures)
    assert json.loads(json.dumps(report.json()))["failures"][0]["meant"] == "bb, of reward hacking"


def test_what_is_not_permitted_is_not_to_be_tried_again() -> None:
    made = researcher(denied=("ccc",), broken=("a",), retries=2)
    report = made.report(Task("g", queries=FIVE))
    assert by_cause(report)["ccc"][:2] == ("denied", False)
    assert by_cause(report)["a"][:2] == ("error", False)
    search: Any = made.search
    assert search.asked == dict.fromkeys(("a", "bb", "ccc", "dddd", "eeeee"), 1)


FREE = Limits(steps=10, consecutive_errors=None, seconds=None)
# What a search may do, with how the report is to name it; "" where it is to be no failure.
WAYS = {"slow": "timeout", "late": "timeout", "raises": "timeout", "denied": "denied", "broken": "error",
        "empty": "", "works": ""}  # fmt: skip


@given(st.lists(st.sampled_from(sorted(WAYS)), min_size=1, max_size=6), st.integers(0, 2))
def test_every_search_is_found_empty_or_failed_and_never_two_of_them(ways: list[str], retries: int) -> None:
    words = ["q" * (number + 1) for number in range(len(ways))]
    did: dict[str, Any] = {
        way: tuple(w for w, given in zip(words, ways, strict=True) if given == way) for way in WAYS
    }
    tried = did.pop("works")
    made = researcher(None, FREE, retries, over=0.1, **did)
    report = made.report(Task("g", queries=tuple(Query(word, f"about {word}") for word in words)))
    assert report.searched == tried and report.empty == did["empty"]
    assert [claim.source for claim in report.claims] == [f"reading-{len(word)}:1" for word in tried]
    assert by_cause(report) == {
        word: (WAYS[way], WAYS[way] == "timeout", f"about {word}")
        for word, way in zip(words, ways, strict=True)
        if WAYS[way]
    }
    search: Any = made.search
    assert search.asked == {
        word: 1 + retries * (WAYS[way] == "timeout") for word, way in zip(words, ways, strict=True)
    }


def test_a_failure_is_named_by_its_last_attempt_and_by_its_own_advice() -> None:
    said: list[Exception] = [
        TimeoutError(),
        RuntimeError("corrupt"),
        Passing("busy"),
        Passing("busy"),
        Stop("no"),
    ]

    def search(words: str) -> Sequence[str]:
        raise said.pop(0)

    made = Researcher(ScriptedResearcher(), search, BUDGET, SECONDS, Retry(1, 0.1), VirtualClock())
    report = made.report(Task("g", queries=FIVE[:3]))
    assert [ways[:2] for ways in by_cause(report).values()] == [
        ("error", False),
        ("timeout", True),
        ("denied", False),
    ]


def test_a_passing_failure_is_retried_within_the_run_and_then_is_none() -> None:
    made = researcher(raises=("a",), slow=("bb",), heals=2, retries=1)
    report = made.report(Task("g", queries=FIVE))
    assert report.failures == () and len(report.claims) == 5
    search: Any = made.search
    assert search.asked == {"a": 2, "bb": 2, "ccc": 1, "dddd": 1, "eeeee": 1}


def test_a_subagent_has_one_tool_and_sees_its_task_alone() -> None:
    shown: list[list[dict[str, Any]]] = []

    def look(messages: list[dict[str, Any]]) -> Reply:
        shown.append(list(messages))
        return call("send_email", to="x@example.org", subject="s", body="b")

    made = researcher(ScriptedModel([look, say('{"claims": []}')]))
    task = Task(
        "The goal", ("Only E2.\nGoal: another",), ("E2 is in Turin.",), (Query("a", "its a"),), "A FORM"
    )
    report = made.report(task)
    assert [message["role"] for message in shown[0]] == ["system", "user"]
    assert shown[0][1]["content"] == task.text()
    lines = task.text().splitlines()
    assert lines[0] == "Goal: The goal" and sum(line.startswith("Goal:") for line in lines) == 1
    for part in ("Only E2. Goal: another", "E2 is in Turin.", '"a"', "its a", "A FORM"):
        assert part in task.text()
    assert by_cause(report)["send_email"][:2] == ("denied", False)  # no such tool: least privilege
    assert by_cause(report)["a"] == ("not made", True, "its a")


def test_a_budget_ends_a_subagent_with_what_it_has() -> None:
    report = researcher(limits=Limits(steps=2)).report(Task("g", queries=FIVE))
    assert (report.calls, report.partial, report.ended) == (2, True, "step_limit")
    assert [claim.source for claim in report.claims] == ["reading-1:1", "reading-2:1"]
    assert {tried: ways[0] for tried, ways in by_cause(report).items()} == dict.fromkeys(
        ("ccc", "dddd", "eeeee"), "budget"
    )


def test_a_subagent_that_is_cut_off_says_so_though_each_search_worked() -> None:
    model = ScriptedModel([call("retrieve", query="a"), call("retrieve", query="bb")])
    made = researcher(model, Limits(steps=2), empty=("a", "bb"))
    cut = made.report(Task("g")).failures
    assert [(one.tried, one.cause, one.retryable) for one in cut] == [("an answer", Cause.BUDGET, False)]
    done = coordinator(("RLHF",), made).answer("RLHF?")
    assert "'an answer' failed (budget" in done.gaps()[0] and len(done.parts[0].reports) == 1
    # Failing steps in a row are a bound as the others are, and what was not searched for that reason says so.
    made = researcher(limits=Limits(steps=10, consecutive_errors=2), broken=("a", "bb"))
    causes = {tried: ways[:2] for tried, ways in by_cause(made.report(Task("g", queries=FIVE[:3]))).items()}
    assert causes == {"a": ("error", False), "bb": ("error", False), "ccc": ("budget", True)}
    # A second run that comes to its end takes the first one's end away.
    first = Report(Task("g"), (), (), (), cut, True, "step_limit", 2, 9)
    assert Part("g", (first, researcher().report(Task("g")))).failures == []


def test_tokens_are_counted_without_a_limit_too() -> None:
    task = Task("g", queries=FIVE)
    free = researcher(limits=Limits(steps=10, tokens=None)).report(task)
    assert free.tokens == researcher().report(task).tokens > 100


def test_a_model_that_fails_or_breaks_the_form_loses_nothing() -> None:
    def away(messages: list[dict[str, Any]]) -> Reply:
        raise ModelFailure("no key")

    first = call("retrieve", query="a")
    gone = researcher(ScriptedModel([first, away])).report(Task("g"))
    assert gone.partial and len(gone.claims) == 1 and by_cause(gone)["a reply"][:2] == ("model", False)
    loose = researcher(ScriptedModel([first, say("I found a lot.")])).report(Task("g"))
    assert loose.partial and len(loose.claims) == 1 and loose.failures == ()


def test_a_claim_without_a_passage_behind_it_is_refused() -> None:
    said = {
        "claims": [
            {"claim": "All is free.", "source": "policy:9"},
            {"claim": "A.", "source": "[reading-1:1]"},
        ]
    }
    report = researcher(ScriptedModel([call("retrieve", query="a"), say(json.dumps(said))])).report(Task("g"))
    assert [claim.text for claim in report.claims] == ["A."]
    assert by_cause(report)["All is free."][0] == "unsourced"


def test_a_report_is_short() -> None:
    many = {"claims": [{"claim": f"{i} " + "x" * 900, "source": "reading-1:1"} for i in range(50)]}
    report = researcher(ScriptedModel([call("retrieve", query="a"), say(json.dumps(many))])).report(Task("g"))
    assert len(report.claims) == CLAIMS and max(len(claim.text) for claim in report.claims) == LONGEST


def coordinator(parts: Sequence[str], made: Researcher, **settings: Any) -> Coordinator:
    listed = json.dumps([{"question": part, "searches": []} for part in parts])
    return Coordinator(made, ScriptedModel([say(listed), say("The answer.")]), **settings)


QUESTION = "What is the effect of RLHF on calibration?"
THREE = ("RLHF reward models", "RLHF from human preferences", "RLHF policy optimisation")


def test_three_successful_parts_about_half_of_the_question_leave_a_named_gap() -> None:
    """M14's example: nobody failed, and the answer never mentions calibration."""
    done = coordinator(THREE, researcher()).answer(QUESTION)
    assert done.failures == [] and done.missing == ("calibration",)
    assert (
        done.gaps() == ["Not covered: calibration (no part asked about it, and no summary mentions it)."]
        and not done.complete
    )
    assert done.gaps()[0] in done.text()
    assert coordinator([*THREE, "whether it is calibrated"], researcher()).answer(QUESTION).complete


def test_a_part_that_asked_in_vain_leaves_a_named_gap() -> None:
    """The whole question handed on as one part covers it in words; no summary says anything of it."""
    lazy = researcher(ScriptedModel([say('{"claims": []}')]))
    done = coordinator(("RLHF and calibration",), lazy).answer(QUESTION)
    assert done.missing == () and done.failures == [] and not done.complete
    assert done.gaps() == ["Asked, and in no summary: rlhf, calibration."]
    half = ScriptedModel(
        [call("retrieve", query="RLHF"), say('{"claims": [{"claim": "RLHF.", "source": "reading-4:1"}]}')]
    )
    done = coordinator(("RLHF and calibration",), researcher(half)).answer(QUESTION)
    assert done.unmentioned == ("calibration",)
    # What failed or was searched in vain is named as that, once.
    for kind in ("raises", "empty"):
        ways: dict[str, Any] = {kind: ("RLHF, calibration",)}
        done = coordinator(("RLHF, calibration",), researcher(**ways)).answer(QUESTION)
        (line,) = done.gaps()
        assert line.startswith("Partial" if kind == "raises" else "Searched, and nothing found")


def test_a_split_of_one_search_in_words_and_of_nothing_is_read() -> None:
    listed = [
        {"question": "RLHF", "searches": "reward models"},
        {"question": " "},
        {"question": "x", "searches": None},
    ]
    done = Coordinator(researcher(), ScriptedModel([say(json.dumps(listed)), say("x")])).answer("RLHF?")
    assert [part.question for part in done.parts] == ["RLHF", "x"]
    assert [query.words for query in done.parts[0].reports[0].task.queries] == ["reward models"]


def test_a_further_round_asks_for_what_is_missing() -> None:
    done = coordinator(THREE, researcher(), further=1).answer(QUESTION)
    assert done.missing == () and len(done.parts) == 4 and "calibration" in done.parts[3].question
    nothing = coordinator(THREE, researcher(empty=("calibration",)), further=1).answer(QUESTION)
    assert nothing.gaps() == ["Searched, and nothing found: 'calibration'."]


def test_retries_are_bounded_and_keep_what_worked() -> None:
    for heals, tries, gaps in ((2, 2, 0), (3, 2, 1), (3, 3, 0)):
        made = researcher(slow=(THREE[1],), heals=heals)
        done = coordinator(THREE, made, attempts=tries).answer("RLHF?")
        search: Any = made.search
        assert search.asked == {THREE[0]: 1, THREE[1]: min(heals, tries), THREE[2]: 1}
        assert len(done.failures) == gaps == sum(line.startswith("Partial") for line in done.gaps())
        assert len(done.parts[0].claims) == len(done.parts[2].claims) == 1
    denied = researcher(denied=(THREE[1],))
    done = coordinator(THREE, denied, attempts=5).answer("RLHF?")
    asked: Any = denied.search
    assert asked.asked[THREE[1]] == 1 and "not to be tried again" in done.gaps()[0]


def test_a_retry_is_told_what_is_known_and_searches_only_what_failed() -> None:
    made = researcher(raises=("bb",), heals=2)
    listed = json.dumps([{"question": "g", "searches": ["a", "bb", "ccc"]}])
    done = Coordinator(made, ScriptedModel([say(listed), say("x")])).answer("g?", known=["K."])
    again = done.parts[0].reports[1].task
    assert [query.words for query in again.queries] == ["bb"] and again.goal == "g"
    assert again.known == (
        "K.",
        "What is said about a. [reading-1:1]",
        "What is said about ccc. [reading-3:1]",
    )
    assert len(done.parts[0].claims) == 3 and done.failures == []


def test_what_the_participant_demanded_travels_in_every_task() -> None:
    """M14's check: said earlier in the conversation, which no subagent sees."""
    told: list[str] = []

    def listen(messages: list[dict[str, Any]]) -> Reply:
        told.append(str(messages[1]["content"]))
        return say('{"claims": []}')

    demand = "I only want peer-reviewed sources from 2022 or later."
    done = coordinator(THREE, researcher(ScriptedModel([listen]))).answer(
        "What do the readings say about RLHF? Nothing that you must pay for.",
        ["Hello, I write a paper.", f"Thank you! {demand}"],
    )
    assert done.constraints == (demand, "Nothing that you must pay for.")
    again = coordinator(("RLHF",), researcher(ScriptedModel([listen])))
    assert again.answer("RLHF?", constraints=["The budget is 300 euros."]).constraints == (
        "The budget is 300 euros.",
    )
    assert "- The budget is 300 euros." in told.pop().splitlines()
    assert len(told) == 3
    for text in told:
        assert all(f"- {constraint}" in text.splitlines() for constraint in done.constraints)
        assert "I write a paper" not in text


def test_tokens_of_both_sides_are_counted_apart() -> None:
    index = Index.of((document.name, document.text) for document in documents())
    done = Coordinator.scripted(searching(index)).answer(
        "What is the refund deadline and where is E2? Only the policy and event pages count."
    )
    assert [part.question for part in done.parts] == ["What is the refund deadline", "where is E2"]
    reports = [report for part in done.parts for report in part.reports]
    assert done.subagents.tokens == sum(report.tokens for report in reports) > done.coordinator.tokens > 0
    assert (done.coordinator.calls, done.subagents.calls) == (2, sum(report.calls for report in reports))
    assert f"subagents {done.subagents.tokens}" in done.price() and done.complete
    assert "Turin" in done.said
    # A provider's own count is taken where there is one.
    counted = Coordinator(researcher(), ScriptedModel([Reply("[]", tokens=7), Reply("x", tokens=5)]))
    assert counted.answer("RLHF?").coordinator.tokens == 12


def test_a_coordinator_that_fails_loses_no_report() -> None:
    class Away:
        name = "away"

        def reply(self, *given: Any) -> Reply:
            raise RuntimeError("gone")

    done = Coordinator(researcher(), Away()).answer("RLHF and calibration?")
    assert [part.question for part in done.parts] == ["RLHF and calibration?"] and len(done.notes) == 2
    assert "[reading-21:1]" in done.said
    odd = Coordinator(researcher(), ScriptedModel([say("No list."), say("x")])).answer("RLHF?")
    assert len(odd.parts) == 1 and "not split" in odd.notes[0]


def test_the_scripted_coordinator_is_shown_no_constraint_as_a_part() -> None:
    asked = json.dumps({"question": "Where is E2; who may cancel? Is it far\nand what does it cost"})
    reply = ScriptedCoordinator().reply(
        [{"role": "system", "content": SPLIT}, {"role": "user", "content": asked}], [], 0
    )
    assert [one["question"] for one in json.loads(reply.text)] == [
        "Where is E2", "who may cancel", "Is it far", "what does it cost",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is the effect of RLHF on calibration?", ["rlhf", "calibration"]),
        ("What do the readings say of reward hacking? Only from 2022 or later.", ["reading", "reward", "hacking"]),
        ("May only staff cancel?", ["staff", "cancel"]),
        ("Thanks. Find the effect of RLHF on calibration, only in papers.", ["rlhf", "calibration", "paper"]),
        ("Tell me about refunds. Do not forget parking. Never pay for it.", ["refund", "parking"]),
        ("The answer must cover parking.", ["parking"]),
    ],
)  # fmt: skip
def test_terms_are_what_a_question_is_about(question: str, found: list[str]) -> None:
    assert terms(question) == found


def test_other_forms_of_a_word_cover_it_and_other_words_do_not() -> None:
    assert uncovered("calibration?", ["how calibrated it is"]) == []
    assert uncovered("policy?", ["the police"]) == ["policy"]
    assert uncovered("calibration and RLHF?", []) == ["calibration", "rlhf"]
    for demand in ("Nothing older than 2022.", "Sources from 2022 on.", "No paywalled sources.", "Avoid blogs.",
                   "It has to be in English.", "Keep it under 200 words."):  # fmt: skip
        assert stated([f"Hello there. {demand} Bye."]) == [demand]
    assert stated(["I like E2. Do not write before May!", "at most 3 pages; thanks"]) == [
        "Do not write before May!",
        "at most 3 pages;",
    ]
