"""Solved models: found again for the same question alone, and never believed without the check."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

import pomdp.bounds.solver
from pomdp import certificate as certificates
from pomdp.bounds import solve, solve_open_loop, solved_before
from pomdp.criterion import Criterion

THREE = Criterion(Fraction(1), 3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The cache of one test."""
    monkeypatch.setattr(solved_before, "cache_folder", lambda part: tmp_path)
    return tmp_path


def stored_file(folder):
    """The one certificate in the cache."""
    (found,) = folder.glob("*/certificate.json")
    return found


def test_the_second_call_searches_nothing_and_says_the_same(folder, tiger, monkeypatch):
    first = solve(tiger(), THREE, gap=1e-6, cache=True)
    monkeypatch.setattr(pomdp.bounds.solver, "Search", None)  # a search would fail
    second = solve(tiger(), THREE, gap=1e-6, cache=True)
    assert not first.cached and second.cached and second.certified
    assert (second.interval, second.certificate, second.ended) == (
        first.interval,
        first.certificate,
        first.ended,
    )
    assert second.seconds == first.seconds


def test_nothing_is_stored_unless_asked(folder, tiger):
    solve(tiger(), THREE, gap=1e-6)
    solve(tiger(), THREE, gap=1e-6, cache=True, certify=False)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"model": "accuracy"},
        {"criterion": Criterion(Fraction(1), 2)},
        {"criterion": Criterion(Fraction(9, 10), 3)},
        {"gap": 1e-7},
        {"quantity": "open_loop"},
    ],
    ids=str,
)
def test_another_question_is_not_answered(folder, tiger, change):
    solve(tiger(), THREE, gap=1e-6, cache=True)
    asked = {"model": tiger(), "criterion": THREE, "quantity": "optimal", "gap": 1e-6, "time_limit": 60.0}
    assert solved_before.find(**asked) is not None
    if "model" in change:
        change = {"model": tiger("0.8")}
    assert solved_before.find(**asked | change) is None


def test_another_solver_asks_anew(folder, tiger, monkeypatch):
    solve(tiger(), THREE, gap=1e-6, cache=True)
    monkeypatch.setattr(solved_before, "solver_hash", lambda: "another")
    assert solved_before.find(tiger(), THREE, "optimal", 1e-6, 60.0) is None


def test_a_run_out_of_time_answers_no_longer_one(folder, tiger):
    made = solve(tiger(), THREE, gap=1e-6).certificate
    solved_before.store(tiger(), THREE, made, 1e-6, 5.0, "time", 5.0)
    assert solved_before.find(tiger(), THREE, "optimal", 1e-6, 5.0) is not None
    assert solved_before.find(tiger(), THREE, "optimal", 1e-6, 6.0) is None


def test_a_false_claim_in_the_cache_is_solved_again(folder, tiger):
    first = solve(tiger(), THREE, gap=1e-6, cache=True)
    file = stored_file(folder)
    certificates.write(replace(first.certificate, lower=Fraction(3), upper=Fraction(3)), file)
    again = solve(tiger(), THREE, gap=1e-6, cache=True)
    assert not again.cached and again.interval.contains(Fraction("2.72"))
    assert certificates.read(file) == again.certificate


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"ended": 1}', '{"ended": "gap", "time_limit": "x"}', "\x00"]
)
def test_a_damaged_entry_is_no_answer_and_no_error(folder, tiger, text):
    solve(tiger(), THREE, gap=1e-6, cache=True)
    file = stored_file(folder)
    kept = file.read_text()
    file.write_text(text)
    assert solved_before.find(tiger(), THREE, "optimal", 1e-6, 60.0) is None
    file.write_text(kept)
    file.with_name("run.json").write_text(text)
    assert solved_before.find(tiger(), THREE, "optimal", 1e-6, 60.0) is None


def test_a_certificate_of_another_question_in_the_wrong_place_is_no_answer(folder, tiger):
    solve(tiger(), THREE, gap=1e-6, cache=True)
    certificates.write(solve_open_loop(tiger(), THREE, gap=1e-6).certificate, stored_file(folder))
    assert solved_before.find(tiger(), THREE, "optimal", 1e-6, 60.0) is None


def test_large_certificates_are_not_kept(folder, tiger, monkeypatch):
    monkeypatch.setattr(solved_before, "LARGEST", 10)
    solve(tiger(), THREE, gap=1e-6, cache=True)
    assert solved_before.find(tiger(), THREE, "optimal", 1e-6, 60.0) is None
    assert [f.name for f in folder.glob("*/*")] == []


@pytest.mark.parametrize("place", [None, "file"])
def test_without_a_place_to_write_solving_still_works(tmp_path, tiger, monkeypatch, place):
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setattr(solved_before, "cache_folder", lambda part: place and file)
    assert solve(tiger(), THREE, gap=1e-6, cache=True).interval.contains(Fraction("2.72"))


def test_the_record_says_how_the_run_ended(folder, tiger):
    found = solve(tiger(), THREE, gap=1e-6, time_limit=7.0, cache=True)
    run = json.loads(stored_file(folder).with_name("run.json").read_text())
    assert run == {"ended": "gap", "time_limit": 7.0, "seconds": found.seconds}
