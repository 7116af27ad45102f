"""The outbox and the reviews: once per call, once per question, whatever else writes to the file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harnesses.desk.database import DeskError
from harnesses.desk.outbox import Email, Outbox
from harnesses.desk.reviews import Review, Reviews, Verdict
from harnesses.desk.tool_errors import Stop

EMAIL = Email("ana@example.org", "Hello", "Text")


def test_a_call_sends_once() -> None:
    outbox = Outbox()
    assert [outbox.send("t", "c1", EMAIL) for _ in range(3)] == [True, False, False]
    assert [(sent.thread, sent.call, sent.email) for sent in outbox.sent()] == [("t", "c1", EMAIL)]


def test_a_call_is_named_by_its_thread_too() -> None:
    outbox = Outbox()
    assert outbox.send("t", "c1", EMAIL) and outbox.send("u", "c1", EMAIL) and outbox.send("t", "c2", EMAIL)
    assert len(outbox.sent()) == 3 and len(outbox.sent("t")) == 2


def test_another_email_under_the_same_call_is_refused() -> None:
    outbox = Outbox()
    outbox.send("t", "c1", EMAIL)
    with pytest.raises(Stop, match="another email"):
        outbox.send("t", "c1", Email("ana@example.org", "Hello", "Other"))
    assert [sent.email for sent in outbox.sent()] == [EMAIL]


def test_many_writers_on_one_file(tmp_path: Path) -> None:
    boxes = [Outbox(tmp_path / "desk.db") for _ in range(8)]

    def write(number: int) -> int:
        return sum(boxes[number].send(f"t{k}", "c1", EMAIL) for k in range(40))

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(write, range(8)))
    assert sum(counts) == 40 == len(Outbox(tmp_path / "desk.db").sent())


def test_what_was_sent_outlives_the_process(tmp_path: Path) -> None:
    first = Outbox(tmp_path / "desk.db")
    first.send("t", "c1", EMAIL)
    first.close()
    assert Outbox(tmp_path / "desk.db").send("t", "c1", EMAIL) is False


def test_the_first_answer_stands() -> None:
    reviews = Reviews()
    reviews.record(Review("q1", "t", "c1", Verdict.REJECT, "ines"))
    for verdict in Verdict:
        with pytest.raises(DeskError, match="answered already: reject, by ines"):
            reviews.record(Review("q1", "t", "c1", verdict))
    assert reviews.of("q1") == Review("q1", "t", "c1", Verdict.REJECT, "ines")
    assert reviews.of("q2") is None


def test_a_verdict_is_one_of_two_words_and_no_truth_value() -> None:
    assert Verdict.of("approve") is Verdict.APPROVE and Verdict.of(Verdict.REJECT) is Verdict.REJECT
    for said in ("yes", "Approve", "approve ", True, 1, None, {"approve": True}):
        with pytest.raises(DeskError, match="approve or reject"):
            Verdict.of(said)
    with pytest.raises(TypeError):
        bool(Verdict.REJECT)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database at all, but long enough to have a header" * 20)
    for place in (tmp_path / "notes.txt", tmp_path / "no" / "folder.db"):
        with pytest.raises(DeskError, match="name one such as desk.db"):
            Outbox(place)
