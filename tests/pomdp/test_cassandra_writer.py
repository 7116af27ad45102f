"""What is written reads back with the same exact numbers, and other programs can read it too."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp.cassandra import FormatError, parse, read, write
from pomdp.model import POMDP

NAMES = ["left", "s0", "tiger-left", "A_1", "Tt", "x" * 200, "rewards", "inf", "e5", "include-me"]


def assert_same(one: POMDP, other: POMDP) -> None:
    """Same exact numbers, names, start, discount and kind of values."""
    assert one.digest == other.digest
    assert (one.states, one.actions, one.observations) == (other.states, other.actions, other.observations)
    assert one.exact.start == other.exact.start and one.exact.discount == other.exact.discount
    assert one.cost == other.cost


@st.composite
def rows(draw: st.DrawFn, size: int) -> dict[int, Fraction]:
    """A distribution with denominators of up to 60 digits, few of which have finite decimals."""
    top = draw(st.sampled_from([1, 4, 10, 97, 10**9, 10**60]))
    weights = [draw(st.integers(0, top)) for _ in range(size)]
    weights[draw(st.integers(0, size - 1))] += 1
    return {j: Fraction(w, sum(weights)) for j, w in enumerate(weights) if w}


@st.composite
def models(draw: st.DrawFn) -> POMDP:
    """A rational model, with names or counts, rewards or costs, matrices shared between actions or not."""
    S, A, O = (draw(st.integers(1, 4)) for _ in range(3))

    def kernel(columns: int) -> list:
        made = [[draw(rows(columns)) for _ in range(S)] for _ in range(A)]
        kind = draw(st.sampled_from(["any", "identity", "uniform", "same"]))
        if kind == "identity" and columns == S:
            made[0] = [{s: Fraction(1)} for s in range(S)]
        elif kind == "uniform":
            made[-1] = [{j: Fraction(1, columns) for j in range(columns)}] * S
        elif kind == "same":
            made = [made[0]] * A
        return made

    number = st.one_of(
        st.integers(-5, 5).map(Fraction), st.fractions(max_denominator=10**12), st.just(Fraction(0))
    )
    if draw(st.booleans()):
        R = [[draw(number)] * S for _ in range(A)]
    else:
        R = [[draw(number) for _ in range(S)] for _ in range(A)]
    names = st.permutations(NAMES)
    discount = st.one_of(st.none(), st.fractions(0, 1), st.sampled_from([Fraction(19, 20), Fraction(1, 3)]))
    start = draw(st.one_of(rows(S), st.just({S - 1: Fraction(1)}), st.none()))
    return POMDP.build(
        states=draw(st.one_of(st.just(S), names.map(lambda n: n[:S]))),
        actions=draw(st.one_of(st.just(A), names.map(lambda n: n[:A]))),
        observations=draw(st.one_of(st.just(O), names.map(lambda n: n[:O]))),
        T=kernel(S),
        Z=kernel(O),
        R=R,
        start=start,
        discount=draw(discount),
        cost=draw(st.booleans()),
    )


@given(models())
def test_text_reads_back_exactly(model: POMDP) -> None:
    text = write(model)
    assert_same(parse(text), model)
    assert write(parse(text)) == text


@given(models())
def test_probabilities_are_decimals_that_sum_to_one_within_1e_11(model: POMDP) -> None:
    text = write(model)
    sums: dict[str, Fraction] = {}
    for head, number in re.findall(r"^([TO]: \S+ : \S+) : \S+ (\S+)$", text, re.MULTILINE):
        assert re.fullmatch(r"\d+(\.\d+)?(e-\d+)?", number), number
        sums[head] = sums.get(head, Fraction(0)) + Fraction(number)
    assert all(abs(total - 1) < Fraction(1, 10**11) for total in sums.values())
    start = re.search(r"^start: ([\d. e-]+)$", text, re.MULTILINE)
    if start:
        assert abs(sum(map(Fraction, start[1].split())) - 1) < Fraction(1, 10**11)


@given(models())
def test_fractions_are_written_only_where_no_decimal_is_exact(model: POMDP) -> None:
    written = [Fraction(word) for word in re.findall(r"\S+/\S+", write(model))]
    # 10^k times such a number is never an integer: its denominator has another prime than 2 and 5.
    assert all(10 ** value.denominator.bit_length() % value.denominator for value in written)


def test_text_of_a_small_model() -> None:
    model = POMDP.build(
        states=["left", "right"],
        actions=["listen", "open"],
        observations=2,
        T=[[{0: 1}, {1: 1}], [{0: "0.5", 1: "0.5"}] * 2],
        Z=[[{0: "0.85", 1: "0.15"}, {0: "1/3", 1: "2/3"}]] * 2,
        R=[[-1, -1], [0, "1/3"]],
        discount="0.95",
        name="small\n",
    )
    assert write(model).splitlines() == [
        "# small\\n",
        "discount: 0.95",
        "values: reward",
        "states: left right",
        "actions: listen open",
        "observations: 2",
        "start: uniform",
        "",
        "T: listen identity",
        "T: open uniform",
        "",
        "O: * : left : 0 0.85",
        "O: * : left : 1 0.15",
        "O: * : right : 0 0.333333333333",
        "O: * : right : 1 0.666666666666",
        "",
        "R: listen : * : * : * -1",
        "R: open : right : * : * 1/3",
    ]


def test_files_by_others_read_back_exactly(benchmarks: Path) -> None:
    for path in sorted(benchmarks.iterdir()):
        if path.suffix.lower() == ".pomdp" and path.stat().st_size < 100_000:
            model = read(path)
            assert_same(parse(write(model)), model)


def test_written_file_reads_back(tmp_path: Path) -> None:
    model = parse(
        "states: 2\nactions: 1\nobservations: 1\nT: 0 uniform\nO: 0 uniform\nR: 0 : 0 : * : * 1e-300"
    )
    file = tmp_path / "copy.pomdp"
    file.write_text(write(model), encoding="utf-8")
    assert_same(read(file), model)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("tiger left", "tiger_left"),
        ("", "s_"),
        ("7", "s_7"),
        ("4x3", "s_4x3"),
        ("a:b", "a_b"),
        ("a#b", "a_b"),
        ("a*", "a_"),
        ("-", "s_-"),
        ("T", "s_T"),
        ("uniform", "s_uniform"),
        ("caf\u00e9", "caf_"),
        ("a\nb", "a_b"),
        ("y" * 201, "yyy"),
    ],
)
def test_name_that_the_format_cannot_express_is_refused_with_one_that_it_can(name: str, advice: str) -> None:
    model = POMDP.build(
        states=["ok", name], actions=1, observations=1, T=[[{0: 1}] * 2], Z=[[{0: 1}] * 2], R=[[0, 0]]
    )
    with pytest.raises(FormatError) as caught:
        write(model)
    message = str(caught.value)
    assert message.startswith("state ") and f"rename it, say, to '{advice}" in message and "\n" not in message


def test_numbers_longer_than_the_reader_takes_are_refused() -> None:
    def model(p: Fraction, reward: Fraction) -> POMDP:
        T = [[{0: p, 1: 1 - p}] * 2]
        return POMDP.build(states=2, actions=1, observations=1, T=T, Z=[[{0: 1}] * 2], R=[[0, reward]])

    tiny = Fraction(1, 3**900)
    for wrong, where in (
        (model(tiny, Fraction(1)), r"T row \[\*, 0\]"),
        (model(Fraction(1, 2), tiny), r"the reward of \[0, 1\]"),
        (model(Fraction(1, 2), Fraction(10**301)), r"the reward of \[0, 1\]"),
        (model(Fraction(1, 2**500), Fraction(1)), r"T row \[\*, 0\]"),
    ):
        with pytest.raises(FormatError, match=where):
            write(wrong)
    long = model(Fraction(1, 3**700), Fraction(1, 3**800))
    assert_same(parse(write(long)), long)
