"""No input makes the reader raise anything but FormatError, take long, or hold much memory."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp.cassandra import FormatError, Limits, parse, read, write

# Small, so that an input of a few words can reach every limit within a moment.
SMALL = Limits(
    characters=20_000,
    states=40,
    actions=10,
    observations=40,
    entries=2_000,
    steps=50_000,
    bits=5_000,
    total_bits=1_000_000,
)
SECONDS = 5.0  # of processor time: a hundred times what the slowest example took
MEBIBYTE = 1 << 20

SAMPLE = """\
# A sample with every kind of statement.
discount: 0.95
values: cost
states: s0 s1 s2
actions: go stay
observations: dark light
start include: s0 s2
T: *
identity
T: go : s0 0.5 0.25 0.25
T: go : s1 : s1 0.0
T: go : s1 : s2 1e0
T: go : 2 reset
O: * uniform
O: stay : * : light 1/3
O: stay : * : dark 0.6666667
R: * : s0 : * : * -1.5
R: go : s1 : s2 3 4
R: stay : s2
1 2 3
4 5 6
R: go : * : * : dark 7
"""


def attempt(reading: Callable[[], object]) -> None:
    """Read, allowing nothing but a FormatError of one line, and bound the time."""
    began = time.process_time()
    try:
        reading()
    except FormatError as error:
        assert "\n" not in str(error) and len(str(error)) < 1_000
        str(error).encode("utf-8")
    assert time.process_time() - began < SECONDS


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    attempt(lambda: parse(text, limits=SMALL))


NUMBERS = ["0", "1", "1.0", "0.5", ".25", "1/3", "2/6", "-1", "1e-9", "1e300", "-1e300", "1e400", "1e-400",
           "1/0", "1e999999999", "0.99999", "1.00001", "9" * 400, "9" * 401, "1/" + "3" * 399, "+"]  # fmt: skip
COUNTS = ["0", "1", "2", "3", "7", "40", "41", "1000000000", "9" * 4301, "-1"]
NAMES = ["a", "b", "c", "a b c", "uniform", "T", "*", "0", "1", "2", "nan", "4x3", "é", "\udc80"]
PAYLOADS = ["uniform", "identity", "reset"]
JUNK = [":", "#", "*", "\ufeff", "\x00", "\u2028", "include", "exclude", "start", "R", "E"]


@st.composite
def soups(draw: st.DrawFn) -> str:
    """Statements that are often right, of sizes that are often right, with junk between them."""
    name, number = st.sampled_from(NAMES), st.sampled_from(NUMBERS)
    preamble = []
    for kind in ("states", "actions", "observations"):
        given_as = st.one_of(st.sampled_from(COUNTS[1:6]), st.sampled_from(COUNTS), name)
        preamble.append(f"{kind}: {draw(given_as)}")
    preamble += draw(st.lists(st.builds("discount: {}".format, number), max_size=1))
    preamble += draw(
        st.lists(st.builds("values: {}".format, st.sampled_from(["cost", "reward", "x"])), max_size=1)
    )
    start = st.builds(
        "start{}: {}".format,
        st.sampled_from(["", " include", " exclude", " :"]),
        st.lists(st.one_of(name, number), max_size=4).map(" ".join),
    )
    preamble += draw(st.lists(start, max_size=1))
    index = st.one_of(st.just("*"), name)
    payload = st.one_of(st.sampled_from(PAYLOADS), st.lists(number, max_size=30).map(" ".join))
    statement = st.builds(
        lambda label, indices, words: f"{label}: {' : '.join(indices)} {words}",
        st.sampled_from("TOR"),
        st.lists(index, max_size=5),
        payload,
    )
    statements = draw(st.lists(st.one_of(statement, statement, st.sampled_from(JUNK)), max_size=12))
    statements += ["T: * uniform", "O: * uniform"] * draw(st.booleans())
    joint = draw(st.sampled_from(["\n", "\r\n", " ", "\n#\n"]))
    return joint.join([*draw(st.permutations(preamble)), *statements])


@given(soups())
def test_soup_of_statements(text: str) -> None:
    attempt(lambda: parse(text, limits=SMALL))


def mutated(content: bytes, seed: int) -> bytes:
    """Content with a few bytes or spans changed, inserted, doubled or removed."""
    rng = random.Random(seed)
    out = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        i = rng.randrange(len(out) + 1)
        span = slice(i, i + rng.choice([1, 1, 3, 40]))
        kind = rng.randrange(5)
        if kind == 0:
            out[span] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 2])))
        elif kind == 1:
            out[span] = b""
        elif kind == 2:
            out[i:i] = out[span] * rng.choice([1, 3])
        elif kind == 3:
            out[span] = rng.choice([b":", b"*", b"#", b"9", b"e9", b"-", b"\n", b" T:", b" 1/7 ", b"uniform"])
        else:
            del out[max(i, 1) :]
    return bytes(out)


@pytest.mark.parametrize("part", range(4))
def test_mutations_of_a_sample(tmp_path: Path, part: int) -> None:
    assert parse(SAMPLE).num_states == 3
    file = tmp_path / "mutated.pomdp"
    outcomes = set()
    for seed in range(250):
        file.write_bytes(mutated(SAMPLE.encode(), 1_000 * part + seed))

        def reading() -> None:
            outcomes.add("refused")
            model = read(file, limits=SMALL)
            outcomes.add("read")
            assert parse(write(model)).digest == model.digest

        attempt(reading)
    assert outcomes == {"refused", "read"}


def test_mutations_of_files_by_others(benchmarks: Path, tmp_path: Path) -> None:
    limits = Limits(entries=20_000, steps=500_000)
    paths = [
        p for p in sorted(benchmarks.iterdir()) if p.suffix.lower() == ".pomdp" and p.stat().st_size < 5_000
    ]
    assert len(paths) > 10
    for number, path in enumerate(paths):
        content = path.read_bytes()
        for seed in range(12):
            file = tmp_path / "mutated.pomdp"
            file.write_bytes(mutated(content, 100 * number + seed))
            attempt(lambda file=file: read(file, limits=limits))


def preamble(states: int, actions: int, observations: int) -> str:
    return f"states: {states}\nactions: {actions}\nobservations: {observations}\n"


def primes(count: int) -> list[int]:
    return [n for n in range(3, 20 * count) if all(n % d for d in range(2, int(n**0.5) + 1))][:count]


# Limits that are reached by keeping much, not by asking for it, are lower here: less is kept by then.
LOWER = Limits(states=20_000, entries=200_000)

# Texts that ask for much with few words; what they may take at most, beside themselves, in MiB.
HOSTILE: dict[str, tuple[Callable[[], str], int]] = {
    "count of states": (lambda: "states: 1000000000", 1),
    "count of digits": (lambda: "states: " + "9" * 1_000_000, 8),
    "digits": (lambda: "discount: 0." + "1" * 1_000_000, 8),
    "exponent": (lambda: "discount: 1e-999999999", 1),
    "states by actions": (lambda: preamble(100_000, 1_000, 2) + "T: * identity", 1),
    "dense rows": (lambda: preamble(1_000_000, 1, 1) + "T: * uniform", 1),
    "a cube of rewards": (lambda: preamble(100_000, 1, 10_000) + "R: 0\n0 0 0", 1),
    "reset to a wide start": (lambda: preamble(5_000, 2, 1) + "T: * reset O: * uniform", 60),
    "one word": (lambda: "states: " + "a" * 5_000_000, 8),
    "one line of words": (lambda: "states: " + "a " * 1_000_000, 16),
    "colons": (lambda: "T" + ":" * 1_000_000, 16),
    "comments": (lambda: "#" * 5_000_000, 8),
    "empty lines": (lambda: "\n" * 50_000, 8),
    "start without end": (lambda: preamble(3, 1, 1) + "start: " + "0 " * 20_001, 8),
    "sections without end": (lambda: preamble(3, 1, 1) + "T: 0 identity\n" * 3_000, 8),
    "misspelt name": (lambda: "actions: 1 observations: 1 states: " +
                      " ".join(f"{'ab' * 40}{i}" for i in range(3_000)) + "\nT: 0 : " + "ba" * 500, 40),
    "common denominators": (lambda: preamble(2_000, 1, 1) + "T: 0 identity T: 0 : 0 " +
                            " ".join(f"1/{n}" for n in primes(2_000)), 16),
    "denominators of rewards": (lambda: preamble(2_000, 1, 1) + "T: 0 identity\nO: 0 uniform\n" + "\n".join(
        f"R: 0 : {s} : * : * 1/{n}" for s, n in enumerate(primes(2_000))), 16),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_little_text_cannot_ask_for_much(case: str) -> None:
    make, most = HOSTILE[case]
    text = make()
    # The text is copied once where it is made a stream, four bytes a character.
    allowed = most * MEBIBYTE + 4 * len(text)
    tracemalloc.start()
    try:
        began = time.process_time()
        with pytest.raises(FormatError):
            parse(text, limits=LOWER if case in ("reset to a wide start", "start without end") else Limits())
        seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < allowed, f"{peak / MEBIBYTE:.1f} MiB"
    assert seconds < 30, f"{seconds:.1f} s"


def test_wildcards_over_and_over_are_refused_while_they_are_expanded() -> None:
    limits = Limits(steps=200_000)
    with pytest.raises(FormatError, match=r"<text>:24: .* expand to 210000 steps"):
        parse(preamble(1_000, 10, 1) + "T: * : * : 0 1\n" * 500, limits=limits)


def test_rewards_over_very_many_outcomes_are_refused_while_they_are_averaged() -> None:
    limits = Limits(steps=200_000)
    text = preamble(50, 2, 50) + "T: * uniform O: * uniform R: * : * : * : 0 1"
    with pytest.raises(FormatError, match="steps"):
        parse(text, limits=limits)
    # The same outcomes do not count where no statement tells them apart.
    assert parse(text.replace(": 0 1", ": * 1"), limits=limits).R.min() == 1


def test_endless_file_is_read_up_to_the_limit() -> None:
    endless = Path("/dev/zero")
    if not endless.exists():
        pytest.skip("no /dev/zero on this system")
    with pytest.raises(FormatError, match="a word of over"):
        read(endless)
