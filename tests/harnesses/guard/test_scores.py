"""Scores: what is read, what is refused, and that the row named is the row that is wrong."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.region import GuardError
from harnesses.guard.scores import Scores, read_scores

GOOD = "p,y\n0.97,1\n0.4,0\n"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Writes text or bytes to a file and gives its path."""
    folder = tmp_path_factory.mktemp("scores")

    def write(content, name="scores.csv"):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refusal(call, *arguments):
    """The one line in which a call is refused."""
    with pytest.raises(GuardError) as caught:
        call(*arguments)
    line = str(caught.value)
    assert "\n" not in line and len(line) < 300
    return line


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", "\n\n \n"),
        '"p","y"\n"0.97","1"\n0.4,"0"\n',
        "id,y, p \na,true,0.97\nb,FALSE,.4\n",
        "p,y,,\n9.7e-1,1.0,x,\n 0.40 , 0.0,,\n",
        GOOD.rstrip("\n"),
    ],
)
def test_forms_of_one_csv_file_give_the_same_scores(file, content):
    found = read_scores(file(content))
    assert found.p.tolist() == [0.97, 0.4] and found.p.dtype == np.float64
    assert found.y.tolist() == [1, 0] and found.y.dtype == np.int8
    assert found.p_injected is None and found.group is None
    assert found.size == 2 and found.allowed.tolist() == [True, False]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("p,y\n0.5,1\n1.5,0\n", "row 2 (line 3): p is 1.5;"),
        ("p,y\n0.5,1\n-0.1,0\n", "row 2 (line 3): p is -0.1;"),
        ("p,y\nnan,1\n", "row 1 (line 2): p is nan;"),
        ("p,y\n0.5,1\n\n\n,0\n", "row 2 (line 5): p is missing;"),
        ("p,y\n0.5,1\ninf,0\n", "row 2 (line 3): p is inf;"),
        ("p,y\n0_1,1\n", "row 1 (line 2): p is 0_1;"),
        ("p,y\ntrue,1\n", "row 1 (line 2): p is true;"),
        ("p,y\n0.5,1\n0.5,2\n", "row 2 (line 3): y is 2;"),
        ("p,y\n0.5,yes\n", "row 1 (line 2): y is yes;"),
        ("p,y\n0.5,\n", "row 1 (line 2): y is missing;"),
        ("p,y\n0.5,0.5\n", "row 1 (line 2): y is 0.5;"),
        ("p,y,p_injected\n0.5,1,0.5\n0.5,1,7\n", "row 2 (line 3): p_injected is 7;"),
        ("p,y,group\n0.5,1,a\n0.5,1, \n", "row 2 (line 3): group is missing;"),
        ("p,y\n0.5,1\n0.5,1,1\n", "row 2 (line 3) has 3 fields, where the header names 2"),
        ("p,y\n0.5\n", "row 1 (line 2) has 1 fields"),
        ('p,y,x\n0.5,1,"a\nb"\n0.5,3,c\n', "row 2 (line 4): y is 3;"),
        (b"p,y\n0.5,1\n0.5,\xe9\n", "row 2 (line 3): byte 0xe9 is not UTF-8"),
        (b"\xef\xbb\xbfp,y\n\n0.5,1\n\xff0.5,1\n", "row 2 (line 4): byte 0xff is not UTF-8"),
        ("p,y\n0.5,1\n".encode("utf-16"), "the header (line 1): byte 0xff is not UTF-8"),
        (b"p,y\n0.5,1\0\n", "neither CSV nor Parquet"),
        ('p,y\n0.5,"1\n', "line 2 is not CSV"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("p,y\n", "no rows"),
        ("p,label\n0.5,1\n", "no column y; its columns are p, label;"),
        ("p;y\n0.5;1\n", "no column p; its columns are p;y;"),
        ("0.5,1\n0.4,0\n", "no column p; its columns are 0.5, 1;"),
        ("P,y\n0.5,1\n", "no column p; its columns are P, y;"),
        ("p,y,p\n0.5,1,1\n", "2 columns named p;"),
        ("p,y,group,group\n0.5,1,a,b\n", "2 columns named group;"),
        ("p,y\n" + "9" * 300 + ",1\n", "row 1 (line 2): p is 9999"),
    ],
)
def test_a_csv_file_that_is_wrong_is_refused_in_one_line_that_names_the_place(file, content, told):
    assert told in refusal(read_scores, file(content))


@given(
    rows=st.integers(1, 12),
    bad=st.data(),
    column=st.sampled_from(["p", "y", "p_injected"]),
    blanks=st.lists(st.integers(0, 2), min_size=12, max_size=12),
)
def test_the_row_and_line_named_are_those_of_the_only_bad_cell(file, rows, bad, column, blanks):
    at = bad.draw(st.integers(0, rows - 1))
    cells = [{"p": "0.5", "y": "1", "p_injected": "0.25"} for _ in range(rows)]
    cells[at][column] = "1.25"
    lines = ["y,p_injected,p"]
    for blank, cell in zip(blanks, cells):
        lines += [""] * blank + [f"{cell['y']},{cell['p_injected']},{cell['p']}"]
    line = next(i for i, text in enumerate(lines, 1) if "1.25" in text)
    assert f"row {at + 1} (line {line}): {column} is 1.25" in refusal(read_scores, file("\n".join(lines)))


