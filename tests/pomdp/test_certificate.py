"""The certificate file: an exact round trip, a file in one step, and one clear error for anything else."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp.bounds import solve, solve_open_loop
from pomdp.certificate import (
    FORMAT,
    Certificate,
    CertificateError,
    Controller,
    Node,
    Point,
    Points,
    read,
    write,
)
from pomdp.criterion import Criterion
from pomdp.testing import pomdps

INTEGERS = st.one_of(st.integers(-5, 5), st.integers(-(10**60), 10**60))
ROWS = st.lists(INTEGERS, max_size=3).map(tuple)
SPARSE = st.dictionaries(st.integers(0, 9), INTEGERS, max_size=3)
RATIONALS = st.fractions(max_denominator=10**30)
# Whatever their truth: what the file holds is not for the reader to judge.
CERTIFICATES = st.builds(
    Certificate,
    st.sampled_from(["optimal", "open_loop"]),
    st.none() | RATIONALS,
    st.none() | st.integers(1, 9),
    RATIONALS,
    RATIONALS,
    st.builds(
        Controller,
        st.integers(0, 5),
        st.integers(1, 2**70),
        st.lists(st.builds(Node, st.integers(0, 3), st.integers(0, 3), ROWS, ROWS), max_size=3).map(tuple),
    ),
    st.builds(
        Points,
        st.integers(1, 90),
        st.integers(1, 2**70),
        st.lists(st.lists(ROWS, max_size=2).map(tuple), max_size=2).map(tuple),
        st.lists(st.builds(Point, st.integers(0, 3), SPARSE, ROWS), max_size=3).map(tuple),
        st.dictionaries(st.tuples(*[st.integers(0, 9)] * 3), SPARSE, max_size=3),
        SPARSE,
    ),
)


@given(CERTIFICATES)
def test_any_certificate_reads_back_equal(tmp_path_factory, certificate):
    path = tmp_path_factory.mktemp("round") / "certificate.json"
    write(certificate, path)
    assert read(path) == certificate


@settings(max_examples=8)
@given(st.data())
def test_what_the_solver_proves_reads_back_equal(tmp_path_factory, data):
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2, discount=Fraction(1, 2)))
    criterion = Criterion.of(model, horizon=data.draw(st.sampled_from([None, 2])))
    path = tmp_path_factory.mktemp("round") / "certificate.json"
    certificate = solve(model, criterion, gap=1e-3, time_limit=5.0).certificate
    write(certificate, path)
    assert read(path) == certificate


def test_the_plan_of_an_open_loop(tiger):
    """Listening for ever is best blind; over three steps it is too, and the plan ends with the horizon."""
    forever = solve_open_loop(tiger(), Criterion(Fraction(19, 20)), gap=1e-3).certificate
    prefix, cycle = forever.actions()
    assert set(prefix + cycle) == {0} and cycle
    staged = solve_open_loop(tiger(), Criterion(Fraction(1), 3), gap=1e-6).certificate
    assert staged.actions() == ((0, 0, 0), ())


def test_prefix_and_cycle_are_where_the_links_close():
    nodes = tuple(Node(0, a, (j,), (0,)) for a, j in ((5, 2), (6, 0), (7, 3), (8, 2)))
    empty = Points(1, 1, (), (), {}, {})
    certificate = Certificate(
        "open_loop", None, None, Fraction(0), Fraction(0), Controller(1, 1, nodes), empty
    )
    assert certificate.actions() == ((6, 5), (7, 8))


VALID = {
    "format": FORMAT,
    "quantity": "optimal",
    "discount": "19/20",
    "horizon": None,
    "lower": {"claim": "2", "start": 0, "denominator": 1, "nodes": [[0, 0, [0], [2]]]},
    "upper": {
        "claim": "2.5",
        "bits": 2,
        "denominator": 1,
        "corners": [[[2]]],
        "points": [[0, [[0, 4]], [2]]],
        "weights": [[0, 0, 0, [[1, 4]]]],
        "start": [[1, 4]],
    },
}


def text_with(place: str, value: object) -> str:
    """VALID with the entry at a dotted place replaced."""
    data = json.loads(json.dumps(VALID))
    *path, last = [int(k) if k.isdigit() else k for k in place.split(".")]
    parent = data
    for key in path:
        parent = parent[key]
    parent[last] = value
    return json.dumps(data)


def test_the_example_is_valid(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(VALID))
    certificate = read(path)
    assert certificate.upper == Fraction(5, 2) and certificate.discount == Fraction(19, 20)
    assert certificate.stages == 1


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("format", "hpomdp certificate 2", "format"),
        ("quantity", "best", "quantity"),
        ("discount", "fast", "discount"),
        ("discount", "1e9999", "discount"),
        ("lower.claim", "-1e400", "lower.claim"),
        ("upper.claim", 10**309, "upper.claim"),
        ("discount", "--5/3", "discount"),
        ("discount", "-/3", "discount"),
        ("discount", "1/0", "discount"),
        ("discount", 0.95, "discount"),
        ("discount", True, "discount"),
        ("horizon", "3", "horizon"),
        ("horizon", 3.0, "horizon"),
        ("lower", [], "lower"),
        ("lower.claim", None, "lower.claim"),
        ("lower.start", False, "lower.start"),
        ("lower.denominator", 0, "lower.denominator"),
        ("lower.denominator", -1, "lower.denominator"),
        ("lower.nodes", {}, "lower.nodes"),
        ("lower.nodes.0", [0, 0, [0]], "lower.nodes[0]"),
        ("lower.nodes.0.3", [2.0], "lower.nodes[0]"),
        ("lower.nodes.0.2", 0, "lower.nodes[0]"),
        ("upper.bits", "80", "upper.bits"),
        ("upper.corners.0.0", 2, "upper.corners[0]"),
        ("upper.points.0.1", [[0, 2], [0, 2]], "upper.points[0]"),
        ("upper.points.0.1", [[0]], "upper.points[0]"),
        ("upper.weights", [[0, 0, 0, []], [0, 0, 0, []]], "upper.weights[1]"),
        ("upper.start", "all", "upper.start"),
    ],
)
def test_an_error_names_the_entry(tmp_path, place, value, words):
    path = tmp_path / "c.json"
    path.write_text(text_with(place, value))
    with pytest.raises(CertificateError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and words in message and "\n" not in message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "null",
        '{"format": NaN}',
        '{"format": 1, "format": 2}',
        "[" * 10**5,
        "9" * 10**4,
        '"\\ud800"',
    ],
)
def test_what_is_no_certificate_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(CertificateError) as caught:
        read(path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_entries_are_neither_lacking_nor_unknown(tmp_path):
    path = tmp_path / "c.json"
    for change in ({"checksum": "0"}, {"lower": None}):
        data = VALID | change
        if change == {"lower": None}:
            del data["lower"]
        path.write_text(json.dumps(data))
        with pytest.raises(CertificateError, match="checksum|lower"):
            read(path)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(CertificateError, match="UTF-8"):
        read(path)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(VALID))
    certificate = read(path)

    def broken(source: str, target: Path) -> None:
        raise OSError("disk is full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk is full"):
        write(certificate, path)
    assert os.listdir(tmp_path) == ["c.json"] and json.loads(path.read_text()) == VALID


def test_the_file_carries_no_checksum_and_names_no_model(tmp_path, tiger):
    path = tmp_path / "c.json"
    write(solve(tiger(), Criterion(Fraction(1), 2), gap=1e-3).certificate, path)
    data = json.loads(path.read_text())
    assert set(data) == set(VALID)
    assert tiger().digest not in path.read_text()
