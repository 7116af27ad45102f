"""Every form of the Cassandra format means what the format says; the files of other authors read."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pomdp.cassandra import FormatError, Limits, parse, read
from pomdp.model import POMDP, ModelError

# File, states, actions, observations, discount: the table that comes with the files.
FILES = [
    ("1d.pomdp", 4, 2, 2, "0.75"),
    ("4x3.95.pomdp", 11, 4, 6, "0.95"),
    ("aloha.10.pomdp", 30, 9, 3, "0.999"),
    ("bridge-repair.POMDP", 5, 12, 5, "1"),
    ("cheng.D3-1.pomdp", 3, 3, 3, "0.99999"),
    ("cit.pomdp", 284, 4, 28, "0.99"),
    ("ejs1.POMDP", 3, 4, 2, "1"),
    ("ejs3.POMDP", 2, 2, 2, "1"),
    ("ejs4.POMDP", 3, 2, 2, None),
    ("hallway.pomdp", 60, 5, 21, "0.95"),
    ("learning.c2.pomdp", 12, 8, 3, "0.99"),
    ("light_maze.POMDP", 9, 4, 6, "0.95"),
    ("marking.pomdp", 9, 4, 3, "0.87"),
    ("milos-aaai97.pomdp", 20, 6, 8, "0.9"),
    ("mini-hall2.pomdp", 13, 3, 9, "0.95"),
    ("network.pomdp", 7, 4, 2, "0.95"),
    ("paint.95.pomdp", 4, 4, 2, "0.95"),
    ("query.s2.pomdp", 9, 2, 3, "0.99"),
    ("RockSample_4_4.pomdp", 257, 9, 2, "0.95"),
    ("saci-s12-a6-z5.95.pomdp", 12, 6, 5, "0.95"),
    ("shuttle.95.pomdp", 8, 3, 5, "0.95"),
    ("tag-avoid.pomdp", 870, 5, 30, "0.95"),
    ("term3.pomdp", 4, 4, 4, "0.9"),
    ("term3_strict.pomdp", 4, 4, 4, "0.9"),
    ("tiger.95.pomdp", 2, 3, 2, "0.95"),
    ("tiger.aaai.POMDP", 2, 3, 2, "0.75"),
    ("tiger.numeric.pomdp", 2, 3, 2, "0.95"),
    ("web-ad.pomdp", 4, 3, 5, "0.95"),
]

HEAD = """\
discount: 0.9
values: reward
states: left right
actions: stay go
observations: dark light
"""
KERNELS = "T: * identity\nO: * uniform\n"


def model(*sections: str) -> POMDP:
    """A model of two states, actions and observations with sections after the preamble."""
    return parse(HEAD + "\n".join(sections))


def dense(matrix) -> list[list[Fraction]]:
    """The entries of a rational matrix."""
    return [[row.get(j, Fraction(0)) for j in range(matrix.shape[1])] for row in matrix.rows()]


def fractions(text: str) -> list[list[Fraction]]:
    """A matrix from text, rows separated by commas."""
    return [[Fraction(word) for word in row.split()] for row in text.split(",")]


@pytest.mark.parametrize(("file", "states", "actions", "observations", "discount"), FILES)
def test_file_by_others_reads(
    benchmarks: Path, file: str, states: int, actions: int, observations: int, discount: str | None
) -> None:
    read_model = read(benchmarks / file)
    sizes = (read_model.num_states, read_model.num_actions, read_model.num_observations)
    assert sizes == (states, actions, observations)
    assert read_model.exact.discount == (None if discount is None else Fraction(discount))
    assert read_model.name == Path(file).stem
    assert all(
        total == 1 for matrix in read_model.exact.T + read_model.exact.Z for total in matrix.row_sums()
    )


def test_table_of_files_is_complete(benchmarks: Path) -> None:
    present = {path.name for path in benchmarks.iterdir() if path.suffix.lower() == ".pomdp"}
    assert present == {row[0] for row in FILES}


def test_rounded_rows_are_divided_by_their_sum_and_counted(benchmarks: Path) -> None:
    aloha = read(benchmarks / "aloha.10.pomdp")
    assert (aloha.normalised_rows, 2 * aloha.num_states * aloha.num_actions) == (192, 540)


def test_same_model_in_two_spellings(benchmarks: Path) -> None:
    loose, strict = read(benchmarks / "term3.pomdp"), read(benchmarks / "term3_strict.pomdp")
    assert loose.digest == strict.digest
    named, numeric = read(benchmarks / "tiger.95.pomdp"), read(benchmarks / "tiger.numeric.pomdp")
    assert numeric.states == ("0", "1")
    np.testing.assert_allclose(numeric.R, named.R, rtol=1e-12)
    for ours, theirs in zip(numeric.T + numeric.Z, named.T + named.Z, strict=True):
        np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-12)


@pytest.mark.parametrize(("file", "best"), [("ejs3.POMDP", 4), ("bridge-repair.POMDP", 0)])
def test_costs_of_files_become_negative_rewards(benchmarks: Path, file: str, best: float) -> None:
    costly = read(benchmarks / file)
    assert costly.cost and costly.R.max() == best and costly.R.min() < 0


def test_start_of_two_names_means_either(benchmarks: Path) -> None:
    maze = read(benchmarks / "light_maze.POMDP")
    assert maze.exact.start == {0: Fraction(1, 2), 1: Fraction(1, 2)}


def test_reward_for_one_outcome_is_averaged(benchmarks: Path) -> None:
    maze = read(benchmarks / "1d.pomdp")
    # Entering `goal`, where `goal` is seen, pays 1: from `right` by w0, from `middle` by e0.
    w0, e0 = (maze.exact.R.row(a) for a in range(2))
    assert w0[2] == 1 and e0[1] == 1
    assert set(w0) == {2} and set(e0) == {1}


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", "1/3 1/3 1/3"),
        ("start: uniform", "1/3 1/3 1/3"),
        ("start: 0.2 0.3 0.5", "1/5 3/10 1/2"),
        ("start:\n 0.2 # first\n 0.3\n\n .5", "1/5 3/10 1/2"),
        ("start: 0 1 0", "0 1 0"),
        ("start: b", "0 1 0"),
        ("start: 2", "0 0 1"),
        ("start: a c", "1/2 0 1/2"),
        ("start include: c", "0 0 1"),
        ("start include: c 0 c", "1/2 0 1/2"),
        ("start include : a\n b", "1/2 1/2 0"),
        ("start exclude: a", "0 1/2 1/2"),
        ("start exclude: 1 2", "1 0 0"),
        ("start: 0.333333 0.333333 0.333333", "1/3 1/3 1/3"),
        ("start: 1/3 2/3 0", "1/3 2/3 0"),
    ],
)
@pytest.mark.parametrize("place", ["first", "last"])
def test_start_in_every_form(start: str, expected: str, place: str) -> None:
    body = "states: a b c\nactions: 1\nobservations: 1\nT: 0 identity\nO: 0 uniform"
    found = parse(f"{start}\n{body}" if place == "first" else f"{body}\n{start}")
    values = [Fraction(word) for word in expected.split()]
    assert found.exact.start == {s: v for s, v in enumerate(values) if v}


def test_start_vector_is_none_of_the_numbers_that_indices_were() -> None:
    found = model("T: 0 identity", "T: * : 1 : 1 1", "T: 1 : 0 : 0 1", "O: * uniform", "start: 1 0")
    assert found.exact.start == {0: 1}


def test_start_of_a_single_state_is_index_or_probability() -> None:
    body = "states: 1\nactions: 1\nobservations: 1\nT: 0 identity\nO: 0 uniform\n"
    assert all(parse(body + f"start: {text}").exact.start == {0: 1} for text in ("0", "1", "1.0", "uniform"))


@pytest.mark.parametrize(
    ("statements", "action", "expected"),
    [
        ("T: go\n0.5 0.5\n0 1", 1, "1/2 1/2, 0 1"),
        ("T: go 0.5 0.5 0 1", 1, "1/2 1/2, 0 1"),
        ("T: go uniform", 1, "1/2 1/2, 1/2 1/2"),
        ("T: go reset", 1, "1/4 3/4, 1/4 3/4"),
        ("T: * uniform\nT: 1 identity", 0, "1/2 1/2, 1/2 1/2"),
        ("T: go : left\n0.25\n0.75", 1, "1/4 3/4, 0 1"),
        ("T: go : 0 uniform", 1, "1/2 1/2, 0 1"),
        ("T: go : right reset", 1, "1 0, 1/4 3/4"),
        ("T: go : * reset", 1, "1/4 3/4, 1/4 3/4"),
        ("T: go : * 0.3 0.7", 1, "3/10 7/10, 3/10 7/10"),
        ("T:go:left:left 0.4 T:go:left:right 0.6", 1, "2/5 3/5, 0 1"),
        ("T: * : * : left 1\nT: * : * : right 0", 0, "1 0, 1 0"),
        ("T: go : left : * 0.5", 1, "1/2 1/2, 0 1"),
        ("T: go : left : * 0\nT: go : left : left 1", 1, "1 0, 0 1"),
        # On top of the start distribution, here 1/4 3/4, single entries still override.
        ("T: go : left reset\nT: go : left : right 0\nT: go : left : left 1", 1, "1 0, 0 1"),
        ("T: go : left reset\nT: go : left 1 0", 1, "1 0, 0 1"),
        ("T: go : left reset\nT: go : left : * 0.5", 1, "1/2 1/2, 0 1"),
    ],
)
def test_transitions_in_every_form(statements: str, action: int, expected: str) -> None:
    found = model("T: * identity", "O: * uniform", statements, "start: 0.25 0.75")
    assert dense(found.exact.T[action]) == fractions(expected)


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("O: go\n0.5 0.5\n0 1", "1/2 1/2, 0 1"),
        ("O: go identity", "1 0, 0 1"),
        ("O: go : right uniform\nO: go : left 1 0", "1 0, 1/2 1/2"),
        ("O: * : * : light 1\nO: * : * : dark 0", "0 1, 0 1"),
        ("O: 1 : 0 : 0 0.1\nO: 1 : 0 : 1 0.9", "1/10 9/10, 1/2 1/2"),
    ],
)
def test_observations_in_every_form(statements: str, expected: str) -> None:
    found = model("T: * identity", "O: * uniform", statements)
    assert dense(found.exact.Z[1]) == fractions(expected)


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("R: go : left : * : * 5", "0 0, 5 0"),
        ("R: * : * : * : * -1\nR: go : 0 : 0 : * 2", "-1 -1, 2 -1"),
        ("R: go : * : right : light 8", "0 0, 0 4"),
        ("R: * : left : left 1 2", "3/2 0, 3/2 0"),
        ("R: go : left\n1 2\n3 4", "0 0, 3/2 0"),
        ("R: go\n1 2\n3 4\n5 6\n7 8", "0 0, 3/2 15/2"),
        ("R: *\n1 2 3 4 5 6 7 8", "3/2 15/2, 3/2 15/2"),
        ("R: go : left : left : dark 10\nR: go : * : * : * 1", "0 0, 1 1"),
        ("R: go : * : * : * 1\nR: go : left : left : dark 10", "0 0, 11/2 1"),
        ("R: go : left\n9 9\n9 9\nR: * : * : * : light 1", "1/2 1/2, 5 1/2"),
        ("R: * : * : * : light 1\nR: go : left\n0 0\n0 0", "1/2 1/2, 0 1/2"),
        ("R: go : left : left 6 6\nR: go : * : left : dark 0", "0 0, 3 0"),
        ("R: go : left : left : dark 9\nR: go : left : left 0 2", "0 0, 1 0"),
        ("R: go : left : * : dark 9\nR: go : left : * 0 2", "0 0, 1 0"),
        ("R: go : left : * : * 1/3", "0 0, 1/3 0"),
        ("R: go : left : * : * 1e-2", "0 0, 1/100 0"),
    ],
)
@pytest.mark.parametrize("values", ["reward", "cost"])
def test_rewards_of_every_arity_override_by_line(statements: str, expected: str, values: str) -> None:
    text = HEAD.replace("reward", values) + KERNELS + statements
    found = parse(text)
    sign = -1 if values == "cost" else 1
    assert dense(found.exact.R) == [[sign * v for v in row] for row in fractions(expected)]
    assert found.cost == (values == "cost")


@pytest.mark.parametrize(("word", "cost"), [("reward", 0), ("rewards", 0), ("cost", 1), ("costs", 1)])
def test_values_in_singular_and_plural(word: str, cost: bool) -> None:
    found = parse(HEAD.replace("reward", word) + KERNELS + "R: * : * : * : * 1")
    assert found.cost == cost and set(found.R.ravel()) == {-1.0 if cost else 1.0}


PLAIN = HEAD + KERNELS + "R: go : left : * : light 2\nstart: right\n"


@pytest.mark.parametrize(
    "spelling",
    [
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace(" ", "\t"),
        PLAIN.replace(": ", ":"),
        PLAIN.replace(":", "\n:\n"),
        PLAIN.replace("\n", " # a comment: T: go uniform\n"),
        "\ufeff" + PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN + "# the last line ends in a comment",
        "# " + "long comment " * 10_000 + "\n" + PLAIN,
        PLAIN.replace("left right", "left" + " " * 200_000 + "right"),
        "\n".join(reversed(HEAD.splitlines())) + "\n" + KERNELS + "start: right\nR: go : left : * : light 2",
        "start: right\n" + HEAD + KERNELS + "R: 1 : 0 : * : 1 2.0",
        PLAIN.replace("states: left right", "states:\n left # one\n\n right # two\n"),
        KERNELS.join(PLAIN.split(KERNELS)).replace("go :", "1 :"),
    ],
    ids=range(15),
)
def test_layout_does_not_matter(spelling: str) -> None:
    found, plain = parse(spelling), parse(PLAIN)
    assert found.digest == plain.digest
    assert (found.states, found.actions) == (plain.states, plain.actions)


def test_words_are_whole_wherever_a_long_line_is_cut() -> None:
    # Pieces of a line end at 2^16 characters: here the cut wanders over a statement.
    for shift in range(2**16 - 24, 2**16 + 2):
        text = HEAD.replace("\n", " ").replace("dark", " " * (shift - 90) + "dark") + KERNELS.replace(
            "\n", " "
        )
        assert parse(text).digest == parse(HEAD + KERNELS).digest


def test_bytes_outside_utf8_are_harmless_in_comments(tmp_path: Path) -> None:
    file = tmp_path / "old.pomdp"
    for junk in ("\u201d".encode("cp1252"), "\u201d".encode(), "é".encode("latin-1"), b"\x00\x80"):
        file.write_bytes(b"\xef\xbb\xbf# " + junk + b"\r\n" + PLAIN.encode() + b"# " + junk)
        assert read(file).digest == parse(PLAIN).digest
    file.write_bytes(PLAIN.replace("left", "caf\u00e9").encode("utf-8"))
    assert read(file).states == ("caf\u00e9", "right")
    file.write_bytes(PLAIN.replace("left", "caf\u00e9").encode("latin-1"))
    with pytest.raises(FormatError, match=r"old.pomdp:3: .*UTF-8"):
        read(file)


def test_numbers_are_the_decimals_that_are_written() -> None:
    numbers = {
        "0.1": "1/10",
        "1.": "1",
        ".5": "1/2",
        "+3": "3",
        "-2.50": "-5/2",
        "1e3": "1000",
        "2E-1": "1/5",
    }
    numbers |= {"0.30000000000000004": "30000000000000004/100000000000000000", "-7/3": "-7/3"}
    for text, value in numbers.items():
        found = parse(HEAD + KERNELS + f"R: stay : left : * : * {text}")
        assert found.exact.R.row(0) == {0: Fraction(value)}, text


def test_names_may_look_like_anything_but_numbers_and_grammar() -> None:
    names = ["4x3", "a.b", "-", "left,right", "inf", "nan", "e5", "x(1)", "Reward", "rewards", "t"]
    text = f"states: {' '.join(names)}\nactions: 1\nobservations: 1\nT: 0 identity\nO: 0 uniform\nstart: nan"
    assert parse(text).states == tuple(names)
    assert parse(text).exact.start == {names.index("nan"): 1}


def test_missing_discount_is_left_to_the_caller() -> None:
    found = parse(HEAD.replace("discount: 0.9\n", "") + KERNELS)
    assert found.discount is None and found.exact.discount is None


def test_unnamed_outcomes_pay_nothing() -> None:
    assert parse(HEAD + KERNELS).R.tolist() == [[0, 0], [0, 0]]


def test_equal_matrices_are_kept_once() -> None:
    found = parse(HEAD + KERNELS)
    assert found.exact.T[0] is found.exact.T[1] and found.Z[0] is found.Z[1]


def test_error_is_a_model_error_with_its_line() -> None:
    with pytest.raises(ModelError) as caught:
        parse(HEAD + "T: fly identity", name="my.pomdp")
    assert isinstance(caught.value, FormatError) and caught.value.line == 6
    assert str(caught.value).startswith("my.pomdp:6: found 'fly', expected ")


def test_limits_are_the_callers() -> None:
    with pytest.raises(FormatError, match=r"<text>:3: .*Limits.states"):
        parse(PLAIN, limits=Limits(states=1))
    assert parse(PLAIN, limits=Limits(states=2, actions=2, observations=2)).num_states == 2
