"""Reproducing deletes only what it made, runs afresh, and reports every disagreement."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from experiments import style
from experiments.provenance import read_manifest, write_manifest
from experiments.reproduce import MARKER, FolderError, Reproduced, clear, draw, report, reproduce
from experiments.study import StudyError, load_study
from experiments.tables import read_table, write_table

COIN = str(Path(__file__).with_name("coin_study.py"))


def again(folder: Path, study: str = COIN, update: bool = False) -> list[Reproduced]:
    return reproduce(
        [study],
        out=folder / "out",
        results=folder / "results",
        jobs=2,
        argv=["hpomdp", "reproduce"],
        update=update,
    )


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which reproduce --update was called once."""
    folder = tmp_path_factory.mktemp("committed")
    again(folder, update=True)
    return folder


@pytest.fixture
def copy(committed: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(committed / "results", tmp_path / "results")
    yield tmp_path


def coins(folder: Path) -> Path:
    return folder / "results" / "coin_study" / "tables"


def test_update_commits_tables_vector_figures_and_manifest(committed: Path) -> None:
    found = {
        path.relative_to(committed).as_posix()
        for path in (committed / "results").rglob("*")
        if path.is_file()
    }
    base = "results/coin_study"
    assert found == {
        f"{base}/manifest.json",
        *(f"{base}/tables/coins.{ending}" for ending in ("csv", "parquet", "tex")),
        *(f"{base}/figures/coin_study.{ending}" for ending in ("pdf", "svg")),
    }


def test_the_manifest_says_where_the_results_come_from(committed: Path) -> None:
    manifest = read_manifest(committed / "results" / "coin_study")
    assert manifest["preset"] == "small" and manifest["seeds"] == [0, 1]
    assert manifest["records"] == {"done": 12, "failed": 0, "skipped": 0}
    assert manifest["record_sources"] == [manifest["source"]]
    assert manifest["argv"] == ["hpomdp", "reproduce"]
    assert set(manifest) >= {
        "commit", "dirty", "versions", "parameters", "parameters_hash", "run_id", "cores", "devices",
        "wall_seconds", "record_seconds", "record_cpu_seconds", "started", "finished",
    }  # fmt: skip
    assert manifest["versions"]["numpy"] and manifest["versions"]["python"]
    assert str(committed) not in json.dumps(manifest)


def test_a_second_run_agrees_and_says_so(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = again(copy)
    assert report(done, copy / "results") == 0
    output = capsys.readouterr().out
    assert "Does a bias change the share of heads?" in output and "all 1 studies agree" in output
    assert "not applied: arm=idle" in output
    assert all(path.is_file() and str(path) in output for path in done[0].figures)
    # It runs afresh: nothing is taken over from the run before.
    assert done[0].run.computed == 12 and again(copy)[0].run.computed == 12


def test_a_changed_number_is_a_difference(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (table,) = load_study(COIN).TABLES
    frame = read_table(table, coins(copy))
    frame.loc[0, "records"] += 1
    write_table(table, frame, coins(copy))
    assert report(again(copy), copy / "results") == 1
    assert "coin_study/coins [arm=biased] records: committed 5.0, computed 4.0" in capsys.readouterr().out


def test_missing_results_other_parameters_and_failures_are_differences(copy: Path) -> None:
    manifest = read_manifest(copy / "results" / "coin_study")
    write_manifest(copy / "results" / "coin_study", {**manifest, "parameters_hash": "0"})
    assert [item.column for item in again(copy)[0].differences] == ["parameters"]
    shutil.rmtree(copy / "results")
    (missing,) = again(copy)[0].differences
    assert "hpomdp reproduce --update" in missing.message
    broken = copy / "coin_study.py"
    broken.write_text(Path(COIN).read_text().replace('fail: str = ""', 'fail: str = "idle"'))
    found = again(copy, str(broken))[0].differences
    assert [item.column for item in found] == ["status"] * 4 + ["tables"]
    with pytest.raises(StudyError, match="4 cells did not finish"):
        again(copy, str(broken), update=True)
    assert not (copy / "results").exists()


def test_rows_of_skipped_cells_are_not_compared_and_the_reason_is_printed(copy: Path) -> None:
    study = copy / "coin_study.py"
    text = Path(COIN).read_text()
    # As where a file is absent: the parameters stay the same.
    study.write_text(text.replace('if cell["arm"] == cell["skip"]', 'if cell["arm"] == "idle"'))
    (done,) = again(copy, str(study))
    assert done.differences == ()
    assert done.notes[0] == "4 cells skipped: no such coin; put one into the folder coins"


def test_a_folder_made_by_someone_else_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter.tex").write_text("text")
    with pytest.raises(FolderError, match="was not made by hpomdp reproduce"):
        clear(folder)
    assert (folder / "chapter.tex").read_text() == "text"
    link = tmp_path / "link"
    link.symlink_to(folder)
    for path in (link, folder / "chapter.tex"):
        with pytest.raises(FolderError):
            clear(path)
    assert (folder / "chapter.tex").is_file()


def test_its_own_folder_is_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    clear(folder)
    (folder / "old").mkdir()
    (folder / "old" / "x").write_text("x")
    clear(folder)
    assert [path.name for path in folder.iterdir()] == [MARKER]


def test_a_figure_is_drawn_from_stored_tables_alone(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = load_study(COIN)

    def never(*_: object) -> None:
        raise AssertionError("drawing a figure must not run or analyse the study")

    for name in ("run", "cells", "analyse"):
        monkeypatch.setattr(study, name, never)
    folder = copy / "results" / "coin_study"
    before = (folder / "figures" / "coin_study.pdf").read_bytes()
    (same,) = draw(study, folder, copy / "drawn", forms=("pdf",))
    assert same.read_bytes() == before
    (narrow,) = draw(study, folder, copy / "drawn", forms=("svg",), width=style.NARROW)
    assert narrow.name == "coin_study-3.41.svg"
    # What is stored is what is drawn.
    (table,) = study.TABLES
    frame = read_table(table, folder / "tables")
    write_table(table, pd.DataFrame(frame).assign(share=0.9), folder / "tables")
    (other,) = draw(study, folder, copy / "drawn", forms=("pdf",))
    assert other.read_bytes() != before