def test_a_parquet_file_gives_what_its_csv_file_gives_under_any_name(file, tmp_path):
    table = pd.DataFrame(
        {
            "group": ["a", "b", "a"],
            "p": [0.1, 0.7, 1.0],
            "y": [True, False, True],
            "p_injected": [0, 1, 0],
            "z": [{}, {}, {}],
        }
    )
    table.drop(columns="z").to_parquet(tmp_path / "odd.csv")
    table.to_csv(tmp_path / "scores.txt", index=False)
    one, two = read_scores(tmp_path / "odd.csv"), read_scores(tmp_path / "scores.txt")
    for name in ("p", "y", "p_injected", "group"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()
        assert getattr(one, name).dtype == getattr(two, name).dtype


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"p": [0.5, None], "y": [1, 0]}, "row 2: p is missing"),
        ({"p": [0.5, float("inf")], "y": [1, 0]}, "row 2: p is inf"),
        ({"p": ["0.5", "x"], "y": [1, 0]}, "row 2: p is x"),
        ({"p": [0.5, 0.5, 0.5], "y": [1, None, 0]}, "row 2: y is"),
        ({"p": [0.5], "y": [3]}, "row 1: y is 3"),
        ({"p": [True], "y": [1]}, "row 1: p is True"),
        ({"p": [0.5, 0.5], "y": [1, 0], "group": ["a", None]}, "row 2: group is missing"),
        ({"p": [], "y": []}, "no rows"),
        ({"p": [0.5]}, "no column y; its columns are p;"),
    ],
)
def test_a_parquet_file_that_is_wrong_is_refused_in_one_line_that_names_the_row(tmp_path, columns, told):
    path = tmp_path / "scores.parquet"
    pd.DataFrame(columns).to_parquet(path)
    assert told in refusal(read_scores, path)


def test_what_is_no_parquet_file_or_half_of_one_is_refused(file, tmp_path):
    pd.DataFrame({"p": [0.5], "y": [1]}).to_parquet(tmp_path / "whole.parquet")
    half = (tmp_path / "whole.parquet").read_bytes()[:-20]
    assert "damaged" in refusal(read_scores, file(half, "half.parquet"))
    assert "no Parquet file" in refusal(read_scores, file(GOOD, "scores.parquet"))


def test_a_column_that_is_needed_is_asked_for_and_a_file_that_is_not_there_is_an_os_error(file, tmp_path):
    assert "no column p_injected" in refusal(read_scores, file(GOOD), ("p", "y", "p_injected"))
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(OSError):
            read_scores(path)


def test_numbers_booleans_and_text_in_lists_and_arrays_give_the_same_scores():
    p, y = [0.7, 0.125, 1.0], [1, 0, 1]
    reports = [
        p,
        np.array(p),
        np.array(p, dtype=np.float32),
        [Fraction(7, 10), "0.125", 1],
        np.array(p, dtype=object),
    ]
    labels = [
        y,
        np.array(y, dtype=bool),
        np.array(y, dtype=float),
        [True, "false", Fraction(1)],
        ("1", "0", "1.0"),
    ]
    for mine, theirs in zip(reports, labels):
        found = Scores.of(mine, theirs, group=["a", "b", "a"])
        assert found.p.tolist() == p and found.y.tolist() == y and found.group.tolist() == ["a", "b", "a"]


def test_arrays_that_make_no_scores_are_refused():
    assert "scores row 2: p is 2" in refusal(Scores.of, [0.5, 2], [1, 0])
    assert "scores row 1: y is -1" in refusal(Scores.of, [0.5], np.array([-1]))
    assert "p has 2, y has 1 rows" in refusal(Scores.of, [0.5, 0.5], [1])
    assert "no rows" in refusal(Scores.of, [], [])
    assert "p is no sequence" in refusal(Scores.of, 0.5, [1])
    assert "y is no sequence" in refusal(Scores.of, [0.5], np.ones((1, 1)))


def test_scores_cannot_be_changed_and_leave_the_callers_arrays_alone():
    p = np.array([0.5, 0.25])
    found = Scores.of(p, [1, 0])
    with pytest.raises(ValueError):
        found.p[0] = 1
    p[0] = 1
    assert found.p[0] == 0.5


@pytest.mark.parametrize("label", [0, 1])
def test_a_single_class_is_refused_where_both_are_needed(label):
    Scores.of([0.5, 0.5], [0, 1]).require_both_classes()
    one = Scores.of([0.5, 0.5, 0.9], [label] * 3)
    assert f"rows 1 to 3 all have y = {label}" in refusal(one.require_both_classes)


def test_the_items_of_a_mask_keep_their_columns():
    found = Scores.of([0.1, 0.2, 0.3], [0, 1, 1], [0.4, 0.5, 0.6], ["a", "b", "c"]).where(
        np.array([True, False, True])
    )
    assert found.p.tolist() == [0.1, 0.3] and found.p_injected.tolist() == [0.4, 0.6]
    assert found.y.tolist() == [0, 1] and found.group.tolist() == ["a", "c"]


def test_a_file_of_many_rows_is_read_exactly(file):
    rng = np.random.default_rng(3)
    p, y = rng.random(50_000), rng.integers(0, 2, 50_000)
    found = read_scores(file("p,y\n" + "".join(f"{a!r},{b}\n" for a, b in zip(p.tolist(), y))))
    assert (found.p == p).all() and (found.y == y).all()
