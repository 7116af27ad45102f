"""Run every study's small preset afresh and compare with the committed results. Plots only when asked to.

The output folder is deleted first, and only if an earlier call made it: a marker file says so.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.comparison import Difference, compare
from experiments.provenance import read_manifest, write_manifest
from experiments.records import RecordError
from experiments.runner import Run, frame_of, not_applied, run_study
from experiments.study import Study, StudyError, load_study, parameters_of, study_name
from experiments.tables import TableError, check_frame, read_table, read_tables, to_text, write_table

if TYPE_CHECKING:
    import pandas as pd

MARKER = ".hpomdp-reproduce"


class FolderError(ValueError):
    """A folder that this program did not make and therefore does not delete."""


@dataclass(frozen=True)
class Reproduced:
    """One study run afresh: its run, tables, disagreements with the committed ones, figures, notes."""

    run: Run
    tables: dict[str, pd.DataFrame]
    differences: tuple[Difference, ...]
    figures: tuple[Path, ...]
    notes: tuple[str, ...] = field(default=())


def clear(folder: Path) -> None:
    """Delete what an earlier call left and make the folder anew; FolderError if something else is there."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FolderError(
            f"{folder} is not a folder of its own; give --out a folder to make, such as runs/reproduce"
        )
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARKER).is_file():
            raise FolderError(
                f"{folder} was not made by hpomdp reproduce (no {MARKER} in it) and is left alone; "
                "give --out another folder, such as runs/reproduce"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text("Made by hpomdp reproduce, which deletes this folder when it starts.\n")


def reproduce(
    names: Iterable[str], *, out: Path, results: Path, jobs: int | None, argv: Sequence[str], update: bool
) -> list[Reproduced]:
    """Run the studies into `out`; compare with `results`, or write it where `update` says so."""
    presets = {name: parameters_of(load_study(name), "small") for name in names}
    clear(out)
    done = []
    for name, parameters in presets.items():
        folder = out / _plain_name(name)
        run = run_study(
            name,
            parameters,
            preset="small",
            folder=folder,
            jobs=jobs,
            argv=argv,
        )
        tables = tabulate(run)
        figures = draw(run.study, folder, folder / "figures", forms=("pdf", "svg", "png"))
        committed = results / _plain_name(name)
        if update:
            publish(run, tables, committed)
        done.append(
            Reproduced(
                run,
                tables,
                tuple(compare_study(run, tables, committed)),
                tuple(figures),
                tuple(notes_of(run)),
            )
        )
    return done


def tabulate(run: Run) -> dict[str, pd.DataFrame]:
    """Analyse a run's records and store its tables in the run's folder."""
    given = run.study.analyse(frame_of(run))
    frames = {table.name: check_frame(table, given[table.name]) for table in run.study.TABLES}
    for table in run.study.TABLES:
        write_table(table, frames[table.name], run.folder / "tables", _note(run))
    return frames


def draw(
    study: Study, folder: Path, target: Path, *, forms: Iterable[str], width: float | None = None
) -> list[Path]:
    """Draw the study's figure from the tables stored in `folder` alone; returns the files."""
    from experiments import style

    chosen = style.WIDE if width is None else width
    manifest = read_manifest(folder)
    tables = read_tables(study.TABLES, folder / "tables")
    name = study_name(study) if chosen == style.WIDE else f"{study_name(study)}-{chosen}"
    with style.styled(manifest["run_id"]):
        figure = study.figure(tables, chosen)
        origin = style.provenance_of(manifest)
        return [style.save(figure, target / f"{name}.{form}", origin) for form in forms]


def publish(run: Run, tables: dict[str, pd.DataFrame], target: Path) -> None:
    """Write the committed results of a study: manifest, tables and vector figures."""
    incomplete = [*run.with_status("failed"), *run.with_status("skipped")]
    if incomplete:
        raise StudyError(
            f"study {study_name(run.study)}: {len(incomplete)} cells did not finish, results are kept; "
            f"the first: {incomplete[0].cell}: {_first_line(incomplete[0].message)}"
        )
    if target.exists():
        shutil.rmtree(target)
    for table in run.study.TABLES:
        write_table(table, tables[table.name], target / "tables", _note(run))
    write_manifest(target, run.manifest)
    draw(run.study, target, target / "figures", forms=("pdf", "svg"))


def compare_study(run: Run, tables: dict[str, pd.DataFrame], committed: Path) -> list[Difference]:
    """All differences between a run's tables and the committed ones, failures and gaps included."""
    name = study_name(run.study)
    found = [
        Difference(name, "records", str(record.cell), "status", f"failed: {_first_line(record.message)}")
        for record in run.with_status("failed")
    ]
    try:
        manifest = read_manifest(committed)
        stored = {table.name: read_table(table, committed / "tables") for table in run.study.TABLES}
    except (RecordError, TableError) as error:
        hint = "hpomdp reproduce --update writes them"
        return [
            *found,
            Difference(name, "results", str(committed), "tables", f"no committed results: {error}; {hint}"),
        ]
    if manifest["parameters_hash"] != run.manifest["parameters_hash"]:
        message = f"committed {manifest['parameters']}, computed {run.manifest['parameters']}"
        return [*found, Difference(name, "results", str(committed), "parameters", message)]
    skipped = [record.cell for record in run.with_status("skipped")]
    for table in run.study.TABLES:
        found += compare(name, table, stored[table.name], tables[table.name], skipped)
    return found


def notes_of(run: Run) -> list[str]:
    """What a reader must know beside the tables: skipped cells by reason, and arms that changed nothing."""
    reasons: dict[str, int] = {}
    for record in run.with_status("skipped"):
        reasons[record.message or ""] = reasons.get(record.message or "", 0) + 1
    return [
        *(f"{count} cells skipped: {reason}" for reason, count in reasons.items()),
        *not_applied(run.study, run.records),
    ]


def report(done: Sequence[Reproduced], results: Path) -> int:
    """Print headline tables, figures, notes and differences; 1 where there is a difference."""
    total = 0
    for item in done:
        name = study_name(item.run.study)
        print(f"\n{name}: {item.run.study.QUESTION}\n")
        main = item.run.study.TABLES[0]
        print(to_text(main, item.tables[main.name]))
        print(f"\n{item.run.study.headline(item.tables)}")
        for note in item.notes:
            print(note)
        print(f"figures: {', '.join(str(path) for path in item.figures)}")
        for difference in item.differences:
            print(f"differs: {difference}")
        total += len(item.differences)
    sys.stdout.flush()
    if total:
        print(f"\n{total} differences from {results}")
        return 1
    print(f"\nall {len(done)} studies agree with {results}")
    return 0


def _note(run: Run) -> str:
    return (
        f"{study_name(run.study)}, run {run.manifest['run_id']}, commit {run.manifest['commit'] or 'unknown'}"
    )


def _plain_name(name: str) -> str:
    return Path(name).stem.replace("-", "_")


def _first_line(message: str | None) -> str:
    return (message or "no message").splitlines()[0]
