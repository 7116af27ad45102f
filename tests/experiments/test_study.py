"""A study's module is checked when it is loaded, and errors say what a right one has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.study import (
    FUNCTIONS,
    OTHERS,
    TEXTS,
    StudyError,
    fingerprint,
    grid,
    load_study,
    parameters_of,
    seed_list,
    shipped_studies,
)

COIN = Path(__file__).with_name("coin_study.py")


@pytest.mark.parametrize("part", [*TEXTS, *OTHERS, *FUNCTIONS])
def test_a_study_without_a_part_is_refused_by_its_name(tmp_path: Path, part: str) -> None:
    path = tmp_path / "partial.py"
    path.write_text(f"{COIN.read_text()}\ndel {part}\n")
    with pytest.raises(StudyError, match=rf"study partial lacks {part};"):
        load_study(str(path))


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('QUESTION = "Does a bias change the share of heads?"', 'QUESTION = " "', "QUESTION must be a text"),
        ("@dataclass(frozen=True)", "@dataclass", "frozen dataclass"),
        ('"full": ', '"large": ', "needs small and full"),
        ("SEEDS = 2", "SEEDS = 1 / 0", "fails to load: ZeroDivisionError"),
    ],
)
def test_a_study_with_a_wrong_part_is_refused(tmp_path: Path, old: str, new: str, match: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(COIN.read_text().replace(old, new))
    with pytest.raises(StudyError, match=match):
        load_study(str(path))


def test_unknown_studies_are_answered_with_the_known_ones() -> None:
    with pytest.raises(StudyError, match="no study 'nothing'; known: "):
        load_study("nothing")
    with pytest.raises(StudyError, match="does not exist"):
        load_study("nothing.py")


def test_shipped_studies_are_found_without_being_run_and_all_load() -> None:
    names = shipped_studies()
    assert "runner" not in names and "study" not in names
    for name in names:
        study = load_study(name)
        assert load_study(name.replace("_", "-")) is study
        for preset in study.PRESETS.values():
            assert grid(study, preset)


def test_cells_are_plain_distinct_and_present(tmp_path: Path) -> None:
    study = load_study(str(COIN))
    small = parameters_of(study, "small")
    assert len(grid(study, small)) == 6
    with pytest.raises(StudyError, match="has no cells"):
        grid(study, type(small)(items=()))
    with pytest.raises(StudyError, match="lists the cell .* twice"):
        grid(study, type(small)(items=(1, 1)))
    with pytest.raises(StudyError, match="has no preset 'huge'; it has small, full"):
        parameters_of(study, "huge")


def test_seeds_count_from_zero_and_a_study_without_chance_has_none() -> None:
    study = load_study(str(COIN))
    assert seed_list(study, None) == [0, 1] and seed_list(study, 3) == [0, 1, 2]
    with pytest.raises(StudyError, match="at least one seed"):
        seed_list(study, 0)
    exact = load_study(str(COIN))
    exact.SEEDS = 0
    assert seed_list(exact, None) == [None]
    with pytest.raises(StudyError, match="draws nothing at random"):
        seed_list(exact, 4)


@pytest.mark.parametrize("change", [lambda x: x[:-1], lambda x: [*x, ""], lambda x: x[::-1]])
def test_fingerprints_tell_contexts_apart(change: Callable[[list[str]], list[str]]) -> None:
    contexts = ["look", "wall", "turn"]
    assert fingerprint(contexts) == fingerprint(tuple(contexts))
    assert fingerprint(contexts) != fingerprint(change(contexts))
