"""How far a study's run is, read from its folder without running anything. Imports the runner and records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.provenance import read_manifest
from experiments.records import RecordError, read_other_records, read_records
from experiments.runner import tasks_of
from experiments.sources import source_hash
from experiments.study import load_study, parameters_of, study_name


@dataclass(frozen=True)
class Status:
    """Counts of a run's cells; `elsewhere` are missing ones that another version of the code did compute."""

    study: str
    folder: str
    preset: str
    done: int
    missing: int
    failed: int
    skipped: int
    elsewhere: int
    failures: tuple[str, ...]


def status_of(reference: str, folder: Path | None = None) -> Status:
    """Status of a study under the parameters of its last run, or of the small preset before any run."""
    study = load_study(reference)
    name = study_name(study)
    place = folder or Path("runs") / name
    preset, parameters, seeds = _last_run(study, place)
    source = source_hash(Path(study.__file__))
    tasks = tasks_of(study, parameters, seeds)
    records = read_records(place, source)
    others = read_other_records(place, source)
    found = [records[task.key] for task in tasks if task.key in records]
    failed = [record for record in found if record.status == "failed"]
    return Status(
        study=name,
        folder=str(place),
        preset=preset,
        done=sum(record.status == "done" for record in found),
        missing=len(tasks) - len(found),
        failed=len(failed),
        skipped=sum(record.status == "skipped" for record in found),
        elsewhere=sum(task.key in others and task.key not in records for task in tasks),
        failures=tuple(f"{record.cell}: {(record.message or '').splitlines()[0]}" for record in failed),
    )


def status_text(found: Sequence[Status]) -> str:
    """One line per study, then its failures."""
    lines = []
    for item in found:
        line = f"{item.study} ({item.preset}): {item.done} done, {item.missing} missing, {item.failed} failed"
        if item.skipped:
            line += f", {item.skipped} skipped"
        if item.elsewhere:
            line += f"; {item.elsewhere} of the missing have records of other versions of the code"
        lines += [line, *(f"  failed: {failure}" for failure in item.failures)]
    return "\n".join(lines)


def _last_run(study: Any, folder: Path) -> tuple[str, Any, list[int | None]]:
    try:
        manifest = read_manifest(folder)
    except RecordError:
        from experiments.study import seed_list

        return "small", parameters_of(study, "small"), seed_list(study, None)
    preset = manifest["preset"]
    base = parameters_of(study, preset)
    stored = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in manifest["parameters"].items()
    }
    return preset, replace(base, **stored), manifest["seeds"]
