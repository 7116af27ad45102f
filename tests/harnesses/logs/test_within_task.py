"""Whether successes are the shorter runs: against a count over all pairs, and never pooled alone."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from harnesses.logs.within_task import compare

runs = st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=8)


def shares(pairs: list[tuple[int, int]]) -> float:
    return sum(1.0 if a < b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)


def pairs_of(found: list[tuple[int, bool]]) -> list[tuple[int, int]]:
    return [(a, b) for (a, won), (b, lost) in product(found, found) if won and not lost]


@given(tasks=st.dictionaries(st.sampled_from(["a", "b", "c", None]), runs, max_size=4))
def test_both_shares_are_those_of_all_pairs(tasks: dict[str | None, list[tuple[int, bool]]]) -> None:
    within = [pair for task, found in tasks.items() if task is not None for pair in pairs_of(found)]
    result = compare(tasks)
    if not within:
        assert result is None
        return
    assert result is not None
    everything = pairs_of([run for found in tasks.values() for run in found])
    assert abs(result.within - shares(within)) < 1e-12
    assert abs(result.over_all_runs - shares(everything)) < 1e-12
    assert result.pairs == len(within)


def test_long_hard_tasks_look_like_an_effect_of_length_only_over_all_runs() -> None:
    easy = [(10, True), (12, True), (11, False)]
    hard = [(100, False), (102, False), (101, True)]
    result = compare({"easy": easy, "hard": hard})
    assert result is not None and result.within == 0.5 and result.over_all_runs > 0.6
