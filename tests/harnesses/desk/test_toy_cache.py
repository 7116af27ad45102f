"""The cache of the toy decider: the same reports bit for bit, and never a reason to fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harnesses.desk import toy as toys
from harnesses.desk import toy_cache
from harnesses.desk.generator import CALIBRATION, TEST, TRAIN, split
from harnesses.desk.toy import Toy, Trained, _packed, _unpacked

SEED = 14


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(toy_cache, "cache_folder", lambda part: tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def fit() -> Trained:
    parts = (replace(p, route=p.route[:300], guard=p.guard[:300]) for p in map(split, (TRAIN, CALIBRATION)))
    return Trained.of(*parts)


def reports(made: Trained) -> list[float]:
    return Toy(made).noul_all([item.question() for item in split(TEST).guard])


def test_what_is_read_is_what_was_stored(folder: Path, fit: Trained) -> None:
    toy_cache.store(SEED, *_packed(fit))
    stored = toy_cache.find(SEED)
    assert stored is not None
    made = _unpacked(*stored)
    assert reports(made) == reports(fit)
    assert np.array_equal(made.route_reports, fit.route_reports) and np.array_equal(made.right, fit.right)
    asked = [item.question() for item in split(TEST).route]
    assert Toy(made).choose_all(asked) == Toy(fit).choose_all(asked)
    assert [path.suffix for path in folder.iterdir()] == [".npz"]


def test_another_seed_or_source_has_another_file(
    folder: Path, fit: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_cache.store(SEED, *_packed(fit))
    assert toy_cache.find(SEED + 1) is None
    monkeypatch.setattr(toy_cache, "digest", lambda: "other")
    assert toy_cache.find(SEED) is None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a file", b"nothing of the kind"])
def test_a_damaged_file_is_fitted_again(
    folder: Path, fit: Trained, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_cache.store(SEED, *_packed(fit))
    (path,) = folder.iterdir()
    path.write_bytes(content)
    assert toy_cache.find(SEED) is None
    monkeypatch.setattr(Trained, "of", classmethod(lambda cls, *parts: fit))
    assert toys.trained.__wrapped__(SEED) is fit
    assert reports(_unpacked(*toy_cache.find(SEED))) == reports(fit)  # type: ignore[misc]


def test_a_file_of_another_shape_is_fitted_again(
    folder: Path, fit: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays, data = _packed(fit)
    data["guard"]["tokens"].pop()
    toy_cache.store(SEED, arrays, data)
    monkeypatch.setattr(Trained, "of", classmethod(lambda cls, *parts: fit))
    assert toys.trained.__wrapped__(SEED) is fit


def test_no_folder_and_a_full_disk_cost_time_alone(
    folder: Path, fit: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    toy_cache.store(SEED, *_packed(fit))
    assert list(folder.iterdir()) == []
    monkeypatch.setattr(toy_cache, "cache_folder", lambda part: None)
    toy_cache.store(SEED, *_packed(fit))
    assert toy_cache.find(SEED) is None


def test_the_name_holds_every_source_that_the_data_and_the_fit_come_from() -> None:
    named = set(toy_cache.SOURCES)
    folder = Path(toy_cache.__file__).parent
    reached, left = set(), ["toy"]
    while left:
        name = left.pop()
        if name in reached or name in ("toy_cache", "decider", "calculator"):
            continue
        reached.add(name)
        for line in (folder / f"{name}.py").read_text().splitlines():
            if line.startswith("from harnesses.desk.") and " import " in line:
                left.append(line.split()[1].rpartition(".")[2])
            elif line.startswith("from harnesses.desk import "):
                left += [part.strip() for part in line.partition(" import ")[2].split(",")]
    assert reached <= named, reached - named
