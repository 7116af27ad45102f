"""Records are written whole or not at all, hold plain finite values, never mix two versions of the code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.records import (
    Record,
    RecordError,
    canonical,
    digest,
    plain,
    read_other_records,
    read_record,
    read_records,
    record_key,
    write_record,
)
from pomdp import whole_file

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "a" * 64
texts = st.text('aé\n"\\ 0{}\u2028', max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def record(seed: int | None = 0, source: str = SOURCE, **changes: object) -> Record:
    cell = {"arm": "fair", "item": 1}
    made = Record("coin", record_key("coin", cell, seed), cell, seed, source, "done", ({"x": 0.1},))
    return replace(made, **changes)  # type: ignore[arg-type]


@given(values)
def test_what_is_written_is_read_back(value: object) -> None:
    assert json.loads(canonical(value)) == value


@given(st.dictionaries(texts, st.integers(), min_size=2))
def test_the_key_ignores_the_order_of_entries(cell: dict[str, int]) -> None:
    assert record_key("s", cell, 1) == record_key("s", dict(reversed(cell.items())), 1)


def test_the_key_depends_on_study_cell_and_seed() -> None:
    keys = {
        record_key(study, cell, seed)
        for study in ("a", "b")
        for cell in ({"x": 1}, {"x": 2}, {"y": 1}, {"x": "1"})
        for seed in (None, 0, 1)
    }
    assert len(keys) == 24


def test_numbers_of_numpy_fractions_and_dataclasses_become_plain() -> None:
    @dataclass(frozen=True)
    class Point:
        x: float
        y: tuple[int, ...]

    found = plain({"a": np.float64(0.5), "b": np.arange(2), "c": Fraction(17, 20), "d": Point(1.0, (2, 3))})
    assert found == {"a": 0.5, "b": [0, 1], "c": "17/20", "d": {"x": 1.0, "y": [2, 3]}}
    assert digest({"a": np.int64(1)}) == digest({"a": 1})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("-inf"), np.array([1.0, np.nan])])
def test_a_number_that_is_not_finite_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(RecordError, match=r"row 3\['J'\]"):
        plain({"J": value}, "row 3")


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}, b"bytes"])
def test_a_value_without_a_plain_form_is_refused(value: object) -> None:
    with pytest.raises(RecordError):
        plain(value)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = record(
        seed=None, status="failed", message="why", rows=(), applied="x", seconds=1.5, device={"jax": None}
    )
    assert read_record(write_record(tmp_path, made)) == made


def test_records_of_other_sources_are_apart(tmp_path: Path) -> None:
    old = record(source="b" * 64)
    write_record(tmp_path, old)
    write_record(tmp_path, record())
    assert list(read_records(tmp_path, SOURCE).values()) == [record()]
    assert list(read_other_records(tmp_path, SOURCE).values()) == [old]
    assert read_records(tmp_path, "c" * 64) == {}


def test_of_several_other_versions_the_last_written_counts(tmp_path: Path) -> None:
    for age, source in ((20, "b" * 64), (10, "0" * 64)):
        path = write_record(tmp_path, record(source=source))
        moment = time.time() - age
        os.utime(path, (moment, moment))
    (found,) = read_other_records(tmp_path, SOURCE).values()
    assert found.source == "0" * 64


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', '{"format": 2}', '{"format": 1, "rows": 3}']
)
def test_a_file_that_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"x\.json"):
        read_record(path)


def test_a_failed_write_leaves_the_old_record_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_record(tmp_path, record())

    def full(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(whole_file.os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_record(tmp_path, record(rows=({"x": 0.2},)))
    assert read_record(path) == record()
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_a_reader_and_a_kill_never_see_half_a_record(tmp_path: Path) -> None:
    """One process rewrites a long record without end; it is read all the while, then killed in the middle."""
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from experiments.records import Record, record_key, write_record
        key = record_key("s", {}, 0)
        for number in range(10**9):
            rows = tuple({"number": number, "place": place} for place in range(5000))
            write_record(Path(sys.argv[1]), Record("s", key, {}, 0, "a" * 64, "done", rows))
        """
    )
    target = tmp_path / "records" / SOURCE[:16] / f"{record_key('s', {}, 0)}.json"
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not target.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        sizes, until = set(), time.monotonic() + 1.5
        while time.monotonic() < until or len(sizes) < 3:
            text = target.read_bytes()
            assert text.startswith(b"{") and text.endswith(b"}\n")
            sizes.add(hash(text))
    finally:
        process.kill()
        process.wait()
    found = read_record(target)
    assert len(found.rows) == 5000 and len({row["number"] for row in found.rows}) == 1
    assert list(read_records(tmp_path, SOURCE)) == [found.key]
