"""Documents say what the records say, and a poison reaches the index only where it is asked for."""

from __future__ import annotations

import pytest

from harnesses.desk.documents import (
    ATTACKER,
    NOTE,
    POISONS,
    A,
    B,
    documents,
    event_document,
    noted,
    policy_document,
)
from harnesses.desk.events import EVENTS
from harnesses.desk.passages import Index
from harnesses.desk.policy import RULES


def test_the_policy_document_holds_every_rule_as_it_is_written() -> None:
    found = policy_document().paragraphs
    assert len(found) == len(RULES)
    for paragraph, (rule, text) in zip(found, RULES.items()):
        assert paragraph.endswith(f"{rule}. {text}")


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_a_page_agrees_with_its_record(event: object) -> None:
    record = event.record()  # type: ignore[attr-defined]
    text = event_document(event).text  # type: ignore[arg-type]
    for name in ("id", "title", "city", "venue", "first", "fee", "seats"):
        assert str(record[name]) in text


def test_paragraphs_are_the_passages_of_the_index() -> None:
    chosen = documents()
    index = Index.of([(one.name, one.text) for one in chosen])
    shown = tuple(passage.shown for passage in index.passages)
    assert shown == tuple(paragraph for one in chosen for paragraph in one.paragraphs)


def test_no_poison_is_in_the_clean_index() -> None:
    assert not any(poison.text in one.text for one in documents() for poison in POISONS.values())
    assert ATTACKER not in "".join(one.text for one in documents())


@pytest.mark.parametrize("name", [A, B])
def test_a_poisoned_document_is_found_by_a_harmless_question(name: str) -> None:
    index = Index.of([(one.name, one.text) for one in documents([name])])
    found = index.search("Where can I park? Is there parking near the venue?", 3)
    assert any(POISONS[name].text in passage.text for passage in found)


def test_a_tool_result_carries_its_poison_in_one_field() -> None:
    record = EVENTS["E1"].record()
    found = noted(record, POISONS[NOTE])
    assert POISONS[NOTE].text in found["note"]
    assert {key: value for key, value in found.items() if key != "note"} == record
